// SPDX-License-Identifier: Apache-2.0

// Package metrics exposes what a node's data path reports to Prometheus, and the agent's health.
//
// The account of every packet can be checked from outside:
//
//	ringcap_ring_seen_packets_total = filtered + sampled_out + reflected + absorbed + directed + passed of the ring
//	  of a ring in line also = inline_bridged + inline_lost + passed
//	sum of passed over a cluster's rings + directed to its queues + duplicated = sum over its queues of delivered + shunted + dropped
//
// The series, with their units and labels, are in series.go; docs/metrics.md is generated from that.
package metrics

import (
	"cmp"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/plan"
	"github.com/ringcap/ringcap/node-agent/status"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Collector is a prometheus.Collector over the last report. Its methods may be called by several goroutines.
type Collector struct {
	version, kernel string
	last            atomic.Pointer[state]
	reconciles      reconciles
	// Registered reports for each resource to be offered whether the kubelet has it; nil if there is no kubelet. It
	// is set before the Collector is used.
	Registered func() map[string]bool
}

type state struct {
	report datapath.Report
	module status.Module
}

// NewCollector makes a Collector for an agent of a version, on a kernel of a release.
func NewCollector(version, kernel string) *Collector {
	return &Collector{version: version, kernel: kernel, reconciles: newReconciles()}
}

// Set sets the report to expose from now on.
func (c *Collector) Set(report datapath.Report, module status.Module) {
	c.last.Store(&state{report: report, module: module})
}

// Describe implements prometheus.Collector. The set of series is fixed, except for the values of their labels.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range known {
		out <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	s := sink(out)
	s.gauge(buildInfo, 1, c.version, c.kernel)
	c.reconciles.collect(out)
	if c.Registered != nil {
		for name, registered := range c.Registered() {
			s.gauge(resourceRegistered, boolean(registered), v1.ResourcePrefix+name)
		}
	}
	last := c.last.Load()
	if last == nil {
		return
	}
	r := last.report
	s.gauge(moduleReady, boolean(last.module.Ready), last.module.Reason, last.module.Version)
	for _, engine := range []v1.Engine{v1.EngineKernelModule, v1.EngineEBPF} {
		s.gauge(engineAvailable, boolean(r.Engines[engine].Available), string(engine))
	}
	if r.Memory != nil {
		s.gauge(memoryRoom, float64(r.Memory.Room()))
		s.gauge(memoryReserve, float64(r.Memory.Reserve))
	}
	tapped := map[string]bool{}
	auto := ringsOfAnyEngine(r.Spec)
	for name, object := range r.Rings {
		s.gauge(ringReady, boolean(object.Ready() || object.Absent()), name, string(object.Engine), object.Reason)
		s.gauge(ringFallback, boolean(auto[name] && object.Engine == v1.EngineEBPF), name)
		for _, i := range object.Decision.Interfaces {
			tapped[i] = true
		}
		if ring, ok := r.Observations[object.Engine].Rings[name]; ok {
			s.ring(name, string(object.Engine), ring.Stats)
			s.inlineRing(name, string(object.Engine), ring.Inline)
		}
	}
	capacity := map[string]queueSize{}
	for engine, planned := range r.Plan.Plans {
		for _, c := range planned.Clusters {
			lanes := max(r.Engines[engine].Lanes, 1)
			if c.Lanes > 0 {
				lanes = c.Lanes
			}
			capacity[c.Name] = queueSize{uint64(c.QueueBytes), lanes}
		}
		for i := range planned.Rings {
			if state, ok := r.Observations[engine].Rings[planned.Rings[i].Name]; ok {
				s.rules(&planned.Rings[i], string(engine), state)
			}
		}
	}
	for name, object := range r.Clusters {
		s.gauge(clusterReady, boolean(object.Ready() || object.Absent()), name, string(object.Engine), object.Reason)
		if cluster, ok := r.Queues(name); ok {
			s.cluster(name, string(object.Engine), cluster, capacity[name])
		}
	}
	s.interfaces(r, tapped)
}

// ringsOfAnyEngine returns the rings that leave the choice of engine to the node.
func ringsOfAnyEngine(spec v1.NodeCaptureSpec) map[string]bool {
	auto := map[string]bool{}
	for i := range spec.Rings {
		auto[spec.Rings[i].Name] = spec.Rings[i].Spec.Engine == v1.EngineAuto
	}
	return auto
}

// sink sends samples.
type sink chan<- prometheus.Metric

func (s sink) gauge(m metric, value float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, value, labels...)
}

func (s sink) counter(m metric, value uint64, labels ...string) {
	s <- prometheus.MustNewConstMetric(m.desc, prometheus.CounterValue, float64(value), labels...)
}

func (s sink) ring(name, engine string, stats capture.RingStats) {
	s.counter(ringSeen, stats.Seen, name, engine)
	s.counter(ringSeenBytes, stats.SeenBytes, name, engine)
	s.counter(ringFiltered, stats.Filtered, name, engine)
	s.counter(ringSampledOut, stats.SampledOut, name, engine)
	s.counter(ringReflected, stats.Reflected, name, engine)
	s.counter(ringReflectFailed, stats.ReflectFailed, name, engine)
	s.counter(ringAbsorbed, stats.Absorbed, name, engine)
	s.counter(ringDirected, stats.Directed, name, engine)
	s.counter(ringPassed, stats.Passed, name, engine)
}

// queueSize is a plan's size of a queue: the bytes of an area, and the number of areas.
type queueSize struct {
	area  uint64
	lanes int
}

// capacity returns how many bytes all of the queue's areas hold now.
func (q queueSize) capacity(queue capture.QueueStats) float64 {
	return float64(q.area * uint64(cmp.Or(queue.Lanes, q.lanes)))
}

// fill returns how full the fullest lane is, 0 to 1. An engine that does not tell leaves the fill of all lanes, which is
// never more than that of the fullest.
func (q queueSize) fill(queue capture.QueueStats) float64 {
	return max(float64(queue.FullestLaneBytes)/float64(q.area), float64(queue.UnreadBytes)/q.capacity(queue))
}

func (s sink) cluster(name, engine string, cluster capture.ClusterState, size queueSize) {
	s.gauge(clusterMemory, float64(cluster.Memory), name, engine)
	s.counter(clusterDoubled, cluster.Duplicated, name, engine)
	s.counter(clusterSpread, cluster.Spread, name, engine)
	for i, queue := range cluster.Queues {
		number := strconv.Itoa(i)
		s.counter(queueDelivered, queue.Delivered, name, number, engine)
		s.counter(queueBytes, queue.DeliveredBytes, name, number, engine)
		s.counter(queueTruncated, queue.Truncated, name, number, engine)
		s.counter(queueCutBytes, queue.TruncatedBytes, name, number, engine)
		s.gauge(queueUnread, float64(queue.UnreadBytes), name, number, engine)
		if size.lanes > 0 { // a set that could not be removed is in no plan
			s.gauge(queueCapacity, size.capacity(queue), name, number, engine)
			s.gauge(queueFullest, size.fill(queue), name, number, engine)
		}
		s.gauge(queueAttached, boolean(queue.Attached), name, number, engine)
		for _, reason := range capture.DropReasons {
			s.counter(queueDropped, queue.Dropped[reason], name, number, engine, string(reason))
		}
		s.shunted(queue, name, number, engine)
		s.inlineQueue(queue.Inline, name, number, engine)
	}
}

func (s sink) shunted(queue capture.QueueStats, labels ...string) {
	s.counter(queueShunted, queue.Shunted, labels...)
	s.counter(queueShuntedB, queue.ShuntedBytes, labels...)
	s.gauge(queueShunts, float64(queue.ShuntedFlows), labels...)
	s.counter(queueShuntLost, queue.ShuntsLost, labels...)
}

func (s sink) interfaces(r datapath.Report, tapped map[string]bool) {
	seen := []string{}
	for _, i := range r.Interfaces {
		if !tapped[i.Name] || slices.Contains(seen, i.Name) {
			continue
		}
		seen = append(seen, i.Name)
		s.counter(interfaceReceived, i.Received, i.Name)
		s.counter(interfaceBytes, i.ReceivedBytes, i.Name)
		s.counter(interfaceDropped, i.Dropped, i.Name)
		s.counter(interfaceMissed, i.Missed, i.Name)
		s.counter(interfaceOverrun, i.Overrun, i.Name)
		s.counter(interfaceErrors, i.Errors, i.Name)
		if fact, known := r.Drivers[i.Name]; known {
			s.gauge(interfaceDriver, 1, i.Name, fact.Name, driverState(fact))
		}
	}
}

// driverState returns the agent's state of an interface's driver.
func driverState(fact plan.DriverFact) string {
	switch {
	case fact.Stock != "":
		return driverReplaced
	case fact.Aware:
		return driverAware
	case fact.Failed != "":
		return driverFailed
	default:
		return driverStock
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
