// SPDX-License-Identifier: Apache-2.0

// Package controllers_test runs the operator's controllers against a real API server, with the rights that the chart
// gives them, and plays the nodes' agents.
package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/controllers/podcapture"
	"github.com/ringcap/ringcap/operator/controllers/rollout"
	"github.com/ringcap/ringcap/operator/controllers/status"
	"github.com/ringcap/ringcap/operator/filtercheck"
	"github.com/ringcap/ringcap/operator/networks"
	"github.com/ringcap/ringcap/operator/plan"
	"github.com/ringcap/ringcap/operator/snapshot"
	"github.com/ringcap/ringcap/operator/suspend"
	"github.com/ringcap/ringcap/operator/testenv"
)

var (
	env      testenv.Env
	operator struct {
		start sync.Once
		stop  context.CancelFunc
		done  chan error
		err   error
	}
	// late is how much later than it is the controllers think that it is.
	late atomic.Int64
)

// timeout is how long a test waits for the operator, which rechecks what has no event every 15 to 30 seconds.
const timeout = 2 * time.Minute

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(env.Run(mainWithOperator{m}))
}

type mainWithOperator struct{ m *testing.M }

// Run stops the operator before the API server.
func (m mainWithOperator) Run() int {
	code := m.m.Run()
	if operator.stop != nil {
		operator.stop()
		if err := <-operator.done; err != nil {
			fmt.Fprintln(os.Stderr, "operator:", err)
			return 1
		}
	}
	return code
}

// world is a test's part of the cluster: its nodes, told from those of other tests by a label.
type world struct {
	client.Client
	t     *testing.T
	label map[string]string
	made  []client.Object
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Client: env.Client(t), t: t, label: map[string]string{"test": t.Name()}}
	config := env.NewUser(t, "ringcap-operator")
	operator.start.Do(func() { operator.err = startOperator(w.Client, config) })
	require.NoError(t, operator.err)
	t.Cleanup(w.cleanUp)
	return w
}

// startOperator grants the generated ClusterRole to the user and runs the controllers as that user.
func startOperator(admin client.Client, config *rest.Config) error {
	text, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "rbac", "operator.yaml"))
	if err != nil {
		return err
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(text, &role); err != nil {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ringcap-operator"}},
	}
	ctx, cancel := context.WithCancel(context.Background())
	operator.stop, operator.done = cancel, make(chan error, 1)
	if err := errors.Join(admin.Create(ctx, &role), admin.Create(ctx, binding)); err != nil {
		operator.done <- nil
		return err
	}
	if err := createDeployment(ctx, admin); err != nil {
		operator.done <- nil
		return err
	}
	caches := snapshot.CacheOptions(deployment.Namespace)
	caches.ByObject[&v1alpha1.PodCapture{}] = cache.ByObject{Transform: podcapture.Trim}
	caches.ByObject[suspend.Metadata()] = suspend.CacheOption(deployment)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme.Scheme, Cache: caches, Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		operator.done <- nil
		return err
	}
	planner := &snapshot.Planner{
		Reader: mgr.GetClient(), CheckFilter: filtercheck.New(compile).Check, FleetBytes: 1 << 20,
		Now:  func() time.Time { return time.Now().Add(time.Duration(late.Load())) },
		Mark: suspend.New(mgr.GetClient(), deployment),
	}
	writer := networks.NewWriter(mgr.GetClient(), devicePlugin)
	err = errors.Join(
		(&podcapture.Reconciler{Client: mgr.GetClient(), Limits: podcapture.Limits{PerNamespace: 2, Memory: 16 << 20}}).SetupWithManager(mgr),
		(&rollout.Reconciler{Client: mgr.GetClient(), Planner: planner, Networks: writer}).SetupWithManager(mgr),
		(&status.Reconciler{Client: mgr.GetClient(), Planner: planner, Networks: writer, Recorder: mgr.GetEventRecorder("test")}).SetupWithManager(mgr))
	go func() { operator.done <- mgr.Start(ctx) }()
	return err
}

// compile uses the project's own compiler where it was built, else the one in the path.
func compile(expression string) error {
	program, err := rcbpf()
	if err != nil {
		return fmt.Errorf("%w: %w", plan.ErrFilterUnknown, err)
	}
	return filtercheck.Compiler(program)(expression)
}

func rcbpf() (string, error) {
	built := filepath.Join(testenv.Root(), "out", "bin", "rcbpf")
	if _, err := os.Stat(built); err == nil {
		return built, nil
	}
	return exec.LookPath("rcbpf")
}

// create creates the object; it is deleted after the test.
func (w *world) create(object client.Object) {
	w.t.Helper()
	require.NoError(w.t, w.Create(w.t.Context(), object))
	w.made = append(w.made, object)
}

// cleanUp deletes what the test made, the nodes first: then no agent is waited for.
func (w *world) cleanUp() {
	ctx := context.Background()
	slices.SortStableFunc(w.made, func(a, b client.Object) int { return rank(a) - rank(b) })
	for _, object := range w.made {
		require.NoError(w.t, client.IgnoreNotFound(w.Delete(ctx, object)))
	}
	for _, object := range w.made {
		require.EventuallyWithT(w.t, func(c *assert.CollectT) {
			assert.Error(c, w.Get(ctx, client.ObjectKeyFromObject(object), object), "%s is still there", object.GetName())
		}, timeout, 50*time.Millisecond)
	}
}

func rank(object client.Object) int {
	if _, node := object.(*corev1.Node); node {
		return 0
	}
	return 1
}

func (w *world) node(name string) *corev1.Node {
	w.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: w.label}}
	w.create(n)
	return n
}

// ring is a CaptureRing on the test's nodes.
func (w *world) ring(name string) *v1alpha1.CaptureRing {
	return &v1alpha1.CaptureRing{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.CaptureRingSpec{
			NodeSelector: &v1alpha1.NodeSelector{MatchLabels: w.label}, Interfaces: []v1alpha1.InterfaceSelector{{Name: "mirror0"}},
		},
	}
}

func (w *world) cluster(name string, rings ...string) *v1alpha1.Cluster {
	return &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ClusterSpec{Rings: rings, Queues: 2},
	}
}

// eventually waits for what is asserted.
func (w *world) eventually(assertion func(*assert.CollectT)) {
	w.t.Helper()
	require.EventuallyWithT(w.t, assertion, timeout, 50*time.Millisecond)
}

// events are an object's.
func (w *world) events(c *assert.CollectT, object client.Object) []string {
	var list eventsv1.EventList
	require.NoError(c, w.List(w.t.Context(), &list))
	var found []string
	for _, event := range list.Items {
		if event.Regarding.UID == object.GetUID() {
			found = append(found, fmt.Sprintf("%s %s: %s", event.Type, event.Reason, event.Note))
		}
	}
	return found
}

// update changes the object as it is now.
func update[T client.Object](w *world, object T, change func(T)) {
	w.t.Helper()
	w.eventually(func(c *assert.CollectT) {
		require.NoError(c, w.Get(w.t.Context(), client.ObjectKeyFromObject(object), object))
		change(object)
		assert.NoError(c, w.Update(w.t.Context(), object))
	})
}

// expect waits until the condition is about the present generation, has this status and reason, and its message contains these
// words. It returns the condition.
func (w *world) expect(object client.Object, kind string, want metav1.ConditionStatus, reason string, words ...string) metav1.Condition {
	w.t.Helper()
	var got metav1.Condition
	w.eventually(func(c *assert.CollectT) {
		require.NoError(c, w.Get(w.t.Context(), client.ObjectKeyFromObject(object), object))
		condition := meta.FindStatusCondition(statusOf(object).Conditions, kind)
		require.NotNil(c, condition, "%s has no condition %s", object.GetName(), kind)
		assert.Equal(c, object.GetGeneration(), condition.ObservedGeneration)
		assert.Equal(c, want, condition.Status, "%s: %s", condition.Reason, condition.Message)
		assert.Equal(c, reason, condition.Reason, condition.Message)
		for _, text := range words {
			assert.Contains(c, condition.Message, text)
		}
		got = *condition
	})
	return got
}

func statusOf(object client.Object) *v1alpha1.CaptureStatus {
	switch o := object.(type) {
	case *v1alpha1.CaptureRing:
		return &o.Status
	case *v1alpha1.Cluster:
		return &o.Status
	}
	panic(fmt.Sprintf("%T has no CaptureStatus", object))
}

// capture waits until the node's NodeCapture has these rings and Clusters, and returns it.
func (w *world) capture(node string, rings, clusters []string) *v1alpha1.NodeCapture {
	w.t.Helper()
	var nc v1alpha1.NodeCapture
	w.eventually(func(c *assert.CollectT) {
		require.NoError(c, w.Get(w.t.Context(), client.ObjectKey{Name: node}, &nc))
		var gotRings, gotClusters []string
		for _, r := range nc.Spec.Rings {
			gotRings = append(gotRings, r.Name)
		}
		for _, cl := range nc.Spec.Clusters {
			gotClusters = append(gotClusters, cl.Name)
		}
		assert.Equal(c, rings, gotRings)
		assert.Equal(c, clusters, gotClusters)
	})
	return &nc
}

// agent reports, as the node's agent does, that the node has applied its whole spec; change changes the report.
func (w *world) agent(node string, change func(*v1alpha1.NodeCaptureStatus)) {
	w.t.Helper()
	w.eventually(func(c *assert.CollectT) {
		var nc v1alpha1.NodeCapture
		require.NoError(c, w.Get(w.t.Context(), client.ObjectKey{Name: node}, &nc))
		nc.Status = obedient(&nc)
		if change != nil {
			change(&nc.Status)
		}
		assert.NoError(c, w.Status().Update(w.t.Context(), &nc))
	})
}

func obedient(nc *v1alpha1.NodeCapture) v1alpha1.NodeCaptureStatus {
	s := v1alpha1.NodeCaptureStatus{AppliedGeneration: nc.Generation, ObservedTime: &metav1.Time{Time: time.Now()}, Engine: v1alpha1.EngineEBPF}
	for _, r := range nc.Spec.Rings {
		s.Rings = append(s.Rings, v1alpha1.NodeRingStatus{
			Name: r.Name, ObservedRevision: r.Revision, Engine: v1alpha1.EngineEBPF, Ready: true, Seen: 100, Filtered: 10, Passed: 90,
		})
		if r.Spec.Queues != nil {
			s.Clusters = append(s.Clusters, queuesStatus(r.Name, v1alpha1.QueueCount(r.Spec.Queues)))
		}
	}
	for _, cl := range nc.Spec.Clusters {
		s.Clusters = append(s.Clusters, queuesStatus(cl.Name, cl.Spec.Queues))
	}
	return s
}

// queuesStatus has 40 packets delivered, 4 of them truncated, 3 shunted and 5 dropped in each queue; the first has a consumer.
func queuesStatus(name string, queues int32) v1alpha1.NodeClusterStatus {
	s := v1alpha1.NodeClusterStatus{Name: name, Ready: true}
	for q := range queues {
		s.Queues = append(s.Queues, v1alpha1.QueueStatus{
			Queue: q, Attached: q == 0, Delivered: 40, Truncated: 4, TruncatedBytes: 300, Shunted: 3,
			Dropped: []v1alpha1.DropCount{{Reason: "full", Packets: 2}, {Reason: "unattended", Packets: 3}},
		})
	}
	return s
}
