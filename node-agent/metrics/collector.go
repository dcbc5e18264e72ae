// SPDX-License-Identifier: Apache-2.0

// Package metrics exposes what a node's data path reports to Prometheus, and the agent's health.
//
// The account of every packet can be checked from outside:
//
//	ringcap_ring_seen_packets_total = filtered + sampled_out + passed of the ring
//	sum of passed over a cluster's rings = sum over its queues of delivered + dropped
package metrics

import (
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/status"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("ringcap_"+name, help, labels, nil)
}

var (
	ringSeen       = desc("ring_seen_packets_total", "Packets that a ring's taps saw.", "ring", "engine")
	ringSeenBytes  = desc("ring_seen_bytes_total", "Bytes on the wire of the packets that a ring's taps saw.", "ring", "engine")
	ringFiltered   = desc("ring_filtered_packets_total", "Packets that the ring's filter rejected.", "ring", "engine")
	ringSampledOut = desc("ring_sampled_out_packets_total", "Packets that sampling left out.", "ring", "engine")
	ringPassed     = desc("ring_passed_packets_total", "Packets that the ring passed to each of its clusters.", "ring", "engine")
	ringReady      = desc("ring_ready", "1 while the ring is in the data path as its spec asks; reason says why not.", "ring", "engine", "reason")

	queueDelivered = desc("queue_delivered_packets_total", "Packets put where the queue's consumer can read them.", "cluster", "queue", "engine")
	queueBytes     = desc("queue_delivered_bytes_total", "Bytes on the wire of delivered packets.", "cluster", "queue", "engine")
	queueDropped   = desc("queue_dropped_packets_total", "Packets passed and not delivered, by reason.", "cluster", "queue", "engine", "reason")
	queueUnread    = desc("queue_unread_bytes", "Bytes delivered that the consumer has not released.", "cluster", "queue", "engine")
	queueAttached  = desc("queue_attached", "1 while a consumer reads the queue.", "cluster", "queue", "engine")
	clusterMemory  = desc("cluster_memory_bytes", "Kernel memory that a set of queues takes.", "cluster", "engine")
	clusterReady   = desc("cluster_ready", "1 while the queues are there as the spec asks; reason says why not.", "cluster", "engine", "reason")

	moduleState     = desc("module_state", "1 for the state of the kernel module, 1 ready and 0 not, and why.", "ready", "reason", "version")
	engineAvailable = desc("engine_available", "1 while the engine can be used on this node.", "engine")
	buildInfo       = desc("build_info", "The agent's version.", "version")

	interfaceReceived = desc("interface_received_packets_total", "The kernel's rx_packets of a captured interface.", "interface")
	interfaceDropped  = desc("interface_dropped_packets_total", "The kernel's rx_dropped of a captured interface: the stack dropped them, some before a ring could see them.", "interface")
	interfaceMissed   = desc("interface_missed_packets_total", "The kernel's rx_missed_errors of a captured interface: the NIC lost them before any ring could see them.", "interface")
	interfaceErrors   = desc("interface_errors_packets_total", "The kernel's rx_errors of a captured interface.", "interface")
)

// Collector is a prometheus.Collector over the last report. Its methods may be called by several goroutines.
type Collector struct {
	version string
	last    atomic.Pointer[state]
}

type state struct {
	report datapath.Report
	module status.Module
}

// NewCollector makes a Collector for an agent of a version.
func NewCollector(version string) *Collector { return &Collector{version: version} }

// Set takes a report to be exposed from now on.
func (c *Collector) Set(report datapath.Report, module status.Module) {
	c.last.Store(&state{report: report, module: module})
}

// Describe sends nothing: which series there are depends on the rings.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	s := sink(out)
	s.gauge(buildInfo, 1, c.version)
	last := c.last.Load()
	if last == nil {
		return
	}
	r := last.report
	s.gauge(moduleState, boolean(last.module.Ready), strconv.FormatBool(last.module.Ready), last.module.Reason, last.module.Version)
	for _, engine := range []v1.Engine{v1.EngineKernelModule, v1.EngineEBPF} {
		s.gauge(engineAvailable, boolean(r.Engines[engine].Available), string(engine))
	}
	tapped := map[string]bool{}
	for name, verdict := range r.Plan.Rings {
		s.gauge(ringReady, boolean(verdict.Ready()), name, string(verdict.Engine), verdict.Reason)
		for _, i := range verdict.Interfaces {
			tapped[i] = true
		}
		if ring, ok := r.Observations[verdict.Engine].Rings[name]; ok {
			s.ring(name, string(verdict.Engine), ring.Stats)
		}
	}
	for name, verdict := range r.Plan.Clusters {
		s.gauge(clusterReady, boolean(verdict.Ready()), name, string(verdict.Engine), verdict.Reason)
		if cluster, ok := r.Queues(name); ok {
			s.cluster(name, string(verdict.Engine), cluster)
		}
	}
	s.interfaces(r, tapped)
}

// sink sends samples.
type sink chan<- prometheus.Metric

func (s sink) gauge(d *prometheus.Desc, value float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func (s sink) counter(d *prometheus.Desc, value uint64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
}

func (s sink) ring(name, engine string, stats capture.RingStats) {
	s.counter(ringSeen, stats.Seen, name, engine)
	s.counter(ringSeenBytes, stats.SeenBytes, name, engine)
	s.counter(ringFiltered, stats.Filtered, name, engine)
	s.counter(ringSampledOut, stats.SampledOut, name, engine)
	s.counter(ringPassed, stats.Passed, name, engine)
}

func (s sink) cluster(name, engine string, cluster capture.ClusterState) {
	s.gauge(clusterMemory, float64(cluster.Memory), name, engine)
	for i, queue := range cluster.Queues {
		number := strconv.Itoa(i)
		s.counter(queueDelivered, queue.Delivered, name, number, engine)
		s.counter(queueBytes, queue.DeliveredBytes, name, number, engine)
		s.gauge(queueUnread, float64(queue.UnreadBytes), name, number, engine)
		s.gauge(queueAttached, boolean(queue.Attached), name, number, engine)
		for _, reason := range capture.DropReasons {
			s.counter(queueDropped, queue.Dropped[reason], name, number, engine, string(reason))
		}
	}
}

func (s sink) interfaces(r datapath.Report, tapped map[string]bool) {
	seen := []string{}
	for _, i := range r.Interfaces {
		if !tapped[i.Name] || slices.Contains(seen, i.Name) {
			continue
		}
		seen = append(seen, i.Name)
		s.counter(interfaceReceived, i.Received, i.Name)
		s.counter(interfaceDropped, i.Dropped, i.Name)
		s.counter(interfaceMissed, i.Missed, i.Name)
		s.counter(interfaceErrors, i.Errors, i.Name)
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
