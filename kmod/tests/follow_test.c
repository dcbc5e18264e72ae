// SPDX-License-Identifier: GPL-2.0-only
/*
 * Taps that stay with a device that moves to another namespace and comes back, as a container's virtual function does.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sys/syscall.h>

#include "fixture.h"
#include "link.h"

/**
 * struct rt_travel - a ring over vb, which travels between two namespaces
 * @here, @there: the namespaces; the ring is here
 */
struct rt_travel {
	struct rt_fixture fixture;
	int here;
	int there;
};

static void rt_travel_open(struct rt_travel *travel)
{
	rt_fixture_open(&travel->fixture, &(struct rt_cluster){});
	travel->here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	RT_CHECK(travel->here >= 0 && !unshare(CLONE_NEWNET), "%m");
	travel->there = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	RT_CHECK(travel->there >= 0 && !setns(travel->here, CLONE_NEWNET), "%m");
}

static int rt_travel_tap(const struct rt_travel *travel, u32 follows)
{
	return rt_fixture_change(&travel->fixture, &(struct rt_ring){ .promiscuous = 1, .follows = follows });
}

/* To the other side, and up. */
static void rt_travel_go(const struct rt_travel *travel, int from, int to)
{
	RT_CHECK(!setns(from, CLONE_NEWNET), "%m");
	RT_EQUAL(rt_link_move("vb", to), 0);
	RT_CHECK(!setns(to, CLONE_NEWNET), "%m");
	RT_EQUAL(rt_link_set_up("vb", true), 0);
	RT_EVENTUALLY(rt_link_is_ready("vb"), 30000);
	RT_CHECK(!setns(travel->here, CLONE_NEWNET), "%m");
	RT_EVENTUALLY(rt_link_is_ready("va"), 30000);
}

/* The ring's only tap reports that it follows, and sees all packets that are sent; @sent includes those sent before. */
static void rt_travel_check(const struct rt_travel *travel, u32 follows, u32 *sent)
{
	struct rt_ring_counts counts;

	rt_ring_counts(travel->fixture.ring, &counts);
	RT_EQUAL(counts.taps, 1);
	RT_EQUAL(counts.ifindex, travel->fixture.ifindex);
	RT_EQUAL(counts.follows, follows);
	rt_send(travel->fixture.sender, &(struct rt_traffic){ .flows = 3 }, *sent, 50);
	*sent += 50;
	rt_fixture_check(&travel->fixture, *sent, 0, 0, 0, *sent);
}

static u32 rt_travel_taps(const struct rt_travel *travel)
{
	struct rt_ring_counts counts;

	rt_ring_counts(travel->fixture.ring, &counts);
	return counts.taps;
}

/*
 * The device moves there and back again, and the ring is configured meanwhile. A tap that does not follow ends, and
 * holds no reference there.
 */
RT_CASE(follow_there_and_back)
{
	struct rt_travel travel;
	u32 sent = 0, round;

	rt_travel_open(&travel);
	RT_EQUAL(rt_travel_tap(&travel, 1), 0);
	rt_travel_check(&travel, 1, &sent);
	for (round = 0; round < 3; round++) {
		rt_travel_go(&travel, travel.here, travel.there);
		rt_travel_check(&travel, 2, &sent);
		RT_EQUAL(rt_travel_tap(&travel, 1), 0);
		rt_travel_check(&travel, 2, &sent);
		rt_travel_go(&travel, travel.there, travel.here);
		rt_travel_check(&travel, 1, &sent);
	}
	RT_EQUAL(rt_travel_tap(&travel, 0), 0);
	rt_travel_check(&travel, 0, &sent);
	rt_travel_go(&travel, travel.here, travel.there);
	RT_EQUAL(rt_travel_taps(&travel), 0);
	RT_EQUAL(rt_travel_tap(&travel, 1), -ENODEV);
}

/* The ring is deleted while the device is away. Another ring is not affected. */
RT_CASE(follow_ring_deleted)
{
	struct rt_travel travel;
	u32 sent = 0;

	rt_travel_open(&travel);
	RT_EQUAL(rt_travel_tap(&travel, 1), 0);
	rt_travel_go(&travel, travel.here, travel.there);
	rt_travel_check(&travel, 2, &sent);
	/* A request for a tap that does not follow does not find the device. */
	RT_EQUAL(rt_travel_tap(&travel, 0), -ENODEV);
	rt_travel_check(&travel, 2, &sent);
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, travel.fixture.ring), 0);
	RT_EQUAL(rt_travel_tap(&travel, 1), -ENODEV);
	rt_travel_go(&travel, travel.there, travel.here);
	travel.fixture.ifindex = rt_ifindex("vb");
	RT_EQUAL(rt_travel_tap(&travel, 1), 0);
}

/* The device is deleted where it is, and its tap with it. */
RT_CASE(follow_device_ends)
{
	struct rt_travel travel;

	rt_travel_open(&travel);
	RT_EQUAL(rt_travel_tap(&travel, 1), 0);
	rt_travel_go(&travel, travel.here, travel.there);
	RT_EQUAL(rt_travel_taps(&travel), 1);
	rt_events_open();
	RT_EQUAL(rt_link_remove("va"), 0);
	RT_CHECK(rt_events_wait(RINGCAP_EVENT_TAP_GONE, travel.fixture.ring, RT_PATIENCE_MS), "no event");
	RT_EQUAL(rt_travel_taps(&travel), 0);
}

/*
 * Another device has its index there: it gets a new one, keeps it when it comes back, and then counts as another
 * interface.
 */
RT_CASE(follow_index_taken)
{
	struct rt_travel travel;
	u32 sent = 0;

	rt_travel_open(&travel);
	RT_EQUAL(rt_travel_tap(&travel, 1), 0);
	RT_CHECK(!setns(travel.there, CLONE_NEWNET), "%m");
	rt_ip("link add name one type veth peer name other");
	RT_CHECK(rt_ifindex("one") == travel.fixture.ifindex || rt_ifindex("other") == travel.fixture.ifindex, "not taken");
	RT_CHECK(!setns(travel.here, CLONE_NEWNET), "%m");
	rt_travel_go(&travel, travel.here, travel.there);
	rt_travel_check(&travel, 2, &sent);
	/* Whatever it has there is taken here, too. */
	rt_ip("link add name more1 type veth peer name more2");
	rt_ip("link add name more3 type veth peer name more4");
	rt_events_open();
	rt_travel_go(&travel, travel.there, travel.here);
	RT_CHECK(rt_ifindex("vb") != travel.fixture.ifindex, "it has its index again");
	RT_CHECK(rt_events_wait(RINGCAP_EVENT_TAP_GONE, travel.fixture.ring, RT_PATIENCE_MS), "no event");
	RT_EQUAL(rt_travel_taps(&travel), 0);
}

static int rt_promiscuity(const char *name)
{
	char text[1024], command[64];
	const char *at;
	FILE *out;

	snprintf(command, sizeof(command), "/sbin/ip -d link show dev %s", name);
	out = popen(command, "r");
	RT_CHECK(out, "%m");
	text[fread(text, 1, sizeof(text) - 1, out)] = 0;
	pclose(out);
	at = strstr(text, "promiscuity ");
	RT_CHECK(at, "%s", text);
	return atoi(at + strlen("promiscuity "));
}

/* The same for a device with a lock for its operations, which is held while others are notified that it is back. */
RT_CASE(follow_index_taken_locked)
{
	struct rt_travel travel;

	rt_travel_open(&travel);
	rt_ip("link add locked type locked");
	travel.fixture.ifindex = rt_ifindex("locked");
	RT_EQUAL(rt_travel_tap(&travel, 1), 0);
	RT_EQUAL(rt_promiscuity("locked"), 1);
	RT_CHECK(!setns(travel.there, CLONE_NEWNET), "%m");
	rt_ip("link add one index %u type veth peer name other", travel.fixture.ifindex);
	RT_CHECK(!setns(travel.here, CLONE_NEWNET), "%m");
	RT_EQUAL(rt_link_move("locked", travel.there), 0);
	rt_events_open();
	RT_CHECK(!setns(travel.there, CLONE_NEWNET), "%m");
	RT_EQUAL(rt_link_move("locked", travel.here), 0);
	RT_CHECK(!setns(travel.here, CLONE_NEWNET), "%m");
	RT_CHECK(rt_events_wait(RINGCAP_EVENT_TAP_GONE, travel.fixture.ring, RT_PATIENCE_MS), "no event");
	RT_EQUAL(rt_travel_taps(&travel), 0);
	RT_EQUAL(rt_promiscuity("locked"), 0);
	/* It is another interface now. */
	travel.fixture.ifindex = rt_ifindex("locked");
	RT_EQUAL(rt_travel_tap(&travel, 1), 0);
	RT_EQUAL(rt_promiscuity("locked"), 1);
}

/* Another device here gets its index meanwhile: the index then stands for that device. */
RT_CASE(follow_index_given_away)
{
	struct rt_ring_counts counts;
	struct rt_travel travel;

	rt_travel_open(&travel);
	RT_EQUAL(rt_travel_tap(&travel, 1), 0);
	rt_travel_go(&travel, travel.here, travel.there);
	rt_ip("link add other index %u type veth peer name another", travel.fixture.ifindex);
	RT_EQUAL(rt_travel_tap(&travel, 1), 0);
	rt_ring_counts(travel.fixture.ring, &counts);
	RT_EQUAL(counts.taps, 1);
	RT_EQUAL(counts.follows, 1);
}

static bool rt_travel_is_shown(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/thread-self/net/ringcap/dev/%s", name);
	return !access(path, F_OK);
}

/* /proc shows the devices that are here, by their names here; a device elsewhere may have the name of another one. */
RT_CASE(follow_shown)
{
	struct rt_travel travel;
	struct rt_ring both;

	rt_travel_open(&travel);
	both = (struct rt_ring){ .follows = 1 };
	both.taps[0] = (struct rt_tap){ travel.fixture.ifindex, RINGCAP_DIRECTION_RX };
	both.taps[1] = (struct rt_tap){ rt_ifindex("va"), RINGCAP_DIRECTION_RX };
	RT_EQUAL(rt_fixture_change(&travel.fixture, &both), 0);
	RT_CHECK(rt_travel_is_shown("va") && rt_travel_is_shown("vb"), "not there");
	RT_EQUAL(rt_link_move("vb", travel.there), 0);
	RT_CHECK(!setns(travel.there, CLONE_NEWNET), "%m");
	RT_EQUAL(rt_link_rename("vb", "va"), 0);
	RT_CHECK(!setns(travel.here, CLONE_NEWNET), "%m");
	RT_EQUAL(rt_fixture_change(&travel.fixture, &both), 0);
	RT_EQUAL(rt_travel_taps(&travel), 2);
	RT_CHECK(rt_travel_is_shown("va") && !rt_travel_is_shown("vb"), "not as it is here");
	RT_CHECK(!setns(travel.there, CLONE_NEWNET), "%m");
	RT_EQUAL(rt_link_rename("va", "vb"), 0);
	RT_EQUAL(rt_link_move("vb", travel.here), 0);
	RT_CHECK(!setns(travel.here, CLONE_NEWNET), "%m");
	RT_EVENTUALLY(rt_travel_is_shown("vb"), 5000);
}

/* The ring's namespace ends while the device is in the other one. */
RT_CASE(follow_namespace_ends)
{
	struct rt_travel travel;

	rt_travel_open(&travel);
	RT_EQUAL(rt_travel_tap(&travel, 1), 0);
	rt_travel_go(&travel, travel.here, travel.there);
	/* With the last process in it. */
	RT_CHECK(!setns(travel.there, CLONE_NEWNET), "%m");
	close(rt_control_fd());
	close(travel.fixture.sender);
	close(travel.fixture.back);
	close(travel.here);
	RT_EVENTUALLY(!if_nametoindex("vb"), 20000);
}

/* Not for an administrator of a namespace only. */
RT_CASE(follow_refused)
{
	struct rt_travel travel;
	u64 before;

	rt_travel_open(&travel);
	before = rt_control_digest();
	RT_EQUAL(rt_travel_tap(&travel, 7), -ERANGE);
	RT_CHECK(rt_control_digest() == before, "it changed");
	RT_CHECK(!unshare(CLONE_NEWUSER | CLONE_NEWNET), "%m");
	rt_control_open();
	RT_EQUAL(rt_travel_tap(&travel, 1), -EPERM);
	RT_CHECK(strstr(rt_reason, "RINGCAP_A_TAP_FOLLOWS"), "%s", rt_reason);
}

/* CAP_PERFMON and CAP_SYS_ADMIN, on or off. */
static void rt_may_watch(bool may)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const u32 watch = CAP_TO_MASK(CAP_PERFMON);
	struct __user_cap_data_struct data[2];

	RT_CHECK(!syscall(SYS_capget, &header, data), "%m");
	data[0].effective = may ? data[0].permitted : data[0].effective & ~CAP_TO_MASK(CAP_SYS_ADMIN);
	data[1].effective = may ? data[1].permitted : data[1].effective & ~watch;
	RT_CHECK(!syscall(SYS_capset, &header, data), "%m");
}

/* It does not help to have another process write to the socket: its right is not enough if the opener had none. */
RT_CASE(follow_opener_asked)
{
	struct rt_travel travel;

	rt_travel_open(&travel);
	rt_may_watch(false);
	RT_EQUAL(rt_travel_tap(&travel, 1), -EPERM);
	rt_control_open();
	rt_may_watch(true);
	RT_EQUAL(rt_travel_tap(&travel, 1), -EPERM);
	RT_CHECK(strstr(rt_reason, "RINGCAP_A_TAP_FOLLOWS"), "%s", rt_reason);
	rt_control_open();
	RT_EQUAL(rt_travel_tap(&travel, 1), 0);
}
