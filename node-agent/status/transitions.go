// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Transition is a change of a node's state that a user may want to know of when it happens.
type Transition struct {
	// Warning means that something is not as asked for.
	Warning bool
	Reason  string
	// Ring that it concerns; empty for the node as a whole.
	Ring    string
	Message string
}

// Transitions returns what changed from one status to the next. What the status no longer has is looked up among the
// drivers of all interfaces.
func Transitions(before, after v1.NodeCaptureStatus, drivers map[string]plan.DriverFact) []Transition {
	found := engineTransitions(before, after)
	for _, is := range after.Interfaces {
		was, _ := interfaceNamed(before, is.Name)
		found = append(found, driverTransitions(was, is)...)
	}
	for _, was := range before.Interfaces {
		fact, there := drivers[was.Name]
		if is, captured := interfaceNamed(after, was.Name); was.StockDriver != "" && there && fact.Stock == "" && (!captured || is.StockDriver == "") {
			found = append(found, Transition{Reason: v1.ReasonDriverRestored, Ring: firstOf(was.Rings),
				Message: fmt.Sprintf("%s has driver %s again", was.Name, fact.Name)})
		}
	}
	for _, is := range after.Rings {
		i := slices.IndexFunc(before.Rings, func(r v1.NodeRingStatus) bool { return r.Name == is.Name })
		var was v1.NodeRingStatus
		if i >= 0 {
			was = before.Rings[i]
		}
		found = append(found, ringTransitions(was, is)...)
	}
	for _, is := range after.Clusters {
		i := slices.IndexFunc(before.Clusters, func(c v1.NodeClusterStatus) bool { return c.Name == is.Name })
		var was v1.NodeClusterStatus
		if i >= 0 {
			was = before.Clusters[i]
		}
		found = append(found, inlineTransitions(was, is)...)
	}
	return found
}

// engineTransitions returns the transitions of rings with engine Auto.
func engineTransitions(before, after v1.NodeCaptureStatus) []Transition {
	switch {
	case after.Engine == before.Engine:
		return nil
	case after.Engine == "":
		return []Transition{{Warning: true, Reason: v1.ReasonEngineUnavailable, Message: after.EngineReason}}
	case after.Engine == v1.EngineKernelModule && before.Engine != "":
		return []Transition{{Reason: v1.ReasonEngineRecovered, Message: "rings with engine Auto get KernelModule: " + after.EngineReason}}
	case after.Engine == v1.EngineEBPF && !moduleDisabled(after):
		return []Transition{{Warning: true, Reason: v1.ReasonEngineFallback, Message: "rings with engine Auto get EBPF: " + after.EngineReason}}
	}
	return nil
}

// moduleDisabled reports whether the node is not to have the module. Such a node does not fall back.
func moduleDisabled(status v1.NodeCaptureStatus) bool {
	module := meta.FindStatusCondition(status.Conditions, v1.ConditionModuleReady)
	return module != nil && module.Reason == v1.ReasonDisabled
}

func driverTransitions(was, is v1.InterfaceStatus) []Transition {
	switch {
	case is.StockDriver != "" && was.StockDriver == "":
		return []Transition{{Reason: v1.ReasonDriverReplaced, Ring: firstOf(is.Rings),
			Message: fmt.Sprintf("%s has the capture-aware driver %s in place of %s", is.Name, is.Driver, is.StockDriver)}}
	case is.Reason == v1.ReasonDriverReplaceFailed && was.Reason != is.Reason:
		return []Transition{{Warning: true, Reason: is.Reason, Ring: firstOf(is.Rings), Message: fmt.Sprintf("%s: %s", is.Name, is.Message)}}
	}
	return nil
}

// ringTransitions leaves out what the transitions of the interface tell.
func ringTransitions(was, is v1.NodeRingStatus) []Transition {
	switch {
	case is.Reason == v1.ReasonInterfaceAbsent:
		return nil
	case is.Ready && (!was.Ready || was.Reason == v1.ReasonInterfaceAbsent):
		message := fmt.Sprintf("ring %s captures from %s with engine %s", is.Name, strings.Join(is.Interfaces, ", "), is.Engine)
		if is.TransparentReason != "" {
			message += ": " + is.TransparentReason
		}
		return []Transition{{Reason: v1.ReasonProgrammed, Ring: is.Name, Message: message}}
	case is.Ready, is.Reason == was.Reason, is.Reason == v1.ReasonPending, is.Reason == v1.ReasonDriverReplaceFailed:
		return nil
	}
	return []Transition{{Warning: true, Reason: is.Reason, Ring: is.Name, Message: fmt.Sprintf("ring %s: %s", is.Name, is.Message)}}
}

func interfaceNamed(status v1.NodeCaptureStatus, name string) (v1.InterfaceStatus, bool) {
	i := slices.IndexFunc(status.Interfaces, func(i v1.InterfaceStatus) bool { return i.Name == name })
	if i < 0 {
		return v1.InterfaceStatus{}, false
	}
	return status.Interfaces[i], true
}

func firstOf(rings []string) string {
	if len(rings) == 0 {
		return ""
	}
	return rings[0]
}
