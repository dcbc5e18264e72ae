# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The image of the suite's own consumers: busybox, the probe and a sender, as out/images/probe.tar. Needs $root and $images.

image_make() {
	local folder
	folder=$(mktemp -d)
	chmod 755 "$folder"
	mkdir -p "$folder"/{bin,tmp}
	chmod 1777 "$folder/tmp"
	gcc -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -static -I"$root/kmod/include/uapi" -o "$folder/bin/probe" \
		"$root/e2e/suite/probe/probe.c" || return 1
	gcc -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -static -o "$folder/bin/send" "$root/e2e/suite/probe/send.c" || return 1
	cp "$(command -v busybox)" "$folder/bin/busybox"
	ln -s busybox "$folder/bin/sh"
	ln -s busybox "$folder/bin/sleep"
	"$root/images/archive" probe "$folder" "$images/probe.tar" '{"Cmd": ["sleep", "infinity"]}' || return 1
	rm -rf "$folder"
}
