/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef RC_VERSION_H
#define RC_VERSION_H

#define RC_VERSION "0.1.0"

#endif /* RC_VERSION_H */
