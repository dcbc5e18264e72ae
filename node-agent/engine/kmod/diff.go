// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// A generation is this program's mark on an object: a tag of its owner, and a digest of its desired state. An object
// of the module with another tag belongs to another program, and is never touched.
const (
	generationTag  = uint64(0x5243) << 48
	generationMask = uint64(0xffff) << 48
)

func ours(generation uint64) bool { return generation&generationMask == generationTag }

// generationOf returns the same generation for equal objects.
func generationOf(object ...any) uint64 {
	digest := fnv.New64a()
	// Plain structs of numbers, strings and slices always encode.
	_ = json.NewEncoder(digest).Encode(object)
	return generationTag | digest.Sum64()&^generationMask
}

// steps change the module's state to the planned one, in this order. Rings that are not desired are deleted first,
// because they hold clusters. Clusters are made before the rings that feed them and the rules that name them. They
// are deleted after these.
type steps struct {
	deleteRings []string
	// exchange lists clusters that are to be in line and are not, or the other way round. The module makes such a
	// cluster again only after it is deleted.
	exchange    []string
	setClusters []capture.Cluster
	// newRings with rules are first made without taps, because no packet may pass before the rules apply.
	newRings       []capture.Ring
	setRules       []capture.Ring
	setRings       []capture.Ring
	deleteClusters []string
	// removeNodes lists removed clusters that still have device nodes.
	removeNodes []string
	// foreign lists planned names that an object of another program has.
	foreign []string
}

// diff compares the plan with the module's objects.
func diff(plan capture.Plan, rings []ringObject, clusters []clusterObject, lanes int) steps {
	var s steps
	wanted := map[string]bool{}
	for _, cluster := range plan.Clusters {
		wanted[cluster.Name] = true
		i := slices.IndexFunc(clusters, func(c clusterObject) bool { return c.name == cluster.Name })
		switch {
		case i >= 0 && !ours(clusters[i].generation):
			s.foreign = append(s.foreign, cluster.Name)
		case i >= 0 && clusters[i].inLine != (cluster.Inline != nil):
			s.exchange = append(s.exchange, cluster.Name)
			s.setClusters = append(s.setClusters, cluster)
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
		case slices.ContainsFunc(ring.Outputs, func(name string) bool { return slices.Contains(s.exchange, name) }):
			s.deleteRings = append(s.deleteRings, ring.Name)
			s.addRing(ring)
		case rings[i].quick && (rings[i].differs(ring) || rings[i].rulesDiffer(ring)):
			// An earlier agent made it. A module of that version cannot take a ring out of quick mode.
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

// addRing adds a ring that does not exist.
func (s *steps) addRing(ring capture.Ring) {
	if !ring.Rules.Empty() {
		s.newRings = append(s.newRings, ring)
		s.setRules = append(s.setRules, ring)
	}
	s.setRings = append(s.setRings, ring)
}

// changeRing changes an existing ring to the planned state. Its rules have their own generation, so the ring or its
// rules can change alone.
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

// withoutRules returns the part of a ring that its own generation covers.
func withoutRules(ring capture.Ring) capture.Ring {
	ring.Rules = capture.RuleSet{}
	return ring
}

// sameTaps compares taps in any order. The module does not know their names.
func sameTaps(have, want []capture.Tap) bool {
	type point struct {
		direction capture.Direction
		peer      int
	}
	place := func(taps []capture.Tap) map[int]point {
		places := map[int]point{}
		for _, tap := range taps {
			places[tap.Index] = point{tap.Direction, tap.Peer}
		}
		return places
	}
	return len(have) == len(want) && maps.Equal(place(have), place(want))
}

// touches reports whether a ring is new, belongs to another program, or gets its rules anyway.
func (s *steps) touches(ring string) bool {
	named := func(r capture.Ring) bool { return r.Name == ring }
	return slices.Contains(s.foreign, ring) || slices.ContainsFunc(s.newRings, named) || slices.ContainsFunc(s.setRules, named)
}

// sameRules reports whether the module has the rules of a set. The set's generation does not show whether somebody
// added or removed single rules. Rules that expire may be missing.
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
