// SPDX-License-Identifier: Apache-2.0

package node

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/testnet"
)

// world is a network namespace that a test puts together.
type world struct {
	*testing.T
	own netns.NsHandle
}

func newWorld(t *testing.T) world { return world{t, testnet.Enter(t)} }

// pod is an interface with its other end in a network namespace of its own.
func (w world) pod(name string) netlink.Link {
	w.Helper()
	pod := w.veth(name, name+"-pod")
	elsewhere, err := netns.New()
	require.NoError(w, err)
	w.Cleanup(func() { elsewhere.Close() })
	require.NoError(w, netns.Set(w.own))
	require.NoError(w, netlink.LinkSetNsFd(w.named(name+"-pod"), int(elsewhere)))
	return pod
}

// withIPv6 lets an interface have its addresses.
func (w world) withIPv6(link netlink.Link) {
	w.Helper()
	require.NoError(w, os.WriteFile("/proc/sys/net/ipv6/conf/"+link.Attrs().Name+"/disable_ipv6", []byte("0"), 0))
}

func (w world) add(link netlink.Link) netlink.Link {
	w.Helper()
	require.NoError(w, netlink.LinkAdd(link))
	require.NoError(w, netlink.LinkSetUp(link))
	return link
}

// nic is an interface with nothing above or below it.
func (w world) nic(name string) netlink.Link {
	return w.add(&netlink.Ifb{LinkAttrs: netlink.LinkAttrs{Name: name}})
}

func (w world) veth(name, peer string) netlink.Link {
	return w.add(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: peer})
}

func (w world) bridge(name string, ports ...netlink.Link) netlink.Link {
	bridge := w.add(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}})
	for _, port := range ports {
		require.NoError(w, netlink.LinkSetMaster(port, bridge))
	}
	return bridge
}

// upper is an interface over another, as a VLAN is, in a way that every kernel of the tests has.
func (w world) upper(name string, below netlink.Link) netlink.Link {
	return w.add(&netlink.Macvlan{LinkAttrs: netlink.LinkAttrs{Name: name, ParentIndex: below.Attrs().Index}, Mode: netlink.MACVLAN_MODE_BRIDGE})
}

func (w world) address(link netlink.Link, text string) {
	w.Helper()
	address, err := netlink.ParseAddr(text)
	require.NoError(w, err)
	require.NoError(w, netlink.AddrAdd(link, address))
}

func (w world) named(name string) netlink.Link {
	w.Helper()
	link, err := netlink.LinkByName(name)
	require.NoError(w, err)
	return link
}

// is checks what carries the node's traffic. Without the loopback, which always does when it is up.
func (w world) is(want map[string]string, apiServer ...net.IP) {
	w.Helper()
	found, err := Traffic(apiServer)
	require.NoError(w, err)
	delete(found, "lo")
	assert.Equal(w, want, found)
}

func TestAddressesMakeAnInterfaceTheNodes(t *testing.T) {
	w := newWorld(t)
	eth0, mirror0 := w.nic("eth0"), w.nic("mirror0")
	w.is(map[string]string{})
	w.withIPv6(mirror0)
	w.address(mirror0, "fe80::1/64")
	w.address(mirror0, "169.254.7.7/16")
	w.is(map[string]string{})
	w.address(eth0, "10.0.0.1/24")
	w.is(map[string]string{"eth0": "has the address 10.0.0.1/24"})
	w.address(mirror0, "2001:db8::1/64")
	w.is(map[string]string{"eth0": "has the address 10.0.0.1/24", "mirror0": "has the address 2001:db8::1/64"})
}

// advertise tries once to send a router advertisement from its link-local address: hosts give themselves addresses of
// 2001:db8:7::/64.
func (w world) advertise(router netlink.Link) {
	w.Helper()
	const hour = "\x00\x00\x0e\x10"
	const none = "\x00\x00\x00\x00"
	const header = "\x86\x00\x00\x00" + none + none + none // no default route, by a lifetime of 0
	const prefix = "\x03\x04\x40\xc0" + hour + hour + none + "\x20\x01\x0d\xb8\x00\x07\x00\x00" + none + none
	socket, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6)
	require.NoError(w, err)
	defer unix.Close(socket)
	require.NoError(w, unix.SetsockoptInt(socket, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, 255))
	require.NoError(w, unix.SetsockoptInt(socket, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_LOOP, 0))
	everybody := &unix.SockaddrInet6{Addr: [16]byte(net.IPv6linklocalallnodes), ZoneId: uint32(router.Attrs().Index)}
	// It fails until the link is ready.
	_ = unix.Sendto(socket, []byte(header+prefix), 0, everybody)
}

// An address from a router's advertisement, which a mirror port may receive, is reported as such.
func TestAddressFromARouterIsSaidToBe(t *testing.T) {
	w := newWorld(t)
	card, router := w.veth("card0.7", "router0"), w.named("router0")
	w.withIPv6(card)
	w.withIPv6(router)
	sender := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP("fe80::1"), Mask: net.CIDRMask(64, 128)}, Flags: unix.IFA_F_NODAD}
	require.NoError(t, netlink.AddrAdd(router, sender))
	require.NoError(t, netlink.LinkSetUp(router))
	var own map[string]string
	for start := time.Now(); own["card0.7"] == "" && time.Since(start) < time.Minute; time.Sleep(50 * time.Millisecond) {
		w.advertise(router)
		var err error
		own, err = Traffic(nil)
		require.NoError(t, err)
	}
	assert.Regexp(t, `^has the address 2001:db8:7:[0-9a-f:]+/64 from a router advertisement \(.*: `+
		`set net\.ipv6\.conf\.card0/7\.disable_ipv6=1, or accept_ra=0 and delete the address\)$`, own["card0.7"])

	// One with another address may well use IPv6.
	w.address(card, "10.0.0.1/24")
	w.is(map[string]string{"card0.7": "has the address 10.0.0.1/24", "router0": "is below card0.7, which has the address 10.0.0.1/24"})
}

// On a node with its address on the loopback device, the interfaces have routes only: of one hop or several, in any table.
func TestRoutesMakeAnInterfaceTheNodes(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, netlink.LinkSetUp(w.named("lo")))
	w.address(w.named("lo"), "10.9.9.9/32")
	up0, up1, up2, up3 := w.nic("up0"), w.nic("up1"), w.nic("up2"), w.nic("up3")
	w.nic("mirror0")
	everything := &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
	require.NoError(t, netlink.RouteAdd(&netlink.Route{Dst: everything, Scope: unix.RT_SCOPE_LINK, MultiPath: []*netlink.NexthopInfo{
		{LinkIndex: up0.Attrs().Index}, {LinkIndex: up1.Attrs().Index},
	}}))
	require.NoError(t, netlink.RouteAdd(&netlink.Route{Dst: everything, LinkIndex: up2.Attrs().Index, Table: 100, Scope: unix.RT_SCOPE_LINK}))
	require.NoError(t, netlink.RouteAdd(&netlink.Route{
		Dst: &net.IPNet{IP: net.IPv4(172, 16, 0, 0), Mask: net.CIDRMask(16, 32)}, LinkIndex: up3.Attrs().Index, Scope: unix.RT_SCOPE_LINK,
	}))
	routes := map[string]string{"up0": "has a default route", "up1": "has a default route", "up2": "has a default route"}
	w.is(routes)
	routes["up3"] = "is on the way to the API server 172.16.0.1"
	w.is(routes, net.IPv4(172, 16, 0, 1))
}

/*
 *	br0 10.0.0.1    eth4.100 10.2.0.1    eth5 10.3.0.1    host0 10.4.0.1 == port0    mirror
 *	 |     |           |                    |                                |         |
 *	eth0  pod         eth4               eth5.100                    eth6 - br6 - eth7  mirror0
 */
func TestInterfacesBelowAndAboveTheNodes(t *testing.T) {
	w := newWorld(t)
	eth4, eth5 := w.nic("eth4"), w.nic("eth5")
	w.address(w.bridge("br0", w.nic("eth0"), w.pod("pod")), "10.0.0.1/24")
	w.address(w.upper("eth4.100", eth4), "10.2.0.1/24")
	w.address(eth5, "10.3.0.1/24")
	w.upper("eth5.100", eth5)
	w.address(w.veth("host0", "port0"), "10.4.0.1/24")
	w.bridge("br6", w.named("port0"), w.nic("eth6"), w.nic("eth7"))
	w.bridge("mirror", w.nic("mirror0"))
	const br0, vlan = "has the address 10.0.0.1/24", "has the address 10.2.0.1/24"
	const host0 = "is below host0, which has the address 10.4.0.1/24"
	w.is(map[string]string{
		"br0": br0, "eth0": "is below br0, which " + br0, "pod": "is below br0, which " + br0,
		"eth4.100": vlan, "eth4": "is below eth4.100, which " + vlan,
		"eth5": "has the address 10.3.0.1/24", "eth5.100": "is above eth5, which has the address 10.3.0.1/24",
		"host0": "has the address 10.4.0.1/24", "port0": host0, "br6": host0, "eth6": host0, "eth7": host0,
	})
}

// Open vSwitch's bridges have addresses, and ports a master that is none of them.
func TestPortsOfOpenVSwitch(t *testing.T) {
	link := func(index int, name, kind string, master int) netlink.Link {
		attrs := netlink.NewLinkAttrs()
		attrs.Index, attrs.Name, attrs.MasterIndex = index, name, master
		return &netlink.GenericLink{LinkAttrs: attrs, LinkType: kind}
	}
	s := newStack([]netlink.Link{
		link(2, "eth0", "device", 4), link(3, "mirror0", "device", 0), link(4, "ovs-system", typeOVS, 0), link(5, "br-ex", typeOVS, 0),
	})
	assert.Equal(t, map[string]string{
		"br-ex": "has an address", "eth0": "is below br-ex, which has an address",
	}, s.carriers(map[int]string{5: "has an address"}))
	assert.Empty(t, s.carriers(map[int]string{9: "is gone"}))
}
