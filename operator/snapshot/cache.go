// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"reflect"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// CacheOptions reduces the memory of a manager's cache for thousands of nodes: managed fields are left out, and NodeCaptures
// share their rings. The namespace is that of the agents' Leases.
func CacheOptions(namespace string) cache.Options {
	shared := &sharedRings{rings: map[string]v1alpha1.NodeRing{}}
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.NodeCapture{}: {Transform: shared.share},
			&coordinationv1.Lease{}: leasesOf(namespace),
		},
	}
}

// sharedRings holds the last decoded ring of each uid and revision. Most nodes have a ring with the same spec.
type sharedRings struct {
	mu    sync.Mutex
	rings map[string]v1alpha1.NodeRing
}

// maxShared is many times the possible number of rings: those that are gone are removed now and then.
const maxShared = 10_000

// share makes a NodeCapture that comes into the cache share equal rings with others. Nobody changes objects in the cache.
func (s *sharedRings) share(object any) (any, error) {
	capture, ok := object.(*v1alpha1.NodeCapture)
	if !ok {
		return object, nil
	}
	capture.ManagedFields = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range capture.Spec.Rings {
		ring := &capture.Spec.Rings[i]
		key, same := ring.UID+" "+ring.Revision, s.rings[ring.UID+" "+ring.Revision]
		same.Awaited, same.Worked = ring.Awaited, ring.Worked
		if reflect.DeepEqual(same, *ring) {
			*ring = same
			continue
		}
		if len(s.rings) >= maxShared {
			clear(s.rings)
		}
		s.rings[key] = *ring
	}
	return capture, nil
}
