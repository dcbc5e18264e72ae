// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/safchain/ethtool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// drift is what somebody does to what the agent made.
type drift struct {
	name string
	do   func(*machine)
	// stops: mirror0 is not captured until the agent has repaired it.
	stops bool
	// recreated: the object's counters start again at 0.
	recreated bool
}

// onBoth are drifts of both engines.
var onBoth = []drift{
	{name: "promiscuous mode off", do: func(m *machine) { require.NoError(m.t, netlink.SetPromiscOff(m.link("mirror0"))) }},
	{name: "interface down", stops: true, do: func(m *machine) { require.NoError(m.t, netlink.LinkSetDown(m.link("mirror0"))) }},
	{name: "merging of packets on", do: func(m *machine) { m.feature("mirror0", "rx-gro", true) }},
	{name: "what interfaces were like", do: func(m *machine) { m.unlink("run", "nic.json") }},
	{name: "names of interfaces", do: func(m *machine) { m.unlink("run", "ids", "interfaces") }},
}

var onEBPF = []drift{
	{name: "tap detached", stops: true, do: func(m *machine) { m.detach("mirror", "mirror0") }},
	{name: "another ring's tap detached", do: func(m *machine) { m.detach("fresh", "other1") }},
	{name: "another program in a tap", stops: true, do: (*machine).replaceProgram},
	{name: "queueing discipline removed", do: (*machine).removeQdisc},
	{name: "pins of a ring", do: func(m *machine) { m.unlink("bpf", "ringcap", "v3", "rings", "mirror") }},
	{name: "pins of clusters", do: func(m *machine) { m.unlink("bpf", "ringcap", "v3", "clusters") }},
	{name: "pin of a queue", do: func(m *machine) { m.unlinkAll("bpf", "ringcap", "v3", "clusters", "ids_*", "q1_data") }},
	{name: "pin of a description", do: func(m *machine) { m.unlinkAll("bpf", "ringcap", "v3", "*", "*", "description") }},
	{name: "pins of rules", do: func(m *machine) { m.unlinkAll("bpf", "ringcap", "v3", "rings", "mirror", "rules_*", "ring_*") }},
	{name: "pins of tables", do: func(m *machine) { m.unlink("bpf", "ringcap", "v3", "tables") }},
	{name: "all pins", do: func(m *machine) { m.unlink("bpf", "ringcap") }},
	{name: "socket of a queue", do: func(m *machine) { m.unlink("run", "ids", "0", "handover") }},
	{name: "run folder", do: func(m *machine) { m.unlink("run") }},
}

// Somebody else removes or changes what the agent made, a kind at a time: it is as it was when the agent has looked again,
// consumers have lost nothing but what passed by meanwhile, counters go on, and what is another's stays as it is.
func TestDriftIsRepaired(t *testing.T) {
	for engine, drifts := range map[v1.Engine][]drift{v1.EngineEBPF: onEBPF, v1.EngineKernelModule: onModule} {
		t.Run(string(engine), func(t *testing.T) {
			if _, err := os.Stat("/sys/module/ringcap"); err != nil && engine == v1.EngineKernelModule {
				t.Skip("needs the kernel module: node-agent/tests/kills has it")
			}
			runDrifts(t, engine, append(onBoth[:len(onBoth):len(onBoth)], drifts...))
		})
	}
}

func runDrifts(t *testing.T, engine v1.Engine, drifts []drift) {
	m := newMachine(t)
	m.timeout = 40 * time.Second
	m.otherCable()
	m.foreignPrograms()
	foreign := m.foreignPin()
	m.feature("mirror0", "rx-gro", true)
	agent := m.toState(engine, 1)
	consumers := []*process{m.consumer(0), m.consumer(1)}
	m.attended = true
	if engine == v1.EngineKernelModule {
		consumers = append(consumers, m.foreignRing())
	}
	// Somebody sets what no ring asks for.
	m.feature("mirror0", "tx-generic-segmentation", false)
	want := m.settledDump(agent)
	for _, d := range drifts {
		t.Log(time.Now().Format("05.000"), d.name)
		before, counted := m.sums(), m.sent
		stop := func() {}
		if !d.stops {
			stop = m.traffic()
		}
		d.do(m)
		m.look()
		m.sameAs(want, agent, d.name)
		stop()
		m.send(64)
		m.goesOn(d, before, m.sent-counted)
	}
	m.allRead(consumers)
	assert.NoError(t, foreign.Unpin(), "another's pin")
	agent.interrupt(unix.SIGTERM)
}

// look has the agent look again, as it does by itself twice a minute.
func (m *machine) look() { m.manifest("no-manifest", time.Now().String()) }

// sums are the status's counters of the busy ring and of its consumers' queues.
type sums struct{ seen, delivered, dropped int64 }

func sumsOf(s v1.NodeCaptureStatus) sums {
	cluster := clusterOf(s, "ids")
	queues := cluster.Totals()
	return sums{mirrored(s).Seen, queues.Delivered, queues.DroppedPackets()}
}

func (m *machine) sums() sums { return sumsOf(m.status()) }

// goesOn waits until the counters have grown by what was sent.
func (m *machine) goesOn(d drift, before sums, sent int) {
	m.t.Helper()
	want := sums{before.seen + int64(sent), before.delivered + int64(sent), before.dropped}
	var got sums
	for deadline := time.Now().Add(m.timeout); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		m.look()
		if got = m.sums(); d.recreated {
			want.seen = got.seen
		}
		if got == want {
			return
		}
		require.LessOrEqual(m.t, got.seen, want.seen, d.name)
	}
	require.Equal(m.t, want, got, d.name)
}

func (m *machine) link(name string) netlink.Link {
	found, err := netlink.LinkByName(name)
	require.NoError(m.t, err)
	return found
}

func (m *machine) feature(iface, name string, on bool) {
	tool, err := ethtool.NewEthtool()
	require.NoError(m.t, err)
	defer tool.Close()
	require.NoError(m.t, tool.Change(iface, map[string]bool{name: on}))
}

// unlink removes a file or a folder.
func (m *machine) unlink(parts ...string) {
	_, err := os.Stat(m.path(parts...))
	require.NoError(m.t, err)
	require.NoError(m.t, os.RemoveAll(m.path(parts...)))
}

func (m *machine) unlinkAll(parts ...string) {
	files, err := filepath.Glob(m.path(parts...))
	require.NoError(m.t, err)
	require.NotEmpty(m.t, files)
	for _, file := range files {
		require.NoError(m.t, os.Remove(file))
	}
}

func (m *machine) tap(ring, iface string) (link.Link, bool) {
	pin := m.path("bpf", "ringcap", "v3", "rings", ring, fmt.Sprintf("tap_%d_rx", m.link(iface).Attrs().Index))
	l, err := link.LoadPinnedLink(pin, nil)
	if err != nil {
		require.ErrorIs(m.t, err, os.ErrNotExist)
		return nil, false // a kernel without tcx
	}
	m.t.Cleanup(func() { l.Close() })
	return l, true
}

// filter finds a ring's in clsact, where the kernel has no tcx.
func (m *machine) filter(ring, iface string) *netlink.BpfFilter {
	filters, err := netlink.FilterList(m.link(iface), netlink.HANDLE_MIN_INGRESS)
	require.NoError(m.t, err)
	for _, f := range filters {
		if b, ok := f.(*netlink.BpfFilter); ok && b.Name == "ringcap:"+ring+":rx" {
			return b
		}
	}
	m.t.Fatalf("no filter of %s on %s", ring, iface)
	return nil
}

// detach takes a tap off its interface.
func (m *machine) detach(ring, iface string) {
	if tap, tcx := m.tap(ring, iface); tcx {
		require.NoError(m.t, tap.Detach())
		return
	}
	require.NoError(m.t, netlink.FilterDel(m.filter(ring, iface)))
}

// replaceProgram has a tap run a program that captures nothing.
func (m *machine) replaceProgram() {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()},
	})
	require.NoError(m.t, err)
	defer program.Close()
	if tap, tcx := m.tap("mirror", "mirror0"); tcx {
		require.NoError(m.t, tap.Update(program))
		return
	}
	filter := m.filter("mirror", "mirror0")
	filter.Fd = program.FD()
	require.NoError(m.t, netlink.FilterReplace(filter))
}

// removeQdisc takes away the discipline of an interface that the agent gave one to; where it attaches without, that
// of another is left alone.
func (m *machine) removeQdisc() {
	if _, tcx := m.tap("fresh", "other1"); !tcx {
		require.NoError(m.t, netlink.QdiscDel(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: m.link("other1").Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
		}}))
	}
}

// foreignPin pins another's map beside the agent's folder.
func (m *machine) foreignPin() *ebpf.Map {
	pinned := newMap(m.t, ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	require.NoError(m.t, pinned.Pin(m.path("bpf", "foreign")))
	return pinned
}
