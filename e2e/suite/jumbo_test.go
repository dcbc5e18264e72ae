// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/e2e/demo/trace"
)

// Frames of 9,014 bytes over node-ebpf's veth, whose MTU is 9200: a ring without snapLength has all of their bytes, and one with it says
// how many it has cut.
const jumboFrames, jumboBytes = 51, 9014

// jumbo is what `ringcap capture` has said of the frames, once so many are counted as truncated, and the length of its file.
func (c *Case) jumbo(truncated int64) (string, int) {
	var frames []trace.Frame
	for i := range jumboFrames {
		frames = append(frames, c.datagram(net.HardwareAddr{2, 3, 4, 5, 6, 7}, 10000+i, 9, bytes.Repeat([]byte{byte(i)}, jumboBytes-42)))
	}
	r := c.replay("frames")
	r.input, r.nodes = c.file("jumbo.pcap"), []string{ebpf}
	c.writeFrames(r.input, frames, jumboFrames)
	file := c.file("jumbo.pcapng")
	stop := c.capture("capture", "suite-jumbo", "--node", ebpf, "-f", "udp dst port 9", "-w", file)
	require.NoError(c, r.send())
	c.arrives(jumboFrames, file)
	c.until(90, "the account of the ring's queues", func() {
		var sum int64
		ring, _ := c.status("suite-jumbo")
		for _, node := range ring.Nodes {
			for _, queue := range node.Queues {
				sum += queue.Truncated
			}
		}
		require.Equal(c, truncated, sum)
	})
	said := stop()
	c.packets(jumboFrames, file)
	return said, len(c.read(file))
}

func TestJumboFramesComeWhole(t *testing.T) {
	c := start(t)
	c.ring("suite-jumbo", "{interfaces: [{name: mirror0}], consumers: {namespaces: [default]}}")
	c.ringIs("suite-jumbo", "Programmed", "True")
	c.ringIs("suite-jumbo", "PacketsWhole", "True Whole")
	said, size := c.jumbo(0)
	require.Greater(t, size, jumboFrames*jumboBytes)
	require.NotContains(t, said, "cut")
	require.Contains(t, said, fmt.Sprintf("%d packets captured, 0 lost", jumboFrames))
}

func TestJumboFramesThatAreCutAreCounted(t *testing.T) {
	c := start(t)
	c.ring("suite-jumbo", "{interfaces: [{name: mirror0}], snapLength: 1536, consumers: {namespaces: [default]}}")
	c.ringIs("suite-jumbo", "Programmed", "True")
	c.ringIs("suite-jumbo", "PacketsWhole", "True SnapLengthGiven .*1536")
	said, size := c.jumbo(jumboFrames)
	require.Less(t, size, jumboFrames*2000)
	require.Contains(t, said, fmt.Sprintf("%d cut to at most 1,536 bytes", jumboFrames))
	c.says(said, fmt.Sprintf("%d of them cut .*, 0 lost", jumboFrames))
	c.ringIs("suite-jumbo", "PacketsWhole", "True SnapLengthGiven")
}
