/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that the kernel and a consumer share: whole pages, zeroed, contiguous in the kernel's mapping. */
#ifndef RC_REGION_H
#define RC_REGION_H

#include <asm/barrier.h>
#include <linux/mm_types.h>
#include <linux/types.h>

/**
 * struct rc_region - shared pages
 * @addr: the kernel's mapping
 * @pages: as mapped: with @twice each page is in it at i and at i + nr_pages
 * @nr_pages: distinct pages; 0 = there are none yet. Use rc_region_pages where another CPU may be giving the region its
 *	pages (rc_region_give)
 * @twice: mapped twice in a row, here and in the consumer, so that data that crosses the end is still contiguous
 */
struct rc_region {
	void *addr;
	struct page **pages;
	unsigned int nr_pages;
	bool twice;
};

int rc_region_alloc(struct rc_region *region, size_t bytes, bool twice);

/* Moves the pages of @from to @region, which has none. @from has none afterwards. */
static inline void rc_region_give(struct rc_region *region, struct rc_region *from)
{
	region->addr = from->addr;
	region->pages = from->pages;
	region->twice = from->twice;
	/* A reader that sees that there are pages also sees the pages. */
	smp_store_release(&region->nr_pages, from->nr_pages);
	*from = (struct rc_region){};
}

static inline unsigned int rc_region_pages(const struct rc_region *region)
{
	return smp_load_acquire(&region->nr_pages);
}

void rc_region_free(struct rc_region *region);
void rc_region_zero(struct rc_region *region);

/*
 * Maps @region into @vma, which must have exactly its size. The vma must keep the owner of @region from freeing it.
 * Without pages, nothing is mapped yet: see rc_region_fault.
 */
int rc_region_map(const struct rc_region *region, struct vm_area_struct *vma);

/*
 * Handles a fault in a @vma of @region, which has pages by now. Maps the page of the fault and all other pages of @vma.
 * @first: the first page of @vma.
 */
vm_fault_t rc_region_fault(const struct rc_region *region, struct vm_fault *vmf, unsigned long first);

/* Bytes of physical memory, including the array of page pointers. */
size_t rc_region_memory(const struct rc_region *region);

#endif /* RC_REGION_H */
