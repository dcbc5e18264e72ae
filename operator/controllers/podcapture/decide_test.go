// SPDX-License-Identifier: Apache-2.0

package podcapture

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
)

var limits = Limits{PerNamespace: 4, Memory: 64 << 20}

// old is a PodCapture that was made so many seconds ago, as the API server has it.
func old(namespace, name string, seconds int) v1alpha1.PodCapture {
	return v1alpha1.PodCapture{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name),
			CreationTimestamp: metav1.NewTime(time.Unix(int64(1000000-seconds), 0)),
		},
		Spec: v1alpha1.PodCaptureSpec{Queues: 1, Slots: 4096, SnapLength: 1536},
	}
}

// TestRingNames: they are names that a CaptureRing may have, and of one namespace each.
func TestRingNames(t *testing.T) {
	long := strings.Repeat("n", 62)
	seen := map[string]string{}
	for _, namespace := range []string{"a", "shop", "shop-0", "a-b-c-d-e-f-g-h-i-j-k-l", long + "1", long + "2", strings.Repeat("n", 19) + "-x"} {
		for number := range 100 {
			name := plan.RingName(namespace, number)
			assert.Empty(t, seen[name], namespace)
			assert.LessOrEqual(t, len(name), 45)
			assert.Regexp(t, `^pods-[a-z0-9]([-a-z0-9]*[a-z0-9])?-[0-9a-f]{10}-[0-9]+$`, name)
			assert.NotContains(t, name, "--")
			seen[name] = namespace
		}
	}
}

// TestHalfOfTheRingsAreLeft to those who may write CaptureRings, whatever all namespaces together have.
func TestHalfOfTheRingsAreLeft(t *testing.T) {
	var captures []v1alpha1.PodCapture
	for i := range maxRings + 2 {
		captures = append(captures, old(fmt.Sprintf("n%d", i/4), fmt.Sprintf("p%d", i%4), i))
	}
	served := 0
	for _, d := range decide(captures, rings{}, limits) {
		if d.want != nil {
			served++
			continue
		}
		assert.Equal(t, v1alpha1.ReasonLimitExceeded, d.refused.reason)
		assert.Contains(t, []string{"n0/p0", "n0/p1"}, d.capture.Namespace+"/"+d.capture.Name, "the newest")
	}
	assert.Equal(t, v1alpha1.MaxRings/2, served)
}

// TestSwitchedOff: no PodCapture has a ring then; and one that is being deleted has none.
func TestSwitchedOff(t *testing.T) {
	d := decide([]v1alpha1.PodCapture{old("a", "p", 1)}, rings{}, Limits{Memory: 1 << 30})
	require.Len(t, d, 1)
	assert.Equal(t, v1alpha1.ReasonDisabled, d[0].refused.reason)
	assert.Empty(t, d[0].ring)
	gone := old("a", "p", 1)
	gone.DeletionTimestamp = &metav1.Time{}
	assert.Empty(t, decide([]v1alpha1.PodCapture{gone}, rings{}, limits))
}

// TestLongExpression: plans for all rings of the cluster wait while an expression is compiled, and some take very long.
func TestLongExpression(t *testing.T) {
	capture := old("a", "p", 1)
	capture.Spec.Filter = &v1alpha1.Filter{BPF: "port 0" + strings.Repeat("||1", 168)}
	d := decide([]v1alpha1.PodCapture{capture}, rings{}, limits)
	require.Nil(t, d[0].refused)
	capture.Spec.Filter.BPF += "||1"
	d = decide([]v1alpha1.PodCapture{capture}, rings{}, limits)
	require.NotNil(t, d[0].refused)
	assert.Equal(t, v1alpha1.ReasonLimitExceeded, d[0].refused.reason)
	assert.Contains(t, d[0].refused.message, "spec.filter.bpf has 513 bytes, and a PodCapture's may have 512")
	assert.Empty(t, d[0].ring)
}

// TestTrim: a PodCapture in the cache is small. Of one that is too large, the cache has just what is needed to refuse it.
func TestTrim(t *testing.T) {
	large := strings.Repeat("x", 1<<18)
	for _, selector := range []string{"web", large} {
		capture := old("a", "p", 1)
		capture.Generation, capture.ResourceVersion = 2, "3"
		capture.Spec.PodSelector.MatchLabels = map[string]string{"app": selector}
		want := capture.DeepCopy()
		capture.Annotations, capture.Finalizers = map[string]string{"note": large, specBytes: "7"}, []string{large}
		trimmed, err := Trim(&capture)
		require.NoError(t, err)
		trimmed, err = Trim(trimmed)
		require.NoError(t, err)
		text, err := json.Marshal(trimmed)
		require.NoError(t, err)
		require.Less(t, len(text), 8<<10)
		d := decide([]v1alpha1.PodCapture{*trimmed.(*v1alpha1.PodCapture)}, rings{}, limits)
		if selector == "web" {
			require.Equal(t, want, trimmed)
			require.Nil(t, d[0].refused)
			continue
		}
		require.NotNil(t, d[0].refused)
		require.Equal(t, v1alpha1.ReasonLimitExceeded, d[0].refused.reason)
		require.Regexp(t, "spec takes 262[0-9]{3} bytes in each node's NodeCapture, and a PodCapture may take 4096", d[0].refused.message)
	}
}

// TestBadSelector: the API server takes it, and every node would refuse it.
func TestBadSelector(t *testing.T) {
	capture := old("a", "p", 1)
	capture.Spec.PodSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Has"}}
	d := decide([]v1alpha1.PodCapture{capture}, rings{}, limits)
	require.NotNil(t, d[0].refused)
	assert.Contains(t, d[0].refused.message, "spec.podSelector: ")
	assert.Contains(t, d[0].refused.message, "Has")
}

// TestWhoseARingIs: the operator deletes no ring that it did not make, for example an administrator's copy of one.
func TestWhoseARingIs(t *testing.T) {
	capture := old("shop", "p", 1)
	for name, want := range map[string]string{
		plan.RingName("shop", 0): "shop", plan.RingName("shop", 12): "shop", "copy-of-" + plan.RingName("shop", 0): "", plan.RingName("shop", 0) + "-copy": "",
		plan.RingName("other", 0): "", plan.RingName("shop", 0) + "0": "", "mirror": "", "pods-shop-1": "",
	} {
		assert.Equal(t, want, plan.NamespaceOf(Ring(&capture, name, limits.Memory)), name)
	}
	assert.Empty(t, plan.NamespaceOf(&v1alpha1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: plan.RingName("shop", 0)}}))
}

// TestWhatIsNotTold: who has a namespace does not read what other rings a node has. What is of its own ring is told as it is.
func TestWhatIsNotTold(t *testing.T) {
	capture := old("shop", "p", 1)
	d := decision{capture: &capture, ring: plan.RingName("shop", 0)}
	ring := Ring(&capture, d.ring, limits.Memory)
	for reason, told := range map[string]bool{
		v1alpha1.ReasonNodeMemoryInsufficient: false, v1alpha1.ReasonEngineError: false, v1alpha1.ReasonPodNotTapped: true,
		v1alpha1.ReasonRolloutPaused: false,
	} {
		kind := v1alpha1.ConditionReady
		if reason == v1alpha1.ReasonRolloutPaused {
			kind = v1alpha1.ConditionRolledOut
		}
		ring.Status.Conditions = []metav1.Condition{{
			Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: "those that are there take pods-bank-1234567890-0 64 MiB",
		}}
		said := d.condition(kind, ring)
		assert.Equal(t, reason, said.Reason)
		assert.Equal(t, told, strings.Contains(said.Message, "bank"), reason)
		assert.NotEmpty(t, said.Message)
	}
}

// TestWhoComesAgainWaits: a PodCapture that is created again waits until the ring of its predecessor is gone, and gets its resource;
// others get the next one.
func TestWhoComesAgainWaits(t *testing.T) {
	before := old("a", "p", 9)
	before.UID = "before"
	ring := Ring(&before, plan.RingName("a", 0), limits.Memory)
	there := rings{ring.Name: ring}
	d := decide([]v1alpha1.PodCapture{old("a", "p", 1), old("a", "q", 2)}, there, limits)
	require.Len(t, d, 2)
	assert.Equal(t, plan.RingName("a", 1), d[0].ring)
	assert.Equal(t, v1alpha1.ReasonPending, d[1].refused.reason)
	assert.Contains(t, d[1].refused.message, ring.Name)

	// The one that it had last is taken before one with a smaller number.
	last := old("a", "p", 1)
	last.Status.Resource = v1alpha1.ResourcePrefix + plan.RingName("a", 2)
	assert.Equal(t, plan.RingName("a", 2), decide([]v1alpha1.PodCapture{last}, rings{}, limits)[0].ring)
	last.Status.Resource = v1alpha1.ResourcePrefix + plan.RingName("b", 2)
	assert.Equal(t, plan.RingName("a", 0), decide([]v1alpha1.PodCapture{last}, rings{}, limits)[0].ring)
}
