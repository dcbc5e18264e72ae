// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/metrics"
	"github.com/ringcap/ringcap/operator/report"
)

func reporting(captures map[string]*v1alpha1.NodeCapture, now time.Time) map[string]bool {
	nodes := make(map[string]bool, len(captures))
	for name, capture := range captures {
		nodes[name] = report.Fresh(capture, now)
	}
	return nodes
}

// counts converts a status for the metrics.
func counts(kind, name string, status *v1alpha1.CaptureStatus) metrics.Object {
	o := metrics.Object{Kind: kind, Name: name, NodesDesired: status.NodesDesired, NodesReady: status.NodesReady}
	if ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady); ready != nil {
		o.Ready, o.Reason = ready.Status == metav1.ConditionTrue, ready.Reason
	}
	return o
}
