// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeRing is a CaptureRing as one node should have it.
type NodeRing struct {
	// name of the CaptureRing.
	//
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// uid of the CaptureRing: a ring that was deleted and created again is another ring.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid,omitempty"`

	// version of the entry. An agent that supports only lower versions refuses the entry, with the reason AgentTooOld.
	//
	// +optional
	Version int32 `json:"version,omitempty"`

	// revision is equal for entries with equal content. The agent reports which revision it acted on.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Revision string `json:"revision,omitempty"`

	// awaited is set if the node's agent was reporting when the node got this revision. The rollout waits for its answer, even
	// if it has become silent since.
	//
	// +optional
	Awaited bool `json:"awaited,omitempty"`

	// worked is set if an earlier revision worked on the node when the node got this one, or one in between that did not work.
	// If none ever worked, this revision can break nothing: the rollout waits for the agent's answer, but the answer need not be
	// good.
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

// NodeCluster is a Cluster as one node should have it: spec.rings names only rings of this node.
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

	// version of the entry, as in a ring's entry.
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

// NodeEntryVersion is the version of the entries that this build writes and supports. It is raised with each new field of a ring
// or Cluster that an agent must not ignore.
const NodeEntryVersion = 1

// NodeCaptureSpec is a node's whole desired state, written by the operator. The specs in its lists have no schema: the API
// server validated them in the CaptureRings and Clusters, and to validate them again for each of thousands of nodes makes up a
// large part of the cost of a write. The agent validates them in any case.
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

	// Undecodable is the error when the stored spec could not be decoded; the other fields are empty then. It is not stored.
	Undecodable string `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler. It accepts every spec and notes a problem in Undecodable: otherwise a list or watch
// of thousands of NodeCaptures would fail at the first one with, for example, a string for a number.
func (s *NodeCaptureSpec) UnmarshalJSON(text []byte) error {
	type plain NodeCaptureSpec
	var decoded plain
	if err := json.Unmarshal(text, &decoded); err != nil {
		decoded = plain{Undecodable: err.Error()}
	}
	*s = NodeCaptureSpec(decoded)
	return nil
}

// DropCount is the number of packets dropped for one reason.
type DropCount struct {
	// reason is full, unattended, nomem or hung; in the lists of inline, as these say.
	//
	// +required
	Reason string `json:"reason"`
	// packets dropped.
	//
	// +required
	Packets int64 `json:"packets"`
}

// QueueStatus is a queue's state and counters. What rings passed to it is delivered + shunted + dropped.
type QueueStatus struct {
	// queue is its number.
	//
	// +required
	Queue int32 `json:"queue"`
	// attached is true if a consumer reads it.
	//
	// +required
	Attached bool `json:"attached"`
	// consumer is the pod that the queue is allocated to, as namespace/name.
	//
	// +optional
	Consumer string `json:"consumer,omitempty"`
	// consumerAsOf is the last time at which the kubelet reported that the queue is allocated to this consumer. It is set only
	// while the kubelet does not report the queue's allocation, for example while it restarts: consumer is then the last known
	// one.
	//
	// +optional
	ConsumerAsOf *metav1.Time `json:"consumerAsOf,omitempty"`
	// holder is the process that reads the queue although the queue is allocated to no pod, for display.
	//
	// +optional
	Holder string `json:"holder,omitempty"`
	// delivered packets.
	//
	// +required
	Delivered int64 `json:"delivered"`
	// deliveredBytes that consumers can read; the packets had deliveredBytes + truncatedBytes on the wire.
	//
	// +required
	DeliveredBytes int64 `json:"deliveredBytes"`
	// truncated packets: the delivered packets that were cut to the snap length.
	//
	// +optional
	Truncated int64 `json:"truncated,omitempty"`
	// truncatedBytes were cut off these packets.
	//
	// +optional
	TruncatedBytes int64 `json:"truncatedBytes,omitempty"`
	// shunted packets, which were not delivered, because the consumer has shunted their flows.
	//
	// +optional
	Shunted int64 `json:"shunted,omitempty"`
	// shuntedBytes that these packets had on the wire.
	//
	// +optional
	ShuntedBytes int64 `json:"shuntedBytes,omitempty"`
	// shuntedFlows that the consumer has shunted now.
	//
	// +optional
	ShuntedFlows int64 `json:"shuntedFlows,omitempty"`
	// shuntsLost are shunted flows whose end no consumer was told of.
	//
	// +optional
	ShuntsLost int64 `json:"shuntsLost,omitempty"`
	// dropped packets, by reason; reasons without dropped packets are not listed.
	//
	// +optional
	// +listType=atomic
	Dropped []DropCount `json:"dropped,omitempty"`
	// unreadBytes that the consumer has not released.
	//
	// +required
	UnreadBytes int64 `json:"unreadBytes"`
	// inline is set for a queue of a ring in line. What its consumer did not get counts as dropped too, even if it left.
	//
	// +optional
	Inline *InlineQueueStatus `json:"inline,omitempty"`
}

// QueueTotals sums up the counters of several queues of a set.
type QueueTotals struct {
	// queues is the number of queues in the sum.
	//
	// +required
	Queues int32 `json:"queues"`
	// attached is the number of these queues that a consumer reads.
	//
	// +required
	Attached int32 `json:"attached"`
	// unnamed is the number of these queues with a consumer or an allocation to a pod that none of the listed queues names.
	//
	// +optional
	Unnamed int32 `json:"unnamed,omitempty"`
	// delivered packets.
	//
	// +required
	Delivered int64 `json:"delivered"`
	// deliveredBytes that consumers can read; the packets had deliveredBytes + truncatedBytes on the wire.
	//
	// +required
	DeliveredBytes int64 `json:"deliveredBytes"`
	// truncated packets: the delivered packets that were cut to the snap length.
	//
	// +optional
	Truncated int64 `json:"truncated,omitempty"`
	// truncatedBytes were cut off these packets.
	//
	// +optional
	TruncatedBytes int64 `json:"truncatedBytes,omitempty"`
	// shunted packets, which were not delivered, because consumers have shunted their flows.
	//
	// +optional
	Shunted int64 `json:"shunted,omitempty"`
	// shuntedBytes that these packets had on the wire.
	//
	// +optional
	ShuntedBytes int64 `json:"shuntedBytes,omitempty"`
	// shuntedFlows that consumers have shunted now.
	//
	// +optional
	ShuntedFlows int64 `json:"shuntedFlows,omitempty"`
	// shuntsLost are shunted flows whose end no consumer was told of.
	//
	// +optional
	ShuntsLost int64 `json:"shuntsLost,omitempty"`
	// dropped packets, by reason; reasons without dropped packets are not listed.
	//
	// +optional
	// +listType=atomic
	Dropped []DropCount `json:"dropped,omitempty"`
	// unreadBytes that the consumers have not released.
	//
	// +required
	UnreadBytes int64 `json:"unreadBytes"`
}

// NodeRingStatus is a ring's state on the node, where seen = filtered + sampledOut + reflected + absorbed + directed + passed.
type NodeRingStatus struct {
	// name of the CaptureRing.
	//
	// +required
	Name string `json:"name"`
	// engine that captures.
	//
	// +required
	Engine Engine `json:"engine"`
	// engineReason is why the ring has this engine.
	//
	// +optional
	EngineReason string `json:"engineReason,omitempty"`
	// interfaces that the ring captures.
	//
	// +optional
	// +listType=atomic
	Interfaces []string `json:"interfaces,omitempty"`
	// podsNotTapped lists pods that spec.interfaces[].podSelector selects and that are not captured, each with the reason; at
	// most 16.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	PodsNotTapped []string `json:"podsNotTapped,omitempty"`
	// observedRevision is the revision of the entry that this status describes; agents that do not support revisions leave it
	// out.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ObservedRevision string `json:"observedRevision,omitempty"`
	// ready is true if the ring is programmed as its spec asks.
	//
	// +required
	Ready bool `json:"ready"`
	// reason is why it is not ready, in one word.
	//
	// +optional
	Reason string `json:"reason,omitempty"`
	// message tells what is wrong, on what, and what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// transparentMode that is active. It differs from the spec's only with transparentFallback Stack.
	//
	// +optional
	TransparentMode int32 `json:"transparentMode,omitempty"`
	// transparentReason is why it differs.
	//
	// +optional
	TransparentReason string `json:"transparentReason,omitempty"`

	// truncating is true if packets were cut in the last ten minutes although the ring's spec.snapLength is not set.
	//
	// +optional
	Truncating bool `json:"truncating,omitempty"`

	// seen packets, at the ring's interfaces.
	//
	// +required
	Seen int64 `json:"seen"`
	// seenBytes are their bytes on the wire.
	//
	// +required
	SeenBytes int64 `json:"seenBytes"`
	// filtered packets, which the filter did not pass.
	//
	// +required
	Filtered int64 `json:"filtered"`
	// sampledOut packets, which sampling left out.
	//
	// +required
	SampledOut int64 `json:"sampledOut"`
	// reflected packets, which a rule sent out of another interface.
	//
	// +optional
	Reflected int64 `json:"reflected,omitempty"`
	// absorbed packets: fragments that were reassembled into another packet.
	//
	// +optional
	Absorbed int64 `json:"absorbed,omitempty"`
	// directed packets, which a rule sent to the queue that it names.
	//
	// +optional
	Directed int64 `json:"directed,omitempty"`
	// passed packets, to the ring's own queues and its Clusters.
	//
	// +required
	Passed int64 `json:"passed"`

	// inline is set for a ring in line.
	//
	// +optional
	Inline *InlineRingStatus `json:"inline,omitempty"`
}

// NodeClusterStatus is the state of a set of queues on the node: a Cluster's, or a ring's own. The sum of passed over its rings,
// of the packets that rules directed to its queues, and of duplicated is the sum of delivered and dropped over its queues.
type NodeClusterStatus struct {
	// name of the Cluster, or of the CaptureRing whose own queues they are.
	//
	// +required
	Name string `json:"name"`
	// ready is true if its queues exist and can be requested.
	//
	// +required
	Ready bool `json:"ready"`
	// reason is why it is not ready, in one word.
	//
	// +optional
	Reason string `json:"reason,omitempty"`
	// message tells what is wrong, on what, and what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`
	// memoryBytes is the memory of its queues.
	//
	// +required
	MemoryBytes int64 `json:"memoryBytes"`
	// duplicated packets: second copies, which balance BothEnds makes.
	//
	// +optional
	Duplicated int64 `json:"duplicated,omitempty"`
	// spread packets, which another queue got because of whenFull or whenUnattended.
	//
	// +optional
	Spread int64 `json:"spread,omitempty"`
	// queues by number. On a node with more than 512 queues, 512 are listed in all sets together: first one queue of each
	// consumer, then the queues with the most dropped packets, then queues that are read.
	//
	// +optional
	// +listType=atomic
	Queues []QueueStatus `json:"queues,omitempty"`
	// unlisted sums up the set's queues that are not listed; absent if all are. The agent's metrics have each queue.
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
	// pod that the interface belongs to, as namespace/name: a pod that a ring selects by podSelector, or one that has a virtual
	// function of a pool.
	//
	// +optional
	Pod string `json:"pod,omitempty"`
	// driver that is bound to it.
	//
	// +optional
	Driver string `json:"driver,omitempty"`
	// aware is true if the driver is capture-aware.
	//
	// +required
	Aware bool `json:"aware"`
	// stockDriver is the driver that was replaced.
	//
	// +optional
	StockDriver string `json:"stockDriver,omitempty"`
	// rxQueues is the number of its RX queues.
	//
	// +optional
	RxQueues int32 `json:"rxQueues,omitempty"`
	// rings that capture it.
	//
	// +optional
	// +listType=atomic
	Rings []string `json:"rings,omitempty"`
	// reason is why it does not have the driver that a ring asks for, in one word.
	//
	// +optional
	Reason string `json:"reason,omitempty"`
	// message tells what is wrong, on what, and what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// settings that rings ask for, and their actual values.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Settings []InterfaceSetting `json:"settings,omitempty"`
}

// InterfaceSetting is one setting of an interface, as desired and as it is.
type InterfaceSetting struct {
	// name is the field of spec.nic, such as offloads, rxRingSize or rss.hash.
	//
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
	// wanted is the desired value.
	//
	// +required
	Wanted string `json:"wanted"`
	// actual is the value that the interface has.
	//
	// +required
	Actual string `json:"actual"`
	// ring that asks for the setting.
	//
	// +required
	Ring string `json:"ring"`
	// reason why actual differs from wanted: NotSupported, OutOfRange, Conflict or Failed.
	//
	// +optional
	Reason string `json:"reason,omitempty"`
	// message explains the reason.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// NodeAgent is the address of the node's agent.
type NodeAgent struct {
	// namespace of its pod.
	//
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`
	// pod that the agent runs in.
	//
	// +kubebuilder:validation:MaxLength=253
	// +required
	Pod string `json:"pod"`
	// port of the agent's metrics.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port"`
}

// NodeCaptureStatus is written by the node's agent.
type NodeCaptureStatus struct {
	// conditions are Accepted, Programmed, Ready, ModuleReady.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// appliedGeneration is the generation of the spec that the agent acted on last, and that rings and clusters below describe,
	// even if the agent could not apply all of it.
	//
	// +optional
	AppliedGeneration int64 `json:"appliedGeneration"`

	// engine of the node's rings with engine Auto.
	//
	// +optional
	Engine Engine `json:"engine,omitempty"`
	// engineReason is why these rings have this engine.
	//
	// +optional
	EngineReason string `json:"engineReason,omitempty"`

	// moduleVersion is the version of the kernel module that is loaded.
	//
	// +optional
	ModuleVersion string `json:"moduleVersion,omitempty"`
	// moduleAvailable is the version of the module in the agent's image, if ringcap loaded another version before; it waits for
	// an upgrade.
	//
	// +optional
	ModuleAvailable string `json:"moduleAvailable,omitempty"`
	// kernelRelease is the node's kernel, as uname -r prints it.
	//
	// +optional
	KernelRelease string `json:"kernelRelease,omitempty"`
	// bootID changes with each boot: counters start again at 0.
	//
	// +optional
	BootID string `json:"bootID,omitempty"`

	// observedTime is the time of the counters. The agent writes counters alone every five minutes, and everything else when it
	// changes. In between it renews the Lease ringcap-agent-NODE in its namespace; if it cannot, it writes the counters once a
	// minute. A node counts as not reporting when both observedTime and the Lease are older than three minutes. `ringcap status`
	// and `ringcap top` ask the agents for the current counters.
	//
	// +optional
	ObservedTime *metav1.Time `json:"observedTime,omitempty"`

	// agent is the pod that serves the current counters, at /counters of its metrics port; absent if no agent can be asked.
	//
	// +optional
	Agent *NodeAgent `json:"agent,omitempty"`

	// rings are the states of the node's CaptureRings, by name.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	Rings []NodeRingStatus `json:"rings,omitempty"`

	// clusters are the states of the node's sets of queues, by name.
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

// NodeCapture is what one node should capture and what it captures; its name is the node's name.
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
	// metadata is the standard object's metadata; the name is the node's name.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is owned by the operator, as a whole: the API server does not track who owns which of its fields.
	//
	// +optional
	// +structType=atomic
	Spec NodeCaptureSpec `json:"spec,omitempty"`
	// status is owned by the agent, as a whole.
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
