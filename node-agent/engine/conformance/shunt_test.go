// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// exactFlows returns flows that are dropped as struct ringcap_exact.
func exactFlows(flows []capture.ExactRule) []byte {
	var all []byte
	for _, flow := range flows {
		var rule struct {
			Source, Destination         [16]byte
			Sport, Dport, L3Proto, VLAN uint16
			L4Proto, Action             uint8
			Target                      uint16
			IdleS                       uint32
		}
		copy(rule.Source[:], flow.Source.Addr().AsSlice())
		copy(rule.Destination[:], flow.Destination.Addr().AsSlice())
		rule.Sport, rule.Dport = flow.Source.Port(), flow.Destination.Port()
		rule.VLAN, rule.L4Proto = flow.VLAN, flow.Protocol
		rule.L3Proto, rule.Action = unix.ETH_P_IP, uint8(capture.ActionDrop)
		if flow.Source.Addr().Is6() {
			rule.L3Proto = unix.ETH_P_IPV6
		}
		var err error
		if all, err = binary.Append(all, binary.NativeEndian, rule); err != nil {
			panic(err)
		}
	}
	return all
}

// shunt sends struct ringcap_shunt_message with the flows behind it, and reads the answer's result.
func (q *mapQueue) shunt(flows []byte, n int) error {
	const magic, add, head = 0x70616372, 3, 48
	message := make([]byte, head, head+len(flows))
	binary.NativeEndian.PutUint32(message, magic)
	binary.NativeEndian.PutUint32(message[4:], add)
	binary.NativeEndian.PutUint32(message[12:], uint32(n))
	if _, err := unix.Write(q.shunts, append(message, flows...)); err != nil {
		return err
	}
	if _, err := unix.Poll([]unix.PollFd{{Fd: int32(q.shunts), Events: unix.POLLIN}}, 60000); err != nil {
		return err
	}
	if _, err := unix.Read(q.shunts, message); err != nil {
		return err
	}
	if result := int32(binary.NativeEndian.Uint32(message[16:])); result != int32(n) {
		return fmt.Errorf("the answer is %d", result)
	}
	return nil
}

// shunt calls RINGCAP_IOC_SHUNT, _IOWR('R', 3, struct ringcap_shunts).
func (q *laneQueue) shunt(flows []byte, n int) error {
	argument := struct {
		flows                uintptr
		nr, missed           uint32
		lost, shunted, bytes uint64
	}{flows: uintptr(unsafe.Pointer(&flows[0])), nr: uint32(n)}
	request := 3<<30 | unsafe.Sizeof(argument)<<16 | 'R'<<8 | 3
	done, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(q.device), request, uintptr(unsafe.Pointer(&argument)))
	if errno != 0 {
		return errno
	}
	if int(done) != n {
		return fmt.Errorf("%d of %d flows were shunted", done, n)
	}
	return nil
}

// shuntRows have consumers that shunt flows of mixed: named in either direction, of both families, with a tag. The
// flow in a tunnel and fragments are others.
func shuntRows() []row {
	end := netip.MustParseAddrPort
	flow := func(source, destination string, protocol uint8, vlan uint16) capture.ExactRule {
		return capture.ExactRule{Source: end(source), Destination: end(destination), Protocol: protocol, VLAN: vlan}
	}
	shunted := []capture.ExactRule{
		flow("10.1.0.1:53", "10.0.0.1:1000", 17, 0), flow("[2001:db8::1]:1000", "[2001:db8::2]:53", 17, 0),
		flow("[2001:db8::1]:2000", "[2001:db8::2]:443", 6, 0), flow("10.0.0.1:0", "10.1.0.1:0", 1, 0),
		flow("10.0.0.3:1002", "10.1.0.1:53", 17, 7), flow("172.16.0.1:7", "172.16.0.2:8", 17, 0),
		flow("10.0.0.2:1001", "10.1.0.1:81", 6, 0), flow("10.0.0.2:1001", "10.1.0.1:80", 17, 0),
	}
	gone := []int{0, 1, 4, 5, 6, 8} // of mixed
	check := func(t *testing.T, r result) {
		t.Helper()
		want := map[string]int{}
		for i, p := range r.row.packets {
			if !slices.Contains(gone, i) {
				want[string(p.frame)]++
			}
		}
		for name, state := range r.observed.Clusters {
			got := map[string]int{}
			var queues capture.QueueStats
			for queue, s := range state.Queues {
				for _, p := range r.queues[capture.QueueID{Cluster: name, Queue: queue}] {
					got[string(p.data)]++
				}
				queues.Shunted += s.Shunted
				queues.ShuntedBytes += s.ShuntedBytes
				require.EqualValues(t, len(shunted), s.ShuntedFlows)
			}
			bytes := 0
			for _, i := range gone {
				bytes += len(r.row.packets[i].frame)
			}
			require.Equal(t, want, got, name)
			require.EqualValues(t, len(gone), queues.Shunted, name)
			require.EqualValues(t, bytes, queues.ShuntedBytes, name)
		}
	}
	wild := capture.RuleSet{Wildcard: []capture.WildcardRule{{ID: 1, Action: capture.ActionLearn}}}
	quota := uint32(len(shunted))
	return []row{
		{
			name: "shunted flows", packets: mixed(), shunted: shunted, check: check,
			clusters: []capture.Cluster{{ShuntQuota: quota}},
		},
		{
			name: "shunted flows of all shapes of clusters", packets: mixed(), shunted: shunted, check: check,
			clusters: []capture.Cluster{
				{ShuntQuota: quota, LongHeader: true}, {ShuntQuota: quota, Queues: 3},
				{ShuntQuota: quota, Queues: 2, Inner: true, Fragments: capture.FragmentsWithFlow},
				{ShuntQuota: quota, Queues: 2, WhenFull: capture.PolicySpread},
			},
		},
		{
			name: "shunted flows of queues by hash", packets: mixed(), shunted: shunted, check: check,
			clusters: []capture.Cluster{{ShuntQuota: quota, Queues: 4}},
		},
		{
			name: "shunted flows behind rules", packets: mixed(), shunted: shunted, check: check,
			rings: []capture.Ring{{Rules: wild}}, clusters: []capture.Cluster{{ShuntQuota: quota, Queues: 4}},
		},
	}
}
