// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/testnet"
)

/*
 * Every test has a network namespace and a bpffs of its own:
 *
 *	+------------- rcb<pid>-<n> -------------+
 *	|  sender -------- veth -------- tapped  |  rings tap "tapped"; frames are written to "sender"
 *	+----------------------------------------+
 */
type lab struct {
	t              *testing.T
	pinDir, runDir string
	namespace      netns.NsHandle
	sender, tapped netlink.Link
	socket         int
}

var probed = sync.OnceValue(Probe)

func newLab(t *testing.T) *lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes a network namespace and loads eBPF programs")
	}
	if err := probed(); err != nil {
		require.Empty(t, os.Getenv("RINGCAP_VM"), "this kernel cannot run the engine: %v", err)
		t.Skipf("this kernel cannot run the engine: %v", err)
	}
	l := &lab{t: t, socket: -1}
	base, err := os.MkdirTemp("", "rcb")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(base) })
	bpffs := filepath.Join(base, "bpf")
	require.NoError(t, os.Mkdir(bpffs, 0o700))
	require.NoError(t, unix.Mount("bpf", bpffs, "bpf", 0, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(bpffs, unix.MNT_DETACH)) })
	l.pinDir, l.runDir = filepath.Join(bpffs, "ringcap"), filepath.Join(base, "run")
	require.NoError(t, os.Chmod(base, 0o755))
	l.namespace = testnet.Enter(t)
	l.sender, l.tapped = l.addVeth("sender", "tapped")
	l.openSocket()
	return l
}

func (l *lab) write(path, text string) {
	require.NoError(l.t, os.WriteFile(path, []byte(text), 0o644))
}

func (l *lab) addVeth(a, b string) (netlink.Link, netlink.Link) {
	veth := netlink.NewVeth(netlink.LinkAttrs{Name: a, MTU: 65000, TxQLen: 1000})
	veth.PeerName = b
	veth.PeerMTU = 65000
	require.NoError(l.t, netlink.LinkAdd(veth))
	l.up(a)
	tapped := l.operational(b)
	return l.operational(a), tapped
}

// operational waits until an interface has a carrier and the queueing discipline that comes with it. Before, packets
// that are sent are silently dropped.
func (l *lab) operational(name string) netlink.Link {
	l.t.Helper()
	l.up(name)
	var i netlink.Link
	l.until("interface "+name+" is up", func() bool {
		var err error
		i, err = netlink.LinkByName(name)
		return err == nil && i.Attrs().OperState == netlink.OperUp
	})
	return i
}

// until waits for a condition. It calls it in this goroutine, because others are not in the test's network namespace.
func (l *lab) until(what string, condition func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		require.True(l.t, time.Now().Before(deadline), "timed out: %s", what)
	}
}

func (l *lab) up(name string) netlink.Link {
	l.t.Helper()
	i, err := netlink.LinkByName(name)
	require.NoError(l.t, err)
	require.NoError(l.t, netlink.LinkSetUp(i))
	return i
}

func (l *lab) openSocket() {
	l.socket = l.packetSocket(l.sender)
}

// packetSocket opens a socket that sends raw frames out of an interface.
func (l *lab) packetSocket(out netlink.Link) int {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	require.NoError(l.t, err)
	l.t.Cleanup(func() { unix.Close(fd) })
	require.NoError(l.t, unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: out.Attrs().Index}))
	return fd
}

// send writes frames to the interface "sender", which is how "tapped" receives them.
func (l *lab) send(frames ...[]byte) {
	l.t.Helper()
	for i, frame := range frames {
		for {
			_, err := unix.Write(l.socket, frame)
			if err == unix.ENOBUFS {
				continue
			}
			require.NoError(l.t, err, "frame %d", i)
			break
		}
	}
}

// sendAll writes frames in portions. It sends a portion when the previous one has arrived, because the backlog of a
// veth is bounded, and nobody counts what it drops.
func (l *lab) sendAll(e *Engine, ring string, frames int, make func(n int) []byte) {
	l.t.Helper()
	const portion = 500
	before := l.observe(e).Rings[ring].Stats.Seen
	for n := 0; n < frames; n++ {
		l.send(make(n))
		if n%portion == portion-1 || n == frames-1 {
			l.settled(e, ring, before+uint64(n)+1)
		}
	}
}

func (l *lab) engine(change ...func(*Options)) *Engine {
	l.t.Helper()
	options := Options{PinDir: l.pinDir, RunDir: l.runDir}
	for _, c := range change {
		c(&options)
	}
	e, err := New(options)
	require.NoError(l.t, err)
	l.t.Cleanup(func() { e.Close() })
	return e
}

// attachedBy returns an option for how taps are attached: "tcx" or "clsact".
func (l *lab) attachedBy(mode string) func(*Options) {
	l.t.Helper()
	if mode == "tcx" {
		a, err := newAttacher(pins{})
		require.NoError(l.t, err)
		if _, ok := a.(tcx); !ok {
			l.t.Skip("this kernel has no tcx")
		}
	}
	return func(o *Options) { o.withoutTCX = mode == "clsact" }
}

func (l *lab) apply(e *Engine, plan capture.Plan) {
	l.t.Helper()
	failed, err := e.Apply(context.Background(), plan, capture.Observation{})
	require.NoError(l.t, err)
	require.Empty(l.t, failed)
}

func (l *lab) consume(name string, queue int) *consumer {
	l.t.Helper()
	c, err := consume(l.runDir, name, queue)
	require.NoError(l.t, err)
	l.t.Cleanup(c.close)
	return c
}

func (l *lab) collect(c *consumer, n int) []*packet {
	l.t.Helper()
	packets, err := c.collect(n)
	require.NoError(l.t, err)
	return packets
}

func (l *lab) observe(e *Engine) capture.Observation {
	l.t.Helper()
	observed, err := e.Observe(context.Background())
	require.NoError(l.t, err)
	return observed
}

// settled observes until a ring has seen n packets. They cross the veth when the receiving CPU processes them.
func (l *lab) settled(e *Engine, ring string, n uint64) capture.Observation {
	l.t.Helper()
	var observed capture.Observation
	l.until(fmt.Sprintf("ring %s has seen %d packets", ring, n), func() bool {
		observed = l.observe(e)
		return observed.Rings[ring].Stats.Seen >= n && balanced(observed)
	})
	require.Equal(l.t, n, observed.Rings[ring].Stats.Seen)
	return observed
}

// balanced reports whether every packet that a ring of "mirror" passed is in a queue's account.
func balanced(o capture.Observation) bool {
	var accounted uint64
	for _, q := range o.Clusters["mirror"].Queues {
		accounted += q.Delivered + q.Shunted
		for _, n := range q.Dropped {
			accounted += n
		}
	}
	return o.Rings["mirror"].Stats.Passed == accounted
}

func (l *lab) tap(d capture.Direction) capture.Tap {
	return capture.Tap{Interface: "tapped", Index: l.tapped.Attrs().Index, Direction: d}
}

// plan returns a plan with a ring "mirror" on "tapped" with its own queues.
func (l *lab) plan(queues int) capture.Plan {
	return capture.Plan{
		Rings: []capture.Ring{{
			Name: "mirror", Taps: []capture.Tap{l.tap(capture.Receive)}, SnapLen: 65535, Outputs: []string{"mirror"},
		}},
		Clusters: []capture.Cluster{{
			Name: "mirror", Queues: queues, QueueBytes: 1 << 20,
			HashKey: [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
		}},
	}
}

// withLongHeader makes the slots of all clusters carry the parser's results.
func withLongHeader(plan capture.Plan) capture.Plan {
	for i := range plan.Clusters {
		plan.Clusters[i].LongHeader = true
	}
	return plan
}

// frame returns an Ethernet frame with an IPv4 UDP packet. Its bytes depend on n.
func frame(n, length int) []byte {
	f := make([]byte, max(length, 46))
	copy(f, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00, 0x45})
	f[14+8], f[14+9] = 64, 17
	copy(f[14+12:], []byte{10, 0, byte(n >> 8), byte(n), 10, 1, 2, 3})
	copy(f[14+20:], []byte{0x10, byte(n), 0, 53})
	copy(f[14+28:], fmt.Appendf(nil, "%04x", n))
	return f
}
