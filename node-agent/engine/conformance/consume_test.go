// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// slot is struct ringcap_slot; what is behind Flags and HdrLen is 0 in a short one.
type slot struct {
	Ts                    uint64
	Len, Caplen           uint32
	Hash, Ifindex         uint32
	VLANTCI, VLANTPID     uint16
	RxQueue               uint16
	Flags, HdrLen         uint8
	L3Off, L4Off, L3Proto uint16
	L4Proto, _            uint8
	Rule, _               uint32
}

const (
	slotOutgoing = 1 << 0
	slotVLAN     = 1 << 1
	slotHashed   = 1 << 4
	slotShort    = 32
	slotLong     = 48
)

type received struct {
	slot slot
	data []byte
}

// consumer is a queue's consumer, written from the UAPI header alone. Packets are copied out and released.
type consumer interface {
	drain() ([]received, error)
	// shunt shunts flows; the message has them as struct ringcap_exact.
	shunt(flows []byte, n int) error
	close()
}

func decodeRecord(record []byte) (received, error) {
	var r received
	whole := make([]byte, slotLong)
	header := int(record[31])
	if header != slotShort && header != slotLong {
		return r, fmt.Errorf("a header of %d bytes", header)
	}
	copy(whole, record[:header])
	if _, err := binary.Decode(whole, binary.NativeEndian, &r.slot); err != nil {
		return r, err
	}
	r.data = append([]byte(nil), record[header:header+int(r.slot.Caplen)]...)
	return r, nil
}

func word32(memory []byte, at int) uint32 {
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&memory[at])))
}
func word64(memory []byte, at int) *uint64 { return (*uint64)(unsafe.Pointer(&memory[at])) }

// mapQueue consumes a queue of the eBPF engine that has one lane.
type mapQueue struct {
	conn           *net.UnixConn
	shunts         int // the socket for shunted flows
	released, data []byte
	head, size     uint64
}

// openMapQueue asks for a queue where a container would.
func openMapQueue(grant capture.Grant) (consumer, error) {
	path := filepath.Join(grant.Mounts[0].Host, "handover")
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, err
	}
	const magic, abi = 0x70616372, 3
	request := binary.NativeEndian.AppendUint32(nil, magic)
	request = binary.NativeEndian.AppendUint32(request, abi)
	if _, err := conn.Write(append(request, make([]byte, 8)...)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	reply, rights := make([]byte, 512), make([]byte, 256)
	_, n, _, _, err := conn.ReadMsgUnix(reply, rights)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(fmt.Errorf("refused with error %d", binary.NativeEndian.Uint32(reply[8:])), err, conn.Close())
	}
	descriptors, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	shunts := descriptors[len(descriptors)-1]
	defer func() {
		for _, fd := range descriptors[:len(descriptors)-1] {
			unix.Close(fd)
		}
	}()
	q := &mapQueue{
		conn: conn, shunts: shunts, size: uint64(binary.NativeEndian.Uint32(reply[16:])),
		head: uint64(binary.NativeEndian.Uint32(reply[44:])),
	}
	if err := q.mmap(descriptors, binary.NativeEndian.Uint32(reply[20:])); err != nil {
		q.close()
		return nil, err
	}
	return q, nil
}

func (q *mapQueue) mmap(descriptors []int, lanes uint32) error {
	const tail, consumerPage = 68 << 10, 65 * 64
	if lanes != 1 || len(descriptors) != 4 { // the last one is for shunted flows
		return fmt.Errorf("%d lanes and %d descriptors", lanes, len(descriptors))
	}
	whole := func(bytes uint64) int {
		page := uint64(os.Getpagesize())
		return int((bytes + page - 1) / page * page)
	}
	var err error
	if q.data, err = unix.Mmap(descriptors[0], 0, whole(q.head+q.size+tail), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return err
	}
	q.released, err = unix.Mmap(descriptors[1], 0, whole(consumerPage), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return err
}

func (q *mapQueue) drain() ([]received, error) {
	return drainLane(q.data, q.released, q.data[q.head:], q.size)
}

func (q *mapQueue) close() {
	for _, m := range [][]byte{q.released, q.data} {
		if m != nil {
			_ = unix.Munmap(m)
		}
	}
	unix.Close(q.shunts)
	q.conn.Close()
}

// drainLane reads a lane of either engine. The lane's position and that of the consumer are at the beginning of their
// mappings.
func drainLane(kernel, released, data []byte, size uint64) ([]received, error) {
	var all []received
	for position := *word64(released, 0); position < atomic.LoadUint64(word64(kernel, 0)); {
		one, err := decodeRecord(data[position&(size-1):])
		if err != nil {
			return all, err
		}
		all = append(all, one)
		position += (uint64(one.slot.HdrLen) + uint64(one.slot.Caplen) + 7) &^ 7
		atomic.StoreUint64(word64(released, 0), position)
	}
	return all, nil
}

// laneQueue consumes a queue of the module that has one lane.
type laneQueue struct {
	device                 int
	kernel, released, data []byte
	size                   uint64
}

// Offsets of the areas of a queue's device node, and what is where in the info page.
const (
	mapInfo, mapKernel, mapConsumer, mapData = 0, 0x10000000, 0x20000000, 0x100000000
	infoLanes, infoLaneSize                  = 12, 16
)

func openLaneQueue(grant capture.Grant) (consumer, error) {
	fd, err := unix.Open(grant.Devices[0].Host, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	q := &laneQueue{device: fd}
	page := os.Getpagesize()
	info, err := unix.Mmap(fd, mapInfo, page, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		q.close()
		return nil, err
	}
	defer func() { _ = unix.Munmap(info) }()
	if lanes := word32(info, infoLanes); lanes != 1 {
		q.close()
		return nil, fmt.Errorf("%d lanes: %s", lanes, strconv.Quote("one was asked for"))
	}
	q.size = uint64(word32(info, infoLaneSize))
	if q.kernel, err = unix.Mmap(fd, mapKernel, page, unix.PROT_READ, unix.MAP_SHARED); err == nil {
		if q.released, err = unix.Mmap(fd, mapConsumer, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
			q.data, err = unix.Mmap(fd, mapData, 2*int(q.size), unix.PROT_READ, unix.MAP_SHARED)
		}
	}
	if err != nil {
		q.close()
		return nil, err
	}
	return q, nil
}

func (q *laneQueue) drain() ([]received, error) {
	return drainLane(q.kernel, q.released, q.data, q.size)
}

func (q *laneQueue) close() {
	for _, m := range [][]byte{q.kernel, q.released, q.data} {
		if m != nil {
			_ = unix.Munmap(m)
		}
	}
	unix.Close(q.device)
}
