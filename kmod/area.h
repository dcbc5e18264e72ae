/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that the kernel and a consumer share: whole pages, zeroed, mapped in one piece into the kernel. */
#ifndef RC_AREA_H
#define RC_AREA_H

#include <linux/types.h>

struct page;
struct vm_area_struct;

/**
 * struct rc_area - shared pages
 * @addr: where the kernel sees them
 * @pages: as mapped: with @twice each page is in it at i and at i + nr_pages
 * @nr_pages: distinct pages
 * @twice: mapped twice in a row, here and in the consumer, so that what crosses the end is still contiguous
 */
struct rc_area {
	void *addr;
	struct page **pages;
	unsigned int nr_pages;
	bool twice;
};

int rc_area_alloc(struct rc_area *area, size_t bytes, bool twice);
void rc_area_free(struct rc_area *area);
void rc_area_zero(struct rc_area *area);

/* Maps @area into @vma, which must have exactly its size and keep who owns @area from freeing it. */
int rc_area_map(const struct rc_area *area, struct vm_area_struct *vma);

/* Bytes of physical memory, page table pointers included. */
size_t rc_area_memory(const struct rc_area *area);

#endif /* RC_AREA_H */
