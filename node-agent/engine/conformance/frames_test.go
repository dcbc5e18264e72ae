// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/binary"
	"net/netip"
)

// Crafted frames. Each has the headers that its name lists and nothing else; nothing on the way checks checksums.

func ethernet(etherType uint16, payload []byte) []byte {
	frame := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}
	frame = binary.BigEndian.AppendUint16(frame, etherType)
	frame = append(frame, payload...)
	return append(frame, make([]byte, max(0, 60-len(frame)))...)
}

// tagged puts VLAN tags into a frame, given as TPID << 16 | TCI.
func tagged(frame []byte, tags ...uint32) []byte {
	out := append([]byte(nil), frame[:12]...)
	for _, tag := range tags {
		out = binary.BigEndian.AppendUint32(out, tag)
	}
	return append(out, frame[12:]...)
}

func ip(source, destination string, protocol byte, payload []byte) []byte {
	from, to := netip.MustParseAddr(source), netip.MustParseAddr(destination)
	var header []byte
	if from.Is4() {
		header = make([]byte, 12, 20)
		header[0], header[8], header[9] = 0x45, 64, protocol
		binary.BigEndian.PutUint16(header[2:], uint16(20+len(payload)))
	} else {
		header = make([]byte, 8, 40)
		header[0], header[6], header[7] = 0x60, protocol, 64
		binary.BigEndian.PutUint16(header[4:], uint16(len(payload)))
	}
	header = append(append(header, from.AsSlice()...), to.AsSlice()...)
	return append(header, payload...)
}

// overEthernet is an Ethernet frame with an IP packet.
func overEthernet(packet []byte) []byte {
	if packet[0]>>4 == 6 {
		return ethernet(0x86dd, packet)
	}
	return ethernet(0x0800, packet)
}

func ports(source, destination uint16, length int) []byte {
	header := binary.BigEndian.AppendUint16(nil, source)
	header = binary.BigEndian.AppendUint16(header, destination)
	return append(header, make([]byte, length-4)...)
}

func udpHeader(source, destination uint16, payload []byte) []byte {
	header := ports(source, destination, 8)
	binary.BigEndian.PutUint16(header[4:], uint16(8+len(payload)))
	return append(header, payload...)
}

func udp(source string, sport uint16, destination string, dport uint16) []byte {
	return overEthernet(ip(source, destination, 17, udpHeader(sport, dport, []byte("ringcap payload"))))
}

const (
	flagSYN = 2
	flagACK = 16
)

func tcp(source string, sport uint16, destination string, dport uint16, flags byte) []byte {
	header := ports(sport, dport, 20)
	header[12], header[13] = 5<<4, flags
	return overEthernet(ip(source, destination, 6, append(header, "ringcap payload"...)))
}

func icmp(source, destination string) []byte {
	return overEthernet(ip(source, destination, 1, append([]byte{8, 0, 0, 0}, make([]byte, 20)...)))
}

func arp() []byte { return ethernet(0x0806, []byte{0, 1, 8, 0, 6, 4, 0, 1}) }

// datagram returns the frames of a UDP datagram of IPv4 in two fragments, the first with the ports.
func datagram(id uint16, source string, sport uint16, destination string, dport uint16) [2][]byte {
	whole := udpHeader(sport, dport, make([]byte, 40))
	var frames [2][]byte
	for i, part := range [][]byte{whole[:24], whole[24:]} {
		packet := ip(source, destination, 17, part)
		binary.BigEndian.PutUint16(packet[4:], id)
		binary.BigEndian.PutUint16(packet[6:], []uint16{0x2000, 3}[i])
		frames[i] = overEthernet(packet)
	}
	return frames
}

// datagram6 is the same of IPv6.
func datagram6(id uint32, source string, sport uint16, destination string, dport uint16) [2][]byte {
	whole := udpHeader(sport, dport, make([]byte, 40))
	var frames [2][]byte
	for i, part := range [][]byte{whole[:24], whole[24:]} {
		header := []byte{17, 0}
		header = binary.BigEndian.AppendUint16(header, []uint16{1, 24}[i])
		header = binary.BigEndian.AppendUint32(header, id)
		frames[i] = overEthernet(ip(source, destination, 44, append(header, part...)))
	}
	return frames
}

// vxlan puts a frame into a tunnel of one outer flow.
func vxlan(id uint32, inner []byte) []byte {
	header := []byte{8, 0, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(header[4:], id<<8)
	return overEthernet(ip("192.0.2.1", "192.0.2.2", 17, udpHeader(5555, 4789, append(header, inner...))))
}

// gre puts an IP packet, without its Ethernet header, into a tunnel with a key.
func gre(key uint32, packet []byte) []byte {
	header := binary.BigEndian.AppendUint32([]byte{0x20, 0, 0x08, 0}, key)
	return overEthernet(ip("192.0.2.1", "192.0.2.2", 47, append(header, packet...)))
}

// many makes n frames of as many flows.
func many(n int, make func(i int) []byte) []packet {
	var packets []packet
	for i := range n {
		packets = append(packets, packet{frame: make(i)})
	}
	return packets
}

func passed(frames ...[]byte) []packet {
	var packets []packet
	for _, frame := range frames {
		packets = append(packets, packet{frame: frame})
	}
	return packets
}

func filtered(frames ...[]byte) []packet {
	packets := passed(frames...)
	for i := range packets {
		packets[i].fate = isFiltered
	}
	return packets
}
