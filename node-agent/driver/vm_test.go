// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/ringcap/ringcap/node-agent/nic"
	"github.com/ringcap/ringcap/node-agent/plan"
)

/*
 * In a VM (see node-agent/tests) with two ports of one stock driver, joined by a cable, and its aware driver loaded:
 *
 *	+----------+            +----------+
 *	| mirror7  |---cable----|  other   |
 *	| igb, or igb_ringcap   |  igb     |
 *	+----------+            +----------+
 *
 * mirror7 has something of everything that a change of driver takes from an interface.
 */
type bench struct {
	t          *testing.T
	m          *Manager
	hw         hardware
	otherIndex int
	stock      string
	now        time.Time
	// noLink: none is found.
	noLink bool
}

func newBench(t *testing.T) *bench {
	stock := os.Getenv("RINGCAP_STOCK_DRIVER")
	if stock == "" {
		t.Skip("needs NICs of its own: node-agent/tests/run")
	}
	b := &bench{t: t, stock: stock, now: time.Unix(0, 0).UTC(), m: New(filepath.Join(t.TempDir(), "drivers.json"), "boot", "/sys", procSysNet)}
	names := b.ports()
	require.Len(t, names, 2)
	rename(t, names[0], "mirror7")
	rename(t, names[1], "other")
	var err error
	b.hw, err = b.m.sys.of("mirror7")
	require.NoError(t, err)
	require.Equal(t, stock, b.m.sys.bound(b.hw))
	other := link(t, "other")
	b.otherIndex = other.Attrs().Index
	require.NoError(t, netlink.LinkSetUp(other))
	b.dress()
	return b
}

// ports are the interfaces of the stock driver, mirror7 first when it is there already.
func (b *bench) ports() []string {
	links, err := netlink.LinkList()
	require.NoError(b.t, err)
	var names []string
	for _, l := range links {
		if h, err := b.m.sys.of(l.Attrs().Name); err == nil && b.m.sys.bound(h) == b.stock {
			names = append(names, l.Attrs().Name)
		}
	}
	if len(names) == 2 && names[1] == "mirror7" {
		names[0], names[1] = names[1], names[0]
	}
	return names
}

func link(t *testing.T, name string) netlink.Link {
	t.Helper()
	l, err := netlink.LinkByName(name)
	require.NoError(t, err)
	return l
}

func rename(t *testing.T, from, to string) {
	if from != to {
		require.NoError(t, netlink.LinkSetDown(link(t, from)))
		require.NoError(t, netlink.LinkSetName(link(t, from), to))
	}
}

// dress gives mirror7 addresses, routes, another MAC and MTU, and settings and sysctls that are no driver's default.
func (b *bench) dress() {
	t, l := b.t, link(b.t, "mirror7")
	mac, err := net.ParseMAC("02:00:00:00:77:77")
	require.NoError(t, err)
	require.NoError(t, netlink.LinkSetHardwareAddr(l, mac))
	require.NoError(t, netlink.LinkSetMTU(l, 1400))
	require.NoError(t, netlink.LinkSetTxQLen(l, 555))
	require.NoError(t, netlink.LinkSetAlias(l, "span port"))
	setSysctls(t, [2]string{"ipv6/conf/accept_ra", "0"}, [2]string{"ipv6/neigh/ucast_solicit", "7"}, [2]string{"ipv4/conf/arp_announce", "2"})
	require.NoError(t, netlink.LinkSetUp(l))
	for _, text := range []string{"10.9.0.1/24", "fd00:9::1/64"} {
		address, err := netlink.ParseAddr(text)
		require.NoError(t, err)
		require.NoError(t, netlink.AddrReplace(l, address))
	}
	_, to, err := net.ParseCIDR("10.99.0.0/16")
	require.NoError(t, err)
	require.NoError(t, netlink.RouteReplace(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: to, Gw: net.IPv4(10, 9, 0, 2), Priority: 7, Table: 100}))
	settings, err := nic.ReadSettings("/sys", "mirror7")
	require.NoError(t, err)
	settings["rxRingSize"], settings["rx-gro"], settings["promiscuous"] = "512", "off", "on"
	if settings["rxQueues"] != "" {
		settings["rxQueues"] = "2"
		delete(settings, "rss.queues")
	}
	require.NoError(t, nic.WriteSettings("/sys", "mirror7", settings))
	require.NoError(t, waitLink("mirror7", 20*time.Second))
}

// look is all of mirror7 that must stay, but for the link, which may come later.
func (b *bench) look() snapshot {
	b.t.Helper()
	shot, err := b.m.snapshot("mirror7")
	require.NoError(b.t, err)
	shot.Carrier = false
	for i := range shot.Addresses {
		shot.Addresses[i] = *cleanAddress(shot.Addresses[i])
	}
	return shot
}

func (b *bench) desired() map[string]plan.DesiredDriver {
	return map[string]plan.DesiredDriver{"mirror7": {Driver: b.stock + Suffix, Ring: "r", LinkTimeout: 30 * time.Second}}
}

func (b *bench) apply(wanted map[string]plan.DesiredDriver, moves bool) {
	b.t.Helper()
	m := New(b.m.records.Path, "boot", "/sys", procSysNet)
	m.now = func() time.Time { return b.now }
	if b.noLink {
		m.waitLink = func(string, time.Duration) error { return errors.New("no link") }
	}
	moved, err := m.Apply(wanted)
	require.NoError(b.t, err)
	require.Equal(b.t, moves, moved)
}

func (b *bench) fact() plan.DriverFact {
	b.t.Helper()
	facts, err := New(b.m.records.Path, "boot", "/sys", procSysNet).Describe()
	require.NoError(b.t, err)
	return facts["mirror7"]
}

// isStock checks that all is as it was, and the other port was never touched.
func (b *bench) isStock(before snapshot) {
	b.t.Helper()
	assert.Equal(b.t, b.stock, b.m.sys.bound(b.hw))
	assert.Equal(b.t, before, b.look())
	assert.Equal(b.t, b.otherIndex, link(b.t, "other").Attrs().Index)
}

func TestVMReplacedAndPutBack(t *testing.T) {
	b := newBench(t)
	before := b.look()
	require.NotEmpty(t, before.Routes)
	fact := b.fact()
	assert.False(t, fact.Aware)
	assert.Equal(t, b.stock+Suffix, fact.Replacement, fact.Obstacle)

	b.apply(b.desired(), true)
	fact = b.fact()
	assert.True(t, fact.Aware)
	assert.Equal(t, b.stock+Suffix, fact.Name)
	assert.Equal(t, b.stock, fact.Stock)
	assert.Equal(t, before, b.look())
	assert.Equal(t, b.otherIndex, link(t, "other").Attrs().Index)
	require.NoError(t, waitLink("mirror7", 0), "the link is waited for")
	b.apply(b.desired(), false)

	b.apply(nil, true)
	b.isStock(before)
	assert.NoFileExists(t, b.m.records.Path)
}

// Without IPv6, as sensors' ports often are, mirror7 has it at no time: what it heard in between would give it addresses.
func TestVMWithoutIPv6(t *testing.T) {
	b := newBench(t)
	setSysctls(t, [2]string{"ipv6/conf/disable_ipv6", "1"})
	before := b.look()
	heard, done := make(chan netlink.AddrUpdate, 1000), make(chan struct{})
	require.NoError(t, netlink.AddrSubscribe(heard, done))
	b.apply(b.desired(), true)
	assert.Equal(t, before, b.look())
	b.apply(nil, true)
	b.isStock(before)
	close(done)
	for update := range heard {
		given := update.NewAddr && update.LinkAddress.IP.To4() == nil && update.LinkIndex != b.otherIndex
		assert.False(t, given, update)
	}
	setSysctls(t, [2]string{"ipv6/conf/disable_ipv6", "0"})
}

// The agent may die at any step: the next one converges to the aware driver while it is desired, else to the stock one.
func TestVMKilledInBetween(t *testing.T) {
	b := newBench(t)
	before := b.look()
	shot, err := b.m.snapshot("mirror7")
	require.NoError(t, err)
	aware := b.stock + Suffix
	deaths := map[string]func(){
		"noted":   func() {},
		"unbound": func() { require.NoError(t, b.m.sys.write(b.hw, b.m.sys.bound(b.hw), "unbind")) },
		"bound":   func() { require.NoError(t, b.m.sys.bind(b.hw, aware)) },
	}
	for _, death := range []struct {
		step      phase
		at        string
		isDesired bool
	}{
		{replacing, "noted", false}, {replacing, "unbound", true}, {replacing, "bound", false}, {restoring, "unbound", true}, {restoring, "bound", false},
	} {
		have := map[string]replacement{}
		require.NoError(t, b.m.note(have, replacement{hardware: b.hw, Stock: b.stock, Aware: aware, Phase: death.step, Before: shot}))
		deaths[death.at]()
		if death.isDesired && death.step == replacing {
			b.apply(b.desired(), true)
			assert.Equal(t, aware, b.m.sys.bound(b.hw), death)
			assert.Equal(t, before, b.look(), death)
		}
		b.apply(nil, true)
		b.isStock(before)
	}
}

// A link that does not come back in time brings the stock driver back. It is tried again later, and may do better then.
func TestVMRolledBack(t *testing.T) {
	b := newBench(t)
	before := b.look()
	b.noLink = true
	b.apply(b.desired(), true)
	b.isStock(before)
	assert.Equal(t, "no link", b.fact().Failed)
	assert.Equal(t, b.now.Add(firstPause), b.fact().NextTry)
	b.now = b.now.Add(firstPause - 1)
	b.apply(b.desired(), false)
	b.now = b.now.Add(1)
	require.NoError(t, waitLink("mirror7", 20*time.Second), "one that had none is not waited for")
	b.apply(b.desired(), true)
	b.isStock(before)
	assert.Equal(t, b.now.Add(pauseFactor*firstPause), b.fact().NextTry)
	require.NoError(t, waitLink("mirror7", 20*time.Second))
	b.now, b.noLink = b.now.Add(pauseFactor*firstPause), false
	b.apply(b.desired(), true)
	assert.Equal(t, before, b.look())
	assert.Equal(t, b.stock, b.fact().Stock)
	assert.Empty(t, b.fact().Failed)
	b.apply(nil, true)
	b.isStock(before)

	absent := map[string]plan.DesiredDriver{"mirror7": {Driver: "nothing_ringcap", LinkTimeout: time.Second}}
	b.apply(absent, true)
	assert.Equal(t, "driver nothing_ringcap is not loaded", b.fact().Failed)
	b.isStock(before)
	b.apply(nil, false)
	assert.Empty(t, b.fact().Failed, "not desired any more")
}

// The agent does not fight for ever with somebody who binds another driver.
func TestVMTakenAway(t *testing.T) {
	b := newBench(t)
	before := b.look()
	b.apply(b.desired(), true)
	require.NoError(t, b.m.change(replacement{hardware: b.hw, Before: before}, b.stock))
	b.apply(b.desired(), true)
	b.isStock(before)
	assert.Equal(t, `somebody else gave it driver "igb"`, b.fact().Failed)
	b.apply(b.desired(), false)
	b.now = b.fact().NextTry
	b.apply(b.desired(), true)
	assert.Equal(t, b.stock, b.fact().Stock)
	require.NoError(t, b.m.change(replacement{hardware: b.hw, Before: before}, b.stock))
	b.apply(b.desired(), true)
	assert.Equal(t, b.now.Add(pauseFactor*firstPause), b.fact().NextTry, "less and less often")
	b.apply(nil, false)
	b.isStock(before)
	assert.NoFileExists(t, b.m.records.Path)
}

// What would be lost is found before anything is changed, and looked for again.
func TestVMPostponed(t *testing.T) {
	b := newBench(t)
	_, to, err := net.ParseCIDR("10.98.0.0/16")
	require.NoError(t, err)
	hop := func(via string) *netlink.NexthopInfo {
		return &netlink.NexthopInfo{LinkIndex: link(t, "mirror7").Attrs().Index, Gw: net.ParseIP(via)}
	}
	lost := &netlink.Route{Dst: to, MultiPath: []*netlink.NexthopInfo{hop("10.9.0.2"), hop("10.9.0.3")}}
	require.NoError(t, netlink.RouteAdd(lost))
	before := link(t, "mirror7").Attrs().Index
	for range maxTries + 1 {
		b.apply(b.desired(), true)
		assert.Contains(t, b.fact().Failed, "several next hops")
		assert.Equal(t, before, link(t, "mirror7").Attrs().Index, "never touched")
		b.now = b.fact().NextTry
	}
	require.NoError(t, netlink.RouteDel(lost))
	b.apply(b.desired(), true)
	assert.Equal(t, b.stock, b.fact().Stock)
	b.apply(nil, true)
}

func TestVMObstacles(t *testing.T) {
	b := newBench(t)
	require.NoError(t, netlink.LinkAdd(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "soft"}}))
	facts, err := b.m.Describe()
	require.NoError(t, err)
	assert.Contains(t, facts["soft"].Obstacle, "no device on a bus")
	require.NoError(t, netlink.LinkDel(link(t, "soft")))

	require.NoError(t, netlink.LinkAdd(&netlink.Macvlan{LinkAttrs: netlink.LinkAttrs{Name: "upper", ParentIndex: link(t, "mirror7").Attrs().Index}}))
	assert.Equal(t, "upper on top of it would be lost", b.fact().Obstacle)
	assert.Empty(t, b.fact().Replacement)
	require.NoError(t, netlink.LinkDel(link(t, "upper")))

	numvfs := b.m.sys.device(b.hw, "sriov_numvfs")
	if _, err := os.Stat(numvfs); err == nil && strings.HasPrefix(b.stock, "igb") {
		require.NoError(t, os.WriteFile(numvfs, []byte("1"), 0))
		assert.Contains(t, b.fact().Obstacle, "virtual functions")
		require.NoError(t, os.WriteFile(numvfs, []byte("0"), 0))
	}
	assert.Empty(t, b.fact().Obstacle)
}
