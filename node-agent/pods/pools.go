// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"

	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
)

// Pools are the pools of virtual functions that a device plugin advertises on this node. They remember each
// function's interface as it was last here, because an interface in a pod cannot be seen. Pools is for one goroutine.
type Pools struct {
	// List returns the devices and the pods that have them.
	List func(context.Context) (map[string][]plan.PoolDevice, error)
	// Records outlive the agent.
	Records node.Records[Function]
}

// Function is an interface of a pool as it was last seen, by PCI address.
type Function struct {
	Name  string `json:"name"`
	Index int    `json:"index"`
	// Driver of it.
	Driver string `json:"driver"`
	// RxQueues of it.
	RxQueues int `json:"rxQueues"`
	// Resource is the pool's name.
	Resource string `json:"resource"`
}

// Refresh returns the pools, with the interfaces in them as they are or last were. With an error the pools are not
// known.
func (p *Pools) Refresh(ctx context.Context, interfaces []plan.Interface) (map[string][]plan.PoolDevice, map[string]plan.Function, error) {
	records, err := p.Records.Load()
	if err != nil {
		records = map[string]Function{} // the interfaces that are here are recorded again
	}
	pools, listErr := p.List(ctx)
	if listErr == nil {
		noteFunctions(records, pools, interfaces)
		err = errors.Join(err, p.Records.Save(records))
	}
	seen := map[string]plan.Function{}
	for address, f := range records {
		seen[address] = plan.Function{Resource: f.Resource, Interface: plan.Interface{
			Name: f.Name, Index: f.Index, Driver: f.Driver, RxQueues: f.RxQueues, PCIAddress: address,
		}}
	}
	return pools, seen, errors.Join(err, listErr)
}

// noteFunctions updates the records with the interfaces that are here. Records of others stay, because they may be in
// a pod.
func noteFunctions(records map[string]Function, pools map[string][]plan.PoolDevice, interfaces []plan.Interface) {
	resources, given := map[string]string{}, map[string]bool{}
	for name, devices := range pools {
		for _, device := range devices {
			resources[device.PCIAddress], given[device.PCIAddress] = name, device.Pod != ""
		}
	}
	for _, i := range interfaces {
		resource, pooled := resources[i.PCIAddress]
		have, known := records[i.PCIAddress]
		switch {
		case pooled:
			if known && given[i.PCIAddress] {
				i.Name = have.Name // a CNI plugin renames it on its way
			}
			records[i.PCIAddress] = Function{Name: i.Name, Index: i.Index, Driver: i.Driver, RxQueues: i.RxQueues, Resource: resource}
		case len(pools[have.Resource]) > 0:
			delete(records, i.PCIAddress) // it was taken out of a pool that still exists
		}
	}
}
