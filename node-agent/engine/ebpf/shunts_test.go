// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// taggedQuery returns query(n) with a VLAN tag.
func taggedQuery(n int, vlan uint16) []byte {
	f := query(n)
	tag := binary.BigEndian.AppendUint16([]byte{0x81, 0}, vlan)
	return append(append(append([]byte(nil), f[:12]...), tag...), f[12:]...)
}

// queryRule returns the rule for the flow of query(n), which is IPv6 for every fourth n.
func queryRule(n int) flowRule {
	f := query(n)
	rule := flowRule{L3Proto: unix.ETH_P_IP, L4Proto: 17, Action: uint8(capture.ActionDrop)}
	at, length, ports := 26, 4, 34
	if n%4 == 3 {
		rule.L3Proto = unix.ETH_P_IPV6
		at, length, ports = 22, 16, 54
	}
	copy(rule.Saddr[:length], f[at:])
	copy(rule.Daddr[:length], f[at+length:])
	rule.Sport, rule.Dport = binary.BigEndian.Uint16(f[ports:]), binary.BigEndian.Uint16(f[ports+2:])
	return rule
}

// The keys are those of exact rules: of both families, in both directions, with the VLAN, for each shape of cluster.
func TestShuntedFlowsAreExact(t *testing.T) {
	for name, change := range map[string]func(*capture.Plan){
		"plain":       func(*capture.Plan) {},
		"long header": func(p *capture.Plan) { p.Clusters[0].LongHeader = true },
		"one lane":    func(p *capture.Plan) { p.Clusters[0].Lanes = 1 },
		"hashed":      func(p *capture.Plan) { p.Clusters[0].Queues = 2 },
		"ruled": func(p *capture.Plan) {
			p.Rings[0].Rules.Wildcard = []capture.WildcardRule{{ID: 1, Action: capture.ActionDrop, Match: capture.Match{
				DestinationPorts: &capture.PortRange{First: 9999, Last: 9999},
			}}}
		},
		"learnt":   func(p *capture.Plan) { p.Rings[0].Rules = learning(); p.Rings[0].Rules.Default = capture.ActionPass },
		"XDP":      func(p *capture.Plan) { p.Rings[0].Mode = 1 },
		"spread":   func(p *capture.Plan) { p.Clusters[0].Queues, p.Clusters[0].WhenFull = 2, capture.PolicySpread },
		"two ends": func(p *capture.Plan) { p.Clusters[0].Queues, p.Clusters[0].Balance = 2, capture.BalanceBothEnds },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.leaveTags()
			e := l.engine()
			plan := shuntingPlan(l, 64)
			change(&plan)
			l.apply(e, plan)
			var rules []flowRule
			for n := range 8 {
				rules = append(rules, queryRule(n))
			}
			tagged := queryRule(8)
			tagged.VlanID = 5
			rules = append(rules, tagged)
			for queue := range plan.Clusters[0].Queues {
				_, err := l.consume("mirror", queue).shunt(rules...)
				require.NoError(t, err)
			}
			copies := uint64(1)
			if name == "two ends" {
				copies = 2
			}
			sum := func(n uint64) (delivered, shunted uint64) {
				observed := l.observe(e)
				l.until("all are seen", func() bool {
					observed = l.observe(e)
					return observed.Rings["mirror"].Stats.Seen >= n
				})
				for _, q := range observed.Clusters["mirror"].Queues {
					delivered += q.Delivered
					shunted += q.Shunted
				}
				require.Equal(t, observed.Rings["mirror"].Stats.Passed+observed.Clusters["mirror"].Duplicated, delivered+shunted)
				return delivered, shunted
			}
			for n := range 8 {
				l.send(query(n), answer(n))
			}
			l.send(taggedQuery(8, 5))
			delivered, shunted := sum(17)
			assert.Zero(t, delivered)
			assert.GreaterOrEqual(t, shunted, uint64(17))
			assert.LessOrEqual(t, shunted, 17*copies)
			for n := range 8 {
				l.send(mixture(n), taggedQuery(n, 5))
			}
			l.send(query(8), taggedQuery(8, 6), query(9))
			delivered, after := sum(17 + 19)
			assert.GreaterOrEqual(t, delivered, uint64(19))
			assert.Equal(t, shunted, after)
		})
	}
}

// The queue that a rule names shunts, too; other queues, and other clusters of the ring, go on getting their packets.
func TestShuntsOfOneQueueAlone(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	plan := shuntingPlan(l, 8)
	other := plan.Clusters[0]
	other.Name, other.ShuntQuota = "other", 0
	third := plan.Clusters[0]
	third.Name = "third"
	plan.Clusters = append(plan.Clusters, other, third)
	plan.Rings[0].Outputs = []string{"mirror", "other"}
	plan.Rings[0].Rules.Wildcard = []capture.WildcardRule{{
		ID: 1, Action: capture.ActionQueue, Target: capture.Target{Queue: capture.QueueID{Cluster: "third"}},
		Match: capture.Match{SourcePorts: &capture.PortRange{First: 0x1009, Last: 0x1009}},
	}}
	l.apply(e, plan)
	for _, name := range []string{"mirror", "third"} {
		_, err := l.consume(name, 0).shunt(flowOf(1), flowOf(9))
		require.NoError(t, err)
	}
	l.consume("other", 0)
	l.send(frame(1, 60), frame(2, 60), frame(9, 60))
	observed := l.settled(e, "mirror", 3)
	for name, want := range map[string][2]uint64{"mirror": {1, 1}, "other": {2, 0}, "third": {0, 1}} {
		q := observed.Clusters[name].Queues[0]
		assert.Equal(t, want, [2]uint64{q.Delivered, q.Shunted}, name)
	}
}

// A table grows under traffic. Nothing is counted twice, or lost.
func TestShuntedFlowsGrowUnderTraffic(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	const flows = 3 * shuntRoomMin
	l.apply(e, shuntingPlan(l, flows))
	c := l.consume("mirror", 0)
	var rules []flowRule
	for n := range flows {
		rules = append(rules, queryRule(n))
	}
	sent := uint64(0)
	for len(rules) > 0 {
		n := min(len(rules), maxShuntBatch)
		answer, err := c.shunt(rules[:n]...)
		require.NoError(t, err)
		require.EqualValues(t, n, answer.Result)
		rules = rules[n:]
		l.send(query(0), query(3), answerTo(0))
		sent += 3
	}
	queue := l.mirrorQueue(e, sent)
	require.EqualValues(t, sent, queue.Shunted)
	require.EqualValues(t, flows, queue.ShuntedFlows)
	require.Greater(t, l.observe(e).Clusters["mirror"].Memory, uint64(8*shuntRoomMin*80))
	state, err := c.ask(shuntRead, 2, []flowState{{Rule: queryRule(0)}, {Rule: queryRule(3)}})
	require.NoError(t, err)
	first, second := state.States[0].Counts, state.States[1].Counts
	require.Equal(t, []uint64{sent / 3 * 2, sent / 3}, []uint64{first.Packets, second.Packets})

	// All of them are there, and end, each once. The quota's number of ends is kept.
	for n := 0; n < flows; n += maxShuntBatch {
		var some []flowRule
		for i := n; i < n+maxShuntBatch; i++ {
			some = append(some, queryRule(i))
		}
		answer, err := c.ask(shuntRemove, maxShuntBatch, some)
		require.NoError(t, err)
		require.Zero(t, answer.Missed)
	}
	l.apply(e, shuntingPlan(l, flows-10))
	_, err = c.shunt(queryRule(flows))
	require.NoError(t, err)
	ended := map[flowRule]bool{}
	for {
		answer, err := c.ask(shuntEnded, maxShuntBatch, nil)
		require.NoError(t, err)
		require.EqualValues(t, 10, answer.Lost)
		if len(answer.States) == 0 {
			break
		}
		for _, state := range answer.States {
			ended[state.Rule] = true
		}
	}
	require.Len(t, ended, flows-10)
	require.EqualValues(t, 10, l.observe(e).Clusters["mirror"].Queues[0].ShuntsLost)
}

func answerTo(n int) []byte { return answer(n) }

// Flows stay shunted while no agent runs. The next one keeps them for a consumer that comes back, and ends those of one
// that does not. Ends that were not read are lost, and counted.
func TestShuntedFlowsOutliveTheAgent(t *testing.T) {
	for _, returns := range []bool{true, false} {
		t.Run(fmt.Sprintf("returns %v", returns), func(t *testing.T) {
			l := newLab(t)
			plan := shuntingPlan(l, 10)
			first, out := l.helper("engine", engineInput{PinDir: l.pinDir, RunDir: l.runDir, Plan: plan}, 0)
			require.Equal(t, "ready", l.line(out))
			c := l.consume("mirror", 0)
			short := flowOf(2)
			short.IdleS = 3
			emulated := os.Getenv("RINGCAP_VM") != "" // where an engine takes seconds to start
			if emulated {
				short.IdleS = 1000
			}
			_, err := c.shunt(flowOf(1), short, flowOf(3), flowOf(4))
			require.NoError(t, err)
			_, err = c.ask(shuntRemove, 1, []flowRule{flowOf(4)})
			require.NoError(t, err)
			l.send(frame(1, 60))
			require.NoError(t, first.Process.Signal(unix.SIGKILL))
			_ = first.Wait()
			l.send(frame(1, 60), frame(2, 60))
			e := l.engine()
			l.send(frame(1, 60))
			l.apply(e, plan)
			queue := l.mirrorQueue(e, 4)
			require.EqualValues(t, 4, queue.Shunted)
			require.EqualValues(t, 1, queue.ShuntsLost)
			require.EqualValues(t, 3, queue.ShuntedFlows)
			if !returns {
				c.detach()
				_, err = e.TakeBack(t.Context(), capture.QueueID{Cluster: "mirror"}, capture.Holder{})
				require.NoError(t, err)
				queue = l.observe(e).Clusters["mirror"].Queues[0]
				require.Zero(t, queue.ShuntedFlows)
				require.EqualValues(t, 4, queue.ShuntsLost)
				return
			}
			require.NoError(t, comeBack(l, c))
			state, err := c.ask(shuntRead, 1, []flowState{{Rule: flowOf(1)}})
			require.NoError(t, err)
			require.EqualValues(t, 3, state.States[0].Counts.Packets)
			if emulated {
				short.IdleS = 1
				_, err = c.shunt(short)
				require.NoError(t, err)
			}
			l.until("the idle flow has ended", func() bool {
				return l.observe(e).Clusters["mirror"].Queues[0].ShuntedFlows == 2
			})
			ended, err := c.ask(shuntEnded, 9, nil)
			require.NoError(t, err)
			require.EqualValues(t, 1, ended.Lost)
			require.Len(t, ended.States, 1)
			require.Equal(t, short, ended.States[0].Rule)
			_, err = c.shunt(flowOf(5))
			require.NoError(t, err)
		})
	}
}

// An agent was killed while it replaced a table, or left one that is none: all flows have ended.
func TestUnfinishedTableOfShuntedFlows(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, folder string){
		"next": func(t *testing.T, folder string) {
			require.NoError(t, os.Mkdir(filepath.Join(folder, "q0_next_shunts"), 0o700))
		},
		"none": func(t *testing.T, folder string) { require.NoError(t, os.Remove(filepath.Join(folder, "q0_shunts"))) },
		"spoilt": func(t *testing.T, folder string) {
			table, err := recoverShuntTable(filepath.Join(folder, "q0_shunts"))
			require.NoError(t, err)
			defer table.close()
			table.flows(func(flow uint32) { table.places[flow].Next = flow })
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			plan := shuntingPlan(l, 10)
			first := l.engine()
			l.apply(first, plan)
			c := l.consume("mirror", 0)
			_, err := c.shunt(flowOf(1), flowOf(2))
			require.NoError(t, err)
			require.NoError(t, first.Close())
			folder := filepath.Join(l.pinDir, "v3", "clusters", "mirror_0")
			spoil(t, folder)
			e := l.engine()
			l.apply(e, plan)
			require.NoError(t, comeBack(l, c))
			l.send(frame(1, 60))
			queue := l.mirrorQueue(e, 1)
			require.EqualValues(t, 1, queue.Delivered)
			require.EqualValues(t, 2, queue.ShuntsLost)
			require.NoFileExists(t, filepath.Join(folder, "q0_next_shunts"))
			_, err = c.shunt(flowOf(1))
			require.NoError(t, err)
			l.send(frame(1, 60))
			require.EqualValues(t, 1, l.mirrorQueue(e, 2).Shunted)
		})
	}
}

// A consumer that asks without a pause is slowed down, and its table does not grow beyond its quota.
func TestFloodOfShuntRequests(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	plan := l.plan(2)
	plan.Clusters[0].ShuntQuota = 100
	l.apply(e, plan)
	flooder, other := l.consume("mirror", 0), l.consume("mirror", 1)
	stop := make(chan struct{})
	asked := make(chan int)
	go func() {
		n := 0
		defer func() { asked <- n }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			var rules []flowRule
			for i := range maxShuntBatch {
				rules = append(rules, queryRule(n+i))
			}
			_, _ = flooder.shunt(rules...)
			_, _ = flooder.ask(shuntRemove, maxShuntBatch, rules)
			n += 2 * maxShuntBatch
		}
	}()
	began := time.Now()
	for time.Since(began) < 2*time.Second {
		_, err := other.shunt(flowOf(1))
		require.NoError(t, err)
		_, err = other.ask(shuntRemove, 1, []flowRule{flowOf(1)})
		require.NoError(t, err)
		queue := l.observe(e).Clusters["mirror"].Queues[0]
		require.LessOrEqual(t, queue.ShuntedFlows, uint32(100))
	}
	close(stop)
	n := <-asked
	require.Less(t, float64(n)/time.Since(began).Seconds(), 1.2*float64(time.Second/shuntFlowCost))
	_, bytes := e.clusters["mirror"].queues[0].shunts.observe()
	require.LessOrEqual(t, bytes, uint64(8<<20))
}

// Without memory for a table the flow is not shunted, and the next request may be.
func TestShuntsWithoutMemory(t *testing.T) {
	l := newLab(t)
	full := false
	e := l.engine(func(o *Options) {
		o.Memory = func() (capture.Memory, error) {
			if full {
				return capture.Memory{}, nil
			}
			return capture.Memory{Total: 1 << 40, Available: 1 << 40, AgentRoom: 1 << 40}, nil
		}
	})
	l.apply(e, shuntingPlan(l, 10))
	c := l.consume("mirror", 0)
	full = true
	_, err := c.shunt(flowOf(1))
	require.ErrorIs(t, err, unix.ENOMEM)
	full = false
	_, err = c.shunt(flowOf(1))
	require.NoError(t, err)
}

// What is not a request ends the socket. It is bounded by what a message can have.
func TestMessagesThatAreNoRequests(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, shuntingPlan(l, 10))
	valid, err := binary.Append(nil, binary.NativeEndian, shuntMessage{Magic: protocolMagic, Verb: shuntAdd, Nr: 1})
	require.NoError(t, err)
	for name, message := range map[string][]byte{
		"short": valid[:20], "too few": valid, "too many": append(append([]byte(nil), valid...), make([]byte, 96)...),
		"huge": append(append([]byte(nil), valid...), make([]byte, 100000)...),
		"no magic": func() []byte {
			rule, _ := binary.Append(append([]byte{9}, valid[1:]...), binary.NativeEndian, flowOf(1))
			return rule
		}(),
		"count": func() []byte {
			many := append([]byte(nil), valid...)
			binary.NativeEndian.PutUint32(many[12:], 1<<31)
			return many
		}(),
	} {
		c := l.consume("mirror", 0)
		_, err := askAnything(c.maps[3], message)
		require.Error(t, err, name)
		require.False(t, errors.Is(err, unix.EAGAIN), name)
		require.True(t, l.observe(e).Clusters["mirror"].Queues[0].Attached, name)
		c.close()
	}
}
