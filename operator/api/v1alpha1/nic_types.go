// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Offloads says what happens to receive offloads that merge packets (GRO, LRO, hardware GRO) on captured interfaces.
//
// +kubebuilder:validation:Enum=Disable;Keep
type Offloads string

// The offload policies.
const (
	// OffloadsDisable turns them off while captured, so that consumers see the wire's packets, and restores them after.
	OffloadsDisable Offloads = "Disable"
	// OffloadsKeep leaves them as they are: packets may be seen merged.
	OffloadsKeep Offloads = "Keep"
)

// NIC says how captured interfaces are set; everything that was changed is restored when the ring goes. Where two rings
// want different settings of an interface, those of the ring whose name comes first hold, and the other's status says so.
type NIC struct {
	// promiscuous makes the interfaces receive what is not addressed to them; by default true. PF_RING: PF_RING_PROMISC.
	//
	// +optional
	// +kubebuilder:default=true
	Promiscuous *bool `json:"promiscuous,omitempty"`

	// offloads says whether receive offloads that merge packets are turned off: Disable (default) or Keep. PF_RING:
	// ethtool -K by hand.
	//
	// +optional
	// +kubebuilder:default=Disable
	Offloads Offloads `json:"offloads,omitempty"`

	// vlanOffload says whether the device goes on taking VLAN tags off: Keep (default) or Disable. Consumers see the tag in
	// its place either way. PF_RING: ethtool -K rxvlan by hand.
	//
	// +optional
	// +kubebuilder:default=Keep
	VLANOffload VLANOffload `json:"vlanOffload,omitempty"`

	// rxRingSize is the number of descriptors of each RX ring, 1 to 65536, within what the device can; without it, it is
	// kept. PF_RING: ethtool -G rx by hand, or a driver's parameter.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	RxRingSize *int32 `json:"rxRingSize,omitempty"`

	// rxQueues is the number of RX queues, 1 to 1024, within what the device can; without it, it is kept. PF_RING: RSS= of
	// its drivers.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	RxQueues *int32 `json:"rxQueues,omitempty"`

	// rss says how the device spreads packets over its RX queues. PF_RING: RSS= of its drivers.
	//
	// +optional
	// +kubebuilder:default={}
	RSS RSS `json:"rss,omitempty"`

	// threadedPolling says whether the device's RX queues are polled by threads of their own. PF_RING: TNAPI.
	//
	// +optional
	// +kubebuilder:default={}
	ThreadedPolling ThreadedPolling `json:"threadedPolling,omitempty"`

	// driver says whether the interface's driver may be replaced by a capture-aware one. PF_RING: load_driver.sh of its
	// drivers.
	//
	// +optional
	// +kubebuilder:default={}
	Driver DriverPolicy `json:"driver,omitempty"`
}

// VLANOffload says what happens to the device's taking VLAN tags off.
//
// +kubebuilder:validation:Enum=Keep;Disable
type VLANOffload string

// The policies of VLAN offload.
const (
	VLANOffloadKeep    VLANOffload = "Keep"
	VLANOffloadDisable VLANOffload = "Disable"
)

// RSS says how a device spreads packets over its RX queues.
type RSS struct {
	// hash is the device's hash: Keep (default), or Symmetric for one that gives both directions of a flow one RX queue.
	// PF_RING: its drivers' symmetric RSS key.
	//
	// +optional
	// +kubebuilder:default=Keep
	Hash RSSHash `json:"hash,omitempty"`

	// fields that are hashed: Keep (default), Addresses or AddressesAndPorts. PF_RING: ethtool -N rx-flow-hash by hand.
	//
	// +optional
	// +kubebuilder:default=Keep
	Fields RSSFields `json:"fields,omitempty"`

	// queues is the number of RX queues, from the first on, that packets are spread over, 1 to 1024; without it, it is
	// kept. PF_RING: RSS= of its drivers.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	Queues *int32 `json:"queues,omitempty"`
}

// RSSHash is a device's hash.
//
// +kubebuilder:validation:Enum=Keep;Symmetric
type RSSHash string

// The hashes.
const (
	RSSHashKeep      RSSHash = "Keep"
	RSSHashSymmetric RSSHash = "Symmetric"
)

// RSSFields are the fields that a device hashes.
//
// +kubebuilder:validation:Enum=Keep;Addresses;AddressesAndPorts
type RSSFields string

// The fields.
const (
	RSSFieldsKeep              RSSFields = "Keep"
	RSSFieldsAddresses         RSSFields = "Addresses"
	RSSFieldsAddressesAndPorts RSSFields = "AddressesAndPorts"
)

// ThreadedPolling says whether RX queues are polled by threads of their own, and where.
//
// +kubebuilder:validation:XValidation:rule="!has(self.cpus) || self.mode == 'Enable'",message="cpus are those of the polling threads: set mode to Enable, or leave cpus out"
type ThreadedPolling struct {
	// mode is Keep (default) or Enable. PF_RING: TNAPI.
	//
	// +optional
	// +kubebuilder:default=Keep
	Mode ThreadedPollingMode `json:"mode,omitempty"`

	// cpus that the threads run on, as a list of numbers and ranges such as 2-3,6; without it any. PF_RING: TNAPI's
	// per-queue CPU binding, set_irq_affinity.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$')",message="must be a list of CPU numbers and ranges, such as 2-3,6"
	CPUs string `json:"cpus,omitempty"`
}

// ThreadedPollingMode says whether RX queues are polled by threads of their own.
//
// +kubebuilder:validation:Enum=Keep;Enable
type ThreadedPollingMode string

// The modes.
const (
	ThreadedPollingKeep   ThreadedPollingMode = "Keep"
	ThreadedPollingEnable ThreadedPollingMode = "Enable"
)

// DriverPolicy says whether a driver may be replaced by a capture-aware one.
type DriverPolicy struct {
	// policy is to Keep (default) the driver that is there, or Replace it by a capture-aware one of the same device, which takes
	// the link down for a moment. PF_RING: load_driver.sh of its drivers.
	//
	// +optional
	// +kubebuilder:default=Keep
	Policy DriverReplacement `json:"policy,omitempty"`

	// nodeTraffic says whether that alone may be done to an interface that carries the node's own traffic: Refuse (default) or
	// Allow, as spec.nodeTraffic allows it, too. PF_RING: none.
	//
	// +optional
	// +kubebuilder:default=Refuse
	NodeTraffic NodeTrafficPolicy `json:"nodeTraffic,omitempty"`

	// linkTimeout is how long the link may take to come back before the former driver is put back, 1s to 5m; by default
	// 10s. PF_RING: none.
	//
	// +optional
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('5m')",message="must be between 1s and 5m"
	LinkTimeout *metav1.Duration `json:"linkTimeout,omitempty"`
}

// DriverReplacement says whether a driver is replaced.
//
// +kubebuilder:validation:Enum=Keep;Replace
type DriverReplacement string

// The policies.
const (
	DriverKeep    DriverReplacement = "Keep"
	DriverReplace DriverReplacement = "Replace"
)

// NodeTrafficPolicy says whether the node's own traffic may suffer.
//
// +kubebuilder:validation:Enum=Refuse;Allow
type NodeTrafficPolicy string

// The policies.
const (
	NodeTrafficRefuse NodeTrafficPolicy = "Refuse"
	NodeTrafficAllow  NodeTrafficPolicy = "Allow"
)
