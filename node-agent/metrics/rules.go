// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/ringcap/ringcap/node-agent/capture"
)

// MaxNames is how many names of rules, and of payload patterns, of one ring have series: the first ones of its spec.
const MaxNames = 100

// rules sends the counters of the ring's named rules and patterns, and of its plugins. For several of one name it
// sends the sum. It also sums up those without a name, and those that exceed MaxNames.
func (s sink) rules(ring *capture.Ring, engine string, state capture.RingState) {
	packets, bytes, patterns, plugins := newSums(), newSums(), newSums(), newSums()
	for _, rule := range ring.Rules.Wildcard {
		counted := state.Rules[rule.ID]
		packets.add(rule.Name, counted.Packets)
		bytes.add(rule.Name, counted.Bytes)
	}
	for i, pattern := range ring.Rules.Patterns {
		if i < len(state.Patterns) {
			patterns.add(pattern.Name, state.Patterns[i])
		}
	}
	for i, plugin := range ring.Plugins {
		if i < len(state.Plugins) {
			plugins.add(plugin.Name, state.Plugins[i])
		}
	}
	s.named(packets, rulePackets, ring.Name, engine)
	s.named(bytes, ruleBytes, ring.Name, engine)
	s.named(patterns, patternPackets, ring.Name, engine)
	s.named(plugins, pluginFiltered, ring.Name, engine)
	if len(ring.Rules.Wildcard) > 0 {
		s.counter(otherRulePackets, packets[""], ring.Name, engine)
		s.counter(otherRuleBytes, bytes[""], ring.Name, engine)
	}
	if len(state.Patterns) > 0 {
		s.counter(otherPatterns, patterns[""], ring.Name, engine)
	}
}

// sums are by name. The sum of the empty name is that of all without their own series.
type sums map[string]uint64

func newSums() sums { return sums{"": 0} }

func (s sums) add(name string, n uint64) {
	if _, known := s[name]; !known && len(s) > MaxNames {
		name = ""
	}
	s[name] += n
}

func (s sink) named(all sums, m metric, ring, engine string) {
	for name, n := range all {
		if name != "" {
			s.counter(m, n, ring, engine, name)
		}
	}
}
