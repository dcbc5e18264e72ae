# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Debian packages of any suite, downloaded beside the machine's own package state: nothing is installed, and the
# machine's sources, lists and dpkg database are only read. Sourced by the scripts of this folder.
#
#   apt_open DIR SUITE...   a private package state in DIR for these suites, with fresh lists
#   apt_version PKG         the newest version of PKG in them
#   apt_closure REGEX PKG...  PKGs and what they depend on, as far as names match REGEX (extended, anchored by you)
#   apt_fetch DIR PKG...    downloads the packages' newest versions into DIR
#   apt_toolchain DIR PKG...  downloads PKGs with all of their dependencies into DIR, as for an empty machine

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# Where Debian's main and security archives are, as this machine's own sources have it. RINGCAP_DEBIAN_MIRROR and
# RINGCAP_DEBIAN_SECURITY_MIRROR name them on machines that are no Debian.
apt_find_mirrors() {
	local targets
	debian_mirror=${RINGCAP_DEBIAN_MIRROR:-} security_mirror=${RINGCAP_DEBIAN_SECURITY_MIRROR:-}
	command -v apt-get >/dev/null || die "apt-get is missing: kernels come from Debian packages; run this on Debian or Ubuntu"
	# shellcheck disable=SC2016 # the $(...) are apt's
	targets=$(env -u APT_CONFIG apt-get indextargets --format '$(ORIGIN)|$(RELEASE)|$(REPO_URI)' \
		'Created-By: Packages' 2>/dev/null | sort -u) || true
	[ -n "$debian_mirror" ] ||
		debian_mirror=$(awk -F'|' '$1 == "Debian" && $2 ~ /^[a-z]+$/ { print $3; exit }' <<<"$targets")
	[ -n "$security_mirror" ] ||
		security_mirror=$(awk -F'|' '$1 == "Debian" && $2 ~ /-security$/ { print $3; exit }' <<<"$targets")
	[ -n "$debian_mirror" ] || die "no Debian archive among this machine's apt sources (is it Debian, and did" \
		"'apt-get update' run?). Elsewhere name one: RINGCAP_DEBIAN_MIRROR=http://.../debian"
	apt_keyring=${RINGCAP_DEBIAN_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}
	[ -r "$apt_keyring" ] || die "$apt_keyring is missing: install the package debian-archive-keyring"
}

# apt_try LOG COMMAND...: archives have bad moments, and mirrors are changed under their readers.
apt_try() {
	local log=$1 pause
	shift
	for pause in 5 20 0; do
		"$@" >"$log" 2>&1 && return
		[ "$pause" = 0 ] || sleep "$pause"
	done
	return 1
}

# What apt says went wrong in LOG, for a message.
apt_errors() {
	grep -E '^[EW]:' "$1" | head -n 5 || true
}

apt_open() {
	local dir=$1 suite mirror
	shift
	apt_find_mirrors
	mkdir -p "$dir/lists/partial" "$dir/archives/partial"
	: >"$dir/status"
	: >"$dir/sources.list"
	for suite; do
		mirror=$debian_mirror
		if [[ $suite == *-security ]]; then
			# Not having it only means an older kernel of the same series.
			[ -n "$security_mirror" ] || continue
			mirror=$security_mirror
		fi
		echo "deb [arch=amd64 signed-by=$apt_keyring] $mirror $suite main" >>"$dir/sources.list"
	done
	cat >"$dir/apt.conf" <<-EOF
		Dir::State "$dir";
		Dir::State::lists "$dir/lists";
		Dir::State::status "$dir/status";
		Dir::Cache "$dir";
		Dir::Cache::archives "$dir/archives";
		Dir::Etc::SourceList "$dir/sources.list";
		Dir::Etc::SourceParts "/dev/null";
		Dir::Etc::Preferences "/dev/null";
		Dir::Etc::PreferencesParts "/dev/null";
		APT::Architecture "amd64";
		APT::Architectures { "amd64"; };
		APT::Sandbox::User "root";
		APT::Install-Recommends "false";
		Acquire::Languages "none";
		Acquire::Retries "3";
		APT::Update::Error-Mode "any";
	EOF
	export APT_CONFIG=$dir/apt.conf
	apt_try "$dir/update.log" apt-get -qq update ||
		die "cannot read the package lists of $* from $debian_mirror: $(apt_errors "$dir/update.log")"
}

apt_version() {
	local version
	version=$(apt-cache policy "$1" | awk '$1 == "Candidate:" { print $2 }')
	case $version in
	"" | "(none)") die "package $1 is in none of: $(apt_suites)" ;;
	esac
	echo "$version"
}

apt_suites() {
	awk '{ print $(NF-1) }' "${APT_CONFIG%/*}/sources.list" | paste -sd' '
}

apt_closure() {
	local regex=$1
	shift
	apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances "$@" |
		grep -E "^[a-z]" | grep -E "$regex" | sort -u
}

apt_fetch() {
	local dir=$1 log
	shift
	mkdir -p "$dir"
	log=$dir/download.log
	(cd "$dir" && apt_try "$log" apt-get -q download "$@") ||
		die "cannot download from $(apt_suites): $(apt_errors "$log")"
	rm -f "$log"
}

apt_toolchain() {
	local dir=$1 log
	shift
	mkdir -p "$dir/partial"
	log=$dir/download.log
	apt_try "$log" apt-get -q -y -o Dir::Cache::archives="$dir" install --download-only "$@" ||
		die "cannot download $* from $(apt_suites): $(apt_errors "$log")"
}
