// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Policy sets which nodes' modules are upgraded.
type Policy string

// The policies. The agents' loaders use the same names.
const (
	Never    Policy = "Never"
	WhenFree Policy = "WhenFree"
	Evict    Policy = "Evict"
)

// tryAgainAfter is the minimum age of an agent's pod for a replacement: its loader already tried when the pod started.
const tryAgainAfter = 2 * time.Minute

// step is the upgrade of one node: the agent's pod is replaced so that its loader loads the module, and the holders are evicted.
type step struct {
	node, available string
	agent           corev1.Pod
	evict           []types.NamespacedName
}

// choose returns the upgrades to start now, by node name. A node without a ready agent counts as unavailable, for any reason.
func choose(captures []v1alpha1.NodeCapture, agents []corev1.Pod, policy Policy, maxUnavailable int, now time.Time) []step {
	byNode := map[string]corev1.Pod{}
	unavailable := 0
	for _, agent := range agents {
		byNode[agent.Spec.NodeName] = agent
		if !ready(agent) {
			unavailable++
		}
	}
	captures = slices.SortedFunc(slices.Values(captures), func(a, b v1alpha1.NodeCapture) int { return cmp.Compare(a.Name, b.Name) })
	var steps []step
	for i := range captures {
		agent, there := byNode[captures[i].Name]
		available := captures[i].Status.ModuleAvailable
		if available == "" || !there || !ready(agent) || now.Sub(agent.CreationTimestamp.Time) < tryAgainAfter {
			continue
		}
		holders, known := holdersOf(&captures[i])
		if !known || inLine(&captures[i]) || (len(holders) > 0 && policy != Evict) {
			continue
		}
		if unavailable++; unavailable > maxUnavailable {
			break
		}
		steps = append(steps, step{node: captures[i].Name, available: available, agent: agent, evict: holders})
	}
	return steps
}

// inLine reports whether a ring is between interfaces of the node. Without the module they carry nothing: the loader keeps it.
func inLine(capture *v1alpha1.NodeCapture) bool {
	return slices.ContainsFunc(capture.Status.Rings, func(r v1alpha1.NodeRingStatus) bool { return r.Inline != nil })
}

// ready reports whether the pod is ready and not being deleted.
func ready(pod corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
