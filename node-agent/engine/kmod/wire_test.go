// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"

	"github.com/ringcap/ringcap/node-agent/capture"
)

const recorded = "testdata/requests"

// digests are generations, which change with package capture's types.
var digests = regexp.MustCompile("0c000600[0-9a-f]{12}4352")

// fullRing has all that a ring can have, and of each kind of rule one with all fields and one with none.
func fullRing() capture.Ring {
	queue := capture.Target{Queue: capture.QueueID{Cluster: "ids", Queue: 1}}
	port := capture.Target{Interface: "eth7", Index: 7}
	return capture.Ring{
		Name: "mirror", Mode: 1, Quick: true, Defragment: true, HardwareTime: true, Promiscuous: true, SnapLen: 1500,
		Taps: []capture.Tap{
			{Interface: "eth0", Index: 2, Direction: capture.Receive, RxQueues: []uint16{0, 3, 70}},
			{Interface: "eth1", Index: 3, Direction: capture.Both, Follows: true},
		},
		Filter:   []bpf.RawInstruction{{Op: 0x28, Jt: 1, Jf: 2, K: 12}, {Op: 6, K: 0xffff}},
		VLANs:    []uint16{0, 7, 4094},
		Sampling: capture.Sampling{OneIn: 10, ByFlow: true},
		Plugins:  []capture.Plugin{{Name: "dns", Config: []byte{1, 2, 3}}, {Name: "http"}},
		Outputs:  []string{"ids", "other"},
		Rules: capture.RuleSet{
			Default: capture.ActionDrop, DropMatching: true,
			Exact: []capture.ExactRule{
				{
					Source: netip.MustParseAddrPort("10.0.0.1:1000"), Destination: netip.MustParseAddrPort("10.0.0.2:53"),
					Protocol: 17, VLAN: 5, Action: capture.ActionReflect, Target: port, Idle: time.Minute,
				},
				{Source: netip.MustParseAddrPort("[fd00::1]:1"), Destination: netip.MustParseAddrPort("[fd00::2]:2")},
			},
			Wildcard: []capture.WildcardRule{
				{
					ID: 7, Priority: 9, Action: capture.ActionQueue, Target: queue, Idle: 90 * time.Second, Both: true,
					Match: capture.Match{
						SourceMAC: &[6]byte{2, 1, 1, 1, 1, 1}, DestinationMAC: &[6]byte{2, 2, 2, 2, 2, 2},
						EtherType: pointer(uint16(0x800)), VLAN: pointer(uint16(100)), InnerVLAN: pointer(uint16(200)),
						Protocol: pointer(uint8(6)), Source: netip.MustParsePrefix("10.1.2.3/24"),
						Destination: netip.MustParsePrefix("10.2.0.0/16"), SourcePorts: &capture.PortRange{First: 1, Last: 2},
						DestinationPorts: &capture.PortRange{First: 80, Last: 443}, TCPFlags: &capture.TCPFlags{Flags: 2, Mask: 18},
						TunnelID: pointer(uint32(0x123456)), InnerSource: netip.MustParsePrefix("fd00::/8"),
						InnerDestination: netip.MustParsePrefix("fd01:2:3:4::5/64"),
					},
				},
				{ID: 8},
			},
			Patterns: []capture.Pattern{{Bytes: []byte("EVIL"), IgnoreCase: true, Offset: 4, Depth: 20}, {Bytes: []byte("x")}},
		},
	}
}

// Each request is on the wire as it was when it was recorded, byte for byte. GOLDEN=update records them.
func TestRequestsAreAsRecorded(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the requests were recorded on a little-endian machine")
	}
	var sent strings.Builder
	c := &client{conn: genltest.Dial(func(m genetlink.Message, r netlink.Message) ([]genetlink.Message, error) {
		fmt.Fprintf(&sent, "%d v%d %s\n%x\n", m.Header.Command, m.Header.Version, r.Header.Flags, m.Data)
		return []genetlink.Message{{}}, nil
	})}
	e := New(t.TempDir(), lanes)
	ring, cluster := fullRing(), ids
	cluster.Lanes, cluster.LongHeader, cluster.Inner = 3, true, true
	cluster.Fragments, cluster.WhenFull, cluster.WhenUnattended = capture.FragmentsWithFlow, capture.PolicySpread, capture.PolicySpread
	cluster.WatermarkTimeout = time.Hour
	for _, send := range []func() error{
		func() error { return e.setCluster(c, ids) },
		func() error { return e.setCluster(c, cluster) },
		func() error { return newRing(c, ring) },
		func() error { return setRing(c, mirror, nil) },
		func() error { return setRing(c, ring, []string{"other"}) },
		func() error { return setRing(c, capture.Ring{Name: "empty"}, nil) },
		func() error { return e.setCluster(c, lineQueues) },
		func() error { return setRing(c, line, nil) },
		func() error { return putRules(c, ring) },
		func() error { return putRules(c, capture.Ring{Name: "empty"}) },
		func() error { return c.takeBack(capture.QueueID{Cluster: "ids"}, capture.Holder{}) },
		func() error {
			return c.takeBack(capture.QueueID{Cluster: "ids", Queue: 1}, capture.Holder{PID: 7, Attachment: 5})
		},
		func() error { return c.remove(cmdRingDel, "mirror") },
		func() error { return c.remove(cmdClusterDel, "ids") },
		func() error { _, err := c.objects(); return err },
		func() error { _, err := c.queues("ids"); return err },
		func() error { _, _, err := c.rules("mirror"); return err },
		func() error { _, err := c.get(cmdInfoGet, nil); return err },
	} {
		require.NoError(t, send())
	}
	got := digests.ReplaceAllString(sent.String(), "0c000600............4352")
	if os.Getenv("GOLDEN") == "update" {
		require.NoError(t, os.WriteFile(recorded, []byte(got), 0o644))
	}
	want, err := os.ReadFile(recorded)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// A message holds as many rules as fit into 32 KiB.
func TestRulesGoInBatches(t *testing.T) {
	ring := capture.Ring{Name: "mirror"}
	ring.Rules.Wildcard = make([]capture.WildcardRule, 32<<10/136+1)
	flow := capture.ExactRule{Source: netip.MustParseAddrPort("10.0.0.1:1"), Destination: netip.MustParseAddrPort("10.0.0.2:2")}
	for range 32<<10/48 + 1 {
		ring.Rules.Exact = append(ring.Rules.Exact, flow)
	}
	for range 1000 {
		ring.Rules.Patterns = append(ring.Rules.Patterns, capture.Pattern{Bytes: make([]byte, 50)})
	}
	for name, test := range map[string]struct {
		encode func(capture.Ring, []capture.Target) ([][]byte, error)
		sizes  []int
	}{
		"wildcard": {encodeRules, []int{12 + 4 + 32<<10/136*136, 12 + 4 + 136}},
		"exact":    {encodeExacts, []int{12 + 4 + 32<<10/48*48, 12 + 4 + 48}},
		"patterns": {encodePatterns, []int{12 + 365*76, 12 + 365*76, 12 + 270*76}},
	} {
		t.Run(name, func(t *testing.T) {
			messages, err := test.encode(ring, nil)
			require.NoError(t, err)
			var sizes []int
			for _, message := range messages {
				sizes = append(sizes, len(message))
			}
			assert.Equal(t, test.sizes, sizes)
		})
	}
}

// Package capture has enumerations of its own, which are sent as they are.
func TestCaptureHasTheModulesNumbers(t *testing.T) {
	for _, pair := range [][2]int{
		{int(capture.Receive), directionRx}, {int(capture.Transmit), directionTx}, {int(capture.Both), directionBoth},
		{int(capture.BalanceFlow), balanceFlow}, {int(capture.BalanceFiveTuple), balanceFiveTuple},
		{int(capture.BalanceFourTuple), balanceFourTuple}, {int(capture.BalanceTwoTuple), balanceTwoTuple},
		{int(capture.BalanceRoundRobin), balanceRoundRobin}, {int(capture.BalanceTCPFiveTuple), balanceTCPFiveTuple},
		{int(capture.BalanceBothEnds), balanceBothEnds}, {int(capture.BalanceRxQueue), balanceRxQueue},
		{int(capture.FragmentsTogether), fragmentsTogether}, {int(capture.FragmentsWithFlow), fragmentsWithFlow},
		{int(capture.PolicyDrop), policyDrop}, {int(capture.PolicySpread), policySpread},
		{int(capture.ActionPass), actionPass}, {int(capture.ActionDrop), actionDrop}, {int(capture.ActionLearn), actionLearn},
		{int(capture.ActionQueue), actionQueue}, {int(capture.ActionReflect), actionReflect},
	} {
		assert.Equal(t, pair[1], pair[0])
	}
	assert.Equal(t, []capture.DropReason{dropFull: "full", dropUnattended: "unattended", dropNoMem: "nomem", dropHung: "hung"}, capture.DropReasons)
	assert.Equal(t, []capture.Event{pastUnattended, pastFull, pastHung}, capture.Events)
}

// What array copies without decoding it must have no padding.
func TestStructuresAreNotPadded(t *testing.T) {
	assert.EqualValues(t, binary.Size(rawRuleState{}), unsafe.Sizeof(rawRuleState{}))
	assert.EqualValues(t, binary.Size(rawExactState{}), unsafe.Sizeof(rawExactState{}))
}

// attributes encodes an answer; numbers are those of enum ringcap_attr.
func attributes(t *testing.T, fill func(*netlink.AttributeEncoder)) genetlink.Message {
	t.Helper()
	e := netlink.NewAttributeEncoder()
	fill(e)
	data, err := e.Encode()
	require.NoError(t, err)
	return genetlink.Message{Data: data}
}

func TestAnswers(t *testing.T) {
	info, err := decodeInfo(attributes(t, func(e *netlink.AttributeEncoder) {
		e.Uint32(2, 5)
		e.Uint32(3, 4)
		e.String(4, "1.2.3")
		e.Uint32(999, 1) // a later version's
	}))
	require.NoError(t, err)
	assert.Equal(t, Info{ABI: 5, ABIMin: 4, Version: "1.2.3"}, info)

	cluster, err := decodeCluster(attributes(t, func(e *netlink.AttributeEncoder) {
		e.String(5, "ids")
		e.Uint64(6, 1<<40)
		e.Uint32(7, 2)
		e.Uint32(8, 3)
		e.Uint32(20, 4)
		e.Uint32(20, 5)
		e.Uint64(22, 6)
		e.Uint64(23, 7)
		e.Uint64(82, 8)
	}))
	require.NoError(t, err)
	assert.Equal(t, clusterObject{name: "ids", generation: 1 << 40, queues: 2, lanes: 3, duplicated: 6, spread: 7, memory: 8}, cluster)

	ring, err := decodeRing(attributes(t, func(e *netlink.AttributeEncoder) {
		e.String(5, "mirror")
		e.Uint64(6, 1)
		for i := range uint32(2) {
			e.Nested(24, func(e *netlink.AttributeEncoder) error {
				e.Uint32(25, 10+i)
				e.Uint32(26, 1+i)
				e.Bytes(31, make([]byte, 16))
				e.Uint32(32, 0)
				if i == 1 {
					e.Uint32(89, 2)
				}
				return nil
			})
			e.Nested(39, func(e *netlink.AttributeEncoder) error {
				e.String(40, "dns")
				e.Uint64(43, 20+uint64(i))
				return nil
			})
			e.String(27, "ids")
		}
		e.Uint32(33, 1)
		e.Uint64(57, 99)
		for i := range uint64(9) {
			e.Uint64(64+uint16(i), 30+i)
		}
	}))
	require.NoError(t, err)
	assert.Equal(t, ringObject{
		name: "mirror", generation: 1, quick: true, rulesGeneration: 99, plugins: []uint64{20, 21},
		taps: []capture.Tap{{Index: 10, Direction: capture.Receive}, {Index: 11, Direction: capture.Transmit, Follows: true, Away: true}},
		stats: capture.RingStats{
			Seen: 30, SeenBytes: 31, Filtered: 32, SampledOut: 33, Passed: 34, Reflected: 35, ReflectFailed: 36, Absorbed: 37, Directed: 38,
		},
	}, ring)
}

func TestAnswersAboutRules(t *testing.T) {
	states := make([]byte, 2*160+1) // what is left over is no rule
	for i := range 2 {
		binary.NativeEndian.PutUint32(states[160*i:], uint32(i+1))
		binary.NativeEndian.PutUint64(states[160*i+136:], uint64(i+10))
		binary.NativeEndian.PutUint64(states[160*i+144:], uint64(i+100))
	}
	counts, err := decodeRules(attributes(t, func(e *netlink.AttributeEncoder) {
		e.Bytes(55, make([]byte, 72))
		e.Bytes(56, states)
		for i := range uint64(2) {
			e.Nested(49, func(e *netlink.AttributeEncoder) error {
				e.Bytes(50, []byte("EVIL"))
				e.Uint64(54, 40+i)
				return nil
			})
		}
	}))
	require.NoError(t, err)
	assert.Equal(t, ruleCounts{
		rules:    map[uint32]capture.RuleStats{1: {Packets: 10, Bytes: 100}, 2: {Packets: 11, Bytes: 101}},
		patterns: []uint64{40, 41},
	}, counts)
}

// Malformed answers give an error, or nothing.
func FuzzAnswers(f *testing.F) {
	want, err := os.ReadFile(recorded)
	require.NoError(f, err)
	for _, line := range strings.Split(string(want), "\n") {
		data, _ := hex.DecodeString(strings.ReplaceAll(line, ".", "0"))
		f.Add(data)
		f.Add(data[:max(len(data)-3, 0)])
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		m := genetlink.Message{Header: genetlink.Header{Command: cmdEvent}, Data: data}
		_, _ = decodeInfo(m)
		_, _ = decodeRing(m)
		_, _ = decodeCluster(m)
		_, _ = decodeQueue(m)
		_, _ = decodeRules(m)
		dispatch(m, func() {}, func() {})
	})
}

// An event of each kind calls what waits for it; what is no event calls nothing.
func TestEvents(t *testing.T) {
	for command, want := range map[uint8]string{10: "activity activity gone activity activity ", 5: ""} {
		called := ""
		for event := range uint32(8) {
			message := attributes(t, func(e *netlink.AttributeEncoder) {
				e.Uint32(85, event)
				e.String(5, "ids")
			})
			message.Header.Command = command
			dispatch(message, func() { called += "activity " }, func() { called += "gone " })
		}
		assert.Equal(t, want, called)
	}
}
