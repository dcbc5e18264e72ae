// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// unpairable returns why an interface cannot be in a pair of a ring in line; empty if it can be. The module refuses the
// same, but knows no names.
func (s stack) unpairable(link netlink.Link) string {
	attrs := link.Attrs()
	if attrs.EncapType != "ether" {
		return "is not an Ethernet interface: choose another"
	}
	if master, there := s.links[attrs.MasterIndex]; there {
		return fmt.Sprintf("belongs to %s, which takes its packets: take it out first (ip link set dev %s nomaster)",
			master.Attrs().Name, attrs.Name)
	}
	for _, child := range s.children[attrs.Index] {
		switch above := s.links[child]; above.Type() {
		case "vlan", "macvlan", "macvtap", "ipvlan", "ipvtap":
			return fmt.Sprintf("has the %s interface %s, which takes packets before the pair: delete that first (ip link delete dev %s)",
				above.Type(), above.Attrs().Name, above.Attrs().Name)
		}
	}
	return ""
}
