// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// InterfaceSelector selects interfaces of a node.
type InterfaceSelector struct {
	// name of the interface, or a glob (* and ?) over names.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^/:[:space:]]+$')",message="must be an interface's name as ip-link(8) shows it, or a glob of * and ? over names, without '/', ':' and spaces"
	Name string `json:"name"`
}

// Filter says which packets pass.
type Filter struct {
	// bpf is a filter expression in the language of pcap-filter(7), over the packet as it was on the wire.
	// PF_RING: pfring_set_bpf_filter.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	BPF string `json:"bpf,omitempty"`
}

// NIC says how captured interfaces are set; everything that was changed is restored when the ring goes.
type NIC struct {
	// promiscuous makes the interfaces receive what is not addressed to them. PF_RING: PF_RING_PROMISC.
	//
	// +optional
	// +kubebuilder:default=true
	Promiscuous *bool `json:"promiscuous,omitempty"`

	// offloads says whether receive offloads that merge packets are turned off.
	//
	// +optional
	// +kubebuilder:default=Disable
	Offloads Offloads `json:"offloads,omitempty"`
}

// CaptureRingSpec is what is captured, where and how.
type CaptureRingSpec struct {
	// nodeSelector selects nodes by their labels; empty selects all.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// interfaces to tap. On a node, each must match at least one interface.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Interfaces []InterfaceSelector `json:"interfaces"`

	// direction of the packets to capture. PF_RING: pfring_set_direction.
	//
	// +optional
	// +kubebuilder:default=Receive
	Direction Direction `json:"direction,omitempty"`

	// engine to capture with. KernelModule and EBPF are refused, with a condition, on nodes that cannot do them.
	//
	// +optional
	// +kubebuilder:default=Auto
	Engine Engine `json:"engine,omitempty"`

	// transparentMode says where packets are taken: 0 from the stack's receive and transmit path, with any driver.
	// PF_RING: transparent_mode.
	//
	// +optional
	// +kubebuilder:validation:Enum=0
	// +kubebuilder:default=0
	TransparentMode *int32 `json:"transparentMode,omitempty"`

	// queues of the ring's own, besides those of Clusters over it; without it the ring feeds Clusters only.
	// Pods request them as ringcap.io/<ring name>.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 256",message="must be 1 to 256: the number of queues on each node, one for each consumer pod there; leave it out for a ring that only feeds Clusters"
	Queues *int32 `json:"queues,omitempty"`

	// snapLength is the greatest number of bytes captured of a packet. PF_RING: caplen of pfring_open.
	//
	// +optional
	// +kubebuilder:default=1536
	// +kubebuilder:validation:Minimum=64
	// +kubebuilder:validation:Maximum=65535
	SnapLength int32 `json:"snapLength,omitempty"`

	// filter says which packets pass; without it all do.
	//
	// +optional
	Filter *Filter `json:"filter,omitempty"`

	// nic says how the interfaces are set.
	//
	// +optional
	// +kubebuilder:default={}
	NIC NIC `json:"nic,omitempty"`

	QueueSettings `json:",inline"`
}

// CaptureStatus is what rings and clusters report.
type CaptureStatus struct {
	// conditions: Accepted, Programmed, Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

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

	// queues is the number of queues over all nodes. Of a ring: its own and those of the Clusters over it, as for
	// queuesAttached, delivered and dropped.
	//
	// +optional
	// +kubebuilder:default=0
	Queues int32 `json:"queues"`

	// queuesAttached is the number of those with a consumer.
	//
	// +optional
	// +kubebuilder:default=0
	QueuesAttached int32 `json:"queuesAttached"`

	// seen packets, summed over all nodes; it lags, as all counters here do, by up to 15 seconds. Of a ring: what its
	// interfaces saw. Of a Cluster: what its rings passed to it, which is delivered + dropped.
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
// +kubebuilder:resource:scope=Cluster,shortName=cring
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 55 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be at most 55 characters of a-z, 0-9 and '-': it becomes the resource ringcap.io/<name>"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodesDesired`
// +kubebuilder:printcolumn:name="Nodes-Ready",type=integer,JSONPath=`.status.nodesReady`
// +kubebuilder:printcolumn:name="Attached",type=integer,JSONPath=`.status.queuesAttached`
// +kubebuilder:printcolumn:name="Queues",type=integer,JSONPath=`.status.queues`
// +kubebuilder:printcolumn:name="Engine",type=string,JSONPath=`.status.engines`
// +kubebuilder:printcolumn:name="Seen",type=integer,JSONPath=`.status.seen`
// +kubebuilder:printcolumn:name="Dropped",type=integer,JSONPath=`.status.dropped`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CaptureRing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec CaptureRingSpec `json:"spec"`
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
