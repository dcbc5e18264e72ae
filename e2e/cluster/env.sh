# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Names, addresses and folders of the local cluster. Sourced by the scripts beside it.
#
#                     host: etcd, kube-apiserver, kube-controller-manager, kube-scheduler
#                            |
#                     rcbr0  10.97.0.1/24
#                   ---------+-----------
#                   |                   |
#         eth0  10.97.0.11      eth0  10.97.0.12
#         node-ebpf             node-kmod
#         (namespaces)          (virtual machine)
#         mirror0               mirror0      card0 (igb)
#            |                     |           |
#         wire0 in netns        wire0       wire1 in netns
#         rc-wire-ebpf          rc-wire-kmod          <- captures are replayed here
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${RINGCAP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ringcap}
state=$root/out/cluster
pki=$state/pki
logs=$state/log
images=$root/out/images
kubeconfig=$pki/admin.kubeconfig

nodes='node-ebpf node-kmod'
bridge=rcbr0
gateway=10.97.0.1
etcd_url=http://127.0.0.1:12379
etcd_peer_url=http://127.0.0.1:12380
apiserver_port=16443
service_cidr=10.112.0.0/16
service_first=10.112.0.1
pod_cidr=10.98.0.0/16

node_ip() { case $1 in node-ebpf) echo 10.97.0.11 ;; node-kmod) echo 10.97.0.12 ;; esac; }
node_pods() { case $1 in node-ebpf) echo 10.98.11.0/24 ;; node-kmod) echo 10.98.12.0/24 ;; esac; }
# node_routes NODE: how it reaches the other nodes' pods, as "PODS=NODE ..."
node_routes() {
	local other
	for other in $nodes; do
		[ "$other" = "$1" ] || printf '%s=%s ' "$(node_pods "$other")" "$(node_ip "$other")"
	done
}

# The kernel of node-kmod: never this machine's own, or the agent of node-ebpf would load the same module into it.
vm_series() {
	case $(uname -r) in
	6.1.0-*) echo 6.12 ;;
	*) echo 6.1 ;;
	esac
}

# image_tag NAME: the tag of an image in out/images, of its content.
image_tag() { cut -c 1-12 "$images/$1.sum"; }

node_wire() { echo "rc-wire-${1#node-}"; }

die() {
	echo "cluster: $*" >&2
	exit 1
}

need_root() { [ "$(id -u)" = 0 ] || die "needs root: network namespaces, mounts and a bridge are made; use sudo"; }

# wait_for SECONDS COMMAND...: runs the command until it succeeds; false when it did not within the time.
wait_for() {
	local until=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$until" ] || return 1
		sleep 0.1
	done
}
