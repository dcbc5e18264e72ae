// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/filter"
	"github.com/ringcap/ringcap/node-agent/capture"
)

// inVLAN is a filter for packets of a VLAN, as libpcap would compile it.
func inVLAN(t *testing.T, id uint32) []bpf.RawInstruction {
	t.Helper()
	wire, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 12, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0x8100, SkipFalse: 4},
		bpf.LoadAbsolute{Off: 14, Size: 2},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xfff},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: id, SkipFalse: 1},
		bpf.RetConstant{Val: 262144},
		bpf.RetConstant{Val: 0},
	})
	require.NoError(t, err)
	kernel, err := filter.Kernel(wire)
	require.NoError(t, err)
	return kernel
}

func TestFilter(t *testing.T) {
	for _, mode := range []string{"tcx", "clsact"} {
		t.Run(mode, func(t *testing.T) {
			l := newLab(t)
			e := l.engine(l.attachedBy(mode))
			plan := l.plan(1)
			plan.Rings[0].Filter = inVLAN(t, 5)
			l.apply(e, plan)
			c := l.consume("mirror", 0)
			// Of every four packets, one has no tag, one is in VLAN 5, one is in another VLAN, and one is in VLAN 5
			// within another.
			l.sendAll(e, "mirror", 400, func(n int) []byte {
				tags := [][]uint32{{}, {0x8100<<16 | 0x2005}, {0x8100<<16 | 6}, {0x88a8<<16 | 7, 0x8100<<16 | 5}}
				return tagged(frame(n, 60), tags[n%4]...)
			})
			for i, p := range l.collect(c, 100) {
				require.Equal(t, tagged(frame(4*i+1, 60), 0x8100<<16|0x2005), p.data)
			}
			stats := l.observe(e).Rings["mirror"].Stats
			require.Equal(t, capture.RingStats{Seen: 400, SeenBytes: 100 * (60 + 64 + 64 + 68), Filtered: 300, Passed: 100}, stats)
		})
	}
}

func TestLongestFilter(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	plan := l.plan(1)
	// This is the longest possible filter: a sequence of comparisons, of which the last accepts.
	var long []bpf.Instruction
	long = append(long, bpf.LoadAbsolute{Off: 26, Size: 4})
	for n := range (maxFilter - 3) / 2 {
		long = append(long, bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0xc0000000 + uint32(n), SkipFalse: 1}, bpf.RetConstant{Val: 0})
	}
	long = append(long, bpf.RetConstant{Val: 1})
	raw, err := bpf.Assemble(long)
	require.NoError(t, err)
	plan.Rings[0].Filter = raw
	l.apply(e, plan)
	l.sendAll(e, "mirror", 3, func(n int) []byte { return frame(n, 60) })
	require.EqualValues(t, 3, l.observe(e).Rings["mirror"].Stats.Passed)
}

// identity returns the kernel's numbers of all objects of a lab's engine.
func identity(t *testing.T, e *Engine) []uint32 {
	t.Helper()
	var ids []uint32
	for _, r := range e.rings {
		for _, tp := range r.taps {
			info, err := tp.(*linkTap).link.Info()
			require.NoError(t, err)
			ids = append(ids, uint32(info.ID), uint32(info.Program))
		}
		id, err := mapID(r.counters)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	for _, c := range e.clusters {
		for _, q := range c.queues {
			ids = append(ids, q.area.ids[:]...)
		}
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	return ids
}

func TestApplyIsIdempotent(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	plan := l.plan(2)
	plan.Rings[0].Taps[0].Direction = capture.Both
	plan.Rings[0].Filter = inVLAN(t, 5)
	l.apply(e, plan)
	before := identity(t, e)
	require.Len(t, before, 2*2+1+2*3)
	l.apply(e, plan)
	require.Equal(t, before, identity(t, e))
}

func TestChangedFilterIsSwappedInPlace(t *testing.T) {
	for _, mode := range []string{"tcx", "clsact"} {
		t.Run(mode, func(t *testing.T) {
			l := newLab(t)
			e := l.engine(l.attachedBy(mode))
			plan := l.plan(1)
			l.apply(e, plan)
			c := l.consume("mirror", 0)
			l.sendAll(e, "mirror", 10, func(n int) []byte { return frame(n, 60) })

			plan.Rings[0].Filter = inVLAN(t, 5)
			l.apply(e, plan)
			l.sendAll(e, "mirror", 10, func(n int) []byte { return frame(n, 60) })
			plan.Rings[0].Filter, plan.Clusters[0].Balance = nil, capture.BalanceTwoTuple
			l.apply(e, plan)
			l.sendAll(e, "mirror", 10, func(n int) []byte { return frame(n, 60) })

			require.Len(t, l.collect(c, 20), 20)
			stats := l.observe(e).Rings["mirror"].Stats
			require.Equal(t, capture.RingStats{Seen: 30, SeenBytes: 1800, Filtered: 10, Passed: 20}, stats)
			require.Len(t, l.taps(), 1)
		})
	}
}

// taps returns the names of the programs and filters at the hooks of "tapped".
func (l *lab) taps() []string {
	l.t.Helper()
	var names []string
	for _, attach := range []ebpf.AttachType{ebpf.AttachTCXIngress, ebpf.AttachTCXEgress} {
		attached, err := link.QueryPrograms(link.QueryOptions{Target: l.tapped.Attrs().Index, Attach: attach})
		if err != nil {
			continue // a kernel without tcx
		}
		for _, p := range attached.Programs {
			program, err := ebpf.NewProgramFromID(p.ID)
			require.NoError(l.t, err)
			info, err := program.Info()
			require.NoError(l.t, err)
			program.Close()
			names = append(names, info.Name)
		}
	}
	for _, h := range []hook{hookIngress, hookEgress} {
		filters, err := filtersAt(tapPoint{Index: l.tapped.Attrs().Index, Hook: h})
		require.NoError(l.t, err)
		for _, f := range filters {
			if b, ok := f.(*netlink.BpfFilter); ok {
				names = append(names, b.Name)
			}
		}
	}
	return names
}

func (l *lab) qdisc() string {
	l.t.Helper()
	kind, err := ingressQdisc(l.tapped.Attrs().Index)
	require.NoError(l.t, err)
	return kind
}

func TestWhatIsNotPlannedGoesAndLeavesNothing(t *testing.T) {
	for _, mode := range []string{"tcx", "clsact"} {
		t.Run(mode, func(t *testing.T) {
			l := newLab(t)
			e := l.engine(l.attachedBy(mode))
			plan := l.plan(2)
			plan.Rings[0].Taps[0].Direction = capture.Both
			l.apply(e, plan)
			require.Len(t, l.taps(), 2)
			require.FileExists(t, socketPath(l.runDir, "mirror", 1))

			l.apply(e, capture.Plan{})
			require.Empty(t, l.taps())
			require.Empty(t, l.qdisc())
			require.NoDirExists(t, filepath.Join(l.runDir, "mirror"))
			observed := l.observe(e)
			require.Empty(t, observed.Rings)
			require.Empty(t, observed.Clusters)
			for _, folder := range []string{"rings", "clusters", "qdiscs"} {
				entries, err := os.ReadDir(filepath.Join(l.pinDir, layout, folder))
				if !os.IsNotExist(err) {
					require.NoError(t, err)
				}
				require.Empty(t, entries)
			}
			require.NoError(t, e.env.tables.vacateAllBut(func(index uint32) bool {
				id, err := idAt(e.env.tables.consumers, index)
				require.NoError(t, err)
				require.Zero(t, id)
				return true
			}))
		})
	}
}

func TestForeignProgramsAreLeftAlone(t *testing.T) {
	l := newLab(t)
	foreign, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "foreign", Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()},
	})
	require.NoError(t, err)
	defer foreign.Close()
	require.NoError(t, netlink.QdiscAdd(clsactQdisc(l.tapped.Attrs().Index)))
	add := func(parent uint32, priority, protocol uint16) {
		require.NoError(t, netlink.FilterAdd(&netlink.BpfFilter{
			FilterAttrs: netlink.FilterAttrs{
				LinkIndex: l.tapped.Attrs().Index, Parent: parent, Handle: 1, Priority: priority, Protocol: protocol,
			},
			Fd: foreign.FD(), Name: "foreign", DirectAction: true,
		}))
	}
	add(netlink.HANDLE_MIN_INGRESS, 1, unix.ETH_P_ALL)
	// A filter for IPv4 alone takes the first priority, which a filter for all protocols then cannot have.
	add(netlink.HANDLE_MIN_EGRESS, 1, unix.ETH_P_IP)
	require.Equal(t, []string{"foreign", "foreign"}, l.taps())

	e := l.engine(func(o *Options) { o.withoutTCX = true })
	plan := l.plan(1)
	plan.Rings[0].Taps[0].Direction = capture.Both
	l.apply(e, plan)
	require.ElementsMatch(t, []string{"foreign", "foreign", "ringcap:mirror:rx", "ringcap:mirror:tx"}, l.taps())
	l.apply(e, capture.Plan{})
	require.Equal(t, []string{"foreign", "foreign"}, l.taps())
	require.Equal(t, "clsact", l.qdisc())
}

// What a tap's program returns lets programs behind it see every packet.
func TestProgramsBehindATapRun(t *testing.T) {
	for _, mode := range []string{"tcx", "clsact"} {
		t.Run(mode, func(t *testing.T) {
			l := newLab(t)
			attached := l.attachedBy(mode)
			count, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
			require.NoError(t, err)
			defer count.Close()
			counter, err := ebpf.NewProgram(&ebpf.ProgramSpec{
				Name: "counter", Type: ebpf.SchedCLS, License: "GPL",
				Instructions: asm.Instructions{
					asm.LoadMapValue(asm.R1, count.FD(), 0), asm.Mov.Imm(asm.R2, 1), asm.StoreXAdd(asm.R1, asm.R2, asm.DWord),
					asm.Mov.Imm(asm.R0, -1), asm.Return(),
				},
			})
			require.NoError(t, err)
			defer counter.Close()
			require.NoError(t, netlink.QdiscAdd(clsactQdisc(l.tapped.Attrs().Index)))
			require.NoError(t, netlink.FilterAdd(&netlink.BpfFilter{
				FilterAttrs: netlink.FilterAttrs{
					LinkIndex: l.tapped.Attrs().Index, Parent: netlink.HANDLE_MIN_INGRESS, Handle: 1, Priority: 2,
					Protocol: unix.ETH_P_ALL,
				},
				Fd: counter.FD(), Name: "counter", DirectAction: true,
			}))
			e := l.engine(attached)
			l.apply(e, l.plan(1))
			// With a consumer, packets go to its queue directly; without, by the tables.
			c := l.consume("mirror", 0)
			l.sendAll(e, "mirror", 7, func(n int) []byte { return frame(n, 60) })
			c.close()
			l.detached(e, "mirror", 0)
			l.sendAll(e, "mirror", 5, func(n int) []byte { return frame(n, 60) })
			var n uint64
			require.NoError(t, count.Lookup(uint32(0), &n))
			require.EqualValues(t, 12, n)
		})
	}
}

// A process may end between the discipline and its first filter, or after the removal of the last.
func TestADisciplineWithoutFiltersIsNotLeft(t *testing.T) {
	l := newLab(t)
	clsactOnly := func(o *Options) { o.withoutTCX = true }
	e := l.engine(clsactOnly)
	require.NoError(t, clsact{pins: e.env.pins}.ensureQdisc(tapPoint{Index: l.tapped.Attrs().Index, Hook: hookIngress}))
	require.Equal(t, "clsact", l.qdisc())
	require.NoError(t, e.Close())
	l.engine(clsactOnly)
	require.Empty(t, l.qdisc())
}

func TestClusterThatIsInUseKeepsItsShape(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	plan := l.plan(2)
	l.apply(e, plan)
	c := l.consume("mirror", 1)
	wider := l.plan(4)
	failed, err := e.Apply(context.Background(), wider, capture.Observation{})
	require.NoError(t, err)
	require.ErrorIs(t, failed["mirror"], capture.ErrInUse)
	l.sendAll(e, "mirror", 100, func(n int) []byte { return frame(n, 60) })

	failed, err = e.Apply(context.Background(), capture.Plan{}, capture.Observation{})
	require.NoError(t, err)
	require.ErrorIs(t, failed["mirror"], capture.ErrInUse)
	require.Empty(t, l.taps(), "the ring goes, its queues stay for their consumers")
	packets, err := c.drain()
	require.NoError(t, err)
	observed := l.observe(e)
	require.EqualValues(t, len(packets), observed.Clusters["mirror"].Queues[1].Delivered)

	c.detach()
	l.detached(e, "mirror", 1)
	l.apply(e, wider)
	observed = l.observe(e)
	require.Len(t, observed.Clusters["mirror"].Queues, 4)
	require.Zero(t, observed.Clusters["mirror"].Queues[1].Delivered)
	l.sendAll(e, "mirror", 100, func(n int) []byte { return frame(n, 60) })
	require.FileExists(t, socketPath(l.runDir, "mirror", 3))
	require.Empty(t, e.retired)
}

func (l *lab) detached(e *Engine, name string, queue int) {
	l.t.Helper()
	l.until(fmt.Sprintf("queue %d of %s has no consumer", queue, name), func() bool {
		return !l.observe(e).Clusters[name].Queues[queue].Attached
	})
}

func TestInterfaceThatGoesAndComesBack(t *testing.T) {
	for _, mode := range []string{"tcx", "clsact"} {
		t.Run(mode, func(t *testing.T) {
			l := newLab(t)
			e := l.engine(l.attachedBy(mode))
			plan := l.plan(1)
			l.apply(e, plan)
			l.sendAll(e, "mirror", 10, func(n int) []byte { return frame(n, 60) })
			require.NoError(t, netlink.LinkDel(l.sender))
			require.Empty(t, l.observe(e).Rings["mirror"].Taps)
			failed, err := e.Apply(context.Background(), plan, capture.Observation{})
			require.NoError(t, err)
			require.ErrorContains(t, failed["mirror"], "is not there")

			l.sender, l.tapped = l.addVeth("sender", "tapped")
			l.openSocket()
			plan = l.plan(1)
			l.apply(e, plan)
			require.Equal(t, plan.Rings[0].Taps, l.observe(e).Rings["mirror"].Taps)
			l.sendAll(e, "mirror", 10, func(n int) []byte { return frame(n, 60) })
			require.EqualValues(t, 20, l.observe(e).Rings["mirror"].Stats.Seen)
		})
	}
}

func TestWhatCannotBeDoneIsRefusedByName(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	good := l.plan(1)
	l.apply(e, good)
	before := identity(t, e)
	cases := map[string]struct {
		change func(*capture.Plan)
		want   []string
	}{
		"no queues":        {func(p *capture.Plan) { p.Clusters[1].Queues = 0 }, []string{"cluster bad", "0 queues"}},
		"too many queues":  {func(p *capture.Plan) { p.Clusters[1].Queues = 100_000 }, []string{"100000 queues"}},
		"queue size":       {func(p *capture.Plan) { p.Clusters[1].QueueBytes = 200_000 }, []string{"200000 bytes", "power of two"}},
		"balance":          {func(p *capture.Plan) { p.Clusters[1].Balance = 9 }, []string{"balance type 9"}},
		"no such output":   {func(p *capture.Plan) { p.Rings[1].Outputs = []string{"gone"} }, []string{"ring bad", "output gone"}},
		"snap length":      {func(p *capture.Plan) { p.Rings[1].SnapLen = 0 }, []string{"snap length 0"}},
		"direction":        {func(p *capture.Plan) { p.Rings[1].Taps[0].Direction = 4 }, []string{"tapped", "direction 4"}},
		"interface":        {func(p *capture.Plan) { p.Rings[1].Taps[0].Index = 4711 }, []string{"interface 4711 is not there"}},
		"filter":           {func(p *capture.Plan) { p.Rings[1].Filter = []bpf.RawInstruction{{Op: 0xffff}} }, []string{"filter"}},
		"filter too long":  {func(p *capture.Plan) { p.Rings[1].Filter = make([]bpf.RawInstruction, 4097) }, []string{"4097 instructions"}},
		"too many outputs": {func(p *capture.Plan) { p.Rings[1].Outputs = make([]string, 9) }, []string{"9 outputs"}},
		"output twice":     {func(p *capture.Plan) { p.Rings[1].Outputs = []string{"bad", "bad"} }, []string{"output bad", "twice"}},
		"same ring twice":  {func(p *capture.Plan) { p.Rings = append(p.Rings, p.Rings[1]) }, []string{"ring bad", "twice"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			plan := l.plan(1)
			bad := plan.Clusters[0]
			bad.Name = "bad"
			plan.Clusters = append(plan.Clusters, bad)
			badRing := plan.Rings[0]
			badRing.Name, badRing.Outputs = "bad", []string{"bad"}
			badRing.Taps = append([]capture.Tap(nil), badRing.Taps...)
			plan.Rings = append(plan.Rings, badRing)
			c.change(&plan)
			failed, err := e.Apply(context.Background(), plan, capture.Observation{})
			require.NoError(t, err)
			require.Len(t, failed, 1)
			for _, want := range c.want {
				require.ErrorContains(t, failed["bad"], want)
			}
			require.Subset(t, identity(t, e), before, "what was planned well is untouched")
			l.apply(e, l.plan(1))
			require.Equal(t, before, identity(t, e))
		})
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"", "Mirror", "a/b", "..", "-a", "a.", strings.Repeat("a", 64)} {
		require.Error(t, validateName(name), name)
	}
	l := newLab(t)
	e := l.engine()
	name := "eth0.5-" + strings.Repeat("x", 56)
	plan := l.plan(1)
	plan.Rings[0].Name, plan.Rings[0].Outputs, plan.Clusters[0].Name = name, []string{name}, name
	l.apply(e, plan)
	c := l.consume(name, 0)
	require.Equal(t, name, strings.TrimRight(string(c.reply.Name[:]), "\x00"))
	require.NoError(t, e.Close())
	require.Contains(t, l.observe(l.engine()).Clusters, name)
}
