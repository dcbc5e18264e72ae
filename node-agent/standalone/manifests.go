// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Manifests is what a folder asks of this machine.
type Manifests struct {
	Spec v1.NodeCaptureSpec
	// Problems are documents that could not be used, each with its file and what is wrong.
	Problems []error
	// Ignored are documents of other kinds, and rings for other machines.
	Ignored []string
}

// hostnameLabel is the one label that a machine without Kubernetes has. Others in a nodeSelector are taken as true.
const hostnameLabel = "kubernetes.io/hostname"

// ReadManifests reads the *.yaml, *.yml and *.json files of a folder in the order of their names. A document that
// cannot be used does not keep the others from being used; the error is for the folder itself.
func ReadManifests(folder, hostname string) (Manifests, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return Manifests{}, fmt.Errorf("read the manifests: %w", err)
	}
	r := reader{hostname: hostname}
	for _, entry := range entries {
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			continue
		}
		r.file(filepath.Join(folder, entry.Name()))
	}
	return r.found, nil
}

type reader struct {
	hostname string
	found    Manifests
}

func (r *reader) file(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		r.problem(path, err)
		return
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			r.problem(path, err)
			return
		}
		r.document(path, document)
	}
}

func (r *reader) document(path string, document []byte) {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal(document, &head); err != nil {
		r.problem(path, err)
		return
	}
	if head.Kind == "" && head.APIVersion == "" {
		return
	}
	what := fmt.Sprintf("%s: %s %s", path, head.Kind, head.Metadata.Name)
	switch {
	case head.APIVersion == v1.GroupVersion.String() && head.Kind == "CaptureRing":
		r.ring(what, document)
	case head.APIVersion == v1.GroupVersion.String() && head.Kind == "Cluster":
		r.cluster(what, document)
	default:
		r.found.Ignored = append(r.found.Ignored, what+": not a kind of "+v1.GroupVersion.String()+" that says what to capture")
	}
}

func (r *reader) ring(what string, document []byte) {
	var ring v1.CaptureRing
	if err := errors.Join(decode(document, &ring, &ring.ObjectMeta), withoutPods(ring.Spec.Consumers)); err != nil {
		r.problem(what, err)
		return
	}
	if host, ok := ring.Spec.NodeSelector[hostnameLabel]; ok && host != r.hostname {
		r.found.Ignored = append(r.found.Ignored, fmt.Sprintf("%s: for the machine %q, and this is %q", what, host, r.hostname))
		return
	}
	ring.Spec.Default()
	r.found.Spec.Rings = append(r.found.Spec.Rings, v1.NodeRing{Name: ring.Name, UID: string(ring.UID), Spec: ring.Spec})
}

func (r *reader) cluster(what string, document []byte) {
	var cluster v1.Cluster
	if err := errors.Join(decode(document, &cluster, &cluster.ObjectMeta), withoutPods(cluster.Spec.Consumers)); err != nil {
		r.problem(what, err)
		return
	}
	cluster.Spec.Default()
	r.found.Spec.Clusters = append(r.found.Spec.Clusters, v1.NodeCluster{Name: cluster.Name, UID: string(cluster.UID), Spec: cluster.Spec})
}

// withoutPods refuses what is about pods: ignoring it could let more consumers in than the manifest means.
func withoutPods(consumers *v1.Consumers) error {
	switch {
	case consumers == nil:
		return nil
	case len(consumers.Namespaces) > 0:
		return errors.New("spec.consumers.namespaces: a machine without Kubernetes has no pods: leave it out, and name the users by --uids")
	case consumers.InjectLibpcap:
		return errors.New("spec.consumers.injectLibpcap: a machine without Kubernetes has no pods: leave it out")
	}
	return nil
}

// validName is the rule that the CRD has, too.
var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,53}[a-z0-9])?$`)

// decode is strict: a misspelt field is named, not ignored.
func decode(document []byte, into any, metadata *metav1.ObjectMeta) error {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return err
	}
	misspelt, err := json.UnmarshalStrict(text, into)
	if err := errors.Join(append(misspelt, err)...); err != nil {
		return err
	}
	if !validName.MatchString(metadata.Name) {
		return fmt.Errorf("metadata.name %q: must be at most 55 characters of a-z, 0-9 and '-'", metadata.Name)
	}
	return nil
}

func (r *reader) problem(where string, err error) {
	r.found.Problems = append(r.found.Problems, fmt.Errorf("%s: %w", where, err))
}
