#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Prints vectors.txt: packets, what the classifier must find in each, and their flow hashes.

What is to be found is written down here by hand, beside each packet. The hash is computed by a second implementation,
from hash.h's description. Every engine must agree with vectors.txt.
"""

import struct

KEY = bytes(range(16))  # the key of all hashes in vectors.txt
MASK = (1 << 64) - 1

DST, SRC = bytes.fromhex("020000000001"), bytes.fromhex("0200000000fe")
V4A, V4B = bytes([192, 0, 2, 1]), bytes([198, 51, 100, 7])
V6A = bytes.fromhex("20010db8000000000000000000000001")
V6B = bytes.fromhex("20010db8ffff00000000000000abcdef")
VLAN, FRAGMENT = 2, 8  # RINGCAP_SLOT_*


def eth(ethertype, payload, tags=()):
    tagged = b"".join(struct.pack("!HH", tpid, tci) for tpid, tci in tags)
    return DST + SRC + tagged + struct.pack("!H", ethertype) + payload


def ipv4(proto, payload, options=b"", frag=0, first=None):
    ihl = 5 + len(options) // 4
    first = 0x40 | ihl if first is None else first
    head = struct.pack("!BBHHHBBH", first, 0, ihl * 4 + len(payload), 0x1234, frag, 64, proto, 0)
    return head + V4A + V4B + options + payload


def ipv6(nexthdr, payload, first=0x60):
    return struct.pack("!IHBB", first << 24, len(payload), nexthdr, 64) + V6A + V6B + payload


def ext(nexthdr, words=0):
    """A hop-by-hop, routing or destination options header of 8 * (words + 1) bytes."""
    return bytes([nexthdr, words]) + bytes(6 + 8 * words)


def ext6frag(nexthdr, offset, more):
    return struct.pack("!BBHI", nexthdr, 0, offset * 8 | more, 0xCAFE)


def ah(nexthdr, words=4):
    return bytes([nexthdr, words]) + bytes((words + 2) * 4 - 2)


def tcp(sport=40000, dport=443):
    return struct.pack("!HHIIBBHHH", sport, dport, 1, 0, 0x50, 2, 512, 0, 0)


def udp(sport=5353, dport=53):
    return struct.pack("!HHHH", sport, dport, 8, 0)


def sctp():
    return struct.pack("!HHII", 2905, 2906, 1, 0)


def mix(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def fold_ipv6(address, key):
    hi, lo = struct.unpack("!QQ", address)
    hi = (hi ^ key[0]) * 0xBF58476D1CE4E5B9 & MASK
    lo = (lo ^ key[1] ^ hi ^ hi >> 32) * 0x94D049BB133111EB & MASK
    return lo ^ lo >> 32


def flow_hash(flow, balance):
    key = struct.unpack("<QQ", KEY)
    if not flow["l3_off"]:
        ends, proto = [flow["smac"], flow["dmac"]], flow["l3_proto"]
    elif flow["l3_proto"] == 0x0800:
        ends = [int.from_bytes(flow[a][:4], "big") << 16 for a in ("saddr", "daddr")]
        proto = flow["l4_proto"]
    else:
        ends = [fold_ipv6(flow[a], key) for a in ("saddr", "daddr")]
        proto = 44 if flow["flags"] & FRAGMENT else flow["l4_proto"]
    if balance != "TWO_TUPLE":
        ends = [ends[0] ^ flow["sport"], ends[1] ^ flow["dport"]]
    rest = 0
    if balance in ("FLOW", "FIVE_TUPLE"):
        rest = proto
    if balance == "FLOW":
        rest |= (flow["vlan_tci"] & 0xFFF) << 16 | flow["inner_vid"] << 28
    ends.sort()
    h = mix(ends[0] ^ key[0])
    return mix(h ^ ends[1] ^ key[1] ^ rest * 0x9E3779B97F4A7C15 & MASK) >> 32


def end_hash(flow, end):
    """BOTH_ENDS: either address by itself."""
    key = struct.unpack("<QQ", KEY)
    mac, address = ("smac", "saddr") if end == 0 else ("dmac", "daddr")
    if not flow["l3_off"]:
        word = flow[mac]
    elif flow["l3_proto"] == 0x0800:
        word = int.from_bytes(flow[address][:4], "big") << 16
    else:
        word = fold_ipv6(flow[address], key)
    return mix(mix(word ^ key[0]) ^ key[1]) >> 32


NUMBERS = ("l3_proto", "l3_off", "l4_off", "l4_proto", "sport", "dport", "vlan_tpid", "vlan_tci", "inner_vid", "flags")
BALANCES = ("FLOW", "FIVE_TUPLE", "FOUR_TUPLE", "TWO_TUPLE")


def vector(name, frame, tag=(0, 0), macs=None, **found):
    """One line. `found` names what is not zero; packets with an IP header have the addresses above, others MACs."""
    flow = dict.fromkeys(NUMBERS, 0)
    flow.update(found)
    none = bytes(16)
    is_ip = flow["l3_off"] != 0
    if flow["l3_proto"] == 0x0800:
        addresses = V4A + bytes(12), V4B + bytes(12)
    else:
        addresses = V6A, V6B
    flow["saddr"], flow["daddr"] = addresses if is_ip else (none, none)
    has_macs = not is_ip if macs is None else macs
    flow["smac"] = int.from_bytes(SRC, "big") if has_macs else 0
    flow["dmac"] = int.from_bytes(DST, "big") if has_macs else 0
    columns = [name, "%04x" % tag[0], "%04x" % tag[1]]
    columns += ["%x" % flow[n] for n in NUMBERS]
    columns += [flow["saddr"].hex(), flow["daddr"].hex(), "%012x" % flow["smac"], "%012x" % flow["dmac"]]
    columns += ["%08x" % flow_hash(flow, b) for b in BALANCES]
    print(" ".join(columns + [frame.hex() or "-"]))


V4 = dict(l3_proto=0x0800, l3_off=14)
V6 = dict(l3_proto=0x86DD, l3_off=14)


def ipv4_vectors():
    vector("ipv4-tcp", eth(0x0800, ipv4(6, tcp())), **V4, l4_off=34, l4_proto=6, sport=40000, dport=443)
    vector("ipv4-udp", eth(0x0800, ipv4(17, udp())), **V4, l4_off=34, l4_proto=17, sport=5353, dport=53)
    vector("ipv4-sctp", eth(0x0800, ipv4(132, sctp())), **V4, l4_off=34, l4_proto=132, sport=2905, dport=2906)
    vector("ipv4-icmp", eth(0x0800, ipv4(1, bytes(8))), **V4, l4_off=34, l4_proto=1)
    vector("ipv4-gre", eth(0x0800, ipv4(47, bytes.fromhex("00000800"))), **V4, l4_off=34, l4_proto=47)
    vector("ipv4-options", eth(0x0800, ipv4(6, tcp(), b"\x94\x04\0\0" + b"\x01" * 36)),
           **V4, l4_off=74, l4_proto=6, sport=40000, dport=443)
    vector("ipv4-options-cut", eth(0x0800, ipv4(6, b"", b"\x01" * 8))[:40], **V4, l4_proto=6)
    vector("ipv4-dont-fragment", eth(0x0800, ipv4(17, udp(), frag=0x4000)),
           **V4, l4_off=34, l4_proto=17, sport=5353, dport=53)
    vector("ipv4-fragment-first", eth(0x0800, ipv4(17, udp(), frag=0x2000)), **V4, l4_off=34, l4_proto=17, flags=FRAGMENT)
    vector("ipv4-fragment-middle", eth(0x0800, ipv4(17, udp(), frag=0x2001)), **V4, l4_proto=17, flags=FRAGMENT)
    vector("ipv4-fragment-last", eth(0x0800, ipv4(17, udp(), frag=0x1FFF)), **V4, l4_proto=17, flags=FRAGMENT)
    vector("ipv4-header-only", eth(0x0800, ipv4(6, b"")), **V4, l4_proto=6)
    vector("ipv4-half-a-port", eth(0x0800, ipv4(6, b"\x01\xbb\x01")), **V4, l4_off=34, l4_proto=6)
    vector("ipv4-short-header-length", eth(0x0800, ipv4(6, tcp(), first=0x44)), l3_proto=0x0800)
    vector("ipv4-wrong-version", eth(0x0800, ipv4(6, tcp(), first=0x65)), l3_proto=0x0800)
    vector("ipv4-cut", eth(0x0800, ipv4(6, tcp()))[:33], l3_proto=0x0800)


def ipv6_vectors():
    ports = dict(sport=40000, dport=443)
    vector("ipv6-tcp", eth(0x86DD, ipv6(6, tcp())), **V6, l4_off=54, l4_proto=6, **ports)
    vector("ipv6-udp", eth(0x86DD, ipv6(17, udp())), **V6, l4_off=54, l4_proto=17, sport=5353, dport=53)
    vector("ipv6-sctp", eth(0x86DD, ipv6(132, sctp())), **V6, l4_off=54, l4_proto=132, sport=2905, dport=2906)
    vector("ipv6-icmpv6", eth(0x86DD, ipv6(58, bytes(8))), **V6, l4_off=54, l4_proto=58)
    vector("ipv6-hop-by-hop", eth(0x86DD, ipv6(0, ext(6) + tcp())), **V6, l4_off=62, l4_proto=6, **ports)
    vector("ipv6-routing", eth(0x86DD, ipv6(43, ext(6, 2) + tcp())), **V6, l4_off=78, l4_proto=6, **ports)
    vector("ipv6-destination-options", eth(0x86DD, ipv6(60, ext(6, 1) + tcp())), **V6, l4_off=70, l4_proto=6, **ports)
    vector("ipv6-ah", eth(0x86DD, ipv6(51, ah(6) + tcp())), **V6, l4_off=78, l4_proto=6, **ports)
    vector("ipv6-esp", eth(0x86DD, ipv6(50, bytes(16))), **V6, l4_off=54, l4_proto=50)
    chain = ext(60) + ext(43, 1) + ext(51) + ah(60, 1) + ext(6)
    vector("ipv6-rfc8200-order", eth(0x86DD, ipv6(0, chain + tcp())), **V6, l4_off=106, l4_proto=6, **ports)
    vector("ipv6-six-headers", eth(0x86DD, ipv6(60, ext(60) * 5 + ext(6) + tcp())), **V6, l4_off=102, l4_proto=6, **ports)
    vector("ipv6-seven-headers", eth(0x86DD, ipv6(60, ext(60) * 6 + ext(6) + tcp())), **V6, l4_proto=60)
    vector("ipv6-no-next-header", eth(0x86DD, ipv6(59, bytes(4))), **V6, l4_proto=59)
    vector("ipv6-header-cut", eth(0x86DD, ipv6(60, ext(6)))[:61], **V6, l4_proto=60)
    vector("ipv6-header-longer-than-packet", eth(0x86DD, ipv6(60, bytes([6, 255]) + bytes(30))), **V6, l4_proto=6)
    vector("ipv6-wrong-version", eth(0x86DD, ipv6(6, tcp(), first=0x40)), l3_proto=0x86DD)
    vector("ipv6-cut", eth(0x86DD, ipv6(6, tcp()))[:53], l3_proto=0x86DD)


def ipv6_fragment_vectors():
    part = dict(**V6, flags=FRAGMENT)
    vector("ipv6-fragment-first", eth(0x86DD, ipv6(44, ext6frag(17, 0, 1) + udp())), **part, l4_off=62, l4_proto=17)
    vector("ipv6-fragment-later", eth(0x86DD, ipv6(44, ext6frag(17, 1, 1) + udp())), **part, l4_proto=17)
    vector("ipv6-fragment-last", eth(0x86DD, ipv6(44, ext6frag(17, 8191, 0) + udp())), **part, l4_proto=17)
    vector("ipv6-fragment-other-protocol", eth(0x86DD, ipv6(44, ext6frag(6, 1, 0) + udp())), **part, l4_proto=6)
    vector("ipv6-fragment-first-with-options", eth(0x86DD, ipv6(44, ext6frag(60, 0, 1) + ext(17) + udp())),
           **part, l4_off=70, l4_proto=17)
    vector("ipv6-fragment-after-hop-by-hop", eth(0x86DD, ipv6(0, ext(44) + ext6frag(17, 2, 0) + udp())),
           **part, l4_proto=17)
    vector("ipv6-fragment-atomic", eth(0x86DD, ipv6(44, ext6frag(17, 0, 0) + udp())),
           **V6, l4_off=62, l4_proto=17, sport=5353, dport=53)


def tag_vectors():
    q, ad, q1 = (0x8100, 0xA064), (0x88A8, 0x0FFF), (0x9100, 0x0005)
    packet = ipv4(6, tcp())
    ports = dict(l4_proto=6, sport=40000, dport=443)
    one = dict(vlan_tpid=0x8100, vlan_tci=0xA064, flags=VLAN)
    two = dict(vlan_tpid=0x88A8, vlan_tci=0x0FFF, inner_vid=0x64, flags=VLAN)
    vector("vlan", eth(0x0800, packet, [q]), l3_proto=0x0800, l3_off=18, l4_off=38, **ports, **one)
    vector("vlan-out-of-band", eth(0x0800, packet), q, l3_proto=0x0800, l3_off=18, l4_off=38, **ports, **one)
    vector("vlan-priority-only", eth(0x0800, packet, [(0x8100, 0xE000)]), l3_proto=0x0800, l3_off=18, l4_off=38, **ports,
           vlan_tpid=0x8100, vlan_tci=0xE000, flags=VLAN)
    vector("qinq", eth(0x0800, packet, [ad, q]), l3_proto=0x0800, l3_off=22, l4_off=42, **ports, **two)
    vector("qinq-outer-out-of-band", eth(0x0800, packet, [q]), ad, l3_proto=0x0800, l3_off=22, l4_off=42, **ports, **two)
    vector("qinq-0x9100", eth(0x0800, packet, [q1, q]), l3_proto=0x0800, l3_off=22, l4_off=42, **ports,
           vlan_tpid=0x9100, vlan_tci=5, inner_vid=0x64, flags=VLAN)
    vector("four-tags", eth(0x0800, packet, [ad, q, q1, q]), l3_proto=0x0800, l3_off=30, l4_off=50, **ports, **two)
    vector("four-tags-outer-out-of-band", eth(0x0800, packet, [q, q1, q]), ad,
           l3_proto=0x0800, l3_off=30, l4_off=50, **ports, **two)
    vector("five-tags", eth(0x0800, packet, [ad, q, q1, q, q]), l3_proto=0x8100, **two)
    vector("five-tags-outer-out-of-band", eth(0x0800, packet, [q, q1, q, q]), ad, l3_proto=0x8100, **two)
    vector("vlan-ipv6", eth(0x86DD, ipv6(17, udp()), [q]), l3_proto=0x86DD, l3_off=18, l4_off=58,
           l4_proto=17, sport=5353, dport=53, **one)
    vector("vlan-fragment", eth(0x0800, ipv4(17, udp(), frag=3), [q]), l3_proto=0x0800, l3_off=18, l4_proto=17,
           vlan_tpid=0x8100, vlan_tci=0xA064, flags=VLAN | FRAGMENT)
    vector("vlan-arp", eth(0x0806, bytes(28), [q]), l3_proto=0x0806, **one)
    vector("vlan-tag-cut", eth(0x0800, packet, [q])[:15])
    vector("vlan-type-cut", eth(0x0800, packet, [q])[:17], **one)
    vector("vlan-out-of-band-type-cut", eth(0x0800, packet)[:13], q, **one)


def other_vectors():
    vector("arp", eth(0x0806, bytes(28)), l3_proto=0x0806)
    vector("lldp", eth(0x88CC, bytes(40)), l3_proto=0x88CC)
    vector("mpls", eth(0x8847, bytes.fromhex("00010140") + ipv4(6, tcp())), l3_proto=0x8847)
    vector("ieee-802.3", eth(38, bytes.fromhex("424203") + bytes(35)))
    vector("empty", b"", macs=False)
    vector("macs-cut", (DST + SRC)[:11], macs=False)
    vector("macs-only", DST + SRC)
    vector("type-cut", eth(0x0800, b"")[:13])


def limit_vectors():
    """Nothing from byte 256 of the wire on is looked at, wherever the tag is held."""
    q = (0x8100, 0x0007)
    one = dict(vlan_tpid=0x8100, vlan_tci=7, flags=VLAN)
    long = ext(60, 22) + ext(6)  # 192 bytes: ports in the last 10 of 256 bytes
    ports = dict(sport=40000, dport=443)
    vector("limit-ports-before", eth(0x86DD, ipv6(60, long + tcp())), **V6, l4_off=246, l4_proto=6, **ports)
    vector("limit-tagged-ports-before", eth(0x86DD, ipv6(60, long + tcp()), [q]),
           l3_proto=0x86DD, l3_off=18, l4_off=250, l4_proto=6, **ports, **one)
    vector("limit-qinq-ports-across", eth(0x86DD, ipv6(60, long + tcp()), [q, q]),
           l3_proto=0x86DD, l3_off=22, l4_off=254, l4_proto=6, inner_vid=7, **one)
    vector("limit-qinq-out-of-band-ports-across", eth(0x86DD, ipv6(60, long + tcp()), [q]), q,
           l3_proto=0x86DD, l3_off=22, l4_off=254, l4_proto=6, inner_vid=7, **one)
    vector("limit-header-across", eth(0x86DD, ipv6(60, ext(60, 23) + ext(6) + tcp()), [q]),
           l3_proto=0x86DD, l3_off=18, l4_proto=60, **one)
    vector("limit-transport-behind", eth(0x86DD, ipv6(60, ext(6, 24) + tcp()), [q]),
           l3_proto=0x86DD, l3_off=18, l4_proto=6, **one)


def main():
    print("# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause")
    print("# Made by vectors.py. All numbers hexadecimal; hashes under the key", KEY.hex())
    print("# name tag-out-of-band: tpid tci;", *NUMBERS, "saddr daddr smac dmac", "hash:", *BALANCES, "frame")
    ipv4_vectors()
    ipv6_vectors()
    ipv6_fragment_vectors()
    tag_vectors()
    other_vectors()
    limit_vectors()


if __name__ == "__main__":
    main()
