# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# For scripts in a VM, after guest.sh: an agent without Kubernetes, with a ring of the module at mirror0, to which wire0 sends
# /config/in.pcap. They have node-agent, tcpreplay and /sbin/ip.

make_interfaces() {
	echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
	/sbin/ip link add mirror0 mtu 9000 type veth peer name wire0 mtu 9000 || fail "no interfaces"
	/sbin/ip link set mirror0 up
	/sbin/ip link set wire0 up
	mkdir -p /run/ringcap
}

# sum FIELD: of all queues' files in /proc.
sum() { cat /proc/net/ringcap/queue/ids-* 2>/dev/null | awk -F': *' -v name="$1" '$1 == name { n += $2 } END { print n + 0 }'; }

attached() { [ "$(grep -cs '"attached": true' /tmp/status.json)" = "$1" ]; }

queues() { [ "$(grep -cs '"queue": [0-9]' /tmp/status.json)" = "$1" ]; }

all_read() { [ $(($(sum Delivered) + $(sum Shunted))) = "$1" ] && [ "$(sum 'Unread bytes')" = 0 ]; }

start_agent() { # queues
	mkdir -p /tmp/manifests
	cat >/tmp/manifests/ids.yaml <<-YAML
		apiVersion: ringcap.io/v1alpha1
		kind: CaptureRing
		metadata: {name: ids}
		spec: {interfaces: [{name: mirror0}], direction: Receive, engine: KernelModule, queues: $1, fragments: WithFlow, consumers: {shunt: 100}}
	YAML
	rm -f /tmp/status.json
	/bin/node-agent --standalone /tmp/manifests --status-json /tmp/status.json --metrics-address '' >/tmp/agent.log 2>&1 &
	agent=$!
	eventually queues "$1" || fail "the agent: $(tail -n 3 /tmp/agent.log)"
}

# Sets packets, their number, and how many of them were shunted. Ends when the others have been read.
replay() {
	/bin/tcpreplay --quiet --preload-pcap --intf1=wire0 /config/in.pcap >/tmp/tcpreplay 2>&1 || fail "tcpreplay: $(cat /tmp/tcpreplay)"
	packets=$(awk '$1 == "Successful" { print $3 }' /tmp/tcpreplay)
	eventually all_read "$packets" ||
		fail "of $packets packets $(sum Delivered) were delivered and $(sum Shunted) shunted, unread bytes $(sum 'Unread bytes')"
	shunted=$(sum Shunted)
}
