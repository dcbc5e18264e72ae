/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that the kernel and a consumer share: whole pages, zeroed, mapped in one piece into the kernel. */
#ifndef RC_REGION_H
#define RC_REGION_H

#include <linux/types.h>

struct page;
struct vm_area_struct;

/**
 * struct rc_region - shared pages
 * @addr: where the kernel sees them
 * @pages: as mapped: with @twice each page is in it at i and at i + nr_pages
 * @nr_pages: distinct pages
 * @twice: mapped twice in a row, here and in the consumer, so that what crosses the end is still contiguous
 */
struct rc_region {
	void *addr;
	struct page **pages;
	unsigned int nr_pages;
	bool twice;
};

int rc_region_alloc(struct rc_region *region, size_t bytes, bool twice);
void rc_region_free(struct rc_region *region);
void rc_region_zero(struct rc_region *region);

/* Maps @region into @vma, which must have exactly its size and keep the owner of @region from freeing it. */
int rc_region_map(const struct rc_region *region, struct vm_area_struct *vma);

/* Bytes of physical memory, page table pointers included. */
size_t rc_region_memory(const struct rc_region *region);

#endif /* RC_REGION_H */
