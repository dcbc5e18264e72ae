// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/heartbeat"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// leasesOf restricts a cache to the agents' Leases of their namespace, and to the fields that are read here.
func leasesOf(namespace string) cache.ByObject {
	return cache.ByObject{
		Namespaces: map[string]cache.Config{namespace: {}},
		Label:      labels.SelectorFromSet(heartbeat.Labels()),
		Transform: func(object any) (any, error) {
			if lease, ok := object.(*coordinationv1.Lease); ok {
				lease.ObjectMeta = metav1.ObjectMeta{
					Namespace: lease.Namespace, Name: lease.Name, UID: lease.UID, ResourceVersion: lease.ResourceVersion, Labels: heartbeat.Labels(),
				}
			}
			return object, nil
		},
	}
}

// addHeartbeats sets in each NodeCapture that has reported the time of its node's last heartbeat, from its status or its Lease.
func addHeartbeats(ctx context.Context, reader client.Reader, captures map[string]*v1alpha1.NodeCapture) error {
	var leases coordinationv1.LeaseList
	err := reader.List(ctx, &leases, client.MatchingLabels(heartbeat.Labels()), client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list the agents' Leases: %w", err)
	}
	for i := range leases.Items {
		lease := &leases.Items[i]
		node, ok := heartbeat.Node(lease.Name)
		if capture := captures[node]; ok && capture != nil {
			captures[node] = heardAt(capture, heartbeat.Time(lease))
		}
	}
	return nil
}

// heardAt returns the capture with the later time.
func heardAt(capture *v1alpha1.NodeCapture, at time.Time) *v1alpha1.NodeCapture {
	if observed := capture.Status.ObservedTime; observed == nil || !observed.Time.Before(at) {
		return capture
	}
	return observedAt(capture, at)
}

// observedAt returns a copy of the capture with another time; the capture belongs to the cache.
func observedAt(capture *v1alpha1.NodeCapture, at time.Time) *v1alpha1.NodeCapture {
	other := *capture
	other.Status.ObservedTime = &metav1.Time{Time: at}
	return &other
}

// beat is the time in a node's last heartbeat, and the local time at which it was seen.
type beat struct{ given, seen time.Time }

// beats holds them by node name.
type beats struct {
	nodes map[string]beat
	// since is when the first heartbeats were seen, zero before.
	since time.Time
}

// see sets in each NodeCapture the time of its node's last heartbeat by the local clock. A node's own clock may be minutes off:
// a new time only shows that there was a heartbeat. The age of heartbeats that exist at the start is unknown: they count as they
// are.
func (b *beats) see(captures map[string]*v1alpha1.NodeCapture, now time.Time) {
	first := b.since.IsZero()
	if first {
		b.since = now
	}
	seen := make(map[string]beat, len(captures))
	for name, capture := range captures {
		if capture.Status.ObservedTime == nil {
			continue
		}
		given := capture.Status.ObservedTime.Time
		last, known := b.nodes[name]
		switch {
		case first && given.Before(now):
			last = beat{given, given}
		case !known || !given.Equal(last.given):
			last = beat{given, now}
		}
		seen[name] = last
		if !last.seen.Equal(given) {
			captures[name] = observedAt(capture, last.seen)
		}
	}
	b.nodes = seen
}
