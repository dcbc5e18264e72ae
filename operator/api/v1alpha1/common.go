// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourcePrefix, followed by the name of a ring or Cluster, is the extended resource that a consumer pod requests.
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

// Direction selects which packets of an interface are captured.
//
// +kubebuilder:validation:Enum=Receive;Transmit;Both
type Direction string

// The directions.
const (
	DirectionReceive  Direction = "Receive"
	DirectionTransmit Direction = "Transmit"
	DirectionBoth     Direction = "Both"
)

// Balance is how a packet's queue is chosen. All types but RoundRobin, BothEnds and RxQueue send both directions of a flow to
// one queue.
//
// +kubebuilder:validation:Enum=Flow;FiveTuple;FourTuple;TwoTuple;TCPFiveTuple;BothEnds;RoundRobin;RxQueue
type Balance string

// The balance types.
const (
	// BalanceFlow is by addresses, ports, protocol and VLAN.
	BalanceFlow Balance = "Flow"
	// BalanceFiveTuple is by addresses, ports and protocol.
	BalanceFiveTuple Balance = "FiveTuple"
	// BalanceFourTuple is by addresses and ports.
	BalanceFourTuple Balance = "FourTuple"
	// BalanceTwoTuple is by addresses.
	BalanceTwoTuple Balance = "TwoTuple"
	// BalanceTCPFiveTuple is FiveTuple for TCP and TwoTuple for the rest.
	BalanceTCPFiveTuple Balance = "TCPFiveTuple"
	// BalanceBothEnds sends a packet to the queue of its source address and a copy to that of its destination address.
	BalanceBothEnds Balance = "BothEnds"
	// BalanceRoundRobin sends each packet to the next queue.
	BalanceRoundRobin Balance = "RoundRobin"
	// BalanceRxQueue is by the device's RX queue: queue N gets the packets of RX queues N, N + queues, and so on.
	BalanceRxQueue Balance = "RxQueue"
)

// BalanceHeader selects the headers of a tunnelled packet that choose its queue.
//
// +kubebuilder:validation:Enum=Outer;Inner
type BalanceHeader string

// The headers to balance by.
const (
	BalanceHeaderOuter BalanceHeader = "Outer"
	// BalanceHeaderInner is the innermost header of the packet's tunnels (GRE, ERSPAN, VXLAN, Geneve, GTP-U, IP-in-IP).
	BalanceHeaderInner BalanceHeader = "Inner"
)

// Fragments sets which queue gets the IP fragments of a datagram.
//
// +kubebuilder:validation:Enum=Together;WithFlow
type Fragments string

// The values of fragments.
const (
	// FragmentsTogether sends all fragments of a datagram to one queue, which may differ from its flow's.
	FragmentsTogether Fragments = "Together"
	// FragmentsWithFlow sends them to their flow's queue, if the first fragment arrives first.
	FragmentsWithFlow Fragments = "WithFlow"
)

// QueuePolicy sets what happens to packets for a queue that cannot take them.
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

// PacketHeader sets what consumers get with each packet besides its bytes.
//
// +kubebuilder:validation:Enum=Short;Long
type PacketHeader string

// The packet headers.
const (
	// PacketHeaderShort is time, lengths, interface, RX queue and VLAN; an engine may add more.
	PacketHeaderShort PacketHeader = "Short"
	// PacketHeaderLong adds the flow hash, the offsets and protocols of the headers, and the rule that decided.
	PacketHeaderLong PacketHeader = "Long"
)

// TransparentFallback sets what happens on an interface whose driver does not support the transparent mode.
//
// +kubebuilder:validation:Enum=Refuse;Stack
type TransparentFallback string

// The fallbacks.
const (
	// TransparentFallbackRefuse refuses the ring on that node, with a condition.
	TransparentFallbackRefuse TransparentFallback = "Refuse"
	// TransparentFallbackStack captures in mode 0 there; the NodeCapture reports it.
	TransparentFallbackStack TransparentFallback = "Stack"
)

// XDP sets which XDP may be used.
//
// +kubebuilder:validation:Enum=Native;GenericAllowed
type XDP string

// The choices of XDP.
const (
	XDPNative         XDP = "Native"
	XDPGenericAllowed XDP = "GenericAllowed"
)

// Timestamps selects the clock that timestamps packets.
//
// +kubebuilder:validation:Enum=Software;Hardware
type Timestamps string

// The clocks.
const (
	TimestampsSoftware Timestamps = "Software"
	// TimestampsHardware is the NIC's clock for packets that the NIC has timestamped, else the kernel's.
	TimestampsHardware Timestamps = "Hardware"
)

// QueuesPerRxQueue is the value of queues for one queue for each RX queue.
const QueuesPerRxQueue = "PerRxQueue"

// QueueSettings configures a set of queues.
type QueueSettings struct {
	// balance sets how a packet's queue is chosen; by default Flow.
	//
	// +optional
	// +kubebuilder:default=Flow
	Balance Balance `json:"balance,omitempty"`

	// balanceHeader selects the headers of a tunnelled packet that choose its queue: Outer (default) or Inner.
	//
	// +optional
	// +kubebuilder:default=Outer
	BalanceHeader BalanceHeader `json:"balanceHeader,omitempty"`

	// fragments sets which queue gets the IP fragments of a datagram. Together (default) sends all of them to one queue,
	// WithFlow to the queue of their flow.
	//
	// +optional
	// +kubebuilder:default=Together
	Fragments Fragments `json:"fragments,omitempty"`

	// whenFull sets what happens to packets for a queue that is full. Drop (default) drops them, Spread sends them to other
	// queues that have a consumer.
	//
	// +optional
	// +kubebuilder:default=Drop
	WhenFull QueuePolicy `json:"whenFull,omitempty"`

	// whenUnattended sets what happens to packets for a queue that has no consumer. Drop (default) drops them, Spread sends them
	// to other queues that have one.
	//
	// +optional
	// +kubebuilder:default=Drop
	WhenUnattended QueuePolicy `json:"whenUnattended,omitempty"`

	// packetHeader sets what consumers get with each packet besides its bytes: Short (default), which is faster, or Long.
	//
	// +optional
	// +kubebuilder:default=Short
	PacketHeader PacketHeader `json:"packetHeader,omitempty"`

	// slots is the minimum number of packets of snapLength bytes (1536 if it is not set) that a queue holds, 16 to 4194304; by
	// default 4096. A packet takes only the bytes that it has, so a queue holds more short packets and fewer long ones.
	//
	// +optional
	// +kubebuilder:default=4096
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=4194304
	Slots int32 `json:"slots,omitempty"`

	// watermark is the fill of a lane of a queue, in percent, at which a sleeping consumer is woken, 1 to 90; by default 10. If
	// even 1 % takes too long to fill, lower watermarkTimeout.
	//
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=90
	Watermark int32 `json:"watermark,omitempty"`

	// watermarkTimeout is the longest time that a packet waits for the watermark, 1ms to 10s; by default 10ms. A consumer can replace
	// it by a timeout of its own, and programs with libpcap do: theirs is the time that they tell libpcap (pcap_set_timeout).
	//
	// +optional
	// +kubebuilder:default="10ms"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="type(self) == string && self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s))+$') && duration(self) >= duration('1ms') && duration(self) <= duration('10s')",message="must be a time between 1ms and 10s, with its unit, such as 10ms"
	WatermarkTimeout *metav1.Duration `json:"watermarkTimeout,omitempty"`

	// memoryLimit is the maximum kernel memory, bytes, of all queues on one node; by default 1Gi, which is enough for 16 queues.
	// A queue has lanes of slots times snapLength (1536 if it is not set), rounded up to a power of two: with the kernel module
	// one for each CPU that captures, up to 17, with eBPF one for each CPU, up to 4, as far as memoryLimit allows. Queues of
	// which not even one lane each fits are refused.
	//
	// +optional
	// +kubebuilder:default="1Gi"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() && self == oldSelf.value() || (type(self) == int ? self >= 4096 : isQuantity(self) && quantity(self).compareTo(quantity('4Ki')) >= 0)",optionalOldSelf=true,message="must be a number of bytes, at least 4Ki, such as 256Mi (units are Ki, Mi, Gi, Ti)"
	MemoryLimit *resource.Quantity `json:"memoryLimit,omitempty"`

	// consumers sets which pods may have the queues, and what their containers get.
	//
	// +optional
	Consumers *Consumers `json:"consumers,omitempty"`
}

// Consumers sets which pods may have queues, and what their containers get. A pod may have the queues of a Cluster only if each
// of the Cluster's rings permits its namespace, and the Cluster does, if it names any.
//
// +kubebuilder:validation:XValidation:rule="!has(self.namespaceSelector) || has(self.namespaceSelector.matchLabels) && size(self.namespaceSelector.matchLabels) > 0 || has(self.namespaceSelector.matchExpressions) && size(self.namespaceSelector.matchExpressions) > 0",message="namespaceSelector selects by no label: give matchLabels or matchExpressions; for all namespaces set namespaces: ['*']"
type Consumers struct {
	// injectLibpcap gives the pods' containers a libpcap that supports ringcap, in place of their image's; by default false.
	//
	// +optional
	InjectLibpcap bool `json:"injectLibpcap,omitempty"`

	// namespaces whose pods may have the queues, up to 64; '*' is all of them. If neither namespaces nor namespaceSelector is
	// set, no pod may have a ring's queues, and a Cluster permits the namespaces that its rings permit.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^([*]|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	Namespaces []string `json:"namespaces,omitempty"`

	// namespaceSelector also permits pods of namespaces with these labels. Anyone who may label a namespace can then permit it.
	//
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// shunt is how many flows each consumer of these queues may have shunted at a time, up to 1048576; 0, the default, is none.
	// Packets of a flow that a consumer has shunted do not come to its queue any more; in line, they are dropped or leave without
	// being asked about, as it says. Others go on getting them. A change applies to attached consumers: flows above a lower number
	// stay shunted until they end, and none has an effect while it is 0. A Cluster does not inherit it. Flows are kept in kernel
	// memory, about 100 bytes each, that counts as the consumer's, with the eBPF engine as the agent's.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1048576
	Shunt int32 `json:"shunt,omitempty"`
}

// MaxShunts is the maximum of consumers.shunt.
const MaxShunts = 1 << 20

// Limits on what one node can have.
const (
	// MaxRings is the maximum number of CaptureRings on one node, and of accepted Clusters.
	MaxRings = 256
	// MaxOutputs is the maximum number of sets of queues that one ring feeds: its own and those of Clusters.
	MaxOutputs = 8
)

// FinalizerNodes is on rings and Clusters that nodes may have. It is removed when no node has them any more.
const FinalizerNodes = "ringcap.io/nodes"

// Condition types, on every kind.
const (
	// ConditionAccepted: the spec is valid and conflicts with no other.
	ConditionAccepted = "Accepted"
	// ConditionProgrammed: every node concerned has it in its data path.
	ConditionProgrammed = "Programmed"
	// ConditionReady: packets flow to queues that pods can request.
	ConditionReady = "Ready"
	// ConditionDegraded: nodes that should have it do not report; Ready describes the other nodes.
	ConditionDegraded = "Degraded"
	// ConditionRolledOut is on CaptureRing only: no node waits for its turn to get the ring as it is.
	ConditionRolledOut = "RolledOut"
	// ConditionRulesEffective is on CaptureRing only: each rule and pattern can decide on some packet. It is advice: the ring
	// captures in any case.
	ConditionRulesEffective = "RulesEffective"
	// ConditionConsumersEffective: some namespace is permitted to have the queues. It is advice: nothing else depends on it.
	ConditionConsumersEffective = "ConsumersEffective"
	// ConditionPacketsWhole is on CaptureRing only: no packets are cut unless the spec asks for it. It is advice: nothing else
	// depends on it.
	ConditionPacketsWhole = "PacketsWhole"
	// ConditionNetworksWritten is on CaptureRing only: the NetworkAttachmentDefinitions and pools that it asks for exist.
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
	// ReasonSuspending and ReasonSuspended: ringcap is being uninstalled, and the object is kept. Suspending: some node still
	// has it. Suspended: no node has it.
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
	// ReasonFleetLimitExceeded: all NodeCaptures together would take more of the API server's store than the operator permits.
	ReasonFleetLimitExceeded = "FleetLimitExceeded"
	// ReasonAllReporting, of Degraded: no agent is missing.
	ReasonAllReporting = "AllReporting"
	// Of RolledOut.
	ReasonRolledOut     = "RolledOut"
	ReasonRollingOut    = "RollingOut"
	ReasonRolloutPaused = "RolloutPaused"
	// ReasonEngineFallback and ReasonEngineRecovered are reasons of events only: rings with engine Auto get EBPF because the
	// module is missing, or get the module again.
	ReasonEngineFallback  = "EngineFallback"
	ReasonEngineRecovered = "EngineRecovered"
	// ReasonModeConflict: rings over one interface ask for transparent modes that exclude each other.
	ReasonModeConflict = "ModeConflict"
	// ReasonNodeMemoryInsufficient: the node lacks the memory that the queues need.
	ReasonNodeMemoryInsufficient = "NodeMemoryInsufficient"

	// ReasonNodeTrafficRefused: it could cut the node off from its network, and spec.nodeTraffic does not allow it.
	ReasonNodeTrafficRefused = "NodeTrafficRefused"
	// ReasonNodeCutOff: the node applied it, lost the API server, and undid it.
	ReasonNodeCutOff = "NodeCutOff"
	// ReasonAPIServerUnreachable: the node applies it only while it can notice that it is cut off.
	ReasonAPIServerUnreachable = "APIServerUnreachable"

	// Of PacketsWhole. SnapLengthGiven: longer packets are cut, as the spec asks.
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
	// ReasonDriverReplaced and ReasonDriverRestored are reasons of events only.
	ReasonDriverReplaced     = "DriverReplaced"
	ReasonDriverRestored     = "DriverRestored"
	ReasonNICSettingRefused  = "NICSettingRefused"
	ReasonNICSettingConflict = "NICSettingConflict"

	// ReasonQueueTakenBack is a reason of events only.
	ReasonQueueTakenBack = "QueueTakenBack"
	// ReasonInlineBypassed, ReasonInlineBlocked and ReasonInlineBack are reasons of events only. The consumer of a queue in line
	// does not decide on packets any more, and they bypass it or are blocked; or it does again.
	ReasonInlineBypassed = "InlineBypassed"
	ReasonInlineBlocked  = "InlineBlocked"
	ReasonInlineBack     = "InlineBack"

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
