// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestHealthy(t *testing.T) {
	var s State
	assert.ErrorContains(t, s.Healthy(), "has not looked at its data path")
	s.Beat()
	assert.NoError(t, s.Healthy())
	s.alive.Store(time.Now().Add(-stuck - time.Second).UnixNano())
	assert.ErrorContains(t, s.Healthy(), "for 3m1s")
}

func TestReady(t *testing.T) {
	var s State
	assert.ErrorContains(t, s.Ready(), "not been looked at yet")
	s.Set(errors.New("the module is gone"))
	assert.EqualError(t, s.Ready(), "the module is gone")
	s.Set(nil)
	assert.NoError(t, s.Ready())
}
