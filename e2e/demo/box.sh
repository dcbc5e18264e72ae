# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A sensor without Kubernetes, for a script that is alone in its mount, network and process namespaces (unshare). Needs the
# cluster's env.sh for wait_for.
#
#     network namespace rc-wire                network namespace of the script
#     wire0  -------------------------------->  mirror0

# box_make HOME: fresh /sys, bpffs, /run/ringcap and /run/netns, the cable, and HOME as a place that an unprivileged user can read.
box_make() {
	mount -t sysfs sysfs /sys
	mount -t bpf bpf /sys/fs/bpf
	mkdir -p /run/ringcap /run/netns
	mount -t tmpfs tmpfs /run/ringcap
	mount -t tmpfs tmpfs /run/netns
	mount -t tmpfs -o mode=755 tmpfs "$1"
	ip netns add rc-wire
	sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
	ip netns exec rc-wire sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
	ip link set lo up
	ip link add mirror0 mtu 9000 type veth peer name wire0 mtu 9000 netns rc-wire
	ip link set mirror0 up
	ip -n rc-wire link set wire0 up
	box_up() { [ "$(ip -j link show mirror0 | jq -r '.[0].operstate')" = UP ]; }
	wait_for 60 box_up || { echo 'mirror0 does not come up within 60 s' >&2; return 1; }
}
