// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const install = "helm upgrade --install ringcap charts/ringcap --namespace ringcap-system --create-namespace"

// versionLabel is on all of the chart's objects.
const versionLabel = "app.kubernetes.io/version"

func kinds(f Facts) []Finding {
	if len(f.Missing) == 0 {
		return nil
	}
	return []Finding{{Error, "API server", "does not know " + strings.Join(f.Missing, ", ") + " of ringcap.io/v1alpha1",
		"install the chart: " + install}}
}

func operator(f Facts) []Finding {
	var found []Finding
	if len(f.Operators) == 0 {
		return []Finding{{Error, "operator", "is not installed: nothing turns CaptureRings into captures", install}}
	}
	if len(f.Operators) > 1 {
		found = append(found, Finding{Error, "operator", fmt.Sprintf("is installed %d times: they undo each other's work", len(f.Operators)),
			"helm list -A; uninstall all releases but one"})
	}
	for _, d := range f.Operators {
		if d.Status.AvailableReplicas == 0 {
			found = append(found, Finding{Error, "operator " + d.Namespace + "/" + d.Name, "does not run" + because(f.Pods, d.Namespace, "operator", ""),
				fmt.Sprintf("kubectl -n %s describe deployment %s", d.Namespace, d.Name)})
		}
	}
	return found
}

func agents(f Facts) []Finding {
	if len(f.Agents) == 0 {
		return []Finding{{Error, "agents", "are not installed: no node captures", install}}
	}
	var found []Finding
	for _, d := range f.Agents {
		what, s := "agents "+d.Namespace+"/"+d.Name, d.Status
		if s.DesiredNumberScheduled == 0 {
			found = append(found, Finding{Error, what, "are on no node", "see nodeSelector and tolerations of the chart's agent values"})
		}
		if old := s.DesiredNumberScheduled - s.UpdatedNumberScheduled; old > 0 {
			found = append(found, Finding{Warning, what, fmt.Sprintf("%d of %d are still of the version before the last upgrade", old, s.DesiredNumberScheduled),
				fmt.Sprintf("kubectl -n %s rollout status daemonset %s", d.Namespace, d.Name)})
		}
	}
	for _, pod := range f.Pods {
		if pod.Labels["app.kubernetes.io/component"] == "agent" && !ready(pod) {
			found = append(found, Finding{Error, "node " + pod.Spec.NodeName, "its agent is not ready" + because(f.Pods, pod.Namespace, "agent", pod.Name),
				fmt.Sprintf("kubectl -n %s logs %s --all-containers --tail=50", pod.Namespace, pod.Name)})
		}
	}
	return found
}

func ready(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// because returns why the first pod of a component that is not ready is not, as ": REASON MESSAGE"; name may be empty.
func because(pods []corev1.Pod, namespace, component, name string) string {
	for _, pod := range pods {
		if pod.Namespace != namespace || pod.Labels["app.kubernetes.io/component"] != component || name != "" && pod.Name != name || ready(pod) {
			continue
		}
		if why := why(pod); why != "" {
			return ": " + why
		}
	}
	return ""
}

// why returns what prevents a pod from running.
func why(pod corev1.Pod) string {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && w.Reason != "PodInitializing" {
			return strings.TrimSpace(w.Reason + " " + w.Message)
		}
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return fmt.Sprintf("%s exited with %d %s", c.Name, t.ExitCode, t.Message)
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

func reporting(f Facts) []Finding {
	var found []Finding
	for i := range f.Nodes {
		node := &f.Nodes[i]
		silence := f.Silence(node)
		switch {
		case silence == "":
		case len(node.Spec.Rings) == 0:
			found = append(found, Finding{Note, "node " + node.Name, "captures nothing and has no agent", ""})
		default:
			found = append(found, Finding{Error, "node " + node.Name, silence,
				"see that the chart's agent.nodeSelector and agent.tolerations fit the node, and the agent's log there"})
		}
	}
	return found
}

// answering reports agents that report to the API server and do not answer through it; ask reports a missing right.
func answering(f Facts) []Finding {
	reasons := map[string][]string{}
	for i := range f.Nodes {
		node := &f.Nodes[i]
		if counted, asked := f.Counted[node.Name]; asked && !counted.Live() && f.Denied == "" {
			reasons[counted.Why] = append(reasons[counted.Why], node.Name)
		}
	}
	var found []Finding
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		found = append(found, Finding{Note, some("node", reasons[why]), why + "; counters are those of the NodeCapture, up to five minutes old",
			"see that all agents are of the operator's version, and that the API server reaches the port of their metrics (agent.metricsPort, 9466) on the nodes"})
	}
	return found
}

func versions(f Facts) []Finding {
	var found []Finding
	for _, d := range f.Operators {
		for _, a := range f.Agents {
			if o, v := d.Labels[versionLabel], a.Labels[versionLabel]; o != v {
				found = append(found, Finding{Warning, "versions", fmt.Sprintf("operator %s, agents %s", o, v), install})
			}
		}
	}
	modules := map[string][]string{}
	for _, node := range f.Nodes {
		if v := node.Status.ModuleVersion; v != "" {
			modules[v] = append(modules[v], node.Name)
		}
	}
	if len(modules) > 1 {
		var list []string
		for v, nodes := range modules {
			list = append(list, fmt.Sprintf("%s on %d nodes such as %s", v, len(nodes), nodes[0]))
		}
		slices.Sort(list)
		found = append(found, Finding{Warning, "versions", "of the kernel module differ: " + strings.Join(list, "; "),
			"a loaded module stays until its node is rebooted or drained of consumers"})
	}
	return found
}
