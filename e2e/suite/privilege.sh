# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What the agents and the consumers of a running cluster really may do. Needs disturbed.sh.

# capabilities CONTAINER: the mask of those that docs/security.md gives to it.
capabilities() {
	local name mask=0
	for name in $(sed -n "s/^| $1 | \`CAP_\([A-Z_]*\)\` |.*/\1/p" "$root/docs/security.md"); do
		mask=$((mask | 1 << $(awk -v name="CAP_$name" '$1 == "#define" && $2 == name { print $3 }' /usr/include/linux/capability.h)))
	done
	printf '%016x\n' "$mask"
}

# shellcheck disable=SC2016 # the other shell's
test_agents_have_the_documented_capabilities() {
	local want said
	want=$(capabilities agent)
	[ "$want" != 0000000000000000 ]
	said=$(each_node 'grep -hE "^(CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp):" /proc/$(pidof node-agent)/status')
	echo "$said"
	[ "$(awk '/^Cap/ { print $2 }' <<<"$said" | sort -u)" = "$want" ]
	[ "$(awk '/^NoNewPrivs/ { print $2 }' <<<"$said" | sort -u)" = 1 ]
	[ "$(awk '/^Seccomp:/ { print $2 }' <<<"$said" | sort -u)" = 2 ]
}

# Of the node's /sys, with all that is mounted below it, an agent can write devices and drivers, and its pins; of /proc the network's
# sysctls.
# shellcheck disable=SC2016 # the other shell's
test_agents_write_little_of_sys() {
	local said
	said=$(each_node 'awk "\$2 ~ /^\/host/ { print \$2, \$4 }" /proc/$(pidof node-agent)/mounts')
	echo "$said"
	[ "$(awk '$2 ~ /^rw/ { print $1 }' <<<"$said" | sort -u | xargs)" = '/host/proc/sys/net /host/sys/bus /host/sys/devices' ]
	[ "$(grep -c '^/host/sys ro' <<<"$said")" = 2 ]
}

# shellcheck disable=SC2016 # the other shell's
test_consumers_have_no_capability() {
	local said
	[ "$(kubectl get namespace ringcap-demo -o json | jq -r '.metadata.labels["pod-security.kubernetes.io/enforce"]')" = restricted ]
	said=$(each_node 'for pid in $(pidof tcpdump); do grep -hE "^(Uid|CapEff|CapBnd|NoNewPrivs):" /proc/$pid/status; done')
	echo "$said"
	[ "$(awk '/^Cap/ { print $2 }' <<<"$said" | sort -u)" = 0000000000000000 ]
	[ "$(awk '/^Uid/ { print $2 }' <<<"$said" | sort -u)" = 65534 ]
}
