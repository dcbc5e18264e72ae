# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A consumer that is killed in mid-read and started again by the kubelet: what was delivered to it and not yet read is
# there for the next. It may get again what the first had read and not given back, never less. Needs refused.sh and
# disturbed.sh.

# A pod on each node that reads suite-restart; each start writes a file of its own.
restarting_pods() {
	kubectl create namespace ringcap-suite --dry-run=client -o yaml | kubectl apply -f -
	kubectl apply -f - <<-'END'
		apiVersion: apps/v1
		kind: DaemonSet
		metadata: {name: restarting, namespace: ringcap-suite}
		spec:
		  selector: {matchLabels: {app: restarting}}
		  template:
		    metadata: {labels: {app: restarting}}
		    spec:
		      terminationGracePeriodSeconds: 1
		      automountServiceAccountToken: false
		      securityContext: {runAsNonRoot: true, runAsUser: 65534, fsGroup: 65534, seccompProfile: {type: RuntimeDefault}}
		      containers:
		        - name: tcpdump
		          image: ringcap.local/tcpdump:demo
		          imagePullPolicy: IfNotPresent
		          command: [sh, -c, 'n=$(ls /captures | wc -l); exec tcpdump -i rc-suite-restart -n -U -w /captures/$n.pcap']
		          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
		          resources: {limits: {ringcap.io/suite-restart: 1}}
		          volumeMounts: [{name: captures, mountPath: /captures}]
		      volumes: [{name: captures, emptyDir: {}}]
	END
	kubectl -n ringcap-suite rollout status daemonset restarting --timeout=120s
	wait_for 60 restarting_attached
}

restarting_attached() {
	kubectl get nodecaptures -o json | jq -e '[.items[].status.clusters[] | select(.name == "suite-restart") |
		.queues[].attached] == [true, true]'
}

# shellcheck disable=SC2016 # the other shell's
kill_restarting() {
	each_node 'for p in $(pidof tcpdump); do ! grep -q rc-suite-restart /proc/$p/cmdline || kill -9 $p; done'
}

# Of a pod's files all packets, as one capture.
restarting_collect() {
	local pod=$1 out=$2 size
	# shellcheck disable=SC2016 # the other shell's
	local all='cd /captures; head -c 24 0.pcap; for f in *.pcap; do tail -c +25 $f; done'
	size=$(kubectl -n ringcap-suite exec "$pod" -- sh -c "($all) | wc -c")
	for _ in 1 2 3 4 5; do
		kubectl -n ringcap-suite exec "$pod" -- sh -c "$all" >"$out" || true
		[ "$(stat -c %s "$out")" != "$size" ] || return 0
	done
	echo "cannot fetch the captures of $pod" >&2
	return 1
}

test_consumer_killed_and_restarted() {
	local run=$work/kill_restarting pod
	apply suite-restart Cluster '{rings: [mirror], queues: 1, slots: 16384}'
	expect_condition clusters.ringcap.io/suite-restart Ready 'True'
	restarting_pods
	disturbed 30000 kill_restarting --lossless
	for pod in $(kubectl -n ringcap-suite get pods -l app=restarting -o 'jsonpath={.items[*].metadata.name}'); do
		restarting_collect "$pod" "$run/ringcap-suite_$pod.pcap"
		kubectl -n ringcap-suite get pod "$pod" -o 'jsonpath={.status.containerStatuses[0].restartCount}' | grep -qx '[1-9]*' ||
			{ echo "$pod was not restarted" >&2; return 1; }
	done
	"$rcdemo" report --dir "$run" --cluster suite-restart --again
	kubectl -n ringcap-suite delete daemonset restarting --wait
	remove clusters.ringcap.io/suite-restart
}
