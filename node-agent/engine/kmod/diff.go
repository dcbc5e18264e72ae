// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// A generation is this program's mark on an object: a tag of its owner, and a digest of its desired state.
// What the module has with another tag belongs to somebody else and is never touched.
const (
	generationTag  = uint64(0x5243) << 48
	generationMask = uint64(0xffff) << 48
)

func ours(generation uint64) bool { return generation&generationMask == generationTag }

// generationOf is the same for equal objects.
func generationOf(object ...any) uint64 {
	digest := fnv.New64a()
	// Plain structs of numbers, strings and slices always encode.
	_ = json.NewEncoder(digest).Encode(object)
	return generationTag | digest.Sum64()&^generationMask
}

// steps turn the module's state into the planned one, in this order. Rings that are not desired are deleted first, because they
// hold clusters. Clusters are made before the rings that feed them and the rules that name them, and deleted after these.
type steps struct {
	deleteRings []string
	setClusters []capture.Cluster
	// newRings are made without taps first where they have rules: no packet may pass before the rules apply.
	newRings       []capture.Ring
	setRules       []capture.Ring
	setRings       []capture.Ring
	deleteClusters []string
	// removeNodes are removed clusters that still have device nodes.
	removeNodes []string
	// foreign are planned names that somebody else's object has.
	foreign []string
}

// diff compares the plan with what the module has.
func diff(plan capture.Plan, rings []ringObject, clusters []clusterObject, lanes int) steps {
	var s steps
	wanted := map[string]bool{}
	for _, cluster := range plan.Clusters {
		wanted[cluster.Name] = true
		i := slices.IndexFunc(clusters, func(c clusterObject) bool { return c.name == cluster.Name })
		switch {
		case i >= 0 && !ours(clusters[i].generation):
			s.foreign = append(s.foreign, cluster.Name)
		case i < 0 || clusters[i].generation != generationOf(cluster, lanes):
			s.setClusters = append(s.setClusters, cluster)
		}
	}
	for _, cluster := range clusters {
		if ours(cluster.generation) && !wanted[cluster.name] {
			s.deleteClusters = append(s.deleteClusters, cluster.name)
		}
	}
	clear(wanted)
	for _, ring := range plan.Rings {
		wanted[ring.Name] = true
		i := slices.IndexFunc(rings, func(r ringObject) bool { return r.name == ring.Name })
		switch {
		case i >= 0 && !ours(rings[i].generation):
			s.foreign = append(s.foreign, ring.Name)
		case i < 0:
			s.addRing(ring)
		case rings[i].quick && (rings[i].differs(ring) || rings[i].rulesDiffer(ring)):
			// An earlier agent made it, and the module of that time does not take a ring out of quick mode.
			s.deleteRings = append(s.deleteRings, ring.Name)
			s.addRing(ring)
		default:
			s.changeRing(rings[i], ring)
		}
	}
	for _, ring := range rings {
		if ours(ring.generation) && !wanted[ring.name] {
			s.deleteRings = append(s.deleteRings, ring.name)
		}
	}
	return s
}

// addRing makes a ring that is not there.
func (s *steps) addRing(ring capture.Ring) {
	if !ring.Rules.Empty() {
		s.newRings = append(s.newRings, ring)
		s.setRules = append(s.setRules, ring)
	}
	s.setRings = append(s.setRings, ring)
}

// changeRing makes a ring that is there as planned. Its rules have a generation of their own: the ones go without the other.
func (s *steps) changeRing(have ringObject, ring capture.Ring) {
	if have.rulesDiffer(ring) {
		s.setRules = append(s.setRules, ring)
	}
	if have.differs(ring) {
		s.setRings = append(s.setRings, ring)
	}
}

// differs reports whether the ring is not as planned. It does not compare rules.
func (r ringObject) differs(ring capture.Ring) bool {
	return r.generation != generationOf(withoutRules(ring)) || !sameTaps(r.taps, ring.Taps)
}

// rulesDiffer reports whether the ring's rules are not as planned.
func (r ringObject) rulesDiffer(ring capture.Ring) bool {
	return r.rulesGeneration != rulesGeneration(ring.Rules)
}

// withoutRules is what a ring's own generation is of.
func withoutRules(ring capture.Ring) capture.Ring {
	ring.Rules = capture.RuleSet{}
	return ring
}

// sameTaps compares without regard to order; the module knows no names.
func sameTaps(have, want []capture.Tap) bool {
	place := func(taps []capture.Tap) map[int]capture.Direction {
		places := map[int]capture.Direction{}
		for _, tap := range taps {
			places[tap.Index] = tap.Direction
		}
		return places
	}
	return len(have) == len(want) && maps.Equal(place(have), place(want))
}

// touches reports whether a ring is new, another's, or gets its rules anyway.
func (s *steps) touches(ring string) bool {
	named := func(r capture.Ring) bool { return r.Name == ring }
	return slices.Contains(s.foreign, ring) || slices.ContainsFunc(s.newRings, named) || slices.ContainsFunc(s.setRules, named)
}

// sameRules reports whether the module has the rules of a set. The set's generation does not show single rules that somebody added
// or removed. Rules that expire may be missing.
func sameRules(have map[uint32]capture.RuleStats, want []capture.WildcardRule) bool {
	there := 0
	for _, rule := range want {
		if _, ok := have[rule.ID]; ok {
			there++
		} else if rule.Idle == 0 {
			return false
		}
	}
	return there == len(have)
}
