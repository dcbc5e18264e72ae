/* SPDX-License-Identifier: GPL-2.0-only */
/* Mappings: the offsets of a queue's pages in its file, and which pages are writable. */
#ifndef RC_MAPPING_H
#define RC_MAPPING_H

struct rc_queue;
struct vm_area_struct;

int rc_mapping_map(struct rc_queue *queue, struct vm_area_struct *vma);

#endif /* RC_MAPPING_H */
