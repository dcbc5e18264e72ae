// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/plan"
	"github.com/ringcap/ringcap/node-agent/status"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// requests counts those of a client by method and resource; a watch and the list before it are the cache's.
type requests struct {
	next http.RoundTripper
	mu   sync.Mutex
	made map[string]int
}

func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	resource := "status"
	if strings.Contains(request.URL.Path, "/leases") {
		resource = "lease"
	}
	r.made[request.Method+" "+resource]++
	r.mu.Unlock()
	return r.next.RoundTrip(request)
}

// underTraffic are ten minutes of an agent's reports, one every two seconds with packets in between, and an edit by
// the operator after five. It returns the requests that were made, and the object.
func underTraffic(t *testing.T, name string, heartbeat func(c client.Client) *status.Heartbeat) (map[string]int, *v1.NodeCapture) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	admin := api.Client(t)
	object := &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, admin.Create(ctx, object))
	t.Cleanup(func() { require.NoError(t, admin.Delete(context.Background(), object)) })

	watch, err := newNodeWatch(api.Config(t), name, func(error) {})
	require.NoError(t, err)
	require.NoError(t, watch.start(ctx, func() {}))
	require.True(t, watch.cache.WaitForCacheSync(ctx))
	counter := requests{made: map[string]int{}}
	config := rest.CopyConfig(api.Config(t))
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		counter.next = next
		return &counter
	})
	direct, err := newClient(config)
	require.NoError(t, err)

	now := time.Unix(1_000_000, 0)
	writer := status.Writer{
		Client: direct, Cached: watch.cache, Node: name, Interval: statusInterval, Timeout: requestTimeout,
		Now: func() time.Time { return now }, Heartbeat: heartbeat(direct),
	}
	stored := func() *v1.NodeCapture {
		var have v1.NodeCapture
		require.NoError(t, admin.Get(ctx, client.ObjectKeyFromObject(object), &have))
		return &have
	}
	for round := range uint64(300) {
		in := status.Input{Report: datapath.Report{
			Plan:  plan.Result{Plans: map[v1.Engine]capture.Plan{}},
			Rings: map[string]datapath.Object{"mirror": {Made: true, Engine: v1.EngineEBPF}},
			Observations: map[v1.Engine]capture.Observation{v1.EngineEBPF: {
				Rings: map[string]capture.RingState{"mirror": {Stats: capture.RingStats{Seen: 1000 * round, Passed: 1000 * round}}},
			}},
		}}
		require.NoError(t, writer.Write(ctx, in))
		now = now.Add(2 * time.Second)
		if round == 150 {
			have := stored()
			have.Spec = largestSpec()
			require.NoError(t, admin.Update(ctx, have))
			require.Eventually(t, func() bool {
				var cached v1.NodeCapture
				return watch.cache.Get(ctx, client.ObjectKeyFromObject(object), &cached) == nil && cached.Generation == have.Generation
			}, 30*time.Second, 10*time.Millisecond)
		}
	}
	return counter.made, stored()
}

// An agent under traffic writes its Lease once in 40 to 60 seconds, its status every five minutes, and reads nothing.
// An edit by the operator does not change that.
func TestRequestsOfAnAgentUnderTraffic(t *testing.T) {
	pod := types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "agent-x"}
	made, object := underTraffic(t, "counted", func(c client.Client) *status.Heartbeat {
		h := (&Agent{Pod: pod, MetricsAddress: ":9466"}).heartbeat(c)
		for range 100 {
			require.Greater(t, h.Pause(), 40*time.Second)
			require.LessOrEqual(t, h.Pause(), time.Minute)
		}
		h.Pause = func() time.Duration { return 50 * time.Second }
		return h
	})
	want := map[string]int{"PATCH status": 3, "POST lease": 1, "PATCH lease": 12}
	assert.Equal(t, want, made, "the first Lease is not there to be patched")
	assert.InDelta(t, 300_000, object.Status.Rings[0].Seen, 151_000)

	var lease coordinationv1.Lease
	require.NoError(t, api.Client(t).Get(t.Context(), client.ObjectKey{Namespace: pod.Namespace, Name: "ringcap-agent-counted"}, &lease))
	assert.EqualValues(t, 1_000_550, lease.Spec.RenewTime.Unix())
	assert.Equal(t, "counted", *lease.Spec.HolderIdentity)
	assert.EqualValues(t, 180, *lease.Spec.LeaseDurationSeconds)
	assert.Equal(t, "agent-heartbeat", lease.Labels["app.kubernetes.io/component"])
	require.Len(t, lease.OwnerReferences, 1)
	assert.Equal(t, object.UID, lease.OwnerReferences[0].UID)
}

// An agent that may not write Leases, as in an older installation, writes its status once a minute, and so does an
// agent that is not a pod. It logs that once.
func TestAnAgentWithoutALease(t *testing.T) {
	var made map[string]int
	log := logged(t, func() {
		made, _ = underTraffic(t, "without", func(client.Client) *status.Heartbeat {
			c, err := newClient(api.NewUser(t, "old-agent"))
			require.NoError(t, err)
			return (&Agent{Pod: types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "agent-x"}, MetricsAddress: ":9466"}).heartbeat(c)
		})
	})
	assert.Equal(t, map[string]int{"PATCH status": 11}, made)
	assert.Equal(t, 1, strings.Count(log, "level="), log)
	assert.Contains(t, log, "its status is written once a minute instead")
	assert.Contains(t, log, "cannot patch resource")
	assert.Nil(t, (&Agent{}).heartbeat(nil))
}

// The status has the agent's address if the agent is a pod that listens.
func TestWhereTheAgentCanBeAsked(t *testing.T) {
	pod := types.NamespacedName{Namespace: "ringcap-system", Name: "agent-x"}
	for address, want := range map[string]*v1.NodeAgent{
		":9466":          {Namespace: "ringcap-system", Pod: "agent-x", Port: 9466},
		"0.0.0.0:65535":  {Namespace: "ringcap-system", Pod: "agent-x", Port: 65535},
		"127.0.0.1:0":    nil,
		"":               nil,
		"127.0.0.1:http": nil,
	} {
		assert.Equal(t, want, (&Agent{MetricsAddress: address, Pod: pod}).address(), address)
	}
	assert.Nil(t, (&Agent{MetricsAddress: ":9466"}).address(), "a process that is no pod")
}
