// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Two states of a machine, between which everything happens that a change can ask of an engine: a ring gets a filter and
// rules, a cluster with consumers another balance type, one without another number of queues, a ring with queues of its own
// goes and another comes. Consumers of "ids" get every packet in both.
const (
	stateBefore = `
apiVersion: ringcap.io/v1alpha1
kind: CaptureRing
metadata: {name: mirror}
spec: {engine: ENGINE, interfaces: [{name: mirror0}]}
---
apiVersion: ringcap.io/v1alpha1
kind: CaptureRing
metadata: {name: old}
spec: {engine: ENGINE, interfaces: [{name: other0}], direction: Both, queues: 2, slots: 64}
---
apiVersion: ringcap.io/v1alpha1
kind: Cluster
metadata: {name: ids}
spec: {rings: [mirror], queues: 2, balance: Flow}
---
apiVersion: ringcap.io/v1alpha1
kind: Cluster
metadata: {name: probe}
spec: {rings: [mirror], queues: 3, slots: 64}
`
	stateAfter = `
apiVersion: ringcap.io/v1alpha1
kind: CaptureRing
metadata: {name: mirror}
spec:
  engine: ENGINE
  interfaces: [{name: mirror0}]
  filter:
    bpf: udp and src net 10.0.0.0/8
    rules:
    - {name: dns, priority: 10, match: {protocol: UDP, destinationPort: "53"}, action: Pass}
    - {name: web, match: {protocol: TCP, destinationPort: "80"}, action: Drop}
---
apiVersion: ringcap.io/v1alpha1
kind: CaptureRing
metadata: {name: fresh}
spec: {engine: ENGINE, interfaces: [{name: other1}], queues: 2, slots: 64}
---
apiVersion: ringcap.io/v1alpha1
kind: Cluster
metadata: {name: ids}
spec: {rings: [mirror], queues: 2, balance: TwoTuple}
---
apiVersion: ringcap.io/v1alpha1
kind: Cluster
metadata: {name: probe}
spec: {rings: [mirror], queues: 2, slots: 64}
`
)

// states are what is asked for, and how it is known that it is there.
var states = [2]struct {
	manifest, ring string
	probes         int
}{{stateBefore, "old", 3}, {stateAfter, "fresh", 2}}

// An agent is killed at each step from one state to the other and back, under traffic. The next one comes to the same
// end as if nothing had happened, nothing is left over, and consumers that were attached all along have got every
// packet.
//
// RINGCAP_EVERY=1 kills at each of the some 400; by default it is each 29th.
func TestTheAgentIsKilledAtEachStep(t *testing.T) {
	for _, engine := range []v1.Engine{v1.EngineEBPF, v1.EngineKernelModule} {
		t.Run(string(engine), func(t *testing.T) {
			if _, err := os.Stat("/sys/module/ringcap"); err != nil && engine == v1.EngineKernelModule {
				t.Skip("needs the kernel module: node-agent/tests/run has it")
			}
			every, err := strconv.Atoi(os.Getenv("RINGCAP_EVERY"))
			if err != nil {
				every = 29
			}
			runKills(t, engine, every)
		})
	}
}

func runKills(t *testing.T, engine v1.Engine, every int) {
	m := newMachine(t)
	k := newKiller(t)
	m.otherCable()
	m.foreignPrograms()
	agent := m.toState(engine, 0)
	consumers := []*process{m.consumer(0), m.consumer(1)}
	m.attended = true
	if engine == v1.EngineKernelModule {
		consumers = append(consumers, m.foreignRing())
	}
	stop := m.traffic()
	t.Cleanup(stop)

	// What there is at the end of a change that nobody disturbs, and how many steps it takes.
	var want [2]map[string]int
	var taken [2]int
	for _, to := range []int{1, 0} {
		agent.kill()
		agent, taken[to] = m.countSteps(k, engine, to)
		want[to] = m.settledDump(agent)
	}
	t.Logf("%d steps there, %d back", taken[1], taken[0])
	kills := 0
	for step := 1; step <= max(taken[0], taken[1]); step += every {
		for _, to := range []int{1, 0} {
			agent.kill()
			kills += m.killAt(k, engine, to, step)
			agent = m.toState(engine, to)
			m.sameAs(want[to], agent, fmt.Sprintf("killed at step %d on the way to state %d", step, to))
		}
	}
	t.Logf("killed %d times", kills)
	require.Positive(t, kills)
	stop()

	seen := m.eventually("all is seen", func(s v1.NodeCaptureStatus) bool { return mirrored(s).Seen >= int64(m.sent) })
	ring, delivered := mirrored(seen), int64(0)
	assert.EqualValues(t, m.sent, ring.Seen)
	assert.EqualValues(t, m.sent, ring.Passed)
	for _, queue := range clusterOf(seen, "ids").Queues {
		delivered += queue.Delivered
		for _, d := range queue.Dropped {
			assert.Zero(t, d.Packets, "dropped: %s", d.Reason)
		}
	}
	assert.EqualValues(t, m.sent, delivered)
	m.allRead(consumers)
	agent.interrupt(unix.SIGTERM)
}

// allRead ends consumers: the first two, of "ids", have all packets between them, and each that reads another's ring
// has them too.
func (m *machine) allRead(consumers []*process) {
	m.t.Helper()
	var read int64
	for _, consumer := range consumers[:2] {
		consumer.interrupt(unix.SIGINT)
		read += consumer.counted()
	}
	assert.EqualValues(m.t, m.sent, read)
	for _, foreign := range consumers[2:] {
		foreign.interrupt(unix.SIGINT)
		assert.EqualValues(m.t, m.sent, foreign.counted(), "another's ring")
	}
}

// ask changes what is asked for while no agent runs.
func (m *machine) ask(engine v1.Engine, state int) {
	m.manifest("state.yaml", strings.ReplaceAll(states[state].manifest, "ENGINE", string(engine)))
}

func (m *machine) toState(engine v1.Engine, state int) *process {
	m.t.Helper()
	m.ask(engine, state)
	agent := m.agent()
	m.arrived(state)
	return agent
}

func (m *machine) arrived(state int) {
	m.t.Helper()
	want := states[state]
	m.eventually("the state is as asked for", func(s v1.NodeCaptureStatus) bool {
		if len(s.Rings) != 2 || len(s.Clusters) != 3 || len(clusterOf(s, "probe").Queues) != want.probes {
			return false
		}
		for _, ring := range s.Rings {
			if !ring.Ready || ring.Name != "mirror" && ring.Name != want.ring {
				return false
			}
		}
		for _, cluster := range s.Clusters {
			if !cluster.Ready {
				return false
			}
		}
		ids := clusterOf(s, "ids")
		return !m.attended || ids.Queues[0].Attached && ids.Queues[1].Attached
	})
}

// watched starts an agent that the killer knows before it does anything.
func (m *machine) watched(k *killer, last int) *process {
	command := m.agentCommand()
	hold, err := command.StdinPipe()
	require.NoError(m.t, err)
	agent := m.start("agent", command)
	k.watch(agent.Process.Pid, last)
	require.NoError(m.t, hold.Close())
	return agent
}

func (m *machine) countSteps(k *killer, engine v1.Engine, state int) (*process, int) {
	m.ask(engine, state)
	agent := m.watched(k, 0)
	m.arrived(state)
	taken := k.taken(agent.Process.Pid)
	require.Positive(m.t, taken, "an agent came to another state, and the killer's program saw process %d take no step: there would be no kill",
		agent.Process.Pid)
	// One that has only adopted the state holds what any agent may hold.
	agent.kill()
	return m.toState(engine, state), taken
}

// killAt returns 1 if the agent took as many steps, and died of the last.
func (m *machine) killAt(k *killer, engine v1.Engine, state, step int) int {
	m.t.Helper()
	m.ask(engine, state)
	agent := m.watched(k, step)
	defer k.taken(agent.Process.Pid)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		select {
		case err := <-agent.exited:
			agent.exited <- err
			require.ErrorContains(m.t, err, "signal: killed", agent.output())
			return 1
		default:
		}
		if len(m.status().Rings) > 0 {
			break // it has come to the end without so many
		}
	}
	agent.kill()
	return 0
}

// settledDump waits until two dumps are the same: events of what was just changed may have the agent look at it once more.
func (m *machine) settledDump(agent *process) map[string]int {
	for last := m.dump(agent); ; {
		time.Sleep(200 * time.Millisecond)
		now := m.dump(agent)
		if len(difference(last, now)) == 0 {
			return now
		}
		last = now
	}
}

// sameAs waits until a dump is as it should be.
func (m *machine) sameAs(want map[string]int, agent *process, when string) {
	m.t.Helper()
	var wrong []string
	for deadline := time.Now().Add(m.timeout); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if wrong = difference(want, m.dump(agent)); len(wrong) == 0 {
			return
		}
	}
	require.Empty(m.t, wrong, when)
}

// traffic sends to mirror0 until it is told to stop.
func (m *machine) traffic() (stop func()) {
	m.connected()
	end := make(chan struct{})
	var sending sync.WaitGroup
	to := &unix.SockaddrLinklayer{Ifindex: m.sender.Attrs().Index, Halen: 6}
	sending.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-time.After(5 * time.Millisecond):
			}
			for range 4 {
				if err := unix.Sendto(m.socket, udpPacket(m.sent%64), 0, to); err != nil {
					m.t.Errorf("send: %v", err)
					return
				}
				m.sent++
			}
		}
	})
	return sync.OnceFunc(func() { close(end); sending.Wait() })
}

func (m *machine) otherCable() {
	require.NoError(m.t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "other0"}, PeerName: "other1"}))
}

// foreignPrograms attaches what is another's to mirror0: a filter, and a program by tcx where the kernel has that.
func (m *machine) foreignPrograms() {
	mirror, err := netlink.LinkByName("mirror0")
	require.NoError(m.t, err)
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "foreign", Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()},
	})
	require.NoError(m.t, err)
	m.t.Cleanup(func() { program.Close() })
	require.NoError(m.t, netlink.QdiscAdd(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: mirror.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
	}}))
	require.NoError(m.t, netlink.FilterAdd(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: mirror.Attrs().Index, Parent: netlink.HANDLE_MIN_INGRESS, Handle: 1, Priority: 1, Protocol: unix.ETH_P_ALL,
		},
		Fd: program.FD(), Name: "foreign", DirectAction: true,
	}))
	attached, err := link.AttachTCX(link.TCXOptions{Interface: mirror.Attrs().Index, Program: program, Attach: ebpf.AttachTCXIngress})
	if err == nil {
		m.t.Cleanup(func() { attached.Close() })
	}
}

// foreignRing captures mirror0 ad hoc, without the agent.
func (m *machine) foreignRing() *process {
	p := m.start("foreign", exec.Command(filepath.Join(outDir, "rcount"), "-q", "-j", "-i", "mirror0"))
	// Asked for in this goroutine: others are not in the machine's namespace.
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		queues, _ := filepath.Glob("/proc/thread-self/net/ringcap/queue/adhoc-*")
		for _, queue := range queues {
			// The ring is there before somebody reads its queue, and what it passes meanwhile is dropped.
			if text, _ := os.ReadFile(queue); strings.Contains(string(text), "Attached: yes") {
				return p
			}
		}
	}
	m.t.Fatal("another's ring was not there within a minute")
	return nil
}

func mirrored(s v1.NodeCaptureStatus) v1.NodeRingStatus {
	for _, ring := range s.Rings {
		if ring.Name == "mirror" {
			return ring
		}
	}
	return v1.NodeRingStatus{}
}

func clusterOf(s v1.NodeCaptureStatus, name string) v1.NodeClusterStatus {
	for _, cluster := range s.Clusters {
		if cluster.Name == name {
			return cluster
		}
	}
	return v1.NodeClusterStatus{}
}
