#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""corpus.py DIR: what the plugins' fuzzer begins with."""
import os
import sys

CONFIGS = [b"name=example.com\nport=53\n", b"host=example.com\nuri=/a\nport=80\n"]
REST = [
    b"\0\0\1\0\0\1\0\0\0\0\0\0\3www\7example\3com\0\0\1\0\1",
    b"GET http://www.example.com/a HTTP/1.1\r\nHost: example.com:80\r\n\r\n",
    b"POST /a HTTP/1.1\r\nAccept: x\r\nHost: [::1]:80\r\n\r\n",
]

os.makedirs(sys.argv[1], exist_ok=True)
for number, (config, rest) in enumerate((c, r) for c in CONFIGS for r in REST):
    with open(os.path.join(sys.argv[1], f"seed-{number}"), "wb") as file:
        file.write(bytes([len(config)]) + config + rest)
