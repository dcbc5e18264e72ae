// SPDX-License-Identifier: Apache-2.0

// Package catalogue describes metrics, for their documentation and for tests of who uses them.
package catalogue

// Kind is Prometheus' type of a metric.
type Kind string

// The kinds in use.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Metric is what one process exposes under a name.
type Metric struct {
	// Name in full, with the unit at its end.
	Name   string
	Kind   Kind
	Labels []string
	// Help is one or more sentences.
	Help string
}
