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
	// Pod that has the device; empty while it is free.
	Pod string
}

// Function is a virtual function's interface, with the pool that it was in.
type Function struct {
	Interface
	Resource string
}

// OverPool reports whether some or all of a ring's interfaces are those of a pool.
func OverPool(ring v1.CaptureRingSpec) bool {
	return slices.ContainsFunc(ring.Interfaces, func(s v1.InterfaceSelector) bool { return s.ResourceName != "" })
}

// poolsCanBeTapped refuses settings that need a fixed interface.
func poolsCanBeTapped(d *ringDraft) *problem {
	if !OverPool(d.spec) {
		return nil
	}
	switch {
	case d.facts.NoPods:
		return problemf(v1.ReasonUnsupported, "spec.interfaces[].resourceName: a machine without Kubernetes has no pools: give the name of an interface")
	case d.spec.Queues != nil && d.spec.Queues.Type == intstr.String:
		return problemf(v1.ReasonUnsupported, "spec.queues %s: the interfaces of pools come and go: give a number", d.spec.Queues)
	case d.spec.Mode() != v1.TransparentModeStack:
		return problemf(v1.ReasonUnsupported, "spec.transparentMode %d: the interfaces of pools are captured in mode 0", d.spec.Mode())
	}
	return nil
}

// tapPool taps a pool's functions. A tap follows its function into the pod that the function is given to, and back.
func (d *ringDraft) tapPool(i int, selector v1.InterfaceSelector, queues []uint16) *problem {
	devices := d.facts.Pools[selector.ResourceName]
	switch {
	case d.facts.PoolsUnknown != "":
		d.untapped = append(d.untapped, untapped{pool: true, wrong: true, message: "the pools of this node are not known: " + d.facts.PoolsUnknown})
	case len(devices) == 0 && d.hadPool(selector.ResourceName):
		d.untapped = append(d.untapped, untapped{pool: true, wrong: true,
			message: "no device of " + selector.ResourceName + " is advertised at present: see the device plugin's pod"})
	case len(devices) == 0:
		return problemf(d.missing(selector), "spec.interfaces[%d].resourceName %q: this node's device plugins advertise %s: see the configuration of sriov-network-device-plugin",
			i, selector.ResourceName, listPools(d.facts.Pools))
	}
	for _, device := range devices {
		if problem := d.tapFunction(i, selector, device, queues); problem != nil {
			return problem
		}
	}
	return d.keepUnlisted(i, selector.ResourceName, queues)
}

// hadPool reports whether devices of a resource were there, and are not in another pool now.
func (d *ringDraft) hadPool(resource string) bool {
	for _, seen := range d.facts.Seen {
		if seen.Resource == resource {
			return true
		}
	}
	return false
}

func (d *ringDraft) tapFunction(i int, selector v1.InterfaceSelector, device PoolDevice, queues []uint16) *problem {
	seen, known := d.facts.Seen[device.PCIAddress]
	if selector.PCIAddress == "" {
		selector.PCIAddress = "*"
	}
	if ok, err := selects(selector, seen.Interface); err != nil {
		return problemf(v1.ReasonInterfaceNotFound, "spec.interfaces[%d].%v", i, err)
	} else if known && !ok {
		return nil
	}
	where, found := d.locate(device.PCIAddress)
	if !found {
		d.untapped = append(d.untapped, notThere(device))
		return nil
	}
	return d.follow(i, where, queues, device.Pod)
}

// keepUnlisted keeps the taps of functions that the kubelet does not list for the moment. This happens when the
// kubelet or the plugin is away, or when the plugin does not know the health of a function.
func (d *ringDraft) keepUnlisted(i int, resource string, queues []uint16) *problem {
	for _, address := range slices.Sorted(maps.Keys(d.facts.Seen)) {
		listed := slices.ContainsFunc(d.facts.Pools[resource], func(p PoolDevice) bool { return p.PCIAddress == address })
		where, found := d.locate(address)
		if d.facts.Seen[address].Resource != resource || listed || !found || !d.hasFollower(where.Index) {
			continue
		}
		if problem := d.follow(i, where, queues, ""); problem != nil {
			return problem
		}
	}
	return nil
}

// locate returns a function's interface in the node's network namespace. If the function is in another namespace, and
// the ring has a tap that follows it, locate returns the interface as it was last here. It does not if another
// interface here has its index by now.
func (d *ringDraft) locate(address string) (where Interface, found bool) {
	for _, here := range d.facts.Interfaces {
		if here.PCIAddress == address {
			return here, true
		}
	}
	where = d.facts.Seen[address].Interface
	return where, d.hasFollower(where.Index) && !d.isHere(where.Index)
}

func (d *ringDraft) isHere(index int) bool {
	return slices.ContainsFunc(d.facts.Interfaces, func(i Interface) bool { return i.Index == index })
}

// hasFollower reports whether the ring has a tap that follows the interface of this index.
func (d *ringDraft) hasFollower(index int) bool {
	return slices.ContainsFunc(d.facts.Taps[d.name], func(t capture.Tap) bool { return t.Index == index && t.Follows })
}

// follow taps a function for selector i, in the namespace that the function is in.
func (d *ringDraft) follow(i int, where Interface, queues []uint16, pod string) *problem {
	if problem := d.tap(i, where, queues); problem != nil {
		return problem
	}
	d.taps[slices.IndexFunc(d.taps, func(t capture.Tap) bool { return t.Index == where.Index })].Follows = true
	if !d.isHere(where.Index) {
		if d.away == nil {
			d.away = map[string]bool{}
		}
		d.away[where.Name] = true
	}
	if pod != "" {
		d.setPod(where.Name, pod)
	}
	return nil
}

func (d *ringDraft) setPod(name, pod string) {
	if d.pods == nil {
		d.pods = map[string]string{}
	}
	d.pods[name] = pod
}

// notThere explains why a function outside of the node's network namespace is not tapped.
func notThere(device PoolDevice) untapped {
	if device.Pod == "" {
		return untapped{pool: true, message: device.PCIAddress + " has no interface on the node: another driver than the network's is bound to it, or something else has it"}
	}
	return untapped{pool: true, pod: device.Pod, wrong: true, message: fmt.Sprintf(
		"it has had %s since before this ring could tap it: delete the pod; its successor's is captured", device.PCIAddress)}
}

// listPools lists the names of the pools.
func listPools(pools map[string][]PoolDevice) string {
	if len(pools) == 0 {
		return "no devices"
	}
	return strings.Join(slices.Sorted(maps.Keys(pools)), ", ")
}
