// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/nic"
	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// memoryEngine does what it is asked to, but for what it is told to refuse or that is attached.
type memoryEngine struct {
	rings    map[string]bool
	clusters map[string]int
	attached map[string]bool
	refuse   map[string]error
	broken   error
	// noXDP supports mode 0 only.
	noXDP bool
	// applied and observed are how often.
	applied, observed int
	// told is which observation the last plan came with.
	told any
	// taps of all rings.
	taps []capture.Tap
}

func newMemoryEngine() *memoryEngine {
	return &memoryEngine{rings: map[string]bool{}, clusters: map[string]int{}, attached: map[string]bool{}, refuse: map[string]error{}}
}

func (e *memoryEngine) Apply(_ context.Context, p capture.Plan, seen capture.Observation) (map[string]error, error) {
	e.applied++
	e.told = seen.Own
	if e.broken != nil {
		return nil, e.broken
	}
	failed := map[string]error{}
	clear(e.rings)
	for _, r := range p.Rings {
		failed[r.Name] = e.refuse[r.Name]
		if e.noXDP && r.Mode != 0 {
			failed[r.Name] = fmt.Errorf("no native XDP: %w", capture.ErrUnsupported)
		}
		if failed[r.Name] == nil {
			e.rings[r.Name] = true
		}
	}
	wanted := map[string]bool{}
	for _, c := range p.Clusters {
		wanted[c.Name] = true
		if err := e.refuse[c.Name]; err != nil {
			failed[c.Name] = err
		} else {
			e.clusters[c.Name] = c.Queues
		}
	}
	for name := range maps.Clone(e.clusters) {
		switch {
		case wanted[name]:
		case e.attached[name]:
			failed[name] = fmt.Errorf("remove %s: %w", name, capture.ErrInUse)
		default:
			delete(e.clusters, name)
		}
	}
	return failed, nil
}

func (e *memoryEngine) Observe(context.Context) (capture.Observation, error) {
	e.observed++
	o := capture.Observation{Own: e.observed, Rings: map[string]capture.RingState{}, Clusters: map[string]capture.ClusterState{}}
	for name := range e.rings {
		o.Rings[name] = capture.RingState{Taps: e.taps}
	}
	for name, queues := range e.clusters {
		state := capture.ClusterState{Queues: make([]capture.QueueStats, queues), Memory: uint64(queues) * 8 << 20}
		state.Queues[0].Attached = e.attached[name]
		o.Clusters[name] = state
	}
	return o, e.broken
}

func (e *memoryEngine) Grant(capture.QueueID) (capture.Grant, error) { return capture.Grant{}, nil }
func (e *memoryEngine) TakeBack(context.Context, capture.QueueID, capture.Holder) (int, error) {
	return 0, nil
}
func (e *memoryEngine) Close() error { return nil }

type noNICs struct{ outcomes map[string]nic.Outcome }

func (n noNICs) Apply(map[string]plan.NICSettings) (map[string]nic.Outcome, error) {
	return n.outcomes, nil
}

func newReconciler(engine *memoryEngine) *Reconciler {
	return &Reconciler{
		NICs:       noNICs{},
		Compile:    func(string, uint32) ([]bpf.RawInstruction, error) { return []bpf.RawInstruction{{Op: 6}}, nil },
		Interfaces: func() ([]node.Interface, error) { return []node.Interface{{Name: "eth0", Index: 2}}, nil },
		Providers: []*Provider{{
			Kind:  v1.EngineEBPF,
			Probe: func(context.Context) plan.EngineFact { return plan.EngineFact{Available: true} },
			Open:  func(context.Context) (capture.Engine, error) { return engine, nil },
		}},
	}
}

func spec(rings ...string) v1.NodeCaptureSpec {
	var s v1.NodeCaptureSpec
	for _, name := range rings {
		ring := v1.NodeRing{Name: name, Spec: v1.CaptureRingSpec{Interfaces: []v1.InterfaceSelector{{Name: "eth0"}}, Queues: v1.Queues(2)}}
		ring.Spec.Default()
		s.Rings = append(s.Rings, ring)
	}
	return s
}

// What an engine refuses is an outcome. The decision stays what it was.
func TestEnginesRefusalsAreOutcomes(t *testing.T) {
	for name, test := range map[string]struct {
		refusal error
		reason  string
	}{
		"in use":      {fmt.Errorf("queue 1: %w", capture.ErrInUse), v1.ReasonQueueInUse},
		"no memory":   {fmt.Errorf("queue 1: %w", capture.ErrNoMemory), v1.ReasonNodeMemoryInsufficient},
		"unsupported": {fmt.Errorf("this filter: %w", capture.ErrUnsupported), v1.ReasonUnsupported},
		"else":        {errors.New("out of memory"), v1.ReasonEngineError},
	} {
		t.Run(name, func(t *testing.T) {
			engine := newMemoryEngine()
			engine.refuse["bad"] = test.refusal
			report := newReconciler(engine).Reconcile(context.Background(), spec("bad", "good"), 3)
			require.NoError(t, report.Err)
			assert.EqualValues(t, 3, report.Generation)
			assert.Equal(t, test.reason, report.Rings["bad"].Reason)
			assert.Equal(t, test.refusal.Error(), report.Rings["bad"].Message)
			assert.False(t, report.Rings["bad"].Made)
			assert.True(t, report.Plan.Rings["bad"].Ready())
			assert.Equal(t, report.Plan.Rings["bad"], report.Rings["bad"].Decision)
			assert.True(t, report.Rings["good"].Ready())
		})
	}
}

func TestQueuesOfARingThatCouldNotBeMadeAreNotOffered(t *testing.T) {
	engine := newMemoryEngine()
	engine.refuse["bad"] = errors.New("the verifier refuses it")
	asked := spec("bad", "good")
	for _, ring := range []string{"bad", "good"} {
		cluster := v1.NodeCluster{Name: "over-" + ring, Spec: v1.ClusterSpec{Rings: []string{ring}, Queues: 1}}
		cluster.Spec.Default()
		asked.Clusters = append(asked.Clusters, cluster)
	}
	r := newReconciler(engine)
	report := r.Reconcile(context.Background(), asked, 1)
	assert.False(t, report.Clusters["over-bad"].Fed)
	assert.Equal(t, v1.ReasonEngineError, report.Clusters["over-bad"].Reason)
	assert.True(t, report.Clusters["over-good"].Fed)
	assert.True(t, report.Clusters["over-good"].Ready())
	delete(engine.refuse, "bad")
	report = r.Reconcile(context.Background(), asked, 1)
	assert.True(t, report.Clusters["over-bad"].Fed)
	assert.True(t, report.Clusters["over-bad"].Ready())
}

func TestABrokenEngineIsEveryonesProblem(t *testing.T) {
	engine := newMemoryEngine()
	r := newReconciler(engine)
	r.Reconcile(context.Background(), spec("a"), 1)
	engine.broken = errors.New("the module is gone")
	report := r.Reconcile(context.Background(), spec("a"), 2)
	assert.ErrorContains(t, report.Err, "the module is gone")
	assert.ErrorContains(t, report.ObserveErr, "the module is gone")
	assert.Equal(t, v1.ReasonEngineError, report.Clusters["a"].Reason)

	engine.broken = nil
	assert.True(t, r.Reconcile(context.Background(), spec("a"), 2).Clusters["a"].Ready())
}

func TestAnEngineThatCannotBeOpenedIsTriedAgain(t *testing.T) {
	r := newReconciler(nil)
	failures := 2
	r.Providers[0].Open = func(context.Context) (capture.Engine, error) {
		if failures--; failures >= 0 {
			return nil, errors.New("permission denied")
		}
		return newMemoryEngine(), nil
	}
	for range 2 {
		report := r.Reconcile(context.Background(), spec("a"), 1)
		assert.Equal(t, v1.ReasonEngineUnavailable, report.Rings["a"].Reason)
		assert.Contains(t, report.Rings["a"].Message, "permission denied")
		assert.Nil(t, r.Engine(v1.EngineEBPF))
	}
	assert.True(t, r.Reconcile(context.Background(), spec("a"), 1).Rings["a"].Ready())
	assert.NotNil(t, r.Engine(v1.EngineEBPF))
}

// An engine that must no longer be used loses its rings. One that is gone is forgotten without an error.
func TestAnEngineThatIsNotWantedAnyMore(t *testing.T) {
	engine := newMemoryEngine()
	r := newReconciler(engine)
	available, present := true, true
	r.Providers[0].Probe = func(context.Context) plan.EngineFact { return plan.EngineFact{Available: available, Why: "disabled"} }
	r.Providers[0].Present = func() bool { return present }
	r.Reconcile(context.Background(), spec("a"), 1)
	assert.Contains(t, engine.rings, "a")

	available = false
	report := r.Reconcile(context.Background(), spec("a"), 1)
	assert.Equal(t, v1.ReasonEngineUnavailable, report.Rings["a"].Reason)
	assert.Empty(t, engine.rings)
	assert.Empty(t, engine.clusters)

	present, engine.broken = false, errors.New("no such family")
	report = r.Reconcile(context.Background(), spec("a"), 1)
	assert.NoError(t, errors.Join(report.Err, report.ObserveErr))
	assert.Nil(t, r.Engine(v1.EngineEBPF))
}

func TestAnInterfaceThatCannotBeSetIsItsRingsProblem(t *testing.T) {
	r := newReconciler(newMemoryEngine())
	r.NICs = noNICs{outcomes: map[string]nic.Outcome{"eth0": {Err: errors.New("GRO stays on")}, "old0": {Err: errors.New("busy")}}}
	report := r.Reconcile(context.Background(), spec("a"), 1)
	assert.Equal(t, v1.ReasonEngineError, report.Rings["a"].Reason)
	assert.Equal(t, "GRO stays on", report.Rings["a"].Message)
	assert.ErrorContains(t, report.Err, "restore interface old0: busy")
}

// A ring reports a setting that its driver does not support. The ring still captures, and so do rings without that
// setting.
func TestASettingThatTheDriverRefuses(t *testing.T) {
	r := newReconciler(newMemoryEngine())
	asked := spec("a", "b")
	size := int32(512)
	asked.Rings[0].Spec.NIC.RxRingSize = &size
	r.NICs = noNICs{outcomes: map[string]nic.Outcome{"eth0": {Settings: []nic.SettingState{{
		Setting: plan.SettingRxRingSize, Desired: plan.Desired{Value: "512", Ring: "a"}, Problem: nic.ProblemNotSupported, Message: "its driver cannot do that",
	}}}}}
	report := r.Reconcile(context.Background(), asked, 1)
	a, b := report.Rings["a"], report.Rings["b"]
	assert.Equal(t, v1.ReasonNICSettingRefused, a.Reason)
	assert.True(t, a.Made)
	assert.Contains(t, a.Message, "spec.nic.rxRingSize cannot be had on eth0")
	assert.True(t, b.Ready())
}

// What consumers hold outlives its spec, is reported, and goes when they go.
func TestOrphansAreRemovedWithTheirConsumers(t *testing.T) {
	engine := newMemoryEngine()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	reports := make(chan Report, 100)
	desired := spec("a")
	changed, activity := NewSignal(), NewSignal()
	loop := Loop{
		Reconciler: newReconciler(engine), Changed: changed, Activity: activity, Resync: time.Hour, Refresh: time.Hour,
		Desired: func() (v1.NodeCaptureSpec, int64, bool) { return desired, 1, true },
		Publish: func(_ context.Context, r Report) { reports <- r },
	}
	stopped := make(chan struct{})
	go func() { loop.Run(ctx); close(stopped) }()
	next := func() Report {
		select {
		case r := <-reports:
			return r
		case <-time.After(10 * time.Second):
			require.FailNow(t, "no report")
			return Report{}
		}
	}
	assert.True(t, next().Clusters["a"].Ready())

	engine.attached["a"], desired = true, spec()
	changed.Raise()
	report := next()
	assert.Equal(t, v1.ReasonQueueInUse, report.Clusters["a"].Reason)
	assert.NotContains(t, report.Rings, "a")
	assert.False(t, report.Blocked())

	activity.Raise()
	assert.Contains(t, next().Clusters, "a")
	engine.attached["a"] = false
	activity.Raise()
	assert.Empty(t, next().Clusters)
	cancel()
	<-stopped
}

// What an earlier process left is adopted, and stays as it is.
func TestNothingIsTouchedWhileTheSpecIsNotKnown(t *testing.T) {
	engine := newMemoryEngine()
	reconciler := newReconciler(engine)
	ctx, cancel := context.WithCancel(context.Background())
	asked := make(chan struct{}, 10)
	loop := Loop{
		Reconciler: reconciler, Changed: NewSignal(), Activity: NewSignal(), Resync: time.Millisecond, Refresh: time.Millisecond,
		Desired: func() (v1.NodeCaptureSpec, int64, bool) {
			select {
			case asked <- struct{}{}:
			default:
				cancel()
			}
			return v1.NodeCaptureSpec{}, 0, false
		},
		Publish: func(context.Context, Report) { t.Error("published what is not known") },
	}
	loop.Run(ctx)
	assert.Zero(t, engine.applied)
	assert.Same(t, engine, reconciler.Engine(v1.EngineEBPF), "it is open: consumers get their queues")
}

// Reports, and with them a node's signs of life, do not depend on packets or events.
func TestReportsGoOnWithoutTraffic(t *testing.T) {
	engine := newMemoryEngine()
	ctx, cancel := context.WithCancel(context.Background())
	reports := 0
	loop := Loop{
		Reconciler: newReconciler(engine), Changed: NewSignal(), Activity: NewSignal(), Resync: time.Hour, Refresh: time.Millisecond,
		Desired: func() (v1.NodeCaptureSpec, int64, bool) { return spec("a"), 1, true },
		Publish: func(_ context.Context, r Report) {
			assert.EqualValues(t, 1, r.Generation)
			if reports++; reports == 10 {
				cancel()
			}
		},
	}
	loop.Run(ctx)
	assert.Equal(t, 10, reports)
	assert.Equal(t, 1, engine.applied, "only observed after that")
}

func TestProgramsAreCompiledOnce(t *testing.T) {
	r := newReconciler(newMemoryEngine())
	compiled := 0
	r.Compile = func(string, uint32) ([]bpf.RawInstruction, error) {
		compiled++
		return []bpf.RawInstruction{{Op: 6}}, nil
	}
	s := spec("a", "b")
	for i := range s.Rings {
		s.Rings[i].Spec.Filter = &v1.Filter{BPF: "tcp"}
	}
	for range 3 {
		assert.True(t, r.Reconcile(context.Background(), s, 1).Rings["a"].Ready())
	}
	assert.Equal(t, 1, compiled)
}

// A node of 64 MiB keeps 24 and has room for two sets of queues of 16 MiB. The third waits until one of them goes.
// The existing sets stay even when others take the node's memory.
func TestTheNodesMemory(t *testing.T) {
	engine := newMemoryEngine()
	r := newReconciler(engine)
	node := capture.Memory{Total: 64 << 20, Available: 64 << 20, Reserve: 24 << 20, AgentRoom: 1 << 40}
	r.Memory = func() (capture.Memory, error) { return node, nil }
	report := r.Reconcile(t.Context(), spec("a", "b", "c"), 1)
	assert.Equal(t, map[string]int{"a": 2, "b": 2}, engine.clusters)
	assert.Equal(t, v1.ReasonNodeMemoryInsufficient, report.Clusters["c"].Reason)
	assert.Equal(t, uint64(40<<20), report.Memory.Room())

	node.Available = 0
	report = r.Reconcile(t.Context(), spec("0", "a", "b", "c"), 2)
	assert.Equal(t, map[string]int{"a": 2, "b": 2}, engine.clusters)
	assert.Equal(t, v1.ReasonNodeMemoryInsufficient, report.Clusters["0"].Reason)
	assert.False(t, report.Blocked())

	// Nothing is refused for memory while an engine cannot be observed.
	engine.broken = errors.New("busy")
	report = r.Reconcile(t.Context(), spec("a", "b"), 3)
	assert.NotContains(t, report.Clusters["a"].Message, "memory")
	engine.broken = nil

	// What is deleted gives its memory back, and who waits is planned with it.
	node.Available = 64 << 20
	report = r.Reconcile(t.Context(), spec("b", "c"), 4)
	assert.Equal(t, map[string]int{"b": 2}, engine.clusters)
	assert.True(t, report.Blocked())
	report = r.Reconcile(t.Context(), spec("b", "c"), 4)
	assert.Equal(t, map[string]int{"b": 2, "c": 2}, engine.clusters)
	assert.False(t, report.Blocked())
}

// If a plan is made twice, both are made from the same view. The inputs of a plan are read once, and its result once.
// This also holds if a ring cannot be tried and is planned without.
func TestTheNodeIsLookedAtBeforeAndAfter(t *testing.T) {
	l := newTrialLab(t)
	listed, described, asked := 0, 0, 0
	interfaces := l.r.Interfaces
	l.r.Interfaces = func() ([]node.Interface, error) { listed++; return interfaces() }
	l.r.Traffic = func() (map[string]string, error) { asked++; return nil, nil }
	l.r.Drivers = countedDrivers{&described}
	l.lost = true
	report := l.r.Reconcile(t.Context(), inMode(2, 100), 1)
	assert.Equal(t, v1.ReasonAPIServerUnreachable, report.Rings["own"].Reason)
	assert.Equal(t, []int{2, 2, 1, 1}, []int{l.engine.observed, listed, described, asked})
	assert.Equal(t, 1, l.engine.told, "the engine need not look again")
}

type countedDrivers struct{ described *int }

func (d countedDrivers) Describe() (map[string]plan.DriverFact, error) {
	*d.described++
	return nil, nil
}
func (d countedDrivers) Apply(map[string]plan.DesiredDriver) (bool, error) { return false, nil }
