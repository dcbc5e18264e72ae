# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Consumers that do what none should: they get nothing that is not theirs, and harm nobody. Needs refused.sh and
# disturbed.sh.

suite=ringcap-suite

# hostile_pods NAME RESOURCE CAPABILITIES: one pod of the probe's image on each node, root in its container; RESOURCE is
# a ring or cluster whose queue it is given, or empty.
hostile_pods() {
	local limits='{}'
	[ -z "$2" ] || limits="{ringcap.io/$2: 1}"
	kubectl create namespace $suite --dry-run=client -o yaml | kubectl apply -f -
	kubectl apply -f - <<-END
		apiVersion: apps/v1
		kind: DaemonSet
		metadata: {name: $1, namespace: $suite}
		spec:
		  selector: {matchLabels: {app: $1}}
		  template:
		    metadata: {labels: {app: $1}}
		    spec:
		      terminationGracePeriodSeconds: 1
		      automountServiceAccountToken: false
		      containers:
		        - name: probe
		          image: ringcap.local/probe:$(image_tag probe)
		          command: [sleep, infinity]
		          resources: {limits: $limits}
		          volumeMounts: [{name: run, mountPath: /host-run}]
		      volumes: [{name: run, hostPath: {path: /run/ringcap}}]
	END
	kubectl -n $suite rollout status daemonset "$1" --timeout=120s
}

# hostile_pod NAME NODE: its pod on a node.
hostile_pod() {
	kubectl -n $suite get pods -l "app=$1" --field-selector "spec.nodeName=$2" -o 'jsonpath={.items[0].metadata.name}'
}

probe() {
	local pod
	pod=$(hostile_pod "$1" "$2")
	shift 2
	kubectl -n $suite exec "$pod" -- probe "$@"
}

expect_refused() {
	local said
	if said=$("$@" 2>&1); then
		echo "was not refused: $*: $said" >&2
		return 1
	fi
	grep '^refused' <<<"$said" || { echo "failed, but was not refused: $said" >&2; return 1; }
}

# Queues of ids, asked for by pods that were given none, or one of another cluster, as root in their containers.
test_consumer_asks_for_a_foreign_queue() {
	local numbers
	apply suite-foreign Cluster '{rings: [mirror], queues: 1, slots: 64}'
	expect_condition clusters.ringcap.io/suite-foreign Ready 'True'
	hostile_pods intruder suite-foreign
	expect_refused probe intruder node-ebpf take ids 0
	expect_refused probe intruder node-kmod take ids 0
	# The sockets of other queues, through a folder of the host.
	expect_refused probe intruder node-ebpf socket /host-run/ids/0
	# A device node of its own making for another queue.
	numbers=$("$root/e2e/cluster/node-exec" node-kmod 'stat -c "%t %T" /dev/ringcap/ids/0')
	# shellcheck disable=SC2086 # two words
	expect_refused probe intruder node-kmod node $((16#${numbers% *})) $((16#${numbers#* }))
	kubectl -n $suite delete daemonset intruder --wait
	remove clusters.ringcap.io/suite-foreign
}

# Both at once, until they are done.
scribble() {
	local node pids=() pid
	for node in $nodes; do
		probe scribbler "$node" scribble suite-scribble 0 15 &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid"; done
}

test_consumer_scribbles_over_what_it_maps() {
	local restarts
	apply suite-scribble Cluster '{rings: [mirror], queues: 1, slots: 4096}'
	expect_condition clusters.ringcap.io/suite-scribble Ready 'True'
	hostile_pods scribbler suite-scribble
	restarts=$(agent_restarts)
	disturbed 10000 scribble --lossless
	[ "$(agent_restarts)" = "$restarts" ] || { echo 'an agent restarted' >&2; return 1; }
	# What the scribbler's own queue was given is named too.
	jq -n --slurpfile before "$work/scribble/before.json" --slurpfile after "$work/scribble/after.json" -e '
		def sum($list; f): [$list[0].items[].status | f] | add;
		def given: [.clusters[] | select(.name == "suite-scribble") | .queues[] | .delivered, .dropped[]?.packets] | add;
		def passed: [.rings[] | select(.name == "mirror") | .passed] | add;
		(sum($after; given) - sum($before; given)) == (sum($after; passed) - sum($before; passed))' ||
		{ echo "the scribbler's queue does not account for all that was passed" >&2; return 1; }
	"$root/e2e/cluster/node-exec" node-kmod '! dmesg | grep -E "BUG|Oops|WARNING|general protection"'
	kubectl -n $suite delete daemonset scribbler --wait
	remove clusters.ringcap.io/suite-scribble
}

# bystander NODE UID FOLDER: a user of the node, in no pod, asks at a queue's socket from a cgroup that is delegated to the user and that
# has the name which the kubelet gives to the pod of that UID.
bystander() {
	# shellcheck disable=SC2016 # the other shell's
	"$root/e2e/cluster/node-exec" "$1" 'uid='"$2"' folder='"$3"'
		top=/sys/fs/cgroup
		[ ! -d $top/memory ] || top=$top/memory
		mkdir -p $top/v1user/kubepods/pod$uid
		chown -R 65534:65534 $top/v1user
		for p in $(pidof sleep); do
			[ ! -x /proc/$p/root/bin/probe ] || cp /proc/$p/root/bin/probe /run/bystander
		done
		sh -c "echo \$\$ >$top/v1user/kubepods/pod$uid/cgroup.procs; exec start-stop-daemon -S -c 65534:65534 -x /run/bystander -- socket $folder" 2>&1
		said=$?
		rmdir $top/v1user/kubepods/pod$uid $top/v1user/kubepods $top/v1user
		rm /run/bystander
		exit $said'
}

# Refused by the folders; and where root has opened a way around these, by the agent.
test_user_of_the_node_asks_in_the_name_of_a_pod() {
	local pod uid
	hostile_pods bystander ''
	pod=$(kubectl get nodecapture node-ebpf -o json | jq -r '.status.clusters[] | select(.name == "ids") | .queues[0].consumer')
	uid=$(kubectl -n "${pod%/*}" get pod "${pod#*/}" -o 'jsonpath={.metadata.uid}')
	expect_refused bystander node-ebpf "$uid" /run/ringcap/ids/0 | grep 'Permission denied'
	"$root/e2e/cluster/node-exec" node-ebpf 'mkdir /run/open && mount --bind /run/ringcap/ids/0 /run/open'
	expect_refused bystander node-ebpf "$uid" /run/open | grep 'the kubelet has not put it into the pod'
	"$root/e2e/cluster/node-exec" node-ebpf 'umount /run/open && rmdir /run/open'
	kubectl -n $suite delete daemonset bystander --wait
}
