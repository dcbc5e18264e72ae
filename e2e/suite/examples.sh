# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The examples as they are, with the programs that they are for, and what their comments say to expect. pods.yaml is in pods.sh,
# mirror.yaml and tcpdump.yaml are the demo's. sensors.yaml is used as docs/quickstart.md says. Needs cli.sh,
# refused.sh, monitoring.sh and the demo's replay.sh and collect.sh.

# quickstart SECTION: runs the section's commands.
quickstart() {
	awk -v section="## $1" '/^## / { in_it = $0 == section } in_it && /^```$/ { code = 0 } in_it && code; in_it && /^```sh$/ { code = 1 }' \
		docs/quickstart.md >"$work/quickstart.sh"
	[ -s "$work/quickstart.sh" ] || { echo "docs/quickstart.md has no commands in '$1'" >&2; return 1; }
	PATH=$root/out/bin:$PATH bash -ex "$work/quickstart.sh"
}

# pod_in NAMESPACE APP NODE
pod_in() {
	kubectl -n "$1" get pods -l "app.kubernetes.io/name=$2" --field-selector "spec.nodeName=$3" -o 'jsonpath={.items[0].metadata.name}'
}

# pod_file NAMESPACE POD PATH OUT: an exec's output may come cut off, so its length is checked.
pod_file() {
	local size
	for _ in 1 2 3 4 5; do
		size=$(kubectl -n "$1" exec "$2" -- stat -c %s "$3" </dev/null)
		kubectl -n "$1" exec "$2" -- head -c "$size" "$3" >"$4" </dev/null || true
		[ "$(stat -c %s "$4")" != "$size" ] || return 0
	done
	echo "cannot fetch $3 from $1/$2" >&2
	return 1
}

# Each queue that a node can have has its consumer.
examples_attached() {
	kubectl get nodecaptures -o json | jq -e '[.items[] | .metadata.name as $node | .status.clusters[] |
		select((.name | IN("suricata", "flows", "watch", "node-talk", "suspicious", "quick")) and .queues) | "\($node) \(.name) \([.queues[].attached])"] | sort == [
		"node-ebpf flows [true]", "node-ebpf node-talk [true]", "node-ebpf suricata [true,true]", "node-ebpf suspicious [true]",
		"node-ebpf watch [true]",
		"node-kmod flows [true]", "node-kmod node-talk [true]", "node-kmod quick [true]", "node-kmod suricata [true,true]",
		"node-kmod suspicious [true]", "node-kmod watch [true]"]'
}

# on NODE QUERY: of what the node reported last.
on() { jq -r --arg node "$1" ".items[] | select(.metadata.name == \$node) | .status | $2" "$run/after.json"; }

# same WHAT IS WANT
same() {
	echo "$1: $2"
	[ "$2" = "$3" ] || { echo "$1 is $2, not $3" >&2; return 1; }
}

# What one Suricata and one softflowd make of all of it, in their own containers.
examples_oracle() {
	local pod
	pod=$(pod_in ringcap-sensors suricata node-ebpf)
	# shellcheck disable=SC2016 # the other shell's
	kubectl -n ringcap-sensors exec -i "$pod" -- sh -c 'mkdir /var/log/suricata/all && cd /var/log/suricata/all && cat >in.pcap &&
		suricata -r in.pcap -c /ringcap/ringcap.yaml -S /ringcap/ringcap.rules -l . >/dev/null' <"$input"
	# shellcheck disable=SC2016
	kubectl -n ringcap-sensors exec "$pod" -- sh -c 'cat /var/log/suricata/all/eve.*.json' >"$run/all.json" </dev/null
	pod=$(pod_in ringcap-sensors softflowd node-ebpf)
	kubectl -n ringcap-sensors exec -i "$pod" -- sh -c 'cat >/flows/in.pcap && softflowd -r /flows/in.pcap -v 9' <"$input" >"$run/all.flows"
	[ "$(jq -s 'map(select(.event_type == "alert")) | length' "$run/all.json")" -gt 100 ] || { echo 'one Suricata raises no alerts' >&2; return 1; }
}

alerts_of() { jq -r 'select(.event_type == "alert") | .alert.signature' "$@" | sort | uniq -c; }

# Both directions are one.
flows_of() {
	jq -r 'select(.event_type == "alert") | [.proto, .vlan, ([[.src_ip, .src_port], [.dest_ip, .dest_port]] | sort)] | tostring' "$1" | sort -u
}

# What Suricata's capture threads have decoded, each: the newest of its reports.
suricata_decoded() {
	jq -sc 'map(select(.event_type == "stats")) | last | [.stats.threads | to_entries[] | select(.key | startswith("W#")) | .value.decoder.pkts] | sort' \
		"$@"
}

suricata_fetch() {
	local pod=$2 file
	for file in $(kubectl -n ringcap-sensors exec "$pod" -- sh -c 'cd /var/log/suricata; ls eve.*.json' </dev/null); do
		pod_file ringcap-sensors "$pod" "/var/log/suricata/$file" "$run/$1.$file"
	done
}

suricata_has_all() {
	suricata_fetch "$1" "$(pod_in ringcap-sensors suricata "$1")" || return 1
	[ "$(suricata_decoded "$run/$1".eve.*.json | jq add)" = "$2" ]
}

suricata_as_expected() {
	local node=$1 sent=$2 pod
	pod=$(pod_in ringcap-sensors suricata "$node")
	wait_for 120 suricata_has_all "$node" "$sent" || { kubectl -n ringcap-sensors logs "$pod" | grep -v '\[\*\*\]' >&2; return 1; }
	same "$node: packets by Suricata's threads" "$(suricata_decoded "$run/$node".eve.*.json)" \
		"$(on "$node" '[.clusters[] | select(.name == "suricata").queues[].delivered] | sort | tostring')"
	same "$node: alerts" "$(alerts_of "$run/$node".eve.*.json)" "$(alerts_of "$run/all.json")"
	same "$node: alerts in the log" "$(kubectl -n ringcap-sensors logs "$pod" | grep -c '\[\*\*\] \[1:100000')" \
		"$(jq -s 'map(select(.event_type == "alert")) | length' "$run/all.json")"
	same "$node: flows in both threads" "$(for file in "$run/$node".eve.*.json; do flows_of "$file"; done | sort | uniq -d)" ''
}

softflowd_counted() { kubectl -n ringcap-sensors exec "$1" -- softflowctl -c /flows/softflowd.ctl statistics </dev/null; }

softflowd_as_expected() {
	local node=$1 sent=$2 pod what
	pod=$(pod_in ringcap-sensors softflowd "$node")
	flows_all() { softflowd_counted "$pod" | grep -qx "Packets received by libpcap: $sent"; }
	wait_for 60 flows_all || { softflowd_counted "$pod" >&2; return 1; }
	for what in 'Packets processed' 'Fragments' 'Ignored packets'; do
		same "$node: softflowd" "$(softflowd_counted "$pod" | grep "^$what")" "$(grep "^$what" "$run/all.flows")"
	done
	same "$node: softflowd" "$(softflowd_counted "$pod" | grep '^Packets dropped by libpcap')" 'Packets dropped by libpcap: 0'
}

# The words that payload.yaml looks for, in the packets that its rules pass.
payload_wanted() {
	tcpdump -r "$input" -w - '(tcp port 80 or udp port 53) and not net 192.0.2.0/28' 2>/dev/null | python3 -c 'import struct, sys
data, at, found = sys.stdin.buffer.read(), 24, 0
words = [b"/etc/passwd", b"cmd.exe", b"user-agent: scapy", bytes.fromhex("076578616d706c6503636f6d00")]
while at < len(data):
    length = struct.unpack_from("<I", data, at + 8)[0]
    frame, at = data[at + 16:at + 16 + length].lower(), at + 16 + length
    found += any(word in frame for word in words)
print(found)'
}

payload_as_expected() {
	local node=$1 sent=$2 wanted
	wanted=$(payload_wanted)
	[ "$wanted" -gt 50 ] || { echo "the capture has $wanted packets with those words" >&2; return 1; }
	same "$node: payload: seen, filtered, passed" "$(on "$node" '.rings[] | select(.name == "suspicious") | "\(.seen) \(.filtered) \(.passed)"')" \
		"$sent $((sent - wanted)) $wanted"
	pod_file ringcap-payload "$(pod_in ringcap-payload tcpdump-payload "$node")" /captures/found.pcap "$run/$node.found.pcap"
	same "$node: payload: in the file" "$(captured "$run/$node.found.pcap")" "$wanted"
	same "$node: payload: by words" "$(curl_get "http://$(node_ip "$node"):9466/metrics" '' |
		awk '/^ringcap_payload_pattern_packets_total\{.*suspicious/ { sum += $NF } END { print sum }')" "$wanted"
}

# Only the node with the module has it; on the other the pod waits.
quick_as_expected() {
	pod_file ringcap-quick "$(pod_in ringcap-quick tcpdump-quick node-kmod)" /captures/quick.pcap "$run/quick.pcap"
	same 'quick: in the file' "$(captured "$run/quick.pcap")" "$1"
	same 'node-ebpf: quick' "$(on node-ebpf '.rings[] | select(.name == "quick") | "\(.ready) \(.reason)"')" 'false EngineUnavailable'
	same 'node-ebpf: its pod' "$(kubectl -n ringcap-quick get pods -o json | jq -r '.items[] | select(.status.phase == "Pending") |
		.status.conditions[] | select(.type == "PodScheduled").message | test("Insufficient ringcap.io/quick")')" true
}

# Request and reply of each ping, and nothing but what the filter lets through.
node_as_expected() {
	local node=$1 file=$run/$1.talk.pcap filter
	filter=$(kubectl get capturering node-talk -o 'jsonpath={.spec.filter.bpf}')
	pod_file ringcap-node "$(pod_in ringcap-node tcpdump-node "$node")" /captures/node.pcap "$file"
	same "$node: requests" "$(captured "$file" "icmp[icmptype] == 8 and src $gateway and dst $(node_ip "$node") and ip[2:2] == 361")" 5
	same "$node: replies" "$(captured "$file" "icmp[icmptype] == 0 and dst $gateway and src $(node_ip "$node") and ip[2:2] == 361")" 5
	same "$node: what the filter rejects" "$(captured "$file" "not ($filter)")" 0
}

examples_ping() {
	local node
	for node in $nodes; do busybox ping -q -c 5 -s 333 "$(node_ip "$node")" || return 1; done
}

# Rings and queues are counted a moment apart.
examples_settled() {
	local node
	collect_counters "$run/after.json" || return 1
	for node in $nodes; do
		[ "$(on "$node" '.rings[] | select(.name == "span").seen')" = "$(jq ".\"$node\".onWire" "$run/wire.json")" ] || return 1
	done
	jq -e 'all(.items[].status; . as $s | all(.clusters[] | select((.name | IN("suricata", "flows", "watch", "quick", "suspicious")) and .queues);
		. as $c | ([.queues[] | .unreadBytes] | add) == 0 and ([.queues[] | .delivered, .dropped[]?.packets] | add) ==
		($s.rings[] | select(.name == ({quick: "quick", suspicious: "suspicious"}[$c.name] // "span")).passed)))' "$run/after.json"
}

test_examples_do_what_they_say() {
	local run=$work/examples consumers=ringcap-sensors input=$work/short.pcap node sent pod
	mkdir -p "$run"
	images/build suricata softflowd
	"$root/e2e/cluster/load-images"
	"$rcdemo" trace --out "$input" --at-least 15000 "$(e2e/demo/captures)"
	cp "$input" "$run/input.pcap"
	kubectl apply -f examples/payload.yaml -f examples/quick.yaml -f examples/node.yaml
	quickstart 'A sensor'
	wait_for 240 examples_attached || { state_pods; state_unready; return 1; }
	collect_counters "$run/before.json"
	replay "$input" "$run/wire.json"
	examples_ping
	examples_oracle
	wait_for 120 examples_settled || { jq -c '.items[].status | .rings, .clusters' "$run/after.json" >&2; return 1; }
	for node in $nodes; do
		sent=$(jq ".\"$node\".onWire" "$run/wire.json")
		suricata_as_expected "$node" "$sent"
		softflowd_as_expected "$node" "$sent"
		node_as_expected "$node"
		payload_as_expected "$node" "$sent"
		pod=$(pod_in $consumers tcpdump "$node")
		pod_file $consumers "$pod" /captures/watch.pcap0 "$run/${consumers}_$pod.pcap"
	done
	"$rcdemo" report --dir "$run" --ring span --cluster watch --lossless
	quick_as_expected "$(jq '."node-kmod".onWire' "$run/wire.json")"
	kubectl delete --timeout=3m -f examples/payload.yaml -f examples/quick.yaml -f examples/node.yaml
	quickstart 'Alerts'
	quickstart 'Simulate a failed sensor'
	doctor_warns() { "$ringcap" doctor | grep 'queues of flows: 2 of 2 have no reader'; }
	wait_for 60 doctor_warns || { "$ringcap" doctor; return 1; }
	kubectl delete --timeout=3m -f examples/sensors.yaml --ignore-not-found
	nothing_of_examples() { [ "$(kubectl get capturerings,clusters.ringcap.io -o name | wc -l)" = 2 ]; }
	wait_for 60 nothing_of_examples
}
