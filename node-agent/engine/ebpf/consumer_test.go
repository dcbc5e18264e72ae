// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// slot is struct ringcap_slot.
type slot struct {
	Ts       uint64
	Len      uint32
	Caplen   uint32
	Hash     uint32
	Ifindex  uint32
	VLANTCI  uint16
	VLANTPID uint16
	RxQueue  uint16
	Flags    uint8
	HdrLen   uint8
	L3Off    uint16
	L4Off    uint16
	L3Proto  uint16
	L4Proto  uint8
	_        uint8
	_        uint32
	_        uint32
}

type packet struct {
	slot slot
	data []byte
}

// consumer is the other end of the contract, written from the UAPI header alone: it shares no code with the engine
// but the encoding of messages.
type consumer struct {
	conn        *net.UnixConn
	reply       handoverReply
	data, stats int

	position []byte // the consumer's page
	ring     []byte // the producer's page and the data, twice
	page     int
	epoll    int
}

func socketPath(runDir, name string, queue int) string {
	return filepath.Join(runDir, name, strconv.Itoa(queue), "handover")
}

// handoverError is a refusal.
type handoverError struct {
	number unix.Errno
	reason string
}

func (e *handoverError) Error() string { return fmt.Sprintf("%s: %s", e.number, e.reason) }
func (e *handoverError) Unwrap() error { return e.number }

// request sends any bytes to a queue's socket and returns what comes back.
func request(path string, message []byte) (*net.UnixConn, handoverReply, []int, error) {
	var reply handoverReply
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, reply, nil, err
	}
	fail := func(err error) (*net.UnixConn, handoverReply, []int, error) {
		conn.Close()
		return nil, reply, nil, err
	}
	if _, err := conn.Write(message); err != nil {
		return fail(err)
	}
	answer, rights := make([]byte, 1024), make([]byte, 256)
	n, oobn, _, _, err := conn.ReadMsgUnix(answer, rights)
	if err != nil {
		return fail(err)
	}
	if _, err := binary.Decode(answer[:n], binary.NativeEndian, &reply); err != nil || n != binary.Size(reply) {
		return fail(fmt.Errorf("a reply of %d bytes: %w", n, err))
	}
	var fds []int
	messages, err := unix.ParseSocketControlMessage(rights[:oobn])
	if err != nil {
		return fail(err)
	}
	for _, m := range messages {
		if fds, err = unix.ParseUnixRights(&m); err != nil {
			return fail(err)
		}
	}
	if reply.Error != 0 {
		reason := string(reply.Reason[:])
		for i, c := range reply.Reason {
			if c == 0 {
				reason = string(reply.Reason[:i])
				break
			}
		}
		return fail(&handoverError{unix.Errno(reply.Error), reason})
	}
	return conn, reply, fds, nil
}

func encodeRequest(r handoverRequest) []byte {
	message, err := binary.Append(nil, binary.NativeEndian, r)
	if err != nil {
		panic(err)
	}
	return message
}

func consume(runDir, name string, queue int) (*consumer, error) {
	message := encodeRequest(handoverRequest{Magic: protocolMagic, ABI: protocolABI})
	conn, reply, fds, err := request(socketPath(runDir, name, queue), message)
	if err != nil {
		return nil, err
	}
	if len(fds) != 2 {
		conn.Close()
		return nil, fmt.Errorf("%d descriptors instead of 2", len(fds))
	}
	c := &consumer{conn: conn, reply: reply, data: fds[0], stats: fds[1], page: os.Getpagesize()}
	return c, c.mmap()
}

func (c *consumer) mmap() error {
	var err error
	if c.position, err = unix.Mmap(c.data, 0, c.page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return fmt.Errorf("map the consumer's page: %w", err)
	}
	length := c.page + 2*int(c.reply.DataSize)
	if c.ring, err = unix.Mmap(c.data, int64(c.page), length, unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return fmt.Errorf("map the data: %w", err)
	}
	if c.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN}
	return unix.EpollCtl(c.epoll, unix.EPOLL_CTL_ADD, c.data, &event)
}

func (c *consumer) released() *uint64 { return (*uint64)(unsafe.Pointer(&c.position[0])) }
func (c *consumer) produced() *uint64 { return (*uint64)(unsafe.Pointer(&c.ring[0])) }

// next returns the oldest unread packet and releases it; nil when there is none.
func (c *consumer) next() (*packet, error) {
	const busy, discard, header = 1 << 31, 1 << 30, 8
	released := *c.released()
	if released >= atomic.LoadUint64(c.produced()) {
		return nil, nil
	}
	at := c.ring[c.page+int(released&uint64(c.reply.DataSize-1)):]
	length := atomic.LoadUint32((*uint32)(unsafe.Pointer(&at[0])))
	if length&busy != 0 {
		return nil, nil
	}
	if length&discard != 0 {
		return nil, errors.New("a discarded record, which the engine never makes")
	}
	record := append([]byte(nil), at[header:header+int(length)]...)
	p := &packet{}
	if _, err := binary.Decode(record, binary.NativeEndian, &p.slot); err != nil {
		return nil, err
	}
	if int(p.slot.HdrLen)+int(p.slot.Caplen) != len(record) {
		return nil, fmt.Errorf("a record of %d bytes for %d captured", len(record), p.slot.Caplen)
	}
	p.data = record[p.slot.HdrLen:]
	atomic.StoreUint64(c.released(), released+uint64(header+(length+7)/8*8))
	return p, nil
}

// wait waits for a packet, at most for timeout.
func (c *consumer) wait(timeout time.Duration) bool {
	events := make([]unix.EpollEvent, 1)
	for {
		n, err := unix.EpollWait(c.epoll, events, int(timeout.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}

// collect returns the next n packets; fewer, with an error, when they do not come.
func (c *consumer) collect(n int) ([]*packet, error) {
	var packets []*packet
	for len(packets) < n {
		p, err := c.next()
		if err != nil {
			return packets, err
		}
		if p != nil {
			packets = append(packets, p)
			continue
		}
		if !c.wait(60 * time.Second) {
			return packets, fmt.Errorf("no more than %d of %d packets came", len(packets), n)
		}
	}
	return packets, nil
}

// drain returns what is there.
func (c *consumer) drain() ([]*packet, error) {
	var packets []*packet
	for {
		p, err := c.next()
		if p == nil || err != nil {
			return packets, err
		}
		packets = append(packets, p)
	}
}

// detach closes the connection, and keeps the rest.
func (c *consumer) detach() { c.conn.Close() }

func (c *consumer) close() {
	c.conn.Close()
	for _, m := range [][]byte{c.position, c.ring} {
		if m != nil {
			_ = unix.Munmap(m)
		}
	}
	for _, fd := range []int{c.epoll, c.data, c.stats} {
		if fd > 0 {
			unix.Close(fd)
		}
	}
}
