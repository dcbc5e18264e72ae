# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Debian's Suricata with the plugin, for scripts that start VMs, from the top folder. out is their folder for what they make.

# use_suricata SERIES: sets the variables of lib/suricata/get, builds the plugin, and lists the files of a working folder in config.
use_suricata() {
	local variables
	variables=$(lib/suricata/get "$1") || exit
	eval "$variables"
	make -s -C lib suricata SURICATA_INFO="$SURICATA_INFO" SURICATA_SOURCE="$SURICATA_SOURCE" SURICATA_INCLUDE="$SURICATA_INCLUDE" >/dev/null
	libraries=usr/lib/$(gcc -print-multiarch)
	loader=$(cd "$SURICATA_ROOT" && find "$libraries" -name 'ld-linux*.so.?')
	config=("$SURICATA_ROOT"/etc/suricata/{classification,reference,threshold}.config "out/lib/suricata/$SURICATA_VERSION/ringcap-capture.so")
}

# layer SERIES FILE...: makes out/SERIES.tar: the program and its libraries in root/, and the files of the working folder.
layer() {
	local to=$out/layer-$1 series=$1
	shift
	mkdir -p "$to/root"
	cp "${config[@]}" "$@" "$to/"
	echo "root/$loader" >"$to/loader"
	# What glibc opens when a thread ends is not listed.
	(cd "$SURICATA_ROOT" && cp -L --parents usr/bin/suricata "$loader" "$libraries/libgcc_s.so.1" "$to/root/" &&
		"$loader" --library-path "$libraries" --list usr/bin/suricata | grep -o "$libraries/[^ ]*" | xargs cp -L --parents -t "$to/root/")
	tar -cf "$out/$series.tar" -C "$to" .
}

# read_file SERIES CAPTURE: leaves the events of its Suricata in out/file-SERIES.
read_file() {
	mkdir -p "$out/file-$1"
	(cd "$out/layer-$1" && "root/$loader" --library-path "root/$libraries" root/usr/bin/suricata -c suricata.yaml --runmode single \
		-l "$out/file-$1" -r "$2") >"$out/file-$1.log" 2>&1 ||
		{ echo "suricata: Suricata $1 cannot read the file: $(tail -n 3 "$out/file-$1.log")" >&2; exit 1; }
}
