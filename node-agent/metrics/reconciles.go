// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// reconciles counts and times reconciliations.
type reconciles struct {
	durations prometheus.Histogram
	errors    prometheus.Counter
}

func newReconciles() reconciles {
	return reconciles{
		durations: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: reconcileDuration.Name, Help: reconcileDuration.Help,
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}),
		errors: prometheus.NewCounter(prometheus.CounterOpts{Name: reconcileErrors.Name, Help: reconcileErrors.Help}),
	}
}

func (r reconciles) collect(out chan<- prometheus.Metric) {
	r.durations.Collect(out)
	r.errors.Collect(out)
}

// Reconciled counts a reconciliation with its duration, and its error or nil.
func (c *Collector) Reconciled(took time.Duration, err error) {
	c.reconciles.durations.Observe(took.Seconds())
	if err != nil {
		c.reconciles.errors.Inc()
	}
}
