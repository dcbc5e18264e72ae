// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// of makes a status of a node with a ring on a card.
func of(ring v1.NodeRingStatus, card v1.InterfaceStatus) v1.NodeCaptureStatus {
	ring.Name, ring.Engine, ring.Interfaces = "mirror", v1.EngineKernelModule, []string{"eth0"}
	card.Name, card.Rings = "eth0", []string{"mirror"}
	return v1.NodeCaptureStatus{
		Engine: v1.EngineKernelModule, EngineReason: "it is loaded", Rings: []v1.NodeRingStatus{ring}, Interfaces: []v1.InterfaceStatus{card},
	}
}

func TestTransitions(t *testing.T) {
	stock, aware := v1.InterfaceStatus{Driver: "igb"}, v1.InterfaceStatus{Driver: "igb_ringcap", Aware: true, StockDriver: "igb"}
	failed := v1.InterfaceStatus{Driver: "igb", Reason: v1.ReasonDriverReplaceFailed, Message: "no link; it is tried again after noon"}
	ready, nothing := v1.NodeRingStatus{Ready: true}, v1.NodeCaptureStatus{Engine: v1.EngineKernelModule}
	refused := func(reason, message string) v1.NodeRingStatus {
		return v1.NodeRingStatus{Reason: reason, Message: message}
	}
	on := func(engine v1.Engine, module string) v1.NodeCaptureStatus {
		return v1.NodeCaptureStatus{Engine: engine, EngineReason: "why", Conditions: []metav1.Condition{{Type: v1.ConditionModuleReady, Reason: module}}}
	}
	programmed := Transition{Reason: v1.ReasonProgrammed, Ring: "mirror", Message: "ring mirror captures from eth0 with engine KernelModule"}
	replaced := Transition{Reason: v1.ReasonDriverReplaced, Ring: "mirror", Message: "eth0 has the capture-aware driver igb_ringcap in place of igb"}
	restored := Transition{Reason: v1.ReasonDriverRestored, Ring: "mirror", Message: "eth0 has driver igb again"}
	for name, test := range map[string]struct {
		before, after v1.NodeCaptureStatus
		drivers       map[string]plan.DriverFact
		want          []Transition
	}{
		"nothing changed":            {before: of(ready, aware), after: of(ready, aware)},
		"programmed":                 {before: nothing, after: of(ready, stock), want: []Transition{programmed}},
		"pending":                    {before: nothing, after: of(refused(v1.ReasonPending, "soon"), stock)},
		"refused":                    {before: of(ready, stock), after: of(refused(v1.ReasonDriverNotAware, "igb is not"), stock), want: []Transition{{Warning: true, Reason: v1.ReasonDriverNotAware, Ring: "mirror", Message: "ring mirror: igb is not"}}},
		"refused in other words":     {before: of(refused(v1.ReasonDriverNotAware, "a"), stock), after: of(refused(v1.ReasonDriverNotAware, "b"), stock)},
		"replaced":                   {before: of(refused(v1.ReasonPending, ""), stock), after: of(ready, aware), want: []Transition{replaced, programmed}},
		"replacing failed":           {before: of(refused(v1.ReasonPending, ""), stock), after: of(refused(v1.ReasonDriverReplaceFailed, "long"), failed), want: []Transition{{Warning: true, Reason: v1.ReasonDriverReplaceFailed, Ring: "mirror", Message: "eth0: no link; it is tried again after noon"}}},
		"failed again":               {before: of(refused(v1.ReasonDriverReplaceFailed, ""), failed), after: of(refused(v1.ReasonDriverReplaceFailed, ""), failed)},
		"restored with the ring":     {before: of(ready, aware), after: nothing, drivers: map[string]plan.DriverFact{"eth0": {Name: "igb"}}, want: []Transition{restored}},
		"restored under a ring":      {before: of(ready, aware), after: of(ready, stock), drivers: map[string]plan.DriverFact{"eth0": {Name: "igb"}}, want: []Transition{restored}},
		"could not be restored":      {before: of(ready, aware), after: nothing, drivers: map[string]plan.DriverFact{"eth0": {Name: "igb_ringcap", Stock: "igb"}}},
		"the card is gone":           {before: of(ready, aware), after: nothing},
		"fallback at first":          {after: on(v1.EngineEBPF, v1.ReasonKeyRejected), want: []Transition{{Warning: true, Reason: v1.ReasonEngineFallback, Message: "rings with engine Auto get EBPF: why"}}},
		"fallback":                   {before: on(v1.EngineKernelModule, v1.ReasonLoaded), after: on(v1.EngineEBPF, v1.ReasonLoadFailed), want: []Transition{{Warning: true, Reason: v1.ReasonEngineFallback, Message: "rings with engine Auto get EBPF: why"}}},
		"no module is wanted":        {after: on(v1.EngineEBPF, v1.ReasonDisabled)},
		"the module is there again":  {before: on(v1.EngineEBPF, v1.ReasonLoadFailed), after: on(v1.EngineKernelModule, v1.ReasonLoaded), want: []Transition{{Reason: v1.ReasonEngineRecovered, Message: "rings with engine Auto get KernelModule: why"}}},
		"no engine any more":         {before: on(v1.EngineEBPF, v1.ReasonLoadFailed), after: on("", v1.ReasonLoadFailed), want: []Transition{{Warning: true, Reason: v1.ReasonEngineUnavailable, Message: "why"}}},
		"the module from the outset": {after: on(v1.EngineKernelModule, v1.ReasonLoaded)},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, Transitions(test.before, test.after, test.drivers)) })
	}
}

// A state is announced once, also where an earlier agent wrote it, and not before it is written.
func TestTransitionsAreAnnouncedOnce(t *testing.T) {
	l := newLab(t, &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	var heard []string
	l.writer.Announce = func(object *v1.NodeCapture, transitions []Transition) {
		assert.Equal(t, l.writes, 1+len(heard)/2)
		for _, t := range transitions {
			heard = append(heard, object.Name+" "+t.Reason)
		}
	}
	l.write(0, input())
	assert.Equal(t, []string{"n1 EngineFallback", "n1 Programmed"}, heard)
	next := Writer{Client: l.writer.Client, Cached: l.writer.Cached, Node: "n1", Interval: time.Second, Timeout: time.Minute, Now: l.writer.Now, Announce: l.writer.Announce}
	l.writer = next
	l.write(time.Minute, input(count(20)))
	assert.Len(t, heard, 2, "by an agent that was started again")
}
