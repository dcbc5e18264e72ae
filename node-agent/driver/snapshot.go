// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/nic"
	"github.com/ringcap/ringcap/node-agent/node"
)

// snapshot is the part of an interface's state that is lost with its driver, and restored under the next one.
type snapshot struct {
	Name string `json:"name"`
	// Up and Carrier tell whether the interface was up, and whether it had a link.
	Up      bool             `json:"up"`
	Carrier bool             `json:"carrier"`
	MTU     int              `json:"mtu"`
	TxQueue int              `json:"txQueue"`
	MAC     net.HardwareAddr `json:"mac"`
	Alias   string           `json:"alias,omitempty"`
	Master  string           `json:"master,omitempty"`
	// Addresses and Routes that the kernel does not make by itself.
	Addresses []netlink.Addr `json:"addresses,omitempty"`
	Routes    []route        `json:"routes,omitempty"`
	Settings  nic.Settings   `json:"settings"`
	// Sysctls by key; nil in records of agents that did not know them.
	Sysctls map[string]string `json:"sysctls,omitempty"`
}

// route has the parts of a netlink.Route with one next hop that matter and can be stored.
type route struct {
	Destination *net.IPNet `json:"destination,omitempty"`
	Source      net.IP     `json:"source,omitempty"`
	Gateway     net.IP     `json:"gateway,omitempty"`
	Table       int        `json:"table"`
	Priority    int        `json:"priority"`
	Scope       uint8      `json:"scope"`
	Protocol    int        `json:"protocol"`
	Type        int        `json:"type"`
	Flags       int        `json:"flags"`
	MTU         int        `json:"mtu,omitempty"`
	AdvMSS      int        `json:"advmss,omitempty"`
}

func (m *Manager) snapshot(name string) (snapshot, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return snapshot{}, fmt.Errorf("read interface %s: %w", name, err)
	}
	attrs := link.Attrs()
	shot := snapshot{
		Name: name, Up: attrs.RawFlags&unix.IFF_UP != 0, Carrier: hasLink(link), MTU: attrs.MTU, TxQueue: attrs.TxQLen,
		MAC: attrs.HardwareAddr, Alias: attrs.Alias,
	}
	shot.Master, _ = m.sys.uppers(name)
	if shot.Addresses, err = addressesOf(link); err != nil {
		return snapshot{}, fmt.Errorf("read the addresses of %s: %w", name, err)
	}
	if shot.Routes, err = routesOf(link); err != nil {
		return snapshot{}, err
	}
	if shot.Sysctls, err = m.sysctls.read(name); err != nil {
		return snapshot{}, fmt.Errorf("the sysctls of %s would be lost: %w", name, err)
	}
	shot.Settings, err = nic.ReadSettings(string(m.sys), name)
	return shot, err
}

func addressesOf(link netlink.Link) ([]netlink.Addr, error) {
	return node.Dump(func() ([]netlink.Addr, error) { return netlink.AddrList(link, netlink.FAMILY_ALL) })
}

// momentary has the flags of a route that show the present state of its link.
const momentary = unix.RTNH_F_LINKDOWN | unix.RTNH_F_DEAD

// routesOf lists the routes that a user or a daemon added. The kernel's own routes come with the addresses, and
// routers advertise theirs again.
func routesOf(link netlink.Link) ([]route, error) {
	var saved []route
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		all, err := node.Dump(func() ([]netlink.Route, error) {
			return netlink.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
		})
		if err != nil {
			return nil, fmt.Errorf("read the routes of %s: %w", link.Attrs().Name, err)
		}
		for _, r := range all {
			for _, hop := range r.MultiPath {
				if hop.LinkIndex == link.Attrs().Index {
					return nil, fmt.Errorf("the route to %v has several next hops, one of them over %s: it would not come back; remove it first", r.Dst, link.Attrs().Name)
				}
			}
			if r.LinkIndex != link.Attrs().Index || r.Protocol == unix.RTPROT_KERNEL || r.Protocol == unix.RTPROT_RA {
				continue
			}
			saved = append(saved, route{
				Destination: r.Dst, Source: r.Src, Gateway: r.Gw, Table: r.Table, Priority: r.Priority, Scope: uint8(r.Scope),
				Protocol: int(r.Protocol), Type: r.Type, Flags: r.Flags &^ momentary, MTU: r.MTU, AdvMSS: r.AdvMSS,
			})
		}
	}
	return saved, nil
}

// restore gives an interface the state of the snapshot. Its name may have changed. It may be called again. The error
// names what could not be restored. All else is restored.
func (m *Manager) restore(shot snapshot, now string) error {
	link, err := netlink.LinkByName(now)
	if err != nil {
		return fmt.Errorf("find interface %s: %w", now, err)
	}
	var errs []error
	try := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s of %s: %w", what, shot.Name, err))
		}
	}
	if now != shot.Name {
		try("name", errors.Join(netlink.LinkSetDown(link), netlink.LinkSetName(link, shot.Name)))
	}
	try("identity", setIdentity(link, shot))
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	// This comes before it is up, because sysctls apply to what it receives from then on.
	try("sysctls", m.sysctls.write(shot.Name, shot.Sysctls))
	try("settings", nic.WriteSettings(string(m.sys), shot.Name, shot.Settings))
	if shot.Master != "" {
		try("master", enslave(link, shot.Master))
	}
	if shot.Up {
		try("link", netlink.LinkSetUp(link))
		// Some drivers, such as igb, fill their table of RX queues when they are first up.
		try("settings", nic.WriteSettings(string(m.sys), shot.Name, shot.Settings))
	}
	for _, address := range shot.Addresses {
		try("address "+address.IPNet.String(), netlink.AddrReplace(link, cleanAddress(address)))
	}
	for _, r := range shot.Routes {
		try(fmt.Sprintf("route to %v", r.Destination), netlink.RouteReplace(r.over(link)))
	}
	return errors.Join(errs...)
}

// setIdentity sets the names and addresses that identify an interface.
func setIdentity(link netlink.Link, shot snapshot) error {
	attrs, errs := link.Attrs(), []error(nil)
	if !bytes.Equal(attrs.HardwareAddr, shot.MAC) {
		errs = append(errs, netlink.LinkSetHardwareAddr(link, shot.MAC))
	}
	if attrs.MTU != shot.MTU {
		errs = append(errs, netlink.LinkSetMTU(link, shot.MTU))
	}
	if attrs.TxQLen != shot.TxQueue {
		errs = append(errs, netlink.LinkSetTxQLen(link, shot.TxQueue))
	}
	if attrs.Alias != shot.Alias {
		errs = append(errs, netlink.LinkSetAlias(link, shot.Alias))
	}
	return errors.Join(errs...)
}

func enslave(link netlink.Link, master string) error {
	upper, err := netlink.LinkByName(master)
	if err != nil {
		return fmt.Errorf("find %s: %w", master, err)
	}
	return netlink.LinkSetMaster(link, upper)
}

// cleanAddress returns an address without the fields that only the kernel sets.
func cleanAddress(a netlink.Addr) *netlink.Addr {
	const kept = unix.IFA_F_NODAD | unix.IFA_F_HOMEADDRESS | unix.IFA_F_MANAGETEMPADDR | unix.IFA_F_NOPREFIXROUTE | unix.IFA_F_MCAUTOJOIN
	a.LinkIndex, a.Flags = 0, a.Flags&kept
	if a.IP.To4() == nil {
		return &a
	}
	// It must have four bytes, which it does not have when it comes from a file. Without one, netlink.AddrReplace
	// would make one up.
	if a.Broadcast = a.Broadcast.To4(); a.Broadcast == nil {
		a.Broadcast = net.IPv4zero.To4()
	}
	return &a
}

func (r route) over(link netlink.Link) *netlink.Route {
	return &netlink.Route{
		LinkIndex: link.Attrs().Index, Dst: r.Destination, Src: r.Source, Gw: r.Gateway, Table: r.Table, Priority: r.Priority,
		Scope: netlink.Scope(r.Scope), Protocol: netlink.RouteProtocol(r.Protocol), Type: r.Type, Flags: r.Flags,
		MTU: r.MTU, AdvMSS: r.AdvMSS,
	}
}

func hasLink(link netlink.Link) bool { return link.Attrs().RawFlags&unix.IFF_LOWER_UP != 0 }

// waitLink waits until an interface has a link.
func waitLink(name string, longest time.Duration) error {
	const pause = 50 * time.Millisecond
	for start := time.Now(); ; time.Sleep(pause) {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if hasLink(link) {
			slog.Debug("The link is back", "interface", name, "after", time.Since(start))
			return nil
		}
		if time.Since(start) > longest {
			return fmt.Errorf("%s had no link after %s", name, longest)
		}
	}
}
