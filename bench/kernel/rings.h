/* SPDX-License-Identifier: Apache-2.0 */
/* The ring "bench-ring" and its cluster "bench", in the shapes that are measured. */
#ifndef RB_RINGS_H
#define RB_RINGS_H

#include <stdint.h>

#include "shape.h"

void ring_make(const struct ring_shape *shape, unsigned int queues);
void ring_delete(const struct ring_shape *shape);

/* What its queues have dropped, for whatever reason; not of the eBPF engine's. */
uint64_t ring_dropped(void);

#endif /* RB_RINGS_H */
