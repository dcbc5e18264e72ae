// SPDX-License-Identifier: Apache-2.0

package report

import (
	"maps"
	"slices"
	"strings"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Sums are an object's counters, summed over all nodes.
type Sums struct {
	Queues, QueuesAttached   int32
	Seen, Delivered, Dropped int64
	// Shunted packets were not delivered, because consumers have shunted their flows.
	Shunted int64
	// Truncated is the number of delivered packets that were cut, by TruncatedBytes in all.
	Truncated, TruncatedBytes int64
	// Engines in use, sorted and separated by commas.
	Engines string
}

// Reports holds the reports of nodes by the names of the CaptureRings and Clusters that they describe. Of thousands of nodes few
// may have a ring: only their reports are summed up.
type Reports map[string][]*v1alpha1.NodeCapture

// ByName indexes the reports.
func ByName(captures map[string]*v1alpha1.NodeCapture) Reports {
	reports := Reports{}
	for _, capture := range captures {
		for i := range capture.Status.Rings {
			reports.add(capture.Status.Rings[i].Name, capture)
		}
		for i := range capture.Status.Clusters {
			reports.add(capture.Status.Clusters[i].Name, capture)
		}
		for i := range capture.Spec.Clusters {
			cluster := &capture.Spec.Clusters[i]
			reports.add(cluster.Name, capture)
			for _, ring := range cluster.Spec.Rings {
				reports.add(ring, capture)
			}
		}
	}
	return reports
}

// add adds the node's report to those about the name, once.
func (r Reports) add(name string, capture *v1alpha1.NodeCapture) {
	about := r[name]
	if len(about) == 0 || about[len(about)-1] != capture {
		r[name] = append(about, capture)
	}
}

// Sum sums up what the nodes report about the object.
func (r Reports) Sum(o Object) Sums {
	var sums Sums
	engines := map[string]bool{}
	for _, capture := range r[o.Name] {
		rings, queues := parts(capture, o)
		for _, r := range capture.Status.Rings {
			if !rings[r.Name] {
				continue
			}
			if o.Ring {
				sums.Seen += r.Seen
			}
			if r.Engine != "" {
				engines[string(r.Engine)] = true
			}
		}
		for _, c := range capture.Status.Clusters {
			if queues[c.Name] {
				sums.add(c)
			}
		}
	}
	if !o.Ring {
		sums.Seen = sums.Delivered + sums.Shunted + sums.Dropped
	}
	sums.Engines = strings.Join(slices.Sorted(maps.Keys(engines)), ",")
	return sums
}

// parts returns the names of the node's rings and sets of queues that belong to the object.
func parts(capture *v1alpha1.NodeCapture, o Object) (rings, queues map[string]bool) {
	rings, queues = map[string]bool{}, map[string]bool{o.Name: true}
	if o.Ring {
		rings[o.Name] = true
	}
	for _, c := range capture.Spec.Clusters {
		switch {
		case o.Ring && slices.Contains(c.Spec.Rings, o.Name):
			queues[c.Name] = true
		case !o.Ring && c.Name == o.Name:
			for _, ring := range c.Spec.Rings {
				rings[ring] = true
			}
		}
	}
	return rings, queues
}

func (s *Sums) add(c v1alpha1.NodeClusterStatus) {
	all := c.Totals()
	s.Queues += all.Queues
	s.QueuesAttached += all.Attached
	s.Delivered += all.Delivered
	s.Shunted += all.Shunted
	s.Dropped += all.DroppedPackets()
	s.Truncated += all.Truncated
	s.TruncatedBytes += all.TruncatedBytes
}
