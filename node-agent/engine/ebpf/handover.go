// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

const (
	// requestTimeout bounds the time for a peer to send its request. handshakeTimeout bounds the time for this and
	// the authorizer's decision.
	requestTimeout   = 2 * time.Second
	handshakeTimeout = 10 * time.Second
	// handshakesMax bounds the connections to one queue that are in a handshake. The others wait in the backlog.
	handshakesMax = 16
)

// handoverServer hands queues over to permitted processes. Each queue has its own socket.
type handoverServer struct {
	dir        string
	authorizer Authorizer
	users      localUsers
	versions   versions
	log        *slog.Logger

	stopping context.Context
	stopAll  context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	sockets map[*queue]*handoverSocketServer
}

func newHandoverServer(options Options) *handoverServer {
	s := &handoverServer{
		dir: options.RunDir, authorizer: options.Authorizer, users: newLocalUsers(options.Users), log: options.Logger,
		versions: options.versions,
		sockets:  map[*queue]*handoverSocketServer{},
	}
	s.stopping, s.stopAll = context.WithCancel(context.Background())
	return s
}

func (s *handoverServer) folder(id capture.QueueID) string {
	return filepath.Join(s.dir, id.Cluster, strconv.Itoa(id.Queue))
}

// serve listens for the consumers of the cluster's queues, and replaces an earlier cluster of the same name.
func (s *handoverServer) serve(c *cluster) error {
	for _, q := range c.queues {
		if err := s.listen(q); err != nil {
			s.forget(c)
			return err
		}
	}
	return nil
}

// listen opens the queue's socket. It atomically replaces an old socket in the same folder, because containers have
// that folder mounted.
func (s *handoverServer) listen(q *queue) error {
	folder := s.folder(q.id)
	if err := s.makeFolder(folder); err != nil {
		return fmt.Errorf("make the folder of queue %d: %w", q.id.Queue, err)
	}
	path := filepath.Join(folder, handoverSocket)
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove a leftover socket: %w", err)
	}
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: fresh, Net: "unixpacket"})
	if err != nil {
		return fmt.Errorf("listen for consumers of queue %d: %w", q.id.Queue, err)
	}
	listener.SetUnlinkOnClose(false)
	// Any user may connect. The handshake decides who gets the queue.
	if err := errors.Join(os.Chmod(fresh, 0o666), os.Rename(fresh, path)); err != nil {
		return errors.Join(err, listener.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	socket := s.sockets[q]
	if socket == nil {
		socket = newHandoverSocket(s, q)
		s.sockets[q] = socket
	}
	socket.listenAt(listener)
	return nil
}

// makeFolder makes a queue's folder. Any user of a container with this mount may enter it. With an authorizer, the
// cluster's folder above it keeps the node's own users out. Without one, these users are the consumers.
func (s *handoverServer) makeFolder(folder string) error {
	above := os.FileMode(0o755)
	if s.authorizer != nil {
		above = 0o700
	}
	return errors.Join(os.MkdirAll(folder, 0o755), os.Chmod(filepath.Dir(folder), above))
}

// restore listens again at the queues' sockets that somebody removed. Attached consumers keep their connections.
func (s *handoverServer) restore(c *cluster) error {
	for _, q := range c.queues {
		if _, err := os.Lstat(filepath.Join(s.folder(q.id), handoverSocket)); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		s.log.Warn("the socket of a queue was removed; it is made again", "cluster", q.id.Cluster, "queue", q.id.Queue)
		if err := s.listen(q); err != nil {
			return err
		}
	}
	return nil
}

// forget stops serving the cluster's queues and leaves the files of their sockets.
func (s *handoverServer) forget(c *cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range c.queues {
		if socket := s.sockets[q]; socket != nil {
			socket.stop()
			delete(s.sockets, q)
		}
	}
}

// hangUp closes the connections of processes that are no longer the queue's consumers.
func (s *handoverServer) hangUp(q *queue) {
	s.mu.Lock()
	socket := s.sockets[q]
	s.mu.Unlock()
	if socket != nil {
		socket.hangUp()
	}
}

// stop stops serving the cluster's queues. It removes the sockets that the successor, if there is one, does not have.
func (s *handoverServer) stop(c, successor *cluster) {
	s.forget(c)
	for _, q := range c.queues {
		if successor != nil && q.id.Queue < len(successor.queues) {
			continue
		}
		folder := s.folder(q.id)
		// Other files in there are not ours, and keep the folders.
		_ = os.Remove(filepath.Join(folder, handoverSocket))
		_ = os.Remove(folder)
	}
	_ = os.Remove(filepath.Join(s.dir, c.Name))
}

// close stops serving. Attached consumers stay attached.
func (s *handoverServer) close() error {
	s.stopAll()
	s.mu.Lock()
	for q, socket := range s.sockets {
		socket.stop()
		delete(s.sockets, q)
	}
	s.mu.Unlock()
	s.running.Wait()
	return nil
}

// handoverSocketServer serves one queue.
type handoverSocketServer struct {
	server     *handoverServer
	queue      *queue
	listener   *net.UnixListener
	handshakes chan struct{}
	log        *slog.Logger

	mu      sync.Mutex
	stopped bool
	// connections maps each connection to its attachment, 0 while it has none.
	connections map[*net.UnixConn]uint64
}

func newHandoverSocket(s *handoverServer, q *queue) *handoverSocketServer {
	return &handoverSocketServer{
		server: s, queue: q, handshakes: make(chan struct{}, handshakesMax),
		log:         s.log.With("cluster", q.id.Cluster, "queue", q.id.Queue),
		connections: map[*net.UnixConn]uint64{},
	}
}

// listenAt accepts connections at a new listener.
func (h *handoverSocketServer) listenAt(listener *net.UnixListener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listener != nil {
		h.listener.Close()
	}
	h.listener = listener
	h.server.running.Go(func() { h.run(listener) })
}

// run accepts connections until the listener is closed.
func (h *handoverSocketServer) run(listener *net.UnixListener) {
	for {
		conn, err := listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of descriptors or memory: wait. The peers wait in the backlog.
			h.log.Error("cannot accept a consumer", "error", err)
			select {
			case <-h.server.stopping.Done():
				return
			case <-time.After(time.Second):
			}
			continue
		}
		h.start(conn)
	}
}

// start handles the connection once there is room for another handshake.
func (h *handoverSocketServer) start(conn *net.UnixConn) {
	select {
	case h.handshakes <- struct{}{}:
	case <-h.server.stopping.Done():
		conn.Close()
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		conn.Close()
		return
	}
	h.connections[conn] = 0
	h.server.running.Go(func() { h.handle(conn) })
}

// stop closes all connections. Their consumers stay recorded as attached, and must attach again to the next server.
func (h *handoverSocketServer) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	h.listener.Close()
	for conn := range h.connections {
		conn.Close()
	}
}

// hangUp closes the connections of attachments that have ended.
func (h *handoverSocketServer) hangUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for conn, attachment := range h.connections {
		if attachment != 0 && !h.queue.isAttached(attachment) {
			conn.Close()
		}
	}
}

// handle answers one consumer, and records when it is gone.
func (h *handoverSocketServer) handle(conn *net.UnixConn) {
	defer func() {
		conn.Close()
		h.mu.Lock()
		delete(h.connections, conn)
		h.mu.Unlock()
	}()
	peer, attachment, shunts, err := h.handshake(conn)
	<-h.handshakes
	if err != nil {
		h.log.Info("a process was refused the queue", "reason", err)
		return
	}
	h.log.Info("a consumer is attached", "pid", peer.Pid)
	h.warn(peer)
	defer shunts.conn.Close()
	h.server.running.Go(func() {
		if err := shunts.serve(); err != nil {
			h.log.Warn("a consumer can shunt no more flows", "pid", peer.Pid, "reason", err)
		}
	})
	// It may have been taken back before its connection was known.
	if h.queue.isAttached(attachment) {
		waitForEnd(conn)
	}
	h.mu.Lock()
	stopped := h.stopped
	h.mu.Unlock()
	if stopped {
		return
	}
	h.log.Info("the consumer is gone", "pid", peer.Pid)
	h.queue.detach(attachment)
}

// warn warns of a container with a process that may call bpf(2). Such a process can take memory that is charged to
// nobody, see docs/security.md.
func (h *handoverSocketServer) warn(peer *unix.Ucred) {
	if h.server.authorizer != nil && isUnconfined(peer.Pid) {
		h.log.Warn("the consumer has no seccomp filter: give its container the profile RuntimeDefault", "pid", peer.Pid)
	}
}

// waitForEnd returns when the peer has closed the connection or sent something. A peer has no reason to send.
func waitForEnd(conn *net.UnixConn) {
	var b [1]byte
	_, _ = conn.Read(b[:])
}

// handshake reads the request, decides and replies. If it returns no error, the peer is attached.
// The caller serves the socket for shunted flows, and closes it.
func (h *handoverSocketServer) handshake(conn *net.UnixConn) (*unix.Ucred, uint64, *shuntSocket, error) {
	ctx, cancel := context.WithTimeout(h.server.stopping, handshakeTimeout)
	defer cancel()
	if err := conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return nil, 0, nil, err
	}
	peer, err := peerOf(conn)
	if err != nil {
		return nil, 0, nil, err
	}
	reply := newReply(h.queue.id, h.server.versions)
	request, err := h.request(ctx, conn, peer)
	// A reply fits into every socket's buffer, so a peer cannot delay it by not reading.
	if e := conn.SetDeadline(time.Time{}); e != nil {
		return nil, 0, nil, e
	}
	var attachment uint64
	if err == nil {
		reply.ABI = request.ABI
		attachment, err = h.attach(ctx, uint32(peer.Pid), request.MapID)
	}
	if err != nil {
		reply.ABI = h.server.versions.newest
		reply.refuse(err)
		_, sendErr := conn.Write(reply.bytes())
		return nil, 0, nil, errors.Join(err, sendErr)
	}
	h.mu.Lock()
	h.connections[conn] = attachment
	h.mu.Unlock()
	shunts, err := h.send(conn, reply, request.MapID == 0, attachment)
	if err != nil {
		h.queue.detach(attachment)
		return nil, 0, nil, err
	}
	return peer, attachment, shunts, nil
}

// attach makes the peer the queue's consumer. The last consumer may have just ended without the server knowing yet.
func (h *handoverSocketServer) attach(ctx context.Context, process, known uint32) (uint64, error) {
	attachment, err := h.queue.attach(process, known)
	for until := time.Now().Add(requestTimeout); errors.Is(err, errBusy) && time.Now().Before(until); {
		hungUp := h.consumerHungUp()
		// A consumer that was detached since the last try does not appear as hung up.
		if attachment, err = h.queue.attach(process, known); !hungUp {
			break
		}
		select {
		case <-ctx.Done():
			return attachment, err
		case <-time.After(time.Millisecond):
		}
	}
	return attachment, err
}

// consumerHungUp reports whether the consumer has closed its end of its connection.
func (h *handoverSocketServer) consumerHungUp() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for conn, attachment := range h.connections {
		if attachment != 0 && h.queue.isAttached(attachment) {
			return closedByPeer(conn)
		}
	}
	return false
}

func closedByPeer(conn *net.UnixConn) (closed bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		closed = err == nil && n == 0
	})
	return closed || err != nil
}

// request reads a request from a peer that may have the queue. Its ABI is the version that both sides speak.
func (h *handoverSocketServer) request(ctx context.Context, conn *net.UnixConn, peer *unix.Ucred) (handoverRequest, error) {
	message := make([]byte, requestSize+1)
	n, err := conn.Read(message)
	if err != nil {
		return handoverRequest{}, fmt.Errorf("%w: no request: %w", unix.EPROTO, err)
	}
	request, err := parseRequest(message[:n])
	if err != nil {
		return request, err
	}
	// This comes before the check of versions. Libraries that speak none of the agent's versions end on this error,
	// and retry after any other.
	if h.queue.isStale(request.MapID) {
		return request, errStale
	}
	if request.ABI, err = h.server.versions.with(request.versions()); err != nil {
		return request, err
	}
	if h.queue.resumes(uint32(peer.Pid), request.MapID) {
		return request, nil
	}
	if h.server.authorizer == nil {
		err = h.server.users.check(peer)
	} else {
		err = errors.Join(h.server.authorizer.Authorize(ctx, int(peer.Pid), h.queue.id), peerLives(conn))
	}
	if err != nil {
		return request, fmt.Errorf("%w: %w", unix.EACCES, err)
	}
	return request, nil
}

// send completes the reply and sends it, with a socket for shunted flows. It adds the queue's maps if the peer has none
// yet.
func (h *handoverSocketServer) send(
	conn *net.UnixConn, reply handoverReply, withMaps bool, attachment uint64,
) (*shuntSocket, error) {
	maps, err := h.queue.describe(&reply, attachment)
	if err != nil {
		return nil, err
	}
	defer maps.close()
	shunts, theirs, err := newShuntSocket(&h.queue.shunts, attachment)
	if err != nil {
		return nil, err
	}
	defer unix.Close(theirs)
	fds := []int{theirs}
	if withMaps {
		fds = []int{maps[0].FD(), maps[1].FD(), maps[2].FD(), theirs}
	}
	if _, _, err := conn.WriteMsgUnix(reply.bytes(), unix.UnixRights(fds...), nil); err != nil {
		return nil, errors.Join(fmt.Errorf("send the reply: %w", err), shunts.conn.Close())
	}
	return shunts, nil
}

// peerLives returns an error if the process that connected has ended, because another process may now have its
// number. Kernels before 6.5 do not provide this. There, only containers with the folder can reach the socket.
func peerLives(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	pidfd := -1
	if e := raw.Control(func(fd uintptr) { pidfd, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD) }); e != nil {
		return e
	}
	if errors.Is(err, unix.ENOPROTOOPT) {
		return nil
	}
	if err == nil {
		defer unix.Close(pidfd)
		err = unix.PidfdSendSignal(pidfd, 0, nil, 0)
	}
	if err != nil && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("the process that connected has ended: %w", err)
	}
	return nil
}

// peerOf returns the process that connected.
func peerOf(conn *net.UnixConn) (*unix.Ucred, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var peer *unix.Ucred
	var peerErr error
	if err := raw.Control(func(fd uintptr) {
		peer, peerErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	return peer, peerErr
}
