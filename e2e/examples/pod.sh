# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A pod of an example without Kubernetes, for a script that is alone in its namespaces (e2e/demo/box.sh). Needs the cluster's env.sh.
#
#   pod_make EXAMPLE ROOT   ROOT, a folder with the files of the container's image, becomes the container's root: read-only, with
#                           the files of ConfigMaps and Secrets, and empty volumes. Sets command, environment and user.
#   pod_agent EXAMPLE OUT   a standalone agent takes the example; its number is in $agent, its files are in OUT
#   pod_status FILTER       whether jq's filter is true of the agent's status
#   in_pod WORD...          runs it as the container, and does not return
#
# The container has the pod's user, no capability and no way to get one. It does not have the pod's network, and no seccomp filter:
# those the cluster's tests have (e2e/suite).

pod_make() {
	local folder variables
	pod_root=$2
	variables=$(python3 "$root/e2e/examples/pod.py" "$1" "$pod_root") || return 1
	eval "$variables"
	mkdir -p "$pod_root/run/ringcap"
	mount --rbind "$pod_root" "$pod_root"
	mount -o remount,bind,ro "$pod_root"
	for folder in proc sys dev; do mount --rbind "/$folder" "$pod_root/$folder"; done
	mount --bind /run/ringcap "$pod_root/run/ringcap"
	for folder in "${scratch[@]}"; do
		mount -t tmpfs -o "mode=1777" tmpfs "$pod_root$folder"
	done
}

in_pod() {
	exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "${environment[@]}" \
		setpriv --inh-caps=-all /usr/bin/python3 "$root/e2e/examples/enter.py" "$pod_root" "$user" "$@"
}

pod_agent() {
	pod_out=$2
	mkdir -p "$pod_out/manifests"
	cp "$1" "$pod_out/manifests/"
	rm -f "$pod_out/status.json"
	out/bin/node-agent --standalone "$pod_out/manifests" --status-json "$pod_out/status.json" --uids "$user" --metrics-address "" \
		>"$pod_out/node-agent.log" 2>&1 &
	agent=$!
	wait_for 60 pod_status '.rings[0].ready and (.clusters[0].queues | length) > 0' ||
		{ echo "the agent: $(tail -n 3 "$pod_out/node-agent.log")" >&2; return 1; }
}

pod_status() { [ -s "$pod_out/status.json" ] && jq -e "$1" "$pod_out/status.json" >/dev/null 2>&1; }

# pod_attached N: as many queues have a reader.
pod_attached() { pod_status "([.clusters[0].queues[] | select(.attached)] | length) == $1"; }

# pod_replay FILE PACKETS OPTION...: until all was delivered, and is read.
pod_replay() {
	local file=$1 delivered='([.clusters[0].queues[].delivered] | add)' want
	want=$(($(jq "$delivered" "$pod_out/status.json") + $2))
	shift 2
	ip netns exec rc-wire tcpreplay --quiet --preload-pcap "$@" --intf1=wire0 "$file" >"$pod_out/tcpreplay.log" 2>&1
	wait_for 60 pod_status "$delivered == $want and ([.clusters[0].queues[].unreadBytes] | add) == 0" ||
		{ echo "not everything was delivered and read: $(jq -c '.rings[0], .clusters[0].queues' "$pod_out/status.json")" >&2; return 1; }
}
