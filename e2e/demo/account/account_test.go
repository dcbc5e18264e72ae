// SPDX-License-Identifier: Apache-2.0

package account

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The input of the tests: six packets, the last the same as the first.
var (
	a     = DigestOf([]byte("a"), 1)
	b     = DigestOf([]byte("b"), 1)
	c     = DigestOf([]byte("c"), 1)
	d     = DigestOf([]byte("d"), 1)
	e     = DigestOf([]byte("e"), 1)
	input = []Digest{a, b, c, d, e, a}
)

// good is a node on which a, c and e are in queue 0, b and d in queue 1.
func good(name string) Node {
	return Node{
		Name: name, Sent: 6, OnWire: 6, Seen: 6, Passed: 6,
		Queues: []Queue{
			{Queue: 0, Consumer: "x/p0", Delivered: 4, WrittenPackets: 4, Written: []Digest{a, c, e, a}},
			{Queue: 1, Consumer: "x/p1", Delivered: 2, WrittenPackets: 2, Written: []Digest{b, d}},
		},
	}
}

func TestCheck(t *testing.T) {
	tests := []struct {
		name     string
		lossless bool
		change   func(*Node)
		want     []string
	}{
		{"all is well", true, func(*Node) {}, nil},
		{"a packet was not seen", true, func(n *Node) { n.OnWire, n.Sent = 7, 7 },
			[]string{"n2: 7 packets were on the wire, but 6 were seen"}},
		{"a queue's bytes are not those of its packets", true, func(n *Node) { n.Queues[0].DeliveredBytes = 60 },
			[]string{"n2: queue 0: 60 bytes were delivered and 0 cut off, but x/p0 wrote packets of 0"}},
		{"the sender's account is wrong", true, func(n *Node) { n.Sent = 8 },
			[]string{"n2: 8 packets were sent, but 0 were lost before the wire and 6 were on it"}},
		{"seen is more than the rest", true, func(n *Node) { n.Seen, n.OnWire, n.Sent = 7, 7, 7 },
			[]string{"n2: 7 packets were seen, but filtered, sampled out and passed are 6"}},
		{"a queue's packets are not all named", true, func(n *Node) { n.Passed, n.Seen, n.OnWire, n.Sent = 7, 7, 7, 7 },
			[]string{"n2: 7 packets passed, but delivered and dropped over all queues are 6"}},
		{"the consumer wrote fewer", true, func(n *Node) {
			n.Queues[1].Written, n.Queues[1].WrittenPackets, n.Queues[1].UnreadBytes = []Digest{b}, 1, 64
		}, []string{
			"n2: queue 1: 2 packets were delivered, but x/p1 wrote 1 (unread: 64 bytes)",
			"n2: 1 packets of the input were not written by anyone, but 0 are accounted for as lost or filtered",
		}},
		{"a named drop is accounted for", false, drop, nil},
		{"but not where nothing may be lost", true, drop,
			[]string{"n2: queue 1: 1 packets were dropped, where none should be: map[full:1]"}},
		{"filtered packets are accounted for", false, func(n *Node) {
			n.Filtered, n.Passed = 1, 5
			n.Queues[1].Written, n.Queues[1].WrittenPackets, n.Queues[1].Delivered = []Digest{b}, 1, 1
		}, nil},
		{"other bytes were written", true, func(n *Node) { n.Queues[1].Written = []Digest{b, DigestOf([]byte("d"), 2)} },
			[]string{
				"n2: 1 written packets are not of the input, or are there too often",
				"n2: 1 packets of the input were not written by anyone, but 0 are accounted for as lost or filtered",
			}},
		{"order was changed", true, func(n *Node) { n.Queues[1].Written = []Digest{d, b} },
			[]string{"n2: queue 1: packet 2 of what was written, by time of capture, is not in the order of the wire"}},
		{"the other node chose another queue", true, func(n *Node) {
			n.Queues[0].Queue, n.Queues[1].Queue = 1, 0
		}, []string{"n2: 6 packets are in another queue than the same packet was before (such as queue 0 here, queue 1 on n1)"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			second := good("n2")
			test.change(&second)
			require.Equal(t, test.want, Check(input, []Node{good("n1"), second}, Options{Lossless: test.lossless}))
		})
	}
}

func drop(n *Node) {
	n.Queues[1].Written, n.Queues[1].WrittenPackets, n.Queues[1].Delivered = []Digest{b}, 1, 1
	n.Queues[1].Dropped = map[string]uint64{"full": 1}
}

func TestOnePacketInTwoQueuesOfANode(t *testing.T) {
	node := good("n1")
	node.Queues[0].Written = []Digest{a, c, e}
	node.Queues[1].Written = []Digest{b, d, a}
	for i := range node.Queues {
		node.Queues[i].Delivered, node.Queues[i].WrittenPackets = 3, 3
	}
	require.Equal(t, []string{"n1: 1 packets are in another queue than the same packet was before (such as queue 1 here, queue 0 on n1)"},
		Check(input, []Node{node}, Options{Lossless: true}))
}

func TestOrder(t *testing.T) {
	at := func(microseconds int64) time.Time { return time.UnixMicro(microseconds) }
	packets := []stamped{{at(1), a, 60}, {at(4), d, 60}, {at(2), b, 60}, {at(2), c, 60}, {at(5), e, 60}}
	require.EqualValues(t, 2, order(packets))
	require.Equal(t, []stamped{{at(1), a, 60}, {at(2), b, 60}, {at(2), c, 60}, {at(4), d, 60}, {at(5), e, 60}}, packets)
}

func TestOrderIsPromisedWithinAProtocol(t *testing.T) {
	node := good("n1")
	node.Queues[0].Written = []Digest{c, a, e, a}
	protocols := map[Digest]string{a: "ip", b: "ip", c: "lldp", d: "ip", e: "ip"}
	require.Empty(t, Check(input, []Node{node}, Options{Lossless: true, Protocols: protocols}))
	require.EqualValues(t, 2, displaced(input, node.Queues[0].Written))

	node.Queues[0].Written = []Digest{e, a, c, a}
	require.Equal(t, []string{"n1: queue 0: packet 4 of what was written, by time of capture, is not in the order of the wire"},
		Check(input, []Node{node}, Options{Lossless: true, Protocols: protocols}))
}

func TestProtocolOf(t *testing.T) {
	frame := func(tail ...byte) []byte { return append(make([]byte, 12), tail...) }
	for want, data := range map[string][]byte{
		"0 tags, 0x0800": frame(0x08, 0x00, 0x45),
		"1 tags, 0x86dd": frame(0x81, 0x00, 0, 1, 0x86, 0xdd),
		"2 tags, 0x0806": frame(0x88, 0xa8, 0, 1, 0x81, 0x00, 0, 2, 0x08, 0x06),
		"0 tags, 0x0000": frame(0x01, 0x76, 0xaa),
		"cut off":        frame(0x81, 0x00, 0, 1),
	} {
		require.Equal(t, want, protocolOf(data))
	}
}

func TestKilledConsumerMayWriteAgain(t *testing.T) {
	node := good("n1")
	node.Queues[1].Written, node.Queues[1].WrittenPackets = []Digest{b, d, d}, 3
	require.Empty(t, Check(input, []Node{node}, Options{Again: true}))
	require.Len(t, Check(input, []Node{node}, Options{}), 3)

	node.Queues[1].Written, node.Queues[1].WrittenPackets = []Digest{b}, 1
	require.Len(t, Check(input, []Node{node}, Options{Again: true}), 2)
}
