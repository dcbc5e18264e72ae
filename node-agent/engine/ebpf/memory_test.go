// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// limitedCgroup makes a cgroup with a memory limit and returns the file to join it by.
func (l *lab) limitedCgroup(limit int) string {
	l.t.Helper()
	for _, controller := range []struct {
		root  string
		magic int64
		file  string
	}{
		{"/sys/fs/cgroup/memory", unix.CGROUP_SUPER_MAGIC, "memory.limit_in_bytes"},
		{"/sys/fs/cgroup", unix.CGROUP2_SUPER_MAGIC, "memory.max"},
	} {
		var fs unix.Statfs_t
		if unix.Statfs(controller.root, &fs) != nil || fs.Type != controller.magic {
			continue
		}
		folder := filepath.Join(controller.root, filepath.Base(filepath.Dir(l.runDir)))
		require.NoError(l.t, os.Mkdir(folder, 0o755))
		l.t.Cleanup(func() { _ = os.Remove(folder) })
		if os.WriteFile(filepath.Join(folder, controller.file), []byte(fmt.Sprint(limit)), 0) == nil {
			return filepath.Join(folder, "cgroup.procs")
		}
	}
	l.t.Skip("there is no memory controller in which this test could make a cgroup")
	return ""
}

func TestQueuesBeyondTheMemoryLimit(t *testing.T) {
	l := newLab(t)
	cgroup := l.limitedCgroup(112 << 20)
	plan := l.plan(1)
	tooLarge := plan.Clusters[0]
	tooLarge.Name, tooLarge.Queues, tooLarge.Lanes, tooLarge.QueueBytes = "large", 3, 1, 64<<20
	plan.Clusters = append(plan.Clusters, tooLarge)
	_, out := l.helper("engine", engineInput{PinDir: l.pinDir, RunDir: l.runDir, Plan: plan, Cgroup: cgroup}, 0)
	answer := l.line(out)
	require.Contains(t, answer, "cluster large: queue 1 of 3 with 1 lanes of 67108864 bytes each")
	require.Contains(t, answer, "memory limit of the agent's container")

	// What could be made exists, and nothing is left of the rest.
	e := l.engine()
	observed := l.observe(e)
	require.Contains(t, observed.Clusters, "mirror")
	require.NotContains(t, observed.Clusters, "large")
	require.Equal(t, []capture.Tap{l.tap(capture.Receive)}, observed.Rings["mirror"].Taps)
	l.apply(e, l.plan(1))
}

// Rules are compiled only if the agent has the memory for their matches. Matches that several rules have take it once.
func TestRulesBeyondTheMemoryLimit(t *testing.T) {
	l := newLab(t)
	cgroup := l.limitedCgroup(80 << 20)
	answerTo := func(plan capture.Plan) string {
		engine, out := l.helper("engine", engineInput{PinDir: l.pinDir, RunDir: l.runDir, Plan: plan, Cgroup: cgroup}, 0)
		answer := l.line(out)
		_ = engine.Process.Kill()
		_ = engine.Wait()
		return answer
	}
	plan, any := l.plan(1), capture.PortRange{First: 1, Last: 65534} // 30 prefixes
	for id := range uint16(240) {
		plan.Rings[0].Rules.Wildcard = append(plan.Rings[0].Rules.Wildcard, capture.WildcardRule{
			ID: uint32(id) + 1, Both: true, Match: capture.Match{VLAN: &id, SourcePorts: &any, DestinationPorts: &any},
		})
	}
	answer := answerTo(plan)
	require.Regexp(t, "ring mirror: [0-9]+ matches of wildcard rules, or more: no memory", answer)
	require.Contains(t, answer, "memory limit of the agent's container")
	for i := range plan.Rings[0].Rules.Wildcard {
		plan.Rings[0].Rules.Wildcard[i].Match.VLAN = nil
	}
	require.Contains(t, answerTo(plan), "225 mask shapes", "which is found at the end")
	plan.Rings[0].Rules = learning()
	l.apply(l.engine(), plan)
}

// Each queue is made only while the node has the memory for it. Existing queues continue, and can still get a new
// ring buffer.
func TestQueuesBeyondTheNodesMemory(t *testing.T) {
	l := newLab(t)
	node := capture.Memory{Total: 1 << 30, Available: 512 << 20, Reserve: 256 << 20, AgentRoom: math.MaxUint64}
	e := l.engine(func(o *Options) {
		o.Memory = func() (capture.Memory, error) {
			node.Available -= 100 << 20 // other processes take it
			return node, nil
		}
	})
	l.apply(e, l.plan(1))
	plan := l.plan(1)
	large := plan.Clusters[0]
	large.Name, large.Queues, large.Lanes, large.QueueBytes = "large", 3, 1, 32<<20
	plan.Clusters = append(plan.Clusters, large)
	failed, err := e.Apply(t.Context(), plan, capture.Observation{})
	require.NoError(t, err)
	require.ErrorIs(t, failed["large"], capture.ErrNoMemory)
	require.ErrorContains(t, failed["large"], "queue 1 of 3 with 1 lanes of 33554432 bytes each: no memory: 33887010 bytes are needed, and the node has less at the moment")

	observed := l.observe(e)
	require.NotContains(t, observed.Clusters, "large")
	require.Contains(t, observed.Clusters, "mirror")
	_, err = e.TakeBack(t.Context(), capture.QueueID{Cluster: "mirror"}, capture.Holder{})
	require.NoError(t, err)
}
