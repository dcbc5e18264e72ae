// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"

	"github.com/cilium/ebpf"
)

// The names of the maps of a wildTable.
const (
	wildIndexMap   = "ring_wild_index"
	wildEntriesMap = "ring_wild_entries"
	wildWholeMap   = "ring_wild"
)

// wildTable holds wildcard rules in the form in which programs look them up; see bpf/wild.h.
type wildTable struct {
	index wildIndex
	// brief holds the entries with brief keys. places is their hash table: numbers in brief, from 1; 0 = the place is
	// free. There are several times as many places as entries, and an entry is large.
	brief  []wildEntry
	places []uint32
	whole  map[wildKey]wildRule
}

const (
	wildSpace = 4 // places for each match
	wildTries = 8 // numbers that are drawn for a size of the table, before it is made larger
)

// briefMask returns the part of a mask that is in brief keys, and whether that is the whole mask, except for the
// RC_HAS_* bits.
func briefMask(mask key) (briefKey, bool) {
	rest := mask
	rest[wordLink], rest[wordPorts] = 0, 0
	rest[wordSource] &= 1<<32 - 1
	rest[wordTarget] &= 1<<32 - 1
	return briefOf(mask, 0), rest == key{}
}

// briefOf returns the brief key of a masked key.
func briefOf(k key, shape uint64) briefKey {
	return briefKey{W: [briefWords]uint64{k[wordLink]&^0xffff | shape, k[wordPorts], k[wordSource]>>32<<32 | k[wordTarget]>>32}}
}

// newWildTable makes the table of a set's rules.
func newWildTable(s *ruleSet) *wildTable {
	t := &wildTable{whole: map[wildKey]wildRule{}}
	copy(t.index.Shapes[:], s.shapes)
	t.brief = make([]wildEntry, 0, len(s.wild))
	for at, rule := range s.wild {
		if s.shapes[at.Shape].IsBrief == 0 {
			t.whole[at] = rule
			continue
		}
		t.brief = append(t.brief, wildEntry{Key: briefOf(at.W, at.Shape), Rule: rule})
	}
	t.hash()
	t.sieve(s)
	return t
}

// wildLogarithm returns the logarithm of the number of places that are tried first for entries.
func wildLogarithm(entries int) int {
	return max(bits.Len(uint(max(wildSpace*entries, 1)-1)), 1)
}

// tableBytes returns about how much memory the table of a set's rules takes: the agent's until the maps are filled, and
// that of the maps.
func (s *ruleSet) tableBytes() uint64 {
	entry, brief := binary.Size(wildEntry{}), 0
	for at := range s.wild {
		brief += int(s.shapes[at.Shape].IsBrief)
	}
	places := 1<<wildLogarithm(brief) + wildProbes
	whole := (len(s.wild) - brief) * (matchBytes + hashedBytes + binary.Size(wildKey{}) + binary.Size(wildRule{}))
	return uint64(places*(4+entry) + brief*entry + whole)
}

// hash draws numbers until no entry is too far from its place.
func (t *wildTable) hash() {
	for logarithm := wildLogarithm(len(t.brief)); ; logarithm++ {
		t.places = make([]uint32, 1<<logarithm+wildProbes)
		for range wildTries {
			draw(t.index.Secrets[:])
			t.index.Shift = uint32(64 - logarithm)
			if t.place() {
				return
			}
			clear(t.places)
		}
	}
}

// draw fills words with random numbers.
func draw(words []uint64) {
	random := make([]byte, 8*len(words))
	_, _ = rand.Read(random) // never fails
	for i := range words {
		words[i] = binary.NativeEndian.Uint64(random[8*i:])
	}
}

// place puts the entries into the table. It returns false if one is too far from its place.
func (t *wildTable) place() bool {
	for i, entry := range t.brief {
		at := t.index.hash(entry.Key)
		end := at + wildProbes
		for at < end && t.places[at] != 0 {
			at++
		}
		if at == end {
			return false
		}
		t.places[at] = uint32(i) + 1
	}
	return true
}

// hash returns a key's place: wild_hash in bpf/wild.h.
func (w *wildIndex) hash(k briefKey) uint64 {
	var sum uint64
	for i, word := range k.W {
		sum += (word>>32 + w.Secrets[2*i]) * (word&(1<<32-1) + w.Secrets[2*i+1])
	}
	return sum >> w.Shift
}

// sieveField is a field by which shapes are excluded: bits of a word of the key. odd is the word's place in
// wildIndex.Odds.
type sieveField struct {
	word, odd int
	mask      uint64
}

var sieveFieldsOf = [sieveFields]sieveField{
	{wordSource, 1, 0xffff << 48}, {wordSource, 1, 0xffffff << 40}, {wordTarget, 2, 0xffff << 48}, {wordTarget, 2, 0xffffff << 40},
	{wordPorts, 0, 0xffff << shiftSource}, {wordPorts, 0, 0xffff << shiftTarget},
}

func (t *wildTable) sieve(s *ruleSet) {
	draw(t.index.Odds[:])
	for i := range t.index.Odds {
		t.index.Odds[i] |= 1
	}
	for n, field := range sieveFieldsOf {
		passes := &t.index.Passes[n]
		for i, shape := range s.shapes {
			if shape.Mask.W[field.word]&field.mask == field.mask {
				continue
			}
			for row := range passes {
				passes[row] |= 1 << i
			}
		}
		for at := range s.wild {
			if s.shapes[at.Shape].Mask.W[field.word]&field.mask == field.mask {
				passes[(at.W[field.word]&field.mask)*t.index.Odds[field.odd]>>(64-sieveRowsLog)] |= 1 << at.Shape
			}
		}
	}
}

// fill writes the table into the maps of a set.
func (t *wildTable) fill(maps map[string]*ebpf.Map) error {
	if err := maps[wildIndexMap].Put(uint32(0), t.index); err != nil {
		return err
	}
	for at, rule := range t.whole {
		if err := maps[wildWholeMap].Put(at, rule); err != nil {
			return err
		}
	}
	return t.fillEntries(maps[wildEntriesMap])
}

// entriesAtOnce is how many entries are written to the map in one call. There may be millions of entries, and the
// agent's memory is limited.
const entriesAtOnce = 4096

func (t *wildTable) fillEntries(m *ebpf.Map) error {
	places, used := make([]uint32, 0, entriesAtOnce), make([]wildEntry, 0, entriesAtOnce)
	for place, number := range t.places {
		if number != 0 {
			places, used = append(places, uint32(place)), append(used, t.brief[number-1])
		}
		if len(used) == entriesAtOnce || place == len(t.places)-1 && len(used) > 0 {
			if _, err := m.BatchUpdate(places, used, nil); err != nil {
				return err
			}
			places, used = places[:0], used[:0]
		}
	}
	return nil
}
