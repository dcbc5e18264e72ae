// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/operator/api/rules"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// The limits of a rule set, from the UAPI header and the CRD.
const (
	maxRules        = 4096
	maxPatternBytes = 255
	maxOffset       = 65535
	maxVLAN         = 4094
	maxPlugins      = 8
	maxIdle         = 1000000 * time.Second
)

var ruleActions = map[v1.RuleAction]capture.Action{
	v1.RulePass: capture.ActionPass, v1.RuleDrop: capture.ActionDrop, v1.RuleLearn: capture.ActionLearn,
	v1.RuleQueue: capture.ActionQueue, v1.RuleReflect: capture.ActionReflect,
}

var defaultActions = map[v1.DefaultAction]capture.Action{
	"": capture.ActionPass, v1.DefaultActionPass: capture.ActionPass, v1.DefaultActionDrop: capture.ActionDrop,
}

// rulesAreSound checks and makes the ring's VLANs, rule set and plugins.
func rulesAreSound(d *ringDraft) *problem {
	f := d.spec.Filter
	if f == nil {
		return nil
	}
	for _, part := range []func(*v1.Filter) error{d.readVLANs, d.readRules, d.readPayload, d.readPlugins} {
		if err := part(f); err != nil {
			return problemf(v1.ReasonInvalidFilter, "spec.filter.%v", err)
		}
	}
	return nil
}

func (d *ringDraft) readVLANs(f *v1.Filter) error {
	for i, id := range f.VLANs {
		if id < 0 || id > maxVLAN {
			return fmt.Errorf("vlans[%d] %d: must be 0 (no tag) to %d", i, id, maxVLAN)
		}
		d.vlans = append(d.vlans, uint16(id))
	}
	slices.Sort(d.vlans)
	d.vlans = slices.Compact(d.vlans)
	return nil
}

func (d *ringDraft) readRules(f *v1.Filter) error {
	if len(f.Rules) > maxRules {
		return fmt.Errorf("rules: %d of them; there can be %d", len(f.Rules), maxRules)
	}
	action, known := defaultActions[f.DefaultAction]
	if !known {
		return fmt.Errorf("defaultAction %q: must be Pass or Drop", f.DefaultAction)
	}
	d.rules.Default = action
	for i := range f.Rules {
		rule, err := d.readRule(&f.Rules[i])
		if err != nil {
			return fmt.Errorf("rules[%d]%s.%w", i, quoteName(f.Rules[i].Name), err)
		}
		rule.ID = uint32(i + 1)
		d.rules.Wildcard = append(d.rules.Wildcard, rule)
	}
	return nil
}

func quoteName(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", name)
}

func (d *ringDraft) readRule(r *v1.Rule) (rule capture.WildcardRule, err error) {
	match, err := rules.Parse(r.Match)
	if err != nil {
		return rule, err
	}
	action, known := ruleActions[r.Action]
	if !known {
		return rule, fmt.Errorf("action %q: must be Pass, Drop, Learn, Queue or Reflect", r.Action)
	}
	if r.Priority < 0 {
		return rule, fmt.Errorf("priority %d: must be 0 or more", r.Priority)
	}
	rule = capture.WildcardRule{Name: r.Name, Priority: uint32(r.Priority), Match: matchOf(match), Both: match.Both, Action: action}
	if r.IdleTimeout != nil {
		rule.Idle = r.IdleTimeout.Duration
		if rule.Idle < time.Second || rule.Idle > maxIdle || rule.Idle%time.Second != 0 {
			return rule, fmt.Errorf("idleTimeout %s: must be 1s to 277h, in whole seconds", rule.Idle)
		}
	}
	rule.Target, err = d.readTarget(r)
	return rule, err
}

func (d *ringDraft) readTarget(r *v1.Rule) (capture.Target, error) {
	switch r.Action {
	case v1.RuleQueue:
		return d.readQueue(r.Queue)
	case v1.RuleReflect:
		iface, there := d.facts.named(r.ReflectTo)
		if !there {
			return capture.Target{}, fmt.Errorf("reflectTo %q: this node has no such interface; it has %s",
				r.ReflectTo, listInterfaces(d.facts.Interfaces))
		}
		return capture.Target{Interface: r.ReflectTo, Index: iface.Index}, nil
	}
	return capture.Target{}, nil
}

func (d *ringDraft) readQueue(queue *v1.QueueReference) (capture.Target, error) {
	if queue == nil {
		return capture.Target{}, fmt.Errorf("queue: action Queue needs it: name the Cluster and the queue's number")
	}
	queues, there := d.queueCounts[queue.Cluster]
	switch {
	case !there:
		return capture.Target{}, fmt.Errorf("queue.cluster %q: this node has no Cluster or ring with queues of this name", queue.Cluster)
	case queue.Queue < 0 || queue.Queue >= queues:
		return capture.Target{}, fmt.Errorf("queue.queue %d: %s has the queues 0 to %d", queue.Queue, queue.Cluster, queues-1)
	}
	return capture.Target{Queue: capture.QueueID{Cluster: queue.Cluster, Queue: int(queue.Queue)}}, nil
}

func matchOf(m rules.Match) capture.Match {
	return capture.Match{
		SourceMAC: m.SourceMAC, DestinationMAC: m.DestinationMAC,
		EtherType: m.EtherType, VLAN: m.VLAN, InnerVLAN: m.InnerVLAN, Protocol: m.Protocol,
		Source: m.Source, Destination: m.Destination,
		SourcePorts: (*capture.PortRange)(m.SourcePorts), DestinationPorts: (*capture.PortRange)(m.DestinationPorts),
		TCPFlags: (*capture.TCPFlags)(m.TCPFlags), TunnelID: m.TunnelID,
		InnerSource: m.InnerSource, InnerDestination: m.InnerDestination,
	}
}

func (d *ringDraft) readPayload(f *v1.Filter) error {
	if len(f.Payload) > maxRules {
		return fmt.Errorf("payload: %d patterns; there can be %d", len(f.Payload), maxRules)
	}
	action, known := defaultActions[f.PayloadAction]
	if !known {
		return fmt.Errorf("payloadAction %q: must be Pass or Drop", f.PayloadAction)
	}
	d.rules.DropMatching = action == capture.ActionDrop
	for i := range f.Payload {
		pattern, err := readPattern(&f.Payload[i])
		if err != nil {
			return fmt.Errorf("payload[%d]%s.%w", i, quoteName(f.Payload[i].Name), err)
		}
		d.rules.Patterns = append(d.rules.Patterns, pattern)
	}
	if i := capture.GroupPatterns(d.rules.Patterns).Crowded(); i >= 0 {
		return fmt.Errorf("payload[%d]%s: a packet would have to be compared with more than %d patterns where this one ends: "+
			"use fewer patterns that are the same text, or the end of one another, with another case, offset or depth",
			i, quoteName(f.Payload[i].Name), capture.MaxPatternEnds)
	}
	return nil
}

func readPattern(p *v1.PayloadPattern) (capture.Pattern, error) {
	pattern := capture.Pattern{Name: p.Name, Bytes: []byte(p.Text), IgnoreCase: p.IgnoreCase, Offset: uint32(p.Offset), Depth: uint32(p.Depth)}
	if p.Hex != "" {
		bytes, err := hex.DecodeString(p.Hex)
		if err != nil {
			return pattern, fmt.Errorf("hex %q: must be pairs of hexadecimal digits", p.Hex)
		}
		pattern.Bytes = bytes
	}
	switch n := len(pattern.Bytes); {
	case (p.Text == "") == (p.Hex == ""):
		return pattern, fmt.Errorf("text: give the pattern as text or as hex, one of the two")
	case n > maxPatternBytes:
		return pattern, fmt.Errorf("text: %d bytes; a pattern has at most %d", n, maxPatternBytes)
	case p.Offset < 0 || p.Offset > maxOffset:
		return pattern, fmt.Errorf("offset %d: must be 0 to %d", p.Offset, maxOffset)
	case p.Depth < 0 || p.Depth > maxOffset:
		return pattern, fmt.Errorf("depth %d: must be 0 to %d", p.Depth, maxOffset)
	case p.Depth != 0 && int(p.Depth) < n:
		return pattern, fmt.Errorf("depth %d: a pattern of %d bytes never lies in it: raise it, or leave it out", p.Depth, n)
	}
	return pattern, nil
}

func (d *ringDraft) readPlugins(f *v1.Filter) error {
	if len(f.Plugins) > maxPlugins {
		return fmt.Errorf("plugins: %d of them; there can be %d", len(f.Plugins), maxPlugins)
	}
	for i, plugin := range f.Plugins {
		if plugin.Name == "" || len(plugin.Name) > 31 {
			return fmt.Errorf("plugins[%d].name %q: must be 1 to 31 bytes", i, plugin.Name)
		}
		d.plugins = append(d.plugins, capture.Plugin{Name: plugin.Name, Config: []byte(plugin.Config)})
	}
	return nil
}
