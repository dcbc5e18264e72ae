// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// captureRows returns rows of real packets: the captures in the folders that RINGCAP_CAPTURES lists, separated by
// colons.
func captureRows(t *testing.T) []row {
	t.Helper()
	var rows []row
	for _, folder := range filepath.SplitList(os.Getenv("RINGCAP_CAPTURES")) {
		files, err := filepath.Glob(filepath.Join(folder, "*.pcap"))
		require.NoError(t, err)
		require.NotEmpty(t, files, "%s has no captures", folder)
		for _, file := range files {
			if packets := readCapture(t, file); len(packets) > 0 {
				rows = append(rows, row{
					name: "capture " + strings.TrimSuffix(filepath.Base(file), ".pcap"), packets: packets,
					clusters: []capture.Cluster{
						{Queues: 4, QueueBytes: 4 << 20}, {Queues: 3, QueueBytes: 4 << 20, Balance: capture.BalanceTwoTuple, Inner: true}, {Queues: 5, QueueBytes: 4 << 20, Balance: capture.BalanceBothEnds},
						{Queues: 2, QueueBytes: 4 << 20, Balance: capture.BalanceTCPFiveTuple, Inner: true},
					},
				})
			}
		}
	}
	return rows
}

// readCapture returns the Ethernet frames of a capture that an interface can send, at most as many as queues hold.
func readCapture(t *testing.T, path string) []packet {
	t.Helper()
	const limit, shortest, longest = 400, 14, 9000
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	reader, err := pcapgo.NewReader(file)
	if err != nil || reader.LinkType() != layers.LinkTypeEthernet {
		return nil
	}
	var packets []packet
	for len(packets) < limit {
		frame, _, err := reader.ReadPacketData()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Logf("%s ends with %v", path, err) // some are made to be damaged
			}
			break
		}
		if len(frame) >= shortest && len(frame) <= longest {
			packets = append(packets, packet{frame: frame})
		}
	}
	return packets
}
