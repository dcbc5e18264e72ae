# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# For scripts in a VM, after guest.sh and lib/tests/inline.sh:
#
#     client, a0 ==== eth1  the pair "ips", two queues, a sensor  eth2 ==== b0, web server
#
# A standalone agent makes the pair of /manifests, and its status is held against the module's counters and those of the
# interfaces. They have node-agent, curl and /sbin/ip. The kernel's command line has the size of a transfer.
# shellcheck disable=SC2317,SC2154 # functions that eventually calls; what the script sets

in_a() { /sbin/ip netns exec a "$@"; }
in_b() { /sbin/ip netns exec b "$@"; }
attached() { [ "$(cat /proc/net/ringcap/queue/ips-* | grep -c '^Attached: yes')" = "$1" ]; }
queues() { count 'queue/ips-*' "$1"; }
at_least() { [ "$(queues "$1")" -ge "$2" ]; }
now_ms() { awk '{ print int($1 * 1000) }' /proc/uptime; }

made() { [ -s /tmp/status.json ] && status_lines | grep -q '^rings.ready true$' && [ "$(status_lines | grep -c '^clusters.queues.queue ')" = 2 ]; }

start_agent() {
	rm -f /tmp/status.json
	/bin/node-agent --standalone /manifests --status-json /tmp/status.json --metrics-address '' >>/tmp/agent.log 2>&1 &
	agent=$!
	eventually made || fail "the agent: $(tail -n 3 /tmp/agent.log)"
}

kill_agent() {
	kill -9 $agent
	wait $agent
}

# A line for each value of the status: its place, such as clusters.queues.inline.bypassed.hung, and the value.
status_lines() {
	awk '
		{
			match($0, /^ */)
			depth = RLENGTH / 2
			key[depth] = ""
			if (!match($0, /"[^"]*": /))
				next
			key[depth] = substr($0, RSTART + 1, RLENGTH - 4)
			value = substr($0, RSTART + RLENGTH)
			gsub(/[",]/, "", value)
			if (key[depth] == "reason")
				reason = value
			if (key[depth] == "packets")
				key[depth] = reason
			path = ""
			for (i = 1; i <= depth; i++)
				path = path (key[i] == "" || path == "" ? "" : ".") key[i]
			print path, value
		}' /tmp/status.json
}

# status PLACE: the sum of the numbers there.
status() { status_lines | awk -v place="$1" '$1 == place { sum += $2 } END { print sum + 0 }'; }

# Each counter of the queues, and where the status has it.
fates='Held=held
Passed on=passed
Replaced=replaced
Blocked=blocked
Unanswered=unanswered
Bypass unattended=bypassed.unattended
Bypass full=bypassed.full
Bypass hung=bypassed.hung
Block unattended=stopped.unattended
Block full=stopped.full
Block hung=stopped.hung
Shunt passed=shuntPassed
Shunt blocked=shuntBlocked
Lost too long=lost.toolong
Lost refused=lost.refused
Lost nomem=lost.nomem
Lost down=lost.down
Injected=injected
Not injected=notInjected
Verdicts late=lateVerdicts
Verdicts unknown=unknownVerdicts
Bypasses=episodes'

in_status() {
	[ "$(status rings.seen)" = "$(count ring/ips Seen)" ] && [ "$(status rings.passed)" = "$(count ring/ips Passed)" ] || return
	echo "$fates" | while IFS='=' read -r line path; do
		[ "$(status clusters.queues.inline."$path")" = "$(queues "$line")" ] || return 1
	done
}

# event NAME: both queues have this event.
event() { [ "$(status_lines | grep -c "^clusters.queues.inline.event $1\$")" = 2 ]; }
no_event() { ! grep -q '"event"' /tmp/status.json; }

make_hosts() {
	for pair in a/eth1 b/eth2; do
		host=${pair%/*} port=${pair#*/}
		/sbin/ip netns add "$host" || fail "no namespace"
		/sbin/ip netns exec "$host" sh -c 'echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6; echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6'
		/sbin/ip link add "${host}0" netns "$host" type veth peer name "$port"
		/sbin/ip link set "$port" up
		/sbin/ip netns exec "$host" /sbin/ip link set "${host}0" up
	done
	in_a /sbin/ip address add 192.0.2.1/24 dev a0
	in_b /sbin/ip address add 192.0.2.2/24 dev b0
	mkdir -p /www
	dd if=/dev/urandom of=/www/large bs=1M count="$megabytes" 2>/dev/null
	echo "this is a secret" >/www/word
	for name in allowed forbidden rejected; do echo "$name" >/www/$name; done
	for port in 80 443; do in_b httpd -p $port -h /www; done
}

# get PATH [SECONDS [PORT]]
get() { in_a /bin/curl -s -m "${2:-20}" "http://192.0.2.2:${3:-80}/$1"; }

# of_pair COUNTER: of the pair's two interfaces.
of_pair() { echo $(($(cat /sys/class/net/eth1/statistics/"$1") + $(cat /sys/class/net/eth2/statistics/"$1"))); }

# What the interfaces have counted is what the module has. Blocked flows still send, so it may take some tries.
same_counts() {
	seen=$(count ring/ips Seen)
	left=$(count ring/ips Bridged)
	for line in 'Passed on' 'Shunt passed' Replaced Injected 'Bypass unattended' 'Bypass full' 'Bypass hung'; do
		left=$((left + $(queues "$line")))
	done
	received=$(($(of_pair rx_packets) - received_before))
	sent=$(($(of_pair tx_packets) - sent_before))
	result=$(conserved ips ips) && [ "$seen $left" = "$received $sent" ]
}

settled() {
	eventually same_counts || fail "the interfaces received $received and sent $sent packets; $seen were seen and $left left: $result"
	eventually in_status || fail "the status has other counts than $result: $(cat /tmp/status.json)"
	echo "      $result"
}

transfer() { # what [port]
	start=$(now_ms)
	got=$(get large 300 "${2:-80}" | md5sum)
	[ "$got" = "$checksum" ] || fail "$1: other bytes came than were sent"
	echo "ok    $1: $megabytes MB as they were sent, in $(($(now_ms) - start)) ms"
}

# Starts a transfer. Waits until the consumer has passed packets of it.
begin_transfer() {
	passed=$(queues 'Passed on')
	get large 300 2>/dev/null | md5sum >/tmp/got &
	transfer=$!
	eventually at_least 'Passed on' $((passed + 100)) || fail "the transfer does not begin"
}

end_transfer() { # what
	wait $transfer
	[ "$(cat /tmp/got)" = "$checksum" ] || fail "$1: other bytes came than were sent"
	echo "ok    $1: $megabytes MB as they were sent"
}

# The TCP connections that a reset has ended: EstabResets.
# shellcheck disable=SC2016 # awk's
resets_in() { /sbin/ip netns exec "$1" awk '$1 == "Tcp:" && $2 ~ /^[0-9]/ { print $9 }' /proc/net/snmp; }

decides() {
	get allowed >/dev/null
	at_least 'Passed on' $((passed + 1))
}

# A sensor that has opened the queues begins a while later.
eventually_decides() {
	passed=$(queues 'Passed on')
	eventually decides
}

# Sets what settled starts from.
make_pair() {
	megabytes=$(tr ' ' '\n' </proc/cmdline | sed -n 's/^ringcap.megabytes=//p')
	echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
	make_hosts
	checksum=$(md5sum </www/large)
	received_before=$(of_pair rx_packets)
	sent_before=$(of_pair tx_packets)
	mkdir -p /run/ringcap
	start_agent
}
