# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# For scripts in a VM: how they fail, wait and stop what they started.

fail() {
	echo "not ok - $*"
	exit 1
}

# eventually COMMAND...: succeeds within two minutes.
eventually() {
	for _ in $(seq 1200); do
		"$@" && return
		usleep 100000
	done
	return 1
}

# stop PROCESS NAME LOG
stop() {
	kill -TERM "$1"
	wait "$1" || fail "$2 ended with $?: $(tail -n 5 "$3")"
}
