// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"encoding/hex"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// The messages of the handover and the account of a queue have the layout that consumers know, on a machine of this
// byte order.
func TestLayoutsOfTheContract(t *testing.T) {
	reply := newReply(capture.QueueID{Cluster: "ids", Queue: 3}, versions{1, 2})
	reply.Error, reply.MapID, reply.LaneSize, reply.NrLanes, reply.NrQueues = 0x11, 0x22, 0x33, 0x44, 0x55
	reply.SnapLen, reply.Watermark, reply.TimeoutUs, reply.HeadSize = 0x66, 0x77, 0x88, 0x99
	copy(reply.Reason[:], "busy")
	require.Equal(t, "72636170"+"02000000"+"11000000"+"22000000"+"33000000"+"44000000"+"03000000"+"55000000"+
		"66000000"+"77000000"+"88000000"+"99000000"+hex.EncodeToString([]byte("ids"))+strings.Repeat("00", 61)+
		hex.EncodeToString([]byte("busy"))+strings.Repeat("00", 124), hex.EncodeToString(reply.bytes()))

	request, err := parseRequest([]byte("rcap\x02\x00\x00\x00\x07\x00\x00\x00\x01\x00\x00\x00"))
	require.NoError(t, err)
	require.Equal(t, handoverRequest{Magic: protocolMagic, ABI: 2, MapID: 7, ABIMin: 1}, request)

	var stats laneStats
	require.EqualValues(t, 128, unsafe.Sizeof(laneKernel{}))
	require.EqualValues(t, 64, unsafe.Offsetof(laneKernel{}.Stats))
	require.EqualValues(t, 64*64, unsafe.Offsetof(consumerPage{}.Sleep))
	require.EqualValues(t, 64, unsafe.Sizeof(stats), "lanes do not share cache lines")
	require.EqualValues(t, []uintptr{0, 8, 16, 48, 56}, []uintptr{unsafe.Offsetof(stats.Delivered), unsafe.Offsetof(stats.DeliveredBytes),
		unsafe.Offsetof(stats.Dropped), unsafe.Offsetof(stats.Truncated), unsafe.Offsetof(stats.TruncatedBytes)})
}
