#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pod.py MANIFESTS ROOT: what the kubelet makes of the pod of an example.

Writes the files of its ConfigMaps and Secrets below ROOT, where the container has them mounted, and makes folders for
its empty volumes. Prints variables for bash: command and environment (with the pod's values), scratch (the empty
volumes), user. Ends with 1 if the pod asks for more than an unprivileged user's process and a read-only root file system.
"""
import base64
import pathlib
import re
import shlex
import sys

import yaml

WORKLOADS = ("DaemonSet", "Deployment")


def unprivileged(pod, container):
    """What a pod of this project's examples must say, and does not."""
    of_pod, own = pod.get("securityContext", {}), container.get("securityContext", {})
    wanted = {
        "runAsNonRoot: true": of_pod.get("runAsNonRoot") is True,
        "a runAsUser that is not 0": of_pod.get("runAsUser", 0) != 0,
        "seccompProfile: RuntimeDefault": of_pod.get("seccompProfile", {}).get("type") == "RuntimeDefault",
        "allowPrivilegeEscalation: false": own.get("allowPrivilegeEscalation") is False,
        "readOnlyRootFilesystem: true": own.get("readOnlyRootFilesystem") is True,
        "capabilities: drop: [ALL]": own.get("capabilities") == {"drop": ["ALL"]},
        "no network, processes or files of the host": not any(pod.get(name) for name in ("hostNetwork", "hostPID", "hostIPC"))
        and not any("hostPath" in volume for volume in pod.get("volumes", [])),
    }
    return [name for name, there in wanted.items() if not there]


def contents(kind, stored):
    """The files of a ConfigMap or Secret."""
    files = {name: text.encode() for name, text in {**stored.get("stringData", {}), **stored.get("binaryData", {})}.items()}
    for name, text in stored.get("data", {}).items():
        files[name] = base64.b64decode(text) if kind == "Secret" else text.encode()
    return files


def mount(volume, folder, objects):
    """Makes a volume's folder. Returns whether it is an empty one."""
    folder.mkdir(parents=True, exist_ok=True)
    if "emptyDir" in volume:
        return True
    kind, name = ("ConfigMap", volume["configMap"]["name"]) if "configMap" in volume else ("Secret", volume["secret"]["secretName"])
    for file, data in contents(kind, objects[kind, name]).items():
        (folder / file).write_bytes(data)
    return False


def environment(container):
    """Variables as the container has them; those of fields of the pod are the fields' paths."""
    return {each["name"]: each.get("value") or each["valueFrom"]["fieldRef"]["fieldPath"] for each in container.get("env", [])}


def expanded(words, variables):
    """Kubernetes' own $(NAME)."""
    return [re.sub(r"\$\((\w+)\)", lambda found: variables.get(found[1], found[0]), word) for word in words]


def assign(name, words):
    print("%s=(%s)" % (name, " ".join(shlex.quote(word) for word in words)))


def main():
    manifests, root = map(pathlib.Path, sys.argv[1:])
    objects = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(manifests.read_text())}
    (pod,) = [each["spec"]["template"]["spec"] for (kind, _), each in objects.items() if kind in WORKLOADS]
    (container,) = pod["containers"]
    missing = unprivileged(pod, container)
    if missing:
        sys.exit("%s: the pod lacks %s" % (manifests, ", ".join(missing)))
    volumes = {each["name"]: each for each in pod.get("volumes", [])}
    variables = environment(container)
    assign("command", expanded(container["command"] + container.get("args", []), variables))
    assign("environment", ["%s=%s" % each for each in variables.items()])
    mounts = {each["mountPath"]: volumes[each["name"]] for each in container.get("volumeMounts", [])}
    assign("scratch", [path for path, volume in mounts.items() if mount(volume, root / path.lstrip("/"), objects)])
    print("user=%d" % pod["securityContext"]["runAsUser"])


main()
