// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// comeBack does what a consumer does when its connection broke.
func comeBack(l *lab, c *consumer) error {
	conn, _, fds, err := request(socketPath(l.runDir, "mirror", int(c.reply.Queue)), encodeRequest(handoverRequest{
		Magic: protocolMagic, ABI: protocolABI, MapID: c.reply.MapID,
	}))
	if err != nil {
		return err
	}
	require.Len(l.t, fds, 1, "it has the maps already")
	require.NoError(l.t, unix.Close(c.maps[3]))
	c.conn, c.maps[3] = conn, fds[0]
	return nil
}

// An agent starts while consumers' pods cannot be looked up. It keeps the consumers that an earlier agent admitted,
// and admits no others.
func TestConsumerComesBackWithoutPermission(t *testing.T) {
	l := newLab(t)
	plan := l.plan(2)
	first := l.engine()
	l.apply(first, plan)
	c := l.consume("mirror", 0)
	require.NoError(t, first.Close())
	e := l.engine(func(o *Options) {
		o.Authorizer = AuthorizerFunc(func(context.Context, int, capture.QueueID) error { return errors.New("the API server is away") })
	})
	l.apply(e, plan)
	require.NoError(t, comeBack(l, c))
	require.True(t, l.observe(e).Clusters["mirror"].Queues[0].Attached)
	_, err := consume(l.runDir, "mirror", 1)
	require.ErrorIs(t, err, unix.EACCES)
}

func TestEngineKilledUnderTraffic(t *testing.T) {
	for _, mode := range []string{"tcx", "clsact"} {
		t.Run(mode, func(t *testing.T) {
			const portion = 1000
			l := newLab(t)
			l.attachedBy(mode)
			plan := l.plan(2)
			plan.Rings[0].Taps[0].Direction = capture.Both
			plan.Rings[0].Filter = acceptAll(t)
			first, out := l.helper("engine", engineInput{
				PinDir: l.pinDir, RunDir: l.runDir, WithoutTCX: mode == "clsact", Plan: plan,
			}, 0)
			require.Equal(t, "ready", l.line(out))
			consumers := []*consumer{l.consume("mirror", 0), l.consume("mirror", 1)}
			sent := 0
			send := func() {
				for range portion {
					l.send(frame(sent, 60+sent%500))
					sent++
				}
			}
			send()
			require.NoError(t, first.Process.Signal(unix.SIGKILL))
			_ = first.Wait()
			send() // while no engine runs
			before := l.taps()
			e := l.engine(l.attachedBy(mode))
			send() // while it has no plan yet
			var ids []uint32
			if mode == "tcx" {
				ids = identity(t, e)
			}
			l.apply(e, plan)
			send()
			if mode == "tcx" {
				require.Equal(t, ids, identity(t, e))
			}
			require.Equal(t, before, l.taps())

			observed := l.settled(e, "mirror", 4*portion)
			total := 0
			for q, c := range consumers {
				require.True(t, observed.Clusters["mirror"].Queues[q].Attached)
				if q == 0 {
					_, other := l.helper("consumer", consumerInput{RunDir: l.runDir, Name: "mirror"}, 0)
					require.Contains(t, l.line(other), "device or resource busy", "its consumer is still there")
				}
				require.NoError(t, comeBack(l, c))
				packets, err := c.drain()
				require.NoError(t, err)
				total += len(packets)
				stats := l.observe(e).Clusters["mirror"].Queues[q]
				require.EqualValues(t, len(packets), stats.Delivered)
				require.Equal(t, map[capture.DropReason]uint64{"full": 0, "unattended": 0, "nomem": 0, "hung": 0}, stats.Dropped)
			}
			require.Equal(t, 4*portion, total)
			l.apply(e, capture.Plan{Clusters: plan.Clusters})
			require.Empty(t, l.taps())
		})
	}
}

// acceptAll returns a filter that lets everything pass, as opposed to no filter.
func acceptAll(t *testing.T) []bpf.RawInstruction {
	raw, err := bpf.Assemble([]bpf.Instruction{bpf.LoadAbsolute{Off: 0, Size: 1}, bpf.RetConstant{Val: 1}})
	require.NoError(t, err)
	return raw
}

func TestConsumerThatDoesNotComeBack(t *testing.T) {
	l := newLab(t)
	first := l.engine()
	l.apply(first, l.plan(2))
	living := l.consume("mirror", 0)
	require.NoError(t, first.Close())

	e := l.engine(func(o *Options) { o.ReconnectGrace = 50 * time.Millisecond })
	l.detached(e, "mirror", 0)
	require.NoError(t, comeBack(l, living), "late, but nobody has taken its place")
	require.True(t, l.observe(e).Clusters["mirror"].Queues[0].Attached)
}

func TestDeadConsumerDoesNotBlockAfterRestart(t *testing.T) {
	l := newLab(t)
	first := l.engine()
	l.apply(first, l.plan(1))
	held, out := l.helper("consumer", consumerInput{RunDir: l.runDir, Name: "mirror"}, 0)
	require.Equal(t, "attached", l.line(out))
	require.NoError(t, first.Close())
	require.NoError(t, held.Process.Kill())
	_ = held.Wait()
	e := l.engine()
	c := l.consume("mirror", 0)
	l.sendAll(e, "mirror", 5, func(n int) []byte { return frame(n, 60) })
	require.Len(t, l.collect(c, 5), 5)
}

func TestRemainsOfAnInterruptedChange(t *testing.T) {
	l := newLab(t)
	first := l.engine()
	l.apply(first, l.plan(1))
	c := l.consume("mirror", 0)
	l.sendAll(first, "mirror", 5, func(n int) []byte { return frame(n, 60) })
	q := first.clusters["mirror"].queues[0]

	// These are a cluster and a ring that were not finished, queues in the table that no cluster has, a reset that
	// was only prepared, and the program of a ring in question.
	p := first.env.pins
	for _, folder := range []string{p.cluster("half", 77), p.ring("half")} {
		require.NoError(t, os.Mkdir(folder, 0o700))
		m, err := newPinned(first.env.countersSpec, filepath.Join(folder, "counters"))
		require.NoError(t, err)
		m.Close()
	}
	held, err := q.open()
	require.NoError(t, err)
	defer held.close()
	elsewhere, err := newDataTable(1, held[0], filepath.Join(p.cluster("half", 77), "queues"))
	require.NoError(t, err)
	defer elsewhere.Close()
	require.NoError(t, first.env.tables.occupy(77, held, elsewhere, 0))
	fresh, err := q.makeMaps(q.nextPin)
	require.NoError(t, err)
	require.NoError(t, first.env.tables.setConsumer(q.index, fresh), "but its data")
	fresh.close()
	r := first.rings["mirror"]
	r.Fingerprint = ""
	require.NoError(t, r.describe())
	require.NoError(t, first.Close())

	e := l.engine()
	require.NoDirExists(t, p.cluster("half", 77))
	require.NoDirExists(t, p.ring("half"))
	id, err := idAt(e.env.tables.consumers, 77)
	require.NoError(t, err)
	require.Zero(t, id)
	l.apply(e, l.plan(1))
	l.sendAll(e, "mirror", 5, func(n int) []byte { return frame(n, 60) })
	require.Len(t, l.collect(c, 10), 10)
	require.EqualValues(t, 10, l.observe(e).Rings["mirror"].Stats.Seen)
}

// TestWhatAnOlderVersionLeftIsTakenOver: its programs have a smaller scratch area, and its rules fewer maps.
func TestWhatAnOlderVersionLeftIsTakenOver(t *testing.T) {
	l := newLab(t)
	plan := l.plan(1)
	plan.Rings[0].Rules = udpRules()
	first := l.engine()
	l.apply(first, plan)
	c := l.consume("mirror", 0)
	scratch := filepath.Join(first.env.pins.tables(), "scratch")
	require.NoError(t, os.Remove(filepath.Join(first.rings["mirror"].maps.folder, idleTimersMap)))
	require.NoError(t, first.Close())
	require.NoError(t, os.Remove(scratch))
	older, err := newPinned(&ebpf.MapSpec{Name: scratchMap, Type: ebpf.Array, KeySize: 4, ValueSize: 64, MaxEntries: 1}, scratch)
	require.NoError(t, err)
	older.Close()

	e := l.engine()
	l.apply(e, plan)
	require.NoError(t, comeBack(l, c))
	l.sendAll(e, "mirror", 5, func(n int) []byte { return frame(n, 60) })
	l.collect(c, 5)
	require.EqualValues(t, 5, l.observe(e).Rings["mirror"].Rules[7].Packets)
}

// spoil writes a description that cannot be decoded.
func (l *lab) spoil(folder string) {
	m, err := ebpf.LoadPinnedMap(filepath.Join(folder, "description"), nil)
	require.NoError(l.t, err)
	require.NoError(l.t, m.Put(uint32(0), bytes.Repeat([]byte{'{'}, descriptionSize)))
	require.NoError(l.t, m.Close())
}

// An object with an unreadable description is removed with its taps, and made again as planned. The others stay, and
// so do their consumers.
func TestUnreadableDescriptions(t *testing.T) {
	for _, mode := range []string{"tcx", "clsact"} {
		for _, what := range []string{"cluster", "ring", "rules"} {
			t.Run(mode+" "+what, func(t *testing.T) {
				l := newLab(t)
				plan := l.plan(2)
				plan.Rings[0].Rules = udpRules()
				other := l.plan(1)
				other.Rings[0].Name, other.Rings[0].Outputs, other.Clusters[0].Name = "other.one", []string{"other.one"}, "other.one"
				plan.Rings, plan.Clusters = append(plan.Rings, other.Rings[0]), append(plan.Clusters, other.Clusters[0])
				first := l.engine(l.attachedBy(mode))
				l.apply(first, plan)
				keeps := l.consume("mirror", 0)
				if what != "rules" {
					keeps = l.consume("other.one", 0)
				}
				spoilt := map[string]string{
					"cluster": first.clusters["mirror"].folder, "ring": first.rings["mirror"].folder, "rules": first.rings["mirror"].maps.folder,
				}[what]
				require.NoError(t, first.Close())
				if what == "rules" {
					require.NoError(t, os.Rename(filepath.Join(spoilt, complete), filepath.Join(spoilt, "description")))
				}
				l.spoil(spoilt)
				if what == "rules" {
					require.NoError(t, os.Rename(filepath.Join(spoilt, "description"), filepath.Join(spoilt, complete)))
				}

				e := l.engine(l.attachedBy(mode))
				l.apply(e, plan)
				kept, err := os.ReadDir(filepath.Join(e.env.pins.root, "unreadable"))
				if what == "rules" {
					require.ErrorIs(t, err, os.ErrNotExist)
					require.NoError(t, comeBack(l, keeps))
					return
				}
				require.NoError(t, err)
				require.Len(t, kept, 1)
				require.Len(t, l.observe(e).Rings, 2)
				require.Empty(t, e.retired)
				conn, _, _, err := request(socketPath(l.runDir, "other.one", 0), encodeRequest(handoverRequest{
					Magic: protocolMagic, ABI: protocolABI, MapID: keeps.reply.MapID,
				}))
				require.NoError(t, err)
				defer conn.Close()
				before := l.observe(e)
				l.send(frame(1, 60), frame(2, 60))
				require.Len(t, l.collect(keeps, 2), 2)
				after := l.observe(e)
				for _, name := range []string{"mirror", "other.one"} {
					require.EqualValues(t, 2, after.Rings[name].Stats.Seen-before.Rings[name].Stats.Seen, name)
				}
				l.engine(l.attachedBy(mode)) // and the next one reads all
			})
		}
	}
}

// The account has every packet, wherever the process that replaced the maps ended.
func TestResetThatWasInterruptedIsFinished(t *testing.T) {
	for _, settled := range []bool{false, true} {
		l := newLab(t)
		first := l.engine()
		l.apply(first, l.plan(1))
		old := l.consume("mirror", 0)
		l.sendAll(first, "mirror", 5, func(n int) []byte { return frame(n, 60) })
		old.detach()
		l.detached(first, "mirror", 0)
		l.sendAll(first, "mirror", 2, func(n int) []byte { return frame(n, 60) })
		q := first.clusters["mirror"].queues[0]
		fresh, err := q.makeMaps(q.nextPin)
		require.NoError(t, err)
		want, err := mapID(fresh[0])
		require.NoError(t, err)
		require.NoError(t, q.exchange(fresh))
		fresh.close()
		if settled {
			require.NoError(t, q.settle(q.area.head, q.area.id()))
			require.NoError(t, os.Rename(q.nextPin(kinds[2]), q.pin(kinds[2])))
		}
		require.NoError(t, first.Close())

		e := l.engine()
		c := l.consume("mirror", 0)
		require.Equal(t, want, c.reply.MapID)
		l.sendAll(e, "mirror", 3, func(n int) []byte { return frame(n, 60) })
		stats := l.observe(e).Clusters["mirror"].Queues[0]
		require.EqualValues(t, 8, stats.Delivered)
		require.EqualValues(t, 2, stats.Dropped[capture.DropUnattended])
		require.Len(t, l.collect(c, 3), 3)
		require.Len(t, glob(t, filepath.Join(q.folder, "q0_*")), len(kinds))
	}
}

// The same for a queue that was losing its maps. It has none, its account is complete, and its next consumer gets
// others.
func TestLossThatWasInterruptedIsFinished(t *testing.T) {
	for _, emptied := range []bool{false, true} {
		l := newLab(t)
		first := l.engine()
		l.apply(first, l.plan(1))
		old := l.consume("mirror", 0)
		l.sendAll(first, "mirror", 5, func(n int) []byte { return frame(n, 60) })
		old.detach()
		l.detached(first, "mirror", 0)
		q := first.clusters["mirror"].queues[0]
		require.NoError(t, os.Rename(q.pin("data"), q.gonePin()))
		if emptied {
			require.NoError(t, q.empty())
		}
		require.NoError(t, first.Close())

		e := l.engine()
		require.Empty(t, glob(t, filepath.Join(q.folder, "q0_*")))
		l.sendAll(e, "mirror", 2, func(n int) []byte { return frame(n, 60) })
		c := l.consume("mirror", 0)
		l.sendAll(e, "mirror", 3, func(n int) []byte { return frame(n, 60) })
		stats := l.observe(e).Clusters["mirror"].Queues[0]
		require.EqualValues(t, 8, stats.Delivered)
		require.EqualValues(t, 2, stats.Dropped[capture.DropUnattended])
		require.Len(t, l.collect(c, 3), 3)
	}
}

// A reset fails after the switch. A consumer that then attaches gets the ring buffer that gets the packets.
func TestResetThatCannotBePinned(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, l.plan(1))
	q := e.clusters["mirror"].queues[0]
	require.NoError(t, os.Remove(q.pin("data")))
	require.NoError(t, os.Mkdir(q.pin("data"), 0o700))
	_, err := e.TakeBack(t.Context(), q.id, capture.Holder{})
	require.ErrorContains(t, err, "pin a queue's new maps")
	c := l.consume("mirror", 0)
	l.sendAll(e, "mirror", 3, func(n int) []byte { return frame(n, 60) })
	require.Len(t, l.collect(c, 3), 3)
	require.NoError(t, os.Remove(q.pin("data")))
	require.NoError(t, e.Close())

	e = l.engine()
	l.apply(e, l.plan(1))
	require.NoError(t, comeBack(l, c))
	l.sendAll(e, "mirror", 2, func(n int) []byte { return frame(n, 60) })
	require.Len(t, l.collect(c, 2), 2)
}

// A queue has maps that could not be pinned as its own. It is reset again, and the agent is killed during that. The
// next agent finds the maps that get the packets, and no packet is missing in the account.
func TestResetAfterOneThatCouldNotBePinned(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, l.plan(1))
	q := e.clusters["mirror"].queues[0]
	aside := q.pin("data") + "_aside"
	require.NoError(t, os.Rename(q.pin("data"), aside))
	require.NoError(t, os.Mkdir(q.pin("data"), 0o700))
	_, err := e.TakeBack(t.Context(), q.id, capture.Holder{})
	require.ErrorContains(t, err, "pin a queue's new maps")
	require.NoError(t, os.Remove(q.pin("data")))
	require.NoError(t, os.Rename(aside, q.pin("data")))
	c := l.consume("mirror", 0)
	l.sendAll(e, "mirror", 3, func(n int) []byte { return frame(n, 60) })
	require.Len(t, l.collect(c, 3), 3)

	// The first steps of replace.
	require.NoError(t, q.clearNext())
	m, err := q.makeMaps(q.nextPin)
	require.NoError(t, err)
	m.close()
	require.NoError(t, e.Close())
	e = l.engine()
	l.apply(e, l.plan(1))
	require.NoError(t, comeBack(l, c))
	l.sendAll(e, "mirror", 2, func(n int) []byte { return frame(n, 60) })
	require.Len(t, l.collect(c, 2), 2)
	require.EqualValues(t, 5, l.observe(e).Clusters["mirror"].Queues[0].Delivered)
}

// A grace period that ends while the queue is closed does not touch the index, which may be another queue's by then.
func TestGraceThatEndsAfterTheQueue(t *testing.T) {
	l := newLab(t)
	first := l.engine()
	l.apply(first, l.plan(1))
	l.consume("mirror", 0)
	require.NoError(t, first.Close())
	e := l.engine()
	q := e.clusters["mirror"].queues[0]
	require.NotNil(t, q.expiry)
	q.close()
	q.graces = maxGraces
	q.expire()
	require.EqualValues(t, os.Getpid(), e.env.tables.attached.get(q.index))
}

// giveTo changes the owner of the engine's folders to another user.
func (l *lab) giveTo(user int) {
	l.t.Helper()
	require.NoError(l.t, os.Mkdir(l.runDir, 0o755))
	require.NoError(l.t, os.Mkdir(l.pinDir, 0o700))
	for _, folder := range []string{l.runDir, l.pinDir} {
		require.NoError(l.t, os.Chown(folder, user, user))
	}
	require.NoError(l.t, os.Chmod(filepath.Dir(l.pinDir), 0o755))
}

func TestEngineWithoutRightsSaysSo(t *testing.T) {
	l := newLab(t)
	l.giveTo(nobody)
	_, out := l.helper("new", engineInput{PinDir: l.pinDir, RunDir: l.runDir}, nobody)
	require.Contains(t, l.line(out), "CAP_BPF")
}

func TestEngineNeedsThreeCapabilitiesOnly(t *testing.T) {
	l := newLab(t)
	l.giveTo(nobody)
	plan := l.plan(1)
	plan.Rings[0].Filter = inVLAN(t, 5)
	_, out := l.helper("engine", engineInput{PinDir: l.pinDir, RunDir: l.runDir, Plan: plan}, nobody,
		unix.CAP_BPF, unix.CAP_NET_ADMIN, unix.CAP_PERFMON)
	require.Equal(t, "ready", l.line(out))
	c := l.consume("mirror", 0)
	l.send(frame(1, 60), tagged(frame(2, 60), 0x8100<<16|5))
	require.Equal(t, tagged(frame(2, 60), 0x8100<<16|5), l.collect(c, 1)[0].data)
}

func TestRestartKeepsNoticeOfReset(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, l.plan(1))
	_, err := e.TakeBack(context.Background(), capture.QueueID{Cluster: "mirror"}, capture.Holder{})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	e = l.engine()
	c := l.consume("mirror", 0)
	l.sendAll(e, "mirror", 1, func(n int) []byte { return frame(n, 60) })
	require.Len(t, l.collect(c, 1), 1)
}
