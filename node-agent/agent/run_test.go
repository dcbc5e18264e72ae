// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/containers"
	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/metrics"
	"github.com/ringcap/ringcap/node-agent/nic"
	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
	"github.com/ringcap/ringcap/node-agent/status"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// nodeServer is an API server with one NodeCapture and nothing else, discovery included. Until it is reachable, it cuts
// every connection.
type nodeServer struct {
	reachable atomic.Bool
	object    v1.NodeCapture
	statuses  chan v1.NodeCaptureStatus
	events    chan eventsv1.Event
}

func (s *nodeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const all, one = "/apis/ringcap.io/v1alpha1/nodecaptures", "/apis/ringcap.io/v1alpha1/nodecaptures/n1"
	if !s.reachable.Load() {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	watch := r.URL.Query().Has("watch")
	switch {
	case r.URL.Path == all && watch && r.URL.Query().Has("sendInitialEvents"):
		refusal := apierrors.NewBadRequest("lists are not streamed").Status()
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(&refusal)
	case r.URL.Path == all && watch:
		// The answer never begins, so an agent that ends cuts a request off.
		<-r.Context().Done()
	case r.URL.Path == all && strings.Contains(r.URL.RawQuery, "fieldSelector=metadata.name%3Dn1"):
		_ = json.NewEncoder(w).Encode(&v1.NodeCaptureList{
			TypeMeta: metav1.TypeMeta{APIVersion: "ringcap.io/v1alpha1", Kind: "NodeCaptureList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []v1.NodeCapture{s.object},
		})
	case r.URL.Path == one:
		_ = json.NewEncoder(w).Encode(&s.object)
	case r.URL.Path == one+"/status" && r.Method == http.MethodPatch:
		written := s.object
		_ = json.NewDecoder(r.Body).Decode(&written)
		s.statuses <- written.Status
		_ = json.NewEncoder(w).Encode(&written)
	case r.URL.Path == "/apis/events.k8s.io/v1/namespaces/default/events" && r.Method == http.MethodPost:
		var event eventsv1.Event
		body, _ := io.ReadAll(r.Body)
		_, _, _ = clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, &event)
		s.events <- event
		_ = json.NewEncoder(w).Encode(&event)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// idleEngine has nothing, and reports what is asked of it.
type idleEngine struct{ applied chan capture.Plan }

func (e idleEngine) Apply(_ context.Context, p capture.Plan, _ capture.Observation) (map[string]error, error) {
	e.applied <- p
	return nil, nil
}
func (e idleEngine) Observe(context.Context) (capture.Observation, error) {
	return capture.Observation{}, nil
}
func (e idleEngine) Grant(capture.QueueID) (capture.Grant, error) { return capture.Grant{}, nil }
func (e idleEngine) TakeBack(context.Context, capture.QueueID, capture.Holder) (int, error) {
	return 0, nil
}
func (e idleEngine) Close() error { return nil }

type noNICs struct{}

func (noNICs) Apply(map[string]plan.NICSettings) (map[string]nic.Outcome, error) { return nil, nil }

// newAgent makes an agent with one engine; opened hears when that is opened.
func newAgent(t *testing.T, address string, engine idleEngine, opened chan<- struct{}) *Agent {
	t.Helper()
	config, kubelet := &rest.Config{Host: address}, t.TempDir()
	access, err := PodAccess(config, kubelet, "/sys")
	require.NoError(t, err)
	return &Agent{
		Node: "n1", Config: config, KubeletDir: kubelet, Access: access, CDIDir: t.TempDir(), Library: containers.Library{To: t.TempDir()}, MetricsAddress: "127.0.0.1:0",
		Collector: metrics.NewCollector("test", "6.1"), Module: func() status.Module { return status.Module{Reason: "None", Message: "none"} },
		Changed: datapath.NewSignal(), Activity: datapath.NewSignal(),
		Reconciler: &datapath.Reconciler{
			NICs:       noNICs{},
			Compile:    func(string, uint32) ([]bpf.RawInstruction, error) { return nil, nil },
			Interfaces: func() ([]node.Interface, error) { return []node.Interface{{Name: "eth0", Index: 2}}, nil },
			Providers: []*datapath.Provider{{
				Kind:  v1.EngineEBPF,
				Probe: func(context.Context) plan.EngineFact { return plan.EngineFact{Available: true, Lanes: 1} },
				Open: func(context.Context) (capture.Engine, error) {
					opened <- struct{}{}
					return engine, nil
				},
			}},
		},
	}
}

func get[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(30 * time.Second):
		require.FailNow(t, "nothing came", what)
		panic("unreachable")
	}
}

// An agent that starts without an API server adopts what is there and reports why it is not ready. It goes to work once
// the server is there.
func TestAnAgentStartsWithoutAnAPIServer(t *testing.T) {
	server := &nodeServer{object: *nodeCapture(), statuses: make(chan v1.NodeCaptureStatus, 100), events: make(chan eventsv1.Event, 100)}
	server.object.APIVersion, server.object.Kind = "ringcap.io/v1alpha1", "NodeCapture"
	front := httptest.NewServer(server)
	defer front.Close()
	engine, opened, ended := idleEngine{make(chan capture.Plan, 100)}, make(chan struct{}, 100), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	log := logged(t, func() {
		a := newAgent(t, front.URL, engine, opened)
		go func() { ended <- a.Run(ctx) }()
		get(t, opened, "the engine is opened")
		unreachable := func() bool {
			return strings.Contains(a.ready().Error(), "not said yet what to capture: reach the API server at 127.0.0.1:")
		}
		require.Eventually(t, unreachable, 30*time.Second, 10*time.Millisecond)
		assert.NoError(t, a.health.Healthy())
		assert.Empty(t, engine.applied, "the data path stays as it is")

		server.reachable.Store(true)
		assert.Len(t, get(t, engine.applied, "the spec is applied").Rings, 1)
		assert.EqualValues(t, 4, get(t, server.statuses, "the status is written").AppliedGeneration)
		event := get(t, server.events, "what changed is told")
		assert.Equal(t, "NodeCapture n1", event.Regarding.Kind+" "+event.Regarding.Name)
		assert.Equal(t, v1.ReasonEngineFallback, event.Reason)
		require.Eventually(t, func() bool { return a.ready() == nil }, 30*time.Second, 10*time.Millisecond)
		cancel()
		assert.NoError(t, get(t, ended, "the agent ends"))
		front.CloseClientConnections()
	})
	assert.Equal(t, 1, strings.Count(log, "level=WARN msg=\"NodeCaptures cannot be watched"), log)
	assert.Equal(t, 1, strings.Count(log, "level=INFO msg=\"NodeCaptures are watched"), log)
	assert.NotContains(t, log, "level=ERROR")
}

// An agent that is told to end while it waits for the API server ends without an error.
func TestAnAgentEndsWithoutAnAPIServer(t *testing.T) {
	front := httptest.NewServer(&nodeServer{})
	defer front.Close()
	opened, ended := make(chan struct{}, 100), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	a := newAgent(t, front.URL, idleEngine{make(chan capture.Plan, 100)}, opened)
	go func() { ended <- a.Run(ctx) }()
	get(t, opened, "the engine is opened")
	cancel()
	assert.NoError(t, get(t, ended, "the agent ends"))
}
