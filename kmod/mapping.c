// SPDX-License-Identifier: GPL-2.0-only

#include "mapping.h"

#include <linux/fs.h>
#include <linux/mm.h>

#include "compat/compat.h"
#include "queue.h"
#include "transmit.h"

/* The lane with @offset in its part of the file; NULL = none. */
static struct rc_lane *rc_mapping_lane(struct rc_queue *queue, u64 offset)
{
	u64 lane = (offset - RINGCAP_MMAP_DATA) >> RINGCAP_MMAP_LANE_SHIFT;

	return offset >= RINGCAP_MMAP_DATA && lane < queue->nr_lanes ? &queue->lanes[lane] : NULL;
}

/* Number of bytes from the beginning of the lane's data to @offset. */
static u64 rc_mapping_place(u64 offset)
{
	return offset & ((1ULL << RINGCAP_MMAP_LANE_SHIFT) - 1);
}

/*
 * A consumer maps all lanes that a queue may have. A lane may be mapped before it has memory: its pages are inserted
 * when the consumer accesses them. It has no reason to do so before something is published there. If it does so anyway,
 * the lane gets memory.
 */
static vm_fault_t rc_mapping_fault(struct vm_fault *vmf)
{
	u64 offset = (u64)vmf->vma->vm_pgoff << PAGE_SHIFT;
	struct rc_queue *queue = vmf->vma->vm_file->private_data;
	struct rc_lane *lane = rc_mapping_lane(queue, offset);

	switch (rc_queue_grow(queue, lane)) {
	case 0:
		break;
	case -ENODEV:
		/* No more packets come there. */
		return vmf_insert_pfn(vmf->vma, vmf->address & PAGE_MASK, page_to_pfn(ZERO_PAGE(vmf->address)));
	default:
		return VM_FAULT_SIGBUS;
	}
	return rc_region_fault(&lane->region, vmf, rc_mapping_place(offset) >> PAGE_SHIFT);
}

static const struct vm_operations_struct rc_mapping_lane_ops = {
	.fault = rc_mapping_fault,
};

/* The region at @offset; NULL for lanes. */
static const struct rc_region *rc_mapping_region(const struct rc_queue *queue, u64 offset)
{
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
	return NULL;
}

/* Consumers can only read all other regions. */
static bool rc_mapping_writable(const struct rc_queue *queue, const struct rc_region *region)
{
	return region == &queue->consumer ||
	       (queue->transmit && (region == &queue->transmit->index || region == &queue->transmit->data));
}

/* Length of the mapping at @offset; 0 = there is none. */
static u64 rc_mapping_len(const struct rc_region *region, const struct rc_lane *lane, u64 offset)
{
	if (region)
		return (u64)region->nr_pages << (PAGE_SHIFT + region->twice);
	return lane && !rc_mapping_place(offset) ? 2ULL * rc_lane_size(lane) : 0;
}

int rc_mapping_map(struct rc_queue *queue, struct vm_area_struct *vma)
{
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	const struct rc_region *region = rc_mapping_region(queue, offset);
	const struct rc_lane *lane = rc_mapping_lane(queue, offset);

	if (READ_ONCE(queue->dead))
		return -ENODEV;
	if (!(vma->vm_flags & VM_SHARED) || vma->vm_end - vma->vm_start != rc_mapping_len(region, lane, offset))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	if (!region || !rc_mapping_writable(queue, region)) {
		if (vma->vm_flags & VM_WRITE)
			return -EPERM;
		rc_compat_vm_flags_clear(vma, VM_MAYWRITE);
	}
	rc_compat_vm_flags_clear(vma, VM_MAYEXEC);
	rc_compat_vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	if (region)
		return rc_region_map(region, vma);
	vma->vm_ops = &rc_mapping_lane_ops;
	return rc_region_map(&lane->region, vma);
}
