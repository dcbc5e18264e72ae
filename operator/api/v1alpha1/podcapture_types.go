// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a CaptureRing says that the operator made for a PodCapture.
const (
	// LabelPodCaptureNamespace and LabelPodCaptureUID are the PodCapture's.
	LabelPodCaptureNamespace = "ringcap.io/podcapture-namespace"
	LabelPodCaptureUID       = "ringcap.io/podcapture-uid"
	// AnnotationPodCapture is the PodCapture's name, which is longer than a label may be.
	AnnotationPodCapture = "ringcap.io/podcapture"
)

// PodCaptureSpec is which pods of the PodCapture's namespace are captured, and how.
//
// +kubebuilder:validation:XValidation:rule="!has(self.filter) || !has(self.filter.plugins)",message="spec.filter.plugins are programs of the nodes' kernels: only a CaptureRing has them"
// +kubebuilder:validation:XValidation:rule="!has(self.filter) || !has(self.filter.rules) || self.filter.rules.all(r, r.action in ['Pass', 'Drop'])",message="spec.filter.rules have the actions Pass and Drop here: the others reach queues and interfaces of other people, and only a CaptureRing has them"
type PodCaptureSpec struct {
	// podSelector selects the pods of this namespace that are captured, by their labels; {} is all of them. Besides its own labels a
	// pod has its name as kubernetes.io/metadata.name here. Pods with hostNetwork have no interface of their own and are not captured.
	// All of a pod's traffic is captured, what it sends and what it gets. PF_RING: none.
	//
	// +required
	PodSelector metav1.LabelSelector `json:"podSelector"`

	// queues on each node, 1 to 16, one for each consumer pod there; by default 1. A flow's packets are all in one queue.
	// PF_RING: the number of applications that join a cluster_id.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	Queues int32 `json:"queues,omitempty"`

	// slots is the least number of packets of snapLength bytes, 1536 where that is not given, that a queue holds, 16 to 4194304; by
	// default 4096. The cluster's administrator says how much memory they may take. PF_RING: min_num_slots.
	//
	// +optional
	// +kubebuilder:default=4096
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=4194304
	Slots int32 `json:"slots,omitempty"`

	// snapLength is the greatest number of bytes captured of a packet, 64 to 65535. Without it packets are captured whole, up to
	// 65535 bytes. What is cut off is counted as truncated. PF_RING: caplen of pfring_open.
	//
	// +optional
	// +kubebuilder:validation:Minimum=64
	// +kubebuilder:validation:Maximum=65535
	SnapLength int32 `json:"snapLength,omitempty"`

	// filter says which packets pass, as a CaptureRing's, without plugins, and with rules of the actions Pass and Drop only; without it
	// all do. PF_RING: pfring_set_bpf_filter and the filtering rules.
	//
	// +optional
	Filter *Filter `json:"filter,omitempty"`

	// sampling passes one in so many of the packets that the filter passed; without it all. PF_RING: pfring_set_sampling_rate.
	//
	// +optional
	Sampling *Sampling `json:"sampling,omitempty"`

	// injectLibpcap gives the consumers' containers a libpcap that knows ringcap, in place of their image's; by default false.
	// PF_RING: a libpcap that programs are linked against.
	//
	// +optional
	InjectLibpcap bool `json:"injectLibpcap,omitempty"`
}

// PodCaptureStatus is what the operator tells of a PodCapture.
type PodCaptureStatus struct {
	// conditions are Accepted, Programmed, Ready, RolledOut, RulesEffective and PacketsWhole, with the reasons of a CaptureRing's.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration of the spec that the rest is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// resource is what a container requests, one for each queue that it reads: ringcap.io/NAME. Its name behind the / is the CaptureRing's
	// that the operator made, too, and that of the queue in the container: rc-NAME for programs on libpcap.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource,omitempty"`

	// pods that are captured now.
	//
	// +optional
	// +kubebuilder:default=0
	Pods int32 `json:"pods"`

	// nodesDesired is the number of nodes that have to be ready for such pods: all, for they may run on any.
	//
	// +optional
	// +kubebuilder:default=0
	NodesDesired int32 `json:"nodesDesired"`

	// nodesReady is the number of those that are.
	//
	// +optional
	// +kubebuilder:default=0
	NodesReady int32 `json:"nodesReady"`

	// queues is the number of queues over all nodes.
	//
	// +optional
	// +kubebuilder:default=0
	Queues int32 `json:"queues"`

	// queuesAttached is the number of those with a consumer.
	//
	// +optional
	// +kubebuilder:default=0
	QueuesAttached int32 `json:"queuesAttached"`

	// seen packets of the pods, summed over all nodes.
	//
	// +optional
	// +kubebuilder:default=0
	Seen int64 `json:"seen"`

	// delivered packets, summed over all queues.
	//
	// +optional
	// +kubebuilder:default=0
	Delivered int64 `json:"delivered"`

	// dropped packets, summed over all queues and reasons.
	//
	// +optional
	// +kubebuilder:default=0
	Dropped int64 `json:"dropped"`

	// truncated packets, summed over all queues: of those delivered, the ones of which only the beginning was captured.
	//
	// +optional
	// +kubebuilder:default=0
	Truncated int64 `json:"truncated"`
}

// PodCapture captures the packets of pods of its own namespace, for consumers in that namespace, without any right in the cluster. The
// operator makes a CaptureRing of it, and removes that with it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=podcap,categories=ringcap
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Resource",type=string,JSONPath=`.status.resource`
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.pods`
// +kubebuilder:printcolumn:name="Attached",type=integer,JSONPath=`.status.queuesAttached`
// +kubebuilder:printcolumn:name="Seen",type=integer,JSONPath=`.status.seen`
// +kubebuilder:printcolumn:name="Dropped",type=integer,JSONPath=`.status.dropped`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodesDesired`,priority=1
// +kubebuilder:printcolumn:name="Nodes-Ready",type=integer,JSONPath=`.status.nodesReady`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PodCapture struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is as of every object.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is captured.
	//
	// +required
	Spec PodCaptureSpec `json:"spec"`
	// status is what the operator tells of it.
	//
	// +optional
	Status PodCaptureStatus `json:"status,omitempty"`
}

// PodCaptureList is a list of PodCaptures.
//
// +kubebuilder:object:root=true
type PodCaptureList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PodCapture `json:"items"`
}
