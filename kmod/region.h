/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that the kernel and a consumer share: whole pages, zeroed, mapped in one piece into the kernel. */
#ifndef RC_REGION_H
#define RC_REGION_H

#include <asm/barrier.h>
#include <linux/mm_types.h>
#include <linux/types.h>

/**
 * struct rc_region - shared pages
 * @addr: where the kernel sees them
 * @pages: as mapped: with @twice each page is in it at i and at i + nr_pages
 * @nr_pages: distinct pages; 0 = there are none yet. Those who look while another may give a region its pages
 *	(rc_region_give) ask rc_region_pages
 * @twice: mapped twice in a row, here and in the consumer, so that what crosses the end is still contiguous
 */
struct rc_region {
	void *addr;
	struct page **pages;
	unsigned int nr_pages;
	bool twice;
};

int rc_region_alloc(struct rc_region *region, size_t bytes, bool twice);

/* Gives @region, which has none, the pages of @from, which has them no more. */
static inline void rc_region_give(struct rc_region *region, struct rc_region *from)
{
	region->addr = from->addr;
	region->pages = from->pages;
	region->twice = from->twice;
	/* Those who see that there are pages see which. */
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
 * Maps @region into @vma, which must have exactly its size and keep the owner of @region from freeing it. Without pages, nothing
 * is mapped yet: see rc_region_fault.
 */
int rc_region_map(const struct rc_region *region, struct vm_area_struct *vma);

/* For a fault in a @vma of @region, which has pages by now: maps the one, and all others that @vma is of. @first: of @vma. */
vm_fault_t rc_region_fault(const struct rc_region *region, struct vm_fault *vmf, unsigned long first);

/* Bytes of physical memory, page table pointers included. */
size_t rc_region_memory(const struct rc_region *region);

#endif /* RC_REGION_H */
