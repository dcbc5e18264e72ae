// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestHealthy(t *testing.T) {
	var h Health
	assert.ErrorContains(t, h.Healthy(), "has not looked at its data path")
	h.Beat()
	assert.NoError(t, h.Healthy())
	h.alive.Store(time.Now().Add(-stuck - time.Second).UnixNano())
	assert.ErrorContains(t, h.Healthy(), "for 3m1s")
}

func TestReady(t *testing.T) {
	var h Health
	assert.ErrorContains(t, h.Ready(), "not been looked at yet")
	h.Set(errors.New("the module is gone"))
	assert.EqualError(t, h.Ready(), "the module is gone")
	h.Set(nil)
	assert.NoError(t, h.Ready())
}
