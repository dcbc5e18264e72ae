// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Runs the classifier's tests: check VECTORS.TXT TUNNELS.TXT */
#include "check.h"

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: %s VECTORS.TXT TUNNELS.TXT\n", argv[0]);
		return 2;
	}
	check_vectors(argv[1]);
	check_tunnels(argv[2]);
	check_flows();
	check_spread();
	check_patterns();
	check_payload();
	check_rules();
	return 0;
}
