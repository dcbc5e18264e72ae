// SPDX-License-Identifier: GPL-2.0-only

#include "region.h"

#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat/compat.h"

static unsigned int rc_region_mapped_pages(const struct rc_region *region)
{
	unsigned int nr_pages = rc_region_pages(region);

	return nr_pages ? nr_pages << region->twice : 0;
}

/*
 * Whether the machine can spare @nr_pages and still keep a sixteenth of its memory, but no more than a gibibyte. Pages
 * that are reserved as huge pages count as memory, and are never available.
 *
 * The kernel would allocate until no memory is left. Then it would kill the next process that asks for a page. A
 * failure here is better.
 */
static bool rc_region_fits(unsigned int nr_pages)
{
	struct sysinfo info;

	si_meminfo(&info);
	return si_mem_available() >= (long)(nr_pages + min_t(unsigned long, info.totalram / 16, SZ_1G >> PAGE_SHIFT));
}

int rc_region_alloc(struct rc_region *region, size_t bytes, bool twice)
{
	unsigned int nr_pages = PAGE_ALIGN(bytes) >> PAGE_SHIFT;
	unsigned int i;

	region->twice = twice;
	if (!rc_region_fits(nr_pages))
		return -ENOMEM;
	region->pages = kvcalloc((size_t)nr_pages << twice, sizeof(*region->pages),
				 GFP_KERNEL_ACCOUNT | __GFP_NOWARN | __GFP_NORETRY);
	if (!region->pages)
		return -ENOMEM;

	/* Charged to the configuring process, so that large rings have a cost. Fails early when memory is short. */
	for (i = 0; i < nr_pages; i++) {
		struct page *page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN | __GFP_NORETRY);

		if (!page)
			goto fail;
		region->pages[i] = page;
		if (twice)
			region->pages[i + nr_pages] = page;
		region->nr_pages = i + 1;
		if (fatal_signal_pending(current))
			goto fail;
		cond_resched();
	}

	region->addr = vmap(region->pages, rc_region_mapped_pages(region), VM_MAP, PAGE_KERNEL);
	if (region->addr)
		return 0;
fail:
	rc_region_free(region);
	return -ENOMEM;
}

void rc_region_free(struct rc_region *region)
{
	unsigned int i;

	vunmap(region->addr);
	for (i = 0; i < region->nr_pages; i++) {
		put_page(region->pages[i]);
		cond_resched();
	}
	kvfree(region->pages);
	*region = (struct rc_region){};
}

void rc_region_zero(struct rc_region *region)
{
	unsigned int i, nr_pages = rc_region_pages(region);

	for (i = 0; i < nr_pages; i++) {
		clear_page(region->addr + ((size_t)i << PAGE_SHIFT));
		cond_resched();
	}
}

int rc_region_map(const struct rc_region *region, struct vm_area_struct *vma)
{
	unsigned int i, nr_pages = rc_region_mapped_pages(region);
	unsigned long address = vma->vm_start;

	/*
	 * Map page frames, not pages. Then no process can take a reference to a page (vmsplice, io_uring, O_DIRECT),
	 * keep it when the queue gets another consumer, and read that one's packets.
	 *
	 * Map them one by one, not with remap_pfn_range: that warns of a mapping that it has itself undone for lack of
	 * memory, if it is all of the vma.
	 */
	rc_compat_vm_flags_set(vma, VM_IO | VM_PFNMAP);
	for (i = 0; i < nr_pages; i++, address += PAGE_SIZE) {
		if (vmf_insert_pfn(vma, address, page_to_pfn(region->pages[i])) != VM_FAULT_NOPAGE)
			return -ENOMEM;
		/* A lane of 1 GiB is half a million pages. */
		cond_resched();
	}
	return 0;
}

vm_fault_t rc_region_fault(const struct rc_region *region, struct vm_fault *vmf, unsigned long first)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long wanted = (vmf->address - vma->vm_start) >> PAGE_SHIFT, all = vma_pages(vma), i;
	struct page **pages = region->pages + first;
	vm_fault_t fault;

	if (first + all > rc_region_mapped_pages(region))
		return VM_FAULT_SIGBUS;
	fault = vmf_insert_pfn(vma, vmf->address & PAGE_MASK, page_to_pfn(pages[wanted]));
	if (fault != VM_FAULT_NOPAGE)
		return fault;
	/*
	 * One fault maps all of them, as long as there is memory for page tables. Otherwise the next fault continues
	 * from its own page.
	 */
	for (i = 1; i < all && !fatal_signal_pending(current); i++) {
		unsigned long at = (wanted + i) % all;

		if (vmf_insert_pfn(vma, vma->vm_start + (at << PAGE_SHIFT), page_to_pfn(pages[at])) != VM_FAULT_NOPAGE)
			break;
		cond_resched();
	}
	return fault;
}

size_t rc_region_memory(const struct rc_region *region)
{
	size_t pages = rc_region_pages(region);

	return (pages << PAGE_SHIFT) + rc_region_mapped_pages(region) * sizeof(*region->pages);
}
