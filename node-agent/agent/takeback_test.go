// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/plan"
	"github.com/ringcap/ringcap/node-agent/pods"
	"github.com/ringcap/ringcap/node-agent/status"
	"github.com/ringcap/ringcap/operator/api/consumers"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

const sensorUID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"

// takingEngine notes from whom queues are taken.
type takingEngine struct {
	idleEngine
	taken []capture.QueueID
	from  []capture.Holder
	err   error
	seen  []capture.QueueStats
	// holder is the process that TakeBack says it took a queue from.
	holder int
}

func (e *takingEngine) Observe(context.Context) (capture.Observation, error) {
	return capture.Observation{Clusters: map[string]capture.ClusterState{"ids": {Queues: e.seen}}}, nil
}

// allocated is what the kubelet reports.
type allocated map[capture.QueueID][]pods.Pod

func (a allocated) Allocations(context.Context) (map[capture.QueueID][]pods.Pod, error) {
	return a, nil
}

func (e *takingEngine) TakeBack(_ context.Context, queue capture.QueueID, holder capture.Holder) (int, error) {
	e.taken, e.from = append(e.taken, queue), append(e.from, holder)
	return e.holder, e.err
}

// takingLab is a node where process 10, of a pod that is gone, holds queue 1 of ids, and process 11 of pod sensors/a
// queue 0.
func takingLab(t *testing.T) (*Agent, *takingEngine, datapath.Report, *[]status.Transition) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to create cgroups of pods")
	}
	proc, groups := t.TempDir(), t.TempDir()
	for pid, uid := range map[string]string{"10": "11111111-2222-3333-4444-555555555555", "11": sensorUID} {
		require.NoError(t, os.MkdirAll(filepath.Join(proc, pid), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(proc, pid, "stat"), []byte(pid+" (tcpdump) S 1"), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(proc, pid, "cgroup"), []byte("0::/kubepods/pod"+uid+"/c\n"), 0o644))
		folder := filepath.Join(groups, "kubepods/pod"+uid+"/c")
		require.NoError(t, os.MkdirAll(folder, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "cgroup.procs"), []byte(pid+"\n"), 0o644))
	}
	scheme, err := Scheme()
	require.NoError(t, err)
	engine := &takingEngine{holder: 10}
	now := time.Unix(1000, 0)
	access := pods.Access{Proc: proc, Cgroups: pods.Cgroups(groups), Namespaces: pods.NewNamespaces()}
	access.Namespaces.Set(map[string]consumers.Rule{"ids": {
		consumers.OfRing("ids", &v1.Consumers{Namespaces: []string{"sensors"}}),
	}})
	var told []status.Transition
	a := &Agent{
		Activity: datapath.NewSignal(), Changed: datapath.NewSignal(),
		Reconciler: &datapath.Reconciler{Providers: []*datapath.Provider{{
			Kind:  v1.EngineEBPF,
			Probe: func(context.Context) plan.EngineFact { return plan.EngineFact{Available: true} },
			Open:  func(context.Context) (capture.Engine, error) { return engine, nil },
		}}},
		writer: status.Writer{
			Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(&v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}).Build(),
			Node:   "n1", Timeout: time.Second,
			Announce: func(_ *v1.NodeCapture, what []status.Transition) { told = append(told, what...) },
		},
		keeper: &pods.Keeper{
			Access: access, Grace: takeBackGrace, Now: func() time.Time { now = now.Add(6 * time.Second); return now },
			Node: func(context.Context, bool) ([]pods.NodePod, error) {
				return []pods.NodePod{{Pod: pods.Pod{Namespace: "sensors", Name: "a"}, UIDs: []string{sensorUID}, Queues: map[string]int{"ids": 1}}}, nil
			},
		},
	}
	a.Reconciler.Adopt(t.Context())
	report := datapath.Report{
		Clusters: map[string]datapath.Object{"ids": {Engine: v1.EngineEBPF, Made: true}},
		Observations: map[v1.Engine]capture.Observation{v1.EngineEBPF: {Clusters: map[string]capture.ClusterState{
			"ids": {Queues: []capture.QueueStats{{Attached: true, Holder: 11}, {Attached: true, Holder: 10, Attachment: 7}, {}}},
		}}},
	}
	a.writer.Cached = a.writer.Client
	return a, engine, report, &told
}

// raised reports whether the signal was raised since the last look.
func raised(s datapath.Signal) bool {
	select {
	case <-s:
		return true
	default:
		return false
	}
}

func TestAQueueIsTakenBackFromAPodThatIsGone(t *testing.T) {
	a, engine, report, told := takingLab(t)
	allocations := map[capture.QueueID][]pods.Pod{{Cluster: "ids", Queue: 0}: {{Namespace: "sensors", Name: "a"}}}
	for range 2 {
		a.takeBack(t.Context(), report, allocations)
		assert.Empty(t, engine.taken)
		assert.False(t, raised(a.Changed))
	}
	a.takeBack(t.Context(), report, allocations)
	assert.True(t, raised(a.Changed), "the loop applies the queue's new memory at once")
	assert.Equal(t, []capture.QueueID{{Cluster: "ids", Queue: 1}}, engine.taken)
	assert.Equal(t, []capture.Holder{{PID: 10, Attachment: 7}}, engine.from, "who attached since then is another")
	require.Len(t, *told, 1)
	assert.Equal(t, v1.ReasonQueueTakenBack, (*told)[0].Reason)
	assert.Equal(t, "queue 1 of ids was taken back from process 10 (tcpdump) of the pod with UID 11111111-2222-3333-4444-555555555555: "+
		"its pod (UID 11111111-2222-3333-4444-555555555555) is gone", (*told)[0].Message)
}

// A queue is taken from an unknown holder only if it still is not allocated by then.
func TestAHolderThatIsNotKnown(t *testing.T) {
	queue := capture.QueueID{Cluster: "ids", Queue: 1}
	for name, test := range map[string]struct {
		now   capture.QueueStats
		given allocated
		taken bool
	}{
		"still":          {now: capture.QueueStats{Attached: true}, taken: true},
		"free":           {},
		"another's":      {now: capture.QueueStats{Attached: true, Holder: 12}},
		"given to a pod": {now: capture.QueueStats{Attached: true}, given: allocated{queue: {{Namespace: "sensors", Name: "a"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			a, engine, report, _ := takingLab(t)
			a.Access.Allocations = test.given
			engine.seen = []capture.QueueStats{{}, test.now}
			report.Observations[v1.EngineEBPF].Clusters["ids"].Queues[1].Holder = 0
			for range 3 {
				a.takeBack(t.Context(), report, map[capture.QueueID][]pods.Pod{{Cluster: "ids", Queue: 0}: {{Namespace: "sensors", Name: "a"}}})
			}
			assert.Equal(t, test.taken, len(engine.taken) == 1)
		})
	}
}

// What cannot be done is not said to be.
func TestAQueueThatCannotBeTakenBack(t *testing.T) {
	for _, problem := range []error{errors.New("no memory"), capture.ErrNotFound} {
		a, engine, report, told := takingLab(t)
		engine.err = problem
		for range 6 {
			a.takeBack(t.Context(), report, map[capture.QueueID][]pods.Pod{})
		}
		assert.Greater(t, len(engine.taken), 1, "it is tried again")
		assert.Empty(t, *told)
		assert.False(t, raised(a.Changed))
	}
}

// A queue that the kubelet gives to a pod has new memory, and the loop applies that at once, whether the queue had a
// holder or not.
func TestAQueueThatIsGivenIsAppliedAtOnce(t *testing.T) {
	a, engine, report, _ := takingLab(t)
	engine.holder = 0
	for _, problem := range []error{nil, errors.New("no memory")} {
		engine.err = problem
		_, err := a.resources(report, true)["ids"].Queues().TakeBack(t.Context(), capture.QueueID{Cluster: "ids"}, capture.Holder{})
		assert.ErrorIs(t, err, problem)
		assert.Equal(t, problem == nil, raised(a.Changed))
	}
}

// A module from before that takes queues from nobody; it is asked once.
func TestAnEngineThatTakesNothingBack(t *testing.T) {
	a, engine, report, told := takingLab(t)
	engine.err = capture.ErrUnsupported
	for range 9 {
		a.takeBack(t.Context(), report, map[capture.QueueID][]pods.Pod{{Cluster: "ids"}: {{Namespace: "sensors", Name: "a"}}})
	}
	assert.Len(t, engine.taken, 1)
	assert.Empty(t, *told)
}

// The status names the readers of queues that are not allocated.
func TestHoldersOfNobodysQueues(t *testing.T) {
	a, _, report, _ := takingLab(t)
	allocations := map[capture.QueueID][]pods.Pod{{Cluster: "ids", Queue: 0}: {{Namespace: "sensors", Name: "a"}}}
	holders := a.holders(report, allocations)
	assert.Equal(t, map[capture.QueueID]string{
		{Cluster: "ids", Queue: 1}: "process 10 (tcpdump) of the pod with UID 11111111-2222-3333-4444-555555555555",
	}, holders)
	assert.Empty(t, a.holders(report, nil), "unknown is not nobody")
	built := status.Build(status.Input{Report: report, Holders: holders, Consumers: podsOf(allocations)})
	assert.Equal(t, "sensors/a", built.Clusters[0].Queues[0].Consumer)
	assert.Equal(t, holders[capture.QueueID{Cluster: "ids", Queue: 1}], built.Clusters[0].Queues[1].Holder)
}

// The message names the consumer that has to be stopped, once.
func TestHoldersAreNamed(t *testing.T) {
	a, _, report, _ := takingLab(t)
	report.Clusters["ids"] = datapath.Object{Engine: v1.EngineEBPF, Reason: v1.ReasonQueueInUse, Message: "remove cluster ids: in use by a consumer"}
	message := "remove cluster ids: in use by a consumer: queue 0 is read by process 11 (tcpdump) of the pod with UID " + sensorUID +
		"; queue 1 is read by process 10 (tcpdump) of the pod with UID 11111111-2222-3333-4444-555555555555"
	for range 2 {
		in := status.Input{Report: report, InUse: a.inUse(report)}
		assert.Equal(t, message, status.Build(in).Clusters[0].Message)
		assert.Contains(t, status.Conditions(nil, in)[1].Message, message)
	}
}

func TestWhatAPodRequests(t *testing.T) {
	requests := func(name corev1.ResourceName, n int64) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{name: *resource.NewQuantity(n, resource.DecimalSI)}}}
	}
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "sensors", Name: "a", UID: "u", Annotations: map[string]string{mirrorAnnotation: staticUID}},
		Spec: corev1.PodSpec{
			NodeName:       "n1",
			InitContainers: []corev1.Container{requests("ringcap.io/ids", 1)},
			Containers:     []corev1.Container{requests("ringcap.io/ids", 2), requests("ringcap.io/flows", 1), requests("example.com/gpu", 1)},
		},
		Status: corev1.PodStatus{Phase: corev1.PodFailed},
	}
	scheme, err := Scheme()
	require.NoError(t, err)
	index := func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }
	var version string
	asked := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		version = (&client.ListOptions{}).ApplyOptions(options).AsListOptions().ResourceVersion
		return c.List(ctx, list, options...)
	}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&pod).WithIndex(&corev1.Pod{}, "spec.nodeName", index).WithInterceptorFuncs(asked).Build()
	got, err := podUIDs{c}.NodePods(t.Context(), "n1", true)
	require.NoError(t, err)
	assert.Empty(t, version)
	assert.Equal(t, []pods.NodePod{{
		Pod: pods.Pod{Namespace: "sensors", Name: "a"}, UIDs: []string{"u", staticUID}, Ended: true, Queues: map[string]int{"ids": 3, "flows": 1},
	}}, got)
	none, err := podUIDs{c}.NodePods(t.Context(), "n2", false)
	require.NoError(t, err)
	assert.Equal(t, "0", version, "as the API server has it in its cache")
	assert.Empty(t, none)
}
