// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// A network card whose driver is replaced by a capture-aware one of the agent's image, and put back.
//
//	wire1 (replay) ---cable--- card0 (igb, then igb_ringcap) ---> ring suite-card ---> tcpdump in a pod
//	                                        \---> the node's stack, in mode 1

const cardLooks = `cd /sys/class/net/card0
	for what in mtu tx_queue_len ifalias address flags; do echo "$what $(cat $what)"; done
	grep "" /proc/sys/net/ipv6/conf/card0/disable_ipv6 /proc/sys/net/ipv4/conf/card0/arp_announce
	readlink device/driver; ls queues; ip address show card0 | grep "inet6* "`

func (c *Case) cardRing(mode int) *unstructured.Unstructured {
	object := c.ring("suite-card", fmt.Sprintf(`{nodeSelector: {matchLabels: {ringcap.io/lab: kmod}}, interfaces: [{driver: igb}], queues: 1, slots: 16384,
		consumers: {namespaces: [%s]}, snapLength: 2048, transparentMode: %d, nodeTraffic: Allow,
		nic: {promiscuous: true, offloads: Disable, rxQueues: 1, driver: {policy: Replace, linkTimeout: 30s}}}`, pods, mode))
	c.until(120, "card0 has the aware driver and the mode", func() {
		report := c.nodeCapture(kmod)
		require.Equal(c, report.Generation, report.Status.AppliedGeneration)
		ring := ringOf(report, "suite-card")
		require.True(c, ring.Ready && ring.TransparentMode == int32(mode), "%+v", ring)
		require.True(c, slices.ContainsFunc(report.Status.Interfaces, func(is v1alpha1.InterfaceStatus) bool {
			return is.Name == "card0" && is.Driver == "igb_ringcap" && is.Aware && is.StockDriver == "igb"
		}), "%+v", report.Status.Interfaces)
	})
	c.ringIs("suite-card", "Ready", "True")
	return object
}

// cardReplay: every packet is in the ring once and unchanged, and so many are in the node's stack, by netfilter's count of what comes in.
func (c *Case) cardReplay(mode, stack int, input string) {
	c.on(kmod, `nft add table netdev suite; nft delete table netdev suite; nft add table netdev suite
		nft "add chain netdev suite card { type filter hook ingress device card0 priority 0; }"
		nft add rule netdev suite card counter`)
	r := c.replay(fmt.Sprintf("mode%d", mode)).over("suite-card", *c.podOn(kmod, pods, "app=card"))
	r.input, r.nodes, r.wire = input, []string{kmod}, "wire1"
	r.disturbed(under{}, lossless)
	c.says(c.on(kmod, "nft list table netdev suite"), fmt.Sprintf(`^\s+counter packets %d `, stack))
}

func TestCardInModes1And2(t *testing.T) {
	const packets = 10000
	c := start(t)
	// Shorter frames are padded by the card: they would not come out as they went in.
	input := c.file("card.pcap")
	c.run("tcpdump", "-r", c.trace, "-w", input, "-c", fmt.Sprint(packets), "greater 60")
	c.Cleanup(func() { c.on(kmod, "nft delete table netdev suite; ip address del 192.0.2.7/32 dev card0; true") })
	c.on(kmod, `set -e
		ip link set card0 mtu 1600 qlen 555; echo span port >/sys/class/net/card0/ifalias; ip address flush dev card0; ip address add 192.0.2.7/32 dev card0
		echo 1 >/proc/sys/net/ipv6/conf/card0/disable_ipv6; echo 2 >/proc/sys/net/ipv4/conf/card0/arp_announce`)
	before := c.on(kmod, cardLooks)
	ring := c.cardRing(1)
	pod := c.pod("card", consumer("ringcap.local/tcpdump:demo", "[tcpdump, -i, rc-suite-card, -n, -U, -w, /captures/card.pcap]", "suite-card"))
	c.attached(240, "suite-card", []bool{true}, kmod)
	c.cardReplay(1, packets, input)
	c.cardRing(2)
	c.cardReplay(2, 0, input)
	c.remove(pod)
	c.remove(ring)
	c.on(kmod, "nft delete table netdev suite || true")
	c.until(120, "card0 is as before", func() { require.Equal(c, before, c.on(kmod, cardLooks)) })
	c.told(90, "default", 1, `NodeCapture/node-kmod DriverReplaced: .* \(suite-card\)$`)
	c.told(90, "default", 1, `NodeCapture/node-kmod DriverRestored: `)
	c.on(kmod, "ip address del 192.0.2.7/32 dev card0")
	c.kernelIsFine()
}
