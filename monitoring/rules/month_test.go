// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"strings"
	"testing"
)

// Samples of a month, one each two and a half minutes: few enough for a test, and two in what rates look back on.
const (
	monthStep = "150s"
	day       = 24 * 60 * 60 / 150
	days      = 30
)

// daily repeats what a day begins with, and goes on with the rest value until it ends.
func daily(begins, rest string) string {
	left := day - len(strings.Fields(begins))
	if rest == "_" { // no samples
		return strings.Repeat(fmt.Sprintf("%s _x%d ", begins, left), days)
	}
	return strings.Repeat(fmt.Sprintf("%s %s+0x%d ", begins, rest, left-1), days)
}

// TestAMonthOfANormalFleet: in which no alert fires. Each day a consumer is replaced, an agent is, and a node restarts; one node has no
// module for its kernel, one has none of the interfaces, and NICs miss a packet now and then.
func TestAMonthOfANormalFleet(t *testing.T) {
	end := day * days
	counts := func(each int) string { return fmt.Sprintf("0+%dx%d", each, end) }
	still := func(value int) string { return fmt.Sprintf("%d+0x%d", value, end) }
	made := []series{
		{`ringcap_operator_build_info{version="1"}`, still(1)},
		{`ringcap_operator_object_ready{kind="CaptureRing",name="mirror",reason=""}`, still(1)},
		{`ringcap_operator_object_ready{kind="Cluster",name="ids",reason=""}`, daily("_ _", "1")},
		{`ringcap_operator_object_ready{kind="Cluster",name="ids",reason="NodeNotReporting"}`, daily("0 0", "_")},
		{`ringcap_operator_node_reporting{nodecapture="ebpf"}`, daily("1 0", "1")},
		// No module for its kernel, and eBPF in its place.
		{`ringcap_module_ready{node="ebpf",reason="NoPrebuiltModule"}`, still(0)},
		{`ringcap_ring_fallback{node="ebpf",ring="mirror"}`, still(1)},
		// None of the interfaces.
		{`ringcap_ring_ready{node="bare",ring="mirror",engine="EBPF",reason="InterfaceAbsent"}`, still(1)},
		{`ringcap_cluster_ready{node="bare",capture_cluster="ids",engine="",reason="InterfaceAbsent"}`, still(1)},
	}
	for _, node := range []string{"ebpf", "kmod"} {
		made = append(made,
			series{fmt.Sprintf(`ringcap_build_info{node=%q}`, node), daily("_ _", "1")},
			series{fmt.Sprintf(`ringcap_ring_ready{node=%q,ring="mirror",engine="E",reason=""}`, node), daily("_ 1", "1")},
			series{fmt.Sprintf(`ringcap_ring_ready{node=%q,ring="mirror",engine="E",reason="Pending"}`, node), daily("0 _", "_")},
			series{fmt.Sprintf(`ringcap_resource_registered{node=%q,resource="ringcap.io/ids"}`, node), daily("0", "1")},
			series{fmt.Sprintf(`ringcap_reconcile_errors_total{node=%q}`, node), fmt.Sprintf("0+0x%d 1+0x%d", day, end-day)},
			series{fmt.Sprintf(`ringcap_interface_received_packets_total{node=%q,interface="mirror0"}`, node), counts(1000000)},
			series{fmt.Sprintf(`ringcap_interface_missed_packets_total{node=%q,interface="mirror0"}`, node), counts(1)},
			series{fmt.Sprintf(`ringcap_queue_delivered_packets_total{node=%q,capture_cluster="ids",queue="0"}`, node), counts(1000000)},
			series{fmt.Sprintf(`ringcap_queue_dropped_packets_total{node=%q,capture_cluster="ids",queue="0",reason="full"}`, node), counts(10)},
			// While the consumer is replaced, for less than one sample.
			series{fmt.Sprintf(`ringcap_queue_dropped_packets_total{node=%q,capture_cluster="ids",queue="0",reason="unattended"}`, node), steps(100000)},
			series{fmt.Sprintf(`ringcap_queue_attached{node=%q,capture_cluster="ids",queue="0"}`, node), daily("0", "1")},
			series{fmt.Sprintf(`ringcap_queue_fullest_lane_ratio{node=%q,capture_cluster="ids",queue="0"}`, node), daily("0.9", "0.1")},
		)
	}
	promtoolEvery(t, monthStep, unitTest{Name: "a month", Interval: monthStep, Series: made, Exprs: []exprTest{
		{Expr: `sum by (alertname) (count_over_time(ALERTS{alertstate="firing"}[30d]))`, At: "720h"},
		// What is played is not nothing.
		{Expr: `count(count_over_time(ALERTS{alertstate="pending"}[30d])) > bool 0`, At: "720h", Samples: []sample{{`{}`, 1}}},
	}})
}

// steps is a counter that grows by so many at the beginning of each day.
func steps(by int) string {
	var all strings.Builder
	for d := range days {
		fmt.Fprintf(&all, "%d+0x%d ", d*by, day-1)
	}
	return all.String()
}
