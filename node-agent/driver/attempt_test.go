// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTriesAreFewAndFarBetween(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now, why := start, errors.New("no link")
	var a attempt
	assert.False(t, a.due(now), "before the first failure")
	var pauses []time.Duration
	for a.fail(why, now); !a.NextTry.IsZero(); a.fail(why, now) {
		pauses = append(pauses, a.NextTry.Sub(now))
		assert.False(t, a.due(a.NextTry.Add(-time.Second)))
		now = a.NextTry
		assert.True(t, a.due(now))
	}
	assert.Equal(t, []time.Duration{time.Minute, 5 * time.Minute, 25 * time.Minute}, pauses)
	assert.False(t, a.due(now.Add(1000*time.Hour)), "given up")
	assert.Equal(t, "no link", a.Failure)
}

// An obstacle that is found before anything is changed is checked again for as long as the driver is desired.
func TestTriesThatChangedNothing(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var a attempt
	for range 100 {
		a.postpone(errors.New("several next hops"), now)
		now = now.Add(time.Minute)
		assert.True(t, a.due(now))
	}
	assert.Zero(t, a.Tries)
}
