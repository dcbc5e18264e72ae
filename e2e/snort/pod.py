#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pod.py MANIFESTS FOLDER: writes the ConfigMap's files into the folder, and prints the words of the DaemonSet's command, one a line."""
import pathlib
import sys

import yaml

manifests, folder = map(pathlib.Path, sys.argv[1:])
objects = {each["kind"]: each for each in yaml.safe_load_all(manifests.read_text())}
for name, text in objects["ConfigMap"]["data"].items():
    (folder / name).write_text(text)
(container,) = objects["DaemonSet"]["spec"]["template"]["spec"]["containers"]
print(*container["command"] + container["args"], sep="\n")
