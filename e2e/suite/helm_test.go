// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// helm test, on both nodes and so with both engines: its pod captures what it sends, and nothing of it stays.
func TestHelmTest(t *testing.T) {
	c := start(t)
	for node, engine := range map[string]string{ebpf: "EBPF", kmod: "KernelModule"} {
		c.upgrade(`test.nodeSelector.kubernetes\.io/hostname=` + node)
		said := c.bash("helm test ringcap --namespace " + system + " --timeout 150s 2>&1")
		c.says(said, "1000 packets were sent and captured by "+engine+" in ringcap-test@0, in order and unchanged; none was lost")
		c.until(60, "helm test removes what it made", func() {
			require.Empty(c, c.run("kubectl", "get", "jobs,pods,serviceaccounts,clusterroles,clusterrolebindings,capturerings", "-A", "-o", "name",
				"-l", "app.kubernetes.io/component in (test,test-capture)"))
		})
	}
}
