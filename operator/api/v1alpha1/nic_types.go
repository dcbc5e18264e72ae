// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Offloads sets what happens to receive offloads that merge packets (GRO, LRO, hardware GRO) on captured interfaces.
//
// +kubebuilder:validation:Enum=Disable;Keep
type Offloads string

// The offload policies.
const (
	// OffloadsDisable turns them off during the capture, so that consumers see the packets of the wire, and restores them
	// afterwards.
	OffloadsDisable Offloads = "Disable"
	// OffloadsKeep does not change them: consumers may see merged packets.
	OffloadsKeep Offloads = "Keep"
)

// NIC configures captured interfaces. All changes are undone when the ring is removed. If two rings ask for different settings of
// an interface, the ring whose name sorts first wins, and the status of the other reports the conflict.
type NIC struct {
	// promiscuous makes the interfaces receive packets that are not addressed to them; by default true.
	//
	// +optional
	// +kubebuilder:default=true
	Promiscuous *bool `json:"promiscuous,omitempty"`

	// offloads sets whether receive offloads that merge packets stay on: Disable (default) turns them off, Keep does not change
	// them.
	//
	// +optional
	// +kubebuilder:default=Disable
	Offloads Offloads `json:"offloads,omitempty"`

	// vlanOffload sets whether the device strips VLAN tags: Keep (default) does not change it, Disable turns it off. Consumers
	// see the tag in its place in both cases.
	//
	// +optional
	// +kubebuilder:default=Keep
	VLANOffload VLANOffload `json:"vlanOffload,omitempty"`

	// rxRingSize is the number of descriptors of each RX ring, 1 to 65536, within the device's limits. Without it the number is
	// not changed.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	RxRingSize *int32 `json:"rxRingSize,omitempty"`

	// rxQueues is the number of RX queues, 1 to 1024, within the device's limits. Without it the number is not changed.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	RxQueues *int32 `json:"rxQueues,omitempty"`

	// rss configures how the device spreads packets over its RX queues.
	//
	// +optional
	// +kubebuilder:default={}
	RSS RSS `json:"rss,omitempty"`

	// threadedPolling sets whether dedicated kernel threads poll the device's RX queues.
	//
	// +optional
	// +kubebuilder:default={}
	ThreadedPolling ThreadedPolling `json:"threadedPolling,omitempty"`

	// driver sets whether the interface's driver may be replaced by a capture-aware one.
	//
	// +optional
	// +kubebuilder:default={}
	Driver DriverPolicy `json:"driver,omitempty"`
}

// VLANOffload sets whether the device strips VLAN tags.
//
// +kubebuilder:validation:Enum=Keep;Disable
type VLANOffload string

// The policies of VLAN offload.
const (
	VLANOffloadKeep    VLANOffload = "Keep"
	VLANOffloadDisable VLANOffload = "Disable"
)

// RSS configures how a device spreads packets over its RX queues.
type RSS struct {
	// hash is the device's hash: Keep (default) does not change it, Symmetric sends both directions of a flow to one RX queue.
	//
	// +optional
	// +kubebuilder:default=Keep
	Hash RSSHash `json:"hash,omitempty"`

	// fields that the device hashes: Keep (default), Addresses or AddressesAndPorts.
	//
	// +optional
	// +kubebuilder:default=Keep
	Fields RSSFields `json:"fields,omitempty"`

	// queues is the number of RX queues, counted from the first, that packets are spread over, 1 to 1024. Without it the number
	// is not changed.
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

// ThreadedPolling sets whether dedicated kernel threads poll RX queues, and on which CPUs.
//
// +kubebuilder:validation:XValidation:rule="!has(self.cpus) || self.mode == 'Enable'",message="cpus are those of the polling threads: set mode to Enable, or leave cpus out"
type ThreadedPolling struct {
	// mode is Keep (default), which does not change it, or Enable.
	//
	// +optional
	// +kubebuilder:default=Keep
	Mode ThreadedPollingMode `json:"mode,omitempty"`

	// cpus that the threads run on, as a list of numbers and ranges such as 2-3,6; without it any CPU.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$')",message="must be a list of CPU numbers and ranges, such as 2-3,6"
	CPUs string `json:"cpus,omitempty"`
}

// ThreadedPollingMode sets whether dedicated kernel threads poll RX queues.
//
// +kubebuilder:validation:Enum=Keep;Enable
type ThreadedPollingMode string

// The modes.
const (
	ThreadedPollingKeep   ThreadedPollingMode = "Keep"
	ThreadedPollingEnable ThreadedPollingMode = "Enable"
)

// DriverPolicy sets whether a driver may be replaced by a capture-aware one.
type DriverPolicy struct {
	// policy is Keep (default), or Replace, which replaces the driver by a capture-aware one for the same device. The
	// replacement takes the link down for a moment.
	//
	// +optional
	// +kubebuilder:default=Keep
	Policy DriverReplacement `json:"policy,omitempty"`

	// nodeTraffic sets whether the driver may be replaced on an interface that carries the node's own traffic: Refuse (default)
	// or Allow. spec.nodeTraffic Allow permits it, too.
	//
	// +optional
	// +kubebuilder:default=Refuse
	NodeTraffic NodeTrafficPolicy `json:"nodeTraffic,omitempty"`

	// linkTimeout is how long the link may take to come back, 1s to 5m; by default 10s. After it the former driver is restored.
	//
	// +optional
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('5m')",message="must be between 1s and 5m"
	LinkTimeout *metav1.Duration `json:"linkTimeout,omitempty"`
}

// DriverReplacement sets whether a driver is replaced.
//
// +kubebuilder:validation:Enum=Keep;Replace
type DriverReplacement string

// The policies.
const (
	DriverKeep    DriverReplacement = "Keep"
	DriverReplace DriverReplacement = "Replace"
)

// NodeTrafficPolicy sets whether the node's own traffic may be put at risk.
//
// +kubebuilder:validation:Enum=Refuse;Allow
type NodeTrafficPolicy string

// The policies.
const (
	NodeTrafficRefuse NodeTrafficPolicy = "Refuse"
	NodeTrafficAllow  NodeTrafficPolicy = "Allow"
)
