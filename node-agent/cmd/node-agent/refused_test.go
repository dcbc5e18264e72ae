// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

const acceptedManifest = `
apiVersion: ringcap.io/v1alpha1
kind: CaptureRing
metadata: {name: mirror}
spec: {engine: ENGINE, interfaces: [{name: mirror0}], snapLength: 1536, filter: {bpf: udp}}
---
apiVersion: ringcap.io/v1alpha1
kind: Cluster
metadata: {name: ids}
spec: {rings: [mirror], queues: 2, balance: Flow, slots: 4096, memoryLimit: 64Mi}
`

// Each change is refused on the machine, and the agent killed while it is. Capture goes on before the next agent is
// there and after it, every packet is accounted for, and a person is told what is wrong with the change.
func TestTheAgentIsKilledWhileAChangeIsRefused(t *testing.T) {
	for _, engine := range []v1.Engine{v1.EngineEBPF, v1.EngineKernelModule} {
		t.Run(string(engine), func(t *testing.T) {
			if _, err := os.Stat("/sys/module/ringcap"); err != nil && engine == v1.EngineKernelModule {
				t.Skip("needs the kernel module: node-agent/tests/kills has it")
			}
			m := newMachine(t)
			accepted := strings.ReplaceAll(acceptedManifest, "ENGINE", string(engine))
			m.manifest("mirror.yaml", accepted)
			agent := m.agent()
			m.eventually("ready", ready)
			consumers := []*process{m.consumer(0), m.consumer(1)}
			for _, change := range []struct{ from, to, reason string }{
				{"memoryLimit: 64Mi", "memoryLimit: 1600Ki", v1.ReasonMemoryLimitExceeded},
				{"slots: 4096", "slots: 65536", v1.ReasonMemoryLimitExceeded},
				{"snapLength: 1536", "snapLength: 60000", v1.ReasonMemoryLimitExceeded},
				{"bpf: udp", "bpf: udp prot", v1.ReasonInvalidFilter},
				{"balance: Flow", "balance: Fair", v1.ReasonUnsupported},
				{"name: mirror0", "name: mirror7", v1.ReasonInterfaceNotFound},
				{"rings: [mirror]", "rings: [nowhere]", v1.ReasonRingNotFound},
				{"queues: 2", "queue: 2", ""}, // is no field: the document is refused
				{"snapLength: 1536", "transparentMode: 1", map[v1.Engine]string{ // the veth has native XDP, and takes VLAN tags off
					v1.EngineEBPF: v1.ReasonUnsupported, v1.EngineKernelModule: v1.ReasonDriverNotAware,
				}[engine]},
			} {
				m.manifest("mirror.yaml", strings.Replace(accepted, change.from, change.to, 1))
				refused := func(s v1.NodeCaptureStatus) bool {
					return len(s.Rings) == 1 && len(s.Clusters) == 1 && len(s.Clusters[0].Queues) == 2 && s.Clusters[0].Queues[1].Attached &&
						(s.Rings[0].Reason == change.reason || s.Clusters[0].Reason == change.reason)
				}
				m.eventually(change.to+" is refused", refused)
				m.send(320)
				require.NoError(t, agent.Process.Kill())
				_ = agent.wait()
				m.send(320)
				agent = m.agent()
				s := m.eventually(change.to+" is refused again", refused)
				assert.NotContains(t, s.Rings[0].Message+s.Clusters[0].Message, "stop its consumers first")
				m.send(320)
				s = m.eventually("all is seen", func(s v1.NodeCaptureStatus) bool { return s.Rings[0].Seen >= int64(m.sent) })
				seen, delivered := account(t, s)
				assert.EqualValues(t, m.sent, seen, change.to)
				assert.EqualValues(t, m.sent, delivered, change.to)
			}
			assert.Contains(t, agent.output(), "until then it stays as it was before the change")
			assert.Contains(t, agent.output(), "until then as before the change: Cluster ids")
			m.manifest("mirror.yaml", accepted)
			m.eventually("ready again", ready)
			var read int64
			for _, consumer := range consumers {
				consumer.interrupt(unix.SIGINT)
				read += consumer.counted()
			}
			assert.EqualValues(t, m.sent, read)
			agent.interrupt(unix.SIGTERM)
			assert.NoDirExists(t, m.path("run"))
		})
	}
}
