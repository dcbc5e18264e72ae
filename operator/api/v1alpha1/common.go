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

// Balance is a way to choose a packet's queue. All but RoundRobin, BothEnds and RxQueue send both directions of a flow to
// one queue.
//
// +kubebuilder:validation:Enum=Flow;FiveTuple;FourTuple;TwoTuple;TCPFiveTuple;BothEnds;RoundRobin;RxQueue
type Balance string

// The balance types.
const (
	// BalanceFlow is by addresses, ports, protocol and VLAN. PF_RING: cluster_per_flow.
	BalanceFlow Balance = "Flow"
	// BalanceFiveTuple is by addresses, ports and protocol. PF_RING: cluster_per_flow_5_tuple.
	BalanceFiveTuple Balance = "FiveTuple"
	// BalanceFourTuple is by addresses and ports. PF_RING: cluster_per_flow_4_tuple.
	BalanceFourTuple Balance = "FourTuple"
	// BalanceTwoTuple is by addresses. PF_RING: cluster_per_flow_2_tuple.
	BalanceTwoTuple Balance = "TwoTuple"
	// BalanceTCPFiveTuple is FiveTuple for TCP and TwoTuple for the rest. PF_RING: cluster_per_flow_tcp_5_tuple.
	BalanceTCPFiveTuple Balance = "TCPFiveTuple"
	// BalanceBothEnds sends a packet to the queue of its source address and a copy to that of its destination address.
	BalanceBothEnds Balance = "BothEnds"
	// BalanceRoundRobin is each to the next queue. PF_RING: cluster_round_robin.
	BalanceRoundRobin Balance = "RoundRobin"
	// BalanceRxQueue is by the device's RX queue: queue N gets those of N, N + queues, and so on.
	BalanceRxQueue Balance = "RxQueue"
)

// BalanceHeader says which of a tunnelled packet's headers are balanced by.
//
// +kubebuilder:validation:Enum=Outer;Inner
type BalanceHeader string

// The headers to balance by.
const (
	BalanceHeaderOuter BalanceHeader = "Outer"
	// BalanceHeaderInner is the innermost header of a tunnel (GRE, ERSPAN, VXLAN, Geneve, GTP-U, IP-in-IP) that is there.
	BalanceHeaderInner BalanceHeader = "Inner"
)

// Fragments says where the IP fragments of a datagram go.
//
// +kubebuilder:validation:Enum=Together;WithFlow
type Fragments string

// The ways of fragments.
const (
	// FragmentsTogether sends all fragments of a datagram to one queue, which need not be its flow's.
	FragmentsTogether Fragments = "Together"
	// FragmentsWithFlow sends them with the rest of their flow, as long as the first fragment comes first.
	FragmentsWithFlow Fragments = "WithFlow"
)

// QueuePolicy says what becomes of packets for a queue that cannot take them.
//
// +kubebuilder:validation:Enum=Drop;Spread
type QueuePolicy string

// The policies.
const (
	// QueuePolicyDrop drops and counts them.
	QueuePolicyDrop QueuePolicy = "Drop"
	// QueuePolicySpread gives them to other queues that have a consumer; flows of other queues do not move.
	QueuePolicySpread QueuePolicy = "Spread"
)

// PacketHeader says how much is told of a packet besides its bytes.
//
// +kubebuilder:validation:Enum=Short;Long
type PacketHeader string

// The headers of packets.
const (
	// PacketHeaderShort is time, lengths, interface, RX queue and VLAN; an engine may tell more.
	PacketHeaderShort PacketHeader = "Short"
	// PacketHeaderLong adds the flow hash, the places and protocols of the headers, and the rule that decided.
	PacketHeaderLong PacketHeader = "Long"
)

// TransparentFallback says what becomes of a transparent mode that an interface's driver does not have.
//
// +kubebuilder:validation:Enum=Refuse;Stack
type TransparentFallback string

// The fallbacks.
const (
	// TransparentFallbackRefuse refuses the ring on that node, with a condition.
	TransparentFallbackRefuse TransparentFallback = "Refuse"
	// TransparentFallbackStack captures in mode 0 there; the NodeCapture says so.
	TransparentFallbackStack TransparentFallback = "Stack"
)

// XDP says which XDP may be used.
//
// +kubebuilder:validation:Enum=Native;GenericAllowed
type XDP string

// The choices of XDP.
const (
	XDPNative         XDP = "Native"
	XDPGenericAllowed XDP = "GenericAllowed"
)

// Timestamps says whose clock times packets.
//
// +kubebuilder:validation:Enum=Software;Hardware
type Timestamps string

// The clocks.
const (
	TimestampsSoftware Timestamps = "Software"
	// TimestampsHardware is the NIC's clock, where it timed the packet, else the kernel's.
	TimestampsHardware Timestamps = "Hardware"
)

// QueuesPerRxQueue as a number of queues is one for each RX queue.
const QueuesPerRxQueue = "PerRxQueue"

// QueueSettings is the shape of a set of queues.
type QueueSettings struct {
	// balance chooses a packet's queue; by default Flow. PF_RING: pfring_set_cluster's cluster_type.
	//
	// +optional
	// +kubebuilder:default=Flow
	Balance Balance `json:"balance,omitempty"`

	// balanceHeader says which headers of a tunnelled packet choose its queue: Outer (default) or Inner. PF_RING:
	// cluster_per_inner_flow and its like.
	//
	// +optional
	// +kubebuilder:default=Outer
	BalanceHeader BalanceHeader `json:"balanceHeader,omitempty"`

	// fragments says where the IP fragments of a datagram go: Together (default) or WithFlow. PF_RING:
	// enable_frag_coherence.
	//
	// +optional
	// +kubebuilder:default=Together
	Fragments Fragments `json:"fragments,omitempty"`

	// whenFull says what becomes of packets for a queue that has no room: Drop (default) or Spread. PF_RING: it drops.
	//
	// +optional
	// +kubebuilder:default=Drop
	WhenFull QueuePolicy `json:"whenFull,omitempty"`

	// whenUnattended says what becomes of packets for a queue that has no consumer: Drop (default) or Spread. PF_RING:
	// applications that leave a cluster take their share with them, and all flows move.
	//
	// +optional
	// +kubebuilder:default=Drop
	WhenUnattended QueuePolicy `json:"whenUnattended,omitempty"`

	// packetHeader says how much consumers are told of each packet: Short (default), which is faster, or Long. PF_RING:
	// PF_RING_LONG_HEADER.
	//
	// +optional
	// +kubebuilder:default=Short
	PacketHeader PacketHeader `json:"packetHeader,omitempty"`

	// slots is the least number of packets of snapLength bytes, 1536 where that is not given, that a queue holds, 16 to 4194304; by
	// default 4096. A packet takes the bytes that it has, so a queue holds more of shorter and fewer of longer ones. PF_RING: min_num_slots.
	//
	// +optional
	// +kubebuilder:default=4096
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=4194304
	Slots int32 `json:"slots,omitempty"`

	// watermark is the fill of a queue, in percent, at which a sleeping consumer is woken, 1 to 90; by default 10. For a shorter wait than 1 %
	// takes, lower watermarkTimeout. PF_RING: pfring_set_poll_watermark.
	//
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=90
	Watermark int32 `json:"watermark,omitempty"`

	// watermarkTimeout is the longest time that a packet waits for the watermark, 1ms to 10s; by default 10ms.
	// PF_RING: pfring_set_poll_watermark_timeout.
	//
	// +optional
	// +kubebuilder:default="10ms"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="type(self) == string && self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s))+$') && duration(self) >= duration('1ms') && duration(self) <= duration('10s')",message="must be a time between 1ms and 10s, with its unit, such as 10ms"
	WatermarkTimeout *metav1.Duration `json:"watermarkTimeout,omitempty"`

	// memoryLimit is the most kernel memory, bytes, that all queues may take on one node; by default 1Gi, which 16 queues have
	// room in. A queue takes slots times snapLength (1536 where that is not given), rounded up to a power of two. With the kernel module up to four times that,
	// one area for each CPU, as far as memoryLimit has room for them. What needs more is refused. PF_RING: none.
	//
	// +optional
	// +kubebuilder:default="1Gi"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() && self == oldSelf.value() || (type(self) == int ? self >= 4096 : isQuantity(self) && quantity(self).compareTo(quantity('4Ki')) >= 0)",optionalOldSelf=true,message="must be a number of bytes, at least 4Ki, such as 256Mi (units are Ki, Mi, Gi, Ti)"
	MemoryLimit *resource.Quantity `json:"memoryLimit,omitempty"`

	// consumers says which pods may have the queues, and what is given to them. PF_RING: none.
	//
	// +optional
	Consumers *Consumers `json:"consumers,omitempty"`
}

// Consumers says which pods may have queues, and what is given to them. Of a Cluster, a namespace must be permitted by the
// Cluster, if it names any, and by each of its rings.
//
// +kubebuilder:validation:XValidation:rule="!has(self.namespaceSelector) || has(self.namespaceSelector.matchLabels) && size(self.namespaceSelector.matchLabels) > 0 || has(self.namespaceSelector.matchExpressions) && size(self.namespaceSelector.matchExpressions) > 0",message="namespaceSelector selects by no label: give matchLabels or matchExpressions; for all namespaces say namespaces: ['*']"
type Consumers struct {
	// injectLibpcap gives the pods' containers a libpcap that knows ringcap, in place of their image's; by default false.
	// PF_RING: a libpcap that programs are linked against.
	//
	// +optional
	InjectLibpcap bool `json:"injectLibpcap,omitempty"`

	// namespaces whose pods may have the queues, up to 64; '*' is all of them. Where neither namespaces nor namespaceSelector
	// names any, nobody's pods may have a ring's queues, and a Cluster is as wide as its rings. PF_RING: none.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^([*]|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	Namespaces []string `json:"namespaces,omitempty"`

	// namespaceSelector permits pods of namespaces with these labels too. Who may label a namespace decides then.
	// PF_RING: none.
	//
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// Limits on what one node can have.
const (
	// MaxRings is the greatest number of CaptureRings that may be on one node, and of accepted Clusters.
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
	// ConditionDegraded: nodes that are to have it do not report; Ready is about the others.
	ConditionDegraded = "Degraded"
	// ConditionRolledOut is on CaptureRing only: no node waits for its turn to get the ring as it is.
	ConditionRolledOut = "RolledOut"
	// ConditionRulesEffective is on CaptureRing only: each rule and pattern can decide on some packet. It is advice: what
	// it speaks of is captured all the same.
	ConditionRulesEffective = "RulesEffective"
	// ConditionConsumersEffective: some namespace is permitted to have the queues. It is advice: nothing else depends on it.
	ConditionConsumersEffective = "ConsumersEffective"
	// ConditionPacketsWhole is on CaptureRing only: no packets are cut that nobody asked to cut. It is advice: nothing else
	// depends on it.
	ConditionPacketsWhole = "PacketsWhole"
	// ConditionNetworksWritten is on CaptureRing only: the NetworkAttachmentDefinitions and the pools that it asks for are there.
	ConditionNetworksWritten = "NetworksWritten"
	// ConditionModuleReady is on NodeCapture only: the kernel module is loaded and compatible.
	ConditionModuleReady = "ModuleReady"
)

// Reasons of conditions.
const (
	ReasonAccepted            = "Accepted"
	ReasonInvalidFilter       = "InvalidFilter"
	ReasonInvalidNodeSelector = "InvalidNodeSelector"
	ReasonNameConflict        = "NameConflict"
	ReasonRingNotFound        = "RingNotFound"
	ReasonRingNotAccepted     = "RingNotAccepted"
	ReasonLimitExceeded       = "LimitExceeded"
	ReasonDeleting            = "Deleting"
	// ReasonSuspending and ReasonSuspended: ringcap is being uninstalled, and the object stays; nodes have it still, or none does.
	ReasonSuspending          = "Suspending"
	ReasonSuspended           = "Suspended"
	ReasonNobodyAllowed       = "NobodyAllowed"
	ReasonNodeNotReporting    = "NodeNotReporting"
	ReasonNoNodes             = "NoNodes"
	ReasonNoQueues            = "NoQueues"
	ReasonProgrammed          = "Programmed"
	ReasonPending             = "Pending"
	ReasonInterfaceNotFound   = "InterfaceNotFound"
	ReasonInterfaceAbsent     = "InterfaceAbsent"
	ReasonMemoryLimitExceeded = "MemoryLimitExceeded"
	ReasonAgentTooOld         = "AgentTooOld"
	ReasonPodNotTapped        = "PodNotTapped"
	ReasonEngineUnavailable   = "EngineUnavailable"
	ReasonUnsupported         = "Unsupported"
	ReasonQueueInUse          = "QueueInUse"
	ReasonEngineError         = "EngineError"
	ReasonReady               = "Ready"
	ReasonNotReady            = "NotReady"
	// ReasonFleetLimitExceeded: all NodeCaptures together would take more of the API server's store than the operator lets them.
	ReasonFleetLimitExceeded = "FleetLimitExceeded"
	// ReasonAllReporting, of Degraded: no agent is missing.
	ReasonAllReporting = "AllReporting"
	// Of RolledOut.
	ReasonRolledOut     = "RolledOut"
	ReasonRollingOut    = "RollingOut"
	ReasonRolloutPaused = "RolloutPaused"
	// ReasonEngineFallback and ReasonEngineRecovered are of events only: rings with engine Auto get EBPF for want of the module,
	// or the module again.
	ReasonEngineFallback  = "EngineFallback"
	ReasonEngineRecovered = "EngineRecovered"
	// ReasonQuickModeConflict: two quick rings over the same RX queues of an interface, or a Cluster over a quick ring.
	ReasonQuickModeConflict = "QuickModeConflict"
	// ReasonModeConflict: rings over one interface ask for transparent modes that exclude each other.
	ReasonModeConflict = "ModeConflict"
	// ReasonNodeMemoryInsufficient: the node has not the memory that the queues need.
	ReasonNodeMemoryInsufficient = "NodeMemoryInsufficient"

	// ReasonNodeTrafficRefused: it could cut the node off from its network, and spec.nodeTraffic does not allow it.
	ReasonNodeTrafficRefused = "NodeTrafficRefused"
	// ReasonNodeCutOff: the node tried it, lost the API server, and undid it.
	ReasonNodeCutOff = "NodeCutOff"
	// ReasonAPIServerUnreachable: it is tried only while the node would notice that it is cut off.
	ReasonAPIServerUnreachable = "APIServerUnreachable"

	// Of PacketsWhole. SnapLengthGiven: what is longer is cut, as asked.
	ReasonWhole            = "Whole"
	ReasonSnapLengthGiven  = "SnapLengthGiven"
	ReasonPacketsTruncated = "PacketsTruncated"

	// Of RulesEffective.
	ReasonEffective    = "Effective"
	ReasonNeverMatches = "NeverMatches"
	ReasonShadowed     = "Shadowed"

	// Of NetworksWritten.
	ReasonWritten           = "Written"
	ReasonNoNetwork         = "NoNetwork"
	ReasonNetworkConflict   = "NetworkConflict"
	ReasonNetworkForbidden  = "NetworkForbidden"
	ReasonNetworkNotWritten = "NetworkNotWritten"
	ReasonMultusMissing     = "MultusMissing"
	ReasonNamespaceNotFound = "NamespaceNotFound"
	ReasonPoolConflict      = "PoolConflict"
	ReasonPoolForbidden     = "PoolForbidden"
	ReasonPoolNotWritten    = "PoolNotWritten"

	// Of interfaces and their settings.
	ReasonDriverNotAware       = "DriverNotAware"
	ReasonDriverReplaceFailed  = "DriverReplaceFailed"
	ReasonDriverReplaceRefused = "DriverReplaceRefused"
	// ReasonDriverReplaced and ReasonDriverRestored are of events only.
	ReasonDriverReplaced     = "DriverReplaced"
	ReasonDriverRestored     = "DriverRestored"
	ReasonNICSettingRefused  = "NICSettingRefused"
	ReasonNICSettingConflict = "NICSettingConflict"

	// ReasonQueueTakenBack is of events only.
	ReasonQueueTakenBack = "QueueTakenBack"

	// Of ModuleReady.
	ReasonLoaded              = "Loaded"
	ReasonDisabled            = "Disabled"
	ReasonNoPrebuiltModule    = "NoPrebuiltModule"
	ReasonHeadersMissing      = "HeadersMissing"
	ReasonBuildFailed         = "BuildFailed"
	ReasonInvalidModuleFormat = "InvalidModuleFormat"
	ReasonModulesUnsupported  = "ModulesUnsupported"
	ReasonKeyRejected         = "KeyRejected"
	ReasonLockdown            = "Lockdown"
	ReasonSymbolMissing       = "SymbolMissing"
	ReasonInUse               = "InUse"
	ReasonIncompatible        = "Incompatible"
	ReasonLoadFailed          = "LoadFailed"
)
