// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringcap/ringcap/cli/fleet"
	"github.com/ringcap/ringcap/cli/tree"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// TemporaryLabel is on the CaptureRings, Clusters, PodCaptures and pods that `ringcap capture` creates; its value is the
// capture's ID.
const TemporaryLabel = "ringcap.io/temporary-capture"

// moduleFixes are the fixes for a module that is not ready, by the reason of ModuleReady.
var moduleFixes = map[string]string{
	v1.ReasonNoPrebuiltModule:    "use an agent image that has the module for this kernel (make modules images), or set agent.module.mode to Preloaded and load it yourself",
	v1.ReasonInvalidModuleFormat: "the module was built for another kernel: build it against this kernel's headers",
	v1.ReasonHeadersMissing:      "install the kernel's headers on the node, by the package that the message names",
	v1.ReasonBuildFailed:         "see the log of the container build-module in the agent's pod on the node",
	v1.ReasonKeyRejected:         "the kernel takes signed modules only: sign ringcap.ko with a key that the machine's firmware or MOK list trusts",
	v1.ReasonLockdown:            "the kernel is locked down: sign ringcap.ko with a trusted key, or go on with eBPF",
	v1.ReasonModulesUnsupported:  "this kernel loads no modules: eBPF is the engine for it",
	v1.ReasonSymbolMissing:       "the kernel lacks something that the module needs: see the kernel's log, and docs/kernels.md for what is supported",
	v1.ReasonIncompatible:        "another version of the module is loaded: drain the node's consumers and reboot it, or unload the module",
	v1.ReasonLoadFailed:          "see the log of the agent's container load-module and the kernel's log on the node",
}

// engines reports nodes that use the fallback, in one finding for each reason.
func engines(f Facts) []Finding {
	type group struct {
		message string
		nodes   []string
	}
	groups := map[string]*group{}
	for i := range f.Nodes {
		node := &f.Nodes[i]
		c := meta.FindStatusCondition(node.Status.Conditions, v1.ConditionModuleReady)
		if c == nil || c.Status == metav1.ConditionTrue || c.Reason == v1.ReasonDisabled || f.Silence(node) != "" {
			continue
		}
		g := groups[c.Reason]
		if g == nil {
			g = &group{message: c.Message}
			groups[c.Reason] = g
		}
		g.nodes = append(g.nodes, node.Name)
	}
	var found []Finding
	for _, reason := range slices.Sorted(maps.Keys(groups)) {
		g := groups[reason]
		found = append(found, Finding{Note, some("node", g.nodes), fmt.Sprintf("no kernel module, so engine Auto means eBPF: %s: %s", reason, g.message), moduleFixes[reason]})
	}
	return found
}

// some lists the first few of many.
func some(kind string, names []string) string {
	const maxNames = 3
	if len(names) == 1 {
		return kind + " " + names[0]
	}
	if len(names) <= maxNames {
		return kind + "s " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("%ss %s and %d more", kind, strings.Join(names[:maxNames], ", "), len(names)-maxNames)
}

func objects(f Facts) []Finding {
	var found []Finding
	check := func(what string, conditions []metav1.Condition, rings ...string) {
		if c := fleet.Wrong(conditions); c != nil {
			found = append(found, Finding{Error, what, c.Reason + ": " + c.Message, fixOf(c.Reason)})
		} else if len(conditions) == 0 {
			found = append(found, Finding{Error, what, "the operator has not processed it yet", "see that the operator's pod runs"})
		}
		for _, c := range fleet.Advice(conditions) {
			fix := fixOf(c.Reason)
			if c.Reason == v1.ReasonNobodyAllowed {
				fix = admit(f, rings)
			}
			found = append(found, Finding{Warning, what, c.Reason + ": " + c.Message, fix})
		}
	}
	for _, ring := range f.Rings {
		check("CaptureRing "+ring.Name, ring.Status.Conditions, ring.Name)
		found = append(found, truncated(f, &ring)...)
		if ring.Spec.Queues == nil && len(f.Over(&ring)) == 0 {
			found = append(found, Finding{Warning, "CaptureRing " + ring.Name, "feeds nobody: it has no queues, and no Cluster names it",
				"set spec.queues, or make a Cluster with rings: [" + ring.Name + "]"})
		}
	}
	for _, cluster := range f.Clusters {
		check("Cluster "+cluster.Name, cluster.Status.Conditions, cluster.Spec.Rings...)
	}
	return found
}

// truncated reports packets of a ring that are cut because its spec asks for it.
func truncated(f Facts, ring *v1.CaptureRing) []Finding {
	sets, packets := f.Over(ring), int64(0)
	eachSet(f.Snapshot, func(_ string, set *v1.NodeClusterStatus) {
		if all := set.Totals(); slices.Contains(sets, set.Name) {
			packets += all.Truncated
		}
	})
	if ring.Spec.SnapLength == 0 || packets == 0 {
		return nil
	}
	return []Finding{{Note, "CaptureRing " + ring.Name, fmt.Sprintf("%s packets were cut to spec.snapLength, %s bytes", tree.Number(packets), tree.Number(int64(ring.Spec.SnapLength))),
		fmt.Sprintf(`where packets are wanted whole: kubectl patch capturering %s --type=json -p '[{"op":"remove","path":"/spec/snapLength"}]'`, ring.Name)}}
}

// fixOf returns the fix if the reason's message cannot, because it depends on what the user wants.
func fixOf(reason string) string {
	switch reason {
	case v1.ReasonInterfaceNotFound:
		return "label the nodes that have the interface and name that label in spec.nodeSelector.matchLabels, correct spec.interfaces, " +
			"or set whenMissing there to Ignore, which leaves such nodes out"
	case v1.ReasonMemoryLimitExceeded:
		return "raise spec.memoryLimit, or lower slots, snapLength or queues"
	case v1.ReasonNodeMemoryInsufficient:
		return "lower slots, snapLength or queues, delete rings that are not needed, or free memory on that node"
	case v1.ReasonInvalidFilter:
		return "try the expression with: tcpdump -d 'EXPRESSION'"
	case v1.ReasonNoNodes:
		return "kubectl get nodes --show-labels; correct spec.nodeSelector"
	case v1.ReasonPacketsTruncated:
		return "restart consumers that have read since before a change of spec.snapLength; else set spec.nic.offloads to Disable, or spec.snapLength if it is all right"
	case v1.ReasonInvalidNodeSelector:
		return "leave spec.nodeSelector out for all nodes, or write labels in spec.nodeSelector.matchLabels"
	case v1.ReasonQueueInUse:
		return "delete the pods that hold the queues"
	case v1.ReasonNodeTrafficRefused:
		return "capture another interface, use transparentMode 0 or 1 and leave the node's settings alone, or set spec.nodeTraffic to Allow"
	case v1.ReasonNodeCutOff:
		return "use transparentMode 0 or 1, or another interface; a change of its nic, mode or interfaces is tried again"
	case v1.ReasonNodeNotReporting:
		return "see the finding on that node"
	}
	return ""
}

// admit returns the commands with which the rings permit a namespace.
func admit(f Facts, rings []string) string {
	var commands []string
	for i := range f.Rings {
		if slices.Contains(rings, f.Rings[i].Name) {
			commands = append(commands, fleet.Admit(&f.Rings[i], "NAMESPACE"))
		}
	}
	return strings.Join(commands, "; ")
}

// unattended reports queues without a consumer, by set.
func unattended(f Facts) []Finding {
	type count struct {
		all, idle int32
		lost      int64
		nodes     []string
	}
	sets := map[string]*count{}
	eachSet(f.Snapshot, func(node string, set *v1.NodeClusterStatus) {
		if sets[set.Name] == nil {
			sets[set.Name] = &count{}
		}
		c, queues := sets[set.Name], set.Totals()
		c.all += queues.Queues
		if queues.Attached == queues.Queues {
			return
		}
		c.idle += queues.Queues - queues.Attached
		c.lost += dropped(queues, "unattended") - bypassed(set, "unattended")
		c.nodes = append(c.nodes, node)
	})
	var found []Finding
	for _, set := range slices.Sorted(maps.Keys(sets)) {
		if c := sets[set]; c.idle > 0 {
			found = append(found, Finding{Warning, "queues of " + set,
				fmt.Sprintf("%d of %d have no reader (%s); %s packets were lost for that", c.idle, c.all, some("node", c.nodes), tree.Number(c.lost)),
				fmt.Sprintf("run a pod that asks for %s%s: 1 for each queue, or lower spec.queues", v1.ResourcePrefix, set)})
		}
	}
	return found
}

func eachSet(s fleet.Snapshot, visit func(node string, set *v1.NodeClusterStatus)) {
	for i := range s.Nodes {
		if s.Silence(&s.Nodes[i]) != "" {
			continue
		}
		for j := range s.Nodes[i].Status.Clusters {
			visit(s.Nodes[i].Name, &s.Nodes[i].Status.Clusters[j])
		}
	}
}

func dropped(queues v1.QueueTotals, reason string) int64 {
	for _, d := range queues.Dropped {
		if d.Reason == reason {
			return d.Packets
		}
	}
	return 0
}

// bypassed returns how many packets of queues in line left without a consumer at an event. They count as dropped, too.
func bypassed(set *v1.NodeClusterStatus, event string) (packets int64) {
	for i := range set.Queues {
		if in := set.Queues[i].Inline; in != nil {
			packets += dropped(v1.QueueTotals{Dropped: in.Bypassed}, event)
		}
	}
	return packets
}

func pending(f Facts) []Finding {
	var found []Finding
	for _, pod := range f.Pending {
		what := "pod " + pod.Namespace + "/" + pod.Name
		if pod.Spec.NodeName != "" { // it has its queues
			severity, reason := Warning, why(pod)
			if reason == "" || reason == "ContainerCreating" {
				severity = Note
			}
			found = append(found, Finding{severity, what, strings.TrimSuffix("does not run yet on node "+pod.Spec.NodeName+": "+reason, ": "),
				fmt.Sprintf("if it stays so: kubectl describe pod --namespace %s %s", pod.Namespace, pod.Name)})
			continue
		}
		found = append(found, Finding{Warning, what, strings.TrimSpace("waits for " + strings.Join(Wants(pod), ", ") + ": " + why(pod)),
			"a node gives a queue to one pod only: raise spec.queues, lower the replicas, or see that the ring is ready on the node"})
	}
	return found
}

// Wants returns the resources of ringcap that a pod requests.
func Wants(pod corev1.Pod) []string {
	wants := map[string]bool{}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for name := range c.Resources.Limits {
			if strings.HasPrefix(string(name), v1.ResourcePrefix) {
				wants[string(name)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(wants))
}

// lossFixes are the fixes for packets lost for a reason; unattended has its own check.
var lossFixes = map[string]string{
	"full":  "the consumer is slower than the traffic: give it more CPU, raise spec.queues (and consumers) or spec.slots, or filter more in the ring",
	"hung":  "in line: a consumer let packets wait for longer than spec.inline.hungAfter: see its log and its CPU limit",
	"nomem": "the kernel had no memory for them: see the node's memory and the ring's memoryLimit",
}

func loss(f Facts) []Finding {
	type key struct{ set, reason string }
	type sum struct {
		packets int64
		worst   string
		highest int64
	}
	sums := map[key]*sum{}
	eachSet(f.Snapshot, func(node string, set *v1.NodeClusterStatus) {
		for _, d := range set.Totals().Dropped {
			packets := d.Packets - bypassed(set, d.Reason)
			if packets <= 0 || d.Reason == "unattended" {
				continue
			}
			k := key{set.Name, d.Reason}
			if sums[k] == nil {
				sums[k] = &sum{worst: "queues that the node's status does not list"}
			}
			sums[k].packets += packets
		}
		for _, q := range set.Queues {
			for _, d := range q.Dropped {
				if s := sums[key{set.Name, d.Reason}]; s != nil && d.Packets > s.highest {
					s.highest, s.worst = d.Packets, fmt.Sprintf("queue %d on node %s", q.Queue, node)
				}
			}
		}
	})
	var found []Finding
	for _, k := range slices.SortedFunc(maps.Keys(sums), func(a, b key) int { return strings.Compare(a.set+a.reason, b.set+b.reason) }) {
		s := sums[k]
		found = append(found, Finding{Warning, "queues of " + k.set, fmt.Sprintf("lost %s packets: %s; most of them, %s, in %s",
			tree.Number(s.packets), k.reason, tree.Number(s.highest), s.worst), lossFixes[k.reason]})
	}
	return found
}

func orphans(f Facts) []Finding {
	var found []Finding
	check := func(what string, labels map[string]string, remove string) {
		if name, ok := labels[TemporaryLabel]; ok {
			found = append(found, Finding{Note, what, "belongs to a running capture, or was orphaned by one that was killed",
				fmt.Sprintf("if nobody captures: kubectl delete %s -l %s=%s", remove, TemporaryLabel, name)})
		}
	}
	const all = "pods,clusters.ringcap.io,capturerings -A"
	for _, ring := range f.Rings {
		check("CaptureRing "+ring.Name, ring.Labels, all)
	}
	for _, cluster := range f.Clusters {
		check("Cluster "+cluster.Name, cluster.Labels, all)
	}
	for _, own := range f.Temporary {
		check("PodCapture "+own.Namespace+"/"+own.Name, own.Labels, "pods,podcaptures --namespace "+own.Namespace)
	}
	return found
}
