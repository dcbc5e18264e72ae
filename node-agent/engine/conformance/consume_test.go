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

// ringBuffer consumes a queue of the eBPF engine.
type ringBuffer struct {
	conn           *net.UnixConn
	data           int
	position, ring []byte
	size           uint64
}

// openRingBuffer asks for a queue where a container would.
func openRingBuffer(grant capture.Grant) (consumer, error) {
	path := filepath.Join(grant.Mounts[0].Host, "handover")
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, err
	}
	const magic, abi = 0x70616372, 2
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
	unix.Close(descriptors[1])
	r := &ringBuffer{conn: conn, data: descriptors[0], size: uint64(binary.NativeEndian.Uint32(reply[16:]))}
	page := os.Getpagesize()
	if r.position, err = unix.Mmap(r.data, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
		r.ring, err = unix.Mmap(r.data, int64(page), page+2*int(r.size), unix.PROT_READ, unix.MAP_SHARED)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *ringBuffer) drain() ([]received, error) {
	const busy, header = 1 << 31, 8
	var all []received
	page := os.Getpagesize()
	for released := *word64(r.position, 0); released < atomic.LoadUint64(word64(r.ring, 0)); {
		at := page + int(released&(r.size-1))
		length := word32(r.ring, at)
		if length&busy != 0 {
			break
		}
		one, err := decodeRecord(r.ring[at+header : at+header+int(length)])
		if err != nil {
			return all, err
		}
		all = append(all, one)
		released += uint64(header + (length+7)/8*8)
		atomic.StoreUint64(word64(r.position, 0), released)
	}
	return all, nil
}

func (r *ringBuffer) close() {
	for _, m := range [][]byte{r.position, r.ring} {
		if m != nil {
			_ = unix.Munmap(m)
		}
	}
	unix.Close(r.data)
	r.conn.Close()
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
	var all []received
	for released := *word64(q.released, 0); released < atomic.LoadUint64(word64(q.kernel, 0)); {
		one, err := decodeRecord(q.data[released&(q.size-1):])
		if err != nil {
			return all, err
		}
		all = append(all, one)
		released += (uint64(one.slot.HdrLen) + uint64(one.slot.Caplen) + 7) &^ 7
		atomic.StoreUint64(word64(q.released, 0), released)
	}
	return all, nil
}

func (q *laneQueue) close() {
	for _, m := range [][]byte{q.kernel, q.released, q.data} {
		if m != nil {
			_ = unix.Munmap(m)
		}
	}
	unix.Close(q.device)
}
