// SPDX-License-Identifier: Apache-2.0

// Package trace makes one capture of many: the Ethernet frames of real captures that a network interface of ordinary
// MTU can send and receive unchanged, as often as it takes to have enough packets.
package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// Limits of a frame's length in bytes, without FCS. The kernel refuses to send less than an Ethernet header and drops a
// received frame with a cut VLAN tag before any capture sees it; minFrame excludes both.
const (
	minFrame = 20
	maxFrame = 1514
)

// Frame is a whole Ethernet frame.
type Frame []byte

// Stats is the result of reading the captures in a folder.
type Stats struct {
	Files    int // captures that frames were taken from
	Skipped  int // files of another format or link type
	Frames   int // frames taken
	Excluded int // frames that were cut when captured, or are too short or too long to be sent
}

// Collect reads every classic pcap capture of Ethernet below a folder, in the order of their names.
func Collect(folder string) ([]Frame, Stats, error) {
	var paths []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return nil, Stats{}, err
	}
	sort.Strings(paths)

	var frames []Frame
	var stats Stats
	for _, path := range paths {
		of, excluded := readFile(path)
		stats.Excluded += excluded
		if len(of) == 0 {
			stats.Skipped++
			continue
		}
		stats.Files++
		frames = append(frames, of...)
	}
	stats.Frames = len(frames)
	if len(frames) == 0 {
		return nil, stats, fmt.Errorf("no capture of Ethernet in %s", folder)
	}
	return frames, stats, nil
}

// readFile returns a capture's usable frames. Test captures are damaged on purpose: what can be read of one counts, the
// rest does not matter here.
func readFile(path string) (frames []Frame, excluded int) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, 0
	}
	reader, err := pcapgo.NewReader(bytes.NewReader(data))
	if err != nil || reader.LinkType() != layers.LinkTypeEthernet {
		return nil, 0
	}
	for {
		frame, info, err := reader.ReadPacketData()
		if err != nil {
			return frames, excluded
		}
		if info.CaptureLength != info.Length || len(frame) < minFrame || len(frame) > maxFrame {
			excluded++
			continue
		}
		frames = append(frames, frame)
	}
}

// Write writes the frames as a capture, round after round until there are at least as many as asked for, and returns how
// many it wrote. Packets are a millisecond apart.
func Write(w io.Writer, frames []Frame, atLeast int) (int, error) {
	out := pcapgo.NewWriter(w)
	if err := out.WriteFileHeader(65535, layers.LinkTypeEthernet); err != nil {
		return 0, err
	}
	written := 0
	start := time.Unix(1_000_000_000, 0)
	for written < atLeast {
		for _, frame := range frames {
			info := gopacket.CaptureInfo{
				Timestamp:     start.Add(time.Duration(written) * time.Millisecond),
				CaptureLength: len(frame),
				Length:        len(frame),
			}
			if err := out.WritePacket(info, frame); err != nil {
				return written, err
			}
			written++
		}
	}
	return written, nil
}

// Packet is a captured packet of a file.
type Packet struct {
	Time   time.Time
	Length int // on the wire
	Data   []byte
}

// Read calls visit for each packet of a classic pcap capture. The visitor may keep the packet's Data.
func Read(r io.Reader, visit func(Packet) error) error {
	reader, err := pcapgo.NewReader(r)
	if err != nil {
		return fmt.Errorf("not a pcap file: %w", err)
	}
	for {
		data, info, err := reader.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(Packet{Time: info.Timestamp, Length: info.Length, Data: data}); err != nil {
			return err
		}
	}
}
