#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""corpus.py VECTORS.TXT FOLDER: the vectors' packets as the fuzzer's first inputs, one file each."""

import pathlib
import sys


def main():
    vectors, folder = map(pathlib.Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    for line in vectors.read_text().splitlines():
        if line.startswith("#"):
            continue
        columns = line.split()
        frame = columns[-1].replace("-", "")
        (folder / columns[0]).write_bytes(bytes.fromhex(columns[1] + columns[2] + frame))


main()
