// SPDX-License-Identifier: Apache-2.0

// Package scale measures the operator over many nodes and rings: API objects alone, against a real kube-apiserver and etcd.
// A small fleet is part of the ordinary tests; `make bench-operator` takes a large one and prints what it took.
package scale

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/go-logr/logr"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/controllers/rollout"
	"github.com/ringcap/ringcap/operator/controllers/status"
	"github.com/ringcap/ringcap/operator/networks"
	"github.com/ringcap/ringcap/operator/plan"
	"github.com/ringcap/ringcap/operator/snapshot"
	"github.com/ringcap/ringcap/operator/testenv"
)

var env testenv.Env

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	if kubeconfig := os.Getenv(agentsOf); kubeconfig != "" {
		if err := playAgents(kubeconfig); err != nil {
			fmt.Fprintln(os.Stderr, "agents:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(env.Run(m))
}

// Limits: how long one edit may take to reach all nodes, how many requests a second the API server may get of a fleet in which nothing
// changes, and how large etcd may be after all of it, bytes. On a machine with fewer processors than the control plane of such a fleet
// has, an edit may take as much CPU time as those have in that time.
const (
	limit         = 30 * time.Second
	controlPlane  = 16
	limitRequests = 300
	limitStore    = 1 << 30
)

// scaleOf is the variable that marks a measurement.
const scaleOf = "RINGCAP_SCALE"

// fleet is how many there are. Rings are for nodes of one of the pools, but for one that is for all.
type fleet struct{ nodes, rings, pools int }

func size(t *testing.T) fleet {
	f := fleet{nodes: 60, rings: 30, pools: 5}
	if text := os.Getenv(scaleOf); text != "" {
		_, err := fmt.Sscanf(text, "%d %d %d", &f.nodes, &f.rings, &f.pools)
		require.NoError(t, err, scaleOf+" is NODES RINGS POOLS")
	}
	return f
}

func TestOneEditReachesAllNodes(t *testing.T) {
	f := size(t)
	config := rest.CopyConfig(env.Config(t))
	config.QPS = -1
	admin, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	require.NoError(t, err)
	begun := take(t)
	f.populate(t, admin)
	begun = begun.log(t, fmt.Sprintf("%d nodes and %d rings made", f.nodes, f.rings))

	ctx, stop := context.WithCancel(t.Context())
	mgr := startOperator(t, ctx, config)
	t.Cleanup(stop)
	f.await(t, mgr.GetClient(), 10*time.Minute, v1alpha1.DefaultSlots)
	begun.log(t, "first rollout")
	f.rest(t, mgr.GetClient())

	begun = take(t)
	api := f.startAgents(t, admin, config)
	f.awaitReports(t, mgr.GetClient(), 10*time.Minute)
	begun.log(t, "all agents have come and reported")

	var everywhere v1alpha1.CaptureRing
	require.NoError(t, admin.Get(ctx, client.ObjectKey{Name: "everywhere"}, &everywhere))
	everywhere.Spec.Slots = 8192
	begun = take(t)
	require.NoError(t, admin.Update(ctx, &everywhere))
	f.await(t, mgr.GetClient(), 10*time.Minute, 8192)
	told := begun.log(t, "one edit reaches all nodes")
	edit, cpu := told.at.Sub(begun.at), told.since(begun)
	begun = told
	f.awaitReports(t, mgr.GetClient(), 10*time.Minute)
	begun.log(t, "and all report that it works")

	requests := f.requestsAtRest(t, api)
	store := api.sum(t, "apiserver_storage_size_bytes")
	t.Logf("bench-operator: %.0f requests/s at rest; etcd has %.0f MiB", requests, store/(1<<20))
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	t.Logf("bench-operator: %d CPUs; the operator has %d MiB of heap in use and has taken %d MiB from the system",
		runtime.NumCPU(), memory.HeapAlloc>>20, memory.Sys>>20)
	if os.Getenv(scaleOf) != "" { // else it is a test among others
		if runtime.NumCPU() < controlPlane {
			edit = cpu / controlPlane
		}
		require.Less(t, edit, limit, "one edit of a ring on %d nodes", f.nodes)
	}
	require.Less(t, requests, float64(limitRequests), "requests a second")
	require.Positive(t, store)
	require.Less(t, store, float64(limitStore), "etcd's database")
}

// populate makes the nodes and the rings.
func (f fleet) populate(t *testing.T, c client.Client) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for i := range f.nodes {
		group.Go(func() error {
			return c.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("node-%05d", i), Labels: map[string]string{"pool": fmt.Sprint(i % f.pools)},
			}})
		})
	}
	for i := range f.rings {
		ring := &v1alpha1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("ring-%03d", i)}}
		ring.Spec.NodeSelector = v1alpha1.NodesWith("pool", fmt.Sprint(i%f.pools))
		if i == 0 {
			ring.Name, ring.Spec.NodeSelector = "everywhere", nil
		}
		ring.Spec.Interfaces = []v1alpha1.InterfaceSelector{{Name: fmt.Sprintf("eth%d", i/f.pools)}}
		ring.Spec.Queues = v1alpha1.Queues(4)
		ring.Spec.Filter = &v1alpha1.Filter{}
		for port := range int32(5) {
			ring.Spec.Filter.Rules = append(ring.Spec.Filter.Rules, v1alpha1.Rule{
				Action: v1alpha1.RuleDrop, Match: v1alpha1.RuleMatch{Source: fmt.Sprintf("10.%d.%d.0/24", i%256, port)},
			})
		}
		group.Go(func() error { return c.Create(t.Context(), ring) })
	}
	require.NoError(t, group.Wait())
}

func startOperator(t *testing.T, ctx context.Context, config *rest.Config) ctrl.Manager {
	t.Helper()
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme.Scheme, Cache: snapshot.CacheOptions(metav1.NamespaceDefault), Metrics: server.Options{BindAddress: "0"},
	})
	require.NoError(t, err)
	planner := &snapshot.Planner{Reader: mgr.GetClient(), FleetBytes: plan.DefaultFleetBytes, Now: time.Now}
	writer := networks.NewWriter(mgr.GetClient(), networks.DevicePlugin{})
	require.NoError(t, (&rollout.Reconciler{Client: mgr.GetClient(), Planner: planner, Networks: writer}).SetupWithManager(mgr))
	require.NoError(t, (&status.Reconciler{
		Client: mgr.GetClient(), Planner: planner, Recorder: mgr.GetEventRecorder("scale"), Networks: writer,
	}).SetupWithManager(mgr))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() { require.NoError(t, <-done) })
	require.True(t, mgr.GetCache().WaitForCacheSync(ctx))
	return mgr
}

// await waits until every node has its rings, and the one for all with these slots.
func (f fleet) await(t *testing.T, c client.Client, timeout time.Duration, slots int32) {
	t.Helper()
	begun := time.Now()
	for {
		var captures v1alpha1.NodeCaptureList
		require.NoError(t, c.List(t.Context(), &captures, client.UnsafeDisableDeepCopy))
		done := 0
		for i := range captures.Items {
			if has(&captures.Items[i].Spec, slots) {
				done++
			}
		}
		if done == f.nodes {
			return
		}
		require.Less(t, time.Since(begun), timeout, "%d of %d nodes have it", done, f.nodes)
		time.Sleep(500 * time.Millisecond) // looking through thousands takes its time, too
	}
}

func has(spec *v1alpha1.NodeCaptureSpec, slots int32) bool {
	for i := range spec.Rings {
		if spec.Rings[i].Name == "everywhere" {
			return spec.Rings[i].Spec.Slots == slots
		}
	}
	return false
}

// pause is shorter for a small fleet, which is no measurement.
func (f fleet) pause(d time.Duration) {
	if f.nodes <= 250 {
		d /= 20
	}
	time.Sleep(d)
}

// rest measures an operator with nothing to do: it must write nothing.
func (f fleet) rest(t *testing.T, c client.Client) {
	t.Helper()
	const settle, measure = 20 * time.Second, 35 * time.Second // what nodes report is gathered, and rechecked every 30 s
	f.pause(settle)
	before, begun := versions(t, c), take(t)
	f.pause(measure)
	begun.log(t, "at rest")
	require.Equal(t, before, versions(t, c), "nothing changed, and something was written")
}

// versions are those of all NodeCaptures.
func versions(t *testing.T, c client.Client) string {
	t.Helper()
	var captures v1alpha1.NodeCaptureList
	require.NoError(t, c.List(t.Context(), &captures, client.UnsafeDisableDeepCopy))
	all := map[string]string{}
	for i := range captures.Items {
		all[captures.Items[i].Name] = captures.Items[i].ResourceVersion
	}
	return strings.ReplaceAll(fmt.Sprint(all), " ", "\n")
}
