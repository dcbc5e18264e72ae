// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/e2e/demo/account"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// What may happen while packets flow. Each case replays the suite's capture to both nodes, disturbs, and has every packet accounted for.

// agentRestarts is how often each node's agent was restarted.
func (c *Case) agentRestarts() map[string]int {
	restarts := map[string]int{}
	for _, node := range nodes {
		for _, container := range c.podOn(node, system, agents).Status.ContainerStatuses {
			restarts[node] += int(container.RestartCount)
		}
	}
	return restarts
}

func TestAgentKilledUnderTraffic(t *testing.T) {
	c := start(t)
	before := c.agentRestarts()
	c.replay("killed").disturbed(under{at: 30000, disturb: func() {
		c.onAll("kill -9 $(pidof node-agent)")
		for _, node := range nodes {
			c.until(120, node+"'s agent is restarted", func() { require.Greater(c, c.agentRestarts()[node], before[node]) })
		}
		c.ready(180)
	}}, lossless)
}

func TestKubeletRestartedUnderTraffic(t *testing.T) {
	c := start(t)
	c.replay("kubelets").disturbed(under{at: 30000, disturb: func() {
		before := map[string]string{}
		for _, node := range nodes {
			before[node] = c.on(node, "pidof kubelet")
			c.on(node, "kill -9 $(cat /run/node/kubelet.pid)")
		}
		for _, node := range nodes {
			c.until(120, node+" has another kubelet", func() { require.NotEqual(c, before[node], c.on(node, "pidof kubelet")) })
			c.until(120, node+" offers its queues again", func() { require.Equal(c, "2", c.offered(node, "ringcap.io/ids")) })
		}
		c.ready(180)
	}}, lossless)
}

// A consumer that is killed in mid-read and started again by the kubelet: what was delivered to it and not yet read is there for the
// next. It may get again what the first had read and not given back, never less. Each start writes a file of its own.
func TestConsumerKilledAndRestarted(t *testing.T) {
	c := start(t)
	c.readyCluster("suite-restart", "{rings: [mirror], queues: 1, slots: 16384}")
	c.onEach("restarting", consumer("ringcap.local/tcpdump:demo",
		"[sh, -c, 'n=$(ls /captures | wc -l); exec tcpdump -i rc-suite-restart -n -U -w /captures/$n.pcap']", "suite-restart"))
	c.attached(60, "suite-restart", []bool{true}, nodes...)
	r := c.replay("restarted")
	r.disturbed(under{at: 30000, disturb: func() {
		c.onAll("for p in $(pidof tcpdump); do ! grep -q rc-suite-restart /proc/$p/cmdline || kill -9 $p; done")
		c.until(120, "both consumers are restarted", func() {
			for _, pod := range c.podsOf(pods, "app=restarting") {
				require.Positive(c, pod.Status.ContainerStatuses[0].RestartCount, pod.Name)
			}
		})
		c.attached(60, "suite-restart", []bool{true}, nodes...)
	}}, lossless)
	for _, pod := range c.podsOf(pods, "app=restarting") {
		r.wrote(&pod, "*.pcap")
	}
	r.Cluster = "suite-restart"
	r.check(account.Options{Again: true})
}

// Consumers that do not read lose packets, and each is named.
func TestConsumersTooSlow(t *testing.T) {
	c := start(t)
	r := c.replay("slow")
	r.input, r.rate = c.file("long.pcap"), 15000
	c.makeTrace(r.input, 400_000)
	resume := func() { c.onAll("kill -CONT $(pidof tcpdump)") }
	c.Cleanup(resume)
	summary := r.disturbed(under{disturb: func() { c.onAll("kill -STOP $(pidof tcpdump)") }, undo: resume}, account.Options{})
	for _, node := range summary.Nodes {
		var full uint64
		for _, queue := range node.Queues {
			full += queue.Dropped["full"]
		}
		require.NotZero(t, full, "%s: no packet was dropped as full: the consumers were fast enough after all", node.Name)
	}
}

// An edit that only the nodes refuse, under traffic, while the agents are replaced by those of an upgrade: with both engines what was
// accepted goes on, before and after. Both get it: by default the rollout would stop at the first.
func TestAgentsUpgradedWhileAnEditIsRefused(t *testing.T) {
	c := start(t)
	edit := func(op string) {
		c.run("kubectl", "patch", "capturering", "mirror", "--type=json", "--patch", fmt.Sprintf(
			`[{"op": %[1]q, "path": "/spec/interfaces/0/rxQueues", "value": "1000"},
			  {"op": %[1]q, "path": "/spec/rollout", "value": {"maxUnavailable": "100%%"}}]`, op))
	}
	refused := func(seconds int) {
		for _, node := range nodes {
			c.until(seconds, node+" refuses the edit", func() {
				ring := ringOf(c.nodeCapture(node), "mirror")
				require.Equal(c, "Unsupported", ring.Reason)
				require.Regexp(c, "rxQueues 1000: .*until then it stays as it was", ring.Message)
			})
		}
	}
	c.Cleanup(func() {
		if get[v1alpha1.CaptureRing](c, "", "mirror").Spec.Rollout != nil {
			edit("remove")
		}
	})
	edit("add")
	refused(60)
	c.replay("upgraded").disturbed(under{at: 30000, disturb: func() {
		c.upgrade("agent.logLevel=debug")
		refused(120)
	}}, lossless)
	refused(10)
	edit("remove")
	c.upgrade("agent.logLevel=info")
	c.ready(180)
}
