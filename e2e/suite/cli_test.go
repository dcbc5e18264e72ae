// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/cli/tree"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// ringcap on the real cluster: what a person sees of it, and packets taken home, all of them.

// status is what `ringcap status -o json` says of a ring. It ends with an error when something is wrong with it.
func (c *Case) status(ring string) (tree.Ring, error) {
	said, failed := c.pipe("", "ringcap", "status", ring, "-o", "json")
	var all tree.Tree
	require.NoError(c, json.Unmarshal([]byte(said), &all), "%v: %s", failed, said)
	at := slices.IndexFunc(all.Rings, func(is tree.Ring) bool { return is.Name == ring })
	require.GreaterOrEqual(c, at, 0, "no ring %s in: %s", ring, said)
	return all.Rings[at], failed
}

func TestRingcapStatusAndDoctor(t *testing.T) {
	c := start(t)
	said, status := c.ringcap("status")
	require.Zero(t, status)
	c.says(said, "^[✓!] CaptureRing mirror")
	for _, node := range nodes {
		require.Contains(t, said, "node "+node+" ")
	}
	// Of the module's node and the other, and the account as the API has it.
	mirror, err := c.status("mirror")
	require.NoError(t, err)
	require.Equal(t, mirror.Seen, mirror.Filtered+mirror.SampledOut+mirror.Reflected+mirror.Absorbed+mirror.Directed+mirror.Passed)
	require.Len(t, mirror.Nodes, 2)
	require.ElementsMatch(t, []v1alpha1.Engine{v1alpha1.EngineEBPF, v1alpha1.EngineKernelModule}, []v1alpha1.Engine{mirror.Nodes[0].Engine, mirror.Nodes[1].Engine})
	said, status = c.ringcap("doctor")
	require.Zero(t, status)
	require.Contains(t, said, "0 errors")

	c.ring("suite-nowhere", "{interfaces: [{name: nowhere0}], queues: 1}")
	c.ringIs("suite-nowhere", "Ready", "False InterfaceNotFound")
	said, status = c.ringcap("doctor")
	require.Equal(t, 3, status)
	c.says(said, "Error .*CaptureRing suite-nowhere: InterfaceNotFound")
	_, status = c.ringcap("status", "suite-nowhere")
	require.Equal(t, 3, status)
}

// arrives waits until a file has so many packets: what was sent last is on its way through queue, pod and API server. What it has too
// little or too much of is the case's to say; what the nodes know is logged.
func (c *Case) arrives(want int, file string, filter ...string) {
	err := c.try(func() {
		c.until(60, file+" has all packets", func() { require.GreaterOrEqual(c, c.captured(file, filter...), want) })
	})
	if err != nil {
		c.Logf("%v\n%s", err, counted(c.counters()))
	}
}

// All that was sent to both nodes is in the file, in order of time, and nothing is left behind.
func TestRingcapCaptureIsExact(t *testing.T) {
	c := start(t)
	file := c.file("all.pcapng")
	stop := c.capture("capture", "mirror", "-w", file, "--slots", "16384")
	r := c.replay("sent")
	require.NoError(t, r.send())
	sent := r.onWire(ebpf) + r.onWire(kmod)
	c.arrives(sent, file)
	said := stop()
	c.packets(sent, file)
	c.says(said, ", 0 lost$")
	// A starved virtual machine sends more than a second late; ringcap says so.
	if !strings.Contains(said, "came too late") {
		c.inOrder(file)
	}
	data := c.read(file)
	for _, node := range nodes {
		require.True(t, strings.Contains(data, node+"/mirror0"), node)
	}
	c.ringcapLeftNothing()
}

// inOrder: no packet of a capture is older than the one before. A packet may take more than one line: the others begin otherwise.
func (c *Case) inOrder(file string) {
	c.bash(`tcpdump -tt -nr "$1" | awk '!/^[0-9]+[.][0-9]+ / { next } $1 + 0 < last { late++ } { last = $1 + 0 }
		END { if (late || !last) { print late + 0 " are late, the last is of " last + 0; exit 1 } }'`, file)
}

// By a filter, through a pipe whose reader goes away.
func TestRingcapCaptureWithAFilter(t *testing.T) {
	c := start(t)
	file := c.file("some.pcapng")
	stop := c.capture("capture", "mirror", "--node", ebpf, "-f", "tcp port 80", "-w", file, "--slots", "16384")
	r := c.replay("sent")
	r.nodes = []string{ebpf}
	require.NoError(t, r.send())
	want := c.captured(c.trace, "tcp port 80")
	require.Positive(t, want)
	c.arrives(want, file)
	stop()
	c.packets(want, file)
	c.ringcapLeftNothing()
}

func TestRingcapCaptureRefuses(t *testing.T) {
	c := start(t)
	file := c.file("none.pcapng")
	refuses := func(want int, why string, words ...string) {
		said, status := c.ringcap(append(words, "-w", file)...)
		require.Equal(t, want, status)
		require.Contains(t, said, why)
		require.NoFileExists(t, file)
	}
	refuses(2, "tcp prt 80", "capture", "mirror", "-f", "tcp prt 80")
	refuses(1, `"nobody" not found`, "-n", demo, "capture", "pod/nobody")
	c.ringcapLeftNothing()
}

// The replayed capture itself, by the ring as it is: all of it would be captured, and was.
func TestRingcapExplain(t *testing.T) {
	c := together(t)
	said, status := c.ringcap("explain", "mirror", "--pcap", c.trace)
	require.Zero(t, status)
	all := c.captured(c.trace)
	require.Contains(t, said, fmt.Sprintf("of %d packets %d captured, 0 not, 0 depend", all, all))
}
