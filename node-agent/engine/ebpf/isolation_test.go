// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// attempts returns what a consumer might try with its descriptors, besides reading its queue. Each attempt must fail.
func attempts(c *consumer) map[string]func() error {
	return map[string]func() error{
		"map the data writable": func() error {
			return mapping(c.maps[0], 0, c.pages(c.dataSize()), unix.PROT_READ|unix.PROT_WRITE)
		},
		"map the lanes' heads writable": func() error {
			return mapping(c.maps[0], 0, c.pageSize, unix.PROT_READ|unix.PROT_WRITE)
		},
		"make the mapped data writable": func() error {
			return unix.Mprotect(c.data, unix.PROT_READ|unix.PROT_WRITE)
		},
		"map the end of the doorbell writable": func() error {
			return mapping(c.maps[2], int64(c.pageSize), c.pageSize, unix.PROT_READ|unix.PROT_WRITE)
		},
		"make the mapped end of the doorbell writable": func() error {
			return unix.Mprotect(c.bellEnd, unix.PROT_READ|unix.PROT_WRITE)
		},
		"update the data":     func() error { return updateElement(c.maps[0], c.dataSize()) },
		"update the doorbell": func() error { return updateElement(c.maps[2], 8) },
		"open other maps by number": func() error {
			return bpfCall(bpfMapGetFDByID, [2]uint32{c.reply.MapID, 0})
		},
		"open the data's descriptor again": func() error {
			_, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", c.maps[0]), unix.O_RDWR, 0)
			return err
		},
	}
}

// Commands of bpf(2).
const (
	bpfMapUpdateElem = 2
	bpfMapGetFDByID  = 14
)

func mapping(fd int, offset int64, length, protection int) error {
	m, err := unix.Mmap(fd, offset, length, protection, unix.MAP_SHARED)
	if err == nil {
		_ = unix.Munmap(m)
	}
	return err
}

func updateElement(fd, bytes int) error {
	key, value := new(uint32), make([]byte, bytes)
	attributes := struct {
		fd, _             uint32
		key, value, flags uint64
	}{fd: uint32(fd), key: uint64(uintptr(unsafe.Pointer(key))), value: uint64(uintptr(unsafe.Pointer(&value[0])))}
	return bpfCall(bpfMapUpdateElem, attributes)
}

func bpfCall[T any](command uintptr, attributes T) error {
	_, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes))
	if errno != 0 {
		return errno
	}
	return nil
}

// runIntruder is an unprivileged consumer that reads packets as it should, and also makes the attempts.
func runIntruder(text string) error {
	var input consumerInput
	if err := json.Unmarshal([]byte(text), &input); err != nil {
		return err
	}
	c, err := consume(input.RunDir, input.Name, 0)
	if err != nil {
		return err
	}
	var succeeded []string
	for name, attempt := range attempts(c) {
		if attempt() == nil {
			succeeded = append(succeeded, name)
		}
	}
	if len(succeeded) > 0 {
		sort.Strings(succeeded)
		return errors.New("could " + strings.Join(succeeded, ", "))
	}
	fmt.Println("attached")
	packets, err := c.collect(input.Packets)
	if err != nil {
		return err
	}
	delivered := c.delivered()
	if delivered != uint64(len(packets)) {
		return fmt.Errorf("%d packets are counted as delivered, %d were read", delivered, len(packets))
	}
	fmt.Println("read")
	return nil
}

func TestUnprivilegedConsumerCanOnlyRead(t *testing.T) {
	const sent = 50
	l := newLab(t)
	e := l.engine(func(o *Options) { o.Users = []uint32{nobody} })
	l.apply(e, l.plan(1))
	_, out := l.helper("intruder", consumerInput{RunDir: l.runDir, Name: "mirror", Packets: sent}, nobody)
	require.Equal(t, "attached", l.line(out))
	l.sendAll(e, "mirror", sent, func(n int) []byte { return frame(n, 100) })
	require.Equal(t, "read", l.line(out))
	require.EqualValues(t, sent, l.observe(e).Clusters["mirror"].Queues[0].Delivered)
}

func TestConsumerThatScribblesHarmsOnlyItself(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	plan := l.plan(2)
	plan.Clusters[0].Balance = capture.BalanceRoundRobin
	plan.Clusters[0].QueueBytes = minQueueBytes
	l.apply(e, plan)
	bad, good := l.consume("mirror", 0), l.consume("mirror", 1)
	for round, position := range []uint64{1, 1 << 63, ^uint64(0), 0xdeadbeef00000003, 12345} {
		for _, page := range [][]byte{bad.page, bad.bell} {
			for i := 0; i+8 <= len(page); i += 8 {
				binary.NativeEndian.PutUint64(page[i:], position)
			}
		}
		l.sendAll(e, "mirror", 1000, func(n int) []byte { return frame(n, 60) })
		require.Len(t, l.collect(good, 500), 500)
		stats := l.observe(e).Clusters["mirror"].Queues
		require.EqualValues(t, 500*(round+1), stats[1].Delivered)
		require.EqualValues(t, 500*(round+1), stats[0].Delivered+stats[0].Dropped[capture.DropFull])
		require.LessOrEqual(t, stats[0].UnreadBytes, uint64(bad.reply.NrLanes)*minQueueBytes)
	}
	bad.detach()
	l.detached(e, "mirror", 0)
	next := l.consume("mirror", 0)
	l.sendAll(e, "mirror", 10, func(n int) []byte { return frame(n, 60) })
	require.Len(t, l.collect(next, 5), 5)
}
