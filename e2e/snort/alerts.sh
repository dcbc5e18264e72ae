# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# Alerts that can be compared, for scripts here and in a VM.

# Rules of which a thread's alerts depend on what else the thread has had (rules.rules): with several threads they cannot be those of one.
over_flows=1401 # the number depends: any is right
by_piece=1501   # the number depends, but not for which flows there are any

# alerts FOLDER QUEUES: all threads' as one, without order.
alerts() {
	cat "$1"/*alert_csv.txt | if [ "$2" = 1 ]; then cat; else independent; fi | LC_ALL=C sort
}

# What does not depend on the number of threads.
independent() {
	awk -F', ' -v OFS=', ' -v over="$over_flows" -v by="$by_piece" '
		$2 == over { next }
		$2 == by { $6 = "" }
		$2 != by || !seen[$0]++'
}
