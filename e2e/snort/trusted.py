#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trusted.py FILE: writes a TCP connection of 2,006 packets to port 9443, at which snort.lua lets Snort not look."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "clients"))
import trace  # noqa: E402  that of e2e/clients

packets = trace.Trace()
packets.tcp("10.9.0.1", 40443, "10.9.0.2", 9443, [(i % 2 == 0, b"GET %07d\r\n" % i) for i in range(1000)])
trace.write(sys.argv[1], packets.frames)
