// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"regexp"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

// What there is on the cluster, on the nodes and in node-ebpf's kernel, in lines that can be compared.

// clusterListing is all objects of the cluster, as "KIND NAMESPACE NAME FINALIZERS", but those that come and go by themselves; and how
// nodes are marked.
func (c *Case) clusterListing() []string {
	return strings.Split(c.bash(`kinds=$(kubectl api-resources --verbs=list -o name | grep -vE '^(events|componentstatuses|endpoints)' | paste -sd,)
		kubectl get "$kinds" -A -o json | jq -r '.items[] | select(.kind != "Lease" or .metadata.namespace == "`+system+`") |
			"\(.kind) \(.metadata.namespace // "-") \(.metadata.name) \(.metadata.finalizers // [] | join(","))",
			(select(.kind == "Node") | "\(.metadata.name) is marked \(.metadata.labels) \(.spec.taints)")'`), "\n")
}

// Of a node: folders, modules, device nodes, sockets, and how its NICs are set. 24FA is the agent's port.
const nodeListing = `exec 2>/dev/null
	find /run/ringcap /dev/ringcap /proc/net/ringcap /sys/fs/bpf /var/run/cdi /var/lib/kubelet/plugins /var/lib/kubelet/device-plugins |
		grep -v kubelet_internal_checkpoint
	grep ringcap /proc/modules /proc/devices /proc/misc
	awk "/ringcap/ { print \"unix socket\", \$8 }" /proc/net/unix
	awk "NR > 1 { print \"packet socket\", \$3, \$4, \$5 }" /proc/net/packet
	grep -ho ":24FA 0*:0000 0A" /proc/net/tcp /proc/net/tcp6
	for nic in /sys/class/net/*; do
		name=${nic##*/}
		case $name in veth*) continue ;; esac
		cd $nic
		echo $name $(cat flags mtu tx_queue_len threaded napi_defer_hard_irqs gro_flush_timeout ifalias) $(readlink device/driver) $(ls queues)
		tc qdisc show dev $name
		[ -d device ] || [ $name = mirror0 ] || continue
		for what in k l g x c; do ethtool -$what $name | sed "s/^/$name: /"; done
	done
	true`

func (c *Case) nodesListing() (lines []string) {
	for _, node := range nodes {
		for line := range strings.Lines(c.on(node, nodeListing)) {
			lines = append(lines, node+": "+strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// lists fails the case unless each pattern has a line that begins like it.
func lists(c *Case, lines []string, patterns ...string) {
	for _, pattern := range patterns {
		like := regexp.MustCompile("^(?:" + pattern + ")")
		require.True(c, slices.ContainsFunc(lines, like.MatchString), "no line is like '%s'", pattern)
	}
}

// Promiscuous is 0x1103, not 0x1003.
var (
	nicsFree = []string{"node-ebpf: mirror0 0x1003 ", "node-kmod: mirror0 0x1003 ", "node-kmod: card0 0x1003 .*/igb rx-0 rx-1 ",
		"node-kmod: card0: RX:.*256"}
	nicsTaken = []string{"node-ebpf: mirror0 0x1103 ", "node-kmod: mirror0 0x1103 ", "node-kmod: card0 0x1103 .*/igb rx-0 tx-0",
		"node-kmod: card0: RX:.*512"}
)

// Of a listing, what is ringcap's. Namespaces are the user's, a label the lab's.
var (
	ringcaps = regexp.MustCompile(`(?i)^(CaptureRing|Cluster|NodeCapture) |ringcap`)
	users    = regexp.MustCompile(`^Namespace - |^(ServiceAccount|ConfigMap) ringcap-[a-z]+ (default|kube-root-ca.crt) | is marked `)
)

// begins is a line's first three words.
func begins(line string) string {
	words := strings.SplitN(line, " ", 4)
	return strings.Join(words[:min(3, len(words))], " ")
}

// listingOnceRemoved waits until of ringcap there is what is kept, "KIND NAMESPACE NAME" each, and nothing else: soon, for what helm does
// not wait for.
func (c *Case) listingOnceRemoved(name string, kept []string) (lines []string) {
	c.until(60, "ringcap is removed", func() {
		lines = append(c.clusterListing(), c.nodesListing()...)
		slices.Sort(lines)
		c.write(c.file(name), strings.Join(lines, "\n"))
		lists(c, lines, append([]string{"Node - node-kmod ", "node-ebpf: mirror0: generic-receive-offload:"}, nicsFree...)...)
		var left []string
		for _, line := range lines {
			if ringcaps.MatchString(line) && !users.MatchString(line) {
				left = append(left, begins(line))
			}
		}
		require.ElementsMatch(c, kept, left)
	})
	return lines
}

// pinned is what the agent of node-ebpf has pinned: maps, programs and links.
func (c *Case) pinned() string {
	c.Cleanup(func() { c.run("rm", "-f", "out/images/bpf") })
	c.run("go", "build", "-o", "out/images/bpf", "./e2e/suite/bpf")
	said := c.on(ebpf, "/images/bpf pinned /sys/fs/bpf/ringcap")
	lists(c, strings.Split(said, "\n"), "map ", "prog ", "link ")
	return said
}

// alive is what of it the kernel has still.
func (c *Case) alive(pinned string) string {
	said, err := c.pipe(pinned+"\n", "out/images/bpf", "alive")
	require.NoError(c, err)
	return said
}
