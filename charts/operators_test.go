// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/testenv"
)

// The CRDs of other operators' kinds that the chart makes objects of, as their own Go modules ship them.
var foreign = map[string][]string{
	"github.com/prometheus-operator/prometheus-operator@v0.85.0": {
		"example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
	},
	"github.com/grafana/grafana-operator/v5@v5.18.0": {"config/crd/bases/grafana.integreatly.org_grafanadashboards.yaml"},
}

// moduleDir downloads a Go module, unless it is there.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	command.Dir = t.TempDir() // nothing of it becomes a dependency of ours
	out, err := command.Output()
	require.NoError(t, err, "%s", out)
	var downloaded struct{ Dir string }
	require.NoError(t, json.Unmarshal(out, &downloaded))
	return downloaded.Dir
}

// kubectl runs kubectl as an administrator of the API server that has ringcap's CRDs.
func kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	program, err := testenv.Binary("kubectl")
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), program, append(args, "--kubeconfig="+env.Kubeconfig(t))...)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// TestRealAPIServerTakesEverything: with everything switched on, a real API server takes every object, knows each field of it, and
// holds it against its schema, of other operators' kinds too.
func TestRealAPIServerTakesEverything(t *testing.T) {
	admin := env.Client(t)
	for module, files := range foreign {
		for _, file := range files {
			kubectl(t, "", "apply", "--server-side", "-f", filepath.Join(moduleDir(t, module), file))
		}
	}
	kubectl(t, "", "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ringcap-system"}}
	require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), namespace)))
	all := []string{
		"--set=crds.install=false,prometheusRule.enabled=true,dashboards.configMaps.enabled=true,dashboards.grafanaDashboards.enabled=true",
		"--set=networkPolicy.enabled=true,operator.replicas=2,agent.module.build.enabled=true,agent.module.signing.secretName=s",
		"--set=agent.module.upgrade.policy=Evict",
	}
	for monitor, kind := range map[string]string{"podMonitor": "podmonitor", "serviceMonitor": "servicemonitor"} {
		out := kubectl(t, render(t, append(all, "--set="+monitor+".enabled=true,"+monitor+".labels.release=prom")...),
			"apply", "--dry-run=server", "--validate=strict", "-f", "-")
		for _, object := range []string{
			kind + ".monitoring.coreos.com/ringcap-agent", kind + ".monitoring.coreos.com/ringcap-operator", "prometheusrule.monitoring.coreos.com/ringcap",
			"grafanadashboard.grafana.integreatly.org/ringcap-dashboard-fleet", "configmap/ringcap-dashboard-fleet", "capturering.ringcap.io/ringcap-test",
			"daemonset.apps/ringcap-leave-node",
		} {
			require.Contains(t, out, object+" created (server dry run)")
		}
	}
	out, err := helm(t, "template", "ringcap", "ringcap", "--set=podMonitor.enabled=true,serviceMonitor.enabled=true")
	require.Error(t, err)
	require.Contains(t, out, "enable one of them")
}
