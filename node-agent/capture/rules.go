// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"net/netip"
	"slices"
	"time"
)

// RuleSet is what a ring does to packets that its filter passed. Exact rules come first, then the matching wildcard
// rule with the greatest priority, then Default. Packets that pass are searched for Patterns. The zero value passes
// everything.
type RuleSet struct {
	Exact    []ExactRule
	Wildcard []WildcardRule
	// Default is for packets that match no rule: pass, drop, or reflect to DefaultTarget.
	Default       Action
	DefaultTarget Target
	Patterns      []Pattern
	// DropMatching drops packets that contain a pattern. Without it, only such packets pass.
	DropMatching bool
}

// Empty reports whether the set lets everything pass.
func (s RuleSet) Empty() bool {
	return len(s.Exact) == 0 && len(s.Wildcard) == 0 && len(s.Patterns) == 0 && s.Default == ActionPass
}

// Targets lists where the set sends packets, each target once: the default's first, then those of the rules in order.
// Engines number them by their indexes.
func (s RuleSet) Targets() []Target {
	var targets []Target
	add := func(target Target) {
		if target != (Target{}) && !slices.Contains(targets, target) {
			targets = append(targets, target)
		}
	}
	add(s.DefaultTarget)
	for _, rule := range s.Exact {
		add(rule.Target)
	}
	for _, rule := range s.Wildcard {
		add(rule.Target)
	}
	return targets
}

// TargetNumber returns the index of a target in the list, 0 for a zero target.
func TargetNumber(targets []Target, target Target) int { return max(slices.Index(targets, target), 0) }

// Action is the treatment of a packet. The values are those of enum ringcap_action.
type Action uint8

// The actions. ActionLearn passes the packet, and from now on passes its flow by an exact rule. ActionQueue and
// ActionReflect send it only to the rule's target.
const (
	ActionPass Action = iota
	ActionDrop
	ActionLearn
	ActionQueue
	ActionReflect
)

// Target is a queue, for ActionQueue, or an interface, for ActionReflect. Otherwise it is zero.
type Target struct {
	Queue     QueueID
	Interface string
	Index     int
}

// ExactRule is one flow in both directions. Ports are 0 if the protocol has none. VLAN is 0 for untagged packets.
type ExactRule struct {
	Source, Destination netip.AddrPort
	Protocol            uint8
	VLAN                uint16
	Action              Action
	Target              Target
	// Idle is the time without a packet after which the rule is removed, in whole seconds, 0 = never.
	Idle time.Duration
}

// WildcardRule is a rule with a Match that may leave out fields.
type WildcardRule struct {
	// ID is unique in the set and not 0. Among rules of the same priority the smallest ID decides.
	ID       uint32
	Priority uint32
	// Name is for metrics; a rule without a name has none.
	Name  string
	Match Match
	// Both also matches with source and destination exchanged.
	Both   bool
	Action Action
	Target Target
	// Idle is as in ExactRule. ActionLearn gives it to the learnt rules.
	Idle time.Duration
}

// Match holds the values that a packet is compared with. A nil pointer or zero prefix is not compared. A packet that
// lacks a compared field does not match.
type Match struct {
	SourceMAC, DestinationMAC *[6]byte
	// EtherType is the one after all VLAN tags. VLAN is the outermost id, InnerVLAN the second; 0 = no tag.
	EtherType, VLAN, InnerVLAN *uint16
	Protocol                   *uint8
	Source, Destination        netip.Prefix
	SourcePorts                *PortRange
	DestinationPorts           *PortRange
	TCPFlags                   *TCPFlags
	// TunnelID is a VXLAN or Geneve VNI, GRE key, ERSPAN session or GTP-U TEID.
	TunnelID                      *uint32
	InnerSource, InnerDestination netip.Prefix
}

// PortRange is from First to Last, both included.
type PortRange struct{ First, Last uint16 }

// TCPFlags matches if the flags of the TCP header, masked, are Flags.
type TCPFlags struct{ Flags, Mask uint8 }

// Pattern is searched for in a packet's payload.
type Pattern struct {
	// Name is for metrics; a pattern without a name has none.
	Name string
	// Bytes are 1 to 255.
	Bytes []byte
	// IgnoreCase treats ASCII letters of either case as equal.
	IgnoreCase bool
	// Offset is the lowest offset in the payload at which it may begin. Depth is the number of bytes from there on in
	// which it must lie, 0 = to the end.
	Offset, Depth uint32
}

// Plugin is a filter that a kernel module has registered.
type Plugin struct {
	// Name that it has registered, 1 to 31 bytes.
	Name string
	// Config is for the plugin, at most 32768 bytes.
	Config []byte
}
