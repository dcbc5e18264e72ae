#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""enter.py ROOT USER WORD...: runs a command in a root file system as that user, without a capability.

It has no way to get one either: the bounding set is empty, even for user 0, and there are no new privileges.
"""
import ctypes
import os
import signal
import sys

PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38


def prctl(option, value):
    if ctypes.CDLL(None).prctl(option, value, 0, 0, 0):
        sys.exit("enter.py: prctl %d, %d is refused" % (option, value))


def drop_all():
    with open("/proc/sys/kernel/cap_last_cap", encoding="ascii") as file:
        for capability in range(int(file.read()) + 1):
            prctl(PR_CAPBSET_DROP, capability)


def main():
    root, user, words = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    drop_all()
    os.chroot(root)
    os.chdir("/")
    os.setgroups([user])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # which Python ignores
    # By its own file name: Python's search loads modules, which are out of reach now.
    for folder in os.environ["PATH"].split(":"):
        if os.access(os.path.join(folder, words[0]), os.X_OK):
            os.execv(os.path.join(folder, words[0]), words)
    sys.exit("enter.py: there is no program %s" % words[0])


main()
