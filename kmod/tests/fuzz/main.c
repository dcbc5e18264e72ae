// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz [seed=N] [seconds=N] [steps=N] [only=ACTOR]...: see fuzz.h. Ends with 0 if every actor did. A seed of 0 is chosen
 * and printed. With only= some actors, the frames and the watch among them or not, as they are named.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../control.h"
#include "../link.h"

#define RF_GRACE_SECONDS 180

struct rf_actor {
	const char *name;
	void (*run)(u64 seed);
	bool wanted;
	pid_t pid;
	u32 times;	/* that it was started */
};

static struct rf_actor rf_actors[] = {
	{ "watch", rf_act_watch, false, 0, 0 },
	{ "frames", rf_act_frames, false, 0, 0 },
	{ "messages", rf_act_messages, false, 0, 0 },
	{ "messages-2", rf_act_messages, false, 0, 0 },
	{ "noise", rf_act_noise, false, 0, 0 },
	{ "mappings", rf_act_mappings, false, 0, 0 },
	{ "mappings-2", rf_act_mappings, false, 0, 0 },
	{ "devices", rf_act_devices, false, 0, 0 },
	{ "files", rf_act_files, false, 0, 0 },
};

#define RF_ACTORS (sizeof(rf_actors) / sizeof(rf_actors[0]))

struct rf_counts *rf_counts;
static u64 rf_deadline, rf_seed;
static u32 rf_steps = UINT32_MAX;

bool rf_go_on(u32 steps)
{
	return steps < rf_steps && rt_now() < rf_deadline;
}

/* ---- chance ---- */

u32 rf_below(u64 *seed, u32 limit)
{
	return rt_random(seed) % limit;
}

bool rf_one_in(u64 *seed, u32 n)
{
	return rf_below(seed, n) == 0;
}

u32 rf_number(u64 *seed)
{
	switch (rf_below(seed, 5)) {
	case 0: return rf_below(seed, 4);
	case 1: return rf_below(seed, 300);
	case 2: return (1U << rf_below(seed, 32)) + rf_below(seed, 3) - 1;
	case 3: return UINT32_MAX - rf_below(seed, 3);
	default: return rt_random(seed);
	}
}

void rf_bytes(u64 *seed, void *to, u32 len)
{
	u8 *bytes = to;
	u32 i;

	for (i = 0; i < len; i++)
		bytes[i] = (u8)rt_random(seed);
}

void rf_cluster_name(u64 *seed, char *name, size_t size)
{
	snprintf(name, size, "fz-%u", rf_below(seed, RF_OBJECTS));
}

void rf_ring_name(u64 *seed, char *name, size_t size)
{
	snprintf(name, size, "rz-%u", rf_below(seed, RF_OBJECTS));
}

/* ---- actors ---- */

static void rf_start(struct rf_actor *actor)
{
	u64 seed = rf_seed + 1000 * (u64)(actor - rf_actors) + 1000000 * (u64)actor->times++;
	char name[16];

	fflush(stdout);
	actor->pid = fork();
	RT_CHECK(actor->pid >= 0, "%m");
	if (actor->pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(name, sizeof(name), "rf-%s", actor->name);
	prctl(PR_SET_NAME, name);
	/* Memory is short by intention; let it be the nonsense that has to go. */
	rt_write_file("/proc/self/oom_score_adj", actor->run == rf_act_watch ? "-1000" : "1000");
	/* Honest actors must not have to wait for others. */
	RT_CHECK(!setpriority(PRIO_PROCESS, 0, actor->run == rf_act_watch ? -2 : 5), "%m");
	actor->run(seed);
	fflush(stdout);
	_exit(0);
}

static struct rf_actor *rf_find(pid_t pid)
{
	u32 i;

	for (i = 0; i < RF_ACTORS; i++)
		if (rf_actors[i].pid == pid)
			return &rf_actors[i];
	return NULL;
}

static u32 rf_running(void)
{
	u32 i, running = 0;

	for (i = 0; i < RF_ACTORS; i++)
		running += rf_actors[i].pid > 0;
	return running;
}

/* False if it ended as it should not have. */
static bool rf_reap(struct rf_actor *actor, int status)
{
	actor->pid = 0;
	if (!status)
		return true;
	/* The kernel took its memory; that is not the module's fault, and it goes on. */
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && actor->run != rf_act_watch) {
		if (rf_go_on(0))
			rf_start(actor);
		return true;
	}
	printf("# actor %s (start %u) ended with status %#x\n", actor->name, actor->times, (u32)status);
	return false;
}

static void rf_end_all(void)
{
	u32 i;

	for (i = 0; i < RF_ACTORS; i++)
		if (rf_actors[i].pid > 0)
			kill(rf_actors[i].pid, SIGKILL);
}

/* Waits for all; false when one failed. Those that hang longer than they may are named and ended. */
static bool rf_wait(void)
{
	const struct timespec moment = { .tv_nsec = 20000000 };
	u64 limit = rf_deadline + RF_GRACE_SECONDS * 1000000000ULL;
	bool good = true;
	u32 i;

	while (rf_running() && rt_now() < limit) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);
		struct rf_actor *actor = pid > 0 ? rf_find(pid) : NULL;

		if (actor)
			good &= rf_reap(actor, status);
		else if (pid <= 0)
			nanosleep(&moment, NULL);
	}
	for (i = 0; i < RF_ACTORS; i++) {
		if (rf_actors[i].pid <= 0)
			continue;
		printf("# actor %s hangs\n", rf_actors[i].name);
		good = false;
	}
	rf_end_all();
	return good;
}

/* Others write module parameters, by which a ring is made or refused. */
static void rf_await_watch(void)
{
	const struct rf_actor *watch = &rf_actors[0];
	u64 limit = rt_now() + RF_GRACE_SECONDS * 1000000000ULL;
	siginfo_t ended = {};

	while (watch->pid > 0 && !ended.si_pid && !__atomic_load_n(&rf_counts->watching, __ATOMIC_ACQUIRE) && rt_now() < limit) {
		waitid(P_PID, (id_t)watch->pid, &ended, WEXITED | WNOHANG | WNOWAIT);
		usleep(1000);
	}
}

static void rf_summarize(void)
{
	static const char *const names[RINGCAP_CMD_MAX + 2] = {
		[RINGCAP_CMD_INFO_GET] = "info", [RINGCAP_CMD_CLUSTER_SET] = "cluster-set",
		[RINGCAP_CMD_CLUSTER_DEL] = "cluster-del", [RINGCAP_CMD_CLUSTER_GET] = "cluster-get",
		[RINGCAP_CMD_RING_SET] = "ring-set", [RINGCAP_CMD_RING_DEL] = "ring-del",
		[RINGCAP_CMD_RING_GET] = "ring-get", [RINGCAP_CMD_QUEUE_GET] = "queue-get",
		[RINGCAP_CMD_QUEUE_RESET] = "queue-reset", [RINGCAP_CMD_QUEUE_REVOKE] = "queue-revoke",
		[RINGCAP_CMD_RULES_BEGIN] = "rules-begin",
		[RINGCAP_CMD_RULES_ADD] = "rules-add", [RINGCAP_CMD_RULES_COMMIT] = "rules-commit",
		[RINGCAP_CMD_RULES_ABORT] = "rules-abort", [RINGCAP_CMD_RULES_GET] = "rules-get",
		[RINGCAP_CMD_RULE_NEW] = "rule-new", [RINGCAP_CMD_RULE_DEL] = "rule-del",
	};
	u32 cmd;

	for (cmd = 0; cmd < RINGCAP_CMD_MAX + 2; cmd++)
		if (names[cmd] && rf_counts->sent[cmd])
			printf("# %-12s %7u of %7u accepted\n", names[cmd], rf_counts->accepted[cmd], rf_counts->sent[cmd]);
	printf("# noise %u, attached %u, mapped %u, transmits %u, shunts %u, frames %u, devices %u, files %u; watched packets %u\n",
	       rf_counts->noise, rf_counts->attached, rf_counts->mapped, rf_counts->transmits, rf_counts->shunts,
	       rf_counts->frames, rf_counts->devices, rf_counts->files, rf_counts->watched);
}

static void rf_want(const char *name)
{
	u32 i, found = 0;

	for (i = 0; i < RF_ACTORS; i++) {
		bool match = !strncmp(rf_actors[i].name, name, strlen(name));

		rf_actors[i].wanted |= match;
		found += match;
	}
	RT_CHECK(found, "no actor %s", name);
}

static void rf_parse(int argc, char **argv)
{
	u64 seconds = 60;
	int i;

	for (i = 1; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		RT_CHECK(value, "%s", argv[i]);
		*value++ = 0;
		if (!strcmp(argv[i], "seed"))
			rf_seed = strtoull(value, NULL, 10);
		else if (!strcmp(argv[i], "seconds"))
			seconds = strtoull(value, NULL, 10);
		else if (!strcmp(argv[i], "steps"))
			rf_steps = (u32)strtoul(value, NULL, 10);
		else if (!strcmp(argv[i], "only"))
			rf_want(value);
		else
			RT_CHECK(false, "unknown argument %s", argv[i]);
	}
	if (!rf_seed)
		RT_CHECK(getrandom(&rf_seed, 4, 0) == 4, "%m");
	rf_deadline = rt_now() + seconds * 1000000000ULL;
}

int main(int argc, char **argv)
{
	bool all = true, good;
	u32 i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	rf_parse(argc, argv);
	for (i = 0; i < RF_ACTORS; i++)
		all &= !rf_actors[i].wanted;
	rf_counts = mmap(NULL, sizeof(*rf_counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	RT_CHECK(rf_counts != MAP_FAILED, "%m");
	RT_CHECK(!unshare(CLONE_NEWNET | CLONE_NEWNS), "%m");
	rt_write_file("/proc/self/oom_score_adj", "-1000");
	rt_write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	RT_CHECK(!rt_link_add_veth("p0", "p1") && !rt_link_add_aware("q0", "q1"), "no interfaces");
	rt_control_open();
	printf("# fuzzing with seed=%llu\n", (unsigned long long)rf_seed);
	for (i = 0; i < RF_ACTORS; i++)
		if (all || rf_actors[i].wanted) {
			rf_start(&rf_actors[i]);
			rf_await_watch();
		}
	good = rf_wait();
	rf_summarize();
	printf("%s - fuzz seed=%llu\n", good ? "ok 1" : "not ok 1", (unsigned long long)rf_seed);
	return !good;
}
