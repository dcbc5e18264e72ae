// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"math/bits"

	"github.com/cilium/ebpf"
)

// The names of the maps with learnt flows: see bpf/learnt.h.
const (
	learntMap        = "ring_learnt"
	learntLocksMap   = "ring_learnt_locks"
	learntSecretsMap = "ring_learnt_secrets"
)

// learntBuckets is the number of buckets of a table for maxLearnt flows, a power of two. Half of the places are spare, so
// on average one of so many flows finds its bucket full.
const learntBuckets = 2 * maxLearnt >> learntPlacesLog

// drawLearntSecrets fills the map with the hash's numbers.
func drawLearntSecrets(m *ebpf.Map) error {
	var secrets learntSecrets
	draw(secrets.W[:])
	return m.Put(uint32(0), secrets)
}

// learntConstants adds the constants of bpf/learnt.h that belong to the maps.
func (m *ringMaps) learntConstants(constants map[string]uint64) error {
	var secrets learntSecrets
	if err := m.maps[learntSecretsMap].Lookup(uint32(0), &secrets); err != nil {
		return fmt.Errorf("read the numbers of the learnt flows' hash: %w", err)
	}
	for i, secret := range secrets.W {
		constants[fmt.Sprintf("learnt_secret_%d", i)] = secret
	}
	constants["learnt_shift"] = uint64(64 - learntPlacesLog - (bits.Len32(m.maps[learntMap].MaxEntries()) - 1))
	return nil
}
