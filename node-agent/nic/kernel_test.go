// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/plan"
	"github.com/ringcap/ringcap/node-agent/testnet"
)

// newNamespace puts the test into a network namespace of its own, and returns where its sysfs is.
func newNamespace(t *testing.T) string {
	t.Helper()
	testnet.Enter(t)
	sys := t.TempDir()
	require.NoError(t, unix.Mount("sysfs", sys, "sysfs", 0, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(sys, unix.MNT_DETACH)) })
	return sys
}

// lab is a pair of interfaces and a Manager of them.
type lab struct {
	t       *testing.T
	m       *Manager
	sys     string
	tunable map[string]tunable
}

func newLab(t *testing.T) *lab {
	sys := newNamespace(t)
	addPair(t)
	l := &lab{t: t, m: New(filepath.Join(t.TempDir(), "nic.json"), "boot", sys), sys: sys, tunable: map[string]tunable{}}
	for _, k := range l.m.device.tunables {
		l.tunable[k.name] = k
	}
	return l
}

func addPair(t *testing.T) {
	t.Helper()
	require.NoError(t, netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: "eth0", NumRxQueues: 4, NumTxQueues: 4}, PeerName: "far", PeerNumTxQueues: 4, PeerNumRxQueues: 4,
	}))
	far, err := netlink.LinkByName("far")
	require.NoError(t, err)
	require.NoError(t, netlink.LinkSetUp(far))
}

// all is what every tunable of eth0 reads; those that veth does not have are left out.
func (l *lab) all() map[string]string {
	values := map[string]string{}
	for name, k := range l.tunable {
		if value, err := k.read("eth0"); err == nil {
			values[name] = value
		} else {
			require.ErrorIs(l.t, err, errNotSupported, name)
		}
	}
	return values
}

func TestKernelSetsAndRestores(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.tunable["rx-gro"].write("eth0", on))
	was := l.all()
	wanted := plan.NICSettings{
		plan.SettingPromiscuous: {Value: on}, plan.SettingOffloads: {Value: off}, plan.SettingRxQueues: {Value: "2"},
		plan.SettingVLANOffload: {Value: off},
	}
	apply(t, l.m, wanted)
	is := l.all()
	for name, value := range map[string]string{linkName: on, "promiscuous": on, "rx-gro": off, "rxQueues": "2", "rx-vlan-hw-parse": off} {
		assert.Equal(t, value, is[name], name)
	}
	apply(t, l.m)
	assert.Equal(t, was, l.all())
	_, _, err := l.m.device.identify("none")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// Software has no hardware that would tell it from its namesake: what one was like is nothing to the next.
func TestKernelSoftwareMadeAnew(t *testing.T) {
	l := newLab(t)
	_, hardware, err := l.m.device.identify("eth0")
	require.NoError(t, err)
	assert.Empty(t, hardware)
	apply(t, l.m, plan.NICSettings{plan.SettingPromiscuous: {Value: on}})
	first, err := netlink.LinkByName("eth0")
	require.NoError(t, err)
	require.NoError(t, netlink.LinkDel(first))
	addPair(t)
	require.NoError(t, l.tunable["promiscuous"].write("eth0", on))
	apply(t, l.m)
	assert.Equal(t, on, l.all()["promiscuous"], "somebody else's")
}

func isUp(l *lab) bool { return l.all()[linkName] == on }

func TestKernelLinkGoesDownAgain(t *testing.T) {
	l := newLab(t)
	apply(t, l.m, plan.NICSettings{})
	assert.True(t, isUp(l))
	apply(t, l.m)
	assert.False(t, isUp(l), "as it was")
}

// What its owner uses by now is not taken down.
func TestKernelLinkInUseStaysUp(t *testing.T) {
	for what, use := range map[string]func(eth0 netlink.Link){
		"address": func(eth0 netlink.Link) {
			address, err := netlink.ParseAddr("192.0.2.1/24")
			require.NoError(t, err)
			require.NoError(t, netlink.AddrAdd(eth0, address))
		},
		"bridge": func(eth0 netlink.Link) {
			bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
			require.NoError(t, netlink.LinkAdd(bridge))
			require.NoError(t, netlink.LinkSetMaster(eth0, bridge))
		},
	} {
		t.Run(what, func(t *testing.T) {
			l := newLab(t)
			apply(t, l.m, plan.NICSettings{})
			eth0, err := netlink.LinkByName("eth0")
			require.NoError(t, err)
			use(eth0)
			apply(t, l.m)
			assert.True(t, isUp(l))
		})
	}
}

// Another one of the name is captured before its owner has brought it up.
func TestKernelLinkMadeAgainStaysUp(t *testing.T) {
	l := newLab(t)
	apply(t, l.m, plan.NICSettings{})
	eth0, err := netlink.LinkByName("eth0")
	require.NoError(t, err)
	require.NoError(t, netlink.LinkDel(eth0))
	apply(t, l.m)
	addPair(t)
	apply(t, l.m, plan.NICSettings{})
	apply(t, l.m)
	assert.True(t, isUp(l))
}

// Threads poll the queues on the CPUs that they are given, and everything is as before when they are not wanted any more.
func TestKernelThreadedPolling(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.tunable[linkName].write("eth0", on))
	// veth polls while it merges packets.
	require.NoError(t, l.tunable["rx-gro"].write("eth0", on))
	was := l.all()
	last := "0"
	if runtime.NumCPU() > 1 {
		last = "1"
	}
	apply(t, l.m, plan.NICSettings{plan.SettingThreadedPolling: {Value: on}, plan.SettingPollingCPUs: {Value: last}})
	threads, err := pollingThreads(l.sys, "eth0")
	require.NoError(t, err)
	require.NotEmpty(t, threads)
	for _, thread := range threads {
		assert.Equal(t, last, parsePairs(l.all()["threadedPolling.cpus"])[thread.name], thread.name)
	}
	apply(t, l.m)
	assert.Equal(t, was, l.all())
}

// What veth cannot do is said, setting by setting.
func TestKernelRefuses(t *testing.T) {
	l := newLab(t)
	outcome := tryApply(t, l.m, plan.NICSettings{
		plan.SettingRxRingSize: {Value: "512", Ring: "r"}, plan.SettingRSSHash: {Value: "Symmetric"}, plan.SettingRSSFields: {Value: "Addresses"},
		plan.SettingRSSQueues: {Value: "2"}, plan.SettingRxQueues: {Value: "64"}, plan.SettingOffloads: {Value: off},
		plan.SettingThreadedPolling: {Value: on},
	})["eth0"]
	require.NoError(t, outcome.Err)
	problems := map[plan.Setting]Problem{}
	for _, s := range outcome.Settings {
		problems[s.Setting] = s.Problem
		if s.Problem != "" {
			assert.NotEmpty(t, s.Message)
		}
	}
	assert.Equal(t, map[plan.Setting]Problem{
		plan.SettingRxRingSize: ProblemNotSupported, plan.SettingRSSHash: ProblemNotSupported, plan.SettingRSSFields: ProblemNotSupported,
		plan.SettingRSSQueues: ProblemNotSupported, plan.SettingRxQueues: ProblemOutOfRange, plan.SettingOffloads: "",
		plan.SettingThreadedPolling: ProblemNotSupported,
	}, problems)
}

func TestCPULists(t *testing.T) {
	cpus, err := parseCPUs("0-2,5")
	require.NoError(t, err)
	assert.Equal(t, []int{0, 1, 2, 5}, cpus)
	for _, bad := range []string{"", "a", "2-1", "-1", "0-", "0,", "0-1024"} {
		_, err := parseCPUs(bad)
		assert.Error(t, err, bad)
	}
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	assert.Equal(t, "0-2,5", formatCPUs(&set))
	assert.Equal(t, map[string]string{"napi/a-1": "2", "napi/a-2": "3", "napi/a-3": "2"},
		assign([]thread{{"napi/a-1", 10}, {"napi/a-2", 11}, {"napi/a-3", 12}}, []int{2, 3}))
}

func TestTables(t *testing.T) {
	assert.Equal(t, defaultTable, tableText([]uint32{0, 1, 2, 0, 1, 2}, 3))
	assert.Equal(t, "0,1,0,1,0,1", tableText(spreadOver(6, 2), 3))
	assert.Equal(t, defaultTable, tableText(spreadOver(6, 3), 3))
	assert.Equal(t, []byte{0x6d, 0x5a, 0x6d}, symmetricKey(3))
}
