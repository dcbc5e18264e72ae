// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// PoolDevice is a device of a pool that a device plugin advertises.
type PoolDevice struct {
	PCIAddress string
	// Pod that has it; empty while it is free.
	Pod string
}

// Function is a virtual function's interface, with the pool that it was in.
type Function struct {
	Interface
	Resource string
}

// poolsCanBeTapped refuses what goes with interfaces that stay only.
func poolsCanBeTapped(d *ringDraft) *problem {
	if !slices.ContainsFunc(d.spec.Interfaces, func(s v1.InterfaceSelector) bool { return s.ResourceName != "" }) {
		return nil
	}
	switch {
	case d.facts.NoPods:
		return problemf(v1.ReasonUnsupported, "spec.interfaces[].resourceName: a machine without Kubernetes has no pools: give the name of an interface")
	case d.spec.QuickMode:
		return problemf(v1.ReasonUnsupported, "spec.quickMode is for one interface, and those of a pool come and go: set it to false, or leave spec.interfaces[].resourceName out")
	case d.spec.Queues != nil && d.spec.Queues.Type == intstr.String:
		return problemf(v1.ReasonUnsupported, "spec.queues %s: the interfaces of pools come and go: give a number", d.spec.Queues)
	case d.spec.TransparentMode != nil && *d.spec.TransparentMode != 0:
		return problemf(v1.ReasonUnsupported, "spec.transparentMode %d: the interfaces of pools are captured in mode 0", *d.spec.TransparentMode)
	}
	return nil
}

// tapPool taps a pool's functions. A tap follows its function into the pod that the function is given to, and back.
func (d *ringDraft) tapPool(i int, selector v1.InterfaceSelector, queues []uint16) *problem {
	if d.facts.PoolsUnknown != "" {
		d.keepTaps()
		d.untapped = append(d.untapped, untapped{pool: true, message: "the pools of this node are not known: " + d.facts.PoolsUnknown, wrong: true})
		return nil
	}
	devices := d.facts.Pools[selector.ResourceName]
	if len(devices) == 0 && d.hadPool(selector.ResourceName) {
		d.keepTaps()
		d.untapped = append(d.untapped, untapped{pool: true, message: "no device of " + selector.ResourceName + " is advertised at present: see the device plugin's pod", wrong: true})
		return nil
	}
	if len(devices) == 0 {
		return problemf(v1.ReasonInterfaceNotFound, "spec.interfaces[%d].resourceName %q: this node's device plugins advertise %s: see the configuration of sriov-network-device-plugin",
			i, selector.ResourceName, listPools(d.facts.Pools))
	}
	for _, device := range devices {
		if problem := d.tapFunction(i, selector, device, queues); problem != nil {
			return problem
		}
	}
	d.keepUnlisted(selector.ResourceName, queues)
	return nil
}

// hadPool says that devices of a resource were there, and are not in another pool now.
func (d *ringDraft) hadPool(resource string) bool {
	for _, seen := range d.facts.Seen {
		if seen.Resource == resource {
			return true
		}
	}
	return false
}

// keepUnlisted keeps functions in pods that the kubelet does not list for the moment, as when the plugin does not know how they do.
func (d *ringDraft) keepUnlisted(resource string, queues []uint16) {
	for address, seen := range d.facts.Seen {
		listed := slices.ContainsFunc(d.facts.Pools[resource], func(p PoolDevice) bool { return p.PCIAddress == address })
		if seen.Resource == resource && !listed {
			d.tapAway(seen.Index, queues, "")
		}
	}
}

func (d *ringDraft) tapFunction(i int, selector v1.InterfaceSelector, device PoolDevice, queues []uint16) *problem {
	there := slices.IndexFunc(d.facts.Interfaces, func(i Interface) bool { return i.PCIAddress == device.PCIAddress })
	seen, known := d.facts.Seen[device.PCIAddress]
	match := seen.Interface
	if there >= 0 {
		match, known = d.facts.Interfaces[there], true
	}
	if selector.PCIAddress == "" {
		selector.PCIAddress = "*"
	}
	if ok, err := selects(selector, match); err != nil {
		return problemf(v1.ReasonInterfaceNotFound, "spec.interfaces[%d].%v", i, err)
	} else if known && !ok {
		return nil
	}
	if there < 0 {
		if !known || !d.tapAway(match.Index, queues, device.Pod) {
			d.untapped = append(d.untapped, notThere(device))
		}
		return nil
	}
	if problem := d.tap(i, match, queues); problem != nil {
		return problem
	}
	d.taps[slices.IndexFunc(d.taps, func(t capture.Tap) bool { return t.Index == match.Index })].Follows = true
	return nil
}

// notThere says why a function is not tapped that is not in the node's network namespace.
func notThere(device PoolDevice) untapped {
	if device.Pod == "" {
		return untapped{pool: true, message: device.PCIAddress + " has no interface on the node: another driver than the network's is bound to it, or something else has it"}
	}
	return untapped{pool: true, pod: device.Pod, wrong: true, message: fmt.Sprintf(
		"it has had %s since before this ring could tap it: delete the pod; its successor's is captured", device.PCIAddress)}
}

// tapAway keeps the tap of an interface that is elsewhere, which the ring has had since it was here.
func (d *ringDraft) tapAway(index int, queues []uint16, pod string) bool {
	has := func(t capture.Tap) bool { return t.Index == index && t.Away }
	taken := func(i Interface) bool { return i.Index == index }
	if !slices.ContainsFunc(d.facts.Taps[d.name], has) || slices.ContainsFunc(d.facts.Interfaces, taken) {
		return false
	}
	for _, seen := range d.facts.Seen {
		if seen.Index != index {
			continue
		}
		d.taps = append(d.taps, capture.Tap{
			Interface: seen.Name, Index: index, Direction: directions[d.spec.Direction], RxQueues: queues, Follows: true,
		})
		if d.away == nil {
			d.away = map[string]bool{}
		}
		d.away[seen.Name] = true
		if d.pods == nil {
			d.pods = map[string]string{}
		}
		d.pods[seen.Name] = pod
		return true
	}
	return false
}

// listPools names what there is.
func listPools(pools map[string][]PoolDevice) string {
	if len(pools) == 0 {
		return "no devices"
	}
	return strings.Join(slices.Sorted(maps.Keys(pools)), ", ")
}
