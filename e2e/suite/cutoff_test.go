// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A ring on the interface with the node's own network: what can cut the node off is refused, and where it is allowed in words, the node
// comes back by itself.

func (c *Case) ownRing(rest string) *unstructured.Unstructured {
	return c.ring("suite-own", "{nodeSelector: {matchLabels: {kubernetes.io/hostname: node-ebpf}}, interfaces: [{name: eth0}], queues: 1, slots: 64, "+
		"engine: EBPF, xdp: GenericAllowed, "+rest+"}")
}

func TestRingOnTheNodesOwnNetwork(t *testing.T) {
	c := start(t)
	ring := c.ownRing("transparentMode: 0")
	c.ringIs("suite-own", "Ready", "True")
	c.ownRing("transparentMode: 2")
	c.ringIs("suite-own", "Ready", `False NodeTrafficRefused .*eth0 has the address .*transparentMode 2 .*spec.nodeTraffic to Allow.*stays as it was`)
	c.ownRing("transparentMode: 0, nic: {vlanOffload: Disable, rxQueues: 1}")
	c.ringIs("suite-own", "Ready", `False NodeTrafficRefused .*spec.nic.vlanOffload Disable, spec.nic.rxQueues would stop its device`)
	c.remove(ring)
	// The module, and a driver that would be replaced.
	c.ring("suite-own", "{nodeSelector: {matchLabels: {ringcap.io/lab: kmod}}, interfaces: [{name: eth0}], queues: 1, slots: 64, nic: {rxRingSize: 256}}")
	c.ringIs("suite-own", "Ready", "False NodeTrafficRefused .*eth0 has the address")
}

func TestNodeCutOffComesBack(t *testing.T) {
	c := start(t)
	// For how long the kubelet was not heard of.
	silence := func() time.Duration {
		return time.Since(get[coordinationv1.Lease](c, "kube-node-lease", ebpf).Spec.RenewTime.Time)
	}
	isHeard := func() { require.Less(c, silence(), 13*time.Second) }
	isCutOff := func() {
		report := c.nodeCapture(ebpf)
		require.Equal(c, report.Generation, report.Status.AppliedGeneration)
		require.Equal(c, "NodeCutOff", ringOf(report, "suite-own").Reason)
	}
	c.until(60, "node-ebpf is heard", isHeard)
	c.ownRing("transparentMode: 2, nodeTraffic: Allow, nic: {vlanOffload: Disable}")
	c.until(90, "node-ebpf is cut off", func() { require.GreaterOrEqual(c, silence(), 20*time.Second) })
	c.until(120, "the node says so", isCutOff)
	c.until(60, "node-ebpf is heard again", isHeard)
	c.ringIs("suite-own", "Ready", `False NodeCutOff .*API server could not be reached for 30s.*until the ring.s spec changes`)
	c.told(60, "default", 1, `NodeCapture/node-ebpf NodeCutOff: .* \(suite-own\)$`)
	// Another agent does not try it again: a node that is cut off is silent for longer than this.
	c.run("kubectl", "-n", system, "delete", "pod", c.podOn(ebpf, system, agents).Name, "--wait")
	c.rolledOut(120, "daemonset", system, "ringcap-agent")
	time.Sleep(30 * time.Second)
	c.until(10, "node-ebpf is heard", isHeard)
	isCutOff()
	// Another spec is another ring.
	c.ownRing("transparentMode: 0")
	c.ringIs("suite-own", "Ready", "True")
}
