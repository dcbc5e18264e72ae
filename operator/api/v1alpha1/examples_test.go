// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/ringcap/ringcap/operator/api/rules"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/controllers/podcapture"
	"github.com/ringcap/ringcap/operator/plan"
	"github.com/ringcap/ringcap/operator/testenv"
)

// onPage finds the manifests that a page of the documentation shows in whole.
var onPage = regexp.MustCompile("(?sm)^```yaml\n(apiVersion: ringcap.io/.*?)^```$")

// TestExamples: the API server takes each of examples/ as it is, and what pages show in whole; the operator accepts them, and no rule
// in them is idle.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "examples", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range []string{"README.md", "docs/migrating.md"} {
		files = append(files, filepath.Join(testenv.Root(), name))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			if filepath.Ext(file) == ".md" {
				found := onPage.FindSubmatch(text)
				require.NotNil(t, found, "no manifests")
				text = found[1]
			}
			in := plan.Input{Nodes: []plan.Node{{Name: "node"}}}
			documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
			for {
				document, err := documents.Read()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				apply(t, document, &in)
			}
			made := plan.Make(in)
			for name, verdict := range made.Rings {
				require.Equal(t, v1alpha1.ReasonAccepted, verdict.Reason, "%s: %s", name, verdict.Message)
			}
			for name, verdict := range made.Clusters {
				if verdict.Reason != v1alpha1.ReasonRingNotFound { // another file's
					require.Equal(t, v1alpha1.ReasonAccepted, verdict.Reason, "%s: %s", name, verdict.Message)
				}
			}
			for i := range in.Rings {
				if in.Rings[i].Labels[v1alpha1.LabelPodCaptureNamespace] != "" {
					require.Contains(t, string(text), " "+v1alpha1.ResourcePrefix+in.Rings[i].Name+": ", "its consumer has the resource")
					require.Contains(t, string(text), " rc-"+in.Rings[i].Name+"\n")
				}
				require.Zero(t, rules.Advise(in.Rings[i].Spec.Filter))
			}
		})
	}
}

// apply creates a document's object where it is ours, and adds it to the plan's input as the API server has it.
func apply(t *testing.T, document []byte, in *plan.Input) {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t, sigsyaml.Unmarshal(document, &object.Object))
	if object.GetAPIVersion() != v1alpha1.GroupVersion.String() {
		return
	}
	c := env.Client(t)
	if object.GetNamespace() != "" {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.GetNamespace()}}
		require.NoError(t, client.IgnoreAlreadyExists(c.Create(t.Context(), namespace)))
	}
	require.NoError(t, c.Create(t.Context(), object))
	t.Cleanup(func() { require.NoError(t, c.Delete(context.Background(), object)) })
	served, err := object.MarshalJSON()
	require.NoError(t, err)
	switch object.GetKind() {
	case "CaptureRing":
		var ring v1alpha1.CaptureRing
		require.NoError(t, sigsyaml.UnmarshalStrict(served, &ring))
		in.Rings = append(in.Rings, ring)
	case "Cluster":
		var cluster v1alpha1.Cluster
		require.NoError(t, sigsyaml.UnmarshalStrict(served, &cluster))
		in.Clusters = append(in.Clusters, cluster)
	case "PodCapture":
		var capture v1alpha1.PodCapture
		require.NoError(t, sigsyaml.UnmarshalStrict(served, &capture))
		in.Rings = append(in.Rings, *podcapture.Ring(&capture, plan.RingName(capture.Namespace, 0), 64<<20))
	default:
		require.Fail(t, "an example is a "+object.GetKind())
	}
}
