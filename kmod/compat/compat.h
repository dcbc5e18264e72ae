/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels. RC_HAVE_X is defined if probe/X.c compiles against this kernel (see Kbuild). Kernel
 * versions are not compared, because distributions backport changes to older ones.
 */
#ifndef RC_COMPAT_H
#define RC_COMPAT_H

#include <linux/device.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/netlink.h>
#include <net/genetlink.h>
/* 6.5: segmentation has a header of its own. */
#ifdef RC_HAVE_GSO_HEADER
#include <net/gso.h>
#endif

/* 6.2: the devnode callback takes a const device. */
#ifdef RC_HAVE_CLASS_DEVNODE_CONST
#define RC_COMPAT_DEVNODE_CONST const
#else
#define RC_COMPAT_DEVNODE_CONST
#endif

/* 6.4: class_create takes no owner. */
static inline struct class *rc_compat_class_create(const char *name)
{
#ifdef RC_HAVE_CLASS_CREATE_NAME
	return class_create(name);
#else
	return class_create(THIS_MODULE, name);
#endif
}

/* 6.3: vm_flags must be written through functions. */
static inline void rc_compat_vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
#ifdef RC_HAVE_VM_FLAGS_SET
	vm_flags_set(vma, flags);
#else
	vma->vm_flags |= flags;
#endif
}

static inline void rc_compat_vm_flags_clear(struct vm_area_struct *vma, unsigned long flags)
{
#ifdef RC_HAVE_VM_FLAGS_SET
	vm_flags_clear(vma, flags);
#else
	vma->vm_flags &= ~flags;
#endif
}

/* 6.13: one function sets up a timer, with its callback. */
static inline void rc_compat_hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*function)(struct hrtimer *),
					   clockid_t clock, enum hrtimer_mode mode)
{
#ifdef RC_HAVE_HRTIMER_SETUP
	hrtimer_setup(timer, function, clock, mode);
#else
	hrtimer_init(timer, clock, mode);
	timer->function = function;
#endif
}

/* 6.6: dumps have a struct genl_info, like other requests. */
static inline struct nlattr **rc_compat_dump_attrs(struct netlink_callback *cb)
{
#ifdef RC_HAVE_GENL_INFO_DUMP
	return genl_info_dump(cb)->attrs;
#else
	return genl_dumpit_info(cb)->attrs;
#endif
}

/*
 * 6.2: a message can be formatted. Before 6.2, its text must remain valid after the request, until the answer is made.
 * So it is in one of a few buffers. If as many other requests are refused in the meantime, the answer has the text of
 * another request.
 */
#ifdef RC_HAVE_NL_SET_ERR_MSG_FMT
#define rc_compat_set_err_msg(extack, text) NL_SET_ERR_MSG_FMT(extack, "%s", text)
#else
#define rc_compat_set_err_msg(extack, text) do {				\
	static char rc_texts[16][80];						\
	static atomic_t rc_turn;						\
	char *rc_text = rc_texts[(u32)atomic_inc_return(&rc_turn) % ARRAY_SIZE(rc_texts)];	\
										\
	strscpy(rc_text, text, sizeof(rc_texts[0]));				\
	if (extack)								\
		(extack)->_msg = rc_text;					\
} while (0)
#endif

#endif /* RC_COMPAT_H */
