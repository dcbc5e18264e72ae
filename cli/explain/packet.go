// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// Tuple describes a packet by its addresses and ports.
type Tuple struct {
	// Protocol is tcp, udp, sctp or icmp.
	Protocol    string
	Source      netip.Addr
	Destination netip.Addr
	// SourcePort and DestinationPort are for tcp, udp and sctp.
	SourcePort, DestinationPort uint16
	// VLAN is the id of a tag, 0 for none.
	VLAN uint16
}

// Packet builds the packet of a tuple: TCP with ACK set, and no payload.
func (t Tuple) Packet() ([]byte, error) {
	if t.Source.Is4() != t.Destination.Is4() {
		return nil, fmt.Errorf("%s and %s are not of one IP version", t.Source, t.Destination)
	}
	stack := t.link()
	ip, network := t.network()
	stack = append(stack, ip)
	transport, err := t.transport(network)
	if err != nil {
		return nil, err
	}
	stack = append(stack, transport)
	buffer := gopacket.NewSerializeBuffer()
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(buffer, options, stack...); err != nil {
		return nil, fmt.Errorf("make the packet: %w", err)
	}
	return buffer.Bytes(), nil
}

func (t Tuple) link() []gopacket.SerializableLayer {
	kind := layers.EthernetTypeIPv6
	if t.Source.Is4() {
		kind = layers.EthernetTypeIPv4
	}
	ethernet := &layers.Ethernet{
		SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, EthernetType: kind,
	}
	if t.VLAN == 0 {
		return []gopacket.SerializableLayer{ethernet}
	}
	ethernet.EthernetType = layers.EthernetTypeDot1Q
	return []gopacket.SerializableLayer{ethernet, &layers.Dot1Q{VLANIdentifier: t.VLAN, Type: kind}}
}

func (t Tuple) protocol() (layers.IPProtocol, bool) {
	known := map[string]layers.IPProtocol{
		"tcp": layers.IPProtocolTCP, "udp": layers.IPProtocolUDP, "sctp": layers.IPProtocolSCTP, "icmp": layers.IPProtocolICMPv4,
	}
	p, ok := known[t.Protocol]
	if t.Protocol == "icmp" && t.Source.Is6() {
		p = layers.IPProtocolICMPv6
	}
	return p, ok
}

func (t Tuple) network() (gopacket.SerializableLayer, gopacket.NetworkLayer) {
	protocol, _ := t.protocol()
	if t.Source.Is4() {
		ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: protocol, SrcIP: t.Source.AsSlice(), DstIP: t.Destination.AsSlice()}
		return ip, ip
	}
	ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: protocol, SrcIP: t.Source.AsSlice(), DstIP: t.Destination.AsSlice()}
	return ip, ip
}

func (t Tuple) transport(network gopacket.NetworkLayer) (gopacket.SerializableLayer, error) {
	switch protocol, ok := t.protocol(); {
	case !ok:
		return nil, fmt.Errorf("protocol %q is not one of tcp, udp, sctp, icmp", t.Protocol)
	case protocol == layers.IPProtocolTCP:
		tcp := &layers.TCP{SrcPort: layers.TCPPort(t.SourcePort), DstPort: layers.TCPPort(t.DestinationPort), ACK: true, Window: 1024}
		return tcp, tcp.SetNetworkLayerForChecksum(network)
	case protocol == layers.IPProtocolUDP:
		udp := &layers.UDP{SrcPort: layers.UDPPort(t.SourcePort), DstPort: layers.UDPPort(t.DestinationPort)}
		return udp, udp.SetNetworkLayerForChecksum(network)
	case protocol == layers.IPProtocolSCTP:
		return &layers.SCTP{SrcPort: layers.SCTPPort(t.SourcePort), DstPort: layers.SCTPPort(t.DestinationPort)}, nil
	case protocol == layers.IPProtocolICMPv6:
		icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeEchoRequest, 0)}
		return icmp, icmp.SetNetworkLayerForChecksum(network)
	}
	return &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoRequest, 0)}, nil
}

// headers are the fields that rules match, of the outermost addresses and ports.
type headers struct {
	sourceMAC, destinationMAC [6]byte
	etherType                 uint16
	vlans                     []uint16
	source, destination       netip.Addr
	protocol                  int // -1 = not IP
	ports                     bool
	sourcePort                uint16
	destinationPort           uint16
	flags                     uint8 // of TCP
	// payload as in kmod/classify/payload.h: after TCP, UDP, SCTP or ICMP, else after IP or the EtherType.
	payload []byte
	// unsure is why the ports are unknown: the packet is a fragment or could not be parsed. The kernel's classifier may know
	// more.
	unsure string
}

func parse(data []byte) headers {
	h := headers{protocol: -1}
	packet := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.DecodeOptions{NoCopy: true})
	for _, layer := range packet.Layers() {
		if h.layer(layer) {
			return h
		}
	}
	if failed := packet.ErrorLayer(); failed != nil {
		h.unsure = failed.Error().Error()
	}
	return h
}

// layer reads the fields of a layer, and reports whether to ignore all layers behind it.
func (h *headers) layer(layer gopacket.Layer) bool {
	switch l := layer.(type) {
	case *layers.Ethernet:
		h.sourceMAC, h.destinationMAC, h.etherType = [6]byte(l.SrcMAC), [6]byte(l.DstMAC), uint16(l.EthernetType)
	case *layers.Dot1Q:
		h.vlans, h.etherType = append(h.vlans, l.VLANIdentifier), uint16(l.Type)
	case *layers.IPv4:
		if h.protocol >= 0 {
			return true
		}
		h.addresses(l.SrcIP, l.DstIP)
		h.protocol = int(l.Protocol)
		if l.FragOffset > 0 || l.Flags&layers.IPv4MoreFragments != 0 {
			h.unsure = "it is a fragment"
		}
	case *layers.IPv6:
		if h.protocol >= 0 {
			return true
		}
		h.addresses(l.SrcIP, l.DstIP)
		h.protocol = int(l.NextHeader)
	case *layers.IPv6HopByHop:
		h.protocol = int(l.NextHeader)
	case *layers.IPv6Routing:
		h.protocol = int(l.NextHeader)
	case *layers.IPv6Destination:
		h.protocol = int(l.NextHeader)
	case *layers.IPv6Fragment:
		h.protocol, h.unsure = int(l.NextHeader), "it is a fragment"
	case gopacket.ErrorLayer:
		return false
	default:
		h.transport(layer)
		return true
	}
	h.payload = layer.LayerPayload()
	return false
}

func (h *headers) addresses(source, destination net.IP) {
	h.source, _ = netip.AddrFromSlice(source)
	h.destination, _ = netip.AddrFromSlice(destination)
}

// transport reads the fields of the layer behind IP.
func (h *headers) transport(layer gopacket.Layer) {
	switch l := layer.(type) {
	case *layers.TCP:
		h.setPorts(uint16(l.SrcPort), uint16(l.DstPort))
		h.flags = l.Contents[13]
	case *layers.UDP:
		h.setPorts(uint16(l.SrcPort), uint16(l.DstPort))
	case *layers.SCTP:
		h.setPorts(uint16(l.SrcPort), uint16(l.DstPort))
	case *layers.ICMPv4:
	case *layers.ICMPv6:
		// The library reads 4 of the 8 bytes of the header.
		h.payload = l.Payload[min(4, len(l.Payload)):]
		return
	default:
		return
	}
	h.payload = layer.LayerPayload()
}

func (h *headers) setPorts(source, destination uint16) {
	h.ports, h.sourcePort, h.destinationPort = true, source, destination
}

// exchanged returns the headers of the opposite direction.
func (h headers) exchanged() headers {
	h.sourceMAC, h.destinationMAC = h.destinationMAC, h.sourceMAC
	h.source, h.destination = h.destination, h.source
	h.sourcePort, h.destinationPort = h.destinationPort, h.sourcePort
	return h
}

// vlan returns the id of a tag, counted from the outermost, 0 for none.
func (h headers) vlan(number int) uint16 {
	if number < len(h.vlans) {
		return h.vlans[number]
	}
	return 0
}
