// SPDX-License-Identifier: Apache-2.0

// Package account checks that every packet that was put on a wire can be accounted for: by the counters of the node
// that captured it, and by what its consumers wrote.
package account

import (
	"crypto/sha256"
	"fmt"
)

// Digest identifies a packet by its bytes and its length on the wire.
type Digest [16]byte

// DigestOf returns a packet's digest.
func DigestOf(data []byte, length int) Digest {
	hash := sha256.New()
	fmt.Fprintf(hash, "%d ", length)
	hash.Write(data)
	return Digest(hash.Sum(nil)[:16])
}

// Queue is what became of a queue's packets. Counters are what was counted during the replay.
type Queue struct {
	Queue          int               `json:"queue"`
	Consumer       string            `json:"consumer,omitempty"`
	Attached       bool              `json:"attached"`
	Delivered      uint64            `json:"delivered"`
	DeliveredBytes uint64            `json:"deliveredBytes"`
	TruncatedBytes uint64            `json:"truncatedBytes"`
	Dropped        map[string]uint64 `json:"dropped,omitempty"`
	UnreadBytes    uint64            `json:"unreadBytes"`
	// Written is what the consumer wrote, in the order of capture.
	Written []Digest `json:"-"`
	// Reordered is how many packets it wrote after one that was captured later.
	Reordered uint64 `json:"reordered"`
	// Displaced is how many of them are not where they were on the wire among the queue's packets.
	Displaced uint64 `json:"displaced"`
	// WrittenPackets is their number.
	WrittenPackets uint64 `json:"written"`
	// WrittenBytes is their length on the wire.
	WrittenBytes uint64 `json:"writtenBytes"`
}

// Drops returns all dropped packets.
func (q Queue) Drops() uint64 {
	var sum uint64
	for _, n := range q.Dropped {
		sum += n
	}
	return sum
}

// Node is what became of the packets that were replayed to one node.
type Node struct {
	Name         string `json:"name"`
	Engine       string `json:"engine"`
	EngineReason string `json:"engineReason"`
	Kernel       string `json:"kernel"`
	Module       string `json:"module,omitempty"`
	// Sent packets were given to the sender; LostBeforeWire of them its own end of the cable dropped; OnWire is the rest.
	Sent           uint64  `json:"sent"`
	LostBeforeWire uint64  `json:"lostBeforeWire"`
	OnWire         uint64  `json:"onWire"`
	Seen           uint64  `json:"seen"`
	Filtered       uint64  `json:"filtered"`
	SampledOut     uint64  `json:"sampledOut"`
	Passed         uint64  `json:"passed"`
	Queues         []Queue `json:"queues"`
}

// Options are what a check may take for granted.
type Options struct {
	// Lossless: nothing is filtered or dropped, so what was written is all of the input.
	Lossless bool
	// Again: consumers were killed in mid-read, so packets may be written more than once, and out of order.
	Again bool
	// Protocols maps packets to their protocols; with nil all packets have the same one. Order is only promised within a
	// protocol: Linux gives a tap those packets of a batch first that the node's own stack has a use for.
	Protocols map[Digest]string
}

// Check returns everything that does not add up, in words; nothing when every packet is accounted for. Input is what
// was sent to each node, in order.
func Check(input []Digest, nodes []Node, options Options) []string {
	var problems []string
	queueOf := map[Digest]place{}
	for _, node := range nodes {
		add := func(format string, args ...any) {
			problems = append(problems, node.Name+": "+fmt.Sprintf(format, args...))
		}
		checkCounters(node, options, add)
		if options.Lossless {
			checkLossless(node, add)
		}
		checkContents(input, node, options, add)
		checkPlaces(node, queueOf, add)
	}
	return problems
}

type adder func(format string, args ...any)

// place is where a packet was seen first.
type place struct {
	node  string
	queue int
}

func checkCounters(node Node, options Options, add adder) {
	if node.Sent != node.LostBeforeWire+node.OnWire {
		add("%d packets were sent, but %d were lost before the wire and %d were on it", node.Sent, node.LostBeforeWire, node.OnWire)
	}
	if node.OnWire != node.Seen {
		add("%d packets were on the wire, but %d were seen", node.OnWire, node.Seen)
	}
	if sum := node.Filtered + node.SampledOut + node.Passed; node.Seen != sum {
		add("%d packets were seen, but filtered, sampled out and passed are %d", node.Seen, sum)
	}
	var queues uint64
	for _, queue := range node.Queues {
		queues += queue.Delivered + queue.Drops()
		if queue.Delivered != queue.WrittenPackets && !(options.Again && queue.Delivered < queue.WrittenPackets) {
			add("queue %d: %d packets were delivered, but %s wrote %d (unread: %d bytes)",
				queue.Queue, queue.Delivered, consumerName(queue), queue.WrittenPackets, queue.UnreadBytes)
		} else if queue.DeliveredBytes+queue.TruncatedBytes != queue.WrittenBytes && !options.Again {
			add("queue %d: %d bytes were delivered and %d cut off, but %s wrote packets of %d",
				queue.Queue, queue.DeliveredBytes, queue.TruncatedBytes, consumerName(queue), queue.WrittenBytes)
		}
	}
	if node.Passed != queues {
		add("%d packets passed, but delivered and dropped over all queues are %d", node.Passed, queues)
	}
}

func consumerName(queue Queue) string {
	if queue.Consumer == "" {
		return "nobody"
	}
	return queue.Consumer
}

func checkLossless(node Node, add adder) {
	if node.LostBeforeWire+node.Filtered+node.SampledOut > 0 {
		add("%d packets were lost before the wire, %d filtered, %d sampled out, where none should be",
			node.LostBeforeWire, node.Filtered, node.SampledOut)
	}
	for _, queue := range node.Queues {
		if queue.Drops() > 0 {
			add("queue %d: %d packets were dropped, where none should be: %v", queue.Queue, queue.Drops(), queue.Dropped)
		}
	}
}

// again is how many packets consumers wrote more than they were delivered.
func (n Node) again() uint64 {
	var again uint64
	for _, queue := range n.Queues {
		again += queue.WrittenPackets - min(queue.WrittenPackets, queue.Delivered)
	}
	return again
}

// checkContents compares what was written with the input as multisets, and each queue's order with the input's.
func checkContents(input []Digest, node Node, options Options, add adder) {
	left := make(map[Digest]int, len(input))
	for _, digest := range input {
		left[digest]++
	}
	var foreign, written uint64
	for _, queue := range node.Queues {
		for _, digest := range queue.Written {
			count, known := left[digest]
			switch {
			case count > 0:
				left[digest]--
				written++
			case !known || !options.Again:
				foreign++
			}
		}
		if at, ok := outOfOrder(input, queue.Written, options.Protocols); ok && !options.Again {
			add("queue %d: packet %d of what was written, by time of capture, is not in the order of the wire", queue.Queue, at+1)
		}
	}
	if foreign > 0 {
		add("%d written packets are not of the input, or are there too often", foreign)
	}
	named := node.LostBeforeWire + node.Filtered + node.SampledOut
	for _, queue := range node.Queues {
		named += queue.Drops()
	}
	missing := uint64(len(input)) - written
	// What a consumer wrote again may be taken for another packet of the same bytes.
	if missing > named || missing+node.again() < named {
		add("%d packets of the input were not written by anyone, but %d are accounted for as lost or filtered", missing, named)
	}
}

// outOfOrder returns the place of the first packet that keeps written from being, protocol by protocol, a subsequence of
// input. Packets that are not of the input are left out: they are reported elsewhere.
func outOfOrder(input, written []Digest, protocols map[Digest]string) (int, bool) {
	known := make(map[Digest]bool, len(input))
	for _, digest := range input {
		known[digest] = true
	}
	next := map[string]int{}
	for at, digest := range written {
		if !known[digest] {
			continue
		}
		protocol := protocols[digest]
		i := next[protocol]
		for i < len(input) && input[i] != digest {
			i++
		}
		if i == len(input) {
			return at, true
		}
		next[protocol] = i + 1
	}
	return 0, false
}

// displaced returns how many packets of a queue are not at their place among those of the input that went to it.
// It means something only when nothing is missing.
func displaced(input, written []Digest) uint64 {
	ours := make(map[Digest]bool, len(written))
	for _, digest := range written {
		ours[digest] = true
	}
	var count uint64
	at := 0
	for _, digest := range input {
		if !ours[digest] {
			continue
		}
		if at < len(written) && written[at] != digest {
			count++
		}
		at++
	}
	return count
}

// checkPlaces reports packets with equal bytes that are in different queues, of one node or of two.
func checkPlaces(node Node, queueOf map[Digest]place, add adder) {
	var different int
	var example string
	for _, queue := range node.Queues {
		for _, digest := range queue.Written {
			first, ok := queueOf[digest]
			if !ok {
				queueOf[digest] = place{node.Name, queue.Queue}
				continue
			}
			if first.queue != queue.Queue {
				different++
				example = fmt.Sprintf("queue %d here, queue %d on %s", queue.Queue, first.queue, first.node)
			}
		}
	}
	if different > 0 {
		add("%d packets are in another queue than the same packet was before (such as %s)", different, example)
	}
}
