// SPDX-License-Identifier: Apache-2.0

// Package metrics exposes the operator's view of the fleet to Prometheus. Only the leading operator has it; the durations and
// errors of its reconciliations are controller-runtime's own metrics.
package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringcap/ringcap/monitoring/catalogue"
)

// Fleet is the sum of what all nodes report.
type Fleet struct {
	Objects []Object
	// Reporting is, for each node with a NodeCapture, whether its agent reports.
	Reporting map[string]bool
}

// Object is a CaptureRing or Cluster.
type Object struct {
	Kind, Name string
	// Ready and Reason are those of its condition Ready.
	Ready  bool
	Reason string
	// NodesDesired is the number of nodes that should have it, NodesReady of those on which it is ready.
	NodesDesired, NodesReady int32
}

// metric is a gauge with its labels.
type metric struct {
	catalogue.Metric
	desc *prometheus.Desc
}

var known []metric

func gauge(name, help string, labels ...string) metric {
	name = "ringcap_operator_" + name
	m := metric{catalogue.Metric{Name: name, Kind: catalogue.Gauge, Labels: labels, Help: help}, prometheus.NewDesc(name, help, labels, nil)}
	known = append(known, m)
	return m
}

// Catalogue lists the operator's metrics, except for those of every controller.
func Catalogue() []catalogue.Metric {
	var all []catalogue.Metric
	for _, m := range known {
		all = append(all, m.Metric)
	}
	return all
}

var (
	buildInfo     = gauge("build_info", "1, with the operator's version.", "version")
	objectReady   = gauge("object_ready", "1 while a CaptureRing or Cluster is ready on all of its nodes with agents that report, else 0; reason is that of its condition Ready.", "kind", "name", "reason")
	nodesDesired  = gauge("object_nodes_desired", "Nodes that a CaptureRing or Cluster is for.", "kind", "name")
	nodesReady    = gauge("object_nodes_ready", "Nodes on which a CaptureRing or Cluster is ready.", "kind", "name")
	nodeReporting = gauge("node_reporting", "1 while the agent of a node that has a NodeCapture reports, 0 when it never did or has been silent for three minutes.", "nodecapture")
)

// Collector is a prometheus.Collector over the last Fleet. Its methods may be called by several goroutines.
type Collector struct {
	version string
	fleet   atomic.Pointer[Fleet]
}

// NewCollector returns a Collector for an operator of a version.
func NewCollector(version string) *Collector { return &Collector{version: version} }

// Set sets the fleet to expose from now on.
func (c *Collector) Set(fleet Fleet) { c.fleet.Store(&fleet) }

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range known {
		out <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	send := func(m metric, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, value, labels...)
	}
	send(buildInfo, 1, c.version)
	fleet := c.fleet.Load()
	if fleet == nil {
		return
	}
	for _, o := range fleet.Objects {
		send(objectReady, boolean(o.Ready), o.Kind, o.Name, o.Reason)
		send(nodesDesired, float64(o.NodesDesired), o.Kind, o.Name)
		send(nodesReady, float64(o.NodesReady), o.Kind, o.Name)
	}
	for node, reporting := range fleet.Reporting {
		send(nodeReporting, boolean(reporting), node)
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
