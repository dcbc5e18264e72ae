# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Steps of the demo: each says what is being done and how long it took; one that fails says where its log is. Needs
# $log, the folder of logs.

demo_start=$SECONDS
steps_file=$log/steps.jsonl

elapsed() { printf '[%3d s]' $((SECONDS - demo_start)); }

note() { printf '%s   %s\n' "$(elapsed)" "$*"; }

# step NAME WHAT COMMAND...: runs the command with its output in the log NAME. A command that has something to say while
# it works writes that to file descriptor 3.
step() {
	local name=$1 what=$2 start=$SECONDS status
	shift 2
	printf '%s %s\n' "$(elapsed)" "$what"
	# Not behind || or if: there errexit would be off in all that the command does.
	set +e
	(
		set -e
		"$@"
	) 3> >(while IFS= read -r line; do note "$line"; done) >"$log/$name.log" 2>&1
	status=$?
	set -e
	if [ "$status" != 0 ]; then
		tail -n 15 "$log/$name.log" | sed 's/^/    | /' >&2
		printf '%s FAILED: %s\n    log: %s\n' "$(elapsed)" "$what" "$log/$name.log" >&2
		exit 1
	fi
	jq -nc --arg step "$name" --argjson seconds $((SECONDS - start)) '{$step, $seconds}' >>"$steps_file"
}
