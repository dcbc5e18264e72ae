# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# ringcap on the real cluster: what a person sees of it, and packets taken home, all of them. Needs refused.sh and
# disturbed.sh.

ringcap=$root/out/bin/ringcap

test_ringcap_status_and_doctor() {
	local said status=0
	said=$("$ringcap" status)
	echo "$said"
	grep -q '^✓ CaptureRing mirror\|^! CaptureRing mirror' <<<"$said"
	for node in $nodes; do grep -q "node $node " <<<"$said"; done
	# Of the module's node and the other, and the account as the API has it.
	"$ringcap" status -o json | jq -e '.rings[] | select(.name == "mirror") |
		(.seen == .filtered + .sampledOut + .reflected + .absorbed + .directed + .passed) and
		([.nodes[].engine] | sort) == ["EBPF", "KernelModule"]'
	said=$("$ringcap" doctor)
	echo "$said"
	grep -q '0 errors' <<<"$said"
	apply suite-nowhere CaptureRing '{interfaces: [{name: nowhere0}], queues: 1}'
	expect_condition capturerings/suite-nowhere Ready 'False InterfaceNotFound'
	said=$("$ringcap" doctor) || status=$?
	echo "$said"
	[ "$status" = 3 ]
	grep -q 'Error .*CaptureRing suite-nowhere: InterfaceNotFound' <<<"$said"
	status=0
	"$ringcap" status suite-nowhere || status=$?
	[ "$status" = 3 ]
	remove capturerings/suite-nowhere
}

# captures WORDS...: a capture in the background, up to when it captures on both nodes. Its process is $capture.
captures() {
	# What an earlier capture printed must not be taken for this one's, which may start late.
	: >"$work/capture.err"
	# A virtual machine without KVM takes its time over a pod.
	"$ringcap" capture "$@" --timeout 4m 2>"$work/capture.err" &
	capture=$!
	wait_for 240 grep -q 'capturing on' "$work/capture.err" || { cat "$work/capture.err" >&2; return 1; }
	cat "$work/capture.err"
}

# What the nodes know of captures by the command line, when packets are missing in one.
accounts_of_captures() {
	"$rcdemo" nodecaptures | jq -c '.items[] | .metadata.name as $node | .status | (.rings[]?, .clusters[]?) | select(.name | startswith("ringcap-cli-")) |
		[$node, .name, .ready, .reason, .interfaces, .seen, .passed, .queues[]?]'
}

# captured FILE [FILTER]: its packets.
captured() { tcpdump -r "$1" --count ${2:+"$2"} 2>/dev/null | awk '{ print $1 + 0 }'; }

# All that was sent to both nodes is in the file, in order of time, and nothing is left behind.
test_ringcap_capture_is_exact() {
	local file=$work/all.pcapng run=$work/capture_all sent packets
	mkdir -p "$run"
	captures mirror -w "$file" --slots 16384
	replay "$input" "$run/wire.json"
	sent=$(jq '[.[].onWire] | add' "$run/wire.json")
	# What was sent last is on its way through queue, pod and API server.
	all_there() { [ "$(captured "$file")" -ge "$sent" ]; }
	wait_for 60 all_there || accounts_of_captures || true
	kill -INT "$capture"
	wait "$capture" || { cat "$work/capture.err" >&2; return 1; }
	cat "$work/capture.err"
	packets=$(captured "$file")
	echo "sent $sent, captured $packets"
	[ "$packets" = "$sent" ]
	grep -q ", 0 lost$" "$work/capture.err"
	# A starved virtual machine sends more than a second late; ringcap says so. A packet may take more than one line: the
	# others begin otherwise.
	grep -q 'came too late' "$work/capture.err" || tcpdump -tt -nr "$file" 2>/dev/null | awk '!/^[0-9]+[.][0-9]+ / { next } $1 + 0 < last { late++ } { last = $1 + 0 }
		END { exit late > 0 || !last }'
	for node in $nodes; do grep -qa "$node/mirror0" "$file"; done
	ringcap_left_nothing
}

ringcap_left_nothing() {
	[ -z "$(kubectl get capturerings,clusters.ringcap.io,pods -A -l ringcap.io/temporary-capture -o name)" ]
}

# By a filter, through a pipe whose reader goes away.
test_ringcap_capture_with_a_filter() {
	local file=$work/some.pcapng run=$work/capture_some want
	mkdir -p "$run"
	captures mirror --node node-ebpf -f 'tcp port 80' -w "$file" --slots 16384
	replay "$input" "$run/wire.json" node-ebpf
	want=$(captured "$input" 'tcp port 80')
	some_there() { [ "$(captured "$file")" -ge "$want" ]; }
	wait_for 60 some_there || accounts_of_captures || true
	kill -INT "$capture"
	wait "$capture" || { cat "$work/capture.err" >&2; return 1; }
	cat "$work/capture.err"
	echo "sent $want, captured $(captured "$file")"
	[ "$want" -gt 0 ] && [ "$(captured "$file")" = "$want" ]
	ringcap_left_nothing
}

test_ringcap_capture_refuses() {
	local said status=0
	said=$("$ringcap" capture mirror -f 'tcp prt 80' -w "$work/none.pcapng" 2>&1) || status=$?
	echo "$said"
	[ "$status" = 2 ] && [ ! -e "$work/none.pcapng" ]
	status=0
	said=$("$ringcap" -n ringcap-demo capture pod/nobody -w "$work/none.pcapng" 2>&1) || status=$?
	echo "$said"
	[ "$status" = 1 ] && [ ! -e "$work/none.pcapng" ]
	ringcap_left_nothing
}

# The replayed capture itself, by the ring as it is: all of it would be captured, and was.
test_ringcap_explain() {
	local said
	said=$("$ringcap" explain mirror --pcap "$input")
	echo "$said"
	grep -q "of $(captured "$input") packets $(captured "$input") captured, 0 not, 0 depend" <<<"$said"
}
