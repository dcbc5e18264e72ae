// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Traffic returns which interfaces of the current network namespace carry the node's own traffic, by name. The values
// are the reasons, in words that follow the name: "has the address 10.0.0.1/24". Link-local addresses do not count,
// because every interface gets one by itself.
func Traffic(apiServer []net.IP) (map[string]string, error) {
	links, err := Links()
	if err != nil {
		return nil, fmt.Errorf("list the network interfaces: %w", err)
	}
	own := map[int]string{}
	for _, address := range apiServer {
		// Without a route to the address, none can be lost.
		routes, _ := netlink.RouteGet(address)
		for _, route := range routes {
			own[route.LinkIndex] = fmt.Sprintf("is on the way to the API server %s", address)
		}
	}
	if err := addDefaultRoutes(own); err != nil {
		return nil, err
	}
	addresses, err := Dump(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("list the addresses of interfaces: %w", err)
	}
	s := newStack(links)
	// An address from a router's advertisement counts only if the interface has no other address.
	for _, fromRouter := range []bool{true, false} {
		for _, address := range addresses {
			if link, there := s.links[address.LinkIndex]; there && !address.IP.IsLinkLocalUnicast() && advertised(address) == fromRouter {
				own[address.LinkIndex] = fmt.Sprintf("has the address %s", address.IPNet) + cure(link, fromRouter)
			}
		}
	}
	return s.carriers(own), nil
}

// advertised reports whether the kernel made an address from a router's advertisement.
func advertised(address netlink.Addr) bool {
	const made = unix.IFA_F_MANAGETEMPADDR | unix.IFA_F_TEMPORARY
	return address.IP.To4() == nil && address.Flags&unix.IFA_F_PERMANENT == 0 && address.Flags&made != 0
}

// cure returns how to remove an address that nobody gave to an interface. In sysctls, a dot of its name is a slash.
func cure(link netlink.Link, fromRouter bool) string {
	if !fromRouter {
		return ""
	}
	return fmt.Sprintf(" from a router advertisement (an interface that only captures needs none: set net.ipv6.conf.%s.disable_ipv6=1, "+
		"or accept_ra=0 and delete the address)", strings.ReplaceAll(link.Attrs().Name, ".", "/"))
}

// addDefaultRoutes adds the interfaces that have a default route, in any table.
func addDefaultRoutes(own map[int]string) error {
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := Dump(func() ([]netlink.Route, error) {
			return netlink.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
		})
		if err != nil {
			return fmt.Errorf("list the routes: %w", err)
		}
		for _, route := range routes {
			if route.Type != unix.RTN_UNICAST || !isDefault(route.Dst) {
				continue
			}
			for _, hop := range append(route.MultiPath, &netlink.NexthopInfo{LinkIndex: route.LinkIndex}) {
				own[hop.LinkIndex] = "has a default route"
			}
		}
	}
	return nil
}

func isDefault(destination *net.IPNet) bool {
	if destination == nil {
		return true
	}
	ones, _ := destination.Mask.Size()
	return ones == 0
}

// stack tells which interfaces are below and above each other.
type stack struct {
	links map[int]netlink.Link
	// ports are by the index of their bridge, bond or other master. children (VLANs and the like) are by the index of
	// their parent.
	ports, children map[int][]int
}

func newStack(links []netlink.Link) stack {
	s := stack{links: map[int]netlink.Link{}, ports: map[int][]int{}, children: map[int][]int{}}
	for _, link := range links {
		attrs := link.Attrs()
		s.links[attrs.Index] = link
		if attrs.MasterIndex != 0 {
			s.ports[attrs.MasterIndex] = append(s.ports[attrs.MasterIndex], attrs.Index)
		}
		if parent := parentOf(link); parent != 0 {
			s.children[parent] = append(s.children[parent], attrs.Index)
		}
	}
	return s
}

// parentOf returns the interface that a link sends by; for a veth, its peer. It is 0 if there is none, or if it is in
// another network namespace.
func parentOf(link netlink.Link) int {
	if attrs := link.Attrs(); attrs.NetNsID == -1 {
		return attrs.ParentIndex
	}
	return 0
}

const (
	typeVeth = "veth"
	typeOVS  = "openvswitch"
)

func (s stack) is(index int, kind string) bool {
	link, there := s.links[index]
	return there && link.Type() == kind
}

// below returns the interfaces that carry an interface's packets.
func (s stack) below(index int) []int {
	below := slices.Clone(s.ports[index])
	parent := parentOf(s.links[index])
	if peer, there := s.links[parent]; there {
		below = append(below, parent)
		if s.is(parent, typeVeth) {
			// Its bridge forwards the packets.
			below = append(below, peer.Attrs().MasterIndex)
		}
	}
	if s.is(index, typeOVS) {
		// The kernel does not show which port belongs to which bridge of Open vSwitch.
		for master, ports := range s.ports {
			if s.is(master, typeOVS) {
				below = append(below, ports...)
			}
		}
	}
	return below
}

// above returns the interfaces that get their packets from an interface.
func (s stack) above(index int) []int {
	above := []int{s.links[index].Attrs().MasterIndex}
	if !s.is(index, typeVeth) {
		above = append(above, s.children[index]...)
	}
	return above
}

// carriers adds the interfaces below and above the node's own interfaces, which are by index. It returns all of them
// by name.
func (s stack) carriers(own map[int]string) map[string]string {
	carriers := map[string]string{}
	var indexes []int
	for index, why := range own {
		if link, there := s.links[index]; there {
			carriers[link.Attrs().Name] = why
			indexes = append(indexes, index)
		}
	}
	slices.Sort(indexes)
	for _, index := range indexes {
		s.spread(carriers, index, own[index], "below", s.below)
		s.spread(carriers, index, own[index], "above", s.above)
	}
	return carriers
}

// spread adds the neighbours of one of the node's own interfaces, then their neighbours, and so on.
func (s stack) spread(carriers map[string]string, from int, why, where string, next func(int) []int) {
	seen := map[int]bool{from: true}
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		for _, index := range next(queue[0]) {
			link, there := s.links[index]
			if !there || seen[index] {
				continue
			}
			seen[index] = true
			queue = append(queue, index)
			if name := link.Attrs().Name; carriers[name] == "" {
				carriers[name] = fmt.Sprintf("is %s %s, which %s", where, s.links[from].Attrs().Name, why)
			}
		}
	}
}
