#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trace.py FILE [UDP]: writes the packets that clients are to see, and prints how many there are.

Conversations between hosts of 10.9.0.0/24: ARP, DNS, HTTP, FTP with a password, ICMP, DHCP, SIP, and UDP packets
(1,000) of one flow. All checksums are right.
"""
import struct
import sys

MACS = {"10.9.0.%d" % i: bytes([2, 0, 0, 0, 0, i]) for i in range(256)}


def address(text):
    return bytes(int(part) for part in text.split("."))


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Trace:
    def __init__(self):
        self.frames = []
        self.number = 0

    def ethernet(self, source, target, kind, payload):
        frame = target + source + struct.pack("!H", kind) + payload
        self.frames.append(frame.ljust(60, b"\0"))

    def ip(self, source, target, protocol, payload):
        self.number += 1
        header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), self.number, 0x4000, 64, protocol, 0)
        header += address(source) + address(target)
        header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
        broadcast = b"\xff" * 6
        self.ethernet(MACS.get(source, MACS["10.9.0.1"]), MACS.get(target, broadcast), 0x0800, header + payload)

    def transport(self, source, target, protocol, segment, at):
        pseudo = address(source) + address(target) + struct.pack("!BBH", 0, protocol, len(segment))
        total = checksum(pseudo + segment)
        self.ip(source, target, protocol, segment[:at] + struct.pack("!H", total or 0xFFFF) + segment[at + 2:])

    def udp(self, source, sport, target, dport, payload):
        header = struct.pack("!HHHH", sport, dport, 8 + len(payload), 0)
        self.transport(source, target, 17, header + payload, 6)

    def arp(self, kind, source, target):
        known = MACS[target] if kind == 2 else b"\0" * 6
        payload = struct.pack("!HHBBH", 1, 0x0800, 6, 4, kind) + MACS[source] + address(source) + known + address(target)
        self.ethernet(MACS[source], MACS[target] if kind == 2 else b"\xff" * 6, 0x0806, payload)

    def ping(self, source, target, kind):
        message = struct.pack("!BBHHH", kind, 0, 0, 7, 1) + bytes(range(48))
        message = message[:2] + struct.pack("!H", checksum(message)) + message[4:]
        self.ip(source, target, 1, message)

    def tcp(self, client, cport, server, sport, lines):
        """A connection: lines are (True, what the client says) or (False, what the server says)."""
        ends = {True: [client, cport, 1000], False: [server, sport, 5000]}

        def send(by_client, flags, data=b""):
            (source, port, sequence), (target, other, acknowledged) = ends[by_client], ends[not by_client]
            options = struct.pack("!BBH", 2, 4, 1460) if flags & 2 else b""
            header = struct.pack("!HHIIBBHHH", port, other, sequence, acknowledged if flags & 16 else 0,
                                 (20 + len(options)) // 4 << 4, flags, 64240, 0, 0)
            self.transport(source, target, 6, header + options + data, 16)
            ends[by_client][2] += len(data) + (1 if flags & 3 else 0)

        send(True, 2)
        send(False, 18)
        send(True, 16)
        for by_client, text in lines:
            send(by_client, 24, text)
            send(not by_client, 16)
        send(True, 17)
        send(False, 17)
        send(True, 16)


def dns(number, answer):
    name = b"\x07ringcap\x07example\0"
    text = struct.pack("!HHHHHH", number, 0x8180 if answer else 0x0100, 1, answer, 0, 0) + name + struct.pack("!HH", 1, 1)
    if answer:
        text += struct.pack("!HHHIH", 0xC00C, 1, 1, 60, 4) + address("10.9.0.2")
    return text


def dhcp():
    text = struct.pack("!BBBBIHH", 1, 1, 6, 0, 0x12345678, 0, 0) + b"\0" * 16 + MACS["10.9.0.1"] + b"\0" * 10 + b"\0" * 192
    return text + b"\x63\x82\x53\x63" + bytes([53, 1, 1, 12, 7]) + b"ringcap" + b"\xff" + b"\0" * 40


SIP = (b"INVITE sip:bob@10.9.0.2 SIP/2.0\r\nVia: SIP/2.0/UDP 10.9.0.1:5060;branch=z9hG4bK1\r\nFrom: <sip:alice@10.9.0.1>;tag=1\r\n"
       b"To: <sip:bob@10.9.0.2>\r\nCall-ID: ringcap-call\r\nCSeq: 1 INVITE\r\nContact: <sip:alice@10.9.0.1>\r\nMax-Forwards: 70\r\n"
       b"Content-Length: 0\r\n\r\n")
GET = b"GET /ringcap.html HTTP/1.1\r\nHost: ringcap.example\r\nUser-Agent: ringcap-test\r\nAccept: */*\r\nConnection: close\r\n\r\n"
PAGE = (b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nContent-Type: text/html\r\nContent-Length: 27\r\n\r\n<html>ringcap works</html>\n")


def conversations(packets):
    t = Trace()
    t.arp(1, "10.9.0.1", "10.9.0.2")
    t.arp(2, "10.9.0.2", "10.9.0.1")
    t.udp("0.0.0.0", 68, "255.255.255.255", 67, dhcp())
    t.udp("10.9.0.1", 40000, "10.9.0.53", 53, dns(7, 0))
    t.udp("10.9.0.53", 53, "10.9.0.1", 40000, dns(7, 1))
    t.ping("10.9.0.1", "10.9.0.2", 8)
    t.ping("10.9.0.2", "10.9.0.1", 0)
    t.tcp("10.9.0.1", 40001, "10.9.0.2", 80, [(True, GET), (False, PAGE)])
    t.tcp("10.9.0.1", 40002, "10.9.0.2", 21, [
        (False, b"220 ringcap ftp\r\n"), (True, b"USER alice\r\n"), (False, b"331 password\r\n"), (True, b"PASS secret7\r\n"),
        (False, b"230 logged in\r\n"), (True, b"QUIT\r\n"), (False, b"221 bye\r\n")])
    t.udp("10.9.0.1", 5060, "10.9.0.2", 5060, SIP)
    for i in range(packets):
        t.udp("10.9.0.3", 5000, "10.9.0.4", 6000, b"%07d" % i + b"x" * (i % 900))
    return t.frames


def write(path, frames):
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for i, frame in enumerate(frames):
            out.write(struct.pack("<IIII", 1700000000 + i // 1000, i % 1000 * 1000, len(frame), len(frame)) + frame)


def main():
    frames = conversations(int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
    write(sys.argv[1], frames)
    print(len(frames), sum(len(frame) for frame in frames))


if __name__ == "__main__":
    main()
