// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// answer to whether a rule matches.
type answer int

const (
	no answer = iota
	yes
	// perhaps: only the kernel's classifier knows.
	perhaps
)

// decide finds the rule that decides on a packet: its place, -1 = none. unknown is a rule of higher rank that may match.
func decide(rules []v1.Rule, h headers) (decided, unknown int) {
	decided, unknown = -1, -1
	for _, i := range ranks(rules) {
		switch matches(rules[i].Match, h) {
		case yes:
			return i, unknown
		case perhaps:
			if unknown < 0 {
				unknown = i
			}
		}
	}
	return decided, unknown
}

// ranks are the places of rules, the one that decides first first.
func ranks(rules []v1.Rule) []int {
	order := make([]int, len(rules))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(rules[b].Priority) - int(rules[a].Priority) })
	return order
}

// name is what people call a rule.
func name(rules []v1.Rule, place int) string {
	if n := rules[place].Name; n != "" {
		return fmt.Sprintf("rule %q", n)
	}
	return fmt.Sprintf("rule %d", place+1)
}

func matches(m v1.RuleMatch, h headers) answer {
	is := matchesOneWay(m, h)
	if is != yes && m.Bidirectional {
		is = max(is, matchesOneWay(m, h.exchanged()))
		if matchesOneWay(m, h.exchanged()) == yes {
			is = yes
		}
	}
	return is
}

func matchesOneWay(m v1.RuleMatch, h headers) answer {
	if !link(m, h) || !network(m, h) {
		return no
	}
	if m.TunnelID != nil || m.InnerSource != "" || m.InnerDestination != "" {
		return perhaps
	}
	if m.SourcePort == nil && m.DestinationPort == nil && len(m.TCPFlagsSet)+len(m.TCPFlagsClear) == 0 {
		return yes
	}
	if h.unsure != "" {
		return perhaps
	}
	if transport(m, h) {
		return yes
	}
	return no
}

func link(m v1.RuleMatch, h headers) bool {
	return macIs(m.SourceMAC, h.sourceMAC) && macIs(m.DestinationMAC, h.destinationMAC) &&
		(m.EtherType == nil || *m.EtherType == int32(h.etherType)) &&
		(m.VLAN == nil || *m.VLAN == h.vlan(0)) && (m.InnerVLAN == nil || *m.InnerVLAN == h.vlan(1))
}

func macIs(want string, is net.HardwareAddr) bool {
	return want == "" || strings.EqualFold(want, is.String())
}

func network(m v1.RuleMatch, h headers) bool {
	return within(m.Source, h.source) && within(m.Destination, h.destination) &&
		(m.Protocol == nil || protocolNumber(*m.Protocol) == h.protocol)
}

func within(want string, is netip.Addr) bool {
	if want == "" {
		return true
	}
	if prefix, err := netip.ParsePrefix(want); err == nil {
		return prefix.Masked().Contains(is)
	}
	address, err := netip.ParseAddr(want)
	return err == nil && address == is
}

func protocolNumber(p intstr.IntOrString) int {
	if p.Type == intstr.Int {
		return int(p.IntVal)
	}
	numbers := map[string]int{"TCP": 6, "UDP": 17, "SCTP": 132, "ICMP": 1, "ICMPv6": 58, "GRE": 47}
	if n, ok := numbers[p.StrVal]; ok {
		return n
	}
	return -2
}

func transport(m v1.RuleMatch, h headers) bool {
	has := func(f v1.TCPFlag) bool { return slices.Contains(h.flags, string(f)) }
	if len(m.TCPFlagsSet)+len(m.TCPFlagsClear) > 0 && h.protocol != 6 {
		return false
	}
	for _, f := range m.TCPFlagsSet {
		if !has(f) {
			return false
		}
	}
	if slices.ContainsFunc(m.TCPFlagsClear, has) {
		return false
	}
	return portIs(m.SourcePort, h.ports, h.sourcePort) && portIs(m.DestinationPort, h.ports, h.destinationPort)
}

func portIs(want *intstr.IntOrString, there bool, is uint16) bool {
	if want == nil {
		return true
	}
	if want.Type == intstr.Int {
		return there && want.IntVal == int32(is)
	}
	from, to, _ := strings.Cut(want.StrVal, "-")
	low, errLow := strconv.ParseUint(from, 10, 16)
	high, errHigh := strconv.ParseUint(to, 10, 16)
	return there && errLow == nil && errHigh == nil && uint64(is) >= low && uint64(is) <= high
}
