// SPDX-License-Identifier: GPL-2.0-only
/* Compiles everywhere: when it does not, no probe means anything. */
#include <linux/module.h>
