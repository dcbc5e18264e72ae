# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Images as distributions make them, with their own libpcap, which knows nothing of ringcap: the distribution's here, and
# stand-ins for those of RHEL (libpcap.so.1 in /usr/lib64) and of Alpine (musl, in /usr/lib). Needs $root, $images and $work.

# knows_ringcap LIBRARY: by its texts. Elsewhere in the file is the path that it was compiled in, such as of a checkout named ringcap.
knows_ringcap() { readelf -p .rodata "$1" | grep ringcap >/dev/null; }

# stock_image NAME FOLDER LIBPCAP PATH: with a libpcap at its place, which PATH, a link, names as programs do.
stock_image() {
	local tool
	if knows_ringcap "$3"; then
		echo "$3 is not a stock libpcap" >&2
		return 1
	fi
	install -D "$3" "$2${4%/*}/libpcap.so.1.10.3"
	ln -s libpcap.so.1.10.3 "$2$4"
	install -D "$(command -v busybox)" "$2/usr/bin/busybox"
	for tool in sh cat ls wc head tail; do ln -s busybox "$2/usr/bin/$tool"; done
	mkdir -p "$2"/{captures,proc,dev,sys,tmp}
	[ ! -d "$2/usr/lib64" ] || ldconfig -r "$2"
	"$root/images/archive" "stock-$1" "$2" "$images/stock-$1.tar"
}

# glibc_image FOLDER PROGRAM: a program with its libraries but libpcap, in a file system like Debian's and RHEL's.
glibc_image() {
	local library
	mkdir -p "$1"/usr/{bin,lib,lib64} "$1/etc"
	ln -s usr/lib "$1/lib"
	ln -s usr/lib64 "$1/lib64"
	printf '%s\n' "/usr/lib/$(gcc -print-multiarch)" /usr/lib64 >"$1/etc/ld.so.conf"
	install "$2" "$1/usr/bin/"
	while read -r library; do
		case $library in */libpcap.so.*) ;; *) install -D "$library" "$1$library" ;; esac
	done < <(ldd "$2" | grep -o '/[^ ]*')
}

stock_images() {
	local build=$work/stock debian kind headers=$root/out/obj/lib/musl/include
	mkdir -p "$build"
	debian=$(ldd "$(command -v tcpdump)" | awk '$1 == "libpcap.so.0.8" { print $3 }')
	glibc_image "$build/debian" "$(command -v tcpdump)"
	stock_image debian "$build/debian" "$(readlink -f "$debian")" "/usr/lib/$(gcc -print-multiarch)/libpcap.so.0.8"

	SONAME=libpcap.so.1 CC=gcc lib/pcap/build plain "$root/out/obj/stock/glibc"
	SONAME=libpcap.so.1 CC=musl-gcc CFLAGS="-O2 -isystem $headers" lib/pcap/build plain "$root/out/obj/stock/musl"
	for kind in glibc musl; do
		cp "$root/out/obj/stock/$kind/libpcap.so" "$build/$kind.so.1"
		mkdir -p "$build/bin-$kind"
	done
	gcc -O2 -Wall -Wextra -Werror -I"$root/out/obj/stock/glibc/src" -o "$build/bin-glibc/pcapdump" \
		e2e/suite/probe/pcapdump.c "$build/glibc.so.1" -Wl,-rpath-link,"$build"
	musl-gcc -O2 -Wall -Wextra -Werror -I"$root/out/obj/stock/musl/src" -isystem "$headers" -o "$build/bin-musl/pcapdump" \
		e2e/suite/probe/pcapdump.c "$build/musl.so.1"
	glibc_image "$build/rhel" "$build/bin-glibc/pcapdump"
	stock_image rhel "$build/rhel" "$build/glibc.so.1" /usr/lib64/libpcap.so.1
	install -D "$build/bin-musl/pcapdump" "$build/alpine/usr/bin/pcapdump"
	install -D "/lib/ld-musl-$(uname -m).so.1" "$build/alpine/lib/ld-musl-$(uname -m).so.1"
	stock_image alpine "$build/alpine" "$build/musl.so.1" /usr/lib/libpcap.so.1
	"$root/e2e/cluster/load-images"
}
