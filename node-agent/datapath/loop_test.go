// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPace(t *testing.T) {
	assert.Equal(t, 2*time.Second, pace(2*time.Second, time.Millisecond))
	assert.Equal(t, 4*time.Second, pace(2*time.Second, 20*time.Millisecond))
	assert.Equal(t, 10*time.Second, pace(2*time.Second, 5*time.Second), "on a busy machine")
}
