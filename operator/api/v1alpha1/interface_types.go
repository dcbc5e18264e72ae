// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// InterfaceSelector selects interfaces of a node: those that match all that it names.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) || has(self.driver) || has(self.pciAddress) || has(self.resourceName) || has(self.podSelector)",message="selects nothing: give name, driver, pciAddress, resourceName or podSelector; name: '*' is every interface"
// +kubebuilder:validation:XValidation:rule="!has(self.namespaceSelector) || has(self.podSelector)",message="namespaceSelector narrows podSelector: give podSelector too; podSelector: {} is every pod"
// +kubebuilder:validation:XValidation:rule="!has(self.podSelector) || !(has(self.driver) || has(self.pciAddress) || has(self.resourceName))",message="podSelector selects the node's side of pods' interfaces: leave driver, pciAddress and resourceName out"
// +kubebuilder:validation:XValidation:rule="!has(self.network) || has(self.resourceName)",message="network hands out a pool's virtual functions: give resourceName too"
// +kubebuilder:validation:XValidation:rule="!has(self.pool) || has(self.resourceName) && self.resourceName.matches('/[_a-zA-Z0-9]+$')",message="pool is what resourceName stands for: give resourceName, of letters, digits and _ behind its prefix, too"
type InterfaceSelector struct {
	// name of the interface, or a glob (* and ?) over names, 1 to 15 bytes. PF_RING: device_name.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^/:[:space:]]+$')",message="must be an interface's name as ip-link(8) shows it, or a glob of * and ? over names, without '/', ':' and spaces"
	Name string `json:"name,omitempty"`

	// driver of the interface, as ethtool -i names it, or a glob over names. PF_RING: none.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=31
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-_a-zA-Z0-9*?]+$')",message="must be a driver's name as ethtool -i shows it, or a glob of * and ? over names"
	Driver string `json:"driver,omitempty"`

	// pciAddress of the device, or a glob over addresses, such as 0000:03:00.0. PF_RING: none.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f:.*?]+$')",message="must be a PCI address as lspci -D shows it, in lower case (0000:03:00.0), or a glob of * and ? over addresses"
	PCIAddress string `json:"pciAddress,omitempty"`

	// resourceName of a pool of sriov-network-device-plugin: the virtual functions in it, free ones and those that pods have got
	// since the ring was there. Engine KernelModule and transparentMode 0 only, not in quick mode, not with queues PerRxQueue.
	// PF_RING: none.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-.a-z0-9]+/[-._a-zA-Z0-9]+$')",message="must be an extended resource's name with its prefix, such as intel.com/sriov_capture"
	ResourceName string `json:"resourceName,omitempty"`

	// pool tells which virtual functions resourceName stands for: the operator writes that into the configuration of
	// sriov-network-device-plugin, all of which is the operator's then. Without it the pool is somebody else's. PF_RING: none.
	//
	// +optional
	Pool *FunctionPool `json:"pool,omitempty"`

	// network by which Multus hands the pool's virtual functions to pods; without it none is written. PF_RING: none.
	//
	// +optional
	Network *PoolNetwork `json:"network,omitempty"`

	// podSelector selects the node's side of the interfaces of pods with these labels; {} is every pod. Besides its own labels
	// a pod has its name as kubernetes.io/metadata.name here. What a pod sends is received there: direction Both is the whole
	// of a pod's traffic. A node on which no such pod runs is ready for the first one. Pods with hostNetwork have no interface
	// of their own and are not captured. transparentMode 0 only, and not in quick mode. PF_RING: none.
	//
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`

	// namespaceSelector narrows podSelector to namespaces with these labels, of which kubernetes.io/metadata.name is the name;
	// without it all namespaces. PF_RING: none.
	//
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// rxQueues whose packets are captured, as a list of numbers and ranges from 0 to 1023 such as 0-3,8; without it all.
	// Of received packets only. PF_RING: channel_id_mask, or eth0@0-3 as the device's name.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$')",message="must be a list of numbers and ranges, such as 0-3,8"
	RxQueues string `json:"rxQueues,omitempty"`

	// whenMissing says what a node without such an interface is: Ignore: none of this ring's, unless its queues are there
	// already, and a ring that is nowhere is not ready; Report: not ready. By default Report for a name without * and ? in a
	// ring with nodeSelector, which says where it is to be; else Ignore. Not of pods. PF_RING: none.
	//
	// +optional
	WhenMissing WhenMissing `json:"whenMissing,omitempty"`
}

// WhenMissing says what a node without an interface is.
//
// +kubebuilder:validation:Enum=Ignore;Report
type WhenMissing string

// What a node without an interface is.
const (
	// WhenMissingIgnore: the ring does not concern it.
	WhenMissingIgnore WhenMissing = "Ignore"
	// WhenMissingReport: the ring is not ready there.
	WhenMissingReport WhenMissing = "Report"
)

// FunctionPool selects virtual functions: those that match all that it names, of each field one of its values. The fields are the
// device plugin's selectors of the same names.
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

	// pfNames are interfaces whose functions they are, 1 to 32; with # and numbers or ranges behind it only those: ens1f0#0,2-7.
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

// PoolNetwork asks for NetworkAttachmentDefinitions, which the operator writes and removes with the ring. They have the ring's
// name; pods name it in their annotation k8s.v1.cni.cncf.io/networks. The CNI plugin host-device moves the virtual function
// into the pod, without an address.
type PoolNetwork struct {
	// namespaces that get one each, 1 to 16 names: those of the pods. What somebody else made under this name stays as it is.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespaces []string `json:"namespaces"`
}
