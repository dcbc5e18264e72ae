// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/memory"
)

// Limits of this engine's rule sets.
const (
	maxTargets  = len(programConfig{}.Targets)
	maxMatches  = 1 << 20
	maxLearnt   = 1 << 16 // flows for which there is room
	maxDatagram = 1 << 12 // flows that are remembered for their fragments
)

// ringMapPrefix begins the names of the object's maps that belong to one ring and one rule set.
const ringMapPrefix = "ring_"

// ruleSet is a capture.RuleSet in the form in which programs look it up.
type ruleSet struct {
	exact   []capture.ExactRule
	ids     []uint32 // by rank
	shapes  []shape
	wild    map[wildKey]wildRule
	timers  []life // by rank
	expires []bool // by rank: the rule expires when it is idle; if it learns, only its learnt rules do
	learns  bool
	// idles tells whether any rule, or a learnt one, expires when it is idle.
	idles bool
	// defaultAction is for packets without a rule. targets gives the numbers in all actions their meaning.
	defaultAction, defaultTarget uint32
	targets                      []capture.Target
	patterns                     int
	automaton                    *automaton
}

// compile translates a valid rule set for programs. It returns ErrUnsupported if the set has more shapes or targets
// than programs support.
func compile(planned capture.RuleSet) (*ruleSet, error) {
	s := &ruleSet{
		exact: planned.Exact, wild: map[wildKey]wildRule{}, targets: planned.Targets(), defaultAction: uint32(planned.Default),
		patterns: len(planned.Patterns),
	}
	var err error
	if s.automaton, err = newAutomaton(planned.Patterns); err != nil {
		return nil, err
	}
	s.defaultTarget = s.target(planned.DefaultTarget)
	rules := slices.SortedFunc(slices.Values(planned.Wildcard), func(x, y capture.WildcardRule) int {
		return cmp.Or(cmp.Compare(y.Priority, x.Priority), cmp.Compare(x.ID, y.ID))
	})
	s.idles = slices.ContainsFunc(s.exact, func(rule capture.ExactRule) bool { return rule.Idle != 0 })
	numbers, room := map[layer]uint64{}, matchRoom(0)
	for rank, rule := range rules {
		s.ids, s.timers = append(s.ids, rule.ID), append(s.timers, life{Idle: uint64(rule.Idle)})
		s.expires = append(s.expires, rule.Idle != 0 && rule.Action != capture.ActionLearn)
		s.learns = s.learns || rule.Action == capture.ActionLearn
		s.idles = s.idles || rule.Idle != 0
		value := wildRule{Rank: uint32(rank), ID: rule.ID, Action: uint32(rule.Action), Target: s.target(rule.Target)}
		matches := matchesOf(rule)
		if err := room.hold(len(s.wild) + len(matches)); err != nil {
			return nil, err
		}
		for _, m := range matches {
			s.put(m, value, numbers)
		}
		if len(s.wild) > maxMatches {
			break // there may be millions more
		}
	}
	return s, s.supported()
}

// matchBytes is about how much of the agent's memory a match of ruleSet.wild takes, while that grows.
const matchBytes = 2 * 128

// matchRoom is the number of matches for which the agent was found to have memory.
type matchRoom int

// hold refuses rules with n different matches if the agent has no memory for them. It asks for twice as many each time,
// so that it rarely asks.
func (r *matchRoom) hold(n int) error {
	if n <= int(*r) {
		return nil
	}
	next := max(n, min(2*n, maxMatches))
	if err := memory.RoomFor(uint64(next-int(*r)) * matchBytes); err != nil {
		return fmt.Errorf("%d matches of wildcard rules, or more: %w", n, err)
	}
	*r = matchRoom(next)
	return nil
}

// layer is a shape. Of rules with the same match only the first is kept. If that one can expire, the next is put into
// another layer of the same mask.
type layer struct {
	mask key
	n    int
}

// put puts a rule into the first layer that has room for its match. Rules come by rank: the first of a shape is its
// best. Shapes are in the order of their best rules.
func (s *ruleSet) put(m match, rule wildRule, numbers map[layer]uint64) {
	for at := (layer{mask: m.mask}); ; at.n++ {
		number, known := numbers[at]
		if !known {
			number = uint64(len(s.shapes))
			numbers[at] = number
			brief, isBrief := briefMask(m.mask)
			s.shapes = append(s.shapes, shape{
				Mask: packetKey{W: m.mask}, Brief: brief, Has: hasOf(m.mask), Best: rule.Rank, IsBrief: uint32(flag(isBrief)),
			})
		}
		entry := wildKey{Shape: number, W: m.value}
		before, taken := s.wild[entry]
		if !taken {
			s.wild[entry] = rule
			return
		}
		if before.Rank == rule.Rank || !s.expires[before.Rank] {
			return
		}
	}
}

func (s *ruleSet) supported() error {
	for _, limit := range []struct {
		what      string
		have, max int
	}{
		{"mask shapes of wildcard rules (which fields they compare, and how long the prefixes are)", len(s.shapes), maxShapes},
		{"targets of rules", len(s.targets), maxTargets}, {"exact rules", len(s.exact), maxExact},
		{"wildcard rules", len(s.ids), maxWildcard}, {"matches of wildcard rules, of which a range of ports is many", len(s.wild), maxMatches},
	} {
		if limit.have > limit.max {
			return unsupported(fmt.Sprintf("%d %s, at most %d", limit.have, limit.what, limit.max))
		}
	}
	return nil
}

func (s *ruleSet) target(target capture.Target) uint32 {
	return uint32(capture.TargetNumber(s.targets, target))
}

func (s *ruleSet) matchesInner() bool {
	return slices.ContainsFunc(s.shapes, func(s shape) bool { return matchesInner(s.Mask.W) })
}

func (s *ruleSet) matchesMACs() bool {
	return slices.ContainsFunc(s.shapes, func(s shape) bool { return s.Has&hasMACs != 0 })
}

// onlyFilters reports whether the rules only pass and drop packets, or learn rules that pass them.
func (s *ruleSet) onlyFilters() bool { return len(s.targets) == 0 }

// ringMaps are the maps of a ring that change with its rules. They are made and filled first, and then used by the
// program that is loaded with them. They are pinned to keep what they counted and learnt.
type ringMaps struct {
	folder string
	maps   map[string]*ebpf.Map
	// ids holds the ids of wildcard rules, by rank. patterns is the number of patterns. Both are empty while the plan
	// is not known.
	ids      []uint32
	patterns int
	// idles and expires are as in ruleSet.
	idles   bool
	expires []bool
}

// rxQueueBits are receive queues, as in struct rx_queues of the program.
type rxQueueBits [16]uint64

// mapsLayout is the version of the layout of rule sets' maps. Maps of another layout, of an older agent, are
// replaced.
const mapsLayout = 6

// mapsName names the maps of a rule set by the rule set and everything else that the maps contain.
func mapsName(planned capture.RuleSet, rxQueues map[uint32]rxQueueBits, fragments bool) (string, error) {
	text, err := json.Marshal(struct {
		Layout    int
		Rules     capture.RuleSet
		RxQueues  map[uint32]rxQueueBits `json:"Channels"` // the name of existing rule sets must not change
		Fragments bool
	}{mapsLayout, planned, rxQueues, fragments})
	if err != nil {
		return "", fmt.Errorf("encode the rules: %w", err)
	}
	sum := sha256.Sum256(text)
	return "rules_" + hex.EncodeToString(sum[:12]), nil
}

// openRingMaps opens the maps in folder, or makes, fills and pins them.
func openRingMaps(folder string, rules *ruleSet, rxQueues map[uint32]rxQueueBits, fragments bool) (*ringMaps, error) {
	spec, err := loadSpec()
	if err != nil {
		return nil, err
	}
	m := &ringMaps{folder: folder, maps: map[string]*ebpf.Map{}}
	m.know(rules)
	if err := m.recover(spec); err == nil {
		return m, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var table *wildTable
	if len(rules.shapes) > 0 {
		if err := memory.RoomFor(rules.tableBytes()); err != nil {
			return nil, fmt.Errorf("a table of %d matches of wildcard rules: %w", len(rules.wild), err)
		}
		table = newWildTable(rules)
	}
	m.size(spec, rules, table, fragments)
	if err := m.make(spec, rules, table, rxQueues); err != nil {
		m.close()
		return nil, errors.Join(err, removePins(folder))
	}
	return m, nil
}

// recoverRingMaps opens the maps that another process made. The error wraps os.ErrNotExist if they are incomplete.
// Their rules are known once the plan has named them again.
func recoverRingMaps(folder string) (*ringMaps, error) {
	spec, err := loadSpec()
	if err != nil {
		return nil, err
	}
	m := &ringMaps{folder: folder, maps: map[string]*ebpf.Map{}}
	return m, m.recover(spec)
}

// ringMapNames lists the maps of the object that are in ringMaps.
func ringMapNames(spec *ebpf.CollectionSpec) []string {
	var names []string
	for name := range spec.Maps {
		if strings.HasPrefix(name, ringMapPrefix) && name != ringCountersMap {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// complete is pinned last, so that incompletely filled maps are not mistaken for complete ones.
const complete = "complete"

func (m *ringMaps) recover(spec *ebpf.CollectionSpec) error {
	var done bool
	if err := readDescription(filepath.Join(m.folder, complete), &done); err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, errNotDescription) {
			err = errors.Join(err, removePins(m.folder))
		}
		return err
	}
	for _, name := range ringMapNames(spec) {
		opened, err := ebpf.LoadPinnedMap(filepath.Join(m.folder, name), nil)
		if err != nil {
			m.close()
			if errors.Is(err, os.ErrNotExist) { // an older version had fewer
				err = errors.Join(err, removePins(m.folder))
			}
			return fmt.Errorf("open %s: %w", filepath.Join(m.folder, name), err)
		}
		m.maps[name] = opened
	}
	return nil
}

// know sets which rules the maps contain.
func (m *ringMaps) know(rules *ruleSet) {
	m.ids, m.idles, m.expires, m.patterns = rules.ids, rules.idles, rules.expires, rules.patterns
}

// size sets the number of entries of the maps. table is nil without wildcard rules.
func (m *ringMaps) size(spec *ebpf.CollectionSpec, rules *ruleSet, table *wildTable, fragments bool) {
	entries := map[string]int{
		"ring_exact": len(rules.exact), "ring_rule_hits": len(rules.ids), "ring_choices": len(rules.automaton.choices),
		"ring_pattern_hits": rules.patterns,
	}
	spec.Maps[patternRowsMap].ValueSize = uint32(placeBytes * len(rules.automaton.rows))
	if table == nil {
		spec.Maps[wildIndexMap].ValueSize = 8 // the program does not look into it
	} else {
		entries[wildEntriesMap], entries[wildWholeMap] = len(table.places), len(table.whole)
	}
	if rules.idles {
		entries[idleTimersMap] = 1 + len(rules.timers)
	}
	if rules.learns {
		entries[learntMap], entries[learntLocksMap] = learntBuckets, learntLocks
	}
	if fragments {
		entries["ring_fragments"] = maxDatagram
	}
	for name, n := range entries {
		spec.Maps[name].MaxEntries = uint32(max(n, 1))
	}
}

func (m *ringMaps) make(spec *ebpf.CollectionSpec, rules *ruleSet, table *wildTable, rxQueues map[uint32]rxQueueBits) error {
	if err := os.MkdirAll(m.folder, 0o700); err != nil {
		return fmt.Errorf("make %s in the bpffs: %w", m.folder, explainRights(err))
	}
	for _, name := range ringMapNames(spec) {
		made, err := newPinned(spec.Maps[name], filepath.Join(m.folder, name))
		if err != nil {
			return fmt.Errorf("the ring's rules: %w", err)
		}
		m.maps[name] = made
	}
	if err := m.fill(rules, table, rxQueues); err != nil {
		return fmt.Errorf("put the ring's rules into their maps: %w", err)
	}
	return writeDescription(filepath.Join(m.folder, complete), true)
}

func (m *ringMaps) fill(rules *ruleSet, table *wildTable, rxQueues map[uint32]rxQueueBits) error {
	for _, rule := range rules.exact {
		value := exactRule{Action: uint32(rule.Action), Target: rules.target(rule.Target), Life: life{Idle: uint64(rule.Idle)}}
		if err := m.maps["ring_exact"].Put(exactKeyOf(rule), value); err != nil {
			return err
		}
	}
	if table != nil {
		if err := table.fill(m.maps); err != nil {
			return err
		}
	}
	if err := drawLearntSecrets(m.maps[learntSecretsMap]); err != nil {
		return err
	}
	for rank, l := range rules.timers {
		if !rules.idles {
			break
		}
		if err := m.maps[idleTimersMap].Put(uint32(rank)+1, l); err != nil {
			return err
		}
	}
	for i, c := range rules.automaton.choices {
		if err := m.maps["ring_choices"].Put(uint32(i), c); err != nil {
			return err
		}
	}
	if err := m.maps[patternRowsMap].Put(uint32(0), rules.automaton.rows); err != nil {
		return err
	}
	for index, bits := range rxQueues {
		if err := m.maps["ring_channels"].Put(index, ringRxQueues{Bits: bits}); err != nil {
			return err
		}
	}
	return nil
}

// counts returns the counters of each wildcard rule that still exists, by its id.
func (m *ringMaps) counts() (map[uint32]capture.RuleStats, error) {
	counts := map[uint32]capture.RuleStats{}
	activatedAt, err := m.activatedAt()
	if err != nil {
		return nil, err
	}
	for rank, id := range m.ids {
		over, err := m.expired(uint32(rank), activatedAt)
		if err != nil {
			return nil, err
		}
		if over {
			continue
		}
		var byCPU []ruleHits
		if err := m.maps["ring_rule_hits"].Lookup(uint32(rank), &byCPU); err != nil {
			return nil, fmt.Errorf("read what rule %d counted: %w", id, err)
		}
		var sum capture.RuleStats
		for _, hits := range byCPU {
			sum.Packets += hits.Packets
			sum.Bytes += hits.Bytes
		}
		counts[id] = sum
	}
	return counts, nil
}

// patternCounts returns how many packets each payload pattern decided on, nil without patterns.
func (m *ringMaps) patternCounts() ([]uint64, error) {
	var counts []uint64
	for i := range m.patterns {
		var byCPU []uint64
		if err := m.maps["ring_pattern_hits"].Lookup(uint32(i), &byCPU); err != nil {
			return nil, fmt.Errorf("read what payload pattern %d counted: %w", i, err)
		}
		var sum uint64
		for _, n := range byCPU {
			sum += n
		}
		counts = append(counts, sum)
	}
	return counts, nil
}

// close closes the maps, which stay pinned. A nil ringMaps has none.
func (m *ringMaps) close() {
	if m == nil {
		return
	}
	for _, opened := range m.maps {
		opened.Close()
	}
}
