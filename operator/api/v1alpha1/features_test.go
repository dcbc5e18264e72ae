// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

const full = `
apiVersion: ringcap.io/v1alpha1
kind: CaptureRing
metadata: {name: full}
spec:
  interfaces:
  - {name: "eth*", driver: igb, pciAddress: "0000:03:00.?", rxQueues: "0-3,8"}
  - {resourceName: intel.com/sriov_capture, network: {namespaces: [sensors]}, pool: {vendors: ["8086"], devices: [10ca], drivers: [igbvf], pfNames: ["ens1f0#0,2-7"], pciAddresses: ["0000:03:10.0"]}}
  - {podSelector: {matchLabels: {app: web}}, namespaceSelector: {}}
  - {name: "ens*", whenMissing: Report}
  transparentMode: 2
  transparentFallback: Stack
  quickMode: true
  xdp: GenericAllowed
  nodeTraffic: Allow
  queues: PerRxQueue
  rollout: {maxUnavailable: "10%"}
  balance: RxQueue
  balanceHeader: Inner
  fragments: WithFlow
  whenFull: Spread
  whenUnattended: Spread
  packetHeader: Long
  sampling: {oneIn: 100, by: Flow}
  defragment: true
  timestamps: Hardware
  consumers: {injectLibpcap: true, namespaces: [sensors, "*"], namespaceSelector: {matchLabels: {team: ids}}, shunt: 1048576}
  filter:
    bpf: ip
    vlans: [0, 4094]
    defaultAction: Drop
    rules:
    - {name: web, priority: 1, action: Learn, idleTimeout: 1h, match: {protocol: TCP, source: 10.0.0.0/8, destinationPort: 80-443, bidirectional: true}}
    - {action: Queue, queue: {cluster: ids, queue: 3}, match: {source: "2001:db8::/32", protocol: 47, tunnelID: 4294967295}}
    - {action: Reflect, reflectTo: eth9, match: {tcpFlagsSet: [SYN], tcpFlagsClear: [ACK]}}
    payload: [{text: evil, ignoreCase: true, offset: 1, depth: 9}, {hex: 0aff}]
    payloadAction: Drop
    plugins: [{name: dns, config: example.com}]
  nic:
    vlanOffload: Disable
    rxRingSize: 4096
    rxQueues: 8
    rss: {hash: Symmetric, fields: AddressesAndPorts, queues: 4}
    threadedPolling: {mode: Enable, cpus: "2-3,6"}
    driver: {policy: Replace, nodeTraffic: Allow, linkTimeout: 30s}
`

// fullInline has what excludes spec.interfaces.
const fullInline = `
apiVersion: ringcap.io/v1alpha1
kind: CaptureRing
metadata: {name: full-inline}
spec:
  queues: 4
  inline:
    pairs: [{interfaces: [eth1, eth2]}, {interfaces: [eth3, eth4.5], whenMissing: Report}]
    whenUnattended: Block
    whenFull: Bypass
    whenHung: Block
    hungAfter: 1s
`

// TestEveryFieldIsAccepted: objects with all of it, which come back as the Go types have it.
func TestEveryFieldIsAccepted(t *testing.T) {
	c := env.Client(t)
	for _, manifest := range []string{full, fullInline, inLine} {
		u, err := create(t, c, manifest)
		require.NoError(t, err)
		var served, local v1alpha1.CaptureRing
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(u), &served))
		require.NoError(t, yaml.UnmarshalStrict([]byte(manifest), &local))
		local.Spec.Default()
		requireSameYAML(t, local.Spec, served.Spec)
	}
}

const inLine = `
apiVersion: ringcap.io/v1alpha1
kind: CaptureRing
metadata: {name: in-line}
spec:
  queues: 2
  inline: {pairs: [{interfaces: [eth1, eth2]}]}
`

// TestWhatARingInLineCannot: each is refused with the field and what to write instead.
func TestWhatARingInLineCannot(t *testing.T) {
	pairs := func(list string) string {
		return strings.Replace(inLine, "[{interfaces: [eth1, eth2]}]", "["+list+"]", 1)
	}
	with := func(field string) string { return inLine + "  " + field }
	also := func(field string) string { return strings.Replace(inLine, "eth2]}]", "eth2]}], "+field, 1) }
	c := env.Client(t)
	for name, tc := range map[string]struct{ manifest, field, message string }{
		"neither of the two":       {strings.Replace(ring, "interfaces: [{name: mirror0}]", "queues: 1", 1), "spec", "give spec.interfaces, or spec.inline"},
		"both":                     {with("interfaces: [{name: eth0}]"), "spec", "one of the two"},
		"no pair":                  {pairs(""), "spec.inline.pairs", "at least 1"},
		"a pair of one":            {pairs("{interfaces: [eth1]}"), "spec.inline.pairs[0].interfaces", "at least 2"},
		"a pair of three":          {pairs("{interfaces: [eth1, eth2, eth3]}"), "spec.inline.pairs[0].interfaces", "at most 2"},
		"an interface with itself": {pairs("{interfaces: [eth1, eth1]}"), "spec.inline.pairs[0]", "two different interfaces"},
		"an interface in two":      {pairs("{interfaces: [eth1, eth2]}, {interfaces: [eth3, eth2]}"), "spec.inline", "give each interface one"},
		"a glob":                   {pairs("{interfaces: [eth1, 'eth*']}"), "spec.inline.pairs[0].interfaces[1]", "should match"},
		"a pair that may be gone":  {pairs("{interfaces: [eth1, eth2], whenMissing: Never}"), "spec.inline.pairs[0].whenMissing", `"Ignore", "Report"`},
		"no queues":                {strings.Replace(inLine, "  queues: 2\n", "", 1), "spec", "set spec.queues to their number"},
		"a queue each RX queue":    {strings.Replace(with("balance: RxQueue"), "queues: 2", "queues: PerRxQueue", 1), "spec", "set spec.queues to their number"},
		"both directions":          {with("direction: Both"), "spec", "leave spec.direction out"},
		"before the stack":         {with("transparentMode: 1"), "spec", "leave spec.transparentMode out"},
		"not to the stack":         {with("transparentMode: RingOnly"), "spec", "leave spec.transparentMode out"},
		"a sample":                 {with("sampling: {oneIn: 2}"), "spec", "leave spec.sampling out"},
		"whole datagrams":          {with("defragment: true"), "spec", "leave spec.defragment out"},
		"in turn":                  {with("balance: RoundRobin"), "spec", "a flow stays in its queue"},
		"twice":                    {with("balance: BothEnds"), "spec", "a flow stays in its queue"},
		"a stand-in when full":     {with("whenFull: Spread"), "spec", "set spec.inline.whenFull"},
		"a stand-in":               {with("whenUnattended: Spread"), "spec", "set spec.inline.whenFull"},
		"a queue too great":        {with("slots: 4097"), "spec", "set spec.slots to 4096 or less"},
		"not promiscuous":          {with("nic: {promiscuous: false}"), "spec", "leave spec.nic.promiscuous out"},
		"a policy of others":       {also("whenFull: Drop"), "spec.inline.whenFull", `"Bypass", "Block"`},
		"no patience":              {also("hungAfter: 0s"), "spec.inline.hungAfter", "between 1ms and 1m"},
		"too much patience":        {also("hungAfter: 61s"), "spec.inline.hungAfter", "between 1ms and 1m"},
		"patience without unit":    {also("hungAfter: 250"), "spec.inline.hungAfter", "such as 250ms"},
	} {
		t.Run(name, func(t *testing.T) {
			requireRefused(t, c, tc.manifest, tc.field, tc.message)
		})
	}
}

// TestARingStaysInLine: an edit cannot make it one, because its queues are made for it.
func TestARingStaysInLine(t *testing.T) {
	c := env.Client(t)
	u, err := create(t, c, inLine)
	require.NoError(t, err)
	delete(u.Object["spec"].(map[string]any), "inline")
	u.Object["spec"].(map[string]any)["interfaces"] = []any{map[string]any{"name": "eth1"}}
	require.ErrorContains(t, c.Update(t.Context(), u), "delete it, and create it with spec.inline")
}

// TestWhatContradictsItself: each is refused with the field and what to write instead.
func TestWhatContradictsItself(t *testing.T) {
	base := strings.Replace(ring, "NAME", "r", 1)
	selectors := func(list string) string { return strings.Replace(base, "[{name: mirror0}]", "["+list+"]", 1) }
	rule := func(text string) string { return base + "  filter: {rules: [{" + text + "}]}" }
	match := func(text string) string { return rule("action: Pass, match: {" + text + "}") }
	c := env.Client(t)
	for name, tc := range map[string]struct{ manifest, field, message string }{
		"a selector of nothing":          {selectors(`{rxQueues: "1"}`), "spec.interfaces[0]", "give name, driver, pciAddress, resourceName or podSelector"},
		"a namespace without pods":       {selectors(`{name: a, namespaceSelector: {}}`), "spec.interfaces[0]", "give podSelector too"},
		"pods of a driver":               {selectors(`{driver: igb, podSelector: {}}`), "spec.interfaces[0]", "leave driver, pciAddress and resourceName out"},
		"RX queues in words":             {selectors(`{name: a, rxQueues: all}`), "spec.interfaces[0].rxQueues", "such as 0-3,8"},
		"PCI address in capitals":        {selectors(`{pciAddress: "0000:0A:00.0"}`), "spec.interfaces[0].pciAddress", "lspci -D"},
		"a resource without prefix":      {selectors(`{resourceName: vf}`), "spec.interfaces[0].resourceName", "intel.com/sriov_capture"},
		"a network of no pool":           {selectors(`{name: a, network: {namespaces: [sensors]}}`), "spec.interfaces[0]", "give resourceName too"},
		"a network for nobody":           {selectors(`{resourceName: a/b, network: {namespaces: []}}`), "spec.interfaces[0].network.namespaces", "at least 1"},
		"a pool without a name":          {selectors(`{name: a, pool: {drivers: [igbvf]}}`), "spec.interfaces[0]", "give resourceName"},
		"a pool's name with a hyphen":    {selectors(`{resourceName: intel.com/sriov-capture, pool: {drivers: [igbvf]}}`), "spec.interfaces[0]", "letters, digits and _"},
		"a pool of everything":           {selectors(`{resourceName: a/b, pool: {}}`), "spec.interfaces[0].pool", "at least 1"},
		"a vendor by name":               {selectors(`{resourceName: a/b, pool: {vendors: [INTC]}}`), "spec.interfaces[0].pool.vendors[0]", "0-9a-f"},
		"two networks of one name":       {selectors(`{resourceName: a/b, network: {namespaces: [sensors]}}, {resourceName: a/c, network: {namespaces: [others]}}`), "spec", "a ring of their own"},
		"a queue each, balanced by flow": {base + "  queues: PerRxQueue", "spec", "set spec.balance to RxQueue"},
		"a rollout to nobody":            {base + "  rollout: {maxUnavailable: 0}", "spec.rollout.maxUnavailable", "1% to 100% of them, such as 25%: of 0 no node"},
		"a rollout to no share":          {base + "  rollout: {maxUnavailable: 0%}", "spec.rollout.maxUnavailable", "1 or more"},
		"a rollout to more than all":     {base + "  rollout: {maxUnavailable: 101%}", "spec.rollout.maxUnavailable", "1 or more"},
		"a rollout to some":              {base + "  rollout: {maxUnavailable: some}", "spec.rollout.maxUnavailable", "such as 25%"},
		"a queue for each core":          {base + "  queues: PerCore\n  balance: RxQueue", "spec.queues", "or PerRxQueue"},
		"mode 3":                         {base + "  transparentMode: 3", "spec.transparentMode", "must be 0 or Stack (any driver)"},
		"a sample of none":               {base + "  sampling: {oneIn: 0}", "spec.sampling.oneIn", "1"},
		"polling's CPUs without polling": {base + "  nic: {threadedPolling: {cpus: '1'}}", "spec.nic.threadedPolling", "set mode to Enable"},
		"CPUs in words":                  {base + "  nic: {threadedPolling: {mode: Enable, cpus: all}}", "spec.nic.threadedPolling.cpus", "such as 2-3,6"},
		"a link that never comes":        {base + "  nic: {driver: {linkTimeout: 10m}}", "spec.nic.driver.linkTimeout", "between 1s and 5m"},
		"a namespace with a capital":     {base + "  consumers: {namespaces: [Sensors]}", "spec.consumers.namespaces[0]", "[a-z0-9]"},
		"a selector of no label":         {base + "  consumers: {namespaceSelector: {}}", "spec.consumers", "for all namespaces set namespaces: ['*']"},
		"less than no flows":             {base + "  consumers: {shunt: -1}", "spec.consumers.shunt", "greater than or equal to 0"},
		"more flows than can be":         {base + "  consumers: {shunt: 1048577}", "spec.consumers.shunt", "less than or equal to 1048576"},
		"part of a namespace's name":     {base + "  consumers: {namespaces: ['team-*']}", "spec.consumers.namespaces[0]", "[a-z0-9]"},
		"a rule to nowhere":              {rule("action: Queue"), "spec.filter.rules[0]", "action Queue needs queue"},
		"a rule that passes to a queue":  {rule("action: Pass, queue: {cluster: c}"), "spec.filter.rules[0]", "no other action has it"},
		"a rule that reflects nowhere":   {rule("action: Reflect"), "spec.filter.rules[0]", "action Reflect needs reflectTo"},
		"an idle time of milliseconds":   {rule("action: Pass, idleTimeout: 10ms"), "spec.filter.rules[0].idleTimeout", "s|m|h"},
		"a rule that explodes":           {rule("action: Explode"), "spec.filter.rules[0].action", `"Learn"`},
		"half an address":                {match("source: 10.0.0"), "spec.filter.rules[0].match.source", "such as 192.0.2.1, 10.0.0.0/8"},
		"a prefix too long":              {match("destination: 10.0.0.0/33"), "spec.filter.rules[0].match.destination", "an address or a prefix"},
		"a port too great":               {match("destinationPort: 65536"), "spec.filter.rules[0].match.destinationPort", "a port from 0 to 65535"},
		"a port by name":                 {match("sourcePort: http"), "spec.filter.rules[0].match.sourcePort", "or a range such as 1024-65535"},
		"a protocol of no name":          {match("protocol: IPX"), "spec.filter.rules[0].match.protocol", "must be TCP, UDP"},
		"half a MAC address":             {match("sourceMAC: 'aa:bb'"), "spec.filter.rules[0].match.sourceMAC", "[0-9a-fA-F]"},
		"a VLAN too great":               {match("vlan: 4095"), "spec.filter.rules[0].match.vlan", "4094"},
		"a flag of no name":              {match("tcpFlagsSet: [XMAS]"), "spec.filter.rules[0].match.tcpFlagsSet[0]", `"SYN"`},
		"a tunnel too far":               {match("tunnelID: 4294967296"), "spec.filter.rules[0].match.tunnelID", "4294967295"},
		"a pattern of two kinds":         {base + "  filter: {payload: [{text: a, hex: '00'}]}", "spec.filter.payload[0]", "as text or as hex"},
		"a pattern of none":              {base + "  filter: {payload: [{ignoreCase: true}]}", "spec.filter.payload[0]", "as text or as hex"},
		"half a byte":                    {base + "  filter: {payload: [{hex: '012'}]}", "spec.filter.payload[0].hex", "pairs of hexadecimal digits"},
		"an action without patterns":     {base + "  filter: {payloadAction: Drop}", "spec.filter", "give payload, or leave payloadAction out"},
		"a plugin without a name":        {base + "  filter: {plugins: [{name: ''}]}", "spec.filter.plugins[0].name", "at least 1"},
	} {
		t.Run(name, func(t *testing.T) {
			requireRefused(t, c, tc.manifest, tc.field, tc.message)
		})
	}
}

// TestManyRulesAreAccepted: as many rules and patterns as the schema allows cost the API server no more than it grants.
func TestManyRulesAreAccepted(t *testing.T) {
	var rules, patterns strings.Builder
	for i := range 4096 {
		fmt.Fprintf(&rules, "{action: Drop, match: {source: 10.%d.%d.0/24, destinationPort: %d}}, ", i>>8, i&255, i+1)
		fmt.Fprintf(&patterns, "{text: pattern-%d}, ", i)
	}
	_, err := create(t, env.Client(t), strings.Replace(ring, "NAME", "many", 1)+
		"  filter: {rules: ["+rules.String()+"], payload: ["+patterns.String()+"]}")
	require.NoError(t, err)
	_, err = create(t, env.Client(t), strings.Replace(ring, "NAME", "too-many", 1)+
		"  filter: {rules: ["+rules.String()+"{action: Pass}]}")
	require.ErrorContains(t, err, "must have at most 4096 items")
}
