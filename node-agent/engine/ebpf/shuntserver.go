// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// What a request costs a consumer: it can ask for about 200 000 flows a second, in at most 20 000 requests. It gets the
// answers at once, and waits for the next one if it asks for more.
const (
	shuntRequestCost = 50 * time.Microsecond
	shuntFlowCost    = 5 * time.Microsecond
	shuntDebtMax     = time.Millisecond // a consumer does not wait for less
)

// shuntSocket is the agent's end of the socket on which a consumer asks for shunted flows. See struct
// ringcap_shunt_message.
type shuntSocket struct {
	conn       net.Conn
	shunts     *shunts
	attachment uint64
}

// newShuntSocket makes a socket, and returns the consumer's end, which the caller closes.
func newShuntSocket(s *shunts, attachment uint64) (ours *shuntSocket, theirs int, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("make a socket for shunted flows: %w", err)
	}
	file := os.NewFile(uintptr(fds[0]), "shunts")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("make a socket for shunted flows: %w", err), unix.Close(fds[1]))
	}
	return &shuntSocket{conn: conn, shunts: s, attachment: attachment}, fds[1], nil
}

// shuntBuffer is a message: of states, or of rules, which are smaller.
type shuntBuffer struct {
	message shuntMessage
	states  [maxShuntBatch]flowState
}

var shuntBuffers = sync.Pool{New: func() any { return new(shuntBuffer) }}

func (b *shuntBuffer) bytes(n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(b)), unsafe.Sizeof(*b))[:n]
}

func (b *shuntBuffer) rules() []flowRule {
	return unsafe.Slice((*flowRule)(unsafe.Pointer(&b.states)), maxShuntBatch)[:b.message.Nr]
}

// serve answers requests until the socket is closed, or something else than a request comes. Then the consumer can ask
// no more; it stays attached.
func (s *shuntSocket) serve() error {
	defer s.conn.Close()
	socket, ok := s.conn.(syscall.Conn)
	if !ok {
		return fmt.Errorf("a socket of type %T", s.conn)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var pace pacer
	for {
		cost, err := s.answer(raw)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		time.Sleep(pace.spend(cost, time.Now()))
	}
}

// answer waits for a request, and answers it. It returns what the request cost. It takes a buffer only when there is a
// request, for most consumers have none.
func (s *shuntSocket) answer(raw syscall.RawConn) (cost time.Duration, err error) {
	var b *shuntBuffer
	var n int
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		b, _ = shuntBuffers.Get().(*shuntBuffer)
		n, _, failed = unix.Recvfrom(int(fd), b.bytes(int(unsafe.Sizeof(*b))), unix.MSG_TRUNC)
		if errors.Is(failed, unix.EAGAIN) || errors.Is(failed, unix.EINTR) {
			shuntBuffers.Put(b)
			return false
		}
		return true
	})
	if err != nil {
		return 0, err
	}
	defer shuntBuffers.Put(b)
	switch {
	case failed != nil:
		return 0, failed
	case n == 0:
		return 0, net.ErrClosed
	case !b.isRequest(n):
		return 0, fmt.Errorf("%w: a message of %d bytes is no request for shunted flows", unix.EPROTO, n)
	}
	cost = shuntRequestCost + time.Duration(min(b.message.Nr, maxShuntBatch))*shuntFlowCost
	_, err = s.conn.Write(b.bytes(s.run(b)))
	return cost, err
}

// isRequest reports whether the first n bytes are a request.
func (b *shuntBuffer) isRequest(n int) bool {
	head := int(unsafe.Sizeof(b.message))
	if n < head || b.message.Magic != protocolMagic {
		return false
	}
	elements := int64(b.message.Nr)
	switch b.message.Verb {
	case shuntAdd, shuntRemove:
		return elements <= maxShuntBatch && int64(n-head) == elements*int64(unsafe.Sizeof(flowRule{}))
	case shuntRead:
		return elements <= maxShuntBatch && int64(n-head) == elements*int64(unsafe.Sizeof(flowState{}))
	}
	return b.message.Verb == shuntEnded && n == head
}

// run does what a request asks for, and makes it the answer. It returns the answer's bytes.
func (s *shuntSocket) run(b *shuntBuffer) int {
	m := &b.message
	m.Missed, m.Lost, m.Shunted, m.ShuntedBytes = 0, 0, 0, 0
	var done, filled int
	var err error
	switch m.Verb {
	case shuntAdd:
		done, m.Missed, err = s.shunts.add(s.attachment, b.rules())
	case shuntRemove:
		done, m.Missed, err = s.shunts.remove(s.attachment, b.rules())
	case shuntRead:
		done, m.Missed, err = s.shunts.read(s.attachment, b.states[:m.Nr])
		sums := s.shunts.tables.shunting.read(s.shunts.index)
		m.Shunted, m.ShuntedBytes = sums.Packets, sums.Bytes
		filled = done
	case shuntEnded:
		done, m.Lost, err = s.shunts.ended(s.attachment, b.states[:min(m.Nr, maxShuntBatch)])
		filled = done
	}
	m.Result = int32(done)
	if err != nil && done == 0 {
		m.Result = -int32(numberOf(err))
	}
	return int(unsafe.Sizeof(*m)) + filled*int(unsafe.Sizeof(flowState{}))
}

// numberOf returns the number of an error, as the module would.
func numberOf(err error) unix.Errno {
	number := unix.EIO
	if !errors.As(err, &number) && errors.Is(err, capture.ErrNoMemory) {
		number = unix.ENOMEM
	}
	return number
}

// pacer bounds how much a consumer asks for in a time.
type pacer struct{ paid time.Time }

// spend returns for how long the consumer must wait after it has spent this much.
func (p *pacer) spend(cost time.Duration, now time.Time) time.Duration {
	if p.paid.Before(now) {
		p.paid = now
	}
	p.paid = p.paid.Add(cost)
	if debt := p.paid.Sub(now); debt > shuntDebtMax {
		return debt
	}
	return 0
}
