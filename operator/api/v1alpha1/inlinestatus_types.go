// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// InlineRingStatus is the state of a ring in line, where seen = bridged + lost + passed of the ring.
type InlineRingStatus struct {
	// pairs between which packets pass, as a-b.
	//
	// +optional
	// +listType=atomic
	Pairs []string `json:"pairs,omitempty"`
	// bridged packets, which left at once because the ring's filter does not pass them to its queues.
	//
	// +optional
	Bridged int64 `json:"bridged,omitempty"`
	// lost of these packets, by reason: toolong (longer than the other interface's MTU), refused (by the other interface, as when
	// its queue is full), nomem, down (the other interface is down, or gone).
	//
	// +optional
	// +listType=atomic
	Lost []DropCount `json:"lost,omitempty"`
}

// InlineQueueStatus is the state of a queue of a ring in line. The packets that its ring passed to it are the sum of held, passed,
// replaced, blocked, unanswered, bypassed, stopped, shuntPassed, shuntBlocked and lost. An event is unattended (the queue has no
// consumer), full (it has no room) or hung (a packet has waited for hungAfter).
type InlineQueueStatus struct {
	// event is why the consumer does not decide on packets now. It is not set while the consumer decides.
	//
	// +optional
	Event string `json:"event,omitempty"`
	// blocking is true if packets are dropped at the event. Otherwise they bypass the consumer.
	//
	// +optional
	Blocking bool `json:"blocking,omitempty"`
	// since is when packets began to go past the consumer.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// sincePackets is the number of packets since then.
	//
	// +optional
	SincePackets int64 `json:"sincePackets,omitempty"`
	// episodes is how often packets began to go past the consumer.
	//
	// +optional
	Episodes int64 `json:"episodes,omitempty"`
	// episodeMilliseconds is how long they did in all.
	//
	// +optional
	EpisodeMilliseconds int64 `json:"episodeMilliseconds,omitempty"`
	// held packets, which wait for a verdict now.
	//
	// +optional
	Held int64 `json:"held,omitempty"`
	// passed packets: the consumer let them pass unchanged.
	//
	// +optional
	Passed int64 `json:"passed,omitempty"`
	// replaced packets: the consumer sent others in their place.
	//
	// +optional
	Replaced int64 `json:"replaced,omitempty"`
	// blocked packets: the consumer did not let them pass.
	//
	// +optional
	Blocked int64 `json:"blocked,omitempty"`
	// unanswered packets: the consumer released them without a verdict, and they did not leave.
	//
	// +optional
	Unanswered int64 `json:"unanswered,omitempty"`
	// bypassed packets, which left without a verdict, by event.
	//
	// +optional
	// +listType=atomic
	Bypassed []DropCount `json:"bypassed,omitempty"`
	// stopped packets, which were dropped without a verdict, by event.
	//
	// +optional
	// +listType=atomic
	Stopped []DropCount `json:"stopped,omitempty"`
	// lost packets, which were to leave, by the reasons of a ring's lost.
	//
	// +optional
	// +listType=atomic
	Lost []DropCount `json:"lost,omitempty"`
	// shuntPassed packets, of flows that the consumer has shunted, which left without being asked about.
	//
	// +optional
	ShuntPassed int64 `json:"shuntPassed,omitempty"`
	// shuntBlocked packets, of flows that the consumer has shunted, which did not leave.
	//
	// +optional
	ShuntBlocked int64 `json:"shuntBlocked,omitempty"`
	// injected packets: the consumer's own, such as TCP resets, that left. They are in no sum.
	//
	// +optional
	Injected int64 `json:"injected,omitempty"`
	// notInjected packets: the consumer's own that did not leave. They were longer than the interface's MTU, or it refused them,
	// or was down or gone. They are in no sum.
	//
	// +optional
	NotInjected int64 `json:"notInjected,omitempty"`
	// lateVerdicts were on packets that an event had taken.
	//
	// +optional
	LateVerdicts int64 `json:"lateVerdicts,omitempty"`
	// unknownVerdicts were on what never waited, or was answered before.
	//
	// +optional
	UnknownVerdicts int64 `json:"unknownVerdicts,omitempty"`
}
