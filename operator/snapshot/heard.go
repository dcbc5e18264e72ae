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

// leasesOf makes a cache hold the agents' Leases of their namespace, and of these what is read here.
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

// hear gives each NodeCapture that has reported the time when its node was last heard of, by its status or its Lease.
func hear(ctx context.Context, reader client.Reader, captures map[string]*v1alpha1.NodeCapture) error {
	var leases coordinationv1.LeaseList
	err := reader.List(ctx, &leases, client.MatchingLabels(heartbeat.Labels()), client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list the agents' Leases: %w", err)
	}
	for i := range leases.Items {
		lease := &leases.Items[i]
		node, ok := heartbeat.Node(lease.Name)
		if capture := captures[node]; ok && capture != nil {
			captures[node] = heard(capture, heartbeat.Time(lease))
		}
	}
	return nil
}

// heard is the capture with the later time.
func heard(capture *v1alpha1.NodeCapture, at time.Time) *v1alpha1.NodeCapture {
	if observed := capture.Status.ObservedTime; observed == nil || !observed.Time.Before(at) {
		return capture
	}
	return observedAt(capture, at)
}

// observedAt is the capture with another time. The capture itself is the cache's, and stays as it is.
func observedAt(capture *v1alpha1.NodeCapture, at time.Time) *v1alpha1.NodeCapture {
	other := *capture
	other.Status.ObservedTime = &metav1.Time{Time: at}
	return &other
}

// beat is the time that a node gave when it was last heard of, and the one at which that was seen here.
type beat struct{ given, seen time.Time }

// beats are by node name.
type beats struct {
	nodes map[string]beat
	// since is when nodes were listened to for the first time, zero before.
	since time.Time
}

// see gives each NodeCapture the time at which its node was last heard of by the clock here. A node's own clock may be minutes off: a
// time that it gives tells no more than that it was heard again. How old those are that are there at first nobody can tell: they count
// as given.
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
