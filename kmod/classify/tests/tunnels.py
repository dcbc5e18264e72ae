#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Prints tunnels.txt: tunnels' packets, and what the classifier must find inside of each.

As in vectors.py, what is to be found is written down by hand, and hashes come from a second implementation.
"""

import struct

import vectors as v

MPLS, IPIP, GRE, ERSPAN, VXLAN, GENEVE, GTPU = range(1, 8)  # enum rc_tunnel

# The outer packets have addresses of their own.
OUT4A, OUT4B = bytes([203, 0, 113, 1]), bytes([203, 0, 113, 99])
OUT6A, OUT6B = bytes.fromhex("fd00" + "00" * 13 + "01"), bytes.fromhex("fd00" + "00" * 13 + "02")
OUTER_MACS = bytes.fromhex("02aaaaaaaa01" + "02aaaaaaaa02")


def out4(proto, payload, frag=0, options=b""):
    ihl = 5 + len(options) // 4
    head = struct.pack("!BBHHHBBH", 0x40 | ihl, 0, ihl * 4 + len(payload), 7, frag, 64, proto, 0)
    return head + OUT4A + OUT4B + options + payload


def out6(proto, payload):
    return struct.pack("!IHBB", 6 << 28, len(payload), proto, 64) + OUT6A + OUT6B + payload


def outer(ethertype, payload, tags=()):
    tagged = b"".join(struct.pack("!HH", *tag) for tag in tags)
    return OUTER_MACS + tagged + struct.pack("!H", ethertype) + payload


def over4(proto, payload, **how):
    return outer(0x0800, out4(proto, payload, **how))


def over6(proto, payload):
    return outer(0x86DD, out6(proto, payload))


def udp(port, payload):
    return struct.pack("!HHHH", 51234, port, 8 + len(payload), 0) + payload


def gre(proto, payload, flags=0, key=None, sequence=False, checksum=False):
    flags |= (0x8000 if checksum else 0) | (0x2000 if key is not None else 0) | (0x1000 if sequence else 0)
    head = struct.pack("!HH", flags, proto) + (bytes(4) if checksum else b"")
    head += struct.pack("!I", key) if key is not None else b""
    return head + (struct.pack("!I", 99) if sequence else b"") + payload


def vxlan(vni, payload, flags=0x08):
    return udp(4789, struct.pack("!II", flags << 24, vni << 8) + payload)


def geneve(vni, proto, payload, options=0, version=0):
    head = struct.pack("!BBHI", version << 6 | options, 0, proto, vni << 8)
    return udp(6081, head + b"\xee" * (4 * options) + payload)


def gtpu(teid, payload, flags=0, rest=b"", kind=255):
    head = struct.pack("!BBHI", 0x30 | flags, kind, len(rest) + len(payload), teid)
    return udp(2152, head + rest + payload)


def gtp_ext(kind, words, following):
    """The type of an extension header, and it; its last byte is the type of what follows."""
    return bytes([kind]), bytes([words]) + bytes(4 * words - 2) + bytes([following])


def erspan2(session, payload):
    return gre(0x88BE, struct.pack("!HHI", 0x1064, 0xE000 | session, 1) + payload, sequence=True)


def erspan3(session, payload, frame_type=0, subheader=False):
    last = frame_type << 10 | (1 if subheader else 0)
    head = struct.pack("!HHIHH", 0x2064, 0xE000 | session, 12345, 0, last)
    return gre(0x22EB, head + (bytes(8) if subheader else b"") + payload, sequence=True)


def labels(count, payload):
    return b"".join(struct.pack("!I", 1000 + i << 12 | (i == count - 1) << 8 | 64) for i in range(count)) + payload


TCP4, UDP6, TCP6 = v.ipv4(6, v.tcp()), v.ipv6(17, v.udp()), v.ipv6(6, v.tcp())
F_TCP4 = dict(l3_proto=0x0800, l4_proto=6, sport=40000, dport=443)
F_UDP6 = dict(l3_proto=0x86DD, l4_proto=17, sport=5353, dport=53)
Q = (0x8100, 0xA064)
F_Q = dict(vlan_tpid=0x8100, vlan_tci=0xA064, flags=v.VLAN)


def line(name, frame, tunnel=0, tunnel_id=None, tag=(0, 0), at=0, eth=False, **found):
    """@at: where the innermost IP header is (or, of what is not IP, 0); the transport header follows behind 20 or 40 bytes."""
    flow = dict.fromkeys(v.NUMBERS, 0)
    if at:
        flow["l3_off"] = at
        flow["l4_off"] = at + (20 if found["l3_proto"] == 0x0800 else 40)
    flow.update(found)
    none = bytes(16)
    addresses = (v.V4A + bytes(12), v.V4B + bytes(12)) if flow["l3_proto"] == 0x0800 else (v.V6A, v.V6B)
    flow["saddr"], flow["daddr"] = addresses if at else (none, none)
    flow["smac"] = int.from_bytes(v.SRC, "big") if eth else 0
    flow["dmac"] = int.from_bytes(v.DST, "big") if eth else 0
    columns = [name, "%04x" % tag[0], "%04x" % tag[1], "%x" % tunnel, "%x" % (tunnel_id is not None), "%x" % (tunnel_id or 0)]
    columns += ["%x" % flow[n] for n in v.NUMBERS]
    columns += [flow["saddr"].hex(), flow["daddr"].hex(), "%012x" % flow["smac"], "%012x" % flow["dmac"]]
    tcp = flow["l4_proto"] == 6 and not flow["flags"] & v.FRAGMENT
    columns += ["%08x" % v.flow_hash(flow, b) for b in ("FLOW", "FIVE_TUPLE" if tcp else "TWO_TUPLE")]
    columns += ["%08x" % v.end_hash(flow, end) for end in (0, 1)]
    print(" ".join(columns + [frame.hex()]))


def ip_in_ip():
    line("ipip", over4(4, TCP4), IPIP, at=34, **F_TCP4)
    line("ipip-outer-options", over4(4, TCP4, options=b"\x01" * 8), IPIP, at=42, **F_TCP4)
    line("6in4", over4(41, UDP6), IPIP, at=34, **F_UDP6)
    line("4in6", over6(4, TCP4), IPIP, at=54, **F_TCP4)
    line("6in6", over6(41, UDP6), IPIP, at=54, **F_UDP6)
    line("6in6-destination-options", over6(60, v.ext(41) + UDP6), IPIP, at=62, **F_UDP6)
    line("ipip-outer-vlan", outer(0x0800, out4(4, TCP4), [Q]), IPIP, at=38, **F_TCP4)
    line("ipip-outer-vlan-out-of-band", over4(4, TCP4), IPIP, tag=Q, at=38, **F_TCP4)
    line("ipip-inner-fragment", over4(4, v.ipv4(17, v.udp(), frag=0x2001)), IPIP, at=34, l3_proto=0x0800, l4_proto=17,
         l4_off=0, flags=v.FRAGMENT)
    line("ipip-outer-first-fragment", over4(4, TCP4, frag=0x2000))
    line("ipip-outer-later-fragment", over4(4, TCP4, frag=3))
    line("ipip-inner-cut", over4(4, TCP4[:19]))
    line("ipip-inner-not-ip", over4(4, b"\x75" + TCP4[1:]))
    line("ipip-empty", over4(4, b""))
    line("not-a-tunnel", over4(6, v.tcp()))


def gre_tunnels():
    line("gre", over4(47, gre(0x0800, TCP4)), GRE, at=38, **F_TCP4)
    line("gre-ipv6", over4(47, gre(0x86DD, UDP6)), GRE, at=38, **F_UDP6)
    line("gre-over-ipv6", over6(47, gre(0x0800, TCP4)), GRE, at=58, **F_TCP4)
    line("gre-key", over4(47, gre(0x0800, TCP4, key=0xDEADBEEF)), GRE, 0xDEADBEEF, at=42, **F_TCP4)
    line("gre-key-0", over4(47, gre(0x0800, TCP4, key=0)), GRE, 0, at=42, **F_TCP4)
    line("gre-checksum", over4(47, gre(0x0800, TCP4, checksum=True)), GRE, at=42, **F_TCP4)
    line("gre-sequence", over4(47, gre(0x0800, TCP4, sequence=True)), GRE, at=42, **F_TCP4)
    line("gre-all-fields", over4(47, gre(0x0800, TCP4, key=5, sequence=True, checksum=True)), GRE, 5, at=50, **F_TCP4)
    line("nvgre", over4(47, gre(0x6558, v.eth(0x0800, TCP4), key=0x123456AB)), GRE, 0x123456AB, at=56, **F_TCP4)
    line("gretap-vlan", over4(47, gre(0x6558, v.eth(0x0800, TCP4, [Q]))), GRE, at=56, **F_TCP4, **F_Q)
    line("gre-source-route", over4(47, gre(0x0800, TCP4, flags=0x4000)))
    line("gre-pptp", over4(47, gre(0x0800, TCP4, flags=1)))
    line("gre-unknown-protocol", over4(47, gre(0x1234, TCP4)))
    line("gre-cut", over4(47, gre(0x0800, b"")[:3]))
    line("gre-key-cut", over4(47, gre(0x0800, b"", key=1)[:7]))
    line("gre-mpls", over4(47, gre(0x8847, labels(2, TCP4))), MPLS, at=46, **F_TCP4)


def erspan():
    frame = v.eth(0x0800, TCP4)
    line("erspan1", over4(47, gre(0x88BE, frame)), ERSPAN, at=52, **F_TCP4)
    line("erspan2", over4(47, erspan2(0x155, frame)), ERSPAN, 0x155, at=64, **F_TCP4)
    line("erspan2-vlan", over4(47, erspan2(3, v.eth(0x86DD, UDP6, [Q]))), ERSPAN, 3, at=68, **F_UDP6, **F_Q)
    line("erspan2-arp", over4(47, erspan2(3, v.eth(0x0806, bytes(28)))), ERSPAN, 3, eth=True, l3_proto=0x0806)
    line("erspan2-wrong-version", over4(47, gre(0x88BE, struct.pack("!II", 0x30640000, 0) + frame, sequence=True)))
    line("erspan3", over4(47, erspan3(0x2AA, frame)), ERSPAN, 0x2AA, at=68, **F_TCP4)
    line("erspan3-subheader", over4(47, erspan3(1, frame, subheader=True)), ERSPAN, 1, at=76, **F_TCP4)
    line("erspan3-ip", over4(47, erspan3(1, TCP4, frame_type=2)), ERSPAN, 1, at=54, **F_TCP4)
    line("erspan3-other-frame", over4(47, erspan3(1, TCP4, frame_type=3)))
    line("erspan3-cut", over4(47, erspan3(1, b"")[:19]))


def over_udp():
    frame = v.eth(0x0800, TCP4)
    line("vxlan", over4(17, vxlan(0xABCDEF, frame)), VXLAN, 0xABCDEF, at=64, **F_TCP4)
    line("vxlan-over-ipv6", over6(17, vxlan(1, v.eth(0x86DD, UDP6))), VXLAN, 1, at=84, **F_UDP6)
    line("vxlan-vlan", over4(17, vxlan(1, v.eth(0x0800, TCP4, [Q]))), VXLAN, 1, at=68, **F_TCP4, **F_Q)
    line("vxlan-qinq", over4(17, vxlan(1, v.eth(0x0800, TCP4, [(0x88A8, 9), Q]))), VXLAN, 1, at=72, **F_TCP4,
         vlan_tpid=0x88A8, vlan_tci=9, inner_vid=0x64, flags=v.VLAN)
    line("vxlan-outer-vlan-out-of-band", over4(17, vxlan(1, frame)), VXLAN, 1, tag=Q, at=68, **F_TCP4)
    line("vxlan-arp", over4(17, vxlan(1, v.eth(0x0806, bytes(28)))), VXLAN, 1, eth=True, l3_proto=0x0806)
    line("vxlan-without-vni", over4(17, vxlan(1, frame, flags=0)))
    line("vxlan-header-cut", over4(17, vxlan(1, b"")[:-1]))
    line("vxlan-frame-cut", over4(17, vxlan(1, frame[:13])))
    line("vxlan-inner-ip-cut", over4(17, vxlan(1, frame[:33])))
    line("vxlan-inner-ports-cut", over4(17, vxlan(1, frame[:36])), VXLAN, 1, at=64, l3_proto=0x0800, l4_proto=6)
    line("vxlan-outer-fragment", over4(17, vxlan(1, frame), frag=0x2000))
    line("vxlan-from-its-port", over4(17, struct.pack("!HHHH", 4789, 53, 80, 0) + bytes(72)))
    line("geneve", over4(17, geneve(0x010203, 0x6558, frame)), GENEVE, 0x010203, at=64, **F_TCP4)
    line("geneve-options", over4(17, geneve(7, 0x6558, frame, options=5)), GENEVE, 7, at=84, **F_TCP4)
    line("geneve-many-options", over4(17, geneve(7, 0x0800, TCP4, options=48)), GENEVE, 7, at=242, **F_TCP4)
    line("geneve-too-many-options", over4(17, geneve(7, 0x0800, TCP4, options=63)))
    line("geneve-ipv6", over4(17, geneve(7, 0x86DD, UDP6)), GENEVE, 7, at=50, **F_UDP6)
    line("geneve-other-version", over4(17, geneve(7, 0x6558, frame, version=1)))
    line("geneve-other-protocol", over4(17, geneve(7, 0x88CC, frame)))
    line("geneve-control", over4(17, geneve(7, 0x6558, b"", options=1)))


def gtp():
    line("gtpu", over4(17, gtpu(0xCAFEBABE, TCP4)), GTPU, 0xCAFEBABE, at=50, **F_TCP4)
    line("gtpu-ipv6", over4(17, gtpu(1, UDP6)), GTPU, 1, at=50, **F_UDP6)
    line("gtpu-sequence", over4(17, gtpu(1, TCP4, flags=2, rest=bytes(4))), GTPU, 1, at=54, **F_TCP4)
    kind, header = gtp_ext(0x85, 1, 0)  # a PDU session container, as 5G's user plane has it
    line("gtpu-extension", over4(17, gtpu(1, TCP4, flags=4, rest=bytes(3) + kind + header)), GTPU, 1, at=58, **F_TCP4)
    kind2, header2 = gtp_ext(0x20, 2, 0x85)
    line("gtpu-two-extensions", over4(17, gtpu(1, TCP4, flags=4, rest=bytes(3) + kind2 + header2 + header)), GTPU, 1, at=66,
         **F_TCP4)
    line("gtpu-sequence-and-stale-extension-type", over4(17, gtpu(1, TCP4, flags=2, rest=b"\0\0\0\x85")), GTPU, 1, at=54,
         **F_TCP4)
    line("gtpu-empty-extension", over4(17, gtpu(1, TCP4, flags=4, rest=bytes(3) + b"\x85" + bytes(4))))
    line("gtpu-extension-cut", over4(17, gtpu(1, b"", flags=4, rest=bytes(3) + b"\x85\x02\0\0\0")))
    line("gtpu-echo", over4(17, gtpu(0, TCP4, kind=1)))
    line("gtp-prime", over4(17, udp(2152, b"\x20\xff" + bytes(6) + TCP4)))


def mpls():
    line("mpls", outer(0x8847, labels(1, TCP4)), MPLS, at=18, **F_TCP4)
    line("mpls-ipv6", outer(0x8847, labels(3, UDP6)), MPLS, at=26, **F_UDP6)
    line("mpls-multicast", outer(0x8848, labels(1, TCP4)), MPLS, at=18, **F_TCP4)
    line("mpls-vlan", outer(0x8847, labels(2, TCP4), [Q]), MPLS, at=26, **F_TCP4)
    line("mpls-vlan-out-of-band", outer(0x8847, labels(2, TCP4)), MPLS, tag=Q, at=26, **F_TCP4)
    line("mpls-qinq", outer(0x8847, labels(2, TCP4), [(0x88A8, 9), Q]), MPLS, at=30, **F_TCP4)
    line("mpls-eight-labels", outer(0x8847, labels(8, TCP4)), MPLS, at=46, **F_TCP4)
    line("mpls-nine-labels", outer(0x8847, labels(9, TCP4)))
    line("mpls-pseudowire", outer(0x8847, labels(1, bytes(4) + v.eth(0x0800, TCP4))))
    line("mpls-cut", outer(0x8847, labels(1, b"")[:3]))
    line("mpls-in-ip", over4(137, labels(1, TCP4)), MPLS, at=38, **F_TCP4)


def nested():
    frame = v.eth(0x0800, TCP4)
    inside = v.eth(0x0800, out4(47, gre(0x0800, TCP4, key=8)))
    line("gre-in-vxlan", over4(17, vxlan(5, inside)), GRE, 8, at=92, **F_TCP4)
    line("ipip-in-vxlan", over4(17, vxlan(5, v.eth(0x0800, out4(4, TCP4)))), IPIP, 5, at=84, **F_TCP4)
    line("vxlan-in-mpls", outer(0x8847, labels(1, out4(17, vxlan(5, frame)))), VXLAN, 5, at=68, **F_TCP4)
    line("gtpu-in-vxlan-over-ipv6", over6(17, vxlan(5, v.eth(0x86DD, out6(17, gtpu(9, UDP6))))), GTPU, 9, at=140, **F_UDP6)
    line("mpls-in-vxlan", over4(17, vxlan(5, v.eth(0x8847, labels(1, TCP4)))), MPLS, 5, at=68, **F_TCP4)
    line("inner-cut-in-vxlan", over4(17, vxlan(5, v.eth(0x0800, v.ipv4(4, TCP4[:15])))), VXLAN, 5, at=64,
         l3_proto=0x0800, l4_proto=4)
    far = geneve(2, 0x0800, TCP4, options=40)
    line("beyond-256-bytes", over4(17, vxlan(5, v.eth(0x0800, out4(17, far)))), GENEVE, 2, at=260, **F_TCP4)
    line("far-inside", over4(17, geneve(1, 0x0800, out4(17, far), options=40)), GENEVE, 2, at=406, **F_TCP4)
    line("three-deep", over4(4, v.ipv4(4, v.ipv4(4, TCP4))), IPIP, at=54, l3_proto=0x0800, l4_proto=4)


def main():
    print("# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause")
    print("# Made by tunnels.py. All numbers hexadecimal; hashes under the key", v.KEY.hex())
    print("# name tag-out-of-band: tpid tci; tunnel has-id id;", *v.NUMBERS, "saddr daddr smac dmac",
          "hash: FLOW TCP_FIVE_TUPLE source destination frame")
    ip_in_ip()
    gre_tunnels()
    erspan()
    over_udp()
    gtp()
    mpls()
    nested()


main()
