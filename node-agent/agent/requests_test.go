// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// requests counts those of a client by method; a watch and the list before it are the cache's.
type requests struct {
	next http.RoundTripper
	mu   sync.Mutex
	made map[string]int
}

func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.made[request.Method]++
	r.mu.Unlock()
	return r.next.RoundTrip(request)
}

// Ten minutes of an agent's reports, one every two seconds with packets in between, are eleven requests to an API server and
// none that reads. An edit by the operator does not change that.
func TestRequestsOfAnAgentUnderTraffic(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	admin := api.Client(t)
	object := &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "counted"}}
	require.NoError(t, admin.Create(ctx, object))
	t.Cleanup(func() { require.NoError(t, admin.Delete(context.Background(), object)) })

	watch, err := newNodeWatch(api.Config(t), "counted", func(error) {})
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
		Client: direct, Cached: watch.cache, Node: "counted", Interval: statusInterval, Timeout: requestTimeout,
		Now: func() time.Time { return now },
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
	assert.Equal(t, map[string]int{http.MethodPatch: 11}, counter.made)
	assert.InDelta(t, 300_000, stored().Status.Rings[0].Seen, 31_000)
}

// The status says where the agent can be asked, if it is a pod that listens.
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
