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

// heard is the capture with the later time. The capture itself is the cache's, and stays as it is.
func heard(capture *v1alpha1.NodeCapture, at time.Time) *v1alpha1.NodeCapture {
	if observed := capture.Status.ObservedTime; observed == nil || !observed.Time.Before(at) {
		return capture
	}
	later := *capture
	later.Status.ObservedTime = &metav1.Time{Time: at}
	return &later
}
