# SPDX-License-Identifier: Apache-2.0
#
# Of the lines of `go test -json` one for each case that has ended, and at the end how many have passed. Of a case that failed there are the
# last lines of its log, marked as e2e/test and a CI that reads TAP know them: among dozens that passed nobody finds the one that did not.
#   jq -Rnr --unbuffered --arg log FILE -f report.jq
def padded: . + " " * (44 - length) // .;

foreach (inputs, null | if . then fromjson? // {Action: "output", Output: .} else . end) as $e (
	{said: {}, passed: 0, failed: []};
	($e.Test // "the package" | ltrimstr("Test")) as $name | .line = null |
	if $e.Action | IN("output", "build-output") then .said[$name] += $e.Output
	elif $e.Action == "pass" and $e.Test then .passed += 1 | .line = "\($name | padded) ok    \($e.Elapsed | round) s"
	elif $e.Action == "fail" and ($e.Test or .failed == []) then
		.failed += [$name] |
		.line = "\($name | padded) FAIL  \($e.Elapsed | round) s  \($log)\n" +
			(.said[$name] | rtrimstr("\n") | split("\n")[-30:] | map("    *** \(.[:240])\n") | add) + "not ok - \($name)"
	elif $e == null then .line = (["\(.passed) passed, \(.failed | length) failed"] + .failed | join(" "))
	else . end;
	.line // empty)
