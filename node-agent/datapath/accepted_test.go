// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// planEngine notes what it was told last.
type planEngine struct {
	*memoryEngine
	last capture.Plan
	// before is called before anything is made, after when it was tried.
	before, after func()
	// unlike are plans of which the engine supports nothing else, by the name of an object.
	unlike map[string]capture.Plan
}

func (e *planEngine) Apply(ctx context.Context, p capture.Plan, seen capture.Observation) (map[string]error, error) {
	if e.before != nil {
		e.before()
	}
	e.last = p
	if e.unlike != nil {
		clear(e.refuse)
	}
	for name, only := range e.unlike {
		if !reflect.DeepEqual(named(p, name), named(only, name)) {
			e.refuse[name] = fmt.Errorf("no such thing: %w", capture.ErrUnsupported)
		}
	}
	if e.after != nil {
		defer e.after()
	}
	return e.memoryEngine.Apply(ctx, p, seen)
}

// named are a plan's objects of a name.
func named(p capture.Plan, name string) (objects []any) {
	for _, ring := range p.Rings {
		if ring.Name == name {
			objects = append(objects, ring)
		}
	}
	for _, cluster := range p.Clusters {
		if cluster.Name == name {
			objects = append(objects, cluster)
		}
	}
	return objects
}

// agentOf returns the Reconciler of a new agent, over an engine that an earlier one may have left, and its file.
func agentOf(kind v1.Engine, engine capture.Engine, file string) *Reconciler {
	r := newReconciler(nil)
	r.Providers[0].Kind = kind
	r.Providers[0].Probe = func(context.Context) plan.EngineFact {
		return plan.EngineFact{Available: true, Lanes: 2, SlotOverhead: 48}
	}
	r.Providers[0].Open = func(context.Context) (capture.Engine, error) { return engine, nil }
	r.Interfaces = func() ([]node.Interface, error) { return []node.Interface{{Name: "nic0", Index: 2}}, nil }
	r.Traffic = func() (map[string]string, error) { return map[string]string{"nic0": "has a default route"}, nil }
	r.Compile = func(expression string, _ uint32) ([]bpf.RawInstruction, error) {
		if strings.Contains(expression, "prot") {
			return nil, errors.New("syntax error")
		}
		return []bpf.RawInstruction{{Op: 6}}, nil
	}
	r.Accepted = Accepted{Node: "node-a", Records: node.Records[json.RawMessage]{Path: file}}
	return r
}

// acceptedSpec returns a ring with its own queues and a Cluster over it. A rule of the ring sends packets to a queue
// of the Cluster.
func acceptedSpec(engine v1.Engine) v1.NodeCaptureSpec {
	limit := resource.MustParse("64Mi")
	ring := v1.NodeRing{Name: "mirror", UID: "1", Spec: v1.CaptureRingSpec{
		Interfaces: []v1.InterfaceSelector{{Name: "nic0"}}, Engine: engine, Queues: v1.Queues(2),
		QueueSettings: v1.QueueSettings{Slots: 4096, MemoryLimit: &limit},
		Filter: &v1.Filter{BPF: "udp", Rules: []v1.Rule{
			{Action: v1.RuleQueue, Queue: &v1.QueueReference{Cluster: "ids", Queue: 1}},
		}},
	}}
	ring.Spec.Default()
	limit = limit.DeepCopy()
	cluster := v1.NodeCluster{Name: "ids", UID: "2", Spec: v1.ClusterSpec{
		Rings: []string{"mirror"}, Queues: 2, QueueSettings: v1.QueueSettings{Slots: 4096, MemoryLimit: &limit},
	}}
	cluster.Spec.Default()
	return v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring}, Clusters: []v1.NodeCluster{cluster}}
}

// refusedChange is a change that a node refuses.
type refusedChange struct {
	field  string
	ring   func(*v1.CaptureRingSpec)
	queues func(*v1.QueueSettings)
	// cluster is for a Cluster's own fields.
	cluster func(*v1.ClusterSpec)
	reason  string
	// only this engine's nodes refuse it.
	only v1.Engine
	// harms: the change is fine but for another object.
	harms string
}

func quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

func rules(rule v1.Rule) func(*v1.CaptureRingSpec) {
	return func(s *v1.CaptureRingSpec) { s.Filter = &v1.Filter{Rules: []v1.Rule{rule}} }
}

func mode(mode v1.TransparentMode, policy v1.DriverReplacement) func(*v1.CaptureRingSpec) {
	return func(s *v1.CaptureRingSpec) { s.TransparentMode, s.NIC.Driver.Policy = &mode, policy }
}

var refusedChanges = []refusedChange{
	{field: "interfaces", reason: v1.ReasonInterfaceNotFound, ring: func(s *v1.CaptureRingSpec) { s.Interfaces[0].Name = "nic7" }},
	{field: "interfaces", reason: v1.ReasonInterfaceNotFound, ring: func(s *v1.CaptureRingSpec) { s.Interfaces = nil }},
	{field: "interfaces", reason: v1.ReasonUnsupported, ring: func(s *v1.CaptureRingSpec) { s.Interfaces[0].RxQueues = "9" }},
	{field: "interfaces", reason: v1.ReasonUnsupported, ring: func(s *v1.CaptureRingSpec) { s.Interfaces[0] = v1.InterfaceSelector{ResourceName: "a.com/vf"} }},
	{field: "interfaces", reason: v1.ReasonUnsupported, ring: func(s *v1.CaptureRingSpec) {
		s.Interfaces[0] = v1.InterfaceSelector{PodSelector: &metav1.LabelSelector{}}
	}},
	{field: "inline", reason: v1.ReasonUnsupported, ring: func(s *v1.CaptureRingSpec) {
		s.Inline, s.Interfaces = &v1.Inline{Pairs: []v1.InterfacePair{{Interfaces: []string{"nic0", "nic1"}}}}, nil
		s.Default()
	}},
	{field: "direction", reason: v1.ReasonUnsupported, ring: func(s *v1.CaptureRingSpec) { s.Direction = "Sideways" }},
	{field: "engine", reason: v1.ReasonEngineUnavailable, only: v1.EngineEBPF, ring: func(s *v1.CaptureRingSpec) { s.Engine = v1.EngineKernelModule }},
	{field: "engine", reason: v1.ReasonEngineUnavailable, only: v1.EngineKernelModule, ring: func(s *v1.CaptureRingSpec) { s.Engine = v1.EngineEBPF }},
	{field: "transparentMode", reason: v1.ReasonDriverNotAware, only: v1.EngineKernelModule, ring: mode(2, v1.DriverKeep)},
	{field: "nic", reason: v1.ReasonDriverNotAware, only: v1.EngineKernelModule, ring: mode(1, v1.DriverReplace)},
	{field: "nodeTraffic", reason: v1.ReasonNodeTrafficRefused, only: v1.EngineEBPF, ring: mode(2, v1.DriverKeep)},
	{field: "nodeTraffic", reason: v1.ReasonNodeTrafficRefused, ring: func(s *v1.CaptureRingSpec) { s.NIC.VLANOffload = v1.VLANOffloadDisable }},
	{field: "queues", reason: v1.ReasonUnsupported, ring: func(s *v1.CaptureRingSpec) { s.Queues = v1.Queues(300) }},
	{field: "queues", reason: v1.ReasonMemoryLimitExceeded, ring: func(s *v1.CaptureRingSpec) { s.Queues = v1.Queues(256) }},
	{field: "queues", reason: v1.ReasonUnsupported, ring: func(s *v1.CaptureRingSpec) {
		all := intstr.FromString("All")
		s.Queues = &all
	}},
	{field: "snapLength", reason: v1.ReasonUnsupported, ring: func(s *v1.CaptureRingSpec) { s.SnapLength = 70000 }},
	{field: "snapLength", reason: v1.ReasonMemoryLimitExceeded, ring: func(s *v1.CaptureRingSpec) { s.SnapLength = 9216 }},
	{field: "snapLength", reason: v1.ReasonMemoryLimitExceeded, harms: "Cluster \"ids\"", ring: func(s *v1.CaptureRingSpec) {
		s.SnapLength, s.Slots = 9216, 64
	}},
	{field: "filter", reason: v1.ReasonInvalidFilter, ring: func(s *v1.CaptureRingSpec) { s.Filter = &v1.Filter{BPF: "tcp prot 80"} }},
	{field: "filter", reason: v1.ReasonInvalidFilter, ring: func(s *v1.CaptureRingSpec) { s.Filter = &v1.Filter{VLANs: []int32{5000}} }},
	{field: "filter", reason: v1.ReasonInvalidFilter, ring: func(s *v1.CaptureRingSpec) {
		s.Filter = &v1.Filter{Payload: []v1.PayloadPattern{{Hex: "0"}}}
	}},
	{field: "filter", reason: v1.ReasonInvalidFilter, only: v1.EngineKernelModule, ring: func(s *v1.CaptureRingSpec) {
		s.Filter = &v1.Filter{Plugins: []v1.Plugin{{Name: strings.Repeat("x", 32)}}}
	}},
	{field: "filter", reason: v1.ReasonUnsupported, only: v1.EngineEBPF, ring: func(s *v1.CaptureRingSpec) {
		s.Filter = &v1.Filter{Plugins: []v1.Plugin{{Name: "dns"}}}
	}},
	{field: "filter", reason: v1.ReasonInvalidFilter, ring: rules(v1.Rule{Action: "Perhaps"})},
	{field: "filter", reason: v1.ReasonInvalidFilter, ring: rules(v1.Rule{Action: v1.RuleDrop, Priority: -1})},
	{field: "filter", reason: v1.ReasonInvalidFilter, ring: rules(v1.Rule{Action: v1.RuleReflect, ReflectTo: "nic7"})},
	{field: "filter", reason: v1.ReasonInvalidFilter, ring: rules(v1.Rule{Action: v1.RuleQueue, Queue: &v1.QueueReference{Cluster: "ids", Queue: 2}})},
	{field: "filter", reason: v1.ReasonInvalidFilter, ring: rules(v1.Rule{Action: v1.RuleLearn, IdleTimeout: &metav1.Duration{Duration: time.Millisecond}})},
	{field: "sampling", reason: v1.ReasonUnsupported, ring: func(s *v1.CaptureRingSpec) { s.Sampling = &v1.Sampling{} }},
	{field: "defragment", reason: v1.ReasonUnsupported, only: v1.EngineEBPF, ring: func(s *v1.CaptureRingSpec) { s.Defragment = true }},
	{field: "timestamps", reason: v1.ReasonUnsupported, only: v1.EngineEBPF, ring: func(s *v1.CaptureRingSpec) { s.Timestamps = v1.TimestampsHardware }},
	{field: "balance", reason: v1.ReasonUnsupported, queues: func(q *v1.QueueSettings) { q.Balance = "Fairly" }},
	{field: "slots", reason: v1.ReasonUnsupported, queues: func(q *v1.QueueSettings) { q.Slots = -1 }},
	{field: "slots", reason: v1.ReasonUnsupported, queues: func(q *v1.QueueSettings) {
		q.Slots, q.MemoryLimit = 1<<30, resource.NewQuantity(8<<40, resource.BinarySI)
	}},
	{field: "slots", reason: v1.ReasonMemoryLimitExceeded, queues: func(q *v1.QueueSettings) { q.Slots = 1 << 30 }},
	{field: "slots", reason: v1.ReasonMemoryLimitExceeded, queues: func(q *v1.QueueSettings) { q.Slots = 65536 }},
	{field: "watermark", reason: v1.ReasonUnsupported, queues: func(q *v1.QueueSettings) { q.Watermark = 95 }},
	{field: "watermarkTimeout", reason: v1.ReasonUnsupported, queues: func(q *v1.QueueSettings) { q.WatermarkTimeout = &metav1.Duration{Duration: time.Hour} }},
	{field: "memoryLimit", reason: v1.ReasonMemoryLimitExceeded, queues: func(q *v1.QueueSettings) { q.MemoryLimit = quantity("1600Ki") }},
	{field: "consumers", reason: v1.ReasonUnsupported, queues: func(q *v1.QueueSettings) { q.Consumers = &v1.Consumers{Shunt: v1.MaxShunts + 1} }},
	{field: "rings", reason: v1.ReasonRingNotFound, cluster: func(s *v1.ClusterSpec) { s.Rings = []string{"nowhere"} }},
	{field: "rings", reason: v1.ReasonRingNotFound, cluster: func(s *v1.ClusterSpec) { s.Rings = nil }},
	{field: "queues", reason: v1.ReasonUnsupported, cluster: func(s *v1.ClusterSpec) { s.Queues = 257 }},
	{field: "queues", reason: v1.ReasonMemoryLimitExceeded, cluster: func(s *v1.ClusterSpec) { s.Queues = 256 }},
	{field: "queues", reason: v1.ReasonInvalidFilter, harms: "ring \"mirror\"", cluster: func(s *v1.ClusterSpec) { s.Queues = 1 }},
	{field: "filter", reason: v1.ReasonUnsupported, cluster: func(s *v1.ClusterSpec) { s.Filter = &v1.Filter{BPF: "tcp"} }},
}

// These are fields of which a node refuses no value. It treats an unknown value as the default, and the CRD refuses
// it.
var neverRefused = []string{
	"nodeSelector", "transparentFallback", "xdp", "quickMode", "balanceHeader", "fragments", "whenFull", "whenUnattended", "packetHeader", "rollout",
}

func TestEveryFieldIsTriedOrNeverRefused(t *testing.T) {
	tried := map[string]bool{}
	for _, change := range refusedChanges {
		tried[change.field] = true
	}
	for _, field := range neverRefused {
		tried[field] = true
	}
	for _, spec := range []any{v1.CaptureRingSpec{}, v1.ClusterSpec{}, v1.QueueSettings{}} {
		for field := range reflect.TypeOf(spec).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			assert.True(t, name == "" || tried[name], "spec.%s: give refusedChanges a value that a node refuses, or list the field in neverRefused", name)
		}
	}
}

// variants returns the specs with the change made, by what was changed: settings of queues, a ring's and a Cluster's.
func (c refusedChange) variants(engine v1.Engine) map[string]v1.NodeCaptureSpec {
	all := map[string]v1.NodeCaptureSpec{}
	change := func(what string, change func(*v1.NodeCaptureSpec)) {
		spec := acceptedSpec(engine)
		change(&spec)
		all[what] = spec
	}
	switch {
	case c.ring != nil:
		change("ring", func(s *v1.NodeCaptureSpec) { c.ring(&s.Rings[0].Spec) })
	case c.cluster != nil:
		change("cluster", func(s *v1.NodeCaptureSpec) { c.cluster(&s.Clusters[0].Spec) })
	default:
		change("ring", func(s *v1.NodeCaptureSpec) { c.queues(&s.Rings[0].Spec.QueueSettings) })
		change("cluster", func(s *v1.NodeCaptureSpec) { c.queues(&s.Clusters[0].Spec.QueueSettings) })
	}
	return all
}

// A change that a node refuses removes no capture, neither under the agent that got it nor under later ones.
func TestARefusedChangeOutlivesTheAgent(t *testing.T) {
	for _, engine := range []v1.Engine{v1.EngineEBPF, v1.EngineKernelModule} {
		for i, change := range refusedChanges {
			for what, changed := range change.variants(engine) {
				if change.only == "" || change.only == engine {
					t.Run(fmt.Sprintf("%s/%d %s of a %s", engine, i, change.field, what), func(t *testing.T) {
						outlives(t, engine, changed, what, change)
					})
				}
			}
		}
	}
}

func outlives(t *testing.T, kind v1.Engine, changed v1.NodeCaptureSpec, what string, change refusedChange) {
	engine := &planEngine{memoryEngine: newMemoryEngine()}
	file := filepath.Join(t.TempDir(), "plugin", "accepted.json")
	agent := agentOf(kind, engine, file)
	first := agent.Reconcile(t.Context(), acceptedSpec(kind), 1)
	require.True(t, first.Rings["mirror"].Ready(), first.Rings["mirror"].Message)
	require.True(t, first.Clusters["mirror"].Ready(), first.Clusters["mirror"].Message)
	require.True(t, first.Clusters["ids"].Ready(), first.Clusters["ids"].Message)
	before := engine.last

	for _, agent := range []*Reconciler{agent, agentOf(kind, engine, file), agentOf(kind, engine, file)} {
		report := agent.Reconcile(t.Context(), changed, 2)
		require.NoError(t, report.Err)
		assert.Equal(t, before, engine.last)
		assert.Equal(t, first.Plan.NICs, report.Plan.NICs)
		verdict := report.Rings["mirror"]
		if what == "cluster" {
			verdict = report.Clusters["ids"]
		}
		assert.Equal(t, change.reason, verdict.Reason, verdict.Message)
		assert.Contains(t, verdict.Message, "; until then it stays as it was before the change")
		assert.Contains(t, verdict.Message, change.harms)
		assert.True(t, report.Clusters["ids"].Fed)
	}
	last := agentOf(kind, engine, file)
	for range 2 {
		report := last.Reconcile(t.Context(), acceptedSpec(kind), 3)
		assert.True(t, report.Rings["mirror"].Ready(), report.Rings["mirror"].Message)
		assert.True(t, report.Clusters["ids"].Ready(), report.Clusters["ids"].Message)
	}
	assert.Equal(t, before, engine.last)
}

// withLimit is the spec with a memory limit for the ring's own queues; 1Mi is refused.
func withLimit(limit string) v1.NodeCaptureSpec {
	spec := acceptedSpec(v1.EngineEBPF)
	spec.Rings[0].Spec.MemoryLimit = quantity(limit)
	return spec
}

// The specs that an agent can go back to are on disk at each moment: a new object before it is made, a change when
// the engine has it. So if an agent is killed at any step, the next agent knows them.
func TestWhatIsAcceptedIsNoted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "accepted.json")
	engine := &planEngine{memoryEngine: newMemoryEngine()}
	noted := func() string {
		return agentOf(v1.EngineEBPF, nil, file).Accepted.Load().Rings[0].Spec.MemoryLimit.String()
	}
	for _, step := range []struct{ limit, before, after string }{{"65Mi", "65Mi", "65Mi"}, {"1Mi", "65Mi", "65Mi"}, {"66Mi", "65Mi", "66Mi"}} {
		engine.before = func() { assert.Equal(t, step.before, noted()) }
		agentOf(v1.EngineEBPF, engine, file).Reconcile(t.Context(), withLimit(step.limit), 1)
		assert.Equal(t, step.after, noted())
	}
	about, err := os.Stat(file)
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, about.Mode().Perm(), "filters and patterns are nobody's business")

	engine.before = nil
	agentOf(v1.EngineEBPF, engine, file).Reconcile(t.Context(), v1.NodeCaptureSpec{}, 2)
	assert.NoFileExists(t, file)
	assert.Empty(t, engine.last)
}

// A record that is not about this node, this object or this version of the agent is not used. A damaged record stops
// no agent.
func TestWhatIsNotBelieved(t *testing.T) {
	for name, test := range map[string]struct {
		change func(string) string
		other  func(*Reconciler, *v1.NodeCaptureSpec)
		kept   bool
	}{
		"as it was":       {change: strings.Clone, kept: true},
		"damaged":         {change: func(s string) string { return s[:len(s)/2] }},
		"empty":           {change: func(string) string { return "" }},
		"a newer field":   {change: func(s string) string { return strings.ReplaceAll(s, `"bpf"`, `"bpf2"`) }},
		"a newer version": {change: func(s string) string { return strings.ReplaceAll(s, `"version":1`, `"version":2`) }},
		"an older one without a field": {kept: true, change: func(s string) string {
			assert.Contains(t, s, `"direction":"Receive",`)
			return strings.ReplaceAll(s, `"direction":"Receive",`, "")
		}},
		"another node": {change: strings.Clone, other: func(r *Reconciler, _ *v1.NodeCaptureSpec) { r.Accepted.Node = "node-b" }},
		"made again":   {change: strings.Clone, other: func(_ *Reconciler, s *v1.NodeCaptureSpec) { s.Rings[0].UID = "3" }},
		"another boot": {change: strings.Clone, other: func(r *Reconciler, _ *v1.NodeCaptureSpec) { r.Accepted.Records.BootID = "2" }},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "accepted.json")
			engine := &planEngine{memoryEngine: newMemoryEngine()}
			agentOf(v1.EngineEBPF, engine, file).Reconcile(t.Context(), withLimit("64Mi"), 1)
			before := engine.last
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, []byte(test.change(string(text))), 0o600))
			agent, refused := agentOf(v1.EngineEBPF, engine, file), withLimit("1Mi")
			if test.other != nil {
				test.other(agent, &refused)
			}
			report := agent.Reconcile(t.Context(), refused, 2)
			assert.NoError(t, report.Err)
			assert.Equal(t, v1.ReasonMemoryLimitExceeded, report.Clusters["mirror"].Reason)
			assert.Equal(t, test.kept, report.Clusters["mirror"].Made)
			if test.kept {
				assert.Equal(t, before, engine.last)
			}
			report = agent.Reconcile(t.Context(), withLimit("64Mi"), 3)
			assert.True(t, report.Clusters["mirror"].Ready(), "it goes on")
			assert.Equal(t, name == "damaged", exists(Aside(file)))
		})
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// A disk that cannot be written is reported, and does not stop any capture.
func TestAcceptedCannotBeWritten(t *testing.T) {
	engine := &planEngine{memoryEngine: newMemoryEngine()}
	agent := agentOf(v1.EngineEBPF, engine, "/proc/none/accepted.json")
	report := agent.Reconcile(t.Context(), withLimit("64Mi"), 1)
	assert.ErrorContains(t, report.Err, "write the accepted specs for the next agent")
	before := engine.last
	assert.Len(t, before.Rings, 1)
	agent.Reconcile(t.Context(), withLimit("1Mi"), 2)
	assert.Equal(t, before, engine.last)
}

// If a change is refused, the message has the reason. It does not ask to stop consumers for the spec that was
// accepted before.
func TestAnEnginesRefusalDoesNotHideThatOfTheChange(t *testing.T) {
	engine := &planEngine{memoryEngine: newMemoryEngine()}
	file := filepath.Join(t.TempDir(), "accepted.json")
	engine.refuse["mirror"] = fmt.Errorf("cluster mirror: %w: stop its consumers first", capture.ErrInUse)
	report := agentOf(v1.EngineEBPF, engine, file).Reconcile(t.Context(), withLimit("64Mi"), 1)
	assert.Equal(t, v1.ReasonQueueInUse, report.Clusters["mirror"].Reason)
	report = agentOf(v1.EngineEBPF, engine, file).Reconcile(t.Context(), withLimit("1Mi"), 2)
	assert.Equal(t, v1.ReasonMemoryLimitExceeded, report.Clusters["mirror"].Reason)
	assert.Regexp(t, "^2 queues of .* need .*; of what was accepted before it: .*stop its consumers first", report.Clusters["mirror"].Message)
}

// If an engine cannot be asked for a moment at the start, accepted specs are kept.
func TestAnEngineIsAwayForAMomentAtTheStart(t *testing.T) {
	engine := &planEngine{memoryEngine: newMemoryEngine()}
	file := filepath.Join(t.TempDir(), "accepted.json")
	agentOf(v1.EngineEBPF, engine, file).Reconcile(t.Context(), withLimit("64Mi"), 1)
	before := engine.last
	agent := agentOf(v1.EngineEBPF, engine, file)
	open := agent.Providers[0].Open
	agent.Providers[0].Open = func(context.Context) (capture.Engine, error) { return nil, errors.New("busy") }
	report := agent.Reconcile(t.Context(), withLimit("1Mi"), 2)
	assert.Equal(t, v1.ReasonEngineUnavailable, report.Rings["mirror"].Reason)
	agent.Providers[0].Open = open
	report = agent.Reconcile(t.Context(), withLimit("1Mi"), 2)
	assert.Equal(t, v1.ReasonMemoryLimitExceeded, report.Clusters["mirror"].Reason)
	assert.Equal(t, before, engine.last)
}

// A problem of a change that only the engine can report removes nothing either. The next agent still knows what was
// accepted before. Each agent tries the change once.
func TestAChangeThatTheEngineRefuses(t *testing.T) {
	engine := &planEngine{memoryEngine: newMemoryEngine()}
	file := filepath.Join(t.TempDir(), "accepted.json")
	agentOf(v1.EngineEBPF, engine, file).Reconcile(t.Context(), withLimit("64Mi"), 1)
	before := engine.last
	for name, change := range map[string]func(*v1.NodeCaptureSpec){
		"mirror": func(s *v1.NodeCaptureSpec) { s.Rings[0].Spec.SnapLength = 1000 },
		"ids":    func(s *v1.NodeCaptureSpec) { s.Clusters[0].Spec.Balance = v1.BalanceRoundRobin },
	} {
		changed := withLimit("64Mi")
		change(&changed)
		engine.unlike = map[string]capture.Plan{name: before}
		for range 2 {
			agent := agentOf(v1.EngineEBPF, engine, file)
			for tries := 2; tries > 0; tries-- {
				engine.applied = 0
				report := agent.Reconcile(t.Context(), changed, 2)
				require.NoError(t, report.Err)
				assert.Equal(t, before, engine.last)
				assert.Equal(t, tries, engine.applied)
				object := report.Rings[name]
				if name == "ids" {
					object = report.Clusters[name]
				}
				assert.Equal(t, v1.ReasonUnsupported, object.Reason)
				assert.Contains(t, object.Message, "no such thing: "+capture.ErrUnsupported.Error()+"; the change is tried again when it is edited, or when the agent restarts; until then it stays as it was before the change")
				assert.True(t, object.Made)
				assert.True(t, report.Clusters["ids"].Fed)
			}
		}
		engine.unlike = map[string]capture.Plan{}
		changed.Rings[0].Revision += "."
		report := agentOf(v1.EngineEBPF, engine, file).Reconcile(t.Context(), changed, 4)
		assert.True(t, report.Rings["mirror"].Ready())
		assert.NotEqual(t, before, engine.last)
		agentOf(v1.EngineEBPF, engine, file).Reconcile(t.Context(), withLimit("64Mi"), 5)
		assert.Equal(t, before, engine.last)
	}
}

// An agent is killed while it tries what the engine refuses. The next agent goes back to what was accepted before.
func TestAnAgentIsKilledWhileTheEngineRefuses(t *testing.T) {
	for name, change := range map[string]func(*v1.NodeCaptureSpec){
		"mirror": func(s *v1.NodeCaptureSpec) { s.Rings[0].Spec.SnapLength = 1000 },
		"ids":    func(s *v1.NodeCaptureSpec) { s.Clusters[0].Spec.Balance = v1.BalanceRoundRobin },
	} {
		engine := &planEngine{memoryEngine: newMemoryEngine()}
		file := filepath.Join(t.TempDir(), "accepted.json")
		agentOf(v1.EngineEBPF, engine, file).Reconcile(t.Context(), withLimit("64Mi"), 1)
		before, changed := engine.last, withLimit("64Mi")
		change(&changed)
		engine.unlike = map[string]capture.Plan{name: before}
		engine.after = func() { panic("killed") }
		assert.PanicsWithValue(t, "killed", func() { agentOf(v1.EngineEBPF, engine, file).Reconcile(t.Context(), changed, 2) })
		require.NotEqual(t, before, engine.last, "it was tried")

		engine.after = nil
		report := agentOf(v1.EngineEBPF, engine, file).Reconcile(t.Context(), changed, 2)
		assert.Equal(t, before, engine.last, name)
		assert.True(t, report.Rings["mirror"].Made)
		assert.True(t, report.Clusters["ids"].Fed)
	}
}

// choosyEngine refuses each ring for which message returns a text.
type choosyEngine struct {
	*planEngine
	message func(capture.Ring) string
}

func (e *choosyEngine) Apply(ctx context.Context, p capture.Plan, seen capture.Observation) (map[string]error, error) {
	for _, ring := range p.Rings {
		e.refuse[ring.Name] = nil
		if text := e.message(ring); text != "" {
			e.refuse[ring.Name] = fmt.Errorf("%s: %w", text, capture.ErrUnsupported)
		}
	}
	return e.planEngine.Apply(ctx, p, seen)
}

// A change is not to blame for a problem that the engine also has with the accepted spec, such as an interface that
// came later and carries no Ethernet frames. The change is withheld if it makes this problem greater.
func TestAChangeThatIsNotToBlame(t *testing.T) {
	for more, kept := range map[string]bool{"": false, ", and no native XDP": true} {
		engine := &choosyEngine{planEngine: &planEngine{memoryEngine: newMemoryEngine()}, message: func(capture.Ring) string { return "" }}
		agent := agentOf(v1.EngineEBPF, engine, filepath.Join(t.TempDir(), "accepted.json"))
		agent.Reconcile(t.Context(), withLimit("64Mi"), 1)
		before := engine.last
		came := "wg0 carries none"
		engine.message = func(r capture.Ring) string {
			if r.SnapLen == 1000 {
				return came + more
			}
			return came
		}
		changed := withLimit("64Mi")
		changed.Rings[0].Spec.SnapLength = 1000
		for range 2 {
			object := agent.Reconcile(t.Context(), changed, 2).Rings["mirror"]
			assert.Equal(t, v1.ReasonUnsupported, object.Reason)
			assert.Contains(t, object.Message, "wg0 carries none")
			assert.Equal(t, kept, object.Decision.AsBefore)
			assert.Equal(t, kept, reflect.DeepEqual(before, engine.last))
		}
		engine.message = func(capture.Ring) string { return "" }
		object := agent.Reconcile(t.Context(), changed, 2).Rings["mirror"]
		assert.Equal(t, !kept, object.Ready(), object.Message)
	}
}

// A Cluster with a ring's name is refused for the name. The agent does not look in the Cluster for ever for what the
// engine does not support of the ring.
func TestAChangeThatTheEngineRefusesBesideAClusterOfItsName(t *testing.T) {
	engine := &choosyEngine{planEngine: &planEngine{memoryEngine: newMemoryEngine()}, message: func(capture.Ring) string { return "" }}
	agent := agentOf(v1.EngineEBPF, engine, filepath.Join(t.TempDir(), "accepted.json"))
	asked := withLimit("64Mi")
	asked.Clusters[0].Name, asked.Rings[0].Spec.Filter = "mirror", nil
	agent.Reconcile(t.Context(), *asked.DeepCopy(), 1)
	asked.Rings[0].Spec.SnapLength, asked.Clusters[0].Spec.Queues = 1000, 4
	tries := 0
	engine.message = func(r capture.Ring) string {
		tries++
		require.Less(t, tries, 10)
		if r.SnapLen == 1000 {
			return "no such length"
		}
		return ""
	}
	assert.Equal(t, v1.ReasonUnsupported, agent.Reconcile(t.Context(), asked, 2).Rings["mirror"].Reason)
}
