// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/cli/fleet"
)

// What a person may ask for that cannot be: each is refused with a condition, or at once by the API server, that names the field and
// the cause, and nothing else suffers.

// refuses makes an object that cannot be, and waits for conditions of it, each a type and what it says.
func (c *Case) refuses(kind, name, spec string, conditions ...string) {
	c.apply(manifest(kind, name, spec))
	for i := 0; i < len(conditions); i += 2 {
		c.condition(kind, name, conditions[i], conditions[i+1])
	}
	c.ringIs("mirror", "Ready", "True")
}

func TestUnknownInterface(t *testing.T) {
	together(t).refuses("CaptureRing", "suite-nowhere7", "{interfaces: [{name: nowhere7}], queues: 1}",
		"Ready", "False InterfaceNotFound .*nowhere7")
}

func TestFilterThatDoesNotCompile(t *testing.T) {
	together(t).refuses("CaptureRing", "suite-filter", "{interfaces: [{name: mirror0}], queues: 1, filter: {bpf: tcp prot 80}}",
		"Accepted", "False InvalidFilter .*(syntax|filter)", "Ready", "False")
}

func TestRingLargerThanItsMemoryLimit(t *testing.T) {
	together(t).refuses("CaptureRing", "suite-large", "{interfaces: [{name: mirror0}], queues: 2, slots: 1048576, snapLength: 2048, memoryLimit: 64Mi}",
		"Ready", "False MemoryLimitExceeded .*memoryLimit")
}

// It took a node down: half a gigabyte a queue and lane, on a machine of less than three. What runs there goes on.
func TestRingLargerThanItsNode(t *testing.T) {
	together(t).refuses("CaptureRing", "suite-huge",
		"{nodeSelector: {matchLabels: {ringcap.io/lab: kmod}}, interfaces: [{name: mirror0}], queues: 4, slots: 262144, memoryLimit: 64Gi}",
		"Ready", `False NodeMemoryInsufficient .*4 queues of 512Mi.* need .* MiB.*--memory-reserve.*spec.slots`)
}

func TestClusterOverAMissingRing(t *testing.T) {
	together(t).refuses("Cluster", "suite-orphan", "{rings: [not-there], queues: 1}",
		"Accepted", "False RingNotFound .*not-there")
}

func TestQueuesOutOfRange(t *testing.T) {
	c := together(t)
	c.rejected(manifest("CaptureRing", "suite-zero", "{interfaces: [{name: mirror0}], queues: 0}"), "queues.*must be 1 to 256")
	c.rejected(manifest("CaptureRing", "suite-many", "{interfaces: [{name: mirror0}], queues: 100000}"), "queues.*must be 1 to 256")
	c.rejected(manifest("Cluster", "suite-many", "{rings: [mirror], queues: 100000}"), "queues.*less than or equal to 256")
}

// An edit that a node refuses stops at it: node-ebpf comes first by name, and has no such queue. The other keeps what it had, and
// goes on when the edit is corrected.
func TestEditStopsAtTheNodeThatRefusesIt(t *testing.T) {
	c := together(t)
	edit := func(of string, snapLength int) {
		c.ring("suite-edit", fmt.Sprintf("{interfaces: [{name: mirror0%s}], queues: 1, slots: 64, snapLength: %d}", of, snapLength))
	}
	// The snapLength on each node, as the operator has given it to them.
	given := func() (lengths []int32) {
		for _, node := range nodes {
			for _, ring := range c.nodeCapture(node).Spec.Rings {
				if ring.Name == "suite-edit" {
					lengths = append(lengths, ring.Spec.SnapLength)
				}
			}
		}
		return lengths
	}
	edit("", 1000)
	c.ringIs("suite-edit", "RolledOut", "True RolledOut given to 2 nodes")
	c.ringIs("suite-edit", "Ready", "True")
	edit(", rxQueues: '1000'", 1001)
	c.ringIs("suite-edit", "RolledOut",
		`False RolloutPaused given to 1 of 2 nodes; paused.*node-ebpf \(Unsupported\): .*rxQueues 1000.*spec.rollout.maxUnavailable`)
	c.ringIs("suite-edit", "Ready", "False Unsupported")
	require.Equal(t, []int32{1001, 1000}, given())
	edit("", 1002)
	c.ringIs("suite-edit", "Ready", "True")
	require.Equal(t, []int32{1002, 1002}, given())
	c.rejected(manifest("CaptureRing", "suite-edit", "{interfaces: [{name: mirror0}], rollout: {maxUnavailable: 0}}"), "maxUnavailable.*1 or more")
}

func TestRingAndClusterOfOneName(t *testing.T) {
	c := together(t)
	c.readyRing("suite-twin", "{interfaces: [{name: mirror0}], queues: 1, slots: 64}")
	c.cluster("suite-twin", "{rings: [mirror], queues: 1, slots: 64}")
	c.clusterIs("suite-twin", "Accepted", "False NameConflict .*suite-twin")
	c.ringIs("suite-twin", "Ready", "True")
}

func TestDeletionCleansTheNodes(t *testing.T) {
	const name = "suite-brief"
	c := together(t)
	// left is what a node has of the ring: device nodes, sockets, pins.
	left := func(node string) string {
		return c.on(node, `for top in /dev/ringcap /run/ringcap /sys/fs/bpf; do
			[ ! -d $top ] || find $top -name "*`+name+`*" || exit
		done`)
	}
	ring := c.readyRing(name, "{interfaces: [{name: mirror0}], queues: 1, slots: 64}")
	// known: the kubelet has the name as a resource, or the agent in its report.
	known := func(node string) bool {
		offered, report := c.offered(node, "ringcap.io/"+name), c.nodeCapture(node)
		return offered != "" && offered != "0" || fleet.RingOn(report, name) != nil || fleet.QueuesOn(report, name) != nil
	}
	for _, node := range nodes {
		c.until(60, node+" has the ring", func() { require.True(c, known(node)) })
		require.NotEmpty(t, left(node), node)
	}
	c.remove(ring)
	for _, node := range nodes {
		c.until(60, node+" has cleaned up", func() { require.False(c, known(node)) })
		require.Empty(t, left(node), node)
	}
}
