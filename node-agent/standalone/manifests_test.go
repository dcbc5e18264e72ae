// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

func read(t *testing.T, files map[string]string) Manifests {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
	found, err := (&Folder{Path: folder, Hostname: "box1"}).Read()
	require.NoError(t, err)
	return found
}

const ring = "apiVersion: ringcap.io/v1alpha1\nkind: CaptureRing\nmetadata: {name: NAME}\nspec: {interfaces: [{name: eth0}]}\n"

func onNodes(name, selector string) string {
	return strings.Replace(named(name), "spec: {", "spec: {nodeSelector: "+selector+", ", 1)
}

func named(name string) string { return strings.Replace(ring, "NAME", name, 1) }

// The project's own examples are read as they are, with the API's defaults. Only what is about pods is refused.
func TestExamples(t *testing.T) {
	found, err := (&Folder{Path: "../../examples", Hostname: "box1"}).Read()
	require.NoError(t, err)
	for _, problem := range found.Problems {
		assert.ErrorContains(t, problem, "a machine without Kubernetes has no pods")
	}
	require.NotEmpty(t, found.Spec.Rings)
	require.NotEmpty(t, found.Spec.Clusters)
	assert.NotEmpty(t, found.Ignored)
	assert.Equal(t, v1.EngineAuto, found.Spec.Rings[0].Spec.Engine)
	assert.EqualValues(t, v1.NodeEntryVersion, found.Spec.Rings[0].Version, "its writer could know all fields")
	assert.Equal(t, v1.OffloadsDisable, found.Spec.Rings[0].Spec.NIC.Offloads)
	assert.EqualValues(t, v1.DefaultSlots, found.Spec.Clusters[0].Spec.Slots)
	assert.Equal(t, v1.DefaultMemoryLimit, found.Spec.Clusters[0].Spec.MemoryLimit.String())
}

func TestReadManifests(t *testing.T) {
	for name, test := range map[string]struct {
		files    map[string]string
		rings    []string
		problems []string
		ignored  []string
	}{
		"empty folder": {},
		"what is about pods": {
			files: map[string]string{"a.yaml": strings.Replace(named("a"), "spec: {", "spec: {consumers: {namespaces: [sensors]}, ", 1) +
				"---\n" + strings.Replace(named("b"), "spec: {", "spec: {consumers: {injectLibpcap: true}, ", 1)},
			rings: []string{"a"}, problems: []string{"spec.consumers.injectLibpcap"},
		},
		"in the order of names": {
			files: map[string]string{"b.yml": named("b"), "a.yaml": named("a2") + "---\n" + named("a1")},
			rings: []string{"a2", "a1", "b"},
		},
		"JSON": {
			files: map[string]string{"a.json": `{"apiVersion":"ringcap.io/v1alpha1","kind":"CaptureRing","metadata":{"name":"j"},"spec":{"interfaces":[{"name":"eth0"}]}}`},
			rings: []string{"j"},
		},
		"other files":   {files: map[string]string{"README.md": "hello", ".a.yaml.swp": "x"}},
		"only comments": {files: map[string]string{"a.yaml": "# nothing\n---\n"}},
		"other kinds":   {files: map[string]string{"a.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"}, ignored: []string{"Pod p"}},
		"another version": {
			files:   map[string]string{"a.yaml": strings.Replace(named("a"), "v1alpha1", "v9", 1)},
			ignored: []string{"not a kind of ringcap.io/v1alpha1"},
		},
		"a bad one leaves the others": {
			files:    map[string]string{"a.yaml": named("ok") + "---\n" + named("Not_OK") + "---\n" + named("ok2")},
			rings:    []string{"ok", "ok2"},
			problems: []string{`metadata.name "Not_OK"`},
		},
		"a misspelt field": {
			files:    map[string]string{"a.yaml": strings.Replace(named("a"), "spec: {", "spec: {engin: EBPF, ", 1)},
			problems: []string{`unknown field "spec.engin"`},
		},
		"a field twice": {
			files:    map[string]string{"a.yaml": named("a") + "spec: {}\n"},
			problems: []string{`"spec" already set`},
		},
		"a wrong type": {
			files:    map[string]string{"a.yaml": strings.Replace(named("a"), "spec: {", "spec: {snapLength: long, ", 1)},
			problems: []string{"CaptureRing a: spec.snapLength: needs a number, and has a value of the kind string"},
		},
		"a number without its unit": {
			files:    map[string]string{"a.yaml": strings.Replace(named("a"), "spec: {", "spec: {inline: {hungAfter: 250}, ", 1)},
			problems: []string{"CaptureRing a: spec.inline.hungAfter: needs a string, and has a value of the kind number"},
		},
		"a list in the place of an object": {
			files:    map[string]string{"a.yaml": strings.Replace(named("a"), "spec: {", "spec: {inline: {pairs: [[a, b]]}, ", 1)},
			problems: []string{"CaptureRing a: spec.inline.pairs: needs an object, and has a value of the kind list"},
		},
		"no YAML": {files: map[string]string{"a.yaml": "{{{"}, problems: []string{"a.yaml"}},
		"for this machine": {
			files: map[string]string{"a.yaml": onNodes("a", "{matchLabels: {kubernetes.io/hostname: box1, role: sensor}}")},
			rings: []string{"a"},
		},
		"for another machine": {
			files:   map[string]string{"a.yaml": onNodes("a", "{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [box2, box3]}]}")},
			ignored: []string{`for a machine with kubernetes.io/hostname in (box2,box3), and this is "box1"`},
		},
		"for another machine, as earlier releases have it": {
			files:   map[string]string{"a.yaml": onNodes("a", "{kubernetes.io/hostname: box2}")},
			ignored: []string{`for a machine with kubernetes.io/hostname=box2, and this is "box1"`},
		},
		"for no machine": {
			files:    map[string]string{"a.yaml": onNodes("a", "{}")},
			problems: []string{"spec.nodeSelector is {}, which selects no node: leave it out for all nodes"},
		},
		"for what nobody knows": {
			files:    map[string]string{"a.yaml": onNodes("a", "{matchLabels: {role: sensor}, matchNames: [box1]}")},
			problems: []string{"spec.nodeSelector.matchNames: there is no such field"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := read(t, test.files)
			var rings []string
			for _, r := range found.Spec.Rings {
				rings = append(rings, r.Name)
			}
			assert.Equal(t, test.rings, rings)
			require.Len(t, found.Problems, len(test.problems), "%v", found.Problems)
			for i, want := range test.problems {
				assert.ErrorContains(t, found.Problems[i], want)
			}
			require.Len(t, found.Ignored, len(test.ignored))
			for i, want := range test.ignored {
				assert.Contains(t, found.Ignored[i], want)
			}
		})
	}
}

func TestAFolderThatIsNotThere(t *testing.T) {
	_, err := (&Folder{Path: filepath.Join(t.TempDir(), "none"), Hostname: "box1"}).Read()
	assert.ErrorContains(t, err, "read the manifests")
}

// A change that cannot be used is reported and leaves what was there before it. What is taken away goes.
func TestTheLastGoodManifestsStay(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
	var last Manifests
	again := func() (rings []string, problems string) {
		t.Helper()
		found, err := (&Folder{Path: folder, Hostname: "box1"}).Read()
		require.NoError(t, err)
		found.keep(last)
		last = found
		for _, r := range found.Spec.Rings {
			rings = append(rings, r.Name+" "+r.Spec.Interfaces[0].Name)
		}
		if err := errors.Join(found.Problems...); err != nil {
			problems = err.Error()
		}
		return rings, problems
	}
	cluster := "apiVersion: ringcap.io/v1alpha1\nkind: Cluster\nmetadata: {name: c}\nspec: {rings: [a], queues: 2}\n"
	write("1.yaml", named("a")+"---\n"+named("b")+"---\n"+cluster)
	write("2.yaml", named("d"))
	rings, problems := again()
	assert.Equal(t, []string{"a eth0", "b eth0", "d eth0"}, rings)
	assert.Empty(t, problems)

	// One document: the other two are as they are in the file.
	write("1.yaml", strings.Replace(named("a"), "eth0", "eth7", 1)+"---\n"+strings.Replace(named("b"), "name: eth0", "nam: eth9", 1)+"---\n"+cluster)
	for range 2 {
		rings, problems = again()
		assert.Equal(t, []string{"a eth7", "d eth0", "b eth0"}, rings)
		assert.Equal(t, filepath.Join(folder, "1.yaml")+`: CaptureRing b: unknown field "spec.interfaces[0].nam"; until then as before the change: CaptureRing b`, problems)
	}

	// No YAML: all of the file, and not of others.
	write("1.yaml", "{{{")
	require.NoError(t, os.Remove(filepath.Join(folder, "2.yaml")))
	rings, problems = again()
	assert.Equal(t, []string{"a eth7", "b eth0"}, rings)
	assert.Contains(t, problems, "until then as before the change: CaptureRing a, CaptureRing b, Cluster c")
	assert.Len(t, last.Spec.Clusters, 1)
	assert.Equal(t, filepath.Join(folder, "1.yaml"), last.File(kindCluster, "c"))

	write("1.yaml", named("b"))
	rings, problems = again()
	assert.Equal(t, []string{"b eth0"}, rings)
	assert.Empty(t, problems)

	// If two objects have the same name, the first stays, whatever the order of files.
	write("2.yaml", strings.Replace(named("b"), "eth0", "eth8", 1))
	rings, problems = again()
	assert.Equal(t, []string{"b eth0"}, rings)
	assert.Contains(t, problems, "2.yaml: CaptureRing b: metadata.name \"b\": "+filepath.Join(folder, "1.yaml")+" has a CaptureRing of that name already")
}
