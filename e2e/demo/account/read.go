// SPDX-License-Identifier: Apache-2.0

package account

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ringcap/ringcap/e2e/demo/trace"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Wire is what the sending end of a node's cable counted during the replay.
type Wire struct {
	Sent   uint64 `json:"sent"`
	Lost   uint64 `json:"lost"`
	OnWire uint64 `json:"onWire"`
}

// Run is a folder with what was collected around a replay:
//
//	before.json, after.json   all NodeCaptures before and after, as kubectl prints them
//	wire.json                 a Wire for each node's name
//	input.pcap                what was sent to each node
//	NAMESPACE_POD.pcap        what a consumer wrote meanwhile; without Kubernetes NODE_queue-N.pcap
type Run struct {
	Folder  string
	Ring    string // the ring's name
	Cluster string // the name of the cluster over it
}

// Nodes reads the account of each node that something was sent to, in the order of their names.
func (r Run) Nodes() ([]Node, error) {
	before, err := r.captures("before.json")
	if err != nil {
		return nil, err
	}
	after, err := r.captures("after.json")
	if err != nil {
		return nil, err
	}
	wires := map[string]Wire{}
	if err := r.decode("wire.json", &wires); err != nil {
		return nil, err
	}
	var nodes []Node
	for _, capture := range after.Items {
		wire, ok := wires[capture.Name]
		if !ok {
			continue
		}
		node, err := r.node(capture, find(before, capture.Name), wire)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", capture.Name, err)
		}
		nodes = append(nodes, node)
	}
	if len(nodes) != len(wires) {
		return nil, fmt.Errorf("packets were sent to %d nodes, but only %d of them have a NodeCapture", len(wires), len(nodes))
	}
	return nodes, nil
}

func (r Run) node(capture, before v1alpha1.NodeCapture, wire Wire) (Node, error) {
	ring, ok := findRing(capture.Status, r.Ring)
	if !ok {
		return Node{}, fmt.Errorf("no ring %q in its status", r.Ring)
	}
	was, _ := findRing(before.Status, r.Ring)
	delta := counters{}
	node := Node{
		Name:           capture.Name,
		Engine:         string(ring.Engine),
		EngineReason:   ring.EngineReason,
		Kernel:         capture.Status.KernelRelease,
		Module:         capture.Status.ModuleVersion,
		Sent:           wire.Sent,
		LostBeforeWire: wire.Lost,
		OnWire:         wire.OnWire,
		Seen:           delta.of("seen", was.Seen, ring.Seen),
		Filtered:       delta.of("filtered", was.Filtered, ring.Filtered),
		SampledOut:     delta.of("sampledOut", was.SampledOut, ring.SampledOut),
		Passed:         delta.of("passed", was.Passed, ring.Passed),
	}
	queuesBefore := map[int32]v1alpha1.QueueStatus{}
	for _, queue := range findQueues(before.Status, r.Cluster) {
		queuesBefore[queue.Queue] = queue
	}
	for _, status := range findQueues(capture.Status, r.Cluster) {
		queue, err := r.queue(capture.Name, status, queuesBefore[status.Queue], &delta)
		if err != nil {
			return Node{}, err
		}
		node.Queues = append(node.Queues, queue)
	}
	if len(node.Queues) == 0 {
		return Node{}, fmt.Errorf("no queues of cluster %q in its status", r.Cluster)
	}
	return node, delta.err
}

func (r Run) queue(node string, status, before v1alpha1.QueueStatus, delta *counters) (Queue, error) {
	queue := Queue{
		Queue:          int(status.Queue),
		Consumer:       status.Consumer,
		Attached:       status.Attached,
		Delivered:      delta.of("delivered", before.Delivered, status.Delivered),
		DeliveredBytes: delta.of("deliveredBytes", before.DeliveredBytes, status.DeliveredBytes),
		TruncatedBytes: delta.of("truncatedBytes", before.TruncatedBytes, status.TruncatedBytes),
		UnreadBytes:    uint64(status.UnreadBytes),
		Dropped:        map[string]uint64{},
	}
	was := map[string]int64{}
	for _, drop := range before.Dropped {
		was[drop.Reason] = drop.Packets
	}
	for _, drop := range status.Dropped {
		if n := delta.of("dropped", was[drop.Reason], drop.Packets); n > 0 {
			queue.Dropped[drop.Reason] = n
		}
	}
	if queue.Consumer == "" {
		queue.Consumer = fmt.Sprintf("%s/queue-%d", node, status.Queue)
	}
	written, err := readWritten(filepath.Join(r.Folder, strings.ReplaceAll(queue.Consumer, "/", "_")+".pcap"))
	if errors.Is(err, fs.ErrNotExist) {
		queue.Consumer = status.Consumer
		return queue, nil
	}
	if err != nil {
		return queue, fmt.Errorf("what %s wrote: %w", queue.Consumer, err)
	}
	queue.Reordered = order(written)
	for _, packet := range written {
		queue.Written = append(queue.Written, packet.digest)
		queue.WrittenBytes += uint64(packet.length)
	}
	queue.WrittenPackets = uint64(len(written))
	return queue, nil
}

// stamped is a packet with the time of its capture.
type stamped struct {
	time   time.Time
	digest Digest
	length int // on the wire
}

// order puts packets in the order of their times, and returns how many were written after a later one: a queue's lanes
// are ordered each, and merged as far as their packets are there already.
func order(packets []stamped) uint64 {
	var latest time.Time
	var reordered uint64
	for _, packet := range packets {
		if packet.time.Before(latest) {
			reordered++
		} else {
			latest = packet.time
		}
	}
	slices.SortStableFunc(packets, func(a, b stamped) int { return a.time.Compare(b.time) })
	return reordered
}

// counters subtracts what was counted before, and keeps the first counter that went backwards.
type counters struct{ err error }

func (c *counters) of(name string, before, after int64) uint64 {
	if after < before {
		if c.err == nil {
			c.err = fmt.Errorf("counter %s went from %d back to %d: it was created again during the replay", name, before, after)
		}
		return 0
	}
	return uint64(after - before)
}

func (r Run) captures(name string) (v1alpha1.NodeCaptureList, error) {
	var list v1alpha1.NodeCaptureList
	return list, r.decode(name, &list)
}

func (r Run) decode(name string, into any) error {
	data, err := os.ReadFile(filepath.Join(r.Folder, name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func find(list v1alpha1.NodeCaptureList, name string) v1alpha1.NodeCapture {
	for _, item := range list.Items {
		if item.Name == name {
			return item
		}
	}
	return v1alpha1.NodeCapture{}
}

func findRing(status v1alpha1.NodeCaptureStatus, name string) (v1alpha1.NodeRingStatus, bool) {
	for _, ring := range status.Rings {
		if ring.Name == name {
			return ring, true
		}
	}
	return v1alpha1.NodeRingStatus{}, false
}

func findQueues(status v1alpha1.NodeCaptureStatus, cluster string) []v1alpha1.QueueStatus {
	for _, c := range status.Clusters {
		if c.Name == cluster {
			return c.Queues
		}
	}
	return nil
}

func readWritten(path string) ([]stamped, error) {
	var packets []stamped
	err := readPackets(path, func(p trace.Packet) {
		packets = append(packets, stamped{p.Time, DigestOf(p.Data, p.Length), p.Length})
	})
	return packets, err
}

// Input is what was sent to each node.
type Input struct {
	Digests   []Digest
	Protocols map[Digest]string
	Bytes     uint64
}

// Input reads it.
func (r Run) Input() (Input, error) {
	input := Input{Protocols: map[Digest]string{}}
	err := readPackets(filepath.Join(r.Folder, "input.pcap"), func(p trace.Packet) {
		digest := DigestOf(p.Data, p.Length)
		input.Digests = append(input.Digests, digest)
		input.Protocols[digest] = protocolOf(p.Data)
		input.Bytes += uint64(p.Length)
	})
	return input, err
}

// protocolOf names a frame's protocol by its tags and ethertype. All of IEEE 802.3, with a length there, is one.
func protocolOf(frame []byte) string {
	at := 12
	for at+4 <= len(frame) {
		switch binary.BigEndian.Uint16(frame[at:]) {
		case 0x8100, 0x88a8, 0x9100:
			at += 4
			continue
		}
		break
	}
	if at+2 > len(frame) {
		return "cut off"
	}
	ethertype := binary.BigEndian.Uint16(frame[at:])
	if ethertype < 0x600 {
		ethertype = 0
	}
	return fmt.Sprintf("%d tags, %#04x", (at-12)/4, ethertype)
}

func readPackets(path string, visit func(trace.Packet)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	err = trace.Read(bufio.NewReaderSize(file, 1<<20), func(p trace.Packet) error {
		visit(p)
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
