# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
#
# For scripts in VMs: the counters of an in-line cluster and its ring.

# count FILE-PATTERN LINE: the sum over files of the module's folder in /proc.
count() {
	# shellcheck disable=SC2086 # a pattern
	cat /proc/net/ringcap/$1 2>/dev/null | awk -F': *' -v name="$2" '$1 == name { n += $2 } END { print n + 0 }'
}

# conserved NAME [RING]: every packet that the ring has seen has one of the fates, and the rest of the line is printed. The program line
# calls the ring NAME-pair.
conserved() {
	awk -F': *' -v name="$1" '
		FILENAME ~ /\/ring\// { ring[$1] += $2; next }
		$2 ~ /^[0-9]+$/ { queue[$1] += $2 }
		END {
			in_ring = ring["Bridged"] + ring["Lost too long"] + ring["Lost refused"] + ring["Lost nomem"] + ring["Lost down"]
			n = split("Held,Passed on,Replaced,Blocked,Unanswered,Bypass unattended,Bypass full,Bypass hung,Block unattended," \
				"Block full,Block hung,Shunt passed,Shunt blocked,Lost too long,Lost refused,Lost nomem,Lost down", fates, ",")
			text = sprintf("seen %d = bridged or lost %d", ring["Seen"], in_ring)
			for (i = 1; i <= n; i++) {
				sum += queue[fates[i]]
				if (queue[fates[i]])
					text = text sprintf(" + %s %d", tolower(fates[i]), queue[fates[i]])
			}
			text = text sprintf("; injected %d, not injected %d, verdicts late %d, unknown %d, bypasses %d in %d ms", queue["Injected"],
				queue["Not injected"], queue["Verdicts late"], queue["Verdicts unknown"], queue["Bypasses"], queue["Bypass ms"])
			print text
			exit !(ring["Seen"] == in_ring + ring["Passed"] && ring["Passed"] == sum)
		}' "/proc/net/ringcap/ring/${2:-$1-pair}" /proc/net/ringcap/queue/"$1"-*
}
