// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// numbered is a frame with a flow and a number that frame has no room for.
func numbered(flow, n int) []byte {
	f := frame(flow, 60)
	binary.NativeEndian.PutUint32(f[50:], uint32(n))
	return f
}

// sendMoving sends a flow's frames, each piece of them from another CPU. A CPU that is offline is left out.
func sendMoving(socket, flow, frames int) {
	const piece = 100
	runtime.LockOSThread() // it stays locked: the thread ends with the goroutine
	for n := range frames {
		if n%piece == 0 {
			_ = moveTo((flow + n/piece) % runtime.NumCPU())
		}
		for unix.EAGAIN == sendTo(socket, numbered(flow, n)) {
			continue
		}
	}
}

// toggleCPUs takes one CPU after the other offline and back, in a VM of the test's own.
func (l *lab) toggleCPUs(end <-chan struct{}) {
	if os.Getenv("RINGCAP_VM") == "" {
		return
	}
	online := func(cpu int, value string) {
		path := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", cpu)
		if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
			l.t.Errorf("processor %d: %v", cpu, err)
		}
	}
	for turn := 0; ; turn++ {
		cpu := 1 + turn%(runtime.NumCPU()-1)
		online(cpu, "0")
		time.Sleep(20 * time.Millisecond)
		online(cpu, "1")
		select {
		case <-end:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// sysfs mounts that of the test's network namespace.
func (l *lab) sysfs() string {
	folder := l.t.TempDir()
	require.NoError(l.t, unix.Mount("sysfs", folder, "sysfs", 0, ""))
	l.t.Cleanup(func() { require.NoError(l.t, unix.Unmount(folder, unix.MNT_DETACH)) })
	return folder
}

// steer changes the CPU that processes what an interface receives, as somebody does who sets RPS.
func (l *lab) steer(setting string, end <-chan struct{}) {
	for turn := 0; ; turn++ {
		if err := os.WriteFile(setting, fmt.Appendf(nil, "%x", 1<<(turn%runtime.NumCPU())), 0o644); err != nil {
			l.t.Error(err)
		}
		select {
		case <-end:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// sendWhileCPUsMove sends several flows at once, and returns the number of frames.
func (l *lab) sendWhileCPUsMove(beside func(end <-chan struct{})) int {
	const flows, frames = 6, 4000
	end := make(chan struct{})
	var sending, moving sync.WaitGroup
	moving.Go(func() { beside(end) })
	for flow := range flows {
		socket := l.packetSocket(l.sender)
		sending.Go(func() { sendMoving(socket, flow, frames) })
	}
	sending.Wait()
	close(end)
	moving.Wait()
	return flows * frames
}

// Flows move between CPUs, and CPUs go offline and come back: nothing is lost, and each flow is read in its order.
func TestOrderWhileCPUsMove(t *testing.T) {
	for _, lanes := range []int{1, 2, 4} {
		l := newLab(t)
		e := l.engine()
		plan := l.transmitted(lanes)
		plan.Clusters[0].QueueBytes = 32 << 20
		l.apply(e, plan)
		reading := l.read(l.consume("mirror", 0))
		sent := l.sendWhileCPUsMove(l.toggleCPUs)
		packets, err := reading.stop()
		require.NoError(t, err)
		stats := l.observe(e).Clusters["mirror"].Queues[0]
		require.EqualValues(t, sent, stats.Delivered+stats.Dropped["nomem"], "%d lanes: %v", lanes, stats.Dropped)
		require.EqualValues(t, len(packets), stats.Delivered)
		next := map[byte]uint32{}
		for _, p := range packets {
			flow, n := p.data[29], binary.NativeEndian.Uint32(p.data[50:])
			require.GreaterOrEqual(t, n, next[flow], "%d lanes, flow %d", lanes, flow)
			next[flow] = n + 1
		}
	}
}

// entered is the number of packets that an interface has received. Those that the backlog of a CPU had no room for are
// not among them; newer kernels tell the sender, which sends them again.
func (l *lab) entered(iface string) uint64 {
	i, err := netlink.LinkByName(iface)
	require.NoError(l.t, err)
	return i.Attrs().Statistics.RxPackets
}

// What an interface receives moves between CPUs: nothing is lost. The stack itself may reorder a flow then.
func TestConservationWhileSteeringMoves(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	plan := l.plan(1)
	plan.Clusters[0].QueueBytes, plan.Clusters[0].Lanes = 32<<20, 2
	l.apply(e, plan)
	reading := l.read(l.consume("mirror", 0))
	setting := filepath.Join(l.sysfs(), "class/net/tapped/queues/rx-0/rps_cpus")
	before := l.entered("tapped")
	l.sendWhileCPUsMove(func(end <-chan struct{}) { l.steer(setting, end) })
	seen := l.entered("tapped") - before
	require.Positive(t, seen)
	l.settled(e, "mirror", seen)
	packets, err := reading.stop()
	require.NoError(t, err)
	stats := l.observe(e).Clusters["mirror"].Queues[0]
	require.EqualValues(t, seen, stats.Delivered+stats.Dropped["nomem"], "%v", stats.Dropped)
	require.EqualValues(t, len(packets), stats.Delivered)
}
