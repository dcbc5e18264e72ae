// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeRing is a CaptureRing as one node shall have it.
type NodeRing struct {
	// name of the CaptureRing.
	//
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// uid of the CaptureRing: a ring that was deleted and made again is another ring.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid,omitempty"`

	// version of the entry. An agent that knows only lower ones refuses the entry, with the reason AgentTooOld.
	//
	// +optional
	Version int32 `json:"version,omitempty"`

	// revision is the same for entries that ask for the same. The agent reports which one it acted upon.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Revision string `json:"revision,omitempty"`

	// awaited says that the node's agent reported when the node was told of this revision. The rollout waits for its answer, even if it has
	// become silent since.
	//
	// +optional
	Awaited bool `json:"awaited,omitempty"`

	// worked says that an earlier revision worked on the node when it was told of this one, or of one in between that did not. Where none
	// ever worked nothing is lost by this one: the rollout waits for the agent's answer, and not for it to be good.
	//
	// +optional
	Worked bool `json:"worked,omitempty"`

	// spec of the CaptureRing, as the API server accepted it there, without its rollout.
	//
	// +required
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec CaptureRingSpec `json:"spec"`
}

// NodeCluster is a Cluster as one node shall have it: spec.rings names only rings of this node.
type NodeCluster struct {
	// name of the Cluster.
	//
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// uid of the Cluster.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid,omitempty"`

	// version of the entry, as a ring's.
	//
	// +optional
	Version int32 `json:"version,omitempty"`

	// spec of the Cluster, as the API server accepted it there.
	//
	// +required
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec ClusterSpec `json:"spec"`
}

// NodeEntryVersion is the version of the entries that this build writes and understands. It is raised with every field of a
// ring or Cluster that an agent must not ignore.
const NodeEntryVersion = 1

// NodeCaptureSpec is a node's whole desired state, written by the operator. The specs in its lists have no schema: the API
// server checked them when people wrote them, and walking them again for each of thousands of nodes is a good part of what a
// write costs it. The agent looks at them anyway.
type NodeCaptureSpec struct {
	// rings is the list of the node's CaptureRings, by name.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Rings []NodeRing `json:"rings,omitempty"`

	// clusters is the list of the node's Clusters, by name. Their rings are only those of this node.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Clusters []NodeCluster `json:"clusters,omitempty"`

	// Undecodable says why the stored spec could not be decoded; then the rest is empty. It is not stored.
	Undecodable string `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler. It fails for no spec but notes the problem in Undecodable: a list or a watch of
// thousands of NodeCaptures would end at the first of them that has, say, a text for a number.
func (s *NodeCaptureSpec) UnmarshalJSON(text []byte) error {
	type plain NodeCaptureSpec
	var decoded plain
	if err := json.Unmarshal(text, &decoded); err != nil {
		decoded = plain{Undecodable: err.Error()}
	}
	*s = NodeCaptureSpec(decoded)
	return nil
}

// DropCount is a number of packets dropped for one reason.
type DropCount struct {
	// reason is full, unattended, nomem.
	//
	// +required
	Reason string `json:"reason"`
	// packets dropped.
	//
	// +required
	Packets int64 `json:"packets"`
}

// QueueStatus is a queue's state and account.
type QueueStatus struct {
	// queue is its number.
	//
	// +required
	Queue int32 `json:"queue"`
	// attached says that a consumer reads it.
	//
	// +required
	Attached bool `json:"attached"`
	// consumer is the pod that it is allocated to, as namespace/name.
	//
	// +optional
	Consumer string `json:"consumer,omitempty"`
	// consumerAsOf is the time at which the kubelet last said that the queue is allocated to this consumer. It is set only
	// while the kubelet does not say whose the queue is, as while it restarts: the consumer is then the last known one.
	//
	// +optional
	ConsumerAsOf *metav1.Time `json:"consumerAsOf,omitempty"`
	// holder is the process that reads it although it is allocated to no pod, for people.
	//
	// +optional
	Holder string `json:"holder,omitempty"`
	// delivered packets.
	//
	// +required
	Delivered int64 `json:"delivered"`
	// deliveredBytes that consumers can read; on the wire they were deliveredBytes + truncatedBytes.
	//
	// +required
	DeliveredBytes int64 `json:"deliveredBytes"`
	// truncated packets: of those delivered, the ones that the snap length has shortened.
	//
	// +optional
	Truncated int64 `json:"truncated,omitempty"`
	// truncatedBytes that these lack.
	//
	// +optional
	TruncatedBytes int64 `json:"truncatedBytes,omitempty"`
	// dropped packets, by reason; a reason for which none was dropped is not listed.
	//
	// +optional
	// +listType=atomic
	Dropped []DropCount `json:"dropped,omitempty"`
	// unreadBytes that the consumer has not released.
	//
	// +required
	UnreadBytes int64 `json:"unreadBytes"`
}

// QueueTotals is the account of several queues of a set.
type QueueTotals struct {
	// queues that these are.
	//
	// +required
	Queues int32 `json:"queues"`
	// attached is how many of them a consumer reads.
	//
	// +required
	Attached int32 `json:"attached"`
	// unnamed is how many of them have a consumer, or are allocated to a pod, that is not named by the queues that are listed.
	//
	// +optional
	Unnamed int32 `json:"unnamed,omitempty"`
	// delivered packets.
	//
	// +required
	Delivered int64 `json:"delivered"`
	// deliveredBytes that consumers can read; on the wire they were deliveredBytes + truncatedBytes.
	//
	// +required
	DeliveredBytes int64 `json:"deliveredBytes"`
	// truncated packets: of those delivered, the ones that the snap length has shortened.
	//
	// +optional
	Truncated int64 `json:"truncated,omitempty"`
	// truncatedBytes that these lack.
	//
	// +optional
	TruncatedBytes int64 `json:"truncatedBytes,omitempty"`
	// dropped packets, by reason; a reason for which none was dropped is not listed.
	//
	// +optional
	// +listType=atomic
	Dropped []DropCount `json:"dropped,omitempty"`
	// unreadBytes that the consumers have not released.
	//
	// +required
	UnreadBytes int64 `json:"unreadBytes"`
}

// NodeRingStatus is a ring's state on the node.
// seen = filtered + sampledOut + reflected + absorbed + directed + passed.
type NodeRingStatus struct {
	// name of the CaptureRing.
	//
	// +required
	Name string `json:"name"`
	// engine that captures.
	//
	// +required
	Engine Engine `json:"engine"`
	// engineReason is why it has that engine.
	//
	// +optional
	EngineReason string `json:"engineReason,omitempty"`
	// interfaces that are tapped.
	//
	// +optional
	// +listType=atomic
	Interfaces []string `json:"interfaces,omitempty"`
	// podsNotTapped are pods that spec.interfaces[].podSelector selects and that are not captured, each with the reason; of
	// more than 16 the first 16.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	PodsNotTapped []string `json:"podsNotTapped,omitempty"`
	// observedRevision is the revision of the entry that this is about; absent of agents that know none.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ObservedRevision string `json:"observedRevision,omitempty"`
	// ready says that it is programmed as the spec asks.
	//
	// +required
	Ready bool `json:"ready"`
	// reason and message when it is not ready.
	//
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says in words what is wrong, on what, and what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// transparentMode in force; it differs from the spec's only with transparentFallback Stack.
	//
	// +optional
	TransparentMode int32 `json:"transparentMode,omitempty"`
	// transparentReason says why it differs.
	//
	// +optional
	TransparentReason string `json:"transparentReason,omitempty"`

	// truncating says that packets were cut in the last ten minutes although spec.snapLength of the ring is not given.
	//
	// +optional
	Truncating bool `json:"truncating,omitempty"`

	// seen packets and bytes on the wire, by the ring's taps.
	//
	// +required
	Seen int64 `json:"seen"`
	// seenBytes are their bytes on the wire.
	//
	// +required
	SeenBytes int64 `json:"seenBytes"`
	// filtered packets: the filter did not pass them.
	//
	// +required
	Filtered int64 `json:"filtered"`
	// sampledOut packets.
	//
	// +required
	SampledOut int64 `json:"sampledOut"`
	// reflected packets: a rule sent them out of another interface.
	//
	// +optional
	Reflected int64 `json:"reflected,omitempty"`
	// absorbed packets: fragments that became part of another packet.
	//
	// +optional
	Absorbed int64 `json:"absorbed,omitempty"`
	// directed packets: a rule sent them to a queue that it names.
	//
	// +optional
	Directed int64 `json:"directed,omitempty"`
	// passed to the ring's own queues and its Clusters.
	//
	// +required
	Passed int64 `json:"passed"`
}

// NodeClusterStatus is the state of a set of queues on the node: a Cluster's, or a ring's own.
// The sum of passed over its rings, of what rules directed to its queues, and duplicated, is the sum of delivered and
// dropped over its queues.
type NodeClusterStatus struct {
	// name of the Cluster, or of the CaptureRing whose own queues they are.
	//
	// +required
	Name string `json:"name"`
	// ready says that its queues are there and can be requested.
	//
	// +required
	Ready bool `json:"ready"`
	// reason is why it is not ready, in one word.
	//
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says in words what is wrong, on what, and what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`
	// memoryBytes that its queues take.
	//
	// +required
	MemoryBytes int64 `json:"memoryBytes"`
	// duplicated packets: second copies, by balance BothEnds.
	//
	// +optional
	Duplicated int64 `json:"duplicated,omitempty"`
	// spread packets: those that another queue got by whenFull or whenUnattended.
	//
	// +optional
	Spread int64 `json:"spread,omitempty"`
	// queues are listed by number. Of a node with more than 512 queues 512 are listed over all its sets: of each consumer one, then those
	// that lost most, then those that are read.
	//
	// +optional
	// +listType=atomic
	Queues []QueueStatus `json:"queues,omitempty"`
	// unlisted is the account of the set's queues that are not listed; absent where all are. The agent's metrics have each
	// queue's.
	//
	// +optional
	Unlisted *QueueTotals `json:"unlisted,omitempty"`
}

// InterfaceStatus is the state of a captured interface.
type InterfaceStatus struct {
	// name of the interface.
	//
	// +kubebuilder:validation:MaxLength=15
	// +required
	Name string `json:"name"`
	// pod whose interface's other side it is, as namespace/name, where a ring selects it by podSelector, or pod that has it, of a pool.
	//
	// +optional
	Pod string `json:"pod,omitempty"`
	// driver that is bound to it.
	//
	// +optional
	Driver string `json:"driver,omitempty"`
	// aware says that the driver is capture-aware.
	//
	// +required
	Aware bool `json:"aware"`
	// stockDriver that was replaced.
	//
	// +optional
	StockDriver string `json:"stockDriver,omitempty"`
	// rxQueues that it has.
	//
	// +optional
	RxQueues int32 `json:"rxQueues,omitempty"`
	// rings that tap it.
	//
	// +optional
	// +listType=atomic
	Rings []string `json:"rings,omitempty"`
	// reason and message when its driver could not be had as asked for.
	//
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says in words what is wrong, on what, and what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// settings that rings ask for.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Settings []InterfaceSetting `json:"settings,omitempty"`
}

// InterfaceSetting is one setting of an interface, as asked for and as it is.
type InterfaceSetting struct {
	// name is the field of spec.nic, such as offloads, rxRingSize or rss.hash.
	//
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
	// wanted and actual value.
	//
	// +required
	Wanted string `json:"wanted"`
	// actual is what the interface has.
	//
	// +required
	Actual string `json:"actual"`
	// ring whose wish it is.
	//
	// +required
	Ring string `json:"ring"`
	// reason when it is not as wanted: NotSupported, OutOfRange, Conflict or Failed.
	//
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says in words why it has something else.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// NodeAgent is where the node's agent can be asked.
type NodeAgent struct {
	// namespace of its pod.
	//
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`
	// pod that it is.
	//
	// +kubebuilder:validation:MaxLength=253
	// +required
	Pod string `json:"pod"`
	// port of its metrics.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port"`
}

// NodeCaptureStatus is what the node's agent reports.
type NodeCaptureStatus struct {
	// conditions are Accepted, Programmed, Ready, ModuleReady.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// appliedGeneration is the generation of the spec that was acted upon last, and that rings and clusters below
	// report on, whether or not all of it could be done.
	//
	// +optional
	AppliedGeneration int64 `json:"appliedGeneration"`

	// engine that serves the node's rings with engine Auto, and why.
	//
	// +optional
	Engine Engine `json:"engine,omitempty"`
	// engineReason is why the node has that engine.
	//
	// +optional
	EngineReason string `json:"engineReason,omitempty"`

	// moduleVersion that is loaded.
	//
	// +optional
	ModuleVersion string `json:"moduleVersion,omitempty"`
	// moduleAvailable is the module that the agent's image has, when ringcap loaded another one before: it waits for an
	// upgrade.
	//
	// +optional
	ModuleAvailable string `json:"moduleAvailable,omitempty"`
	// kernelRelease is what uname -r says.
	//
	// +optional
	KernelRelease string `json:"kernelRelease,omitempty"`
	// bootID is another one after each boot: counters have begun anew.
	//
	// +optional
	BootID string `json:"bootID,omitempty"`

	// observedTime of the counters. Counters alone are written every five minutes, all else when it changes. In between the
	// agent renews the Lease ringcap-agent-NODE in its namespace; where it cannot, it writes the counters once a minute. The
	// node counts as not reporting when neither is younger than three minutes. `ringcap status` and `ringcap top` ask the
	// agents for the present counters.
	//
	// +optional
	ObservedTime *metav1.Time `json:"observedTime,omitempty"`

	// agent is the pod that says the present counters, at /counters of its metrics' port; absent where none can be asked.
	//
	// +optional
	Agent *NodeAgent `json:"agent,omitempty"`

	// rings are the node's CaptureRings as they are, by name.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	Rings []NodeRingStatus `json:"rings,omitempty"`

	// clusters are the node's sets of queues as they are, by name.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	Clusters []NodeClusterStatus `json:"clusters,omitempty"`

	// interfaces that are captured.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1024
	Interfaces []InterfaceStatus `json:"interfaces,omitempty"`
}

// NodeCapture is what one node shall capture and captures; its name is the node's.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=nc,categories=ringcap
// +kubebuilder:printcolumn:name="Engine",type=string,JSONPath=`.status.engine`
// +kubebuilder:printcolumn:name="Module",type=string,JSONPath=`.status.conditions[?(@.type=="ModuleReady")].reason`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Generation",type=integer,priority=1,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Applied",type=integer,priority=1,JSONPath=`.status.appliedGeneration`
// +kubebuilder:printcolumn:name="Kernel",type=string,priority=1,JSONPath=`.status.kernelRelease`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeCapture struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is as of every object; the name is the node's.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the operator's, as a whole: who wrote which of its fields is not remembered.
	//
	// +optional
	// +structType=atomic
	Spec NodeCaptureSpec `json:"spec,omitempty"`
	// status is the agent's, as a whole.
	//
	// +optional
	// +structType=atomic
	Status NodeCaptureStatus `json:"status,omitempty"`
}

// NodeCaptureList is a list of NodeCaptures.
//
// +kubebuilder:object:root=true
type NodeCaptureList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeCapture `json:"items"`
}
