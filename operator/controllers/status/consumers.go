// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"

	"github.com/ringcap/ringcap/operator/api/consumers"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// permits returns the condition whether pods of any namespace may have the queues.
func permits(rule consumers.Rule) outcome {
	if err := rule.Nobody(); err != nil {
		return outcome{false, v1alpha1.ReasonNobodyAllowed, err.Error() + "; no new pod gets a queue until then, and pods that have one keep it"}
	}
	return outcome{true, v1alpha1.ReasonEffective, "pods of the namespaces that spec.consumers names may have the queues"}
}

// ruleOf returns the rule of a Cluster, over all of its rings.
func ruleOf(cluster *v1alpha1.Cluster, rings []v1alpha1.CaptureRing) consumers.Rule {
	var over []consumers.Source
	for i := range rings {
		if slices.Contains(cluster.Spec.Rings, rings[i].Name) {
			over = append(over, consumers.OfRing(rings[i].Name, rings[i].Spec.Consumers))
		}
	}
	return consumers.OfCluster(cluster.Name, cluster.Spec.Consumers, over...)
}
