// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"encoding/binary"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// maxIdleSeconds is the longest idle time of a rule: see struct ringcap_exact.
const maxIdleSeconds = 1_000_000

// isFlow reports whether the rule names a flow: rc_exact_refusal of the module.
func (r *flowRule) isFlow() bool {
	switch {
	case r.L3Proto != unix.ETH_P_IP && r.L3Proto != unix.ETH_P_IPV6:
		return false
	case r.L3Proto == unix.ETH_P_IP && ([12]byte(r.Saddr[4:]) != [12]byte{} || [12]byte(r.Daddr[4:]) != [12]byte{}):
		return false
	case r.VlanID > 4095:
		return false
	}
	return r.Sport|r.Dport == 0 || hasPortsProtocol(r.L4Proto)
}

// mayShunt reports whether a consumer may shunt the flow as the rule says.
func (r *flowRule) mayShunt() bool {
	return r.isFlow() && r.Target == 0 && r.IdleS <= maxIdleSeconds && r.Action == uint8(capture.ActionDrop)
}

// ends returns the flow's ends.
func (r *flowRule) ends() (source, destination netip.AddrPort) {
	a, b := netip.AddrFrom16(r.Saddr), netip.AddrFrom16(r.Daddr)
	if r.L3Proto == unix.ETH_P_IP {
		a, b = netip.AddrFrom4([4]byte(r.Saddr[:4])), netip.AddrFrom4([4]byte(r.Daddr[:4]))
	}
	return netip.AddrPortFrom(a, r.Sport), netip.AddrPortFrom(b, r.Dport)
}

// key returns the key of the rule's flow, and whether the rule names the greater end first.
func (r *flowRule) key() (key exactKey, swapped bool) {
	source, destination := r.ends()
	rule := capture.ExactRule{Source: source, Destination: destination, VLAN: r.VlanID, Protocol: r.L4Proto}
	return exactKeyOf(rule), source.Compare(destination) > 0
}

// state returns a shunted flow as the consumer named it, and what was counted.
func (p shuntPlace) state(now uint64) flowState {
	w := p.W
	state := flowState{
		Rule: flowRule{
			Sport: uint16(w[0] >> 16), Dport: uint16(w[0]), L3Proto: unix.ETH_P_IP, VlanID: uint16(w[0]>>40) & 0xfff,
			L4Proto: uint8(w[0] >> 32), Action: uint8(capture.ActionDrop), IdleS: p.IdleS,
		},
		Counts: flowCounts{Packets: p.Packets, Bytes: p.Bytes, IdleMs: p.idleMs(now), Flags: countsShunted},
	}
	r := &state.Rule
	if w[0]>>60 == 0 {
		binary.BigEndian.PutUint32(r.Saddr[:], uint32(w[1]>>32))
		binary.BigEndian.PutUint32(r.Daddr[:], uint32(w[1]))
	} else {
		r.L3Proto = unix.ETH_P_IPV6
		for i, word := range w[1:3] {
			binary.BigEndian.PutUint64(r.Saddr[8*i:], word)
		}
		for i, word := range w[3:5] {
			binary.BigEndian.PutUint64(r.Daddr[8*i:], word)
		}
	}
	if p.Swapped != 0 {
		r.Saddr, r.Daddr, r.Sport, r.Dport = r.Daddr, r.Saddr, r.Dport, r.Sport
	}
	return state
}

// idleMs returns the milliseconds since the last packet. A packet may have come after the clock was read.
func (p shuntPlace) idleMs(now uint64) uint32 {
	idle := max(int64(now-p.Last), 0) / int64(time.Millisecond)
	return uint32(min(idle, 1<<32-1))
}

// isIdle reports whether the flow had no packet for its idle time.
func (p shuntPlace) isIdle(now uint64) bool {
	return p.IdleS != 0 && int64(now-p.Last) >= int64(p.IdleS)*int64(time.Second)
}
