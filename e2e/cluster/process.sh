# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Background processes of the cluster, each known by its name, process id and start time, so that only what was started
# here is ever stopped, even after ids were used again. Needs env.sh.

# The time at which a process started, in clock ticks since boot; nothing when there is none.
process_start_time() {
	local stat
	stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
	# The name, in parentheses, may contain blanks: count from its end.
	awk '{ print $20 }' <<<"${stat##*) }"
}

process_record() {
	mkdir -p "$state/run"
	echo "$2 $(process_start_time "$2")" >"$state/run/$1.process"
}

# process_pid NAME: its id while it runs, else nothing.
process_pid() {
	local pid started
	[ -f "$state/run/$1.process" ] || return 0
	read -r pid started <"$state/run/$1.process"
	[ "$(process_start_time "$pid")" = "$started" ] && echo "$pid"
	return 0
}

# Closes what the shell has open besides standard input, output and error. A reader that waits for the end of a pipe would
# otherwise wait for a process that goes on in the background.
process_close_descriptors() {
	local fd
	for fd in /proc/"$BASHPID"/fd/*; do
		fd=${fd##*/}
		if [ "$fd" -gt 2 ]; then eval "exec $fd>&-"; fi
	done
}

# process_start NAME COMMAND...: in the background, in a session of its own, output to its log.
process_start() {
	local name=$1
	shift
	mkdir -p "$logs"
	(
		process_close_descriptors
		exec setsid "$@"
	) >>"$logs/$name.log" 2>&1 </dev/null &
	process_record "$name" $!
}

# process_stop NAME [SIGNAL]: asks (TERM), and after 5 seconds kills; returns when it is gone.
process_stop() {
	local pid
	pid=$(process_pid "$1")
	if [ -n "$pid" ]; then
		kill -s "${2:-TERM}" "$pid" 2>/dev/null || true
		wait_for 5 process_gone "$1" || kill -9 "$pid" 2>/dev/null || true
		wait_for 10 process_gone "$1" || die "process $pid ($1) does not end"
	fi
	rm -f "$state/run/$1.process"
}

process_gone() {
	local pid
	pid=$(process_pid "$1")
	# A zombie is gone but for its parent's taking notice.
	[ -z "$pid" ] || [ "$(awk '/^State:/ { print $2 }' "/proc/$pid/status" 2>/dev/null)" = Z ]
}
