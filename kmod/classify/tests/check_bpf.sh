#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# check-bpf inside a VM: see the Makefile's check-bpf-kernels.
uname -r
exec check-bpf /classify.bpf.o /inner.bpf.o /vectors.txt /tunnels.txt
