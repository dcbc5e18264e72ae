// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// Count is the number of packets of a file with one verdict for one reason.
type Count struct {
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why"`
	Packets int     `json:"packets"`
	// First is the number of the first such packet in the file, from 1 on.
	First int `json:"first"`
}

// Summary is the result for the packets of a file.
type Summary struct {
	Packets     int `json:"packets"`
	Captured    int `json:"captured"`
	NotCaptured int `json:"notCaptured"`
	Depends     int `json:"depends"`
	// Cut is the number of packets that are incomplete in the file: missing bytes were assumed to be zero.
	Cut int `json:"cut"`
	// Counts: the most frequent first.
	Counts []Count `json:"counts"`
}

type source interface {
	ReadPacketData() ([]byte, gopacket.CaptureInfo, error)
	LinkType() layers.LinkType
}

// open opens a file in pcap or pcapng format.
func open(file io.Reader) (source, error) {
	r := bufio.NewReader(file)
	magic, err := r.Peek(4)
	if err != nil {
		return nil, errors.New("too short for a capture file")
	}
	if slices.Equal(magic, []byte{0x0a, 0x0d, 0x0d, 0x0a}) {
		return pcapgo.NewNgReader(r, pcapgo.DefaultNgReaderOptions)
	}
	return pcapgo.NewReader(r)
}

// File explains every packet of a file in pcap or pcapng format.
func (r *Ring) File(file io.Reader) (Summary, error) {
	from, err := open(file)
	if err != nil {
		return Summary{}, err
	}
	if from.LinkType() != layers.LinkTypeEthernet {
		return Summary{}, fmt.Errorf("its packets have no Ethernet header (link type %v)", from.LinkType())
	}
	s := Summary{Counts: []Count{}}
	for {
		data, info, err := from.ReadPacketData()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return s, fmt.Errorf("packet %d: %w", s.Packets+1, err)
		}
		if missing := info.Length - len(data); missing > 0 && missing <= 65535 {
			s.Cut++
			data = append(slices.Clone(data), make([]byte, missing)...)
		}
		s.add(r.Packet(data, false))
	}
	slices.SortStableFunc(s.Counts, func(a, b Count) int { return cmp.Compare(b.Packets, a.Packets) })
	return s, nil
}

func (s *Summary) add(a Answer) {
	s.Packets++
	switch a.Verdict {
	case Captured:
		s.Captured++
	case NotCaptured:
		s.NotCaptured++
	default:
		s.Depends++
	}
	why := a.Why()
	i := slices.IndexFunc(s.Counts, func(c Count) bool { return c.Verdict == a.Verdict && c.Why == why })
	if i < 0 {
		s.Counts = append(s.Counts, Count{Verdict: a.Verdict, Why: why, First: s.Packets})
		i = len(s.Counts) - 1
	}
	s.Counts[i].Packets++
}

// Why returns the reason for the verdict, in one line.
func (a Answer) Why() string {
	why := "no filter"
	for _, s := range slices.Concat(a.Steps, a.Queues) {
		if s.Verdict == a.Verdict {
			why = s.Why
		}
		if s.Verdict == a.Verdict && a.Verdict != Captured {
			break
		}
	}
	return why
}
