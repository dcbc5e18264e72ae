// SPDX-License-Identifier: Apache-2.0

// Package capture holds the desired and the observed state of one node's data path as plain values. The planner makes
// a Plan, an engine applies it and reports an Observation. Neither depends on Kubernetes.
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

// Plan is everything that an engine is to have on this node. Names of rings are unique, and so are names of clusters.
// A ring's own queues are a Cluster of the ring's name.
type Plan struct {
	Rings    []Ring
	Clusters []Cluster
}

// Ring is a named capture.
type Ring struct {
	Name string
	Taps []Tap
	// Filter is a kernel-side classic BPF program over the packet as the kernel holds it. Package filter makes it
	// from a program over the packet as it was on the wire. If it is empty, everything passes.
	Filter []bpf.RawInstruction
	// SnapLen is the greatest number of bytes captured of a packet, 1 to 65535.
	SnapLen uint32
	// Promiscuous makes the tapped devices receive packets that are not addressed to them.
	Promiscuous bool
	// Outputs names the clusters that the ring feeds, at most 8.
	Outputs []string
	// Mode is where packets are taken. XDP selects how the engine may provide a mode other than 0 without a
	// capture-aware driver.
	Mode TransparentMode
	XDP  XDPMode
	// Quick is the value of spec.quickMode. Engines accept it, but it has no effect.
	Quick bool
	// VLANs are the outermost VLAN ids that pass, 0 for untagged packets. If it is empty, all pass.
	VLANs    []uint16
	Sampling Sampling
	Rules    RuleSet
	// Defragment delivers the fragments of an IPv4 datagram as one packet.
	Defragment bool
	// Plugins are called in this order, at most 8, after the patterns.
	Plugins []Plugin
	// HardwareTime uses the device's time of a packet if the device recorded one.
	HardwareTime bool
	// Addressed permits interfaces of pairs to have IP addresses, which cannot be reached then.
	Addressed bool `json:",omitempty"`
}

// TransparentMode is where packets are taken. 0 is from the stack. 1 is before the stack, which also gets them. 2 is
// before the stack, which does not get them.
type TransparentMode uint32

// XDPMode selects which XDP the eBPF engine may use for transparent modes 1 and 2.
type XDPMode uint32

// Native XDP runs in the driver. GenericAllowed permits generic XDP if the driver has no native one. Generic XDP runs
// in the stack, after an skb was made.
const (
	XDPNative XDPMode = iota
	XDPGenericAllowed
)

// Sampling selects the packets of a ring's sample.
type Sampling struct {
	// OneIn is the n of one in n packets, or flows; 0 and 1 mean all.
	OneIn uint32
	// ByFlow takes all packets of a flow or none.
	ByFlow bool
}

// Tap is a capture point.
type Tap struct {
	Interface string
	Index     int
	Direction Direction
	// RxQueues are the captured receive queues of the device, in order; empty means all.
	RxQueues []uint16
	// Follows means that the tap stays when the device goes to another network namespace.
	Follows bool `json:",omitempty"`
	// Away, of an observed tap, means that the device is in another namespace.
	Away bool `json:",omitempty"`
	// Peer is the index of the other interface of the pair, for a ring in line: what the tap receives leaves there.
	// It is 0 for a ring that only captures. All taps of a ring have a peer, or none has.
	Peer int `json:",omitempty"`
}

// Cluster is a named set of queues.
type Cluster struct {
	Name    string
	Queues  int
	Balance Balance
	HashKey [16]byte
	// QueueBytes is the size of one queue's data (of each lane of it, in the module). It is a power of two of at
	// least 128 KiB.
	QueueBytes uint32
	// Lanes is the number of memory areas of each queue if it is to be fewer than the engine makes; 0 for the
	// engine's number.
	Lanes int `json:",omitempty"`
	// Watermark is the number of unread bytes at which a sleeping consumer is woken. WatermarkTimeout is the time
	// after which it is woken for fewer.
	Watermark        uint32
	WatermarkTimeout time.Duration
	// Inner hashes the innermost packet of tunnels.
	Inner     bool
	Fragments Fragments
	// LongHeader means that slots carry the parser's results and a hash, in engines where these are optional.
	LongHeader bool
	// WhenFull and WhenUnattended are the policies for packets to a queue that is full, or that has no consumer.
	WhenFull, WhenUnattended QueuePolicy
	// ShuntQuota is how many flows each consumer may have shunted, up to 1048576. It can change under consumers.
	ShuntQuota uint32 `json:",omitempty"`
	// Inline is set for the own queues of a ring in line, whose consumers decide which packets leave. It stays as
	// long as the cluster exists.
	Inline *Inline `json:",omitempty"`
}

// Fragments selects the queue for fragments. The values are those of enum ringcap_fragments.
type Fragments uint32

// FragmentsTogether sends all fragments of a datagram to one queue. FragmentsWithFlow sends them to the queue of the
// rest of their flow.
const (
	FragmentsTogether Fragments = iota
	FragmentsWithFlow
)

// QueuePolicy decides about packets for a queue that cannot take them. The values are those of enum ringcap_policy.
type QueuePolicy uint32

// PolicyDrop drops the packets and counts them there. PolicySpread gives them to other attended queues.
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
	// Reflected packets were sent out of another interface. ReflectFailed is the part of them that the interface
	// refused. Absorbed fragments went into another packet. Directed packets went to a queue that a rule names.
	Reflected, ReflectFailed, Absorbed, Directed uint64
}

// QueueStats is a queue's account. What its cluster's rings passed to it is Delivered, Shunted and all of Dropped.
type QueueStats struct {
	// DeliveredBytes counts the bytes that consumers can read: without TruncatedBytes.
	Delivered, DeliveredBytes uint64
	// Truncated counts the delivered packets that a snap length has shortened. TruncatedBytes counts the bytes that
	// they lack.
	Truncated, TruncatedBytes uint64
	// Shunted packets, of ShuntedBytes on the wire, were not delivered because the consumer has shunted their flows.
	// ShuntedFlows is how many it has shunted now. ShuntsLost counts those whose end no consumer was told of.
	Shunted, ShuntedBytes uint64
	ShuntedFlows          uint32
	ShuntsLost            uint64
	Dropped               map[DropReason]uint64
	UnreadBytes           uint64
	// FullestLaneBytes counts the unread bytes of the lane that has the most. It is 0 if the engine does not tell.
	FullestLaneBytes uint64
	// Lanes is the present number of memory areas; 0 if the engine makes all of them at once.
	Lanes    int
	Attached bool
	// Holder is the process that attached, by its number in this process's pid namespace. It is 0 if there is none,
	// or if it is not visible from here. It may have ended, and another process may hold what it had.
	Holder int
	// Attachment identifies this attachment: no other of the queue has the number. It is 0 if that is not known.
	Attachment uint64
	// Inline is nil for a queue that is not in line.
	Inline *InlineStats
}

// Holder identifies the holder that a queue is taken from, by process and attachment. If both are 0, it is any
// holder.
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
	// DropHung means that the consumer of a queue in line let a packet wait for too long.
	DropHung DropReason = "hung"
)

// DropReasons lists the reasons in the order of enum ringcap_drop.
var DropReasons = []DropReason{DropFull, DropUnattended, DropNoMemory, DropHung}

// Observation is what an engine has, with its counters.
type Observation struct {
	Rings    map[string]RingState
	Clusters map[string]ClusterState
	// Own is for the engine itself, in the following Apply: the settings with which its objects were asked for. The
	// zero Observation has none.
	Own any
}

// RingState is an observed ring.
type RingState struct {
	// Taps that are attached.
	Taps  []Tap
	Stats RingStats
	// Rules holds the counters of each wildcard rule, by its id.
	Rules map[uint32]RuleStats
	// Patterns holds the number of packets that each payload pattern decided on, and Plugins that of packets that
	// each plugin did not let pass. Both are in the plan's order. They are nil if the engine does not count them.
	Patterns, Plugins []uint64
	// Inline is nil for a ring that is not in line.
	Inline *InlineStats
}

// RuleStats are the counters of a rule.
type RuleStats struct{ Packets, Bytes uint64 }

// ClusterState is an observed cluster.
type ClusterState struct {
	Queues []QueueStats
	// Duplicated counts second copies (BalanceBothEnds). Spread counts packets that went to another queue by WhenFull
	// or WhenUnattended. What rings passed and directed to it, and Duplicated, is the sum over its queues.
	Duplicated, Spread uint64
	// Memory is the number of bytes that its queues take.
	Memory uint64
	// MemoryMost is the number of bytes that they may come to take, as more CPUs produce. It is 0 if that is Memory.
	MemoryMost uint64
	// Lanes is the number of memory areas of each queue; 0 if the engine has one.
	Lanes int
}

// Memory is the memory of a node, in bytes.
type Memory struct {
	// Total is the node's memory without huge pages that were set aside. Available is the part that is available to
	// programs now.
	Total, Available uint64
	// Reserve is what queues leave of both.
	Reserve uint64
	// AgentRoom is how much the memory limit of the agent's container leaves for queues, which are charged to it.
	AgentRoom uint64
}

// Room returns the number of bytes that new queues may take.
func (m Memory) Room() uint64 {
	return min(m.Available-min(m.Available, m.Reserve), m.AgentRoom)
}

// Grant is what a container needs to consume a queue.
type Grant struct {
	// Devices are device nodes: path on the host, path in the container.
	Devices []PathPair
	// Mounts are read-only folders: path on the host, path in the container.
	Mounts []PathPair
}

// PathPair is a path on the host and the path of the same file in the container.
type PathPair struct{ Host, Container string }

// Errors that engines return, to be tested with errors.Is.
var (
	// ErrInUse means that a consumer holds what the change would take away.
	ErrInUse = errors.New("in use by a consumer")
	// ErrUnsupported means that the engine cannot do what the plan asks. The error names it.
	ErrUnsupported = errors.New("not supported by this engine")
	// ErrNoMemory means that the node does not have enough memory.
	ErrNoMemory = errors.New("no memory")
	// ErrNotFound means that there is no such ring, cluster or queue, or that another process has it.
	ErrNotFound = errors.New("not found")
)

// Engine is a data path. Its methods may be called by several goroutines, but Apply only by one at a time.
type Engine interface {
	// Apply makes the node's data path as planned. It removes what the engine made before and is no longer planned.
	// seen is what Observe has just returned, so that the engine need not look again. With the zero value it looks.
	// Apply does not touch what is unchanged: its consumers stay attached and its counters continue. The returned map
	// has an entry for each ring or cluster (by name) that could not be made as planned. The others were applied. The
	// error is about the engine as a whole.
	Apply(ctx context.Context, plan Plan, seen Observation) (map[string]error, error)
	// Observe reads the state and the counters.
	Observe(context.Context) (Observation, error)
	// Grant returns what a container needs to consume a queue.
	Grant(QueueID) (Grant, error)
	// TakeBack revokes a queue for the next consumer. Afterwards it is empty and free. The descriptors and mappings
	// of its former consumer get nothing more, and it cannot attach again with its old grant. If a holder is named,
	// only that holder loses the queue; for another one, TakeBack returns ErrNotFound. from is the process that had
	// the queue, 0 if it is not known.
	TakeBack(ctx context.Context, queue QueueID, holder Holder) (from int, err error)
	// Close releases the process's resources. Rings, queues and attached consumers stay.
	Close() error
}
