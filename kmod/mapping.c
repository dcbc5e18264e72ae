// SPDX-License-Identifier: GPL-2.0-only

#include "mapping.h"

#include <linux/mm.h>

#include "compat/compat.h"
#include "queue.h"
#include "transmit.h"

static const struct rc_region *rc_mapping_region(const struct rc_queue *queue, u64 offset)
{
	u64 lane = (offset - RINGCAP_MMAP_DATA) >> RINGCAP_MMAP_LANE_SHIFT;

	switch (offset) {
	case RINGCAP_MMAP_INFO:
		return &queue->info;
	case RINGCAP_MMAP_KERNEL:
		return &queue->kernel;
	case RINGCAP_MMAP_CONSUMER:
		return &queue->consumer;
	case RINGCAP_MMAP_TX_INDEX:
		return queue->transmit ? &queue->transmit->index : NULL;
	case RINGCAP_MMAP_TX_DATA:
		return queue->transmit ? &queue->transmit->data : NULL;
	}
	if (offset < RINGCAP_MMAP_DATA || lane >= queue->nr_lanes ||
	    offset != RINGCAP_MMAP_DATA + (lane << RINGCAP_MMAP_LANE_SHIFT))
		return NULL;
	return &queue->lanes[lane].region;
}

/* The rest is for consumers to read only. */
static bool rc_mapping_writable(const struct rc_queue *queue, const struct rc_region *region)
{
	return region == &queue->consumer ||
	       (queue->transmit && (region == &queue->transmit->index || region == &queue->transmit->data));
}

int rc_mapping_map(struct rc_queue *queue, struct vm_area_struct *vma)
{
	const struct rc_region *region = rc_mapping_region(queue, (u64)vma->vm_pgoff << PAGE_SHIFT);

	if (READ_ONCE(queue->dead))
		return -ENODEV;
	if (!region || !(vma->vm_flags & VM_SHARED) ||
	    vma->vm_end - vma->vm_start != (u64)region->nr_pages << (PAGE_SHIFT + region->twice))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	if (!rc_mapping_writable(queue, region)) {
		if (vma->vm_flags & VM_WRITE)
			return -EPERM;
		rc_compat_vm_flags_clear(vma, VM_MAYWRITE);
	}
	rc_compat_vm_flags_clear(vma, VM_MAYEXEC);
	rc_compat_vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	return rc_region_map(region, vma);
}
