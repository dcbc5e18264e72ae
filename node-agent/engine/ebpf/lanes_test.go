// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// onCPU runs do on a CPU, in the lab's network namespace.
func (l *lab) onCPU(cpu int, do func()) {
	runtime.LockOSThread() // it stays locked: the thread ends with the goroutine
	require.NoError(l.t, moveTo(cpu))
	do()
}

// moveTo moves the thread to a CPU.
func moveTo(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	return unix.SchedSetaffinity(0, &set)
}

// sendFromAll sends from several CPUs at once, with the capture on the sending side. It returns the number of frames.
func (l *lab) sendFromAll(frames int) int {
	cpus := runtime.NumCPU()
	var all sync.WaitGroup
	for cpu := range cpus {
		socket := l.packetSocket(l.sender)
		all.Go(func() {
			l.onCPU(cpu, func() {
				for n := range frames {
					for unix.EAGAIN == sendTo(socket, frame(n, 60+n%500)) {
						continue
					}
				}
			})
		})
	}
	all.Wait()
	return cpus * frames
}

func sendTo(socket int, frame []byte) error {
	_, err := unix.Write(socket, frame)
	if err == unix.ENOBUFS {
		return unix.EAGAIN
	}
	return err
}

// transmitted returns the lab's plan with a tap on what "sender" sends, so that the sending CPU captures.
func (l *lab) transmitted(lanes int) capture.Plan {
	plan := l.plan(1)
	plan.Rings[0].Taps = []capture.Tap{{Interface: "sender", Index: l.sender.Attrs().Index, Direction: capture.Transmit}}
	plan.Clusters[0].Lanes = lanes
	return plan
}

// Each packet is read or counted as dropped, whichever CPUs share lanes, and however full these are.
func TestConservationWithSeveralProducers(t *testing.T) {
	for _, lanes := range []int{1, 2, 4} {
		for name, bytes := range map[string]uint32{"overload": minQueueBytes, "room": 32 << 20} {
			l := newLab(t)
			e := l.engine()
			plan := l.transmitted(lanes)
			plan.Clusters[0].QueueBytes = bytes
			l.apply(e, plan)
			reading := l.read(l.consume("mirror", 0))
			sent := l.sendFromAll(60_000 / runtime.NumCPU())
			packets, err := reading.stop()
			require.NoError(t, err)
			observed := l.observe(e)
			stats := observed.Clusters["mirror"].Queues[0]
			require.EqualValues(t, sent, observed.Rings["mirror"].Stats.Passed)
			require.EqualValues(t, len(packets), stats.Delivered, "%d lanes, %s", lanes, name)
			require.EqualValues(t, sent, stats.Delivered+stats.Dropped["full"]+stats.Dropped["nomem"])
			if name == "room" {
				require.Zero(t, stats.Dropped["full"])
			}
			for _, p := range packets {
				require.Equal(t, frame(int(p.slot.Len), int(p.slot.Len))[:20], p.data[:20])
			}
			require.Zero(t, stats.UnreadBytes)
		}
	}
}

// sendFrom sends frames from a CPU.
func (l *lab) sendFrom(cpu, frames int) {
	socket := l.packetSocket(l.sender)
	var sending sync.WaitGroup
	sending.Go(func() {
		l.onCPU(cpu, func() {
			for n := range frames {
				for unix.EAGAIN == sendTo(socket, frame(n, 60)) {
					continue
				}
			}
		})
	})
	sending.Wait()
}

// The fill of the fullest lane is told, whatever the others hold.
func TestTheFullestLane(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("needs two CPUs: each fills a lane")
	}
	l := newLab(t)
	e := l.engine()
	l.apply(e, l.transmitted(2))
	c := l.consume("mirror", 0)
	l.sendFrom(0, 5)
	l.sendFrom(1, 50)
	few, many := atomic.LoadUint64(c.produced(0)), atomic.LoadUint64(c.produced(1))
	require.Positive(t, few)
	require.Greater(t, many, few)
	stats := l.observe(e).Clusters["mirror"].Queues[0]
	require.Equal(t, few+many, stats.UnreadBytes)
	require.Equal(t, many, stats.FullestLaneBytes)
	l.collect(c, 55)
	require.Zero(t, l.observe(e).Clusters["mirror"].Queues[0].FullestLaneBytes)
}

// A consumer overwrites its positions while CPUs share a lane. This changes no account, and its queue never reports
// more than fits into it.
func TestScribblesWhileCPUsShareALane(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	plan := l.transmitted(1)
	plan.Clusters[0].QueueBytes = minQueueBytes
	l.apply(e, plan)
	c := l.consume("mirror", 0)
	done := make(chan struct{})
	var scribbler sync.WaitGroup
	scribbler.Go(func() {
		for n := uint64(0); ; n++ {
			select {
			case <-done:
				return
			default:
			}
			atomic.StoreUint64(c.sleep(), n)
			atomic.StoreUint64(c.released(0), atomic.LoadUint64(c.produced(0))+n%3*64)
			unread := l.observe(e).Clusters["mirror"].Queues[0].UnreadBytes
			if unread > minQueueBytes {
				t.Errorf("%d bytes are unread", unread)
				return
			}
		}
	})
	sent := l.sendFromAll(50_000)
	close(done)
	scribbler.Wait()
	stats := l.observe(e).Clusters["mirror"].Queues[0]
	require.EqualValues(t, sent, stats.Delivered+stats.Dropped["full"]+stats.Dropped["nomem"])
	require.LessOrEqual(t, stats.UnreadBytes, uint64(minQueueBytes))
	c.detach()
	l.detached(e, "mirror", 0)
	next := l.consume("mirror", 0)
	require.LessOrEqual(t, next.unread(), uint64(minQueueBytes))
}

// A consumer that may load programs can use one to write into its data map. That must not delay the CPUs that share a
// lane there.
func TestAConsumersProgramHoldsNoLane(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, l.transmitted(1))
	c := l.consume("mirror", 0)
	fillPrivateWords(t, c.maps[0])
	l.sendAll(e, "mirror", 100, func(n int) []byte { return frame(n, 60) })
	require.Len(t, l.collect(c, 100), 100)
	require.Zero(t, l.observe(e).Clusters["mirror"].Queues[0].Dropped["nomem"])
}

// fillPrivateWords writes ones to the private words of the engine's programs in lane 0.
func fillPrivateWords(t *testing.T, data int) {
	const begin, end = 8, 64
	filter := asm.Instructions{
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4), asm.StoreImm(asm.R2, 0, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, data), asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, "out"), asm.Mov.Imm(asm.R1, 1),
	}
	for at := int16(begin); at < end; at += 8 {
		filter = append(filter, asm.StoreMem(asm.R0, at, asm.R1, asm.DWord))
	}
	filter = append(filter, asm.Mov.Imm(asm.R0, 0).WithSymbol("out"), asm.Return())
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SocketFilter, Instructions: filter, License: "GPL"})
	require.NoError(t, err)
	defer program.Close()
	_, err = program.Run(&ebpf.RunOptions{Data: make([]byte, 14)})
	require.NoError(t, err)
}

// rings returns how often a queue's doorbell was rung: how far the buffer was written, in records of 16 bytes.
func (c *consumer) rings() uint64 { return atomic.LoadUint64(wordAt(c.bellEnd, 0)) / 16 }

// A consumer that is awake is not rung for. One that sleeps is rung for once: immediately at the watermark, else when
// the timeout has passed. No consumer waits for a packet that is there.
func TestDoorbell(t *testing.T) {
	const watermark, timeout = 4096, time.Second
	l := newLab(t)
	e := l.engine()
	plan := l.transmitted(1)
	plan.Clusters[0].Watermark, plan.Clusters[0].WatermarkTimeout = watermark, timeout
	l.apply(e, plan)
	c := l.consume("mirror", 0)
	l.send(frame(1, 60), frame(2, 60))
	require.Len(t, l.collect(c, 2), 2)
	require.Zero(t, c.rings(), "nobody slept")

	began := time.Now()
	l.sleepFor(c, 1)
	require.GreaterOrEqual(t, time.Since(began), timeout*9/10, "it waits for more")
	require.EqualValues(t, 1, c.rings())
	l.collect(c, 1)

	began = time.Now()
	l.sleepFor(c, 100)
	require.Less(t, time.Since(began), timeout*9/10, "the watermark was reached")
	require.EqualValues(t, 2, c.rings(), "once a sleep")
	l.collect(c, 100)
	time.Sleep(2 * timeout)
	require.EqualValues(t, 2, c.rings(), "and no more by the timer")

	// Without a timeout each packet ends a sleep. In this case the program is another one.
	plan.Clusters[0].WatermarkTimeout = 0
	l.apply(e, plan)
	for n := range 20 {
		l.sleepFor(c, 1)
		require.EqualValues(t, 3+n, c.rings())
		l.collect(c, 1)
	}
}

// slept returns how long a consumer with this own timeout, in microseconds, sleeps over a packet.
func (l *lab) slept(c *consumer, own uint64) time.Duration {
	atomic.StoreUint64(c.ownTimeout(), own)
	began := time.Now()
	l.sleepFor(c, 1)
	passed := time.Since(began)
	l.collect(c, 1)
	return passed
}

// A consumer's own timeout replaces the cluster's, longer or shorter, within bounds. What a consumer writes there harms
// nobody, and the next consumer does not inherit it.
func TestAConsumersOwnTimeout(t *testing.T) {
	const watermark, timeout = 4096, time.Second
	l := newLab(t)
	e := l.engine()
	plan := l.transmitted(1)
	plan.Clusters[0].Watermark, plan.Clusters[0].WatermarkTimeout = watermark, timeout
	l.apply(e, plan)
	c := l.consume("mirror", 0)
	require.GreaterOrEqual(t, l.slept(c, 2_000_000), 2*timeout*9/10, "longer than the cluster's")
	require.Less(t, l.slept(c, 50_000), timeout*9/10, "shorter")
	require.Less(t, l.slept(c, 1), timeout*9/10, "at least the lower bound")
	require.GreaterOrEqual(t, l.slept(c, 0), timeout*9/10, "the cluster's again")
	require.EqualValues(t, 4, c.rings())

	// Far too long: the watermark wakes all the same, and without it the upper bound does.
	atomic.StoreUint64(c.ownTimeout(), math.MaxUint64)
	began := time.Now()
	l.sleepFor(c, 100)
	require.Less(t, time.Since(began), timeout*9/10)
	l.collect(c, 100)
	passed := l.slept(c, math.MaxUint64)
	require.GreaterOrEqual(t, passed, 9*time.Second)
	require.Less(t, passed, 20*time.Second)
	require.EqualValues(t, 6, c.rings())

	c.detach()
	l.detached(e, "mirror", 0)
	c = l.consume("mirror", 0)
	require.Zero(t, *c.ownTimeout())

	// A cluster that wakes for each packet does so still.
	plan.Clusters[0].WatermarkTimeout = 0
	l.apply(e, plan)
	require.Less(t, l.slept(c, 5_000_000), 4*time.Second)
}

// sendAt sends packets of 60 bytes at this rate, some each millisecond, until the time is up, and returns their number.
func (l *lab) sendAt(rate int, d time.Duration) int {
	sent := 0
	for began := time.Now(); time.Since(began) < d; time.Sleep(time.Millisecond) {
		for due := int(time.Since(began).Seconds() * float64(rate)); sent < due; sent++ {
			l.send(frame(sent, 60))
		}
	}
	return sent
}

// While packets keep coming, a consumer is woken once for each of its timeouts, not of its cluster's, and once for each
// watermark, at any rate.
func TestWakeUpsByTheOwnTimeout(t *testing.T) {
	const own, sending, watermark, slot = 500 * time.Millisecond, 2 * time.Second, 256 << 10, 96
	for _, rate := range []int{1_000, 20_000, 50_000} {
		t.Run(strconv.Itoa(rate), func(t *testing.T) {
			l := newLab(t)
			plan := l.transmitted(1)
			plan.Clusters[0].QueueBytes, plan.Clusters[0].Watermark = 8<<20, watermark
			plan.Clusters[0].WatermarkTimeout = 10 * time.Millisecond
			l.apply(l.engine(), plan)
			c := l.consume("mirror", 0)
			atomic.StoreUint64(c.ownTimeout(), uint64(own.Microseconds()))
			began := time.Now()
			done := make(chan int, 1)
			go func() { done <- l.sendAt(rate, sending) }()
			sent, read := -1, 0
			for sent < 0 {
				select {
				case sent = <-done:
				default:
					c.wait(2 * own)
				}
				packets, err := c.drain()
				require.NoError(t, err)
				read += len(packets)
			}
			require.Equal(t, sent, read)
			require.LessOrEqual(t, c.rings(), uint64(time.Since(began)/own)+uint64(sent*slot/watermark)+1)
		})
	}
}

// A timer from a sleep that the consumer has ended by itself does not ring in the next sleep, in which no packet
// arrived.
func TestTheTimerIsOfItsSleep(t *testing.T) {
	const timeout = 300 * time.Millisecond
	l := newLab(t)
	plan := l.transmitted(1)
	plan.Clusters[0].Watermark, plan.Clusters[0].WatermarkTimeout = 1<<16, timeout
	l.apply(l.engine(), plan)
	c := l.consume("mirror", 0)
	for range 3 {
		c.sleeps++
		atomic.StoreUint64(c.sleep(), c.sleeps)
		l.send(frame(1, 60))
		packets, err := c.drain()
		require.NoError(t, err)
		require.Len(t, packets, 1)
	}
	c.sleeps++
	atomic.StoreUint64(c.sleep(), c.sleeps)
	time.Sleep(2 * timeout)
	require.Zero(t, c.rings())
	began := time.Now()
	l.sleepFor(c, 1)
	require.GreaterOrEqual(t, time.Since(began), timeout*9/10)
	require.EqualValues(t, 1, c.rings())
}

// A consumer that sleeps is woken before, while and after one agent follows another.
func TestASleepOverARestart(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	plan := l.transmitted(1)
	plan.Clusters[0].Watermark, plan.Clusters[0].WatermarkTimeout = 1<<16, 100*time.Millisecond
	l.apply(e, plan)
	c := l.consume("mirror", 0)
	l.sleepFor(c, 1)
	l.collect(c, 1)
	require.NoError(t, e.Close())
	l.sleepFor(c, 1)
	l.collect(c, 1)
	e = l.engine()
	l.sleepFor(c, 1)
	l.collect(c, 1)
	l.apply(e, plan)
	l.sleepFor(c, 1)
	l.collect(c, 1)
}

// setEarlierCallback gives a queue's timer a callback of another version: one that does nothing.
func (l *lab) setEarlierCallback(e *Engine, index uint32) {
	l.t.Helper()
	spec, err := loadSpec()
	require.NoError(l.t, err)
	program := spec.Programs[bellProgram]
	body := function(l.t, program.Instructions, "bell_timeout")
	begin := slices.IndexFunc(program.Instructions, func(ins asm.Instruction) bool { return ins.Symbol() == "bell_timeout" })
	nothing := asm.Instructions{asm.Mov.Imm(asm.R0, 0).WithMetadata(body[0].Metadata), asm.Return()}
	program.Instructions = slices.Replace(program.Instructions, begin, begin+len(body), nothing...)
	earlier := *e.env.tables
	earlier.bell, err = loadBell(spec, earlier.bells, earlier.consumers, earlier.doorbells)
	require.NoError(l.t, err)
	defer earlier.bell.Close()
	require.NoError(l.t, earlier.resumeBell(index))
}

// The consumer of an earlier agent gets the timer of this one, as soon as this one is there. What was done for its sleep
// stays so.
func TestDoorbellOfAConsumerThatResumes(t *testing.T) {
	l := newLab(t)
	first := l.engine()
	plan := l.transmitted(1)
	plan.Clusters[0].Watermark, plan.Clusters[0].WatermarkTimeout = 1<<16, 200*time.Millisecond
	l.apply(first, plan)
	c := l.consume("mirror", 0)
	l.setEarlierCallback(first, first.clusters["mirror"].queues[0].index)
	c.sleeps++
	atomic.StoreUint64(c.sleep(), c.sleeps)
	l.send(frame(1, 60))
	time.Sleep(time.Second)
	require.Zero(t, c.rings(), "by the earlier callback")
	require.NoError(t, first.Close())

	e := l.engine()
	l.send(frame(2, 60))
	time.Sleep(time.Second)
	require.Zero(t, c.rings(), "the timer was started for this sleep already")
	l.collect(c, 2)
	l.sleepFor(c, 1)
	require.EqualValues(t, 1, c.rings())
	atomic.StoreUint64(c.sleep(), c.sleeps) // as if it still slept
	require.NoError(t, e.Close())
	e = l.engine()
	l.apply(e, plan)
	l.send(frame(3, 60))
	time.Sleep(time.Second)
	require.EqualValues(t, 1, c.rings(), "once a sleep")
	l.collect(c, 2)
}

// A bell may fail to ring, here because the consumer claims that the doorbell is full. Then it rings for the next
// packet of the same sleep.
func TestARingThatFailedIsRepeated(t *testing.T) {
	for _, timeout := range []time.Duration{0, 100 * time.Millisecond} {
		l := newLab(t)
		plan := l.transmitted(1)
		plan.Clusters[0].Watermark, plan.Clusters[0].WatermarkTimeout = 1<<16, timeout
		l.apply(l.engine(), plan)
		c := l.consume("mirror", 0)
		atomic.StoreUint64(wordAt(c.bell, 0), ^uint64(c.pageSize-1))
		c.sleeps++
		atomic.StoreUint64(c.sleep(), c.sleeps)
		l.send(frame(1, 60))
		time.Sleep(2 * timeout)
		require.Zero(t, c.rings())
		atomic.StoreUint64(wordAt(c.bell, 0), 0)
		l.send(frame(2, 60))
		require.Eventually(t, func() bool { return c.rings() == 1 }, 10*time.Second, time.Millisecond)
		require.Len(t, l.collect(c, 2), 2)
	}
}

// sleepFor sends frames to a consumer that has gone to sleep, and returns when it was woken.
func (l *lab) sleepFor(c *consumer, frames int) {
	l.t.Helper()
	c.sleeps++
	atomic.StoreUint64(c.sleep(), c.sleeps)
	require.Zero(l.t, c.unread())
	for n := range frames {
		l.send(frame(n, 60))
	}
	events := make([]unix.EpollEvent, 1)
	n, err := unix.EpollWait(c.epoll, events, 10_000)
	for err == unix.EINTR {
		n, err = unix.EpollWait(c.epoll, events, 10_000)
	}
	require.NoError(l.t, err)
	require.Equal(l.t, 1, n, "it was not woken")
	atomic.StoreUint64(c.sleep(), 0)
	atomic.StoreUint64(wordAt(c.bell, 0), atomic.LoadUint64(wordAt(c.bellEnd, 0)))
}

// A reader that sleeps whenever it finds nothing misses nothing. It is woken no more often than it sleeps.
func TestNothingIsStranded(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Millisecond} {
		l := newLab(t)
		e := l.engine()
		plan := l.transmitted(2)
		plan.Clusters[0].QueueBytes, plan.Clusters[0].Watermark, plan.Clusters[0].WatermarkTimeout = 16<<20, 1<<20, timeout
		l.apply(e, plan)
		c := l.consume("mirror", 0)
		var read atomic.Uint64
		var end atomic.Bool
		done := make(chan error, 1)
		go func() { done <- c.readUntil(&end, &read) }()
		sent := l.sendFromAll(10_000 / runtime.NumCPU())
		l.until("all packets are read", func() bool { return read.Load() == c.delivered() })
		stats := l.observe(e).Clusters["mirror"].Queues[0]
		require.EqualValues(t, sent, read.Load()+stats.Dropped["nomem"], "%v", stats.Dropped)
		end.Store(true)
		l.send(frame(1, 60))
		require.NoError(t, <-done)
		require.LessOrEqual(t, c.rings(), c.sleeps)
	}
}

// readUntil counts packets, and sleeps when there are none. After the end, one more packet has to wake it.
func (c *consumer) readUntil(end *atomic.Bool, read *atomic.Uint64) error {
	for !end.Load() {
		p, err := c.next()
		if err != nil {
			return err
		}
		if p != nil {
			read.Add(1)
		} else if !c.wait(20 * time.Second) {
			return errors.New("it was not woken")
		}
	}
	return nil
}

// The next consumer's sleeps have the same numbers as those of the last one. It still gets its doorbell and its
// positions.
func TestTheNextConsumersDoorbell(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, l.transmitted(1))
	for range 3 {
		c := l.consume("mirror", 0)
		l.sleepFor(c, 1)
		l.collect(c, 1)
		*c.sleep() = 99
		c.detach()
		l.detached(e, "mirror", 0)
	}
}

// While an agent runs, nobody can freeze a queue's maps. Otherwise each attachment would cost the memory of another
// queue. Maps that were frozen while no agent ran are of no use to the next consumer. It gets other maps, as far as
// the node has memory.
func TestFrozenMapsAreReplaced(t *testing.T) {
	for kind := 1; kind < len(kinds); kind++ {
		l := newLab(t)
		e := l.engine()
		l.apply(e, l.plan(1))
		l.sendAll(e, "mirror", 2, func(n int) []byte { return frame(n, 60) })
		c := l.consume("mirror", 0)
		l.sendAll(e, "mirror", 5, func(n int) []byte { return frame(n, 60) })
		l.collect(c, 5)
		c.detach()
		l.detached(e, "mirror", 0)
		c.close()
		pin := e.clusters["mirror"].queues[0].pin(kinds[kind])
		require.ErrorIs(t, freeze(t, pin), unix.EBUSY, "the agent has mapped it for writing")
		again := l.consume("mirror", 0)
		require.Equal(t, c.reply.MapID, again.reply.MapID)
		again.close()
		require.NoError(t, e.Close())
		require.NoError(t, freeze(t, pin), "while there is no agent")

		full := true
		e = l.engine(func(o *Options) {
			o.Memory = func() (capture.Memory, error) {
				if full {
					return capture.Memory{}, nil
				}
				return capture.Memory{Total: 1 << 30, Available: 512 << 20, AgentRoom: math.MaxUint64}, nil
			}
		})
		l.apply(e, l.plan(1))
		_, err := consume(l.runDir, "mirror", 0)
		require.ErrorContains(t, err, "no memory")
		full = false
		next := l.consume("mirror", 0)
		require.NotEqual(t, c.reply.MapID, next.reply.MapID)
		l.sendAll(e, "mirror", 3, func(n int) []byte { return frame(n, 60) })
		l.collect(next, 3)
		stats := l.observe(e).Clusters["mirror"].Queues[0]
		require.EqualValues(t, 8, stats.Delivered)
		require.EqualValues(t, 2, stats.Dropped[capture.DropUnattended])
	}
}

// freeze freezes a map in the way that is open to a holder of its descriptor.
func freeze(t *testing.T, pin string) error {
	m, err := ebpf.LoadPinnedMap(pin, nil)
	require.NoError(t, err)
	defer m.Close()
	return m.Freeze()
}

// The account has each packet once, over any number of take-backs under traffic.
func TestTakeBackLosesNoCount(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, l.transmitted(2))
	const enough = 10
	stop := make(chan struct{})
	var taken atomic.Int32 // with packets delivered before
	var takeBacks sync.WaitGroup
	takeBacks.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			c, err := consume(l.runDir, "mirror", 0)
			if err == nil {
				for deadline := time.Now().Add(time.Second); c.unread() == 0 && time.Now().Before(deadline); {
					time.Sleep(time.Millisecond)
				}
				if c.unread() > 0 {
					taken.Add(1)
				}
				c.close()
			}
			_, _ = e.TakeBack(t.Context(), capture.QueueID{Cluster: "mirror"}, capture.Holder{})
		}
	})
	sent := 0
	for taken.Load() < enough {
		sent += l.sendFromAll(5_000)
	}
	close(stop)
	takeBacks.Wait()
	stats := l.observe(e).Clusters["mirror"].Queues[0]
	require.EqualValues(t, sent, stats.Delivered+stats.Dropped["full"]+stats.Dropped["nomem"]+stats.Dropped["unattended"])
	require.Positive(t, stats.Delivered)
	require.Positive(t, e.clusters["mirror"].queues[0].account.Before.Delivered)
}

// If programs could not reach the data of a queue, the queue is refused, with advice.
func TestQueuesThatProgramsCannotReach(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	plan := l.plan(1)
	plan.Clusters[0].QueueBytes, plan.Clusters[0].Lanes = 128<<20, 4
	failed, err := e.Apply(t.Context(), plan, capture.Observation{})
	require.NoError(t, err)
	require.ErrorIs(t, failed["mirror"], capture.ErrUnsupported)
	require.ErrorContains(t, failed["mirror"], "bytes, and programs reach less than 536870912: lower spec.slots")
}
