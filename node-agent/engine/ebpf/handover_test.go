// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

func TestHandOverReply(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	plan := l.plan(2)
	plan.Rings[0].SnapLen = 1514
	plan.Clusters[0].Watermark, plan.Clusters[0].WatermarkTimeout = 4096, 25e6
	l.apply(e, plan)
	c := l.consume("mirror", 1)
	want := handoverReply{
		Magic: protocolMagic, ABI: protocolABI, MapID: c.reply.MapID, LaneSize: 1 << 20, NrLanes: c.reply.NrLanes, HeadSize: c.reply.HeadSize, Queue: 1,
		NrQueues: 2, SnapLen: 1514, Watermark: 4096, TimeoutUs: 25000,
	}
	copy(want.Name[:], "mirror")
	require.Equal(t, want, c.reply)
	require.NotZero(t, c.reply.MapID)

	grant, err := e.Grant(capture.QueueID{Cluster: "mirror", Queue: 1})
	require.NoError(t, err)
	require.Equal(t, capture.Grant{Mounts: []capture.PathPair{{
		Host: filepath.Join(l.runDir, "mirror/1"), Container: "/run/ringcap/mirror/1",
	}}}, grant)
	for _, id := range []capture.QueueID{{Cluster: "mirror", Queue: 2}, {Cluster: "mirror", Queue: -1}, {Cluster: "other"}} {
		_, err := e.Grant(id)
		require.ErrorIs(t, err, capture.ErrNotFound)
		_, err = e.TakeBack(context.Background(), id, capture.Holder{})
		require.ErrorIs(t, err, capture.ErrNotFound)
	}
}

func TestHandOverIsAuthorized(t *testing.T) {
	l := newLab(t)
	var asked atomic.Int64
	e := l.engine(func(o *Options) {
		o.Authorizer = AuthorizerFunc(func(_ context.Context, pid int, q capture.QueueID) error {
			asked.Store(int64(pid))
			if q.Queue == 1 {
				return errors.New("queue 1 belongs to pod default/other")
			}
			return nil
		})
	})
	l.apply(e, l.plan(2))
	_, err := consume(l.runDir, "mirror", 1)
	require.ErrorIs(t, err, unix.EACCES)
	require.ErrorContains(t, err, "belongs to pod default/other")
	require.False(t, l.observe(e).Clusters["mirror"].Queues[1].Attached)
	l.consume("mirror", 0)
	require.EqualValues(t, os.Getpid(), asked.Load())
}

// A user of the node cannot reach the socket. A user of the container with the queue's folder can.
func TestOnlyContainersComeToSockets(t *testing.T) {
	l := newLab(t)
	closed := func(o *Options) {
		o.Authorizer = AuthorizerFunc(func(context.Context, int, capture.QueueID) error { return nil })
	}
	standalone := l.engine(func(o *Options) { o.Users = []uint32{nobody} })
	l.apply(standalone, l.plan(1))
	consumer, out := l.helper("consumer", consumerInput{RunDir: l.runDir, Name: "mirror"}, nobody)
	require.Equal(t, "attached", l.line(out))
	require.NoError(t, consumer.Process.Kill())
	l.detached(standalone, "mirror", 0)
	require.NoError(t, standalone.Close())

	e := l.engine(closed)
	_, out = l.helper("consumer", consumerInput{RunDir: l.runDir, Name: "mirror"}, nobody)
	require.Contains(t, l.line(out), "permission denied")
	container := l.mountQueue()
	consumer, out = l.helper("consumer", consumerInput{RunDir: container, Name: "mirror"}, nobody)
	require.Equal(t, "attached", l.line(out))
	require.NoError(t, consumer.Process.Kill())
	l.detached(e, "mirror", 0)

	require.NoError(t, e.Close())
	l.engine(func(o *Options) { o.Users = []uint32{nobody} })
	_, out = l.helper("consumer", consumerInput{RunDir: l.runDir, Name: "mirror"}, nobody)
	require.Equal(t, "attached", l.line(out), "and standalone they do again")
}

// mountQueue mounts queue 0 of mirror as a container has it, and returns the container's run folder.
func (l *lab) mountQueue() string {
	t := l.t
	t.Helper()
	container := filepath.Join(filepath.Dir(l.runDir), "container")
	inside := filepath.Join(container, "mirror/0")
	require.NoError(t, os.MkdirAll(inside, 0o755))
	require.NoError(t, unix.Mount(filepath.Join(l.runDir, "mirror/0"), inside, "", unix.MS_BIND, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(inside, unix.MNT_DETACH)) })
	require.NoError(t, unix.Mount("", inside, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	return container
}

// A process that connects and ends before the decision is refused. By then, a process that may have the queue may
// have its number.
func TestAPeerThatHasEnded(t *testing.T) {
	l := newLab(t)
	var parent *exec.Cmd
	started := make(chan struct{})
	e := l.engine(func(o *Options) {
		o.Authorizer = AuthorizerFunc(func(_ context.Context, pid int, _ capture.QueueID) error {
			<-started
			require.Equal(t, parent.Process.Pid, pid)
			require.NoError(t, parent.Process.Kill())
			_, _ = parent.Process.Wait()
			return nil
		})
	})
	l.apply(e, l.plan(1))
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)
	require.NoError(t, err)
	pidfd, err := unix.GetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	require.NoError(t, errors.Join(unix.Close(pair[0]), unix.Close(pair[1])))
	if err != nil {
		t.Skipf("this kernel does not tell whether a peer has ended: %v", err)
	}
	require.NoError(t, unix.Close(pidfd))
	var out *bufio.Scanner
	parent, out = l.helper("parent", consumerInput{RunDir: l.runDir, Name: "mirror"}, nobody, unix.CAP_DAC_READ_SEARCH)
	close(started)
	require.Contains(t, l.line(out), "the process that connected has ended")
	require.False(t, l.observe(e).Clusters["mirror"].Queues[0].Attached)
}

func TestUserWithoutRightIsRefused(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, l.plan(1))
	_, out := l.helper("consumer", consumerInput{RunDir: l.runDir, Name: "mirror"}, nobody)
	require.Contains(t, l.line(out), "user 65534 may not consume")
	require.False(t, l.observe(e).Clusters["mirror"].Queues[0].Attached)
}

// A consumer that immediately follows another does not get the error that the other is still attached.
func TestTheNextConsumerNeedNotWait(t *testing.T) {
	l := newLab(t)
	l.apply(l.engine(), l.plan(1))
	for range 300 {
		l.consume("mirror", 0).detach()
	}
}

func TestOneConsumerAQueue(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, l.plan(1))
	id := capture.QueueID{Cluster: "mirror"}
	c := l.consume("mirror", 0)
	_, err := consume(l.runDir, "mirror", 0)
	require.ErrorIs(t, err, unix.EBUSY)
	require.ErrorContains(t, err, fmt.Sprintf("another consumer is attached to this queue: process %d (", os.Getpid()))
	require.ErrorContains(t, err, "), this program itself")
	_, err = e.TakeBack(context.Background(), id, capture.Holder{PID: 1})
	require.ErrorIs(t, err, capture.ErrNotFound, "process 1 does not have it")
	seen := l.observe(e).Clusters["mirror"].Queues[0]
	require.Equal(t, os.Getpid(), seen.Holder)
	l.sendAll(e, "mirror", 10, func(n int) []byte { return frame(n, 60) })
	require.Len(t, l.collect(c, 4), 4)
	c.detach()
	l.detached(e, "mirror", 0)

	// The next consumer continues where the last one stopped.
	next := l.consume("mirror", 0)
	_, err = e.TakeBack(context.Background(), id, capture.Holder{PID: seen.Holder, Attachment: seen.Attachment})
	require.ErrorIs(t, err, capture.ErrNotFound, "it is the same process, which attached again")
	require.Equal(t, frame(4, 60), l.collect(next, 6)[0].data)
	l.sendAll(e, "mirror", 3, func(n int) []byte { return frame(n, 60) })
	next.detach()
	l.detached(e, "mirror", 0)

	// A free queue that is taken back is empty, and its old ring buffer is no longer valid.
	from, err := e.TakeBack(context.Background(), id, capture.Holder{})
	require.NoError(t, err)
	require.Zero(t, from)
	require.Zero(t, l.observe(e).Clusters["mirror"].Queues[0].UnreadBytes)
	_, _, _, err = request(socketPath(l.runDir, "mirror", 0), encodeRequest(handoverRequest{
		Magic: protocolMagic, ABI: protocolABI, MapID: next.reply.MapID,
	}))
	require.ErrorIs(t, err, unix.ESTALE)
	last := l.consume("mirror", 0)
	require.NotEqual(t, next.reply.MapID, last.reply.MapID)
	l.sendAll(e, "mirror", 2, func(n int) []byte { return frame(n+20, 60) })
	require.Equal(t, frame(20, 60), l.collect(last, 2)[0].data)
	require.EqualValues(t, 15, l.observe(e).Clusters["mirror"].Queues[0].Delivered, "counters go on")
	stale, err := next.drain()
	require.NoError(t, err)
	require.Len(t, stale, 3, "who holds an old ring buffer gets nothing new")
}

func TestGarbageRequests(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, l.plan(1))
	path := socketPath(l.runDir, "mirror", 0)
	for name, message := range map[string][]byte{
		"short":       {1},
		"long":        make([]byte, 4096),
		"other magic": encodeRequest(handoverRequest{Magic: 1, ABI: protocolABI}),
		"other ABI":   encodeRequest(handoverRequest{Magic: protocolMagic, ABI: 99}),
		"zeros":       make([]byte, requestSize),
	} {
		_, _, _, err := request(path, message)
		require.ErrorIs(t, err, unix.EPROTO, name)
	}
	// Many peers send nothing and stay connected. The queue's rightful consumer comes after them.
	for range 2 * handshakesMax {
		conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
		require.NoError(t, err)
		defer conn.Close()
		if _, err := conn.Write([]byte{0}); err != nil {
			require.ErrorIs(t, err, unix.EPIPE)
		}
	}
	l.consume("mirror", 0)
}

func TestConsumerKilledAndRestarted(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, l.plan(1))
	first, out := l.helper("consumer", consumerInput{RunDir: l.runDir, Name: "mirror", Packets: 100}, 0)
	require.Equal(t, "attached", l.line(out))
	l.sendAll(e, "mirror", 300, func(n int) []byte { return frame(n, 60) })
	require.Equal(t, "read", l.line(out))
	require.NoError(t, first.Process.Kill())
	l.detached(e, "mirror", 0)
	c := l.consume("mirror", 0)
	require.Equal(t, c.unread(), c.leftBehind(), "it is told what the last one left")
	l.sendAll(e, "mirror", 1, func(int) []byte { return frame(300, 60) })
	packets := l.collect(c, 201)
	for i, p := range packets {
		require.Equal(t, frame(100+i, 60), p.data)
	}
}

// A queue that is taken back is immediately free for the next consumer. The last one keeps its descriptors, its
// mappings and its connection, also in another process. It gets nothing more, and is told why.
func TestTakeBack(t *testing.T) {
	l := newLab(t)
	var closed atomic.Bool
	e := l.engine(func(o *Options) {
		o.Authorizer = AuthorizerFunc(func(context.Context, int, capture.QueueID) error {
			if closed.Load() {
				return errors.New("its pod is gone")
			}
			return nil
		})
	})
	l.apply(e, l.plan(1))
	id := capture.QueueID{Cluster: "mirror"}
	old := l.consume("mirror", 0)
	file, err := old.conn.File()
	require.NoError(t, err)
	defer file.Close()
	l.sendAll(e, "mirror", 10, func(n int) []byte { return frame(n, 60) })
	require.Len(t, l.collect(old, 4), 4)

	from, err := e.TakeBack(context.Background(), id, capture.Holder{PID: os.Getpid()})
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), from)
	require.False(t, l.observe(e).Clusters["mirror"].Queues[0].Attached)
	var b [1]byte
	_, err = old.conn.Read(b[:])
	require.ErrorIs(t, err, io.EOF, "it is hung up on")

	next := l.consume("mirror", 0)
	require.NotEqual(t, old.reply.MapID, next.reply.MapID)
	l.sendAll(e, "mirror", 20, func(n int) []byte { return frame(n+100, 60) })
	packets := l.collect(next, 20)
	require.Equal(t, frame(100, 60), packets[0].data)
	left, err := old.drain()
	require.NoError(t, err)
	require.Len(t, left, 6, "what was there before, and nothing new")
	require.EqualValues(t, 30, l.observe(e).Clusters["mirror"].Queues[0].Delivered, "the account goes on")
	require.True(t, l.observe(e).Clusters["mirror"].Queues[0].Attached, "that the old one is gone changes nothing")

	// A consumer that comes back with the old ring buffer is told what happened to it, even without a right to the queue.
	closed.Store(true)
	_, _, _, err = request(socketPath(l.runDir, "mirror", 0), encodeRequest(handoverRequest{
		Magic: protocolMagic, ABI: protocolABI, MapID: old.reply.MapID,
	}))
	require.ErrorIs(t, err, unix.ESTALE)
	_, err = consume(l.runDir, "mirror", 0)
	require.ErrorIs(t, err, unix.EACCES)
}

// A holder loses its queue even if no other ring buffer can be made, for example without memory. The queue then has
// none until one can be made, also by the next agent. Its account continues.
func TestTakeBackWithoutMemory(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, l.plan(1))
	id := capture.QueueID{Cluster: "mirror"}
	old := l.consume("mirror", 0)
	file, err := old.conn.File()
	require.NoError(t, err)
	defer file.Close()
	queue := func() *queue { return e.clusters["mirror"].queues[0] }
	shape := queue().shape
	queue().shape.laneSize = 3 << 30 // which no map can have
	from, err := e.TakeBack(t.Context(), id, capture.Holder{PID: os.Getpid()})
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), from)
	var b [1]byte
	_, err = old.conn.Read(b[:])
	require.ErrorIs(t, err, io.EOF, "it is hung up on")
	require.ErrorIs(t, comeBack(l, old), unix.ESTALE)
	_, err = e.TakeBack(t.Context(), id, capture.Holder{})
	require.ErrorIs(t, err, errNoArea, "for the next there is none")
	_, err = consume(l.runDir, "mirror", 0)
	require.Error(t, err)
	unattended := func(n int) {
		l.sendAll(e, "mirror", 5, func(n int) []byte { return frame(n, 60) })
		stats := l.observe(e).Clusters["mirror"].Queues[0]
		require.False(t, stats.Attached)
		require.EqualValues(t, n, stats.Dropped[capture.DropUnattended])
		left, err := old.drain()
		require.NoError(t, err)
		require.Empty(t, left)
	}
	unattended(5)

	require.NoError(t, e.Close())
	e = l.engine()
	l.apply(e, l.plan(1))
	unattended(10)
	require.ErrorIs(t, comeBack(l, old), unix.ESTALE)
	require.Equal(t, shape, queue().shape)
	next := l.consume("mirror", 0)
	l.sendAll(e, "mirror", 5, func(n int) []byte { return frame(n, 60) })
	require.Len(t, l.collect(next, 5), 5)
	left, err := old.drain()
	require.NoError(t, err)
	require.Empty(t, left)
}

// The same for a consumer that attached while another agent ran, and was not back yet.
func TestTakeBackAfterARestart(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, l.plan(1))
	old := l.consume("mirror", 0)
	require.NoError(t, e.Close())
	e = l.engine()
	require.Equal(t, os.Getpid(), l.observe(e).Clusters["mirror"].Queues[0].Holder)
	from, err := e.TakeBack(context.Background(), capture.QueueID{Cluster: "mirror"}, capture.Holder{})
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), from)
	next := l.consume("mirror", 0)
	l.sendAll(e, "mirror", 5, func(n int) []byte { return frame(n, 60) })
	require.Len(t, l.collect(next, 5), 5)
	left, err := old.drain()
	require.NoError(t, err)
	require.Empty(t, left)
}

// A consumer in its own user namespace is judged by its process like any other, and can read.
func TestConsumerInUserNamespace(t *testing.T) {
	l := newLab(t)
	var asked atomic.Int64
	e := l.engine(func(o *Options) {
		o.Authorizer = AuthorizerFunc(func(_ context.Context, pid int, _ capture.QueueID) error {
			asked.Store(int64(pid))
			return nil
		})
	})
	l.apply(e, l.plan(1))
	process, out := l.helper("contained", consumerInput{RunDir: l.mountQueue(), Name: "mirror", Packets: 10}, 0)
	require.Equal(t, "attached", l.line(out))
	require.Equal(t, int64(process.Process.Pid), asked.Load())
	l.sendAll(e, "mirror", 10, func(n int) []byte { return frame(n, 60) })
	require.Equal(t, "read", l.line(out))
}
