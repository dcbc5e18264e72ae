// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/containers"
	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/deviceplugin"
	"github.com/ringcap/ringcap/node-agent/plan"
	"github.com/ringcap/ringcap/node-agent/pods"
	"github.com/ringcap/ringcap/operator/api/consumers"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

func apiServer(t *testing.T, fail error, objects ...client.Object) client.Client {
	t.Helper()
	scheme, err := Scheme()
	require.NoError(t, err)
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if fail != nil {
				return fail
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
}

func nodeCapture(change ...func(*v1.NodeCapture)) *v1.NodeCapture {
	nc := &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "n1", Generation: 4, ResourceVersion: "1"}, Spec: v1.NodeCaptureSpec{
		Rings: []v1.NodeRing{{Name: "mirror", Spec: v1.CaptureRingSpec{Interfaces: []v1.InterfaceSelector{{Name: "eth0"}}}}},
	}}
	for _, c := range change {
		c(nc)
	}
	return nc
}

func TestDesired(t *testing.T) {
	ask := func(c client.Client) (v1.NodeCaptureSpec, int64, bool) { return desired(context.Background(), c, "n1") }

	spec, generation, known := ask(apiServer(t, nil, nodeCapture()))
	assert.True(t, known)
	assert.EqualValues(t, 4, generation)
	assert.Equal(t, v1.EngineAuto, spec.Rings[0].Spec.Engine, "defaults, for objects that an older API server stored")

	spec, _, known = ask(apiServer(t, nil))
	assert.True(t, known, "no NodeCapture: nothing is wanted")
	assert.Empty(t, spec.Rings)

	spec, _, known = ask(apiServer(t, nil, nodeCapture(func(nc *v1.NodeCapture) {
		nc.DeletionTimestamp, nc.Finalizers = &metav1.Time{Time: time.Now()}, []string{"ringcap.io/test"}
	})))
	assert.True(t, known)
	assert.Empty(t, spec.Rings)

	_, _, known = ask(apiServer(t, errors.New("no route to host"), nodeCapture()))
	assert.False(t, known, "an API server that does not answer changes nothing")
}

// staticUID is as a kubelet makes them.
const staticUID = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"

func TestPodUIDs(t *testing.T) {
	pod := func(name, mirror string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "sensors", Name: name, UID: "uid-x"}}
		if mirror != "" {
			p.Annotations = map[string]string{mirrorAnnotation: mirror}
		}
		return p
	}
	uids := podUIDs{apiServer(t, nil, pod("a", ""), pod("static", staticUID))}
	got, err := uids.PodUIDs(context.Background(), pods.Pod{Namespace: "sensors", Name: "a"})
	require.NoError(t, err)
	assert.Equal(t, []string{"uid-x"}, got)
	got, err = uids.PodUIDs(context.Background(), pods.Pod{Namespace: "sensors", Name: "static"})
	require.NoError(t, err)
	assert.Equal(t, []string{"uid-x", staticUID}, got)
	got, err = uids.PodUIDs(context.Background(), pods.Pod{Namespace: "sensors", Name: "none"})
	require.NoError(t, err)
	assert.Empty(t, got)
}

func report(fed bool, queues int) datapath.Report {
	return datapath.Report{
		Plan:     plan.Result{Plans: map[v1.Engine]capture.Plan{}},
		Clusters: map[string]datapath.Object{"ids": {Made: true, Fed: fed, Engine: v1.EngineEBPF}, "planned": {Made: true, Engine: v1.EngineEBPF}},
		Observations: map[v1.Engine]capture.Observation{v1.EngineEBPF: {
			Clusters: map[string]capture.ClusterState{"ids": {Queues: make([]capture.QueueStats, queues)}},
		}},
	}
}

// Only queues that are there are offered, and those that nothing feeds, or that cannot be observed, as unhealthy.
func TestResources(t *testing.T) {
	a := &Agent{Reconciler: &datapath.Reconciler{}}
	health := func(r map[string]deviceplugin.Resource) map[string][]bool {
		found := map[string][]bool{}
		for name, resource := range r {
			found[name] = resource.Healthy
		}
		return found
	}
	a.offered = a.resources(report(true, 2), true)
	assert.Equal(t, map[string][]bool{"ids": {true, true}}, health(a.offered))
	assert.Nil(t, a.offered["ids"].Queues(), "no engine is open")
	assert.Equal(t, map[string][]bool{"ids": {false, false}}, health(a.resources(report(false, 2), true)))

	unobserved := datapath.Report{Clusters: report(true, 2).Clusters, ObserveErr: errors.New("the module is gone")}
	assert.Equal(t, map[string][]bool{"ids": {false, false}}, health(a.resources(unobserved, true)))
	assert.Empty(t, a.resources(datapath.Report{}, true))
}

// Queues that come with a library do so only where it is there; others are none the worse.
func TestResourcesWithALibrary(t *testing.T) {
	a := &Agent{Reconciler: &datapath.Reconciler{}, Library: containers.Library{From: t.TempDir(), To: t.TempDir()}}
	r := report(true, 1)
	assert.NoError(t, a.provideLibrary(r), "nobody asks for it")
	assert.Empty(t, a.resources(r, true)["ids"].Mounts)

	cluster := r.Clusters["ids"]
	cluster.Decision.InjectLibpcap = true
	r.Clusters["ids"] = cluster
	assert.ErrorContains(t, a.provideLibrary(r), "spec.consumers.injectLibpcap")
	assert.Equal(t, []bool{false}, a.resources(r, false)["ids"].Healthy)
	offered := a.resources(r, true)["ids"]
	assert.Equal(t, []bool{true}, offered.Healthy)
	assert.Equal(t, a.Library.Mounts(), offered.Mounts)
}

func TestNUMANodes(t *testing.T) {
	r := report(true, 1)
	taps := func(names ...string) (taps []capture.Tap) {
		for _, name := range names {
			taps = append(taps, capture.Tap{Interface: name})
		}
		return taps
	}
	r.Plan.Plans[v1.EngineEBPF] = capture.Plan{Rings: []capture.Ring{
		{Name: "a", Outputs: []string{"ids", "flows"}, Taps: taps("eth1", "eth0", "veth0")}, {Name: "b", Outputs: []string{"flows"}, Taps: taps("eth2")},
	}}
	of := func(name string) (int, bool) {
		number, ok := map[string]int{"eth0": 0, "eth1": 1, "eth2": 2}[name]
		return number, ok
	}
	assert.Equal(t, []int{0, 1}, numaNodes(r, "ids", of))
	assert.Empty(t, numaNodes(r, "planned", of))
}

// A set of queues that is only left over is nobody's to start with.
func TestNamespaces(t *testing.T) {
	r := report(true, 2)
	rule := consumers.Rule{consumers.OfRing("closed", &v1.Consumers{Namespaces: []string{"sensors"}})}
	r.Clusters["closed"] = datapath.Object{Decision: plan.Verdict{Consumers: rule}}
	r.Clusters["gone"] = datapath.Object{Orphaned: true}
	assert.Equal(t, map[string]consumers.Rule{"ids": nil, "planned": nil, "closed": rule}, namespaces(r))
}

func TestReadyWhenAllIsAppliedAndOffered(t *testing.T) {
	a := &Agent{devices: deviceplugin.NewManager(t.TempDir(), t.TempDir(), nil)}
	assert.ErrorContains(t, a.ready(), "not been looked at yet")
	a.health.Set(errors.New("the module is gone"))
	assert.ErrorContains(t, a.ready(), "the module is gone")
	a.health.Set(nil)
	assert.NoError(t, a.ready())
	a.devices.Set(map[string]deviceplugin.Resource{"ids": {Healthy: []bool{true}}})
	assert.ErrorContains(t, a.ready(), "ringcap.io/ids", "not before the kubelet has it")
}
