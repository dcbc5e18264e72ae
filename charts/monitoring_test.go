// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/ringcap/ringcap/monitoring/dashboards"
	"github.com/ringcap/ringcap/monitoring/rules"
)

// TestMonitoring: rules and dashboards are shipped as they were generated, and what is in braces stays Prometheus' and Grafana's.
func TestMonitoring(t *testing.T) {
	objects := documents(t, render(t, "--set=crds.install=false,prometheusRule.enabled=true,prometheusRule.labels.release=prom",
		"--set=prometheusRule.runbookURL=https://wiki.example/ringcap/,dashboards.configMaps.enabled=true,dashboards.grafanaDashboards.enabled=true"))
	rule := objects["PrometheusRule/ringcap"]
	require.NotNil(t, rule)
	require.Equal(t, "prom", rule.GetLabels()["release"])
	var file map[string]any
	text, err := os.ReadFile("ringcap/files/rules.yaml")
	require.NoError(t, err)
	moved := bytes.ReplaceAll(text, []byte(rules.Runbooks), []byte("https://wiki.example/ringcap"))
	require.NotEqual(t, text, moved)
	require.NoError(t, sigsyaml.Unmarshal(moved, &file))
	require.Equal(t, file, rule.Object["spec"])
	require.Len(t, dashboards.All, 4)
	for _, d := range dashboards.All {
		want, err := d.JSON()
		require.NoError(t, err)
		name := "ringcap-dashboard-" + d.Name
		shipped := objects["ConfigMap/"+name]
		require.NotNil(t, shipped, name)
		require.Equal(t, "1", shipped.GetLabels()["grafana_dashboard"])
		got, _, err := unstructured.NestedString(shipped.Object, "data", name+".json")
		require.NoError(t, err)
		require.Equal(t, string(want), got)
		require.NotNil(t, objects["GrafanaDashboard/"+name])
		got, _, err = unstructured.NestedString(objects["GrafanaDashboard/"+name].Object, "spec", "json")
		require.NoError(t, err)
		require.Equal(t, string(want), got)
	}
}

// documents decodes manifests of any kind, by KIND/NAME.
func documents(t *testing.T, manifests string) map[string]*unstructured.Unstructured {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(manifests), 4096)
	objects := map[string]*unstructured.Unstructured{}
	for {
		var object unstructured.Unstructured
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		if len(object.Object) > 0 {
			objects[object.GetKind()+"/"+object.GetName()] = &object
		}
	}
}
