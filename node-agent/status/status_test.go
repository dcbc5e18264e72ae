// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/nic"
	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
	"github.com/ringcap/ringcap/operator/api/counters"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

func input(change ...func(*Input)) Input {
	in := Input{
		Report: datapath.Report{
			Spec:       v1.NodeCaptureSpec{Rings: []v1.NodeRing{{Name: "mirror", Revision: "r1"}}},
			Generation: 3,
			Plan: plan.Result{
				Plans: map[v1.Engine]capture.Plan{},
				Auto:  v1.EngineEBPF, AutoReason: "no kernel module",
			},
			Rings:    map[string]datapath.Object{"mirror": {Made: true, Engine: v1.EngineEBPF, Decision: plan.Verdict{Interfaces: []string{"eth0"}}}},
			Clusters: map[string]datapath.Object{"ids": {Made: true, Fed: true, Engine: v1.EngineEBPF}},
			Observations: map[v1.Engine]capture.Observation{v1.EngineEBPF: {
				Rings: map[string]capture.RingState{"mirror": {Stats: capture.RingStats{Seen: 10, SeenBytes: 1000, Filtered: 3, Passed: 7}}},
				Clusters: map[string]capture.ClusterState{"ids": {Memory: 4096, Queues: []capture.QueueStats{
					{Delivered: 5, DeliveredBytes: 500, UnreadBytes: 64, Attached: true},
					{Dropped: map[capture.DropReason]uint64{capture.DropUnattended: 2}},
				}}},
			}},
			Outcome: datapath.Outcome{NICs: map[string]nic.Outcome{"eth0": {Settings: []nic.SettingState{
				{Setting: plan.SettingRxRingSize, Desired: plan.Desired{Value: "512", Ring: "mirror"}, Problem: nic.ProblemNotSupported, Message: "no"},
				{Setting: plan.SettingOffloads, Desired: plan.Desired{Value: "off", Ring: "mirror"}, Actual: "rx-gro=off"},
			}}}},
		},
		Identity:  node.Identity{BootID: "boot", KernelRelease: "6.18"},
		Module:    Module{Reason: v1.ReasonModulesUnsupported, Message: "no modules"},
		Consumers: map[capture.QueueID]string{{Cluster: "ids", Queue: 0}: "sensors/a"},
	}
	for _, c := range change {
		c(&in)
	}
	return in
}

func TestBuild(t *testing.T) {
	dropped := []v1.DropCount{{Reason: "unattended", Packets: 2}}
	assert.Equal(t, v1.NodeCaptureStatus{
		AppliedGeneration: 3, Engine: v1.EngineEBPF, EngineReason: "no kernel module", KernelRelease: "6.18", BootID: "boot",
		Rings: []v1.NodeRingStatus{{
			Name: "mirror", ObservedRevision: "r1", Engine: v1.EngineEBPF, Interfaces: []string{"eth0"}, Ready: true,
			Seen: 10, SeenBytes: 1000, Filtered: 3, Passed: 7,
		}},
		Clusters: []v1.NodeClusterStatus{{Name: "ids", Ready: true, MemoryBytes: 4096, Queues: []v1.QueueStatus{
			{Queue: 0, Attached: true, Consumer: "sensors/a", Delivered: 5, DeliveredBytes: 500, UnreadBytes: 64},
			{Queue: 1, Dropped: dropped},
		}}},
		Interfaces: []v1.InterfaceStatus{{Name: "eth0", Rings: []string{"mirror"}, Settings: []v1.InterfaceSetting{
			{Name: "offloads", Wanted: "off", Actual: "rx-gro=off", Ring: "mirror"},
			{Name: "rxRingSize", Wanted: "512", Ring: "mirror", Reason: "NotSupported", Message: "no"},
		}}},
	}, Build(input()))
}

func TestAGenerationIsAppliedOnceItWasActedUpon(t *testing.T) {
	assert.Zero(t, Build(Input{Report: datapath.Report{Generation: 3, Err: errors.New("no netlink")}}).AppliedGeneration)
	failed := input(func(in *Input) { in.Report.Err = errors.New("an engine is broken") })
	assert.EqualValues(t, 3, Build(failed).AppliedGeneration)
}

func TestWhatTheEngineDoesNotHaveIsPending(t *testing.T) {
	built := Build(input(func(in *Input) {
		in.Report.Observations = nil
		in.Report.ObserveErr = errors.New("the module is gone")
	}))
	assert.False(t, built.Rings[0].Ready)
	assert.Equal(t, v1.ReasonPending, built.Rings[0].Reason)
	assert.Contains(t, built.Clusters[0].Message, "the module is gone")
}

// All four conditions are always there, with the generation they are about.
func TestConditions(t *testing.T) {
	refuse := func(ring bool, reason string, made bool) func(*Input) {
		return func(in *Input) {
			objects := in.Report.Clusters
			if ring {
				objects = in.Report.Rings
			}
			objects["bad"] = datapath.Object{Made: made, Reason: reason, Message: "why", Engine: v1.EngineEBPF}
		}
	}
	for name, test := range map[string]struct {
		change                      func(*Input)
		accepted, programmed, ready string
	}{
		"all is well":       {func(*Input) {}, "True Accepted", "True Programmed", "True Ready"},
		"a bad filter":      {refuse(true, v1.ReasonInvalidFilter, false), "False InvalidFilter", "False InvalidFilter", "False InvalidFilter"},
		"no such interface": {refuse(true, v1.ReasonInterfaceNotFound, false), "True Accepted", "False InterfaceNotFound", "False InterfaceNotFound"},
		"a queue is in use": {refuse(false, v1.ReasonQueueInUse, false), "True Accepted", "False QueueInUse", "False QueueInUse"},
		"a ring is missing": {refuse(false, v1.ReasonRingNotFound, true), "False RingNotFound", "True Programmed", "False RingNotFound"},
		"the engine is not there yet": {
			func(in *Input) { in.Report.Observations = nil }, "True Accepted", "True Programmed", "False NotReady",
		},
		"the node is broken": {
			func(in *Input) { in.Report.Err = errors.New("no netlink") }, "True Accepted", "False EngineError", "False NotReady",
		},
		"counters cannot be read": {
			func(in *Input) { in.Report.ObserveErr = errors.New("no counters") }, "True Accepted", "True Programmed", "False EngineError",
		},
	} {
		t.Run(name, func(t *testing.T) {
			conditions := Conditions(nil, input(test.change))
			require.Len(t, conditions, 4)
			text := func(kind string) string {
				c := meta.FindStatusCondition(conditions, kind)
				require.NotNil(t, c)
				assert.EqualValues(t, 3, c.ObservedGeneration)
				assert.NotEmpty(t, c.Message)
				return string(c.Status) + " " + c.Reason
			}
			assert.Equal(t, test.accepted, text(v1.ConditionAccepted))
			assert.Equal(t, test.programmed, text(v1.ConditionProgrammed))
			assert.Equal(t, test.ready, text(v1.ConditionReady))
			assert.Equal(t, "False ModulesUnsupported", text(v1.ConditionModuleReady))
		})
	}
}

// lab is a fake API server with one NodeCapture, and a clock. What the writer reads of the server itself is counted.
type lab struct {
	t             *testing.T
	writer        Writer
	now           time.Time
	reads, writes int
	fail          error
	hang          bool
	// beats are renewals of the Lease, missed those that were to fail with failBeat; told is the outcome of the last.
	beats, missed  int
	failBeat, told error
}

func newLab(t *testing.T, objects ...client.Object) *lab {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1.AddToScheme(scheme))
	require.NoError(t, coordinationv1.AddToScheme(scheme))
	l := &lab{t: t, now: time.Unix(1_000_000, 0)}
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1.NodeCapture{}).Build()
	c := interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			l.reads++
			return c.Get(ctx, key, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if l.failBeat != nil {
				l.missed++
				return l.failBeat
			}
			l.beats++
			return c.Patch(ctx, o, patch, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if l.hang {
				<-ctx.Done()
				return ctx.Err()
			}
			if l.fail != nil {
				return l.fail
			}
			l.writes++
			return c.SubResource(sub).Patch(ctx, o, patch, opts...)
		},
	})
	l.writer = Writer{Client: c, Cached: server, Node: "n1", Interval: 5 * time.Second, Timeout: time.Minute, Now: func() time.Time { return l.now }}
	return l
}

func (l *lab) write(after time.Duration, in Input) {
	l.t.Helper()
	l.now = l.now.Add(after)
	require.NoError(l.t, l.writer.Write(context.Background(), in))
}

func (l *lab) read() v1.NodeCaptureStatus {
	l.t.Helper()
	return l.readFrom(l.writer.Cached)
}

func (l *lab) readFrom(c client.Reader) v1.NodeCaptureStatus {
	l.t.Helper()
	var got v1.NodeCapture
	require.NoError(l.t, c.Get(context.Background(), client.ObjectKey{Name: "n1"}, &got))
	return got.Status
}

func count(seen uint64) func(*Input) {
	return func(in *Input) {
		in.Report.Observations[v1.EngineEBPF].Rings["mirror"] = capture.RingState{Stats: capture.RingStats{Seen: seen, Passed: seen}}
	}
}

// Under traffic without a pause a status is written once a minute, and nothing is read for it; a change of state is
// written at once, and puts the next heartbeat off by nothing.
func TestCountersAreWrittenOnceAMinuteAndStatesAtOnce(t *testing.T) {
	l := newLab(t, &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	var told counters.Report
	l.writer.Count = func(report counters.Report) { told = report }
	l.write(0, input())
	assert.Equal(t, 1, l.writes)
	for second := range 600 {
		l.write(time.Second, input(count(uint64(20+second))))
		assert.EqualValues(t, 20+second, told.Rings[0].Seen, "who asks the agent does not wait")
		assert.Equal(t, l.now.UnixMicro(), told.Time.UnixMicro())
	}
	assert.Equal(t, 11, l.writes)
	assert.InDelta(t, 600, l.read().Rings[0].Seen, 60)
	for range 600 {
		l.write(time.Second, input(count(620)))
	}
	assert.Equal(t, 21, l.writes, "the operator wants to hear from a node without traffic all the same")
	assert.EqualValues(t, 620, l.read().Rings[0].Seen)

	detached := func(in *Input) { in.Report.Observations[v1.EngineEBPF].Clusters["ids"].Queues[0].Attached = false }
	l.write(time.Millisecond, input(count(630), detached))
	assert.Equal(t, 22, l.writes, "a consumer went")
	assert.Equal(t, l.now.Unix(), l.read().ObservedTime.Unix())
	assert.EqualValues(t, 630, l.read().Rings[0].Seen, "the counters come with it")
	for range 60 {
		l.write(time.Second, input(count(630), detached))
	}
	assert.Equal(t, 23, l.writes)
	assert.Zero(t, l.reads)
}

// A state that changes all the time, as by a consumer that attaches and goes in a loop, is not written each time.
func TestAStateThatNeverRests(t *testing.T) {
	l := newLab(t, &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	for i := range 600 {
		l.write(100*time.Millisecond, input(func(in *Input) { in.Report.Observations[v1.EngineEBPF].Clusters["ids"].Queues[0].Attached = i%2 == 0 }))
	}
	assert.LessOrEqual(t, l.writes, eager+60/5+3)
	l.write(5*time.Second, input())
	assert.True(t, l.read().Clusters[0].Queues[0].Attached, "what it comes to is written")
}

// behind is a watch that is late.
type behind struct {
	client.Reader
	object *v1.NodeCapture
}

func (b *behind) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if b.object != nil {
		b.object.DeepCopyInto(o.(*v1.NodeCapture))
		return nil
	}
	return b.Reader.Get(ctx, key, o, opts...)
}

// Other writers of the object do not make a write fail: the watch has the newer object, or the API server is asked once.
func TestAWriteToAnObjectThatChanged(t *testing.T) {
	l := newLab(t, &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	ctx, server := context.Background(), l.writer.Cached.(client.Client)
	watch := &behind{Reader: server}
	l.writer.Cached = watch
	var old v1.NodeCapture
	require.NoError(t, server.Get(ctx, client.ObjectKey{Name: "n1"}, &old))
	l.write(0, input())

	// The watch has not seen the write yet: the writer knows what it wrote.
	watch.object = old.DeepCopy()
	l.write(time.Minute, input(count(20)))
	assert.Equal(t, 2, l.writes)
	assert.Zero(t, l.reads)

	edit := func(label string) {
		var now v1.NodeCapture
		require.NoError(t, server.Get(ctx, client.ObjectKey{Name: "n1"}, &now))
		now.Labels = map[string]string{"edit": label}
		require.NoError(t, server.Update(ctx, &now))
	}
	edit("1")
	l.write(time.Minute, input(count(30)))
	assert.Equal(t, 4, l.writes, "a conflict, and the write")
	assert.Equal(t, 1, l.reads)
	assert.EqualValues(t, 30, l.readFrom(server).Rings[0].Seen)

	edit("2")
	watch.object = nil
	l.write(time.Minute, input(count(40)))
	assert.Equal(t, 5, l.writes)
	assert.Equal(t, 1, l.reads)
	assert.EqualValues(t, 40, l.readFrom(server).Rings[0].Seen)
}

// An object that was deleted and made again has no status: it gets one at once.
func TestAnObjectThatWasMadeAgain(t *testing.T) {
	l := newLab(t, &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "1"}})
	server := l.writer.Cached.(client.Client)
	l.write(0, input())
	require.NoError(t, server.Delete(context.Background(), &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}))
	require.NoError(t, server.Create(context.Background(), &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "2"}}))
	l.write(time.Millisecond, input())
	assert.Len(t, l.read().Rings, 1)
}

// A kubelet that restarts cannot be asked, and then leaves out pods that it has: the last known consumer is named,
// with the time as of which it is; one that has gone since is not.
func TestTheLastKnownConsumerIsNamed(t *testing.T) {
	l := newLab(t, &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	l.now = time.Unix(1000, 0)
	silent := func(in *Input) { in.Consumers, in.ConsumersUnknown = nil, true }
	leftOut := func(in *Input) { in.Consumers = nil }
	detached := func(in *Input) { in.Report.Observations[v1.EngineEBPF].Clusters["ids"].Queues[0].Attached = false }
	queue := func() v1.QueueStatus { return l.read().Clusters[0].Queues[0] }
	l.write(0, input())
	assert.Equal(t, "sensors/a", queue().Consumer)
	assert.Nil(t, queue().ConsumerAsOf)

	named := func(after time.Duration, change ...func(*Input)) {
		t.Helper()
		l.write(after, input(change...))
		assert.Equal(t, "sensors/a", queue().Consumer)
		require.NotNil(t, queue().ConsumerAsOf)
		assert.EqualValues(t, 1000, queue().ConsumerAsOf.Unix())
		assert.Empty(t, l.read().Clusters[0].Queues[1].Consumer)
	}
	named(2*time.Second, silent)
	assert.Equal(t, 2, l.writes, "at once")
	named(time.Minute, silent)
	next := Writer{Client: l.writer.Client, Cached: l.writer.Cached, Node: "n1", Interval: time.Second, Timeout: time.Minute, Now: l.writer.Now}
	l.writer = next
	named(time.Second, silent, detached)
	named(time.Second, silent)
	named(time.Second, leftOut)

	l.write(time.Second, input())
	assert.Nil(t, queue().ConsumerAsOf)
	l.write(time.Second, input(leftOut, detached))
	assert.Empty(t, queue().Consumer)
	l.write(time.Second, input(leftOut))
	assert.Empty(t, queue().Consumer, "somebody else may have it now")

	l.write(time.Second, input())
	l.writer = next
	l.write(time.Second, input(silent, func(in *Input) { in.Identity.BootID = "next" }))
	assert.Empty(t, queue().Consumer, "no pod outlives a boot")
}

// TestARevisionIsWrittenAtOnce: other nodes wait for it.
func TestARevisionIsWrittenAtOnce(t *testing.T) {
	l := newLab(t, &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	l.write(0, input())
	l.write(time.Millisecond, input(func(in *Input) { in.Report.Spec.Rings[0].Revision = "r2" }))
	assert.Equal(t, 2, l.writes)
	assert.Equal(t, "r2", l.read().Rings[0].ObservedRevision)
}

func TestTransitionTimesAreKept(t *testing.T) {
	long := metav1.NewTime(time.Unix(1000, 0))
	l := newLab(t, &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: v1.NodeCaptureStatus{Conditions: []metav1.Condition{
		{Type: v1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: v1.ReasonAccepted, LastTransitionTime: long},
		{Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1.ReasonPending, LastTransitionTime: long},
	}}})
	l.write(0, input())
	got := l.read().Conditions
	assert.Equal(t, long.Unix(), meta.FindStatusCondition(got, v1.ConditionAccepted).LastTransitionTime.Unix())
	assert.NotEqual(t, long.Unix(), meta.FindStatusCondition(got, v1.ConditionReady).LastTransitionTime.Unix())
}

func TestWithoutANodeCaptureNothingIsWritten(t *testing.T) {
	l := newLab(t)
	l.write(0, input())
	assert.Zero(t, l.writes)
}

func TestAFailedWriteIsTriedAgain(t *testing.T) {
	l := newLab(t, &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	l.fail = errors.New("no route to host")
	assert.ErrorContains(t, l.writer.Write(context.Background(), input()), "write the status of NodeCapture n1: no route to host")
	l.fail = nil
	l.now = l.now.Add(4 * time.Second)
	assert.ErrorContains(t, l.writer.Write(context.Background(), input()), "no route to host", "not at once: the caller waits for it")
	assert.Zero(t, l.writes)
	l.write(time.Second, input())
	assert.Equal(t, 1, l.writes)
	assert.Equal(t, l.now.Unix(), l.read().ObservedTime.Unix())
}

// A server that takes requests and does not answer them must not stop the caller for good.
func TestAWriteThatHangsEnds(t *testing.T) {
	l := newLab(t, &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	l.hang = true
	l.writer.Timeout = time.Millisecond
	assert.ErrorIs(t, l.writer.Write(context.Background(), input()), context.DeadlineExceeded)
}
