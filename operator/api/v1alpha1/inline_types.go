// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Inline puts a ring between pairs of interfaces. The stack of the node gets nothing that these interfaces receive. What an
// interface receives leaves by the other one of its pair if the consumer of a queue says so. What the ring's filter does not pass
// leaves at once. Clusters over the ring get copies. It needs the kernel module. Of each queue, at most 4Mi of packets wait,
// however large spec.slots is.
//
// +kubebuilder:validation:XValidation:rule="self.pairs.all(p, p.interfaces.all(i, self.pairs.filter(q, i in q.interfaces).size() == 1))",message="an interface is in two pairs: give each interface one"
type Inline struct {
	// pairs of interfaces, 1 to 32.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Pairs []InterfacePair `json:"pairs"`

	// whenUnattended sets what happens to the packets of a queue without a consumer: Bypass (default) or Block.
	//
	// +optional
	// +kubebuilder:default=Bypass
	WhenUnattended InlinePolicy `json:"whenUnattended,omitempty"`

	// whenFull sets what happens when a queue has no room for a packet. Bypass (default) lets all packets past until the consumer
	// has released everything. Block drops the packets that have no room.
	//
	// +optional
	// +kubebuilder:default=Bypass
	WhenFull InlinePolicy `json:"whenFull,omitempty"`

	// whenHung sets what happens to the packets of a queue in which a packet has waited for hungAfter, until the consumer has
	// released everything: Bypass (default) or Block.
	//
	// +optional
	// +kubebuilder:default=Bypass
	WhenHung InlinePolicy `json:"whenHung,omitempty"`

	// hungAfter is how long a packet may wait for the consumer, 1ms to 1m, rounded up to milliseconds; by default 250ms.
	//
	// +optional
	// +kubebuilder:default="250ms"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="type(self) == string && self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m))+$') && duration(self) >= duration('1ms') && duration(self) <= duration('1m')",message="must be a time between 1ms and 1m, with its unit, such as 250ms"
	HungAfter *metav1.Duration `json:"hungAfter,omitempty"`
}

// InterfacePair is two interfaces between which a ring is.
//
// +kubebuilder:validation:XValidation:rule="self.interfaces.size() != 2 || self.interfaces[0] != self.interfaces[1]",message="a pair is two different interfaces"
type InterfacePair struct {
	// interfaces are the two names.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=15
	// +kubebuilder:validation:items:Pattern=`^[^/:*?\s]+$`
	Interfaces []string `json:"interfaces"`

	// whenMissing sets what applies on a node that has neither of the two. Ignore: the pair is not for this node. Report: the ring
	// is not ready on this node. The default is Report in a ring with nodeSelector, else Ignore. A node that has one of the two
	// always reports it.
	//
	// +optional
	WhenMissing WhenMissing `json:"whenMissing,omitempty"`
}

// InlinePolicy sets what happens to packets on which no consumer decides.
//
// +kubebuilder:validation:Enum=Bypass;Block
type InlinePolicy string

// The policies.
const (
	// InlineBypass sends them on by the other interface: the ring fails open.
	InlineBypass InlinePolicy = "Bypass"
	// InlineBlock drops them.
	InlineBlock InlinePolicy = "Block"
)
