// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterSpec defines a set of queues that share the packets of one or more rings.
type ClusterSpec struct {
	// rings whose packets the Cluster gets, 1 to 16 names. Each node of a ring has the Cluster's queues.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	Rings []string `json:"rings"`

	// queues on each node, 1 to 256.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 256",message="must be 1 to 256: the number of queues on each node, one for each consumer pod there"
	Queues int32 `json:"queues"`

	// filter selects the packets that the Cluster gets from its rings; without it all packets pass.
	//
	// +optional
	Filter *Filter `json:"filter,omitempty"`

	QueueSettings `json:",inline"`
}

// Cluster is a set of queues that share the packets of one or more rings. Pods request its queues as ringcap.io/<cluster name>.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ccluster,categories=ringcap
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 55 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be at most 55 characters of a-z, 0-9 and '-': it becomes the resource ringcap.io/<name>"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodesDesired`
// +kubebuilder:printcolumn:name="Nodes-Ready",type=integer,JSONPath=`.status.nodesReady`
// +kubebuilder:printcolumn:name="Attached",type=integer,JSONPath=`.status.queuesAttached`
// +kubebuilder:printcolumn:name="Queues",type=integer,JSONPath=`.status.queues`
// +kubebuilder:printcolumn:name="Delivered",type=integer,priority=1,JSONPath=`.status.delivered`
// +kubebuilder:printcolumn:name="Dropped",type=integer,JSONPath=`.status.dropped`
// +kubebuilder:printcolumn:name="Consumers",type=string,JSONPath=`.status.conditions[?(@.type=="ConsumersEffective")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the rings that feed the Cluster, and its queues.
	//
	// +required
	Spec ClusterSpec `json:"spec"`
	// status is the sum of what the nodes report; the operator writes it.
	//
	// +optional
	Status CaptureStatus `json:"status,omitempty"`
}

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cluster `json:"items"`
}
