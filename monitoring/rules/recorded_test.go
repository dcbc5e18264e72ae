// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// Samples of testdata/faults.yaml at which each phase of the run shows in the series. The file's head lists when the phases
// began.
const (
	well       = 9
	unattended = 28
	stopped    = 45
	wellAgain  = 65
)

// TestARunWithFaults plays what a real agent exposed while a cluster had no consumer, and then while a consumer was stopped. It
// has no module. The operator is made up: a sensor without Kubernetes has none.
func TestARunWithFaults(t *testing.T) {
	text, err := os.ReadFile("testdata/faults.yaml")
	require.NoError(t, err)
	var recorded []series
	require.NoError(t, yaml.Unmarshal(text, &recorded))
	recorded = append(recorded, series{"ringcap_operator_build_info", "1+0x100"})
	where := func(samples int, alert, labels string) exprTest {
		return exprTest{
			Expr: `count by (node, capture_cluster, queue, reason) (ALERTS{alertstate="firing",alertname="` + alert + `"})`, At: at(samples),
			Samples: []sample{{labels, 1}},
		}
	}
	promtool(t, unitTest{Name: "faults", Interval: interval.String(), Series: recorded, Exprs: []exprTest{
		firing(well),
		firing(unattended, times("RingcapQueueUnattended", 1)),
		where(unattended, "RingcapQueueUnattended", `{node="sensor",capture_cluster="lonely",queue="0",reason="unattended"}`),
		firing(stopped, times("RingcapConsumerLagging", 1), times("RingcapPacketsLost", 1)),
		where(stopped, "RingcapPacketsLost", `{node="sensor",capture_cluster="ids",queue="0"}`),
		firing(wellAgain),
	}})
}
