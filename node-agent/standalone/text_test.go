// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"testing"

	"github.com/stretchr/testify/assert"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

func TestTheTextSaysWhatReadsTheQueues(t *testing.T) {
	inline := v1.QueueStatus{Inline: &v1.InlineQueueStatus{}}
	text := stateText(Manifests{}, v1.NodeCaptureStatus{Clusters: []v1.NodeClusterStatus{
		{Name: "copies", Ready: true, Queues: []v1.QueueStatus{{}}},
		{Name: "ips", Ready: true, Queues: []v1.QueueStatus{inline, inline}},
	}})
	assert.Contains(t, text, "tcpdump -i ringcap:copies (with ringcap's libpcap)")
	assert.Contains(t, text, "a program that gives verdicts: snort -Q --daq ringcap -i ips -z 2")
	assert.NotContains(t, text, "ringcap:ips")
}
