// SPDX-License-Identifier: Apache-2.0

package status

import (
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
