// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// written is a ring with what is written in YAML besides the defaults.
func written(t *testing.T, text string) v1.NodeRing {
	t.Helper()
	return ring("mirror", func(s *v1.CaptureRingSpec) {
		if strings.Contains(text, "interfaces:") {
			s.Interfaces = nil
		}
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), s))
		s.Default()
	})
}

func pointer[T any](value T) *T { return &value }

func TestTheWholeFilterIsPlanned(t *testing.T) {
	r := written(t, `
queues: 2
filter:
  bpf: tcp
  vlans: [7, 0, 7]
  defaultAction: Drop
  rules:
  - name: web
    priority: 10
    action: Learn
    idleTimeout: 1m
    match:
      protocol: TCP
      source: 10.1.2.3/8
      destination: 192.0.2.1
      destinationPort: 443
      sourcePort: 1024-65535
      tcpFlagsSet: [SYN]
      tcpFlagsClear: [ACK]
      bidirectional: true
  - action: Queue
    queue: {cluster: ids, queue: 1}
    match: {etherType: 2054, sourceMAC: "02:00:00:00:00:01", vlan: 0, tunnelID: 7, innerSource: 2001:db8::/32}
  - action: Reflect
    reflectTo: eth1
    match: {protocol: 47}
  payload:
  - {name: evil, text: evil, ignoreCase: true, offset: 2, depth: 9}
  - {hex: 0aFF}
  payloadAction: Drop
  plugins: [{name: dns, config: "example.com\n"}]
sampling: {oneIn: 10, by: Flow}
defragment: true
timestamps: Hardware
`)
	got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{r}, Clusters: []v1.NodeCluster{cluster("ids", 2, "mirror")}}, facts())
	require.True(t, got.Rings["mirror"].Ready(), got.Rings["mirror"].Message)
	planned := got.Plans[v1.EngineKernelModule].Rings[0]
	assert.Equal(t, acceptAll, planned.Filter)
	assert.Equal(t, []uint16{0, 7}, planned.VLANs)
	assert.Equal(t, capture.Sampling{OneIn: 10, ByFlow: true}, planned.Sampling)
	assert.True(t, planned.Defragment)
	assert.True(t, planned.HardwareTime)
	assert.Equal(t, []capture.Plugin{{Name: "dns", Config: []byte("example.com\n")}}, planned.Plugins)
	assert.Equal(t, capture.RuleSet{
		Default: capture.ActionDrop,
		Wildcard: []capture.WildcardRule{
			{ID: 1, Name: "web", Priority: 10, Action: capture.ActionLearn, Idle: time.Minute, Both: true, Match: capture.Match{
				Protocol: pointer(uint8(6)), Source: netip.MustParsePrefix("10.0.0.0/8"), Destination: netip.MustParsePrefix("192.0.2.1/32"),
				SourcePorts: &capture.PortRange{First: 1024, Last: 65535}, DestinationPorts: &capture.PortRange{First: 443, Last: 443},
				TCPFlags: &capture.TCPFlags{Flags: 2, Mask: 18},
			}},
			{ID: 2, Action: capture.ActionQueue, Target: capture.Target{Queue: capture.QueueID{Cluster: "ids", Queue: 1}}, Match: capture.Match{
				EtherType: pointer(uint16(2054)), SourceMAC: &[6]byte{2, 0, 0, 0, 0, 1}, VLAN: pointer(uint16(0)),
				TunnelID: pointer(uint32(7)), InnerSource: netip.MustParsePrefix("2001:db8::/32"),
			}},
			{ID: 3, Action: capture.ActionReflect, Target: capture.Target{Interface: "eth1", Index: 3}, Match: capture.Match{Protocol: pointer(uint8(47))}},
		},
		DropMatching: true,
		Patterns: []capture.Pattern{
			{Name: "evil", Bytes: []byte("evil"), IgnoreCase: true, Offset: 2, Depth: 9}, {Bytes: []byte{0x0a, 0xff}},
		},
	}, planned.Rules)
}

// What is wrong with a filter is said with the field and what to write.
func TestUnsoundFilters(t *testing.T) {
	for text, want := range map[string]string{
		`{rules: [{action: Pass, match: {source: 10.0.0}}]}`:                           `spec.filter.rules[0].match.source 10.0.0: must be an address or a prefix`,
		`{rules: [{name: web, action: Pass, match: {destinationPort: 9-1}}]}`:          `spec.filter.rules[0] (web).match.destinationPort 9-1: must be a port`,
		`{rules: [{action: Pass, match: {source: 1.1.1.1, destination: "::1"}}]}`:      `of the same IP version as source`,
		`{rules: [{action: Pass, match: {protocol: XTP}}]}`:                            `match.protocol XTP: must be TCP, UDP`,
		`{rules: [{action: Pass, match: {tcpFlagsSet: [SYN], tcpFlagsClear: [SYN]}}]}`: `a flag that tcpFlagsSet does not have`,
		`{rules: [{action: Queue, queue: {cluster: gone}}]}`:                           `queue.cluster "gone": this node has no Cluster`,
		`{rules: [{action: Queue, queue: {cluster: ids, queue: 2}}]}`:                  `queue.queue 2: ids has the queues 0 to 1`,
		`{rules: [{action: Reflect, reflectTo: eth9}]}`:                                `reflectTo "eth9": this node has no such interface`,
		`{rules: [{action: Explode}]}`:                                                 `action "Explode": must be`,
		`{rules: [{action: Learn, idleTimeout: 1500ms}]}`:                              `idleTimeout 1.5s: must be`,
		`{payload: [{text: a, hex: "00"}]}`:                                            `one of the two`,
		`{payload: [{text: abc, depth: 2}]}`:                                           `never lies in it`,
		`{payload: [{hex: "0"}]}`:                                                      `pairs of hexadecimal digits`,
		`{vlans: [4095]}`:                                                              `spec.filter.vlans[0] 4095`,
		`{plugins: [{name: ""}]}`:                                                      `spec.filter.plugins[0].name`,
		`{defaultAction: Maybe}`:                                                       `defaultAction "Maybe"`,
	} {
		r := written(t, "filter: "+text)
		got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{r}, Clusters: []v1.NodeCluster{cluster("ids", 2, "mirror")}}, facts())
		assert.Equal(t, v1.ReasonInvalidFilter, got.Rings["mirror"].Reason, text)
		assert.Contains(t, got.Rings["mirror"].Message, want, text)
	}
}

// Patterns of one text that differ by case would all be compared with one place of a packet.
func TestTooManyPatternsOfOneText(t *testing.T) {
	r := written(t, "filter: {payload: [{text: x, ignoreCase: true}]}")
	for i := range 65 {
		text := []byte("password")
		for bit := range text {
			text[bit] ^= byte(i>>bit&1) << 5
		}
		r.Spec.Filter.Payload = append(r.Spec.Filter.Payload, v1.PayloadPattern{Name: "first", Text: string(text)})
	}
	got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{r}}, facts()).Rings["mirror"]
	assert.Equal(t, v1.ReasonInvalidFilter, got.Reason)
	assert.Contains(t, got.Message, "spec.filter.payload[1] (first): a packet would have to be compared with more than 64 patterns "+
		"where this one ends: use fewer patterns that are the same text")
	r.Spec.Filter.Payload = r.Spec.Filter.Payload[:65]
	got = Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{r}}, facts()).Rings["mirror"]
	assert.True(t, got.Ready(), got.Message)
}

// A rule names one of the queues that its own ring will have, before there are any.
func TestARuleNamesAQueueOfAnRxQueue(t *testing.T) {
	for queue, planned := range map[int]bool{3: true, 4: false} {
		r := written(t, fmt.Sprintf(`{queues: PerRxQueue, balance: RxQueue, filter: {rules: [{action: Queue, queue: {cluster: mirror, queue: %d}}]}}`, queue))
		got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{r}}, facts())
		assert.Equal(t, planned, got.Rings["mirror"].Ready() && got.Clusters["mirror"].Ready(), got.Rings["mirror"].Message)
	}
}

func TestQueuesOfTheirOwnSettings(t *testing.T) {
	r := written(t, `{queues: PerRxQueue, balance: RxQueue, whenFull: Spread, whenUnattended: Spread, fragments: WithFlow, balanceHeader: Inner, packetHeader: Long}`)
	got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{r}}, facts())
	require.True(t, got.Clusters["mirror"].Ready(), got.Clusters["mirror"].Message)
	c := got.Plans[v1.EngineKernelModule].Clusters[0]
	assert.Equal(t, 4, c.Queues, "eth0 has four RX queues")
	assert.Equal(t, capture.BalanceRxQueue, c.Balance)
	assert.Equal(t, capture.FragmentsWithFlow, c.Fragments)
	assert.Equal(t, []capture.QueuePolicy{capture.PolicySpread, capture.PolicySpread}, []capture.QueuePolicy{c.WhenFull, c.WhenUnattended})
	assert.True(t, c.Inner && c.LongHeader)

	// While the interface is gone there are as many as there were.
	f := facts()
	f.Interfaces = f.Interfaces[:1]
	f.Queues, f.QueueCounts = map[string]v1.Engine{"mirror": v1.EngineKernelModule}, map[string]int{"mirror": 4}
	assert.Equal(t, 4, Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{r}}, f).Plans[v1.EngineKernelModule].Clusters[0].Queues)
}

func TestInterfacesByDriverAndAddress(t *testing.T) {
	f := facts()
	f.Interfaces[1].Driver, f.Interfaces[1].PCIAddress = "igb", "0000:03:00.0"
	f.Interfaces[2].Driver, f.Interfaces[2].PCIAddress = "igb", "0000:03:00.1"
	for text, want := range map[string][]string{
		`{driver: igb}`:                     {"eth0", "eth1"},
		`{driver: "ig*", name: "*1"}`:       {"eth1"},
		`{pciAddress: "0000:03:*.0"}`:       {"eth0"},
		`{name: eth0, rxQueues: "1-2,0,3"}`: {"eth0"},
	} {
		r := written(t, "interfaces: ["+text+"]")
		assert.Equal(t, want, Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{r}}, f).Rings["mirror"].Interfaces, text)
	}
	for text, want := range map[string]string{
		`{driver: ixgbe}`:               `spec.interfaces[0].driver "ixgbe" matches none of this node's interfaces`,
		`{name: eth0, rxQueues: "4"}`:   `eth0 has 4 RX queues, from 0 on`,
		`{name: eth0, rxQueues: "2-1"}`: `spec.interfaces[0].rxQueues: "2-1" is not a number`,
	} {
		r := written(t, "interfaces: ["+text+"]")
		assert.Contains(t, Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{r}}, f).Rings["mirror"].Message, want, text)
	}
	r := written(t, `interfaces: [{name: eth0, rxQueues: "2-3"}, {name: "e*0", rxQueues: "0"}]`)
	assert.Equal(t, []uint16{0, 2, 3}, Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{r}}, f).Plans[v1.EngineKernelModule].Rings[0].Taps[0].RxQueues)
}

// Quick mode is accepted with everything else, by both engines.
func TestQuickMode(t *testing.T) {
	for _, text := range []string{
		`queues: 1, filter: {bpf: tcp}`, `queues: 1, sampling: {oneIn: 2}`, `queues: 2`, `queues: 1, interfaces: [{name: "eth*"}]`,
		`queues: 1, engine: EBPF`,
	} {
		first, second := written(t, "{quickMode: true, "+text+"}"), written(t, "{quickMode: true, "+text+"}")
		first.Name, first.UID, second.Name, second.UID = "first", "1", "second", "2"
		got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{first, second}, Clusters: []v1.NodeCluster{cluster("ids", 2, "first")}}, facts())
		assert.True(t, got.Rings["first"].Planned, got.Rings["first"].Message)
		assert.True(t, got.Rings["second"].Planned, got.Rings["second"].Message)
		assert.True(t, got.Clusters["ids"].Planned, got.Clusters["ids"].Message)
		for _, plan := range got.Plans {
			for _, ring := range plan.Rings {
				assert.True(t, ring.Quick, text)
			}
		}
	}
}

// What an engine does not serve is refused by name, with the engine that does.
func TestWhatNoEngineServesIsRefusedByName(t *testing.T) {
	for text, want := range map[string]string{
		`{engine: EBPF, defragment: true}`:                 "spec.defragment: engine EBPF does not do it: leave it out, or set spec.engine to KernelModule, which does it",
		`{engine: EBPF, filter: {plugins: [{name: dns}]}}`: "spec.filter.plugins",
	} {
		got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{written(t, text)}}, facts()).Rings["mirror"]
		assert.Equal(t, v1.ReasonUnsupported, got.Reason, text)
		assert.Contains(t, got.Message, want, text)
	}
	c := cluster("ids", 1, "mirror")
	c.Spec.Filter = &v1.Filter{BPF: "tcp"}
	got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("mirror")}, Clusters: []v1.NodeCluster{c}}, facts()).Clusters["ids"]
	assert.Equal(t, v1.ReasonUnsupported, got.Reason)
	assert.Contains(t, got.Message, "spec.filter: engine KernelModule does not do it")
	assert.False(t, got.Planned)
}
