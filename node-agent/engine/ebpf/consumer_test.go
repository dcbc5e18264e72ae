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

// consumer is the other end of the contract, written from the UAPI header alone. It shares only the encoding of
// messages with the engine.
type consumer struct {
	conn  *net.UnixConn
	reply handoverReply
	maps  []int // data, consumer, doorbell, and the socket for shunted flows

	data     []byte // the whole data map
	page     []byte // the consumer's
	bell     []byte // the doorbell's first page: how far it was read
	bellEnd  []byte // and its second: how far it was written
	epoll    int
	sleeps   uint64 // the number of the last sleep
	wakeUps  int
	pageSize int
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
	if len(fds) != 4 {
		conn.Close()
		return nil, fmt.Errorf("%d descriptors instead of 4", len(fds))
	}
	c := &consumer{conn: conn, reply: reply, maps: fds, pageSize: os.Getpagesize()}
	return c, c.mmap()
}

// dataSize returns the number of bytes of the data map.
func (c *consumer) dataSize() int {
	const tail = 68 << 10
	return int(c.reply.HeadSize) + int(c.reply.NrLanes)*(int(c.reply.LaneSize)+tail)
}

func (c *consumer) pages(bytes int) int { return (bytes + c.pageSize - 1) / c.pageSize * c.pageSize }

func (c *consumer) mmap() error {
	const pageBytes = 64*64 + 64
	for _, m := range []struct {
		to         *[]byte
		fd         int
		offset     int
		bytes      int
		protection int
	}{
		{&c.data, c.maps[0], 0, c.dataSize(), unix.PROT_READ},
		{&c.page, c.maps[1], 0, pageBytes, unix.PROT_READ | unix.PROT_WRITE},
		{&c.bell, c.maps[2], 0, c.pageSize, unix.PROT_READ | unix.PROT_WRITE},
		{&c.bellEnd, c.maps[2], c.pageSize, c.pageSize, unix.PROT_READ},
	} {
		var err error
		if *m.to, err = unix.Mmap(m.fd, int64(m.offset), c.pages(m.bytes), m.protection, unix.MAP_SHARED); err != nil {
			return fmt.Errorf("map %d bytes at %d: %w", m.bytes, m.offset, err)
		}
	}
	var err error
	if c.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN}
	return unix.EpollCtl(c.epoll, unix.EPOLL_CTL_ADD, c.maps[2], &event)
}

func wordAt(memory []byte, at int) *uint64 { return (*uint64)(unsafe.Pointer(&memory[at])) }

func (c *consumer) produced(lane int) *uint64 { return wordAt(c.data, 128*lane) }
func (c *consumer) released(lane int) *uint64 { return wordAt(c.page, 64*lane) }
func (c *consumer) left(lane int) uint64      { return *wordAt(c.page, 64*lane+8) }
func (c *consumer) sleep() *uint64            { return wordAt(c.page, 64*64) }

// ownTimeout is the time in microseconds that replaces the cluster's timeout.
func (c *consumer) ownTimeout() *uint64 { return wordAt(c.page, 16) }

// unread returns the number of unread bytes in all lanes.
func (c *consumer) unread() uint64 {
	var sum uint64
	for lane := range int(c.reply.NrLanes) {
		sum += atomic.LoadUint64(c.produced(lane)) - *c.released(lane)
	}
	return sum
}

// leftBehind returns the number of bytes that earlier consumers left.
func (c *consumer) leftBehind() uint64 {
	var sum uint64
	for lane := range int(c.reply.NrLanes) {
		sum += c.left(lane) - *c.released(lane)
	}
	return sum
}

// delivered returns the sum of the lanes' accounts.
func (c *consumer) delivered() uint64 {
	var sum uint64
	for lane := range int(c.reply.NrLanes) {
		sum += atomic.LoadUint64(wordAt(c.data, 128*lane+64))
	}
	return sum
}

// slotAt returns the memory from a lane's oldest unread slot on; nil if there is none.
func (c *consumer) slotAt(lane int) []byte {
	const tail = 68 << 10
	released := *c.released(lane)
	if released >= atomic.LoadUint64(c.produced(lane)) {
		return nil
	}
	return c.data[int(c.reply.HeadSize)+lane*(int(c.reply.LaneSize)+tail)+int(released&uint64(c.reply.LaneSize-1)):]
}

// oldest returns the oldest unread slot and its lane; nil if there is none. Lanes get slots while it looks. So it looks
// again until it finds the same slot twice: by then it has seen all that came before.
func (c *consumer) oldest() (slot []byte, from int) {
	for {
		found := slot
		for lane := range int(c.reply.NrLanes) {
			at := c.slotAt(lane)
			if at != nil && (slot == nil || binary.NativeEndian.Uint64(at) < binary.NativeEndian.Uint64(slot)) {
				slot, from = at, lane
			}
		}
		if slot == nil || found != nil && &found[0] == &slot[0] {
			return slot, from
		}
	}
}

// next returns the oldest unread packet and releases it; nil if there is none.
func (c *consumer) next() (*packet, error) {
	oldest, from := c.oldest()
	if oldest == nil {
		return nil, nil
	}
	p := &packet{}
	header := int(oldest[31])
	if header != 32 && header != 48 {
		return nil, fmt.Errorf("a header of %d bytes", header)
	}
	whole := make([]byte, 48)
	copy(whole, oldest[:header])
	if _, err := binary.Decode(whole, binary.NativeEndian, &p.slot); err != nil {
		return nil, err
	}
	p.data = append([]byte(nil), oldest[header:header+int(p.slot.Caplen)]...)
	atomic.AddUint64(c.released(from), uint64(header+int(p.slot.Caplen)+7)&^7)
	return p, nil
}

// wait waits for a packet as the contract says, at most for timeout.
func (c *consumer) wait(timeout time.Duration) bool {
	c.sleeps++
	atomic.StoreUint64(c.sleep(), c.sleeps)
	defer atomic.StoreUint64(c.sleep(), 0)
	if c.unread() > 0 {
		return true
	}
	events := make([]unix.EpollEvent, 1)
	for {
		n, err := unix.EpollWait(c.epoll, events, int(timeout.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n > 0 {
			c.wakeUps++
			atomic.StoreUint64(wordAt(c.bell, 0), atomic.LoadUint64(wordAt(c.bellEnd, 0)))
		}
		return n > 0
	}
}

// collect returns the next n packets. If they do not arrive, it returns fewer, with an error.
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

// drain returns all unread packets.
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

// detach closes the connection, and keeps everything else.
func (c *consumer) detach() { c.conn.Close() }

// close releases everything. A second call releases nothing: its addresses and descriptors may be others' by then.
func (c *consumer) close() {
	c.conn.Close()
	for _, m := range []*[]byte{&c.data, &c.page, &c.bell, &c.bellEnd} {
		if *m != nil {
			_ = unix.Munmap(*m)
			*m = nil
		}
	}
	for _, fd := range append([]int{c.epoll}, c.maps...) {
		if fd > 0 {
			unix.Close(fd)
		}
	}
	c.epoll, c.maps = 0, nil
}
