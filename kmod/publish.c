// SPDX-License-Identifier: GPL-2.0-only

#include "publish.h"

#include <linux/cpuhotplug.h>
#include <linux/interrupt.h>
#include <linux/percpu.h>

#include "lane.h"
#include "queue.h"

#ifndef CONFIG_64BIT
#error "ringcap relies on 64-bit counters and positions being read and written in one go"
#endif
#ifdef CONFIG_PREEMPT_RT
#error "ringcap relies on bottom halves of one CPU excluding each other, which PREEMPT_RT gives up; use the eBPF engine"
#endif

/**
 * struct rc_publisher - a CPU's lanes with unpublished packets
 * @tasklet: runs on this CPU; scheduled while @dirty is not empty
 * @dirty: struct rc_lane.dirty_list; each holds a reference to its queue
 *
 * All of it is used by its own CPU only, with bottom halves off.
 */
struct rc_publisher {
	struct tasklet_struct tasklet;
	struct list_head dirty;
};

static DEFINE_PER_CPU(struct rc_publisher, rc_publishers);
static int rc_publish_cpuhp_state;

static void rc_publish_run(struct tasklet_struct *tasklet)
{
	struct rc_publisher *publisher = container_of(tasklet, struct rc_publisher, tasklet);
	struct rc_lane *lane, *next;
	LIST_HEAD(batch);

	list_splice_init(&publisher->dirty, &batch);
	list_for_each_entry_safe(lane, next, &batch, dirty_list) {
		struct rc_queue *queue = rc_queue_of(lane);

		/*
		 * As soon as the lane is not dirty, another CPU that shares it or gets it may put it on its own list.
		 */
		list_del(&lane->dirty_list);
		rc_lane_publish_dirty(lane);
		rc_queue_put(queue);
	}
}

void rc_publish_mark(struct rc_lane *lane)
{
	struct rc_publisher *publisher = this_cpu_ptr(&rc_publishers);

	rc_queue_get(rc_queue_of(lane));
	list_add_tail(&lane->dirty_list, &publisher->dirty);
	tasklet_schedule(&publisher->tasklet);
}

/*
 * When a CPU goes offline, its tasklet moves to another CPU. From then on only that CPU touches the list. It must be
 * done with the list before the first CPU comes back. So we wait here, before that CPU is brought up.
 */
static int rc_publish_cpu_prepare(unsigned int cpu)
{
	tasklet_kill(&per_cpu_ptr(&rc_publishers, cpu)->tasklet);
	return 0;
}

int rc_publish_init(void)
{
	unsigned int cpu;
	int err;

	for_each_possible_cpu(cpu) {
		struct rc_publisher *publisher = per_cpu_ptr(&rc_publishers, cpu);

		INIT_LIST_HEAD(&publisher->dirty);
		tasklet_setup(&publisher->tasklet, rc_publish_run);
	}
	err = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN, "net/ringcap:prepare", rc_publish_cpu_prepare, NULL);
	if (err < 0)
		return err;
	rc_publish_cpuhp_state = err;
	return 0;
}

void rc_publish_exit(void)
{
	unsigned int cpu;

	cpuhp_remove_state_nocalls(rc_publish_cpuhp_state);
	for_each_possible_cpu(cpu)
		tasklet_kill(&per_cpu_ptr(&rc_publishers, cpu)->tasklet);
}
