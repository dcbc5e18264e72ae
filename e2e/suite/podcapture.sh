# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A ServiceAccount with the role edit in one namespace and no other right captures the pods of that namespace, by
# examples/podcapture.yaml: each datagram, once, on both engines. It reaches no other pods, and others do not get its packets. The
# same by `ringcap capture`. Needs pods.sh, cli.sh, examples.sh and refused.sh.

team=web-team

as_editor() { kubectl --as="system:serviceaccount:$team:editor" "$@"; }

# expect_forbidden WORDS...: kubectl with these words, as the editor, is refused for want of a right.
expect_forbidden() {
	local said
	if said=$(as_editor "$@" 2>&1); then
		echo "the editor may: kubectl $*" >&2
		return 1
	fi
	grep -i forbidden <<<"$said" || { echo "refused, but not for want of a right: $said" >&2; return 1; }
}

# example_part FILTER: of the example, the objects that jq's filter selects.
example_part() {
	kubectl create -f examples/podcapture.yaml --dry-run=client -o json | jq "if .kind == \"List\" then .items[] else . end | select($1)"
}

# team_may_edit: the namespace of the example, and who edits it.
team_may_edit() {
	example_part '.kind == "Namespace"' | kubectl apply -f -
	kubectl -n $team create serviceaccount editor --dry-run=client -o yaml | kubectl apply -f -
	kubectl -n $team create rolebinding editor --clusterrole=edit --serviceaccount="$team:editor" --dry-run=client -o yaml | kubectl apply -f -
	editor_may() { [ "$(as_editor -n $team auth can-i create podcaptures)" = yes ]; }
	# The parts of the role edit are put together by a controller.
	wait_for 60 editor_may
}

# team_pods: two pods that the example selects, made by the editor.
team_pods() {
	as_editor apply -f - <<-END
		apiVersion: apps/v1
		kind: Deployment
		metadata: {name: web, namespace: $team}
		spec:
		  replicas: 2
		  selector: {matchLabels: {app: web, part: web}}
		  template:
		    metadata: {labels: {app: web, part: web}}
		    spec:
		      terminationGracePeriodSeconds: 0
		      automountServiceAccountToken: false
		      securityContext: {runAsNonRoot: true, runAsUser: 65534, seccompProfile: {type: RuntimeDefault}}
		      topologySpreadConstraints:
		        - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {part: web}}}
		      containers:
		        - name: web
		          image: ringcap.local/probe:$(image_tag probe)
		          command: [sleep, infinity]
		          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
	END
	kubectl -n $team rollout status deployment web --timeout=150s
}

# team_is PODS: so many are captured, and a consumer on each node reads. What pods sent before there was one, by themselves, was dropped.
team_is() {
	kubectl -n $team get podcapture web -o json | jq -e --argjson pods "$1" '.status |
		.pods == $pods and .queuesAttached == 2 and any(.conditions[]; .type == "Ready" and .status == "True")'
}

# The files of the consumers have what the pods sent, and nothing of the other namespace's.
team_has_all() {
	local node pod address count
	for node in $nodes; do pod_file $team "$(pod_in $team tcpdump-podcapture "$node")" /captures/web.pcap "$work/team-$node.pcap"; done
	while read -r pod node address count; do in_file "$work/team-$node.pcap" "$address" "$count" || return 1; done <"$work/sent"
	while read -r pod node address count; do in_file "$work/team-$node.pcap" "$address" 0 || return 1; done <"$work/sent-others"
}

captures_of_team() {
	local ringcap=$work/ringcap-in-team
	printf '#!/bin/sh\nexec %s -n %s --as system:serviceaccount:%s:editor "$@"\n' "$root/out/bin/ringcap" $team $team >"$ringcap"
	chmod +x "$ringcap"
	captures "$@"
}

ring_is_back() { kubectl get capturering "$1" -o json | jq -e --arg team $team '.spec.consumers.namespaces == [$team]'; }

test_namespace_captures_its_own_pods() {
	local resource ring said pod node address count
	rm -f "$work/sent" "$work/sent-others"
	team_may_edit
	team_pods
	# Pods of the same labels in another namespace.
	workload others 2
	example_part '.kind != "Namespace"' | as_editor apply -f -
	wait_for 240 team_is 2 || { kubectl -n $team describe podcapture web; state_pods; return 1; }
	resource=$(as_editor -n $team get podcapture web -o 'jsonpath={.status.resource}')
	ring=${resource#ringcap.io/}

	sends others 300
	mv "$work/sent" "$work/sent-others"
	shop=$team sends web 5000
	wait_for 60 team_has_all || team_has_all
	wait_for 60 team_is 2

	# By the command line, a PodCapture beside.
	captures_of_team deploy/web -w "$work/team.pcapng" --slots 8192 --image "$(kubectl -n ringcap-system get daemonset ringcap-agent -o 'jsonpath={.spec.template.spec.containers[0].image}')"
	rm "$work/sent"
	shop=$team sends web 2000
	cli_there() { [ "$(captured "$work/team.pcapng" 'udp dst port 9')" -ge 4000 ]; }
	wait_for 60 cli_there || true
	kill -INT "$capture"
	wait "$capture" || { cat "$work/capture.err" >&2; return 1; }
	cat "$work/capture.err"
	grep -q 'made PodCapture' "$work/capture.err"
	grep -q ', 0 lost$' "$work/capture.err"
	while read -r pod node address count; do in_file "$work/team.pcapng" "$address" "$count"; done <"$work/sent"
	[ "$(kubectl -n $team get podcaptures -o name)" = podcapture.ringcap.io/web ]
	sed -i 's/ 2000$/ 7000/' "$work/sent"

	# What is done to the ring is undone.
	kubectl patch capturering "$ring" --type=merge -p '{"spec":{"consumers":{"namespaces":["*"]},"interfaces":[{"podSelector":{}}]}}'
	wait_for 60 ring_is_back "$ring"
	expect_condition "capturering/$ring" Ready 'True'
	shop=$team sends web 500
	awk '{ sum[$1 " " $2 " " $3] += $4 } END { for (pod in sum) print pod, sum[pod] }' "$work/sent" >"$work/sent-both"
	mv "$work/sent-both" "$work/sent"
	wait_for 60 team_has_all || team_has_all

	# Nobody else's.
	example_part '.kind == "PodCapture"' | jq --arg to "$shop" '.metadata.namespace = $to' >"$work/elsewhere.json"
	expect_forbidden create -f "$work/elsewhere.json"
	expect_forbidden get capturerings
	expect_forbidden apply -f examples/pods.yaml
	said=$(kubectl apply -f - 2>&1 <<-END || true
		apiVersion: v1
		kind: Pod
		metadata: {name: thief, namespace: $shop}
		spec:
		  containers: [{name: c, image: x, resources: {limits: {$resource: 1}}}]
	END
	)
	grep "$resource is not for pods of namespace $shop" <<<"$said" || { echo "a pod may request it: $said" >&2; return 1; }

	as_editor -n $team delete podcapture web
	as_editor -n $team delete daemonset tcpdump --wait
	ring_gone() { ! kubectl get capturering "$ring"; }
	wait_for 180 ring_gone || { kubectl get capturering "$ring" -o yaml; return 1; }

	# With the namespace goes what is in it.
	example_part '.kind == "PodCapture"' | as_editor apply -f -
	wait_for 60 ring_is_back "$ring"
	kubectl delete namespace $team $shop --timeout=180s
	wait_for 120 ring_gone
}
