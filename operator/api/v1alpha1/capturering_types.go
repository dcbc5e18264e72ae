// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// CaptureRingSpec is what is captured, where and how.
//
// +kubebuilder:validation:XValidation:rule="!has(self.quickMode) || !self.quickMode || !has(self.filter)",message="quick mode takes packets past all filters: leave spec.filter out, or set spec.quickMode to false"
// +kubebuilder:validation:XValidation:rule="!has(self.quickMode) || !self.quickMode || !has(self.sampling)",message="quick mode does not sample: leave spec.sampling out, or set spec.quickMode to false"
// +kubebuilder:validation:XValidation:rule="!has(self.quickMode) || !self.quickMode || !has(self.defragment) || !self.defragment",message="quick mode does not reassemble: leave spec.defragment out, or set spec.quickMode to false"
// +kubebuilder:validation:XValidation:rule="!has(self.quickMode) || !self.quickMode || self.interfaces.size() == 1",message="quick mode is for one interface: name one in spec.interfaces, or set spec.quickMode to false"
// +kubebuilder:validation:XValidation:rule="!has(self.quickMode) || !self.quickMode || has(self.queues)",message="quick mode delivers to the ring's own queues only: set spec.queues, or set spec.quickMode to false"
// +kubebuilder:validation:XValidation:rule="!has(self.quickMode) || !self.quickMode || !has(self.queues) || (type(self.queues) == int && self.queues == 1) || self.balance == 'RxQueue'",message="quick mode chooses no queue by a packet's contents: set spec.queues to 1, or spec.balance to RxQueue"
// +kubebuilder:validation:XValidation:rule="!has(self.quickMode) || !self.quickMode || self.timestamps != 'Hardware'",message="quick mode has the kernel's time only: set spec.timestamps to Software, or spec.quickMode to false"
// +kubebuilder:validation:XValidation:rule="!has(self.queues) || type(self.queues) != string || self.queues != 'PerRxQueue' || self.balance == 'RxQueue'",message="spec.queues PerRxQueue gives each RX queue a queue of its own: set spec.balance to RxQueue, or spec.queues to a number"
// +kubebuilder:validation:XValidation:rule="self.interfaces.filter(i, has(i.network)).size() <= 1",message="networks have the ring's name: give one of spec.interfaces a network, and the others in a ring of their own"
// +kubebuilder:validation:XValidation:rule="self.interfaces.filter(i, has(i.pool)).size() <= 1",message="a ring tells of one pool what is in it: give one of spec.interfaces a pool, and the others in a ring of their own"
type CaptureRingSpec struct {
	// nodeSelector selects nodes by their labels; without it the ring is for all nodes. PF_RING: none, it knows one machine.
	//
	// +optional
	NodeSelector *NodeSelector `json:"nodeSelector,omitempty"`

	// interfaces to tap, 1 to 16 selectors. On a node, each must match at least one interface, and all together at most 64: of
	// more the node refuses the ring with reason Unsupported, but for pods' interfaces, of which the newest are left out and
	// named in status. PF_RING: device_name of pfring_open, pfring_bind.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Interfaces []InterfaceSelector `json:"interfaces"`

	// direction of the packets to capture; by default Receive. PF_RING: pfring_set_direction.
	//
	// +optional
	// +kubebuilder:default=Receive
	Direction Direction `json:"direction,omitempty"`

	// engine to capture with; by default Auto. PF_RING: none, there is only the module. KernelModule and EBPF are refused, with a condition, on nodes that cannot do them.
	//
	// +optional
	// +kubebuilder:default=Auto
	Engine Engine `json:"engine,omitempty"`

	// transparentMode says where packets are taken, as a number or a word; by default 0. 0 or Stack: from the stack's receive
	// and transmit path, with any driver. 1 or Driver: a capture-aware driver hands them over before the stack sees them, and the
	// stack gets them too. 2 or RingOnly: the same, and the stack never sees them. PF_RING: transparent_mode.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 2 : self in ['Stack', 'Driver', 'RingOnly']",message="must be 0 or Stack (any driver), 1 or Driver (a capture-aware driver; the stack gets packets too), or 2 or RingOnly (the stack does not get them)"
	TransparentMode *TransparentMode `json:"transparentMode,omitempty"`

	// transparentFallback says what becomes of transparentMode 1 and 2 where an interface's driver is not capture-aware:
	// Refuse (default) or Stack. PF_RING: none.
	//
	// +optional
	// +kubebuilder:default=Refuse
	TransparentFallback TransparentFallback `json:"transparentFallback,omitempty"`

	// xdp says which XDP engine EBPF may use for transparentMode 1 and 2: Native (default), of the driver, or
	// GenericAllowed, which takes the kernel's own where the driver has none and comes after the skb. PF_RING: none.
	//
	// +optional
	// +kubebuilder:default=Native
	XDP XDP `json:"xdp,omitempty"`

	// nodeTraffic says whether the ring may have what can cut a node off from its network on an interface that carries the node's
	// own traffic: Refuse (default) or Allow. That is transparentMode 2, whose packets the stack never gets, and what stops the
	// device for a moment: nic.vlanOffload Disable, nic.rxRingSize, nic.rxQueues and nic.driver.policy Replace. An interface
	// carries the node's traffic if it has an address other than link-local, a default route, or the way to the API server, or
	// is below or above one that has (bridge, bond, VLAN, Open vSwitch). Allowed or not, an agent that loses the API server right
	// after it applied such a ring undoes it. PF_RING: none.
	//
	// +optional
	// +kubebuilder:default=Refuse
	NodeTraffic NodeTrafficPolicy `json:"nodeTraffic,omitempty"`

	// quickMode takes packets the shortest way: one interface, no filter of any kind, no Clusters, and one queue or balance
	// RxQueue; by default false. Of two quick rings over the same RX queues of an interface the younger is refused. It can
	// not be changed while the ring has consumers. PF_RING: quick_mode.
	//
	// +optional
	QuickMode bool `json:"quickMode,omitempty"`

	// queues of the ring's own, besides those of Clusters over it: 1 to 256, or PerRxQueue for one for each RX queue of the
	// interface that has the most (of pods, has had the most; it goes with balance RxQueue); without it the ring feeds
	// Clusters only. Pods request them as ringcap.io/<ring name>. PF_RING: the number of applications that join a cluster_id; pfring_open_multichannel.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 256 : self == 'PerRxQueue'",message="must be 1 to 256, the number of queues on each node, one for each consumer pod there, or PerRxQueue; leave it out for a ring that only feeds Clusters"
	Queues *intstr.IntOrString `json:"queues,omitempty"`

	// snapLength is the greatest number of bytes captured of a packet, 64 to 65535. Without it packets are captured whole, up to
	// 65535 bytes. What is cut off is counted as truncated. PF_RING: caplen of pfring_open.
	//
	// +optional
	// +kubebuilder:validation:Minimum=64
	// +kubebuilder:validation:Maximum=65535
	SnapLength int32 `json:"snapLength,omitempty"`

	// filter says which packets pass; without it all do. PF_RING: pfring_set_bpf_filter and the filtering rules.
	//
	// +optional
	Filter *Filter `json:"filter,omitempty"`

	// sampling passes one in so many of the packets that the filter passed; without it all. PF_RING:
	// pfring_set_sampling_rate.
	//
	// +optional
	Sampling *Sampling `json:"sampling,omitempty"`

	// defragment makes one packet of the IPv4 fragments of a datagram before rules are asked; by default false.
	// PF_RING: enable_ip_defrag.
	//
	// +optional
	Defragment bool `json:"defragment,omitempty"`

	// timestamps says whose clock times packets; by default Software. PF_RING: PF_RING_HW_TIMESTAMP.
	//
	// +optional
	// +kubebuilder:default=Software
	Timestamps Timestamps `json:"timestamps,omitempty"`

	// nic says how the interfaces are set while they are captured. PF_RING: load_driver.sh and ethtool by hand.
	//
	// +optional
	// +kubebuilder:default={}
	NIC NIC `json:"nic,omitempty"`

	// rollout says how nodes get a new ring and its edits. PF_RING: none.
	//
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`

	QueueSettings `json:",inline"`
}

// DefaultMaxUnavailable is the spec.rollout.maxUnavailable of a ring that says none.
const DefaultMaxUnavailable = "25%"

// Rollout says how nodes get a new ring and its edits.
type Rollout struct {
	// maxUnavailable is how many of the ring's nodes, as a number or a percentage of them (rounded up), may be without a working
	// version at a time because they were given a new one; by default 25%. Nodes get it in the order of their names, those whose
	// ring does not work first, and the next when the agents of those before report that theirs works: when so many nodes refuse
	// it, the others keep what they have, and the condition RolledOut says why. A node where no version has ever worked counts
	// only until its agent has answered, and one whose agent did not report when it was told does not count. Deletion, and nodes that are not selected any more, do not wait. PF_RING: none.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 1000000 : self.matches('^([1-9][0-9]?|100)%$')",message="must be 1 or more, a number of nodes, or 1% to 100% of them, such as 25%: of 0 no node would ever get an edit"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// CaptureStatus is what rings and clusters report.
type CaptureStatus struct {
	// conditions are Accepted, Programmed, Ready, Degraded and ConsumersEffective; of a CaptureRing RolledOut, RulesEffective,
	// PacketsWhole and NetworksWritten, too.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that the status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// nodesDesired is the number of nodes that shall have it.
	//
	// +optional
	// +kubebuilder:default=0
	NodesDesired int32 `json:"nodesDesired"`

	// nodesReady is the number of those that do.
	//
	// +optional
	// +kubebuilder:default=0
	NodesReady int32 `json:"nodesReady"`

	// nodesNotReporting is the number of those nodes whose agent is not there, or not reachable. Ready is about the
	// others, unless there are none; Degraded names these.
	//
	// +optional
	// +kubebuilder:default=0
	NodesNotReporting int32 `json:"nodesNotReporting"`

	// queues is the number of queues over all nodes. Of a ring: its own and those of the Clusters over it, as for
	// queuesAttached, delivered, dropped and truncated.
	//
	// +optional
	// +kubebuilder:default=0
	Queues int32 `json:"queues"`

	// queuesAttached is the number of those with a consumer.
	//
	// +optional
	// +kubebuilder:default=0
	QueuesAttached int32 `json:"queuesAttached"`

	// seen packets, summed over all nodes; it lags, as all counters here do, by up to two minutes: `ringcap status` asks the
	// agents for the present ones. Of a ring: what its interfaces saw. Of a Cluster: what its rings passed to it, which is delivered + dropped.
	//
	// +optional
	// +kubebuilder:default=0
	Seen int64 `json:"seen"`

	// delivered packets, summed over all queues: each Cluster over a ring gets its own copy.
	//
	// +optional
	// +kubebuilder:default=0
	Delivered int64 `json:"delivered"`

	// dropped packets, summed over all queues and reasons; NodeCaptures tell the reasons.
	//
	// +optional
	// +kubebuilder:default=0
	Dropped int64 `json:"dropped"`

	// truncated packets, summed over all queues: of those delivered, the ones of which only the beginning was captured, because
	// they are longer than the snap length.
	//
	// +optional
	// +kubebuilder:default=0
	Truncated int64 `json:"truncated"`

	// truncatedBytes that these packets lack.
	//
	// +optional
	// +kubebuilder:default=0
	TruncatedBytes int64 `json:"truncatedBytes"`

	// engines in use, for people: "EBPF", "KernelModule" or "EBPF,KernelModule".
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Engines string `json:"engines,omitempty"`
}

// CaptureRing is a named capture.
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
	// metadata is as of every object.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is captured, and for whom.
	//
	// +required
	Spec CaptureRingSpec `json:"spec"`
	// status is what the nodes report, added up by the operator.
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
