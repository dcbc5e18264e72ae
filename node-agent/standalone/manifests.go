// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"bufio"
	"bytes"
	gojson "encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Manifests holds what a folder asks of this machine.
type Manifests struct {
	Spec v1.NodeCaptureSpec
	// Problems holds documents that could not be used, each with its file and what is wrong.
	Problems []error
	// Ignored holds documents of other kinds, and rings for other machines.
	Ignored []string

	// sources maps objects to their files.
	sources map[object]string
	// refused holds the documents of Problems.
	refused []refusal
}

// object identifies what a document asks for.
type object struct{ kind, name string }

// refusal is a document that could not be used. It is of an object or, with an empty name, anything in its file.
type refusal struct {
	file string
	object
}

// of reports whether an object's earlier document was in the place of this one. If an earlier agent accepted it, the
// file is not known, and may be any.
func (r refusal) of(o object, file string) bool {
	return (file == r.file || file == "") && (r.name == "" || o == r.object)
}

// File returns the file of an object; empty if none asks for it.
func (m Manifests) File(kind, name string) string { return m.sources[object{kind, name}] }

// keep takes over from the last manifests what a refused document asked for before its change.
func (m *Manifests) keep(last Manifests) {
	for at, refused := range m.refused {
		var kept []string
		take := func(kind, name string) bool {
			o := object{kind, name}
			if _, there := m.sources[o]; there || !refused.of(o, last.sources[o]) {
				return false
			}
			m.sources[o] = refused.file
			kept = append(kept, kind+" "+name)
			return true
		}
		for _, ring := range last.Spec.Rings {
			if take(kindRing, ring.Name) {
				m.Spec.Rings = append(m.Spec.Rings, ring)
			}
		}
		for _, cluster := range last.Spec.Clusters {
			if take(kindCluster, cluster.Name) {
				m.Spec.Clusters = append(m.Spec.Clusters, cluster)
			}
		}
		if len(kept) > 0 {
			m.Problems[at] = fmt.Errorf("%w; until then as before the change: %s", m.Problems[at], strings.Join(kept, ", "))
		}
	}
}

// The kinds that describe captures.
const (
	kindRing    = "CaptureRing"
	kindCluster = "Cluster"
)

// hostnameLabel is the only label of a machine without Kubernetes. Others in a nodeSelector count as true.
const hostnameLabel = "kubernetes.io/hostname"

// Folder reads manifests. It is for one goroutine.
type Folder struct {
	// Path of the folder. Hostname of the machine that it is for.
	Path, Hostname string
	// converted holds the documents of the last reading, as JSON. The conversion of large documents is the greatest
	// part of the work.
	converted map[string][]byte
}

// Read reads the *.yaml, *.yml and *.json files in the order of their names. A document that cannot be used does not
// affect the others. The error is for the folder itself.
func (f *Folder) Read() (Manifests, error) {
	entries, err := os.ReadDir(f.Path)
	if err != nil {
		return Manifests{}, fmt.Errorf("read the manifests: %w", err)
	}
	r := reader{
		hostname: f.Hostname, known: f.converted, converted: map[string][]byte{},
		found: Manifests{sources: map[object]string{}},
	}
	for _, entry := range entries {
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			continue
		}
		r.file(filepath.Join(f.Path, entry.Name()))
	}
	f.converted = r.converted
	return r.found, nil
}

type reader struct {
	hostname string
	found    Manifests
	// known holds the converted documents of the previous reading, converted those of this one.
	known, converted map[string][]byte
	// path of the file, and what part of it is being read.
	path string
	what object
}

func (r *reader) file(path string) {
	r.path, r.what = path, object{}
	text, err := os.ReadFile(path)
	if err != nil {
		r.problem(err)
		return
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		r.what = object{}
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			r.problem(err)
			return
		}
		r.document(document)
	}
}

func (r *reader) document(document []byte) {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	text, refused := r.toJSON(document)
	if refused != nil {
		// The object may still be identifiable.
		if err := yaml.Unmarshal(document, &head); err != nil {
			r.problem(err)
			return
		}
	} else if err := json.UnmarshalCaseSensitivePreserveInts(text, &head); err != nil {
		r.problem(err)
		return
	}
	if head.Kind == "" && head.APIVersion == "" {
		return
	}
	r.what = object{head.Kind, head.Metadata.Name}
	ours := head.APIVersion == v1.GroupVersion.String() && (head.Kind == kindRing || head.Kind == kindCluster)
	switch {
	case !ours:
		r.ignore("not a kind of " + v1.GroupVersion.String() + " that describes a capture")
	case refused != nil:
		r.problem(refused)
	case head.Kind == kindRing:
		r.ring(text)
	default:
		r.cluster(text)
	}
}

// toJSON refuses a field that is given twice.
func (r *reader) toJSON(document []byte) ([]byte, error) {
	text, ok := r.known[string(document)]
	if !ok {
		var err error
		if text, err = yaml.YAMLToJSONStrict(document); err != nil {
			return nil, err
		}
	}
	r.converted[string(document)] = text
	return text, nil
}

func (r *reader) ring(text []byte) {
	var ring v1.CaptureRing
	if err := errors.Join(r.decode(text, &ring, &ring.ObjectMeta), withoutPods(ring.Spec.Consumers)); err != nil {
		r.problem(err)
		return
	}
	other, err := r.otherMachine(ring.Spec.NodeSelector)
	if err != nil {
		r.problem(fmt.Errorf("spec.nodeSelector%w", err))
		return
	}
	if other != "" {
		r.ignore(fmt.Sprintf("for a machine with %s, and this is %q", other, r.hostname))
		return
	}
	ring.Spec.Default()
	r.found.Spec.Rings = append(r.found.Spec.Rings, v1.NodeRing{
		Name: ring.Name, UID: string(ring.UID), Version: v1.NodeEntryVersion, Spec: ring.Spec,
	})
	r.found.sources[r.what] = r.path
}

// otherMachine returns the hostname requirement of the selector, if this machine has another hostname.
func (r *reader) otherMachine(nodes *v1.NodeSelector) (string, error) {
	selector, err := nodes.AsSelector()
	if err != nil {
		return "", err
	}
	requirements, _ := selector.Requirements()
	for _, must := range requirements {
		if must.Key() == hostnameLabel && !must.Matches(labels.Set{hostnameLabel: r.hostname}) {
			return must.String(), nil
		}
	}
	return "", nil
}

func (r *reader) cluster(text []byte) {
	var cluster v1.Cluster
	if err := errors.Join(r.decode(text, &cluster, &cluster.ObjectMeta), withoutPods(cluster.Spec.Consumers)); err != nil {
		r.problem(err)
		return
	}
	cluster.Spec.Default()
	r.found.Spec.Clusters = append(r.found.Spec.Clusters, v1.NodeCluster{Name: cluster.Name, UID: string(cluster.UID), Spec: cluster.Spec})
	r.found.sources[r.what] = r.path
}

// withoutPods refuses settings that concern pods. It ignores namespaces, because a manifest may also be for a
// cluster: only the users in --uids may have queues.
func withoutPods(consumers *v1.Consumers) error {
	switch {
	case consumers == nil:
		return nil
	case consumers.InjectLibpcap:
		return errors.New("spec.consumers.injectLibpcap: a machine without Kubernetes has no pods: leave it out")
	}
	return nil
}

// validName is the same rule as in the CRD.
var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,53}[a-z0-9])?$`)

// decode is strict. It reports a misspelt field by name, and does not ignore it.
func (r *reader) decode(text []byte, into any, metadata *metav1.ObjectMeta) error {
	misspelt, err := json.UnmarshalStrict(text, into)
	if err := errors.Join(append(misspelt, ofAnotherKind(err))...); err != nil {
		return err
	}
	if !validName.MatchString(metadata.Name) {
		return fmt.Errorf("metadata.name %q: must be at most 55 characters of a-z, 0-9 and '-'", metadata.Name)
	}
	if file, taken := r.found.sources[r.what]; taken {
		return fmt.Errorf("metadata.name %q: %s has a %s of that name already: rename one", metadata.Name, file, r.what.kind)
	}
	return nil
}

// ofAnotherKind says as in a manifest, not as in Go, that a field has a number, for example, where it needs a string.
func ofAnotherKind(err error) error {
	var mismatch *gojson.UnmarshalTypeError
	if !errors.As(err, &mismatch) {
		return err
	}
	needs := map[reflect.Kind]string{
		reflect.String: "a string", reflect.Bool: "true or false", reflect.Slice: "a list", reflect.Struct: "an object", reflect.Map: "an object",
	}[mismatch.Type.Kind()]
	if needs == "" {
		needs = "a number"
	}
	has := strings.Replace(mismatch.Value, "array", "list", 1)
	return fmt.Errorf("%s: needs %s, and has a value of the kind %s", mismatch.Field, needs, has)
}

func (r *reader) where() string {
	if r.what.kind == "" {
		return r.path
	}
	return fmt.Sprintf("%s: %s %s", r.path, r.what.kind, r.what.name)
}

func (r *reader) problem(err error) {
	r.found.Problems = append(r.found.Problems, fmt.Errorf("%s: %w", r.where(), err))
	r.found.refused = append(r.found.refused, refusal{r.path, r.what})
}

func (r *reader) ignore(why string) {
	r.found.Ignored = append(r.found.Ignored, r.where()+": "+why)
}
