// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/ringcap/ringcap/monitoring/rules"
)

// unitTests is a test file of promtool's.
type unitTests struct {
	RuleFiles          []string   `json:"rule_files"`
	EvaluationInterval string     `json:"evaluation_interval"`
	Tests              []unitTest `json:"tests"`
}

type unitTest struct {
	Name     string      `json:"name,omitempty"`
	Interval string      `json:"interval"`
	Series   []series    `json:"input_series"`
	Exprs    []exprTest  `json:"promql_expr_test,omitempty"`
	Alerts   []alertTest `json:"alert_rule_test,omitempty"`
}

type series struct {
	Series string `json:"series"`
	Values string `json:"values"`
}

type exprTest struct {
	Expr    string   `json:"expr"`
	At      string   `json:"eval_time"`
	Samples []sample `json:"exp_samples,omitempty"`
}

type sample struct {
	Labels string  `json:"labels"`
	Value  float64 `json:"value"`
}

type alertTest struct {
	At     string  `json:"eval_time"`
	Name   string  `json:"alertname"`
	Alerts []alert `json:"exp_alerts,omitempty"`
}

type alert struct {
	Labels      map[string]string `json:"exp_labels"`
	Annotations map[string]string `json:"exp_annotations"`
}

// promtool runs tests with promtool, which e2e/prometheus/get has.
func promtool(t *testing.T, tests ...unitTest) {
	t.Helper()
	promtoolEvery(t, interval.String(), tests...)
}

// promtoolEvery evaluates the rules at that interval.
func promtoolEvery(t *testing.T, every string, tests ...unitTest) {
	t.Helper()
	program := os.Getenv("RINGCAP_PROMTOOL")
	if program == "" {
		t.Skip("RINGCAP_PROMTOOL is not set: RINGCAP_PROMTOOL=$(e2e/prometheus/get)/promtool")
	}
	text, err := rules.YAML()
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "rules.yaml"), text, 0o600))
	text, err = yaml.Marshal(unitTests{[]string{"rules.yaml"}, every, tests})
	require.NoError(t, err)
	file := filepath.Join(folder, "test.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	out, err := exec.CommandContext(t.Context(), program, "check", "rules", filepath.Join(folder, "rules.yaml")).CombinedOutput()
	require.NoError(t, err, string(out))
	out, err = exec.CommandContext(t.Context(), program, "test", "rules", file).CombinedOutput()
	require.NoError(t, err, string(out))
}

// interval is that of samples. What was recorded every three seconds is played every 30, so that a recording of minutes is long
// enough for rates and alerts of many minutes.
const interval = 30 * time.Second

// at is a time by the number of samples since the beginning.
func at(samples int) string { return (time.Duration(samples) * interval).String() }

// firing expects these alerts, and their numbers, and no others.
func firing(samples int, counts ...sample) exprTest {
	return exprTest{Expr: `count by (alertname) (ALERTS{alertstate="firing"})`, At: at(samples), Samples: counts}
}

func times(name string, n float64) sample { return sample{fmt.Sprintf(`{alertname=%q}`, name), n} }

// TestWhatTheLabCannotHave: these series are made up, not recorded: emulated machines have no NIC that runs over, and parts that
// are gone have no series.
func TestWhatTheLabCannotHave(t *testing.T) {
	well := []series{
		{`ringcap_build_info{node="a",version="1",kernel="6.1"}`, "1+0x200"}, {`ringcap_operator_build_info{version="1"}`, "1+0x200"},
	}
	one := func(name string, made []series, when int, expected ...sample) unitTest {
		return unitTest{Name: name, Interval: interval.String(), Series: append(made, well...), Exprs: []exprTest{firing(when, expected...)}}
	}
	nobody := unitTest{Name: "nobody", Interval: interval.String(), Exprs: []exprTest{
		firing(8), firing(30, times("RingcapAgentsAbsent", 1), times("RingcapOperatorAbsent", 1)),
	}}
	nic := func(metric string) []series {
		return []series{{`ringcap_interface_` + metric + `_packets_total{node="a",interface="eth0"}`, "0+3x100"}, {`ringcap_interface_received_packets_total{node="a",interface="eth0"}`, "0+297x100"}}
	}
	summary := unitTest{Name: "a summary", Interval: interval.String(), Series: append(nic("missed"), well...), Alerts: []alertTest{{
		At: at(60), Name: "RingcapNICMissingPackets", Alerts: []alert{{
			Labels: map[string]string{"node": "a", "interface": "eth0", "severity": "warning"},
			Annotations: map[string]string{
				"summary":     "eth0 on a loses 1% of its packets before any ring can see them.",
				"description": find("RingcapNICMissingPackets").Description,
				"runbook_url": rules.Runbooks + "/RingcapNICMissingPackets.md",
			},
		}},
	}}}
	promtool(t, nobody, summary,
		one("missed", nic("missed"), 60, times("RingcapNICMissingPackets", 1)),
		one("overrun", nic("overrun"), 60, times("RingcapNICMissingPackets", 1)),
		one("bad frames are no alert", nic("errors"), 60),
		one("a silent node", []series{{`ringcap_operator_node_reporting{nodecapture="b"}`, "1+0x20 0+0x80"}}, 60, times("RingcapNodeNotReporting", 1)),
		one("and not at once", []series{{`ringcap_operator_node_reporting{nodecapture="b"}`, "1+0x20 0+0x80"}}, 28),
		one("a ring", []series{{`ringcap_ring_ready{node="a",ring="r",engine="EBPF",reason="InterfaceNotFound"}`, "0+0x100"}}, 30, times("RingcapNotCapturing", 1)),
		one("a cluster", []series{{`ringcap_cluster_ready{node="a",capture_cluster="c",engine="EBPF",reason="QueueInUse"}`, "0+0x100"}}, 30, times("RingcapNotCapturing", 1)),
		one("a PodCapture's ring", []series{
			{`ringcap_ring_ready{node="a",ring="pods-shop-8d9001d32c-0",engine="EBPF",reason="PodNotTapped"}`, "0+0x100"},
			{`ringcap_cluster_ready{node="a",capture_cluster="pods-shop-8d9001d32c-0",engine="EBPF",reason="PodNotTapped"}`, "0+0x100"},
			{`ringcap_operator_object_ready{kind="CaptureRing",name="pods-shop-8d9001d32c-0",reason="PodNotTapped"}`, "0+0x100"},
		}, 70, times("RingcapNotReady", 1)),
		one("an object", []series{{`ringcap_operator_object_ready{kind="Cluster",name="c",reason="NoNodes"}`, "0+0x100"}}, 70, times("RingcapNotReady", 1)),
		one("a resource", []series{{`ringcap_resource_registered{node="a",resource="ringcap.io/c"}`, "0+0x100"}}, 30, times("RingcapResourceNotRegistered", 1)),
		one("errors", []series{{`ringcap_reconcile_errors_total{node="a"}`, "0+1x200"}}, 120, times("RingcapReconcileErrors", 1)),
		one("eBPF as asked", []series{{`ringcap_module_ready{node="a",reason="Disabled"}`, "0+0x100"}, {`ringcap_ring_fallback{node="a",ring="r"}`, "1+0x100"}}, 90),
		one("eBPF because there is no module", []series{
			{`ringcap_module_ready{node="a",reason="NoPrebuiltModule"}`, "0+0x100"}, {`ringcap_ring_fallback{node="a",ring="r"}`, "1+0x100"},
			{`ringcap_ring_ready{node="a",ring="r",engine="EBPF"}`, "1+0x100"},
		}, 90),
		one("a module that was there", []series{
			{`ringcap_module_ready{node="a",reason="LoadFailed"}`, "0+0x100"}, {`ringcap_ring_fallback{node="a",ring="r"}`, "1+0x100"},
		}, 90, times("RingcapEngineFallback", 1)),
		one("a module that is asked for", []series{
			{`ringcap_module_ready{node="a",reason="NoPrebuiltModule"}`, "0+0x100"},
			{`ringcap_ring_ready{node="a",ring="r",engine="KernelModule",reason="EngineUnavailable"}`, "0+0x100"},
		}, 90, times("RingcapModuleFailed", 1), times("RingcapNotCapturing", 1)),
		one("reasons that take turns", []series{
			{`ringcap_ring_ready{node="a",ring="r",reason="InterfaceNotFound"}`, strings.Repeat("0 0 _ _ ", 30)},
			{`ringcap_ring_ready{node="a",ring="r",reason="Unsupported"}`, strings.Repeat("_ _ 0 0 ", 30)},
		}, 60, times("RingcapNotCapturing", 1)),
		one("a NIC that misses one in ten thousand", []series{
			{`ringcap_interface_missed_packets_total{node="a",interface="eth0"}`, "0+1x100"},
			{`ringcap_interface_received_packets_total{node="a",interface="eth0"}`, "0+9999x100"},
		}, 60),
		one("no memory", []series{
			{`ringcap_queue_dropped_packets_total{node="a",capture_cluster="c",queue="0",reason="nomem"}`, "0+1x100"},
			{`ringcap_queue_delivered_packets_total{node="a",capture_cluster="c",queue="0"}`, "0+100x100"},
		}, 60, times("RingcapPacketsLost", 1)),
		one("a consumer in line that hangs", []series{
			{`ringcap_queue_inline_bypassing{node="a",capture_cluster="c",queue="0",engine="KernelModule"}`, "1+0x100"},
			{`ringcap_queue_inline_blocking{node="a",capture_cluster="c",queue="0",engine="KernelModule"}`, "0+0x100"},
		}, 6, times("RingcapInlineBypassed", 1)),
		one("a queue in line without a consumer", []series{
			{`ringcap_queue_inline_bypassing{node="a",capture_cluster="c",queue="0",engine="KernelModule"}`, "0+0x100"},
			{`ringcap_queue_inline_blocking{node="a",capture_cluster="c",queue="0",engine="KernelModule"}`, "1+0x100"},
			{`ringcap_queue_attached{node="a",capture_cluster="c",queue="0",engine="KernelModule"}`, "0+0x100"},
			{`ringcap_queue_dropped_packets_total{node="a",capture_cluster="c",queue="0",reason="unattended"}`, "0+100x100"},
			{`ringcap_queue_delivered_packets_total{node="a",capture_cluster="c",queue="0"}`, "0+0x100"},
		}, 60, times("RingcapInlineBlocking", 1)),
		one("one lane of four", []series{
			{`ringcap_queue_fullest_lane_ratio{node="a",capture_cluster="c",queue="0",engine="EBPF"}`, "0.9+0x100"},
			{`ringcap_queue_unread_bytes{node="a",capture_cluster="c",queue="0",engine="EBPF"}`, "90+0x100"},
			{`ringcap_queue_capacity_bytes{node="a",capture_cluster="c",queue="0",engine="EBPF"}`, "400+0x100"},
		}, 60, times("RingcapConsumerLagging", 1)),
		one("an agent that is replaced", []series{
			{`ringcap_queue_dropped_packets_total{node="a",capture_cluster="c",queue="0",reason="full",instance="1"}`, "0+100x40"},
			{`ringcap_queue_dropped_packets_total{node="a",capture_cluster="c",queue="0",reason="full",instance="2"}`, "_x41 4100+100x60"},
			{`ringcap_queue_delivered_packets_total{node="a",capture_cluster="c",queue="0",instance="1"}`, "0+100x40"},
			{`ringcap_queue_delivered_packets_total{node="a",capture_cluster="c",queue="0",instance="2"}`, "_x41 4100+100x60"},
		}, 60, times("RingcapPacketsLost", 1)),
	)
}

func find(name string) rules.Alert {
	for _, a := range rules.Alerts {
		if a.Name == name {
			return a
		}
	}
	panic("no alert " + name)
}
