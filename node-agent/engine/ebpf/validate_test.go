// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/capture"
)

func TestWhatOnlyTheModuleDoesWithQueues(t *testing.T) {
	plain := capture.Cluster{Name: "ids", Queues: 1, QueueBytes: minQueueBytes, Lanes: 1}
	require.NoError(t, validateCluster(plain))
	plain.Inline = &capture.Inline{}
	err := validateCluster(plain)
	assert.ErrorIs(t, err, capture.ErrUnsupported)
	assert.ErrorContains(t, err, "in line needs the kernel module")
}

func TestQuotaOfFlowsToShunt(t *testing.T) {
	cluster := capture.Cluster{Name: "ids", Queues: 1, QueueBytes: minQueueBytes, Lanes: 1, ShuntQuota: maxShunts}
	require.NoError(t, validateCluster(cluster))
	cluster.ShuntQuota++
	assert.ErrorContains(t, validateCluster(cluster), "1048577 flows to shunt: must be at most 1048576")
}
