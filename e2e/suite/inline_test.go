// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

/*
 * examples/snort-inline.yaml as it is, on the node with the module, between two hosts there, each a network namespace:
 *
 *	client, 192.0.2.1 ===== eth1  pair, Snort  eth2 ===== 192.0.2.2, web server
 */
const lineHosts = `set -e
	host() { # PORT ADDRESS: a host at the other end of a port
		unshare -n sleep 3600 </dev/null >/dev/null 2>&1 &
		echo $! >/run/line/$1
		ip link add $1 type veth
		end=$(basename $(dirname $(grep -lx $(cat /sys/class/net/$1/iflink) /sys/class/net/veth*/ifindex)))
		until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do usleep 10000; done
		ip link set $end netns $!
		echo 1 >/proc/sys/net/ipv6/conf/$1/disable_ipv6
		ip link set $1 up
		nsenter -t $! -n sh -c "
			echo 1 >/proc/sys/net/ipv6/conf/$end/disable_ipv6
			ip link set $end up
			ip address add $2/24 dev $end"
	}
	mkdir -p /run/line/www
	host eth1 192.0.2.1
	host eth2 192.0.2.2
	cd /run/line/www
	for name in allowed forbidden; do echo $name >$name; done
	echo "this is a secret" >word
	dd if=/dev/urandom of=large bs=1M count=20 2>/dev/null
	nsenter -t $(cat /run/line/eth2) -n httpd -f -p 80 -h /run/line/www </dev/null >/dev/null 2>&1 &
	echo $! >/run/line/httpd`

const lineHostsGone = `ip link delete eth1
	ip link delete eth2
	for name in eth1 eth2 httpd; do kill $(cat /run/line/$name); done
	rm -rf /run/line`

// lineGet runs a command with what the client gets of the server.
func (c *Case) lineGet(name, command string) string {
	// The shell says so if the time is over.
	get := "nsenter -t $(cat /run/line/eth1) -n sh -c 'timeout 10 wget -q -O - http://192.0.2.2/" + name + "; true' 2>/dev/null"
	return c.on(kmod, get+" | "+command)
}

// decided is what became of the packets that entered the pair, with the counters of a ring and the sum of its queues.
type decided struct {
	seen, bridged, entered              int64 // the ring's
	passed, blocked, replaced, bypassed int64
	others                              int64
}

func (c *Case) decided() (d decided) {
	node := nodeIn(c.counters(), kmod)
	for _, ring := range node.Status.Rings {
		if ring.Name == "ips" {
			require.NotNil(c, ring.Inline)
			d.seen, d.entered, d.bridged = ring.Seen, ring.Passed, ring.Inline.Bridged+packets(ring.Inline.Lost)
		}
	}
	for _, queue := range queuesOf(node, "ips") {
		is := queue.Inline
		require.NotNil(c, is)
		d.passed += is.Passed
		d.blocked += is.Blocked
		d.replaced += is.Replaced
		d.bypassed += packets(is.Bypassed)
		d.others += is.Held + is.Unanswered + packets(is.Stopped) + packets(is.Lost) + is.ShuntPassed + is.ShuntBlocked
	}
	return d
}

func packets(counts []v1alpha1.DropCount) (sum int64) {
	for _, count := range counts {
		sum += count.Packets
	}
	return sum
}

func TestSnortInLine(t *testing.T) {
	c := start(t)
	if said, err := c.pipe("", "lib/daq/get", "snort3"); err != nil {
		t.Skip("there are no packages of Snort: " + said)
	}
	c.run("images/build", "snort")
	c.run("e2e/cluster/load-images")
	c.Cleanup(func() { c.on(kmod, lineHostsGone) })
	c.on(kmod, lineHosts)
	c.applyFile("examples/snort-inline.yaml")
	c.attached(240, "ips", []bool{true, true}, kmod)
	c.until(120, "Snort decides", func() {
		require.Equal(c, "allowed", c.lineGet("allowed", "cat"))
		require.Positive(c, c.decided().passed)
	})
	require.Equal(t, "nothing", c.lineGet("forbidden", "grep forbidden || echo nothing"))
	require.Equal(t, "this is a public", c.lineGet("word", "cat"))
	c.until(30, "what it did is counted", func() {
		is := c.decided()
		require.Positive(c, is.blocked)
		require.Positive(c, is.replaced)
	})

	before := c.decided()
	c.run("kubectl", "delete", "--namespace", "ringcap-snort-inline", "daemonset/snort")
	c.attached(120, "ips", []bool{false, false}, kmod)
	require.Equal(t, "same", c.lineGet("large", "cmp /run/line/www/large - && echo same"))
	c.until(60, "each packet is accounted for", func() {
		is := c.decided()
		require.Greater(c, is.bypassed-before.bypassed, int64(20<<20/65536), "of the large file, as merged as can be")
		require.Equal(c, is.seen, is.bridged+is.entered)
		require.Equal(c, is.entered, is.passed+is.blocked+is.replaced+is.bypassed+is.others)
	})
	c.told(90, "default", 1, "NodeCapture/node-kmod InlineBypassed: ")
	c.kernelIsFine()
}
