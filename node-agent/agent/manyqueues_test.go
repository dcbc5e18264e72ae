// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/nic"
	"github.com/ringcap/ringcap/node-agent/plan"
	"github.com/ringcap/ringcap/node-agent/status"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

const (
	manyRings, manyQueues = 200, 64
	// etcdLimit is the largest object that an API server can store.
	etcdLimit = 1.5 * (1 << 20)
)

// manyQueuesInput is a busy node: each ring on an interface with settings, of each the first three queues a pod's.
func manyQueuesInput(round uint64) status.Input {
	rings, clusters := map[string]capture.RingState{}, map[string]capture.ClusterState{}
	in := status.Input{
		Report: datapath.Report{
			Plan:         plan.Result{Plans: map[v1.Engine]capture.Plan{v1.EngineKernelModule: {}}},
			Rings:        map[string]datapath.Object{},
			Clusters:     map[string]datapath.Object{},
			Observations: map[v1.Engine]capture.Observation{v1.EngineKernelModule: {Rings: rings, Clusters: clusters}},
			Outcome:      datapath.Outcome{NICs: map[string]nic.Outcome{}},
		},
		Module:    status.Module{Ready: true, Reason: v1.ReasonLoaded, Message: "0.1.0 was loaded from /modules/6.12.94-amd64/ringcap.ko"},
		Consumers: map[capture.QueueID]string{},
	}
	const large = 1_234_567_890_123
	for i := range manyRings {
		name, device := fmt.Sprintf("department-%03d-mirror", i), fmt.Sprintf("enp%ds0f1np1", i)
		in.Report.Rings[name] = datapath.Object{
			Made: true, Engine: v1.EngineKernelModule,
			Decision: plan.Verdict{EngineReason: "the kernel module is loaded", Interfaces: []string{device}},
		}
		in.Report.Clusters[name] = datapath.Object{Made: true, Fed: true, Engine: v1.EngineKernelModule}
		rings[name] = capture.RingState{Stats: capture.RingStats{Seen: large + round, SeenBytes: 1000 * large, Passed: large + round}}
		in.Report.Outcome.NICs[device] = nic.Outcome{Settings: []nic.SettingState{
			{Setting: plan.SettingOffloads, Desired: plan.Desired{Value: "off", Ring: name}, Actual: "rx-gro=off rx-gro-hw=off rx-lro=off"},
			{Setting: plan.SettingRxRingSize, Desired: plan.Desired{Value: "4096", Ring: name}, Actual: "4096"},
		}}
		var set capture.ClusterState
		for q := range uint64(manyQueues) {
			stats := capture.QueueStats{Delivered: large + q + round, DeliveredBytes: 500*large + round, UnreadBytes: 131072, Attached: q < 3}
			stats.Dropped = map[capture.DropReason]uint64{capture.DropFull: q % 7 * round, capture.DropUnattended: large}
			set.Queues = append(set.Queues, stats)
			if q < 3 {
				in.Consumers[capture.QueueID{Cluster: name, Queue: int(q)}] = fmt.Sprintf("security-sensors/suricata-%03d-5b7f9d8c64-x2x9z", i)
			}
		}
		clusters[name] = set
	}
	return in
}

// The status of 12,800 queues is one that an API server takes, beside the largest spec that the operator writes; its
// sums are those of all queues, and each pod is named. Without the bound it would not be taken.
func TestTheStatusOfManyQueues(t *testing.T) {
	ctx, c := context.Background(), api.Client(t)
	object := &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "many"}, Spec: largestSpec()}
	require.NoError(t, c.Create(ctx, object))
	t.Cleanup(func() { require.NoError(t, c.Delete(ctx, object)) })
	now := time.Now()
	writer := status.Writer{Client: c, Cached: c, Node: "many", Interval: time.Nanosecond, Timeout: time.Minute, Now: func() time.Time { return now }}
	for round := range uint64(3) {
		in := manyQueuesInput(round)
		now = now.Add(time.Minute)
		require.NoError(t, writer.Write(ctx, in))
		var stored v1.NodeCapture
		require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(object), &stored))
		text, err := json.Marshal(stored)
		require.NoError(t, err)
		t.Logf("%d KiB, of which the status is %d", len(text)>>10, sizeOf(t, stored.Status))
		assert.Less(t, float64(len(text)), etcdLimit)

		whole := status.Build(in)
		listed := 0
		for i, set := range stored.Status.Clusters {
			all := set.Totals()
			assert.Equal(t, whole.Clusters[i].Totals(), all)
			assert.EqualValues(t, manyQueues, all.Queues)
			assert.EqualValues(t, 3, all.Attached)
			assert.Zero(t, set.Unlisted.Unnamed)
			listed += len(set.Queues)
		}
		assert.Equal(t, v1.MaxListedQueues, listed)
		if round == 2 {
			t.Logf("a status of all queues would be %d KiB", sizeOf(t, whole))
			stored.Status = whole
			assert.Error(t, c.Status().Update(ctx, &stored))
		}
	}
}

func sizeOf(t *testing.T, v any) int {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return len(text) >> 10
}

// largestSpec has all the rings' specs that the operator lets on one node: 1 MiB.
func largestSpec() (spec v1.NodeCaptureSpec) {
	for i := range manyRings {
		ring := v1.NodeRing{Name: fmt.Sprintf("department-%03d-mirror", i)}
		ring.Spec.Interfaces = []v1.InterfaceSelector{{Name: fmt.Sprintf("enp%ds0f1np1", i)}}
		ring.Spec.Default()
		text, _ := json.Marshal(ring.Spec)
		ring.Spec.Filter = &v1.Filter{BPF: strings.Repeat("x", 1<<20/manyRings-len(text)-len(`"filter":{"bpf":""},`))}
		spec.Rings = append(spec.Rings, ring)
	}
	return spec
}
