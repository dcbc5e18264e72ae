// SPDX-License-Identifier: GPL-2.0-only
/* Compiles everywhere. If it does not, the results of all probes are meaningless. */
#include <linux/module.h>
