// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourcePrefix and the name of a ring or cluster make the extended resource that a consumer pod requests.
const ResourcePrefix = "ringcap.io/"

// Engine is a way to capture.
//
// +kubebuilder:validation:Enum=Auto;KernelModule;EBPF
type Engine string

// The engines.
const (
	// EngineAuto takes the kernel module where it loads, else eBPF.
	EngineAuto         Engine = "Auto"
	EngineKernelModule Engine = "KernelModule"
	EngineEBPF         Engine = "EBPF"
)

// Direction says which of an interface's packets are captured.
//
// +kubebuilder:validation:Enum=Receive;Transmit;Both
type Direction string

// The directions.
const (
	DirectionReceive  Direction = "Receive"
	DirectionTransmit Direction = "Transmit"
	DirectionBoth     Direction = "Both"
)

// Balance is a way to choose a packet's queue. All but RoundRobin send both directions of a flow to one queue.
//
// +kubebuilder:validation:Enum=Flow;FiveTuple;FourTuple;TwoTuple;RoundRobin
type Balance string

// The balance types.
const (
	BalanceFlow       Balance = "Flow"
	BalanceFiveTuple  Balance = "FiveTuple"
	BalanceFourTuple  Balance = "FourTuple"
	BalanceTwoTuple   Balance = "TwoTuple"
	BalanceRoundRobin Balance = "RoundRobin"
)

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

// QueueSettings is the shape of a set of queues.
type QueueSettings struct {
	// balance chooses a packet's queue. PF_RING: pfring_set_cluster's cluster_type.
	//
	// +optional
	// +kubebuilder:default=Flow
	Balance Balance `json:"balance,omitempty"`

	// slots is the least number of packets of snapLength bytes that a queue holds. PF_RING: min_num_slots.
	//
	// +optional
	// +kubebuilder:default=4096
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=4194304
	Slots int32 `json:"slots,omitempty"`

	// watermark is the fill of a queue, in percent, at which a sleeping consumer is woken; for a shorter wait than 1 %
	// takes, lower watermarkTimeout. PF_RING: pfring_set_poll_watermark.
	//
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=90
	Watermark int32 `json:"watermark,omitempty"`

	// watermarkTimeout is the longest time that a packet waits for the watermark, 1ms to 10s.
	// PF_RING: pfring_set_poll_watermark_timeout.
	//
	// +optional
	// +kubebuilder:default="10ms"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('10s')",message="must be between 1ms and 10s"
	WatermarkTimeout *metav1.Duration `json:"watermarkTimeout,omitempty"`

	// memoryLimit is the most kernel memory that all queues may take on one node; a plan that needs more is refused.
	//
	// +optional
	// +kubebuilder:default="256Mi"
	MemoryLimit *resource.Quantity `json:"memoryLimit,omitempty"`
}

// Limits on what one node can have.
const (
	// MaxRings is the greatest number of accepted CaptureRings, and of accepted Clusters.
	MaxRings = 256
	// MaxOutputs is the greatest number of sets of queues that one ring feeds: its own and those of Clusters.
	MaxOutputs = 8
)

// FinalizerNodes is on rings and Clusters that nodes may have: it is removed once no node has them any more.
const FinalizerNodes = "ringcap.io/nodes"

// Condition types, on every kind.
const (
	// ConditionAccepted: the spec is valid and conflicts with no other.
	ConditionAccepted = "Accepted"
	// ConditionProgrammed: every node concerned has it in its data path.
	ConditionProgrammed = "Programmed"
	// ConditionReady: packets flow to queues that pods can request.
	ConditionReady = "Ready"
	// ConditionModuleReady is on NodeCapture only: the kernel module is loaded and compatible.
	ConditionModuleReady = "ModuleReady"
)

// Reasons of conditions.
const (
	ReasonAccepted            = "Accepted"
	ReasonInvalidFilter       = "InvalidFilter"
	ReasonNameConflict        = "NameConflict"
	ReasonRingNotFound        = "RingNotFound"
	ReasonRingNotAccepted     = "RingNotAccepted"
	ReasonLimitExceeded       = "LimitExceeded"
	ReasonDeleting            = "Deleting"
	ReasonNodeNotReporting    = "NodeNotReporting"
	ReasonNoNodes             = "NoNodes"
	ReasonNoQueues            = "NoQueues"
	ReasonProgrammed          = "Programmed"
	ReasonPending             = "Pending"
	ReasonInterfaceNotFound   = "InterfaceNotFound"
	ReasonMemoryLimitExceeded = "MemoryLimitExceeded"
	ReasonEngineUnavailable   = "EngineUnavailable"
	ReasonUnsupported         = "Unsupported"
	ReasonQueueInUse          = "QueueInUse"
	ReasonEngineError         = "EngineError"
	ReasonReady               = "Ready"
	ReasonNotReady            = "NotReady"

	// Of ModuleReady.
	ReasonLoaded              = "Loaded"
	ReasonDisabled            = "Disabled"
	ReasonNoPrebuiltModule    = "NoPrebuiltModule"
	ReasonInvalidModuleFormat = "InvalidModuleFormat"
	ReasonModulesUnsupported  = "ModulesUnsupported"
	ReasonKeyRejected         = "KeyRejected"
	ReasonLockdown            = "Lockdown"
	ReasonSymbolMissing       = "SymbolMissing"
	ReasonIncompatible        = "Incompatible"
	ReasonLoadFailed          = "LoadFailed"
)
