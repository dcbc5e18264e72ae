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
	inLine, shunting := plain, plain
	inLine.Inline, shunting.ShuntQuota = &capture.Inline{}, 1
	for words, cluster := range map[string]capture.Cluster{"in line": inLine, "shunting flows": shunting} {
		err := validateCluster(cluster)
		assert.ErrorIs(t, err, capture.ErrUnsupported)
		assert.ErrorContains(t, err, words+" needs the kernel module")
	}
}
