// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPace(t *testing.T) {
	const most = 30 * time.Second
	assert.Equal(t, 2*time.Second, pace(2*time.Second, time.Millisecond, most))
	assert.Equal(t, 5*time.Second, pace(2*time.Second, 20*time.Millisecond, most))
	assert.Equal(t, most, pace(2*time.Second, 5*time.Second, most), "on a busy machine")
	assert.Equal(t, time.Hour, pace(time.Hour, 5*time.Second, most), "an interval that was asked for")
}
