// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// TestNodesShareRings: equal rings are one, others stay what they are, and those that are gone are not kept for ever.
func TestNodesShareRings(t *testing.T) {
	s := &sharedRings{rings: map[string]v1alpha1.NodeRing{}}
	node := func(uid, bpf string) *v1alpha1.NodeCapture {
		ring := v1alpha1.NodeRing{Name: "mirror", UID: uid, Spec: v1alpha1.CaptureRingSpec{Filter: &v1alpha1.Filter{BPF: bpf}}}
		sent := &v1alpha1.NodeCapture{Spec: v1alpha1.NodeCaptureSpec{Rings: []v1alpha1.NodeRing{ring}}}
		want := sent.DeepCopy()
		sent.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "operator"}}
		got, err := s.share(sent)
		require.NoError(t, err)
		require.Equal(t, want, got)
		return sent
	}
	filter := func(n *v1alpha1.NodeCapture) *v1alpha1.Filter { return n.Spec.Rings[0].Spec.Filter }

	first, second, edited, third, other := node("1", "tcp"), node("1", "tcp"), node("1", "udp"), node("1", "udp"), node("2", "udp")
	require.Same(t, filter(first), filter(second))
	require.NotSame(t, filter(first), filter(edited))
	require.Same(t, filter(edited), filter(third))
	require.NotSame(t, filter(third), filter(other))

	for i := range 2 * maxShared {
		node(fmt.Sprint("ring-", i), "tcp")
	}
	require.LessOrEqual(t, len(s.rings), maxShared)

	tombstone := "not a NodeCapture"
	got, err := s.share(tombstone)
	require.NoError(t, err)
	require.Equal(t, tombstone, got)
}
