// SPDX-License-Identifier: Apache-2.0

// Package metrics exposes what a node's data path reports to Prometheus, and the agent's health.
//
// The account of every packet can be checked from outside:
//
//	ringcap_ring_seen_packets_total = filtered + sampled_out + reflected + absorbed + directed + passed of the ring
//	sum of passed over a cluster's rings + directed to its queues + duplicated = sum over its queues of delivered + dropped
//
// Rules and payload patterns have series where the spec names them: a ring may have thousands.
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
	ringReflected  = desc("ring_reflected_packets_total", "Packets that a rule sent out of another interface.", "ring", "engine")
	ringAbsorbed   = desc("ring_absorbed_packets_total", "Fragments that became part of another packet.", "ring", "engine")
	ringDirected   = desc("ring_directed_packets_total", "Packets that a rule sent to a queue that it names.", "ring", "engine")
	rulePackets    = desc("rule_packets_total", "Packets that a named rule of the ring's filter decided on.", "ring", "engine", "rule")
	ruleBytes      = desc("rule_bytes_total", "Bytes on the wire of the packets that a named rule decided on.", "ring", "engine", "rule")
	patternPackets = desc("payload_pattern_packets_total", "Packets that a named payload pattern decided on.", "ring", "engine", "pattern")
	pluginFiltered = desc("plugin_filtered_packets_total", "Packets that a plugin did not let pass, since the ring was set last.", "ring", "engine", "plugin")
	ringReady      = desc("ring_ready", "1 while the ring is in the data path as its spec asks; reason says why not.", "ring", "engine", "reason")

	queueDelivered = desc("queue_delivered_packets_total", "Packets put where the queue's consumer can read them.", "cluster", "queue", "engine")
	queueBytes     = desc("queue_delivered_bytes_total", "Bytes on the wire of delivered packets.", "cluster", "queue", "engine")
	queueDropped   = desc("queue_dropped_packets_total", "Packets passed and not delivered, by reason.", "cluster", "queue", "engine", "reason")
	queueUnread    = desc("queue_unread_bytes", "Bytes delivered that the consumer has not released.", "cluster", "queue", "engine")
	queueAttached  = desc("queue_attached", "1 while a consumer reads the queue.", "cluster", "queue", "engine")
	clusterMemory  = desc("cluster_memory_bytes", "Kernel memory that a set of queues takes.", "cluster", "engine")
	clusterDoubled = desc("cluster_duplicated_packets_total", "Second copies, by balance BothEnds.", "cluster", "engine")
	clusterSpread  = desc("cluster_spread_packets_total", "Packets that another queue got by whenFull or whenUnattended.", "cluster", "engine")
	clusterReady   = desc("cluster_ready", "1 while the queues are there as the spec asks; reason says why not.", "cluster", "engine", "reason")

	moduleState     = desc("module_state", "1 for the state of the kernel module, 1 ready and 0 not, and why.", "ready", "reason", "version")
	engineAvailable = desc("engine_available", "1 while the engine can be used on this node.", "engine")
	buildInfo       = desc("build_info", "The agent's version.", "version")

	interfaceReceived = desc("interface_received_packets_total", "The kernel's rx_packets of a captured interface.", "interface")
	interfaceDropped  = desc("interface_dropped_packets_total", "The kernel's rx_dropped of a captured interface: the stack dropped them, some before a ring could see them.", "interface")
	interfaceMissed   = desc("interface_missed_packets_total", "The kernel's rx_missed_errors of a captured interface: the NIC lost them before any ring could see them.", "interface")
	interfaceAware    = desc("interface_aware", "1 while the driver of a captured interface is capture-aware.", "interface", "driver")
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
	for engine, planned := range r.Plan.Plans {
		for i := range planned.Rings {
			if state, ok := r.Observations[engine].Rings[planned.Rings[i].Name]; ok {
				s.rules(&planned.Rings[i], string(engine), state)
			}
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
	s.counter(ringReflected, stats.Reflected, name, engine)
	s.counter(ringAbsorbed, stats.Absorbed, name, engine)
	s.counter(ringDirected, stats.Directed, name, engine)
	s.counter(ringPassed, stats.Passed, name, engine)
}

// rules sends what the ring's named rules and patterns, and its plugins, counted. Of several of one name it sends the sum.
func (s sink) rules(ring *capture.Ring, engine string, state capture.RingState) {
	packets, bytes, patterns := map[string]uint64{}, map[string]uint64{}, map[string]uint64{}
	for _, rule := range ring.Rules.Wildcard {
		if counted, ok := state.Rules[rule.ID]; ok && rule.Name != "" {
			packets[rule.Name] += counted.Packets
			bytes[rule.Name] += counted.Bytes
		}
	}
	for i, pattern := range ring.Rules.Patterns {
		if pattern.Name != "" && i < len(state.Patterns) {
			patterns[pattern.Name] += state.Patterns[i]
		}
	}
	for name := range packets {
		s.counter(rulePackets, packets[name], ring.Name, engine, name)
		s.counter(ruleBytes, bytes[name], ring.Name, engine, name)
	}
	for name, n := range patterns {
		s.counter(patternPackets, n, ring.Name, engine, name)
	}
	plugins := map[string]uint64{}
	for i, plugin := range ring.Plugins {
		if i < len(state.Plugins) {
			plugins[plugin.Name] += state.Plugins[i]
		}
	}
	for name, n := range plugins {
		s.counter(pluginFiltered, n, ring.Name, engine, name)
	}
}

func (s sink) cluster(name, engine string, cluster capture.ClusterState) {
	s.gauge(clusterMemory, float64(cluster.Memory), name, engine)
	s.counter(clusterDoubled, cluster.Duplicated, name, engine)
	s.counter(clusterSpread, cluster.Spread, name, engine)
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
		if fact, known := r.Drivers[i.Name]; known {
			s.gauge(interfaceAware, boolean(fact.Aware), i.Name, fact.Name)
		}
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
