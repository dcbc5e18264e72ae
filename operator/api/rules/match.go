// SPDX-License-Identifier: Apache-2.0

// Package rules parses and checks the rules of a CaptureRing's filter.
package rules

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Match is a v1alpha1.RuleMatch, parsed. A nil pointer or zero prefix matches everything.
type Match struct {
	SourceMAC, DestinationMAC     *[6]byte
	EtherType, VLAN, InnerVLAN    *uint16
	Protocol                      *uint8
	Source, Destination           netip.Prefix
	SourcePorts, DestinationPorts *Ports
	TCPFlags                      *TCPFlags
	TunnelID                      *uint32
	InnerSource, InnerDestination netip.Prefix
	Both                          bool
}

// Ports is a range from First to Last, both included.
type Ports struct{ First, Last uint16 }

// TCPFlags matches if the flags of the TCP header, masked, equal Flags.
type TCPFlags struct{ Flags, Mask uint8 }

// The numbers of the protocols that can be given by name.
const (
	ICMP, TCP, UDP, GRE, ICMPv6, SCTP = 1, 6, 17, 47, 58, 132
)

var protocols = map[string]uint8{"ICMP": ICMP, "TCP": TCP, "UDP": UDP, "GRE": GRE, "ICMPv6": ICMPv6, "SCTP": SCTP}

var flagBits = map[v1.TCPFlag]uint8{
	v1.TCPFlagFIN: 1, v1.TCPFlagSYN: 2, v1.TCPFlagRST: 4, v1.TCPFlagPSH: 8,
	v1.TCPFlagACK: 16, v1.TCPFlagURG: 32, v1.TCPFlagECE: 64, v1.TCPFlagCWR: 128,
}

// Parse parses a match. The error names the field and the valid values.
func Parse(m v1.RuleMatch) (Match, error) {
	var p parser
	out := Match{
		SourceMAC: p.mac("sourceMAC", m.SourceMAC), DestinationMAC: p.mac("destinationMAC", m.DestinationMAC),
		EtherType: p.number("etherType", m.EtherType, 0xffff), VLAN: p.number("vlan", m.VLAN, 4094),
		InnerVLAN: p.number("innerVLAN", m.InnerVLAN, 4094), Protocol: p.protocol(m.Protocol),
		Source: p.prefix("source", m.Source), Destination: p.prefix("destination", m.Destination),
		SourcePorts: p.ports("sourcePort", m.SourcePort), DestinationPorts: p.ports("destinationPort", m.DestinationPort),
		TCPFlags: p.flags(m.TCPFlagsSet, m.TCPFlagsClear), TunnelID: p.tunnel(m.TunnelID),
		InnerSource: p.prefix("innerSource", m.InnerSource), InnerDestination: p.prefix("innerDestination", m.InnerDestination),
		Both: m.Bidirectional,
	}
	p.sameFamily("source", out.Source, "destination", out.Destination)
	p.sameFamily("innerSource", out.InnerSource, "innerDestination", out.InnerDestination)
	return out, errors.Join(p...)
}

// parser collects errors.
type parser []error

func (p *parser) refuse(field string, value any, what string) {
	*p = append(*p, fmt.Errorf("match.%s %v: must be %s", field, value, what))
}

func (p *parser) mac(field, text string) *[6]byte {
	if text == "" {
		return nil
	}
	mac, err := net.ParseMAC(text)
	if err != nil || len(mac) != 6 {
		p.refuse(field, text, "a MAC address such as 02:00:00:00:00:01")
		return nil
	}
	return (*[6]byte)(mac)
}

func (p *parser) number(field string, n *int32, greatest int32) *uint16 {
	if n == nil {
		return nil
	}
	if *n < 0 || *n > greatest {
		p.refuse(field, *n, fmt.Sprintf("0 to %d", greatest))
		return nil
	}
	small := uint16(*n)
	return &small
}

func (p *parser) protocol(value *intstr.IntOrString) *uint8 {
	if value == nil {
		return nil
	}
	number, known := protocols[value.StrVal]
	if value.Type == intstr.Int {
		number, known = uint8(value.IntVal), value.IntVal >= 0 && value.IntVal <= 255
	}
	if !known {
		p.refuse("protocol", value, "TCP, UDP, SCTP, ICMP, ICMPv6, GRE, or a number from 0 to 255")
		return nil
	}
	return &number
}

func (p *parser) prefix(field, text string) netip.Prefix {
	if text == "" {
		return netip.Prefix{}
	}
	if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" {
		address = address.Unmap()
		return netip.PrefixFrom(address, address.BitLen())
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil || prefix.Addr().Is4In6() {
		p.refuse(field, text, "an address or a prefix such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32")
		return netip.Prefix{}
	}
	return prefix.Masked()
}

func (p *parser) ports(field string, value *intstr.IntOrString) *Ports {
	if value == nil {
		return nil
	}
	first, last, isRange := strings.Cut(value.String(), "-")
	if !isRange {
		last = first
	}
	low, lowErr := strconv.ParseUint(first, 10, 16)
	high, highErr := strconv.ParseUint(last, 10, 16)
	if lowErr != nil || highErr != nil || low > high {
		p.refuse(field, value, "a port from 0 to 65535, or a range from the lesser to the greater such as 1024-65535")
		return nil
	}
	return &Ports{First: uint16(low), Last: uint16(high)}
}

func (p *parser) flags(set, clear []v1.TCPFlag) *TCPFlags {
	if len(set)+len(clear) == 0 {
		return nil
	}
	var out TCPFlags
	for _, flag := range set {
		out.Flags |= p.flag("tcpFlagsSet", flag)
	}
	out.Mask = out.Flags
	for _, flag := range clear {
		bit := p.flag("tcpFlagsClear", flag)
		if out.Flags&bit != 0 {
			p.refuse("tcpFlagsClear", flag, "a flag that tcpFlagsSet does not have")
		}
		out.Mask |= bit
	}
	return &out
}

func (p *parser) flag(field string, flag v1.TCPFlag) uint8 {
	bit, known := flagBits[flag]
	if !known {
		p.refuse(field, flag, "FIN, SYN, RST, PSH, ACK, URG, ECE or CWR")
	}
	return bit
}

func (p *parser) tunnel(id *int64) *uint32 {
	if id == nil {
		return nil
	}
	if *id < 0 || *id > 0xffffffff {
		p.refuse("tunnelID", *id, "0 to 4294967295")
		return nil
	}
	small := uint32(*id)
	return &small
}

func (p *parser) sameFamily(field string, a netip.Prefix, other string, b netip.Prefix) {
	if a.IsValid() && b.IsValid() && a.Addr().Is4() != b.Addr().Is4() {
		p.refuse(other, b, fmt.Sprintf("of the same IP version as %s %s", field, a))
	}
}
