// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func expose(t *testing.T, c *Collector) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, answer.Code, answer.Body)
	return answer.Body.String()
}

func TestCollector(t *testing.T) {
	c := NewCollector("1.2")
	assert.Contains(t, expose(t, c), `ringcap_operator_build_info{version="1.2"} 1`)
	c.Set(Fleet{
		Objects:   []Object{{Kind: "CaptureRing", Name: "mirror", Reason: "NodeNotReporting", NodesDesired: 2, NodesReady: 1}},
		Reporting: map[string]bool{"a": true, "b": false},
	})
	text := expose(t, c)
	for _, m := range Catalogue() {
		assert.Contains(t, text, "# TYPE "+m.Name+" "+string(m.Kind))
	}
	for _, line := range []string{
		`ringcap_operator_object_ready{kind="CaptureRing",name="mirror",reason="NodeNotReporting"} 0`,
		`ringcap_operator_object_nodes_desired{kind="CaptureRing",name="mirror"} 2`,
		`ringcap_operator_object_nodes_ready{kind="CaptureRing",name="mirror"} 1`,
		`ringcap_operator_node_reporting{nodecapture="a"} 1`,
		`ringcap_operator_node_reporting{nodecapture="b"} 0`,
	} {
		assert.Contains(t, text, line+"\n")
	}
}
