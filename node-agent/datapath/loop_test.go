// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

func TestPace(t *testing.T) {
	var few, many Report
	many.Observations = map[v1.Engine]capture.Observation{v1.EngineEBPF: {Clusters: map[string]capture.ClusterState{
		"ids": {Queues: make([]capture.QueueStats, 6000)},
	}}}
	assert.Equal(t, 2*time.Second, pace(2*time.Second, time.Millisecond, few))
	assert.Equal(t, 5*time.Second, pace(2*time.Second, 20*time.Millisecond, few))
	assert.Equal(t, 10*time.Second, pace(2*time.Second, 5*time.Second, few), "on a busy machine")
	assert.Equal(t, 12500*time.Millisecond, pace(2*time.Second, 50*time.Millisecond, many))
	assert.Equal(t, 28*time.Second, pace(2*time.Second, 5*time.Second, many), "with many queues")
	assert.Equal(t, 150*time.Second, pace(30*time.Second, 5*time.Second, many), "not until it counts as lost")
}
