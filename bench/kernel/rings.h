/* SPDX-License-Identifier: Apache-2.0 */
/* The ring "bench-ring" and its cluster "bench", in the measured shapes. */
#ifndef RB_RINGS_H
#define RB_RINGS_H

#include <stdint.h>

#include "shape.h"

void ring_make(const struct ring_shape *shape, unsigned int queues);
void ring_delete(const struct ring_shape *shape);

/* Returns the packets that its queues have dropped for any reason. Not for rings of the eBPF engine. */
uint64_t ring_dropped(void);

#endif /* RB_RINGS_H */
