# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The kernel series that ringcap is tested with, and where the cache keeps each. Sourced by the scripts of this folder.

# Prints the suites that have the kernel of a series.
series_suites() {
	case $1 in
	6.1) echo bookworm bookworm-security ;;
	6.12) echo bookworm-backports ;;
	7) echo sid ;;
	*) die "unknown kernel series '$1': it is one of 6.1, 6.12, 7, debug" ;;
	esac
}

# Prints how modules of a series are compiled: the native compiler's name, or "sid" for one from Debian's sid.
series_compiler() {
	case $1 in
	6.1 | 6.12 | debug) echo gcc-12 ;;
	*) echo sid ;;
	esac
}

cache=${RINGCAP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ringcap}
# shellcheck disable=SC2034 # for those who source this
kernels=$cache/kernels
