# SPDX-License-Identifier: Apache-2.0
#
# Of the lines of `go test -json` one for each case that has ended, and at the end how many have passed, and which of the NAMEs neither passed
# nor failed: after a panic there are such, and jq fails. Of a case that failed there are the last lines of its log, marked as e2e/test and a
# CI that reads TAP know them: among dozens that passed nobody finds the one that did not.
#   jq -Rnr --unbuffered --arg log FILE -f report.jq --args NAME...
def padded: . + " " * (44 - length) // .;

foreach (inputs, null | if . then fromjson? // {Action: "output", Output: .} else . end) as $e (
	{said: {}, passed: [], failed: []};
	($e.Test // "the package" | ltrimstr("Test")) as $name | .line = null |
	if $e.Action | IN("output", "build-output") then .said[$name] += $e.Output
	elif $e.Action == "pass" and $e.Test then .passed += [$name] | .line = "\($name | padded) ok    \($e.Elapsed | round) s"
	elif $e.Action == "fail" and ($e.Test or .failed == []) then
		.failed += [$name] |
		.line = "\($name | padded) FAIL  \($e.Elapsed | round) s  \($log)\n" +
			(.said[$name] | rtrimstr("\n") | split("\n")[-30:] | map("    *** \(.[:240])\n") | add) + "not ok - \($name)"
	elif $e == null then
		($ARGS.positional - .passed - .failed) as $not_run |
		.line = (["\(.passed | length) passed, \(.failed | length) failed"] + .failed | join(" ")) +
			if $not_run == [] then "" else "\nnot ok - \($not_run | length) not run: \($not_run | join(" "))" end |
		.status = if $not_run == [] then 0 else 1 end
	else . end;
	.line // empty, if .status == 1 then "" | halt_error(1) else empty end)
