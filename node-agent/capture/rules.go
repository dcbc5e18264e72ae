// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"net/netip"
	"slices"
	"time"
)

// RuleSet is what a ring does to packets that its filter passed: exact rules first, then the wildcard rule of the greatest
// priority that matches, then Default; what passes so is searched for Patterns. The zero value passes everything.
type RuleSet struct {
	Exact    []ExactRule
	Wildcard []WildcardRule
	// Default is for packets that match no rule: pass, drop, or reflect to DefaultTarget.
	Default       Action
	DefaultTarget Target
	Patterns      []Pattern
	// DropMatching drops what contains a pattern; without it only what contains one passes.
	DropMatching bool
}

// Empty reports whether the set lets everything pass.
func (s RuleSet) Empty() bool {
	return len(s.Exact) == 0 && len(s.Wildcard) == 0 && len(s.Patterns) == 0 && s.Default == ActionPass
}

// Targets lists what the set sends packets to, each once: the default's first, then those of the rules in order. Engines
// number them by their indexes.
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

// TargetNumber is the index of a target in the list, 0 for a zero target.
func TargetNumber(targets []Target, target Target) int { return max(slices.Index(targets, target), 0) }

// Action is what becomes of a packet. The values are those of enum ringcap_action.
type Action uint8

// The actions: ActionLearn passes, and passes this flow by an exact rule from now on; ActionQueue and ActionReflect send it
// to the rule's target and nowhere else.
const (
	ActionPass Action = iota
	ActionDrop
	ActionLearn
	ActionQueue
	ActionReflect
)

// Target is a queue, for ActionQueue, or an interface, for ActionReflect; else zero.
type Target struct {
	Queue     QueueID
	Interface string
	Index     int
}

// ExactRule is one flow in both directions. Ports are 0 where the protocol has none, VLAN is 0 for untagged packets.
type ExactRule struct {
	Source, Destination netip.AddrPort
	Protocol            uint8
	VLAN                uint16
	Action              Action
	Target              Target
	// Idle is the time without a packet after which the rule goes, in whole seconds, 0 = never.
	Idle time.Duration
}

// WildcardRule is a rule with a Match that may leave out fields.
type WildcardRule struct {
	// ID is unique in the set and not 0; among rules of the same priority the smallest decides.
	ID       uint32
	Priority uint32
	// Name is for metrics; a rule without one has none.
	Name  string
	Match Match
	// Both also matches with source and destination exchanged.
	Both   bool
	Action Action
	Target Target
	// Idle as in ExactRule; ActionLearn gives it to what is learnt.
	Idle time.Duration
}

// Match is what a packet is compared with. A nil pointer or zero prefix is not compared; a packet that lacks a field that is
// does not match.
type Match struct {
	SourceMAC, DestinationMAC *[6]byte
	// EtherType is the one after all VLAN tags. VLAN is the outermost id, InnerVLAN the second; 0 = there is none.
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

// TCPFlags matches where the flags of the TCP header, masked, are Flags.
type TCPFlags struct{ Flags, Mask uint8 }

// Pattern is looked for in a packet's payload.
type Pattern struct {
	// Name is for metrics; a pattern without one has none.
	Name string
	// Bytes are 1 to 255.
	Bytes []byte
	// IgnoreCase takes ASCII letters of either case for the same.
	IgnoreCase bool
	// Offset is the lowest offset in the payload where it may begin; Depth the bytes from there on in which it must lie, 0 = to
	// the end.
	Offset, Depth uint32
}

// Plugin is a filter that a kernel module has registered.
type Plugin struct {
	// Name that it has registered, 1 to 31 bytes.
	Name string
	// Config is the plugin's own, at most 32768 bytes.
	Config []byte
}
