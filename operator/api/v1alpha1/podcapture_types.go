// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels and annotation of a CaptureRing that the operator made for a PodCapture.
const (
	// LabelPodCaptureNamespace and LabelPodCaptureUID identify the PodCapture.
	LabelPodCaptureNamespace = "ringcap.io/podcapture-namespace"
	LabelPodCaptureUID       = "ringcap.io/podcapture-uid"
	// AnnotationPodCapture is the PodCapture's name, which can be longer than a label's value.
	AnnotationPodCapture = "ringcap.io/podcapture"
)

// PodCaptureSpec defines which pods of the PodCapture's namespace are captured, and how.
//
// +kubebuilder:validation:XValidation:rule="!has(self.filter) || !has(self.filter.plugins)",message="spec.filter.plugins are programs of the nodes' kernels: only a CaptureRing has them"
// +kubebuilder:validation:XValidation:rule="!has(self.filter) || !has(self.filter.rules) || self.filter.rules.all(r, r.action in ['Pass', 'Drop'])",message="spec.filter.rules have the actions Pass and Drop here: the others reach queues and interfaces of other people, and only a CaptureRing has them"
type PodCaptureSpec struct {
	// podSelector selects the pods of this namespace to capture, by their labels; {} selects all. Besides its own labels, a pod
	// has its name as the label kubernetes.io/metadata.name here. Pods with hostNetwork have no interface of their own and are
	// not captured. All traffic of a pod is captured, what it sends and what it receives.
	//
	// +required
	PodSelector metav1.LabelSelector `json:"podSelector"`

	// queues on each node, 1 to 16, one for each consumer pod there; by default 1. All packets of a flow are in one queue.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	Queues int32 `json:"queues,omitempty"`

	// slots is the minimum number of packets of snapLength bytes (1536 if it is not set) that a queue holds, 16 to 4194304; by
	// default 4096. The cluster's administrator limits the memory of the queues.
	//
	// +optional
	// +kubebuilder:default=4096
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=4194304
	Slots int32 `json:"slots,omitempty"`

	// snapLength is the maximum number of bytes to capture of a packet, 64 to 65535. Without it packets are captured whole, up
	// to 65535 bytes. Packets that are cut are counted as truncated.
	//
	// +optional
	// +kubebuilder:validation:Minimum=64
	// +kubebuilder:validation:Maximum=65535
	SnapLength int32 `json:"snapLength,omitempty"`

	// filter selects the packets to capture, as in a CaptureRing, but without plugins and with rules of the actions Pass and
	// Drop only. Without it all packets pass.
	//
	// +optional
	Filter *Filter `json:"filter,omitempty"`

	// sampling captures one in N of the packets that passed the filter; without it all of them.
	//
	// +optional
	Sampling *Sampling `json:"sampling,omitempty"`

	// injectLibpcap gives the consumers' containers a libpcap that supports ringcap, in place of their image's; by default
	// false.
	//
	// +optional
	InjectLibpcap bool `json:"injectLibpcap,omitempty"`
}

// PodCaptureStatus is the status of a PodCapture, which the operator writes.
type PodCaptureStatus struct {
	// conditions are Accepted, Programmed, Ready, RolledOut, RulesEffective and PacketsWhole, with the reasons of the
	// CaptureRing's conditions.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// resource is the extended resource that a container requests, one for each queue that it reads: ringcap.io/NAME. NAME is
	// also the name of the CaptureRing that the operator made. Programs on libpcap open the queue in the container as rc-NAME.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource,omitempty"`

	// pods is the number of pods that are captured now.
	//
	// +optional
	// +kubebuilder:default=0
	Pods int32 `json:"pods"`

	// nodesDesired is the number of nodes that must be ready for such pods: all nodes, because the pods may run on any.
	//
	// +optional
	// +kubebuilder:default=0
	NodesDesired int32 `json:"nodesDesired"`

	// nodesReady is the number of these nodes that are ready.
	//
	// +optional
	// +kubebuilder:default=0
	NodesReady int32 `json:"nodesReady"`

	// queues is the number of queues on all nodes.
	//
	// +optional
	// +kubebuilder:default=0
	Queues int32 `json:"queues"`

	// queuesAttached is the number of these queues that have a consumer.
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

	// truncated packets, summed over all queues: the delivered packets of which only the beginning was captured.
	//
	// +optional
	// +kubebuilder:default=0
	Truncated int64 `json:"truncated"`
}

// PodCapture captures the packets of pods in its own namespace, for consumers in that namespace. Its author needs no right in
// the cluster. The operator makes a CaptureRing of it, and deletes the CaptureRing with it.
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
	// metadata is the standard object's metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines what is captured.
	//
	// +required
	Spec PodCaptureSpec `json:"spec"`
	// status is written by the operator.
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
