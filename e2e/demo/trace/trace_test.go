// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"
)

func capture(t *testing.T, path string, link layers.LinkType, lengths ...int) {
	t.Helper()
	var buffer bytes.Buffer
	writer := pcapgo.NewWriter(&buffer)
	require.NoError(t, writer.WriteFileHeader(65535, link))
	for i, length := range lengths {
		data := bytes.Repeat([]byte{byte(i)}, length)
		require.NoError(t, writer.WritePacket(gopacket.CaptureInfo{CaptureLength: length, Length: length}, data))
	}
	require.NoError(t, os.WriteFile(path, buffer.Bytes(), 0o600))
}

func TestCollectTakesWholeEthernetFramesThatFit(t *testing.T) {
	folder := t.TempDir()
	capture(t, filepath.Join(folder, "b.pcap"), layers.LinkTypeEthernet, minFrame-1, minFrame, maxFrame, maxFrame+1)
	capture(t, filepath.Join(folder, "c.pcap"), layers.LinkTypeRaw, 100)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a.txt"), []byte("no capture"), 0o600))

	frames, stats, err := Collect(folder)
	require.NoError(t, err)
	require.Equal(t, Stats{Files: 1, Skipped: 2, Frames: 2, Excluded: 2}, stats)
	require.Len(t, frames[0], minFrame)
	require.Len(t, frames[1], maxFrame)
}

func TestCollectRefusesAFolderWithoutCaptures(t *testing.T) {
	_, _, err := Collect(t.TempDir())
	require.ErrorContains(t, err, "no capture")
}

func TestWriteRepeatsWholeRoundsAndReadGivesThemBack(t *testing.T) {
	frames := []Frame{bytes.Repeat([]byte{1}, 60), bytes.Repeat([]byte{2}, 61), bytes.Repeat([]byte{3}, 62)}
	var buffer bytes.Buffer
	written, err := Write(&buffer, frames, 7)
	require.NoError(t, err)
	require.Equal(t, 9, written)

	var packets []Packet
	require.NoError(t, Read(&buffer, func(p Packet) error { packets = append(packets, p); return nil }))
	require.Len(t, packets, 9)
	for i, packet := range packets {
		require.Equal(t, []byte(frames[i%3]), packet.Data)
		require.Equal(t, len(frames[i%3]), packet.Length)
	}
	require.Equal(t, time.Millisecond, packets[1].Time.Sub(packets[0].Time))
}

func TestReadRefusesWhatIsNoCapture(t *testing.T) {
	require.ErrorContains(t, Read(bytes.NewReader([]byte("GET / HTTP/1.1\r\n\r\n      ")), nil), "not a pcap file")
}
