# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# Suricata of debian.sh's layer in a VM, after guest.sh.
nobody=65534

# unpack SERIES: its folder.
unpack() {
	mkdir -p /suricata/"$1"
	tar -x -C /suricata/"$1" -f /suricata/"$1".tar || fail "no room for Suricata $1"
	rm /suricata/"$1".tar
}

# For every user: the top folder, and the device nodes, as a container has them.
open_nodes() { chmod 755 / /dev/ringcap /dev/ringcap/* && chmod 666 /dev/ringcap/*/*; }

# run_suricata SERIES FOLDER OPTION...: with its events in the folder, as a user without any capability. Ends only with Suricata.
run_suricata() {
	cd /suricata/"$1" || fail "no Suricata $1"
	mkdir -p "$2"
	chown $nobody:$nobody "$2"
	loader=$(cat loader) folder=$2
	shift 2
	exec env -i PATH=/bin /sbin/setpriv --reuid $nobody --regid $nobody --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all \
		"$loader" --library-path "${loader%/*}" root/usr/bin/suricata -c suricata.yaml -l "$folder" --capture-plugin ringcap "$@"
}

started() { grep -q 'ngine started' "$1"; }
