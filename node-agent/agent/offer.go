// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"maps"
	"slices"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/containers"
	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/deviceplugin"
	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/operator/api/consumers"
)

// namespaces returns, for each set of queues in the report, the namespaces that may have them.
func namespaces(report datapath.Report) map[string]consumers.Rule {
	allowed := map[string]consumers.Rule{}
	for name, cluster := range report.Clusters {
		if !cluster.Orphaned {
			allowed[name] = cluster.Decision.Consumers
		}
	}
	return allowed
}

// provideLibrary provides the libpcap for containers on the host while queues that come with it are asked for.
func (a *Agent) provideLibrary(report datapath.Report) error {
	for _, cluster := range report.Clusters {
		if cluster.Decision.InjectLibpcap {
			return a.Library.Provide()
		}
	}
	return a.Library.Withdraw()
}

// resources returns the existing queues. While they cannot be observed, the offered ones stay, as unhealthy. So do
// those that come with a library while there is none.
func (a *Agent) resources(report datapath.Report, library bool) map[string]deviceplugin.Resource {
	offer := map[string]deviceplugin.Resource{}
	if report.ObserveErr != nil {
		for name, resource := range a.offered {
			resource.Healthy = make([]bool, len(resource.Healthy))
			offer[name] = resource
		}
	}
	for name, cluster := range report.Clusters {
		state, ok := report.Queues(name)
		if !ok {
			continue
		}
		healthy := make([]bool, len(state.Queues))
		for i := range healthy {
			healthy[i] = cluster.Fed && (library || !cluster.Decision.InjectLibpcap)
		}
		engine := cluster.Engine
		var mounts []capture.PathPair
		if cluster.Decision.InjectLibpcap {
			mounts = a.Library.Mounts()
		}
		nodes := numaNodes(report, name, node.NUMANodeOf)
		offer[name] = deviceplugin.Resource{Healthy: healthy, Engine: engine, NUMANodes: nodes, Mounts: mounts, Queues: func() deviceplugin.Queues {
			if e := a.Reconciler.Engine(engine); e != nil {
				return namedQueues{e, a.Names, a.announceGiven, a.Changed.Raise}
			}
			return nil
		}}
	}
	return offer
}

// namedQueues are queues whose consumers get the names of interfaces.
type namedQueues struct {
	deviceplugin.Queues
	names *containers.Names
	// taken is told the process from which a queue was taken.
	taken func(queue capture.QueueID, from int)
	// changed is called when a queue has new memory, which the data path does not use directly until it is applied again.
	changed func()
}

// TakeBack implements deviceplugin.Queues.
func (q namedQueues) TakeBack(ctx context.Context, id capture.QueueID, holder capture.Holder) (from int, err error) {
	from, err = q.Queues.TakeBack(ctx, id, holder)
	if err != nil {
		return from, err
	}
	q.changed()
	if from != 0 {
		q.taken(id, from)
	}
	return from, nil
}

// Grant implements deviceplugin.Queues.
func (q namedQueues) Grant(id capture.QueueID) (capture.Grant, error) {
	grant, err := q.Queues.Grant(id)
	if err != nil {
		return grant, err
	}
	mount, err := q.names.Mount(id.Cluster)
	grant.Mounts = append(grant.Mounts, mount)
	return grant, err
}

// numaNodes returns the NUMA nodes of the interfaces that feed a set of queues, in order. of returns an interface's.
func numaNodes(report datapath.Report, cluster string, of func(string) (int, bool)) []int {
	nodes := map[int]bool{}
	for _, ring := range report.Plan.Plans[report.Clusters[cluster].Engine].Rings {
		if !slices.Contains(ring.Outputs, cluster) {
			continue
		}
		for _, tap := range ring.Taps {
			if number, ok := of(tap.Interface); ok {
				nodes[number] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(nodes))
}
