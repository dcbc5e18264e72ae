// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	vnl "github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// These tests speak with the module itself; node-agent/tests/run runs them in virtual machines.
func needModule(t *testing.T) {
	t.Helper()
	if _, err := Probe(); err != nil {
		t.Skipf("needs the kernel module (node-agent/tests/run has it): %v", err)
	}
}

// lab is an engine and a veth pair with one end tapped.
type lab struct {
	t      *testing.T
	engine *Engine
	tapped int
	sender int
	socket int
}

func newLab(t *testing.T) *lab {
	t.Helper()
	needModule(t)
	require.NoError(t, vnl.LinkAdd(&vnl.Veth{LinkAttrs: vnl.LinkAttrs{Name: "rcn0"}, PeerName: "rcn1"}))
	l := &lab{t: t, engine: New(t.TempDir(), lanes)}
	for name, index := range map[string]*int{"rcn0": &l.sender, "rcn1": &l.tapped} {
		require.NoError(t, os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0))
		link, err := vnl.LinkByName(name)
		require.NoError(t, err)
		require.NoError(t, vnl.LinkSetUp(link))
		*index = link.Attrs().Index
	}
	// Until a worker of the kernel's has seen that there is a carrier, what is sent is dropped and nobody told. It
	// holds the lock that the last call waits for.
	require.Eventually(t, func() bool {
		link, err := vnl.LinkByName("rcn0")
		return err == nil && link.Attrs().OperState == vnl.OperUp && vnl.LinkSetUp(link) == nil
	}, time.Minute, time.Millisecond)
	var err error
	l.socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	require.NoError(t, err)
	t.Cleanup(func() {
		unix.Close(l.socket)
		failed, err := l.engine.Apply(context.Background(), capture.Plan{}, capture.Observation{})
		assert.NoError(t, err)
		assert.Empty(t, failed)
		_ = exec.Command("ip", "link", "del", "rcn0").Run()
	})
	return l
}

// plan has a ring that lets UDP (ethertype IPv4, protocol 17) pass, and a cluster.
func (l *lab) plan(queues int) capture.Plan {
	program, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 12, Size: 2}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0x800, SkipTrue: 3},
		bpf.LoadAbsolute{Off: 23, Size: 1}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 17, SkipTrue: 1},
		bpf.RetConstant{Val: 65535}, bpf.RetConstant{},
	})
	require.NoError(l.t, err)
	return capture.Plan{
		Rings: []capture.Ring{{
			Name: "mirror", Taps: []capture.Tap{{Interface: "rcn1", Index: l.tapped, Direction: capture.Receive}},
			Filter: program, SnapLen: 1500, Promiscuous: true, Outputs: []string{"ids"},
		}},
		Clusters: []capture.Cluster{{
			Name: "ids", Queues: queues, Balance: capture.BalanceFlow, HashKey: [16]byte{1}, QueueBytes: 128 << 10,
			Watermark: 4096, WatermarkTimeout: 10 * time.Millisecond,
		}},
	}
}

func (l *lab) apply(p capture.Plan) map[string]error {
	l.t.Helper()
	seen, err := l.engine.Observe(context.Background())
	require.NoError(l.t, err)
	failed, err := l.engine.Apply(context.Background(), p, seen)
	require.NoError(l.t, err)
	return failed
}

func (l *lab) observe() capture.Observation {
	l.t.Helper()
	o, err := l.engine.Observe(context.Background())
	require.NoError(l.t, err)
	return o
}

// send sends packets of 16 flows with an IP protocol, of 60 bytes.
func (l *lab) send(packets int, protocol byte) {
	l.t.Helper()
	for i := range packets {
		packet := append([]byte{
			2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0,
			0x45, 0, 0, 46, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, byte(i % 16), 10, 1, 0, 1, 3, 0xe8, 0, 53, 0, 26, 0, 0,
		}, make([]byte, 18)...)
		require.NoError(l.t, unix.Sendto(l.socket, packet, 0, &unix.SockaddrLinklayer{Ifindex: l.sender, Halen: 6}))
	}
}

// seen waits until a ring has seen packets.
func (l *lab) seen(packets uint64) capture.Observation {
	l.t.Helper()
	var o capture.Observation
	require.Eventually(l.t, func() bool {
		o = l.observe()
		return o.Rings["mirror"].Stats.Seen >= packets
	}, time.Minute, 20*time.Millisecond)
	return o
}

func TestModuleAccounts(t *testing.T) {
	l := newLab(t)
	require.Empty(t, l.apply(l.plan(2)))
	first := l.attach(0)
	defer unix.Close(first)
	second := l.attach(1)
	defer unix.Close(second)
	l.send(200, 17)
	l.send(50, 6)
	o := l.seen(250)
	assert.Equal(t, capture.RingStats{Seen: 250, SeenBytes: 250 * 60, Filtered: 50, Passed: 200}, o.Rings["mirror"].Stats)
	queues := o.Clusters["ids"].Queues
	require.Len(t, queues, 2)
	assert.EqualValues(t, 200, queues[0].Delivered+queues[1].Delivered)
	assert.EqualValues(t, 200*60, queues[0].DeliveredBytes+queues[1].DeliveredBytes)
	assert.Positive(t, queues[0].UnreadBytes+queues[1].UnreadBytes)
	assert.EqualValues(t, 2*lanes*128<<10, o.Clusters["ids"].MemoryMost)
	assert.GreaterOrEqual(t, o.Clusters["ids"].Memory, uint64(2*128<<10), "a lane of each queue at least")
}

func TestModuleLeavesWhatIsUnchanged(t *testing.T) {
	l := newLab(t)
	require.Empty(t, l.apply(l.plan(1)))
	fd := l.attach(0)
	defer unix.Close(fd)
	l.send(10, 17)
	l.seen(10)
	require.Empty(t, l.apply(l.plan(1)))
	changed := l.plan(1)
	changed.Rings[0].Filter = nil
	require.Empty(t, l.apply(changed))
	l.send(10, 6)
	o := l.seen(20)
	assert.EqualValues(t, 20, o.Clusters["ids"].Queues[0].Delivered, "a ring that is changed goes on counting")
	assert.True(t, o.Clusters["ids"].Queues[0].Attached)
}

func TestModuleRefusesWhatIsInUse(t *testing.T) {
	l := newLab(t)
	require.Empty(t, l.apply(l.plan(2)))
	id := capture.QueueID{Cluster: "ids", Queue: 1}
	fd := l.attach(1)
	assert.True(t, l.observe().Clusters["ids"].Queues[1].Attached)
	assert.Equal(t, os.Getpid(), l.observe().Clusters["ids"].Queues[1].Holder)
	from, err := l.engine.TakeBack(context.Background(), id, capture.Holder{PID: 1})
	assert.ErrorIs(t, err, capture.ErrNotFound, "process 1 does not have it")
	assert.Equal(t, os.Getpid(), from)
	assert.ErrorIs(t, l.apply(l.plan(3))["ids"], capture.ErrInUse)
	assert.Len(t, l.observe().Clusters["ids"].Queues, 2)
	assert.ErrorIs(t, l.apply(capture.Plan{})["ids"], capture.ErrInUse)
	unix.Close(fd)
	require.Empty(t, l.apply(l.plan(3)))
	from, err = l.engine.TakeBack(context.Background(), id, capture.Holder{})
	require.NoError(t, err)
	assert.Zero(t, from)
	_, err = l.engine.TakeBack(context.Background(), capture.QueueID{Cluster: "ids", Queue: 9}, capture.Holder{})
	assert.ErrorIs(t, err, capture.ErrNotFound)
	_, err = l.engine.Grant(capture.QueueID{Cluster: "none", Queue: 0})
	assert.ErrorIs(t, err, capture.ErrNotFound)
}

// What somebody else made is neither touched nor shown.
func TestModuleObjectsOfOthersAreLeftAlone(t *testing.T) {
	l := newLab(t)
	c, err := dial()
	require.NoError(t, err)
	defer c.close()
	e := netlink.NewAttributeEncoder()
	e.String(attrName, "ids")
	attributes, err := e.Encode()
	require.NoError(t, err)
	require.NoError(t, c.do(cmdClusterSet, attributes))
	defer func() { assert.NoError(t, c.remove(cmdClusterDel, "ids")) }()

	failed := l.apply(l.plan(2))
	assert.ErrorContains(t, failed["ids"], "somebody else made")
	assert.NotContains(t, l.observe().Clusters, "ids")
	l.apply(capture.Plan{})
	clusters, err := collect(c, cmdClusterGet, nil, decodeCluster)
	require.NoError(t, err)
	assert.Len(t, clusters, 1)
}

func TestModuleEvents(t *testing.T) {
	l := newLab(t)
	require.Empty(t, l.apply(l.plan(1)))
	ctx, cancel := context.WithCancel(context.Background())
	activity, gone, ended := make(chan struct{}, 100), make(chan struct{}, 100), make(chan error, 1)
	go func() {
		ended <- Watch(ctx, func() { activity <- struct{}{} }, func() { gone <- struct{}{} })
	}()
	wait := func(c chan struct{}, provoke func()) {
		t.Helper()
		// Until it listens, an event passes it by.
		require.Eventually(t, func() bool {
			provoke()
			select {
			case <-c:
				return true
			case <-time.After(200 * time.Millisecond):
				return false
			}
		}, time.Minute, time.Millisecond)
	}
	wait(activity, func() { unix.Close(l.attach(0)) })
	require.NoError(t, exec.Command("ip", "link", "del", "rcn0").Run())
	wait(gone, func() {})
	assert.Empty(t, l.observe().Rings["mirror"].Taps)
	cancel()
	assert.NoError(t, <-ended)
}

// attach opens the node that a container would be given, as a user that is not root would.
func (l *lab) attach(queue int) int {
	l.t.Helper()
	grant, err := l.engine.Grant(capture.QueueID{Cluster: "ids", Queue: queue})
	require.NoError(l.t, err)
	require.Len(l.t, grant.Devices, 1)
	assert.Equal(l.t, "/dev/ringcap/ids/"+string(rune('0'+queue)), grant.Devices[0].Container)
	fd, err := unix.Open(grant.Devices[0].Host, unix.O_RDWR|unix.O_CLOEXEC, 0)
	require.NoError(l.t, err)
	return fd
}

// A tap that follows stays with its interface in another network namespace, where its plan finds it again by the same
// index.
func TestModuleTapFollows(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l := newLab(t)
	back, err := netns.Get()
	require.NoError(t, err)
	defer back.Close()
	other, err := netns.New()
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, netns.Set(back))
	p := l.plan(1)
	p.Rings[0].Taps[0].Follows = true
	require.Empty(t, l.apply(p))
	link, err := vnl.LinkByName("rcn1")
	require.NoError(t, err)
	require.NoError(t, vnl.LinkSetNsFd(link, int(other)))
	there, err := vnl.NewHandleAt(other, unix.NETLINK_ROUTE)
	require.NoError(t, err)
	defer there.Close()
	require.NoError(t, there.LinkSetUp(link))

	taps := l.observe().Rings["mirror"].Taps
	require.Len(t, taps, 1)
	assert.True(t, taps[0].Follows && taps[0].Away)
	assert.Equal(t, l.tapped, taps[0].Index)
	require.Empty(t, l.apply(p))
	p.Rings[0].SnapLen = 500
	require.Empty(t, l.apply(p))
	l.send(32, 17)
	assert.Eventually(t, func() bool { return l.observe().Rings["mirror"].Stats.Seen == 32 }, time.Minute, 10*time.Millisecond)
	require.NoError(t, there.LinkSetNsFd(link, int(back)))
	taps = l.observe().Rings["mirror"].Taps
	require.Len(t, taps, 1)
	assert.True(t, taps[0].Follows && !taps[0].Away)
}

// A queue that is taken back is the next consumer's at once, and who was granted it before cannot open it again.
func TestModuleTakesBack(t *testing.T) {
	l := newLab(t)
	require.Empty(t, l.apply(l.plan(1)))
	id := capture.QueueID{Cluster: "ids"}
	old := l.attach(0)
	defer unix.Close(old)
	grant, err := l.engine.Grant(id)
	require.NoError(t, err)
	given := filepath.Join(t.TempDir(), "given")
	var node unix.Stat_t
	require.NoError(t, unix.Stat(grant.Devices[0].Host, &node))
	require.NoError(t, unix.Mknod(given, unix.S_IFCHR|0o600, int(node.Rdev)))
	l.send(50, 17)
	l.seen(50)

	from, err := l.engine.TakeBack(context.Background(), id, capture.Holder{PID: os.Getpid()})
	require.NoError(t, err)
	assert.Equal(t, os.Getpid(), from)
	_, err = unix.Open(given, unix.O_RDWR, 0)
	assert.ErrorIs(t, err, unix.ENXIO)
	poll := []unix.PollFd{{Fd: int32(old), Events: unix.POLLIN}}
	_, err = unix.Poll(poll, 0)
	require.NoError(t, err)
	assert.EqualValues(t, unix.POLLHUP|unix.POLLERR, poll[0].Revents)

	next := l.attach(0)
	defer unix.Close(next)
	l.send(50, 17)
	l.seen(100)
	queue := l.observe().Clusters["ids"].Queues[0]
	assert.EqualValues(t, 100, queue.Delivered)
	assert.True(t, queue.Attached)
}
