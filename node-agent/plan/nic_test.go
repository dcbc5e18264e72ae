// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

func withNIC(set func(*v1.NIC)) func(*v1.CaptureRingSpec) {
	return func(s *v1.CaptureRingSpec) { set(&s.NIC) }
}

func TestNICSettings(t *testing.T) {
	number := func(n int32) *int32 { return &n }
	got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("mirror", withNIC(func(n *v1.NIC) {
		*n = v1.NIC{
			Offloads: v1.OffloadsKeep, VLANOffload: v1.VLANOffloadDisable, RxRingSize: number(4096), RxQueues: number(4),
			RSS:             v1.RSS{Hash: v1.RSSHashSymmetric, Fields: v1.RSSFieldsAddresses, Queues: number(2)},
			ThreadedPolling: v1.ThreadedPolling{Mode: v1.ThreadedPollingEnable, CPUs: "2-3"},
		}
	}))}}, facts())
	desired := func(value string) Desired { return Desired{Value: value, Ring: "mirror"} }
	assert.Empty(t, got.Rings["mirror"].Message)
	assert.Equal(t, NICSettings{
		SettingVLANOffload: desired("off"), SettingRxRingSize: desired("4096"), SettingRxQueues: desired("4"),
		SettingRSSHash: desired("Symmetric"), SettingRSSFields: desired("Addresses"), SettingRSSQueues: desired("2"),
		SettingThreadedPolling: desired("on"), SettingPollingCPUs: desired("2-3"),
	}, got.NICs["eth0"])
}

// The first ring by name gets its settings. The other still captures, and reports what it did not get.
func TestNICConflict(t *testing.T) {
	sized := func(n int32) func(*v1.CaptureRingSpec) {
		return withNIC(func(nic *v1.NIC) { nic.RxRingSize = &n })
	}
	got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("zeek", sized(512)), ring("ids", sized(4096)), ring("same", sized(4096))}}, facts())
	assert.Equal(t, Desired{Value: "4096", Ring: "ids"}, got.NICs["eth0"][SettingRxRingSize])
	assert.True(t, got.Rings["ids"].Ready())
	assert.True(t, got.Rings["same"].Ready())
	assert.True(t, got.Rings["zeek"].Planned)
	assert.Equal(t, v1.ReasonNICSettingConflict, got.Rings["zeek"].Reason)
	assert.Equal(t, "spec.nic.rxRingSize is 512, and eth0 has been set to 4096 for ring ids, which comes first by name: make the two equal, or leave one out",
		got.Rings["zeek"].Message)
}
