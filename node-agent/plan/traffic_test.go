// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

func inMode(mode v1.TransparentMode) func(*v1.CaptureRingSpec) {
	return func(s *v1.CaptureRingSpec) { s.TransparentMode = &mode }
}

func allowed(s *v1.CaptureRingSpec) { s.NodeTraffic = v1.NodeTrafficAllow }

// On eth0, which is the node's own, and on eth1, which is not.
func TestTheNodesOwnTraffic(t *testing.T) {
	number := int32(2)
	nic := func(change func(*v1.NIC)) func(*v1.CaptureRingSpec) {
		return func(s *v1.CaptureRingSpec) { change(&s.NIC) }
	}
	replace := nic(func(n *v1.NIC) { n.Driver.Policy = v1.DriverReplace })
	driverOnly := nic(func(n *v1.NIC) {
		n.Driver = v1.DriverPolicy{Policy: v1.DriverReplace, NodeTraffic: v1.NodeTrafficAllow}
	})
	stock, aware := DriverFact{Name: "igb", Replacement: "igb_ringcap"}, DriverFact{Name: "igb_ringcap", Aware: true}
	for name, test := range map[string]struct {
		spec   []func(*v1.CaptureRingSpec)
		driver DriverFact
		// reason and message on eth0; free is the reason on eth1.
		reason, message, free string
	}{
		"mode 0":                    {},
		"mode 1":                    {spec: []func(*v1.CaptureRingSpec){inMode(1)}, driver: aware},
		"mode 1, by XDP":            {spec: []func(*v1.CaptureRingSpec){inMode(1), withEngine(v1.EngineEBPF)}},
		"mode 2":                    {spec: []func(*v1.CaptureRingSpec){inMode(2)}, driver: aware, reason: v1.ReasonNodeTrafficRefused, message: "eth0 has the address 10.0.0.1/24, and with spec.transparentMode 2 the node would not get its packets: use mode 0 or 1, capture another interface, or set spec.nodeTraffic to Allow"},
		"mode 2, by XDP":            {spec: []func(*v1.CaptureRingSpec){inMode(2), withEngine(v1.EngineEBPF)}, reason: v1.ReasonNodeTrafficRefused, message: "spec.transparentMode 2"},
		"mode 2, allowed":           {spec: []func(*v1.CaptureRingSpec){inMode(2), allowed}, driver: aware},
		"mode 2, or the stack":      {spec: []func(*v1.CaptureRingSpec){inMode(2), func(s *v1.CaptureRingSpec) { s.TransparentFallback = v1.TransparentFallbackStack }}, driver: stock},
		"new driver":                {spec: []func(*v1.CaptureRingSpec){inMode(1), replace}, driver: stock, reason: v1.ReasonDriverReplaceRefused, message: "eth0 is not; it is not replaced because the interface has the address", free: v1.ReasonPending},
		"new driver, allowed":       {spec: []func(*v1.CaptureRingSpec){inMode(2), replace, allowed}, driver: stock, reason: v1.ReasonPending, free: v1.ReasonPending},
		"new driver alone, allowed": {spec: []func(*v1.CaptureRingSpec){inMode(1), driverOnly}, driver: stock, reason: v1.ReasonPending, free: v1.ReasonPending},
		"that, with mode 2":         {spec: []func(*v1.CaptureRingSpec){inMode(2), driverOnly}, driver: stock, reason: v1.ReasonDriverReplaceRefused, message: "spec.nodeTraffic", free: v1.ReasonPending},
		"new driver is there":       {spec: []func(*v1.CaptureRingSpec){inMode(2), driverOnly}, driver: DriverFact{Name: "igb_ringcap", Aware: true, Stock: "igb"}, reason: v1.ReasonNodeTrafficRefused},
		"VLAN tags":                 {spec: []func(*v1.CaptureRingSpec){nic(func(n *v1.NIC) { n.VLANOffload = v1.VLANOffloadDisable })}, reason: v1.ReasonNodeTrafficRefused, message: "spec.nic.vlanOffload Disable would stop its device for a moment: leave it out"},
		"RX queues and their size":  {spec: []func(*v1.CaptureRingSpec){nic(func(n *v1.NIC) { n.RxQueues, n.RxRingSize = &number, &number })}, reason: v1.ReasonNodeTrafficRefused, message: "spec.nic.rxRingSize, spec.nic.rxQueues would stop"},
		"RX queues, allowed":        {spec: []func(*v1.CaptureRingSpec){nic(func(n *v1.NIC) { n.RxQueues = &number }), allowed}},
		"what stops nothing": {spec: []func(*v1.CaptureRingSpec){nic(func(n *v1.NIC) {
			n.RSS, n.ThreadedPolling.Mode = v1.RSS{Hash: v1.RSSHashSymmetric, Queues: &number}, v1.ThreadedPollingEnable
		})}},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			f.Interfaces[1].NodeTraffic = "has the address 10.0.0.1/24"
			f.Interfaces[1].DriverFact, f.Interfaces[2].DriverFact = test.driver, test.driver
			spec := v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("own", test.spec...), ring("free", append(test.spec, withInterface("eth1"))...)}}
			got := Make(spec, f)
			assert.Equal(t, test.reason, got.Rings["own"].Reason)
			assert.Contains(t, got.Rings["own"].Message, test.message)
			assert.Equal(t, test.free, got.Rings["free"].Reason, got.Rings["free"].Message)
			if test.reason != "" && test.reason != v1.ReasonPending {
				assert.NotContains(t, got.NICs, "eth0")
				assert.NotContains(t, got.Drivers, "eth0")
			}
		})
	}
}

// One interface of several is enough. Interfaces of pods never carry the node's own traffic.
func TestWhoseTrafficItIs(t *testing.T) {
	f := facts()
	f.Interfaces[2].NodeTraffic = "has a default route"
	got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("all", inMode(2), withEngine(v1.EngineEBPF), withInterface("eth*"))}}, f)
	assert.Contains(t, got.Rings["all"].Message, "eth1 has a default route")

	f = facts()
	f.Pods = []Pod{{Namespace: "default", Name: "web", Interfaces: []int{3}}}
	f.Interfaces[2].NodeTraffic = "is below cni0, which has the address 10.244.0.1/24"
	got = Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("pods", func(s *v1.CaptureRingSpec) {
		s.Interfaces, s.NIC.VLANOffload = []v1.InterfaceSelector{{PodSelector: &metav1.LabelSelector{}}}, v1.VLANOffloadDisable
	})}}, f)
	assert.Empty(t, got.Rings["pods"].Reason, got.Rings["pods"].Message)
	assert.Equal(t, []string{"eth1"}, got.Rings["pods"].Interfaces)
}

// A refused edit keeps what was there before, also where the interface is the node's own.
func TestARefusedEditOfTheNodesOwn(t *testing.T) {
	f := facts()
	f.Interfaces[1].NodeTraffic = "has a default route"
	before := v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("own", withQueues(1))}}
	f.Good = Make(before, f).Good(before, v1.NodeCaptureSpec{})
	edited := v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("own", withQueues(1), inMode(2), withEngine(v1.EngineEBPF))}}
	got := Make(edited, f)
	assert.Equal(t, v1.ReasonNodeTrafficRefused, got.Rings["own"].Reason)
	assert.Contains(t, got.Rings["own"].Message, asBefore)
	assert.Len(t, got.Plans[v1.EngineKernelModule].Rings, 1)
	assert.Empty(t, got.Rings["own"].Watched)
	assert.Equal(t, before.Rings, got.Good(edited, f.Good).Rings)
}

func TestWatched(t *testing.T) {
	number := int32(2)
	for name, test := range map[string]struct {
		spec    []func(*v1.CaptureRingSpec)
		driver  DriverFact
		watched string
	}{
		"mode 0": {},
		"mode 1": {spec: []func(*v1.CaptureRingSpec){inMode(1)}, driver: DriverFact{Aware: true}, watched: "spec.transparentMode 1 on eth0"},
		"mode 2 and RX queues": {
			spec:   []func(*v1.CaptureRingSpec){inMode(2), func(s *v1.CaptureRingSpec) { s.NIC.RxQueues = &number }},
			driver: DriverFact{Aware: true}, watched: "spec.nic.rxQueues, spec.transparentMode 2 on eth0",
		},
		"a driver that is to come": {
			spec:   []func(*v1.CaptureRingSpec){inMode(1), func(s *v1.CaptureRingSpec) { s.NIC.Driver.Policy = v1.DriverReplace }},
			driver: DriverFact{Replacement: "igb_ringcap"}, watched: "spec.nic.driver.policy Replace, spec.transparentMode 1 on eth0",
		},
		"the stack after all": {spec: []func(*v1.CaptureRingSpec){inMode(2), func(s *v1.CaptureRingSpec) { s.TransparentFallback = v1.TransparentFallbackStack }}},
		"refused":             {spec: []func(*v1.CaptureRingSpec){inMode(2)}},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			f.Interfaces[1].DriverFact = test.driver
			got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("own", test.spec...)}}, f)
			assert.Equal(t, test.watched, got.Rings["own"].Watched)
			assert.Equal(t, test.watched != "", got.Rings["own"].Key != "")
		})
	}
}

// What the node has tried is not planned, nor is its driver; the same ring with another spec, or another ring, is.
func TestWhatWasTriedIsNotTriedAgain(t *testing.T) {
	f := facts()
	f.Interfaces[1].DriverFact = DriverFact{Replacement: "igb_ringcap"}
	replace := func(s *v1.CaptureRingSpec) { s.NIC.Driver.Policy = v1.DriverReplace }
	tried := ring("own", inMode(1), replace)
	f.Refused = map[string]Refusal{TryKey(tried): {Reason: v1.ReasonNodeCutOff, Message: "the node was cut off"}}
	got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{tried}}, f)
	assert.Equal(t, v1.ReasonNodeCutOff, got.Rings["own"].Reason)
	assert.Equal(t, "the node was cut off", got.Rings["own"].Message)
	assert.Empty(t, got.Drivers)
	assert.Equal(t, map[v1.Engine]capture.Plan{}, got.Plans)

	again := tried
	again.UID = "made again"
	same := ring("own", inMode(1), replace, withQueues(1), func(s *v1.CaptureRingSpec) { s.SnapLength, s.NIC.Offloads = 100, v1.OffloadsKeep })
	same.Version = 1
	assert.Equal(t, v1.ReasonNodeCutOff, Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{same}}, f).Rings["own"].Reason, "what cannot cut the node off does not matter")
	for _, other := range []v1.NodeRing{again, ring("own", inMode(1), replace, func(s *v1.CaptureRingSpec) { s.XDP = v1.XDPGenericAllowed })} {
		got = Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{other}}, f)
		assert.Equal(t, v1.ReasonPending, got.Rings["own"].Reason)
	}
}
