// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// A ring's settings can cut its node off from the network. This is what spec.nodeTraffic refuses, and what is watched:
//
//	                                          the node's own interface   any: watched when applied
//	transparentMode 2, inline (the stack gets nothing) refused                     yes
//	driver replaced, rxQueues, rxRingSize,            refused                      yes
//	vlanOffload (the device stops for a moment)
//	transparentMode 1 (the stack gets all; many          -                         yes
//	drivers stop once for an XDP program)
//	promiscuous, offloads, rss, threadedPolling          -                          -
//	(set while packets pass), mode 0

// Refusal is why a node does not run a ring: it has tried its spec, or cannot try it now. Reason and Message are for
// the ring's status.
type Refusal struct{ Reason, Message string }

// TryKey tells a ring from others, and from itself with another spec, by the settings that can cut the node off. It
// leaves out other settings: when a release adds a field to specs, what is proven must stay so.
func TryKey(ring v1.NodeRing) string {
	spec := ring.Spec
	settings := []any{
		ring.UID, spec.Interfaces, spec.Direction, spec.Engine, spec.TransparentMode, spec.TransparentFallback, spec.XDP, spec.NodeTraffic,
		spec.NIC.VLANOffload, spec.NIC.RxRingSize, spec.NIC.RxQueues, spec.NIC.Driver,
	}
	if spec.Inline != nil {
		settings = append(settings, spec.Inline.Pairs)
	}
	// A spec came as JSON, so it can be encoded as JSON.
	text, _ := json.Marshal(settings)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Runs reports whether an engine has a ring, and the ring's last accepted spec has the key.
func (f Facts) Runs(name, key string) bool {
	_, served := f.Serving[name]
	return served && slices.ContainsFunc(f.Good.Rings, func(r v1.NodeRing) bool { return r.Name == name && TryKey(r) == key })
}

// Intrusive reports whether a ring has settings that can disturb the node's own traffic.
func Intrusive(spec v1.CaptureRingSpec) bool {
	return len(stopping(spec)) > 0 || spec.Mode() != v1.TransparentModeStack || spec.Inline != nil
}

// stopping returns the fields that stop a device for a moment. For these, most drivers make their queues again, or
// restart the whole device.
func stopping(spec v1.CaptureRingSpec) (fields []string) {
	add := func(when bool, field string) {
		if when {
			fields = append(fields, field)
		}
	}
	add(spec.NIC.VLANOffload == v1.VLANOffloadDisable, "spec.nic.vlanOffload Disable")
	add(spec.NIC.RxRingSize != nil, "spec.nic.rxRingSize")
	add(spec.NIC.RxQueues != nil, "spec.nic.rxQueues")
	return fields
}

// devicesGoOn refuses what stops the device of an interface that carries the node's own traffic. Another check
// refuses a replacement of the driver, together with other problems of the driver.
func devicesGoOn(d *ringDraft) *problem {
	fields := stopping(d.spec)
	if len(fields) == 0 {
		return nil
	}
	return d.refuseNodeTraffic(fmt.Sprintf("%s would stop its device for a moment: leave it out", strings.Join(fields, ", ")))
}

// stackKeepsPackets refuses to take the packets of such an interface from the stack.
func stackKeepsPackets(d *ringDraft) *problem {
	if d.mode != 2 {
		return nil
	}
	refused := d.refuseNodeTraffic("with spec.transparentMode 2 the node would not get its packets: use mode 0 or 1")
	if refused != nil {
		d.drivers = nil
	}
	return refused
}

// refuseNodeTraffic returns a problem if a tapped interface carries the node's own traffic. Pods' interfaces do not.
// An operator that does not know spec.nodeTraffic cannot have allowed it. In that case, what already runs continues.
func (d *ringDraft) refuseNodeTraffic(why string) *problem {
	if d.spec.NodeTraffic == v1.NodeTrafficAllow {
		return nil
	}
	for _, tap := range d.taps {
		_, pods := d.pods[tap.Interface]
		if traffic := d.facts.nodeTraffic(tap.Interface); traffic != "" && !pods && !d.away[tap.Interface] && !d.runsSinceBefore(tap) {
			return problemf(v1.ReasonNodeTrafficRefused, "%s %s, and %s, capture another interface, "+
				"or set spec.nodeTraffic to Allow if the node can do without it", tap.Interface, traffic, why)
		}
	}
	return nil
}

// runsSinceBefore reports whether a ring of an operator that does not know spec.nodeTraffic already has a tap.
func (d *ringDraft) runsSinceBefore(tap capture.Tap) bool {
	return d.version == 0 && d.facts.Runs(d.name, d.key) &&
		slices.ContainsFunc(d.facts.Taps[d.name], func(t capture.Tap) bool { return t.Index == tap.Index })
}

func (f Facts) nodeTraffic(iface string) string {
	found, _ := f.named(iface)
	return found.NodeTraffic
}

// mayReplaceDriver reports whether the driver of an interface that carries the node's own traffic may be replaced.
func (d *ringDraft) mayReplaceDriver() bool {
	return d.spec.NodeTraffic == v1.NodeTrafficAllow || d.mode != 2 && d.spec.NIC.Driver.NodeTraffic == v1.NodeTrafficAllow
}

// watched returns what a ring does that can cut the node off, if it is planned or its driver is to be replaced. It is
// empty for nothing.
func (d *ringDraft) watched() string {
	fields := stopping(d.spec)
	if len(d.drivers) > 0 {
		fields = append(fields, "spec.nic.driver.policy Replace")
	}
	if d.mode != 0 {
		fields = append(fields, fmt.Sprintf("spec.transparentMode %d", d.mode))
	}
	if d.spec.Inline != nil {
		fields = append(fields, "spec.inline")
	}
	if len(fields) == 0 {
		return ""
	}
	return fmt.Sprintf("%s on %s", strings.Join(fields, ", "), strings.Join(interfaceNames(d.taps), ", "))
}

// notRefused refuses a spec that the node has tried, or cannot try now.
func notRefused(d *ringDraft) *problem {
	if refusal, refused := d.facts.Refused[d.key]; refused {
		return &problem{refusal.Reason, refusal.Message}
	}
	return nil
}
