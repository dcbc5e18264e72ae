// SPDX-License-Identifier: GPL-2.0-only
/* Rule sets of one network namespace do not affect others, and those of one socket do not affect another. */
#define _GNU_SOURCE
#include "fixture.h"
#include "rules.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define RT_BUILT_MAX	64	/* of a namespace */

/* ---- a namespace with an administrator of its own ---- */

static const char rt_tenant_ring[] = "tenant";

static void rt_tenant_open(void)
{
	struct rt_ring ring = { .name = rt_tenant_ring, .taps = { { .ifindex = 1, .direction = RINGCAP_DIRECTION_RX } } };
	int err;

	RT_CHECK(!unshare(CLONE_NEWUSER | CLONE_NEWNET), "%m");
	rt_control_open();
	err = rt_ring_set(&ring);
	RT_CHECK(!err, "a tenant's ring: %s (%s)", strerror(-err), rt_reason);
}

/*
 * Runs @body in a tenant. Returns when @body has written to the pipe that is its argument. rt_tenant_stop ends @pid.
 */
static pid_t rt_tenant_start(void (*body)(int ready))
{
	int ready[2];
	char byte;
	pid_t pid;

	RT_CHECK(!pipe2(ready, O_CLOEXEC), "%m");
	pid = fork();
	RT_CHECK(pid >= 0, "%m");
	if (!pid) {
		rt_tenant_open();
		body(ready[1]);
		_exit(0);
	}
	close(ready[1]);
	RT_CHECK(read(ready[0], &byte, 1) == 1, "the tenant did not come so far");
	close(ready[0]);
	return pid;
}

static void rt_tenant_ready(int ready)
{
	RT_CHECK(write(ready, "x", 1) == 1, "%m");
}

static void rt_tenant_stop(pid_t pid)
{
	kill(pid, SIGKILL);
	RT_CHECK(waitpid(pid, NULL, 0) == pid, "%m");
}

/* ---- many that are built ---- */

static void rt_build_all(int ready)
{
	int fds[RT_BUILT_MAX];
	u32 i;

	for (i = 0; i < RT_BUILT_MAX; i++) {
		RT_EQUAL(rt_rules_begin(rt_tenant_ring, &(struct rt_rules){}), 0);
		fds[i] = dup(rt_control_fd());
		RT_CHECK(fds[i] >= 0, "%m");
		rt_control_open();
	}
	RT_EQUAL(rt_rules_begin(rt_tenant_ring, &(struct rt_rules){}), -EBUSY);
	RT_CHECK(strstr(rt_reason, "64") && strstr(rt_reason, "namespace"), "%s", rt_reason);
	close(fds[7]);
	RT_EQUAL(rt_rules_begin(rt_tenant_ring, &(struct rt_rules){}), 0);
	rt_tenant_ready(ready);
	pause();
}

/* A namespace that builds as many sets as it may does not reduce those of others. */
RT_CASE(tenant_builds)
{
	struct rt_fixture fixture;
	pid_t pid;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	pid = rt_tenant_start(rt_build_all);
	RT_EQUAL(rt_rules_begin(fixture.ring, &(struct rt_rules){}), 0);
	RT_EQUAL(rt_rules_commit(fixture.ring), 0);
	rt_tenant_stop(pid);
}

/* ---- large ones ---- */

/* Rules of 900 matches each in 225 shapes: as many as a set may have matches of. */
static void rt_large_set(struct ringcap_rule *rules, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++)
		rules[i] = (struct ringcap_rule){ .id = i + 1, .priority = i, .action = RINGCAP_ACTION_DROP,
			.fields = RINGCAP_MATCH_SPORT | RINGCAP_MATCH_DPORT | RINGCAP_MATCH_VLAN,
			.sport = { 1, 65534 }, .dport = { 1, 65534 }, .vlan_id = (u16)(i % 4096) };
}

/* Shared with the tenant: commits that it has begun and ended. */
struct rt_commits {
	u32 begun, ended;
};

static struct rt_commits *rt_commits;

static void rt_commit_for_ever(int ready)
{
	const u32 nr = rt_scaled(1100);
	struct ringcap_rule *rules = calloc(nr, sizeof(*rules));

	RT_CHECK(rules, "no memory");
	rt_large_set(rules, nr);
	for (;;) {
		RT_EQUAL(rt_rules_begin(rt_tenant_ring, &(struct rt_rules){}), 0);
		for (u32 at = 0; at < nr; at += 275)
			RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULES_ADD, rt_tenant_ring, NULL, 0, rules + at,
					       nr - at < 275 ? nr - at : 275), 0);
		if (ready >= 0)
			rt_tenant_ready(ready);
		ready = -1;
		__atomic_add_fetch(&rt_commits->begun, 1, __ATOMIC_SEQ_CST);
		RT_EQUAL(rt_rules_commit(rt_tenant_ring), 0);
		__atomic_add_fetch(&rt_commits->ended, 1, __ATOMIC_SEQ_CST);
	}
}

/* Begins a set and closes the socket. */
static void rt_build_and_close(const struct rt_fixture *fixture)
{
	RT_EQUAL(rt_rules_begin(fixture->ring, &(struct rt_rules){}), 0);
	rt_control_open();
}

/* So many times while one commit is under way, up to @most. */
static u32 rt_build_during_commit(const struct rt_fixture *fixture, u32 most)
{
	u32 ended = __atomic_load_n(&rt_commits->ended, __ATOMIC_SEQ_CST), times = 0;

	if (__atomic_load_n(&rt_commits->begun, __ATOMIC_SEQ_CST) == ended) {
		usleep(1000);
		return 0;
	}
	while (times < most) {
		rt_build_and_close(fixture);
		if (__atomic_load_n(&rt_commits->ended, __ATOMIC_SEQ_CST) != ended)
			break;
		times++;
	}
	return times;
}

/* While a tenant commits a large set, others build sets and close sockets, one after the other. */
RT_CASE(tenant_commits)
{
	u64 end = rt_now() + 120000000000ULL;
	struct rt_fixture fixture;
	u32 most = 0, times;
	pid_t pid;

	rt_commits = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	RT_CHECK(rt_commits != MAP_FAILED, "%m");
	rt_fixture_open(&fixture, &(struct rt_cluster){});
	pid = rt_tenant_start(rt_commit_for_ever);
	while (most < 5 && rt_now() < end) {
		times = rt_build_during_commit(&fixture, 5);
		most = times > most ? times : most;
	}
	rt_tenant_stop(pid);
	RT_CHECK(rt_commits->begun, "no commit was begun");
	RT_CHECK(most >= 5, "others wait for a commit: %u times during one", most);
}

/* ---- what comes in between of a commit ---- */

struct rt_rude {
	const struct rt_fixture *fixture;
	int fd;
	bool stop;
};

/* Begins sets on a socket that is at work on another; its reader gets the answers, which do not matter here. */
static void *rt_begin_rudely(void *arg)
{
	static struct rt_message message;
	struct rt_rude *rude = arg;
	struct nlmsghdr *header = (struct nlmsghdr *)message.bytes;

	rt_message_init(&message, RINGCAP_CMD_RULES_BEGIN, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, rude->fixture->ring);
	header->nlmsg_len = message.len;
	header->nlmsg_seq = 0x70000000;
	while (!__atomic_load_n(&rude->stop, __ATOMIC_RELAXED)) {
		if (send(rude->fd, message.bytes, message.len, 0) < 0)
			break;
		usleep((u32)(rand() % 200000));
	}
	return NULL;
}

static void rt_commit_among(const struct rt_fixture *fixture, const struct ringcap_rule *rules, u32 nr, u32 *done)
{
	int err = rt_rules_begin(fixture->ring, &(struct rt_rules){ .targets = { { .cluster = fixture->cluster } } });

	if (!err)
		err = rt_rules_send(RINGCAP_CMD_RULES_ADD, fixture->ring, NULL, 0, rules, nr);
	if (!err)
		err = rt_rules_commit(fixture->ring);
	RT_CHECK(!err || err == -ENOENT || err == -EBUSY, "%s (%s)", strerror(-err), rt_reason);
	*done += !err;
}

struct rt_committer {
	const struct rt_fixture *fixture;
	bool rude;
};

static void rt_commit_while(void *arg)
{
	const struct rt_committer *committer = arg;
	struct rt_rude rude = { .fixture = committer->fixture };
	static struct ringcap_rule rules[20];
	u64 end = rt_now() + 10000000000ULL;
	pthread_t thread;
	u32 done = 0;

	rt_large_set(rules, 20);
	rt_control_open();
	rude.fd = rt_control_fd();
	if (committer->rude)
		RT_CHECK(!pthread_create(&thread, NULL, rt_begin_rudely, &rude), "no thread");
	while (rt_now() < end)
		rt_commit_among(committer->fixture, rules, 20, &done);
	__atomic_store_n(&rude.stop, true, __ATOMIC_RELAXED);
	if (committer->rude)
		pthread_join(thread, NULL);
	printf("# %u commits came through\n", done);
}

/* The same socket forgets the set while it is compiled. */
RT_CASE(commit_begun_again)
{
	struct rt_fixture fixture;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_EQUAL(rt_child(rt_commit_while, &(struct rt_committer){ &fixture, true }), 0);
	rt_rules_set(fixture.ring, &(struct rt_rules){}, NULL, 0, NULL, 0);
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, fixture.ring), 0);
	RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, fixture.cluster), 0);
}

/* The ring, and the cluster that its rules name, go while a set of it is compiled. */
RT_CASE(commit_ring_gone)
{
	struct rt_committer committer = {};
	struct rt_fixture fixture;
	int status;
	pid_t pid;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	committer.fixture = &fixture;
	pid = fork();
	RT_CHECK(pid >= 0, "%m");
	if (!pid) {
		rt_commit_while(&committer);
		_exit(0);
	}
	while (!waitpid(pid, &status, WNOHANG)) {
		usleep((u32)(rand() % 200000));
		RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, fixture.ring), 0);
		RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, fixture.cluster), 0);
		RT_EQUAL(rt_cluster_set(&(struct rt_cluster){ .name = fixture.cluster }), 0);
		RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){}), 0);
		usleep(200000);
	}
	RT_EQUAL(status, 0);
}
