// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
)

// TestARefusalNamesNodesToAdministratorsOnly: users of a namespace read what is refused of a PodCapture word by word.
func TestARefusalNamesNodesToAdministratorsOnly(t *testing.T) {
	refused := plan.Verdict{Reason: v1alpha1.ReasonInvalidFilter, Message: "spec.filter.bpf", Nodes: []string{"n1", "n2"}}
	ring := &v1alpha1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: "mirror"}}
	require.Equal(t, "spec.filter.bpf; until then, n1, n2 keep what was accepted last", (&subject{meta: ring, verdict: refused}).accepted().message)
	ring.Name, ring.Labels = plan.RingName("shop", 0), map[string]string{v1alpha1.LabelPodCaptureNamespace: "shop"}
	require.Equal(t, "spec.filter.bpf; until then, 2 nodes keep what was accepted last", (&subject{meta: ring, verdict: refused}).accepted().message)
}

// TestNoNameIsCut: a message that is too long ends after a whole word, wherever the limit is in it.
func TestNoNameIsCut(t *testing.T) {
	require.Equal(t, "waiting for n1", shorten("waiting for n1"))
	for length := range 40 {
		long := strings.Repeat("x", 2020+length) + " node-1.example, node-2.example: it is being removed"
		short := shorten(long)
		require.LessOrEqual(t, len(short), 2048+len("..."))
		if short == long {
			continue
		}
		left, cut := strings.CutSuffix(short, "...")
		require.True(t, cut)
		require.True(t, strings.HasPrefix(long, left+" ") || left == "", short)
	}
}
