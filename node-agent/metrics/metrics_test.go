// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
	"github.com/ringcap/ringcap/node-agent/status"
	"github.com/ringcap/ringcap/operator/api/counters"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

func report() datapath.Report {
	return datapath.Report{
		Spec: v1.NodeCaptureSpec{Rings: []v1.NodeRing{
			{Name: "mirror", Spec: v1.CaptureRingSpec{Engine: v1.EngineAuto}}, {Name: "broken", Spec: v1.CaptureRingSpec{Engine: v1.EngineEBPF}},
		}},
		Rings: map[string]datapath.Object{
			"mirror": {Made: true, Engine: v1.EngineEBPF, Decision: plan.Verdict{Interfaces: []string{"eth0"}}},
			"broken": {Reason: v1.ReasonInvalidFilter, Engine: v1.EngineEBPF},
		},
		Clusters: map[string]datapath.Object{"ids": {Made: true, Engine: v1.EngineEBPF}},
		Plan: plan.Result{
			Plans: map[v1.Engine]capture.Plan{v1.EngineEBPF: {Clusters: []capture.Cluster{{Name: "ids", QueueBytes: 131072}}, Rings: []capture.Ring{{
				Name: "mirror", Plugins: []capture.Plugin{{Name: "dns"}},
				Rules: capture.RuleSet{
					Wildcard: []capture.WildcardRule{{ID: 1, Name: "web"}, {ID: 2}, {ID: 3, Name: "web"}},
					Patterns: []capture.Pattern{{Name: "evil"}, {}},
				},
			}}}},
		},
		Memory:     &capture.Memory{Total: 1000, Available: 800, Reserve: 200, AgentRoom: 500},
		Engines:    map[v1.Engine]plan.EngineFact{v1.EngineEBPF: {Available: true, Lanes: 2}},
		Interfaces: []node.Interface{{Name: "eth0", Received: 12, ReceivedBytes: 768, Dropped: 1, Missed: 2, Errors: 3, Overrun: 4}, {Name: "lo"}},
		Drivers:    map[string]plan.DriverFact{"eth0": {Name: "igb_ringcap", Aware: true, Stock: "igb"}, "lo": {}},
		Observations: map[v1.Engine]capture.Observation{v1.EngineEBPF: {
			Rings: map[string]capture.RingState{"mirror": {Stats: capture.RingStats{Seen: 10, SeenBytes: 640, Filtered: 3, Passed: 7, ReflectFailed: 1},
				Rules:    map[uint32]capture.RuleStats{1: {Packets: 2, Bytes: 250}, 2: {Packets: 1, Bytes: 99}, 3: {Packets: 3, Bytes: 300}},
				Patterns: []uint64{4, 6}, Plugins: []uint64{1}}},
			Clusters: map[string]capture.ClusterState{"ids": {Memory: 4096, Queues: []capture.QueueStats{{
				Delivered: 5, DeliveredBytes: 320, Truncated: 1, TruncatedBytes: 7, UnreadBytes: 64, FullestLaneBytes: 32768, Attached: true,
				Shunted: 3, ShuntedBytes: 300, ShuntedFlows: 4, ShuntsLost: 6, Dropped: map[capture.DropReason]uint64{capture.DropFull: 2},
			}}}},
		}},
	}
}

func gather(t *testing.T, c *Collector) []*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	require.NoError(t, err)
	return families
}

// expose returns what a scrape would, without comments.
func expose(t *testing.T, c *Collector) string {
	t.Helper()
	var text strings.Builder
	for _, family := range gather(t, c) {
		require.NotEmpty(t, family.GetHelp())
		if family.GetType() == dto.MetricType_COUNTER {
			require.True(t, strings.HasSuffix(family.GetName(), "_total"), family.GetName())
		}
		for _, m := range family.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			fmt.Fprintf(&text, "%s{%s} %v\n", strings.TrimPrefix(family.GetName(), "ringcap_"), strings.Join(labels, ","),
				m.GetCounter().GetValue()+m.GetGauge().GetValue())
		}
	}
	return text.String()
}

const want = `build_info{kernel=6.1.0-40-amd64,version=1.2} 1
cluster_duplicated_packets_total{capture_cluster=ids,engine=EBPF} 0
cluster_memory_bytes{capture_cluster=ids,engine=EBPF} 4096
cluster_ready{capture_cluster=ids,engine=EBPF,reason=} 1
cluster_spread_packets_total{capture_cluster=ids,engine=EBPF} 0
engine_available{engine=EBPF} 1
engine_available{engine=KernelModule} 0
interface_driver_info{driver=igb_ringcap,interface=eth0,state=replaced} 1
interface_dropped_packets_total{interface=eth0} 1
interface_errors_packets_total{interface=eth0} 3
interface_missed_packets_total{interface=eth0} 2
interface_overrun_packets_total{interface=eth0} 4
interface_received_bytes_total{interface=eth0} 768
interface_received_packets_total{interface=eth0} 12
module_ready{reason=KeyRejected,version=} 0
node_memory_reserve_bytes{} 200
node_memory_room_bytes{} 500
payload_pattern_packets_total{engine=EBPF,pattern=evil,ring=mirror} 4
payload_patterns_other_packets_total{engine=EBPF,ring=mirror} 6
plugin_filtered_packets_total{engine=EBPF,plugin=dns,ring=mirror} 1
queue_attached{capture_cluster=ids,engine=EBPF,queue=0} 1
queue_capacity_bytes{capture_cluster=ids,engine=EBPF,queue=0} 262144
queue_delivered_bytes_total{capture_cluster=ids,engine=EBPF,queue=0} 320
queue_delivered_packets_total{capture_cluster=ids,engine=EBPF,queue=0} 5
queue_dropped_packets_total{capture_cluster=ids,engine=EBPF,queue=0,reason=full} 2
queue_dropped_packets_total{capture_cluster=ids,engine=EBPF,queue=0,reason=hung} 0
queue_dropped_packets_total{capture_cluster=ids,engine=EBPF,queue=0,reason=nomem} 0
queue_dropped_packets_total{capture_cluster=ids,engine=EBPF,queue=0,reason=unattended} 0
queue_fullest_lane_ratio{capture_cluster=ids,engine=EBPF,queue=0} 0.25
queue_shunted_bytes_total{capture_cluster=ids,engine=EBPF,queue=0} 300
queue_shunted_flows{capture_cluster=ids,engine=EBPF,queue=0} 4
queue_shunted_flows_lost_total{capture_cluster=ids,engine=EBPF,queue=0} 6
queue_shunted_packets_total{capture_cluster=ids,engine=EBPF,queue=0} 3
queue_truncated_bytes_total{capture_cluster=ids,engine=EBPF,queue=0} 7
queue_truncated_packets_total{capture_cluster=ids,engine=EBPF,queue=0} 1
queue_unread_bytes{capture_cluster=ids,engine=EBPF,queue=0} 64
reconcile_duration_seconds{} 0
reconcile_errors_total{} 0
resource_registered{resource=ringcap.io/ids} 1
ring_absorbed_packets_total{engine=EBPF,ring=mirror} 0
ring_directed_packets_total{engine=EBPF,ring=mirror} 0
ring_fallback{ring=broken} 0
ring_fallback{ring=mirror} 1
ring_filtered_packets_total{engine=EBPF,ring=mirror} 3
ring_passed_packets_total{engine=EBPF,ring=mirror} 7
ring_ready{engine=EBPF,reason=,ring=mirror} 1
ring_ready{engine=EBPF,reason=InvalidFilter,ring=broken} 0
ring_reflect_failed_packets_total{engine=EBPF,ring=mirror} 1
ring_reflected_packets_total{engine=EBPF,ring=mirror} 0
ring_sampled_out_packets_total{engine=EBPF,ring=mirror} 0
ring_seen_bytes_total{engine=EBPF,ring=mirror} 640
ring_seen_packets_total{engine=EBPF,ring=mirror} 10
rule_bytes_total{engine=EBPF,ring=mirror,rule=web} 550
rule_packets_total{engine=EBPF,ring=mirror,rule=web} 5
rules_other_bytes_total{engine=EBPF,ring=mirror} 99
rules_other_packets_total{engine=EBPF,ring=mirror} 1
`

func TestCollector(t *testing.T) {
	c := NewCollector("1.2", "6.1.0-40-amd64")
	c.Registered = func() map[string]bool { return map[string]bool{"ids": true} }
	before := expose(t, c)
	assert.Contains(t, before, "build_info")
	assert.NotContains(t, before, "packets", "nothing is known before the first report")
	c.Set(report(), status.Module{Reason: v1.ReasonKeyRejected})
	assert.Equal(t, want, expose(t, c))
}

// TestCatalogue: what is exposed is what is documented, down to type and labels.
func TestCatalogue(t *testing.T) {
	c := NewCollector("1.2", "6.1")
	c.Registered = func() map[string]bool { return map[string]bool{"ids": false} }
	c.Set(inLine(report()), status.Module{})
	exposed := map[string]*dto.MetricFamily{}
	for _, family := range gather(t, c) {
		exposed[family.GetName()] = family
	}
	for _, m := range Catalogue() {
		family := exposed[m.Name]
		require.NotNil(t, family, "%s is documented and not exposed", m.Name)
		assert.Equal(t, string(m.Kind), strings.ToLower(family.GetType().String()), m.Name)
		assert.Equal(t, m.Help, family.GetHelp())
		var labels []string
		for _, l := range family.Metric[0].Label {
			labels = append(labels, l.GetName())
		}
		assert.ElementsMatch(t, m.Labels, labels, m.Name)
	}
	assert.Len(t, Catalogue(), len(exposed))
}

// TestNamesAreBounded: a ring's first names have series, and of the others there is the sum.
func TestNamesAreBounded(t *testing.T) {
	r := report()
	rules := &r.Plan.Plans[v1.EngineEBPF].Rings[0].Rules
	counted := r.Observations[v1.EngineEBPF].Rings["mirror"].Rules
	rules.Wildcard = nil
	for i := range uint32(MaxNames + 5) {
		rules.Wildcard = append(rules.Wildcard, capture.WildcardRule{ID: i, Name: fmt.Sprintf("rule-%d", i)})
		counted[i] = capture.RuleStats{Packets: 10}
	}
	c := NewCollector("", "")
	c.Set(r, status.Module{})
	text := expose(t, c)
	assert.Equal(t, MaxNames, strings.Count(text, "\nrule_packets_total{"))
	assert.Contains(t, text, "rules_other_packets_total{engine=EBPF,ring=mirror} 50\n")
}

func TestReconciliationsAreTimed(t *testing.T) {
	c := NewCollector("", "")
	c.Reconciled(20*time.Millisecond, nil)
	c.Reconciled(2*time.Second, errors.New("no memory"))
	for _, family := range gather(t, c) {
		switch family.GetName() {
		case "ringcap_reconcile_duration_seconds":
			assert.EqualValues(t, 2, family.Metric[0].Histogram.GetSampleCount())
			assert.InDelta(t, 2.02, family.Metric[0].Histogram.GetSampleSum(), 1e-9)
		case "ringcap_reconcile_errors_total":
			assert.EqualValues(t, 1, family.Metric[0].Counter.GetValue())
		}
	}
}

// TestFill: one full lane counts, and an engine that reports none leaves what all lanes have in common.
func TestFill(t *testing.T) {
	size := queueSize{area: 1000, lanes: 4}
	assert.InDelta(t, 1, size.fill(capture.QueueStats{UnreadBytes: 1000, FullestLaneBytes: 1000}), 0)
	assert.InDelta(t, 0.25, size.fill(capture.QueueStats{UnreadBytes: 1000}), 0)
	assert.InDelta(t, 0.5, size.fill(capture.QueueStats{UnreadBytes: 1000, Lanes: 2}), 0, "of the lanes that there are")
	assert.Zero(t, size.fill(capture.QueueStats{}))
}

func TestDriverState(t *testing.T) {
	for want, fact := range map[string]plan.DriverFact{
		driverStock: {Name: "igb"}, driverAware: {Aware: true}, driverReplaced: {Aware: true, Stock: "igb"}, driverFailed: {Failed: "no link"},
	} {
		assert.Equal(t, want, driverState(fact))
	}
}

func TestServe(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	assert.ErrorContains(t, Serve(context.Background(), address, NewCollector("", ""), nil, nil, nil), "serve metrics")
	require.NoError(t, listener.Close())

	problem := errors.New("not registered with the kubelet")
	var counted atomic.Pointer[counters.Report]
	require.NoError(t, Serve(t.Context(), address, NewCollector("1.2", "6.1.0-40-amd64"),
		func() error { return nil }, func() error { return problem }, counted.Load))
	get := func(path string) (int, string) {
		response, err := http.Get("http://" + address + path)
		require.NoError(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(body)
	}
	code, _ := get("/healthz")
	assert.Equal(t, 200, code)
	code, body := get("/readyz")
	assert.Equal(t, 503, code)
	assert.Contains(t, body, "not registered with the kubelet")
	_, body = get("/metrics")
	assert.Contains(t, body, `ringcap_build_info{kernel="6.1.0-40-amd64",version="1.2"} 1`)
	code, _ = get(counters.Path)
	assert.Equal(t, 503, code)
	counted.Store(&counters.Report{Node: "n1", Rings: []v1.NodeRingStatus{{Name: "mirror", Seen: 7}}})
	code, body = get(counters.Path)
	assert.Equal(t, 200, code)
	var got counters.Report
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	assert.Equal(t, *counted.Load(), got)
}
