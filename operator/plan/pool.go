// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Pool is the content of a pool of sriov-network-device-plugin, as defined by a ring that asks the operator to own the pool.
type Pool struct {
	Resource string
	Ring     string
	// UID of the ring.
	UID types.UID
	v1alpha1.FunctionPool
}

// pools returns the pools of the rings that are accepted, and of those that keep what they have, sorted. If two rings define one
// pool, the older one wins.
func (d *draft) pools(rings []*v1alpha1.CaptureRing) []Pool {
	var all []Pool
	for _, ring := range rings {
		if verdict := d.plan.Rings[ring.Name]; !verdict.Accepted() && !verdict.Keeps() {
			continue
		}
		for _, selector := range ring.Spec.Interfaces {
			taken := func(p Pool) bool { return p.Resource == selector.ResourceName }
			if selector.Pool != nil && !slices.ContainsFunc(all, taken) {
				all = append(all, Pool{Resource: selector.ResourceName, Ring: ring.Name, UID: ring.UID, FunctionPool: *selector.Pool})
			}
		}
	}
	slices.SortFunc(all, func(a, b Pool) int { return strings.Compare(a.Resource, b.Resource) })
	return all
}
