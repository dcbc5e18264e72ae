// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// CaptureRingSpec defines what a ring captures, where and how.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.queues) || type(self.queues) != string || self.queues != 'PerRxQueue' || self.balance == 'RxQueue'",message="spec.queues PerRxQueue gives each RX queue a queue of its own: set spec.balance to RxQueue, or spec.queues to a number"
// +kubebuilder:validation:XValidation:rule="has(self.interfaces) != has(self.inline)",message="give spec.interfaces, or spec.inline for a ring in line: one of the two"
// +kubebuilder:validation:XValidation:rule="has(self.inline) == has(oldSelf.inline)",message="a ring is in line or not from the beginning, because its queues are: delete it, and create it with spec.inline"
// +kubebuilder:validation:XValidation:rule="!has(self.inline) || has(self.queues) && type(self.queues) == int",message="spec.inline: the consumers of the ring's own queues decide on the packets: set spec.queues to their number"
// +kubebuilder:validation:XValidation:rule="!has(self.inline) || self.direction == 'Receive'",message="spec.inline takes what both interfaces of a pair receive: leave spec.direction out"
// +kubebuilder:validation:XValidation:rule="!has(self.inline) || (type(self.transparentMode) == int ? self.transparentMode == 0 : self.transparentMode == 'Stack')",message="spec.inline works with any driver, in mode 0, and the stack gets none of the packets: leave spec.transparentMode out"
// +kubebuilder:validation:XValidation:rule="!has(self.inline) || !has(self.sampling)",message="spec.inline: consumers decide on each packet that the filter passes: leave spec.sampling out"
// +kubebuilder:validation:XValidation:rule="!has(self.inline) || !has(self.defragment) || !self.defragment",message="spec.inline sends fragments on as they are: leave spec.defragment out"
// +kubebuilder:validation:XValidation:rule="!has(self.inline) || !(self.balance in ['RoundRobin', 'BothEnds'])",message="spec.inline keeps the order of a flow, so a flow stays in its queue: choose another spec.balance than RoundRobin and BothEnds"
// +kubebuilder:validation:XValidation:rule="!has(self.inline) || self.whenFull == 'Drop' && self.whenUnattended == 'Drop'",message="spec.inline: set spec.inline.whenFull and spec.inline.whenUnattended, and leave spec.whenFull and spec.whenUnattended out"
// +kubebuilder:validation:XValidation:rule="!has(self.inline) || self.slots <= 4096",message="spec.inline: a queue has at most 4Mi of memory: set spec.slots to 4096 or less"
// +kubebuilder:validation:XValidation:rule="!has(self.inline) || !has(self.nic) || !has(self.nic.promiscuous) || self.nic.promiscuous",message="spec.inline takes all packets, so both interfaces of a pair are promiscuous: leave spec.nic.promiscuous out"
// +kubebuilder:validation:XValidation:rule="!has(self.interfaces) || self.interfaces.filter(i, has(i.network)).size() <= 1",message="networks have the ring's name: give one of spec.interfaces a network, and the others in a ring of their own"
// +kubebuilder:validation:XValidation:rule="!has(self.interfaces) || self.interfaces.filter(i, has(i.pool)).size() <= 1",message="a ring tells of one pool what is in it: give one of spec.interfaces a pool, and the others in a ring of their own"
type CaptureRingSpec struct {
	// nodeSelector selects nodes by their labels. Without it the ring is on all nodes.
	//
	// +optional
	NodeSelector *NodeSelector `json:"nodeSelector,omitempty"`

	// interfaces to capture, 1 to 16 selectors. On a node, each selector must match at least one interface, and all selectors
	// together at most 64. A node with more matches refuses the ring with reason Unsupported. Interfaces of pods are an
	// exception: the newest are left out and listed in the status. A ring has either interfaces or inline.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Interfaces []InterfaceSelector `json:"interfaces,omitempty"`

	// inline puts the ring between pairs of interfaces, in place of interfaces: consumers of its own queues decide which packets
	// get from one interface to the other.
	//
	// +optional
	Inline *Inline `json:"inline,omitempty"`

	// direction of the packets to capture: Receive (default), Transmit or Both.
	//
	// +optional
	// +kubebuilder:default=Receive
	Direction Direction `json:"direction,omitempty"`

	// engine that captures: Auto (default), KernelModule or EBPF. Auto uses the kernel module where it loads, else eBPF. A node
	// that cannot run the given engine refuses the ring with a condition.
	//
	// +optional
	// +kubebuilder:default=Auto
	Engine Engine `json:"engine,omitempty"`

	// transparentMode sets where packets are captured, as a number or a word; by default 0. 0 or Stack captures in the receive
	// and transmit path of the network stack, with any driver. 1 or Driver captures in a capture-aware driver, before the stack,
	// which gets the packets too. 2 or RingOnly captures there as well, but the stack never gets the packets.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 2 : self in ['Stack', 'Driver', 'RingOnly']",message="must be 0 or Stack (any driver), 1 or Driver (a capture-aware driver; the stack gets packets too), or 2 or RingOnly (the stack does not get them)"
	TransparentMode *TransparentMode `json:"transparentMode,omitempty"`

	// transparentFallback sets what happens with transparentMode 1 and 2 on an interface whose driver is not capture-aware.
	// Refuse (default) refuses the ring on that node. Stack captures in mode 0 there.
	//
	// +optional
	// +kubebuilder:default=Refuse
	TransparentFallback TransparentFallback `json:"transparentFallback,omitempty"`

	// xdp sets which XDP the engine EBPF may use for transparentMode 1 and 2. Native (default) is the driver's XDP.
	// GenericAllowed also permits the kernel's generic XDP, which runs after the skb is built, where the driver has none.
	//
	// +optional
	// +kubebuilder:default=Native
	XDP XDP `json:"xdp,omitempty"`

	// nodeTraffic sets whether the ring may use settings that can cut a node off from its network, on an interface that carries
	// the node's own traffic: Refuse (default) or Allow. These settings are transparentMode 2 and inline, whose packets never reach
	// the stack, and those that stop the device for a moment: nic.vlanOffload Disable, nic.rxRingSize, nic.rxQueues and
	// nic.driver.policy Replace. An interface carries the node's traffic if it has an address other than link-local, a default
	// route or the route to the API server, or if it is below or above such an interface (bridge, bond, VLAN, Open vSwitch). In
	// both cases, an agent that loses the API server right after it applied such a ring undoes it.
	//
	// +optional
	// +kubebuilder:default=Refuse
	NodeTraffic NodeTrafficPolicy `json:"nodeTraffic,omitempty"`

	// quickMode has no effect, and is accepted so that specs that set it stay valid; by default false. Every ring takes the
	// shortest path that its other settings leave: the path is shortest with one interface, no filter of any kind, no Clusters,
	// and one queue or balance RxQueue.
	//
	// +optional
	QuickMode bool `json:"quickMode,omitempty"`

	// queues of the ring itself, besides those of the Clusters over it: 1 to 256, or PerRxQueue. PerRxQueue requires balance
	// RxQueue and creates one queue for each RX queue of the interface with the most RX queues; for interfaces of pods, the most
	// so far. Without it the ring only feeds Clusters. Pods request the queues as ringcap.io/<ring name>.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 256 : self == 'PerRxQueue'",message="must be 1 to 256, the number of queues on each node, one for each consumer pod there, or PerRxQueue; leave it out for a ring that only feeds Clusters"
	Queues *intstr.IntOrString `json:"queues,omitempty"`

	// snapLength is the maximum number of bytes to capture of a packet, 64 to 65535. Without it packets are captured whole, up
	// to 65535 bytes. Packets that are cut are counted as truncated.
	//
	// +optional
	// +kubebuilder:validation:Minimum=64
	// +kubebuilder:validation:Maximum=65535
	SnapLength int32 `json:"snapLength,omitempty"`

	// filter selects the packets to capture; without it all packets pass.
	//
	// +optional
	Filter *Filter `json:"filter,omitempty"`

	// sampling captures one in N of the packets that passed the filter; without it all of them.
	//
	// +optional
	Sampling *Sampling `json:"sampling,omitempty"`

	// defragment reassembles the IPv4 fragments of a datagram into one packet before rules are evaluated; by default false.
	//
	// +optional
	Defragment bool `json:"defragment,omitempty"`

	// timestamps selects the clock that timestamps packets: Software (default) or Hardware.
	//
	// +optional
	// +kubebuilder:default=Software
	Timestamps Timestamps `json:"timestamps,omitempty"`

	// nic configures the interfaces while they are captured.
	//
	// +optional
	// +kubebuilder:default={}
	NIC NIC `json:"nic,omitempty"`

	// rollout sets how nodes get a new ring and its edits.
	//
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`

	QueueSettings `json:",inline"`
}

// DefaultMaxUnavailable is the spec.rollout.maxUnavailable of a ring that does not set one.
const DefaultMaxUnavailable = "25%"

// Rollout sets how nodes get a new ring and its edits.
type Rollout struct {
	// maxUnavailable is how many of the ring's nodes, as a number or a percentage of them (rounded up), may be without a working
	// version at the same time because they were updated; by default 25%. Nodes are updated in the order of their names, first
	// those on which the ring does not work. The next nodes are updated when the agents of the previous ones report that the
	// ring works. When this many nodes refuse the ring, the other nodes keep the version that they have, and the condition
	// RolledOut gives the reason. A node on which no version has ever worked counts only until its agent has answered. A node
	// whose agent did not report when the node was updated does not count. Deletion, and nodes that are no longer selected, do
	// not wait.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 1000000 : self.matches('^([1-9][0-9]?|100)%$')",message="must be 1 or more, a number of nodes, or 1% to 100% of them, such as 25%: of 0 no node would ever get an edit"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// CaptureStatus is the status of CaptureRings and Clusters.
type CaptureStatus struct {
	// conditions are Accepted, Programmed, Ready, Degraded and ConsumersEffective. A CaptureRing also has RolledOut,
	// RulesEffective, PacketsWhole and NetworksWritten.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// nodesDesired is the number of nodes that should have it.
	//
	// +optional
	// +kubebuilder:default=0
	NodesDesired int32 `json:"nodesDesired"`

	// nodesReady is the number of these nodes on which it is ready.
	//
	// +optional
	// +kubebuilder:default=0
	NodesReady int32 `json:"nodesReady"`

	// nodesNotReporting is the number of these nodes whose agent is missing or unreachable. Ready describes the other nodes,
	// unless there are none; Degraded names these.
	//
	// +optional
	// +kubebuilder:default=0
	NodesNotReporting int32 `json:"nodesNotReporting"`

	// queues is the number of queues on all nodes. For a ring, queues, queuesAttached, delivered, dropped and truncated include
	// the queues of the Clusters over it.
	//
	// +optional
	// +kubebuilder:default=0
	Queues int32 `json:"queues"`

	// queuesAttached is the number of these queues that have a consumer.
	//
	// +optional
	// +kubebuilder:default=0
	QueuesAttached int32 `json:"queuesAttached"`

	// seen packets, summed over all nodes. For a ring: the packets that its interfaces saw. For a Cluster: the packets that its
	// rings passed to it, which is delivered + shunted + dropped. All counters here lag by up to two minutes; `ringcap status` asks the
	// agents for the current ones.
	//
	// +optional
	// +kubebuilder:default=0
	Seen int64 `json:"seen"`

	// delivered packets, summed over all queues. Each Cluster over a ring gets its own copy.
	//
	// +optional
	// +kubebuilder:default=0
	Delivered int64 `json:"delivered"`

	// shunted packets, summed over all queues: not delivered, because consumers have shunted their flows.
	//
	// +optional
	// +kubebuilder:default=0
	Shunted int64 `json:"shunted"`

	// dropped packets, summed over all queues and reasons. The NodeCaptures list the reasons.
	//
	// +optional
	// +kubebuilder:default=0
	Dropped int64 `json:"dropped"`

	// truncated packets, summed over all queues: the delivered packets that were cut because they are longer than the snap
	// length.
	//
	// +optional
	// +kubebuilder:default=0
	Truncated int64 `json:"truncated"`

	// truncatedBytes were cut off these packets.
	//
	// +optional
	// +kubebuilder:default=0
	TruncatedBytes int64 `json:"truncatedBytes"`

	// engines in use, for display: "EBPF", "KernelModule" or "EBPF,KernelModule".
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Engines string `json:"engines,omitempty"`
}

// CaptureRing captures the packets of interfaces into queues that pods can request.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cring,categories=ringcap
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 55 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be at most 55 characters of a-z, 0-9 and '-': it becomes the resource ringcap.io/<name>"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodesDesired`
// +kubebuilder:printcolumn:name="Nodes-Ready",type=integer,JSONPath=`.status.nodesReady`
// +kubebuilder:printcolumn:name="Attached",type=integer,JSONPath=`.status.queuesAttached`
// +kubebuilder:printcolumn:name="Queues",type=integer,JSONPath=`.status.queues`
// +kubebuilder:printcolumn:name="Engine",type=string,priority=1,JSONPath=`.status.engines`
// +kubebuilder:printcolumn:name="Seen",type=integer,priority=1,JSONPath=`.status.seen`
// +kubebuilder:printcolumn:name="Dropped",type=integer,JSONPath=`.status.dropped`
// +kubebuilder:printcolumn:name="Consumers",type=string,JSONPath=`.status.conditions[?(@.type=="ConsumersEffective")].reason`
// +kubebuilder:printcolumn:name="Rules",type=string,JSONPath=`.status.conditions[?(@.type=="RulesEffective")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CaptureRing struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines what is captured, and for which consumers.
	//
	// +required
	Spec CaptureRingSpec `json:"spec"`
	// status is the sum of what the nodes report; the operator writes it.
	//
	// +optional
	Status CaptureStatus `json:"status,omitempty"`
}

// CaptureRingList is a list of CaptureRings.
//
// +kubebuilder:object:root=true
type CaptureRingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CaptureRing `json:"items"`
}
