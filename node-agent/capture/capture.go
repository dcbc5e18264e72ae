// SPDX-License-Identifier: Apache-2.0

// Package capture holds the desired and the observed state of one node's data path as plain values. The planner makes
// a Plan, an engine applies it and reports an Observation; both know nothing of Kubernetes.
package capture

import (
	"context"
	"errors"
	"time"

	"golang.org/x/net/bpf"
)

// Direction selects which of a device's packets a tap takes. The values are those of enum ringcap_direction.
type Direction uint32

// The directions of a tap.
const (
	Receive  Direction = 1
	Transmit Direction = 2
	Both     Direction = 3
)

// Balance is a cluster's way to choose a packet's queue. The values are those of enum ringcap_balance.
type Balance uint32

// The balance types.
const (
	BalanceFlow Balance = iota
	BalanceFiveTuple
	BalanceFourTuple
	BalanceTwoTuple
	BalanceRoundRobin
	BalanceTCPFiveTuple
	BalanceBothEnds
	BalanceRxQueue
)

// Plan is everything that an engine is to have on this node. Names of rings are unique, names of clusters are unique;
// a ring's own queues are a Cluster of the ring's name.
type Plan struct {
	Rings    []Ring
	Clusters []Cluster
}

// Ring is a named capture.
type Ring struct {
	Name string
	Taps []Tap
	// Filter is a kernel-side classic BPF program over the packet as the kernel holds it (package filter makes it from
	// one over the packet as it was on the wire); empty lets everything pass.
	Filter []bpf.RawInstruction
	// SnapLen is the greatest number of bytes captured of a packet, 1 to 65535.
	SnapLen uint32
	// Promiscuous makes the tapped devices receive what is not addressed to them.
	Promiscuous bool
	// Outputs names the clusters that the ring feeds, at most 8.
	Outputs []string
	// Mode is where packets are taken; XDP how a mode other than 0 may be had without a capture-aware driver.
	Mode TransparentMode
	XDP  XDPMode
	// Quick is what spec.quickMode says. Engines accept it; it has no effect.
	Quick bool
	// VLANs are the outermost VLAN ids that pass, 0 for untagged packets; empty lets all pass.
	VLANs    []uint16
	Sampling Sampling
	Rules    RuleSet
	// Defragment makes the fragments of an IPv4 datagram come as one packet.
	Defragment bool
	// Plugins are asked in this order, at most 8, after the patterns.
	Plugins []Plugin
	// HardwareTime takes the device's time of a packet where it took one.
	HardwareTime bool
}

// TransparentMode is where packets are taken: 0 from the stack, 1 before the stack, which gets them too, 2 before the
// stack, which does not get them.
type TransparentMode uint32

// XDPMode selects which XDP the eBPF engine may use for transparent modes 1 and 2.
type XDPMode uint32

// Native XDP runs in the driver. GenericAllowed takes generic XDP, in the stack and after an skb was made, where the driver
// has no other.
const (
	XDPNative XDPMode = iota
	XDPGenericAllowed
)

// Sampling selects the packets of a ring's sample.
type Sampling struct {
	// OneIn so many packets, or flows; 0 and 1 are all.
	OneIn uint32
	// ByFlow takes all packets of a flow or none.
	ByFlow bool
}

// Tap is a capture point.
type Tap struct {
	Interface string
	Index     int
	Direction Direction
	// RxQueues are the device's receive queues that are captured, in order; empty is all.
	RxQueues []uint16
	// Follows: the tap stays when the device goes to another network namespace.
	Follows bool `json:",omitempty"`
	// Away, of an observed tap: the device is in another one.
	Away bool `json:",omitempty"`
}

// Cluster is a named set of queues.
type Cluster struct {
	Name    string
	Queues  int
	Balance Balance
	HashKey [16]byte
	// QueueBytes is the size of one queue's data (of each lane of it, in the module), a power of two of at least 128 KiB.
	QueueBytes uint32
	// Lanes is the number of memory areas of each queue where there are to be fewer than the engine makes; 0: as many as that.
	Lanes int `json:",omitempty"`
	// Watermark is the number of unread bytes at which a sleeping consumer is woken; WatermarkTimeout the time after
	// which it is woken for fewer.
	Watermark        uint32
	WatermarkTimeout time.Duration
	// Inner hashes the innermost packet of tunnels.
	Inner     bool
	Fragments Fragments
	// LongHeader: slots carry what the parser found and a hash, in engines where they need not.
	LongHeader bool
	// WhenFull and WhenUnattended are the policies for packets to a queue that is full, or that has no consumer.
	WhenFull, WhenUnattended QueuePolicy
}

// Fragments selects the queue for fragments. The values are those of enum ringcap_fragments.
type Fragments uint32

// FragmentsTogether: all of a datagram to one queue. FragmentsWithFlow: to that of the rest of their flow.
const (
	FragmentsTogether Fragments = iota
	FragmentsWithFlow
)

// QueuePolicy is what becomes of packets for a queue that cannot take them. The values are those of enum ringcap_policy.
type QueuePolicy uint32

// PolicyDrop drops and counts them there; PolicySpread gives them to other attended queues.
const (
	PolicyDrop QueuePolicy = iota
	PolicySpread
)

// QueueID names a queue.
type QueueID struct {
	Cluster string
	Queue   int
}

// RingStats is a ring's account: Seen = Filtered + SampledOut + Reflected + Absorbed + Directed + Passed.
type RingStats struct {
	Seen, SeenBytes, Filtered, SampledOut, Passed uint64
	// Reflected were sent out of another interface, of which ReflectFailed were refused by it; Absorbed are fragments that
	// went into another packet; Directed went to a queue that a rule names.
	Reflected, ReflectFailed, Absorbed, Directed uint64
}

// QueueStats is a queue's account. What its cluster's rings passed to it is Delivered plus all of Dropped.
type QueueStats struct {
	// DeliveredBytes are those that consumers can read: without TruncatedBytes.
	Delivered, DeliveredBytes uint64
	// Truncated are those of the packets delivered that a snap length has shortened, TruncatedBytes what they lack.
	Truncated, TruncatedBytes uint64
	Dropped                   map[DropReason]uint64
	UnreadBytes               uint64
	// Lanes is the number of memory areas that it has by now; 0 where the engine makes all of them at once.
	Lanes    int
	Attached bool
	// Holder is the process that attached, by its number in this process's pid namespace; 0 when there is none, or it is not
	// visible from here. It may have ended, and another one hold what it had.
	Holder int
	// Attachment is this time that it attached: no other of the queue has the number. 0 where that is not known.
	Attachment uint64
}

// Holder is whom a queue is taken from: a process, and the time that it attached; anybody where both are 0.
type Holder struct {
	PID        int
	Attachment uint64
}

// DropReason is why a passed packet was not delivered. The values are those of enum ringcap_drop, as words.
type DropReason string

// The reasons.
const (
	DropFull       DropReason = "full"
	DropUnattended DropReason = "unattended"
	DropNoMemory   DropReason = "nomem"
)

// DropReasons lists the reasons in the order of enum ringcap_drop.
var DropReasons = []DropReason{DropFull, DropUnattended, DropNoMemory}

// Observation is what an engine has, with its counters.
type Observation struct {
	Rings    map[string]RingState
	Clusters map[string]ClusterState
	// Own is the engine's, for the Apply that follows: how it was asked for what it has. The zero Observation has none.
	Own any
}

// RingState is an observed ring.
type RingState struct {
	// Taps that are attached.
	Taps  []Tap
	Stats RingStats
	// Rules has what each wildcard rule counted, by its id.
	Rules map[uint32]RuleStats
	// Patterns has the packets that each payload pattern decided on, Plugins those that each plugin did not let pass, in the
	// plan's order; nil if the engine does not count them.
	Patterns, Plugins []uint64
}

// RuleStats is what a rule counted.
type RuleStats struct{ Packets, Bytes uint64 }

// ClusterState is an observed cluster.
type ClusterState struct {
	Queues []QueueStats
	// Duplicated counts second copies (BalanceBothEnds); Spread packets that went to another queue by WhenFull or
	// WhenUnattended. What rings passed and directed to it, and Duplicated, is the sum over its queues.
	Duplicated, Spread uint64
	// Memory is the bytes that its queues take.
	Memory uint64
	// MemoryMost is the bytes that they may come to take, as more CPUs produce; 0 where that is Memory.
	MemoryMost uint64
	// Lanes is the number of memory areas of each queue; 0 where the engine has one.
	Lanes int
}

// Memory is a node's, in bytes.
type Memory struct {
	// Total of the node without huge pages that were set aside, and Available of it to programs now.
	Total, Available uint64
	// Reserve is what queues leave of both.
	Reserve uint64
	// AgentRoom is what the memory limit of the agent's container leaves for queues, which are charged to it.
	AgentRoom uint64
}

// Room is the bytes that new queues may have.
func (m Memory) Room() uint64 {
	return min(m.Available-min(m.Available, m.Reserve), m.AgentRoom)
}

// Grant is what a container must be given to consume a queue.
type Grant struct {
	// Devices are device nodes: path on the host, path in the container.
	Devices []PathPair
	// Mounts are read-only folders: path on the host, path in the container.
	Mounts []PathPair
}

// PathPair is a path on the host and what it is called in the container.
type PathPair struct{ Host, Container string }

// Errors that engines return, to be tested with errors.Is.
var (
	// ErrInUse: a consumer holds what the change would take away.
	ErrInUse = errors.New("in use by a consumer")
	// ErrUnsupported: the engine cannot do what the plan asks; the error names it.
	ErrUnsupported = errors.New("not supported by this engine")
	// ErrNoMemory: the node has no memory for it.
	ErrNoMemory = errors.New("no memory")
	// ErrNotFound: no such ring, cluster or queue, or it is not this process that has it.
	ErrNotFound = errors.New("not found")
)

// Engine is a data path. Its methods may be called by several goroutines; Apply by one at a time.
type Engine interface {
	// Apply makes the node's data path as planned and removes what the engine made before and is not planned any more. seen is
	// what Observe has just returned, so that the engine need not look again; with the zero value it looks.
	// What is unchanged is not touched: its consumers stay attached and its counters go on. The returned map has an
	// entry for each ring or cluster (by name) that could not be made as planned; the others were applied.
	// The error is for what concerns the engine as a whole.
	Apply(ctx context.Context, plan Plan, seen Observation) (map[string]error, error)
	// Observe reads the state and the counters.
	Observe(context.Context) (Observation, error)
	// Grant returns what a container needs to consume a queue.
	Grant(QueueID) (Grant, error)
	// TakeBack revokes a queue for the next consumer: it is empty and free afterwards. The descriptors and mappings of its
	// former consumer get nothing more, and it cannot attach again with its old grant. Where a holder is named, only that
	// one loses the queue, else TakeBack returns ErrNotFound. from is the process that had it, 0 where it is not known.
	TakeBack(ctx context.Context, queue QueueID, holder Holder) (from int, err error)
	// Close releases what the process holds. Rings, queues and attached consumers live on.
	Close() error
}
