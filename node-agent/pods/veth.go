// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"
	"slices"

	"github.com/ringcap/ringcap/node-agent/node"
)

// vethPeers are the node's interfaces that have a peer in another namespace. The kernel tells which namespace that
// is, so no process needs the right to enter it.
type vethPeers struct {
	indexes []int
	// byNamespace holds indexes by the number that the kernel gives the other namespace in this one.
	byNamespace map[int][]int
}

func listVethPeers() (vethPeers, error) {
	links, err := node.Links()
	if err != nil {
		return vethPeers{}, fmt.Errorf("list the network interfaces: %w", err)
	}
	s := vethPeers{byNamespace: map[int][]int{}}
	for _, link := range links {
		attrs := link.Attrs()
		s.indexes = append(s.indexes, attrs.Index)
		if attrs.NetNsID >= 0 {
			s.byNamespace[attrs.NetNsID] = append(s.byNamespace[attrs.NetNsID], attrs.Index)
		}
	}
	return s, nil
}

// without reports whether an interface does not exist.
func (s vethPeers) without(index int) bool { return !slices.Contains(s.indexes, index) }

// of returns the interfaces with a peer in a pod's namespace. This is the namespace of its oldest process that has
// entered one.
func (s vethPeers) of(processes []podProcess) ([]int, error) {
	for _, p := range processes {
		id, err := p.namespace()
		if err != nil || id >= 0 {
			return s.byNamespace[id], err
		}
	}
	return nil, nil
}
