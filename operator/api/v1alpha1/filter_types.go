// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Filter selects packets. A packet must pass all parts, in this order: bpf, vlans, rules, payload, plugins.
//
// +kubebuilder:validation:XValidation:rule="!has(self.payloadAction) || has(self.payload)",message="payloadAction needs payload: give payload, or leave payloadAction out"
// +kubebuilder:validation:XValidation:rule="!has(self.defaultAction) || self.defaultAction != 'Drop' || has(self.rules) && size(self.rules) > 0 || oldSelf.hasValue() && has(oldSelf.value().defaultAction) && oldSelf.value().defaultAction == 'Drop'",optionalOldSelf=true,message="defaultAction Drop without rules drops everything: give rules that pass what is wanted, or leave defaultAction out"
type Filter struct {
	// bpf is a filter expression in the language of pcap-filter(7), up to 8192 bytes. It applies to the packet as it was on the
	// wire.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	BPF string `json:"bpf,omitempty"`

	// vlans that pass, as ids of the outermost tag, 0 to 4094; 0 stands for packets without a tag. Without it all pass.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4095
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=4094
	VLANs []int32 `json:"vlans,omitempty"`

	// rules decide on packets by their headers, up to 4096. Of the rules that match a packet, the one with the highest priority
	// decides; among equal ones the first in the list.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() && self == oldSelf.value() || self.all(r, !has(r.match) || (!has(r.match.source) || !isCIDR(r.match.source) || cidr(r.match.source) == cidr(r.match.source).masked()) && (!has(r.match.destination) || !isCIDR(r.match.destination) || cidr(r.match.destination) == cidr(r.match.destination).masked()) && (!has(r.match.innerSource) || !isCIDR(r.match.innerSource) || cidr(r.match.innerSource) == cidr(r.match.innerSource).masked()) && (!has(r.match.innerDestination) || !isCIDR(r.match.innerDestination) || cidr(r.match.innerDestination) == cidr(r.match.innerDestination).masked()))",optionalOldSelf=true,message="a prefix has bits behind its length: write 10.0.0.0/8 for the network of 10.0.0.1/8, or 10.0.0.1 for the one address"
	Rules []Rule `json:"rules,omitempty"`

	// defaultAction applies to packets that no rule matches: Pass (default) or Drop.
	//
	// +optional
	DefaultAction DefaultAction `json:"defaultAction,omitempty"`

	// payload lists patterns to find in the payload of packets that the rules passed, up to 4096. At most 64 of them may
	// end at one byte of a packet: patterns that are the same text, or the end of one another, count together.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Payload []PayloadPattern `json:"payload,omitempty"`

	// payloadAction is Pass (default), which passes only packets in which a pattern is found, or Drop, which drops these and
	// passes the others.
	//
	// +optional
	PayloadAction DefaultAction `json:"payloadAction,omitempty"`

	// plugins of the node's kernel to ask, in this order, up to 8.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Plugins []Plugin `json:"plugins,omitempty"`
}

// DefaultAction sets whether packets pass.
//
// +kubebuilder:validation:Enum=Pass;Drop
type DefaultAction string

// The actions.
const (
	DefaultActionPass DefaultAction = "Pass"
	DefaultActionDrop DefaultAction = "Drop"
)

// RuleAction is what happens to a packet that a rule decides on.
//
// +kubebuilder:validation:Enum=Pass;Drop;Learn;Queue;Reflect
type RuleAction string

// The actions.
const (
	// RulePass passes it to payload patterns, plugins, sampling and the queues.
	RulePass RuleAction = "Pass"
	// RuleDrop filters it.
	RuleDrop RuleAction = "Drop"
	// RuleLearn passes it, and from then on passes its flow, in both directions, without asking other rules.
	RuleLearn RuleAction = "Learn"
	// RuleQueue passes it to one queue instead of all others.
	RuleQueue RuleAction = "Queue"
	// RuleReflect sends it out of an interface, and nowhere else.
	RuleReflect RuleAction = "Reflect"
)

// Rule decides on the packets that it matches.
//
// +kubebuilder:validation:XValidation:rule="(self.action == 'Queue') == has(self.queue)",message="action Queue needs queue, the one to send to, and no other action has it"
// +kubebuilder:validation:XValidation:rule="(self.action == 'Reflect') == has(self.reflectTo)",message="action Reflect needs reflectTo, the interface to send out of, and no other action has it"
type Rule struct {
	// name of the rule in metrics, up to 63 bytes. Metrics do not count rules without a name.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// priority is 0 to 2147483647, by default 0. Of the rules that match a packet, the one with the highest priority decides.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Priority int32 `json:"priority,omitempty"`

	// action is Pass, Drop, Learn, Queue or Reflect.
	//
	// +required
	Action RuleAction `json:"action"`

	// match selects packets: those that match all fields that are set. Without it all packets match.
	//
	// +optional
	Match RuleMatch `json:"match,omitempty"`

	// queue that the action Queue sends packets to.
	//
	// +optional
	Queue *QueueReference `json:"queue,omitempty"`

	// reflectTo is the interface that the action Reflect sends packets out of.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	ReflectTo string `json:"reflectTo,omitempty"`

	// idleTimeout is the time without a matching packet after which the kernel removes the rule, 1s to 277h, in whole seconds.
	// For the action Learn, it applies to each learned flow. Without it nothing is removed.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('277h')",message="must be between 1s and 277h, in whole seconds, such as 30s or 1h"
	IdleTimeout *metav1.Duration `json:"idleTimeout,omitempty"`
}

// QueueReference names a queue of a Cluster or of a ring.
type QueueReference struct {
	// cluster is the name of the Cluster, or of the ring for one of the ring's own queues. It must be on the same nodes.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`

	// queue is the queue's number, 0 to 255; by default 0.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=255
	Queue int32 `json:"queue,omitempty"`
}

// RuleMatch selects packets: those that match all fields that are set. A packet that lacks such a field, as ICMP lacks ports,
// does not match.
type RuleMatch struct {
	// sourceMAC is the address, as aa:bb:cc:dd:ee:ff.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=17
	// +kubebuilder:validation:Pattern=`^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$`
	SourceMAC string `json:"sourceMAC,omitempty"`

	// destinationMAC is the address, as aa:bb:cc:dd:ee:ff.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=17
	// +kubebuilder:validation:Pattern=`^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$`
	DestinationMAC string `json:"destinationMAC,omitempty"`

	// etherType behind all VLAN tags, 1536 to 65535 (2048 is IPv4, 34525 IPv6, 2054 ARP).
	//
	// +optional
	// +kubebuilder:validation:Minimum=1536
	// +kubebuilder:validation:Maximum=65535
	EtherType *int32 `json:"etherType,omitempty"`

	// vlan is the id of the outermost VLAN tag, 0 to 4094; 0 is a packet without a tag.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4094
	VLAN *int32 `json:"vlan,omitempty"`

	// innerVLAN is the id of the second VLAN tag, 0 to 4094; 0 is a packet without a second.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4094
	InnerVLAN *int32 `json:"innerVLAN,omitempty"`

	// protocol above IP: TCP, UDP, SCTP, ICMP, ICMPv6, GRE, or a number from 0 to 255.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=6
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 255 : self in ['TCP', 'UDP', 'SCTP', 'ICMP', 'ICMPv6', 'GRE']",message="must be TCP, UDP, SCTP, ICMP, ICMPv6, GRE, or a protocol's number from 0 to 255"
	Protocol *intstr.IntOrString `json:"protocol,omitempty"`

	// source address, or prefix as 10.0.0.0/8 or 2001:db8::/32.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="isIP(self) || isCIDR(self)",message="must be an address or a prefix, such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32"
	Source string `json:"source,omitempty"`

	// destination address, or prefix.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="isIP(self) || isCIDR(self)",message="must be an address or a prefix, such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32"
	Destination string `json:"destination,omitempty"`

	// sourcePort of TCP, UDP or SCTP: a number from 0 to 65535, or a range as 1024-65535.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=11
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 65535 : self.matches('^[0-9]{1,5}-[0-9]{1,5}$')",message="must be a port from 0 to 65535, or a range such as 1024-65535"
	SourcePort *intstr.IntOrString `json:"sourcePort,omitempty"`

	// destinationPort of TCP, UDP or SCTP: a number from 0 to 65535, or a range.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=11
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 65535 : self.matches('^[0-9]{1,5}-[0-9]{1,5}$')",message="must be a port from 0 to 65535, or a range such as 1024-65535"
	DestinationPort *intstr.IntOrString `json:"destinationPort,omitempty"`

	// bidirectional also matches packets with source and destination (MAC, address, port, inner address) exchanged; by default
	// false.
	//
	// +optional
	Bidirectional bool `json:"bidirectional,omitempty"`

	// tcpFlagsSet are flags of the TCP header that must be set.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	TCPFlagsSet []TCPFlag `json:"tcpFlagsSet,omitempty"`

	// tcpFlagsClear are flags of the TCP header that must not be set.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	TCPFlagsClear []TCPFlag `json:"tcpFlagsClear,omitempty"`

	// tunnelID is the VNI of VXLAN and Geneve, the key of GRE, the session of ERSPAN or the TEID of GTP-U, 0 to 4294967295.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	TunnelID *int64 `json:"tunnelID,omitempty"`

	// innerSource is the source address or prefix of the packet in the tunnel.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="isIP(self) || isCIDR(self)",message="must be an address or a prefix, such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32"
	InnerSource string `json:"innerSource,omitempty"`

	// innerDestination is the destination address or prefix of the packet in the tunnel.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="isIP(self) || isCIDR(self)",message="must be an address or a prefix, such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32"
	InnerDestination string `json:"innerDestination,omitempty"`
}

// TCPFlag is a flag of the TCP header.
//
// +kubebuilder:validation:Enum=FIN;SYN;RST;PSH;ACK;URG;ECE;CWR
type TCPFlag string

// The flags, from the least bit on.
const (
	TCPFlagFIN TCPFlag = "FIN"
	TCPFlagSYN TCPFlag = "SYN"
	TCPFlagRST TCPFlag = "RST"
	TCPFlagPSH TCPFlag = "PSH"
	TCPFlagACK TCPFlag = "ACK"
	TCPFlagURG TCPFlag = "URG"
	TCPFlagECE TCPFlag = "ECE"
	TCPFlagCWR TCPFlag = "CWR"
)

// PayloadPattern is a literal to find in the payload of packets, which begins behind the TCP, UDP, SCTP or ICMP header.
//
// +kubebuilder:validation:XValidation:rule="has(self.text) != has(self.hex)",message="give the pattern as text or as hex, one of the two"
type PayloadPattern struct {
	// name of the pattern in metrics, up to 63 bytes. Metrics do not count patterns without a name.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// text to look for, 1 to 255 bytes of UTF-8.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Text string `json:"text,omitempty"`

	// hex is the bytes to look for, 1 to 255, as two hexadecimal digits each, such as 16030100.
	//
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=510
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9a-fA-F]{2})+$')",message="must be pairs of hexadecimal digits, such as 16030100"
	Hex string `json:"hex,omitempty"`

	// ignoreCase ignores the case of ASCII letters; by default false.
	//
	// +optional
	IgnoreCase bool `json:"ignoreCase,omitempty"`

	// offset is the first byte of the payload at which the pattern may begin, 0 to 65535; by default 0.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Offset int32 `json:"offset,omitempty"`

	// depth is the number of bytes from offset that the pattern must lie in, up to 65535. 0 (default) means up to the end of the
	// payload.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Depth int32 `json:"depth,omitempty"`
}

// Plugin is a parser or filter that a kernel module of the node offers.
type Plugin struct {
	// name of the plugin, as it is registered in the kernel, 1 to 31 bytes.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=31
	Name string `json:"name"`

	// config is passed to the plugin, up to 32768 bytes.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Config string `json:"config,omitempty"`
}

// Sampling captures one packet in N.
type Sampling struct {
	// oneIn is the N of one in N, 1 to 2147483647; 1 captures all.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	OneIn int32 `json:"oneIn"`

	// by is what is sampled: Packet (default) decides on each packet at random, Flow captures all packets of a flow or none.
	//
	// +optional
	// +kubebuilder:default=Packet
	By SampleBy `json:"by,omitempty"`
}

// SampleBy is what is sampled.
//
// +kubebuilder:validation:Enum=Packet;Flow
type SampleBy string

// The values of by.
const (
	SampleByPacket SampleBy = "Packet"
	SampleByFlow   SampleBy = "Flow"
)
