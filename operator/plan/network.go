// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Network is a NetworkAttachmentDefinition that the operator writes. It has the name of its ring.
type Network struct {
	Namespace, Ring string
	// UID of the ring.
	UID types.UID
	// Resource is the pool of its virtual functions.
	Resource string
}

// networks returns the networks of the accepted rings, sorted.
func (d *draft) networks(rings []*v1alpha1.CaptureRing) []Network {
	var all []Network
	for _, ring := range rings {
		if !d.plan.Rings[ring.Name].Accepted() {
			continue
		}
		for _, selector := range ring.Spec.Interfaces {
			if selector.Network == nil {
				continue
			}
			for _, namespace := range selector.Network.Namespaces {
				all = append(all, Network{Namespace: namespace, Ring: ring.Name, UID: ring.UID, Resource: selector.ResourceName})
			}
		}
	}
	slices.SortFunc(all, func(a, b Network) int { return strings.Compare(a.Namespace+"/"+a.Ring, b.Namespace+"/"+b.Ring) })
	return all
}
