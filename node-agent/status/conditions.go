// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// rejections holds the reasons for which a new spec is to blame. The others are about the node's state or the
// engine's. For a withheld change, the change is to blame whatever the reason.
var rejections = map[string]bool{
	v1.ReasonInvalidFilter: true, v1.ReasonNameConflict: true, v1.ReasonRingNotFound: true,
	v1.ReasonMemoryLimitExceeded: true, v1.ReasonUnsupported: true,
	v1.ReasonNodeTrafficRefused: true, v1.ReasonNodeCutOff: true,
}

// Conditions sets all four conditions into existing ones. Unchanged conditions keep their transition time.
func Conditions(existing []metav1.Condition, in Input) []metav1.Condition {
	conditions := existing
	for _, c := range []metav1.Condition{accepted(in), programmed(in), ready(in), moduleReady(in.Module)} {
		c.ObservedGeneration = in.Report.Generation
		c.Message = truncate(c.Message)
		meta.SetStatusCondition(&conditions, c)
	}
	return conditions
}

func accepted(in Input) metav1.Condition {
	for _, p := range problems(in) {
		if p.asBefore || rejections[p.reason] {
			return condition(v1.ConditionAccepted, false, p.reason, "%s %s: %s", p.kind, p.name, p.message)
		}
	}
	return condition(v1.ConditionAccepted, true, v1.ReasonAccepted, "%d rings and %d sets of queues are asked for",
		len(in.Report.Rings), len(in.Report.Clusters))
}

func programmed(in Input) metav1.Condition {
	if err := in.Report.Err; err != nil {
		return condition(v1.ConditionProgrammed, false, v1.ReasonEngineError, "%v", err)
	}
	for _, p := range problems(in) {
		if !p.made {
			return condition(v1.ConditionProgrammed, false, p.reason, "%s %s: %s", p.kind, p.name, p.message)
		}
	}
	return condition(v1.ConditionProgrammed, true, v1.ReasonProgrammed, "the data path is as asked")
}

func ready(in Input) metav1.Condition {
	r := in.Report
	if err := r.Err; err != nil {
		return condition(v1.ConditionReady, false, v1.ReasonNotReady, "%v", err)
	}
	if err := r.ObserveErr; err != nil {
		return condition(v1.ConditionReady, false, v1.ReasonEngineError, "%v", err)
	}
	for _, p := range problems(in) {
		return condition(v1.ConditionReady, false, p.reason, "%s %s: %s", p.kind, p.name, p.message)
	}
	built := Build(in)
	for _, ring := range built.Rings {
		if !ring.Ready {
			return condition(v1.ConditionReady, false, v1.ReasonNotReady, "ring %s: %s", ring.Name, ring.Message)
		}
	}
	for _, cluster := range built.Clusters {
		if !cluster.Ready {
			return condition(v1.ConditionReady, false, v1.ReasonNotReady, "cluster %s: %s", cluster.Name, cluster.Message)
		}
	}
	return condition(v1.ConditionReady, true, v1.ReasonReady, "packets flow to queues that pods can request")
}

func moduleReady(m Module) metav1.Condition {
	reason := m.Reason
	if reason == "" {
		reason = v1.ReasonLoadFailed
	}
	return condition(v1.ConditionModuleReady, m.Ready, reason, "%s", m.Message)
}

func condition(kind string, ok bool, reason, format string, args ...any) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...)}
	if ok {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// truncate cuts a message to the length that the API server accepts.
func truncate(message string) string {
	const limit = 32768
	if len(message) > limit {
		return message[:limit]
	}
	return message
}
