// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// InterfaceSelector selects interfaces of a node: those that match all fields that are set.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) || has(self.driver) || has(self.pciAddress) || has(self.resourceName) || has(self.podSelector)",message="selects nothing: give name, driver, pciAddress, resourceName or podSelector; name: '*' is every interface"
// +kubebuilder:validation:XValidation:rule="!has(self.namespaceSelector) || has(self.podSelector)",message="namespaceSelector narrows podSelector: give podSelector too; podSelector: {} is every pod"
// +kubebuilder:validation:XValidation:rule="!has(self.podSelector) || !(has(self.driver) || has(self.pciAddress) || has(self.resourceName))",message="podSelector selects the node's side of pods' interfaces: leave driver, pciAddress and resourceName out"
// +kubebuilder:validation:XValidation:rule="!has(self.network) || has(self.resourceName)",message="network hands out a pool's virtual functions: give resourceName too"
// +kubebuilder:validation:XValidation:rule="!has(self.pool) || has(self.resourceName) && self.resourceName.matches('/[_a-zA-Z0-9]+$')",message="pool is what resourceName stands for: give resourceName, of letters, digits and _ behind its prefix, too"
type InterfaceSelector struct {
	// name of the interface, or a glob (* and ?) over names, 1 to 15 bytes.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^/:[:space:]]+$')",message="must be an interface's name as ip-link(8) shows it, or a glob of * and ? over names, without '/', ':' and spaces"
	Name string `json:"name,omitempty"`

	// driver of the interface, as ethtool -i names it, or a glob over names.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=31
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-_a-zA-Z0-9*?]+$')",message="must be a driver's name as ethtool -i shows it, or a glob of * and ? over names"
	Driver string `json:"driver,omitempty"`

	// pciAddress of the device, or a glob over addresses, such as 0000:03:00.0.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f:.*?]+$')",message="must be a PCI address as lspci -D shows it, in lower case (0000:03:00.0), or a glob of * and ? over addresses"
	PCIAddress string `json:"pciAddress,omitempty"`

	// resourceName of a pool of sriov-network-device-plugin. It selects the pool's virtual functions: those that are free, and
	// those that pods have got since the ring was created. It requires engine KernelModule and transparentMode 0, and excludes
	// queues PerRxQueue.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-.a-z0-9]+/[-._a-zA-Z0-9]+$')",message="must be an extended resource's name with its prefix, such as intel.com/sriov_capture"
	ResourceName string `json:"resourceName,omitempty"`

	// pool defines which virtual functions are in the pool resourceName. The operator writes the pool into the configuration of
	// sriov-network-device-plugin, and then owns the whole configuration. Without it somebody else configures the pool.
	//
	// +optional
	Pool *FunctionPool `json:"pool,omitempty"`

	// network writes NetworkAttachmentDefinitions, with which Multus attaches the pool's virtual functions to pods; without it
	// none is written.
	//
	// +optional
	Network *PoolNetwork `json:"network,omitempty"`

	// podSelector selects the node's side of the interfaces of pods with these labels; {} is every pod. Besides its own labels,
	// a pod has its name as the label kubernetes.io/metadata.name here. The node's side receives what a pod sends: direction
	// Both captures all traffic of a pod. A node without such a pod is ready for the first one. Pods with hostNetwork have no
	// interface of their own and are not captured. It requires transparentMode 0.
	//
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`

	// namespaceSelector restricts podSelector to namespaces with these labels; without it all namespaces. The label
	// kubernetes.io/metadata.name is the namespace's name.
	//
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// rxQueues whose received packets are captured, as a list of numbers and ranges from 0 to 1023 such as 0-3,8; without it
	// all.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$')",message="must be a list of numbers and ranges, such as 0-3,8"
	RxQueues string `json:"rxQueues,omitempty"`

	// whenMissing sets what applies on a node without such an interface. Ignore: the ring is not for this node, unless its
	// queues exist there already. A ring that is on no node is not ready. Report: the ring is not ready on this node. The
	// default is Report for a name without * and ? in a ring with nodeSelector, which lists the nodes that should have it; else
	// Ignore. It does not apply to interfaces of pods.
	//
	// +optional
	WhenMissing WhenMissing `json:"whenMissing,omitempty"`
}

// WhenMissing sets what applies on a node without the interface.
//
// +kubebuilder:validation:Enum=Ignore;Report
type WhenMissing string

// The values of whenMissing.
const (
	// WhenMissingIgnore: the ring is not for this node.
	WhenMissingIgnore WhenMissing = "Ignore"
	// WhenMissingReport: the ring is not ready there.
	WhenMissingReport WhenMissing = "Report"
)

// FunctionPool selects virtual functions. A function must match all fields that are set, with one of the values of each. The
// fields are the device plugin's selectors of the same names.
//
// +kubebuilder:validation:MinProperties=1
type FunctionPool struct {
	// vendors of the functions, 1 to 32 of four hexadecimal digits in lower case, as lspci -n shows them: 8086 is Intel.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=4
	// +kubebuilder:validation:items:Pattern=`^[0-9a-f]{4}$`
	Vendors []string `json:"vendors,omitempty"`

	// devices of these vendors, 1 to 32 in the same form: 10ca is a virtual function of igb's cards.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=4
	// +kubebuilder:validation:items:Pattern=`^[0-9a-f]{4}$`
	Devices []string `json:"devices,omitempty"`

	// drivers of the functions, 1 to 32 names as ethtool -i shows them.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=31
	// +kubebuilder:validation:items:Pattern=`^[-_a-zA-Z0-9]+$`
	Drivers []string `json:"drivers,omitempty"`

	// pfNames are the physical interfaces that the functions belong to, 1 to 32. A # with numbers or ranges selects only these
	// functions: ens1f0#0,2-7.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[^/:#\s]{1,15}(#[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$`
	PFNames []string `json:"pfNames,omitempty"`

	// pciAddresses of the functions, 1 to 32, as lspci -D shows them: 0000:03:10.0.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=12
	// +kubebuilder:validation:items:Pattern=`^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`
	PCIAddresses []string `json:"pciAddresses,omitempty"`
}

// PoolNetwork requests NetworkAttachmentDefinitions, which the operator writes, and deletes with the ring. They have the ring's
// name; pods name it in their annotation k8s.v1.cni.cncf.io/networks. The CNI plugin host-device moves the virtual function into
// the pod, without an address.
type PoolNetwork struct {
	// namespaces that get one each, 1 to 16 names: the namespaces of the pods. The operator does not change an object that
	// somebody else made under this name.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespaces []string `json:"namespaces"`
}
