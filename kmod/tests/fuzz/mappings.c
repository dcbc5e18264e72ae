// SPDX-License-Identifier: GPL-2.0-only
/*
 * Consumers without any manners: each episode is a process that opens a queue, and whose threads map, unmap, protect,
 * scribble, fork, sleep, transmit and close at the same time. It may well die of it; the kernel may not.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define RF_MAPS 24
#define RF_THREADS 3
#define RF_EPISODE_STEPS 150
/*
 * A step that takes longer hangs, on whatever machine. An episode as a whole may take longer, where many others run: it
 * has a limited number of steps.
 */
#define RF_STEP_SECONDS 90

struct rf_map {
	u8 *at;
	size_t len;
	int protection;
	u64 offset;
};

/* Of an episode's process; its threads race for all of it, by intention. */
static int rf_fd;
static u32 rf_nr_lanes, rf_lane_size, rf_tx_size;
static volatile struct rf_map rf_maps[RF_MAPS];

/* A thread of an episode: how many steps it has done, and how many at the last alarm. */
static struct rf_thread {
	u64 seed;
	pid_t tid;
	u32 steps;
	u32 seen;
} rf_threads[RF_THREADS];

/*
 * What is not the queue's is there before anything is unmapped or closed: a thread's stack or a pipe that came into the
 * place of a mapping or a descriptor would be taken for them.
 */
static pthread_barrier_t rf_ready;
static __thread int rf_pipe[2];

/* ---- mapping ---- */

static size_t rf_area_len(u64 offset)
{
	switch (offset) {
	case RINGCAP_MMAP_TX_DATA:
		return rf_tx_size;
	case RINGCAP_MMAP_KERNEL:
		return (rf_nr_lanes * sizeof(struct ringcap_lane_kernel) + 4095) & ~4095UL;
	case RINGCAP_MMAP_CONSUMER:
		return (rf_nr_lanes * sizeof(struct ringcap_lane_consumer) + 4095) & ~4095UL;
	}
	return offset >= RINGCAP_MMAP_DATA ? 2UL * rf_lane_size : 4096;
}

static u64 rf_offset(u64 *seed)
{
	static const u64 offsets[] = { RINGCAP_MMAP_INFO, RINGCAP_MMAP_KERNEL, RINGCAP_MMAP_CONSUMER, RINGCAP_MMAP_CONSUMER,
				       RINGCAP_MMAP_TX_INDEX, RINGCAP_MMAP_TX_INDEX, RINGCAP_MMAP_TX_DATA, RINGCAP_MMAP_TX_DATA };
	u32 which = rf_below(seed, 10);

	return which < 8 ? offsets[which] :
			   RINGCAP_MMAP_DATA + ((u64)rf_below(seed, rf_nr_lanes + 1) << RINGCAP_MMAP_LANE_SHIFT);
}

static void rf_map(u64 *seed)
{
	volatile struct rf_map *map = &rf_maps[rf_below(seed, RF_MAPS)];
	u64 offset = rf_offset(seed);
	size_t len = rf_area_len(offset);
	int protection = PROT_READ, flags = MAP_SHARED;
	void *at;

	if (offset == RINGCAP_MMAP_CONSUMER || offset == RINGCAP_MMAP_TX_INDEX || offset == RINGCAP_MMAP_TX_DATA)
		protection |= PROT_WRITE;
	if (rf_one_in(seed, 4)) {
		offset += (u64)(rf_below(seed, 5) - 2) * 4096;
		len = rf_one_in(seed, 2) ? 4096UL * rf_below(seed, 600) : (size_t)rf_number(seed) * rf_number(seed);
		protection = (int)rf_below(seed, 8);
		flags = rf_one_in(seed, 3) ? MAP_PRIVATE : MAP_SHARED;
		flags |= rf_one_in(seed, 3) ? MAP_POPULATE : 0;
		flags |= rf_one_in(seed, 3) ? MAP_LOCKED : 0;
		flags |= rf_one_in(seed, 5) ? MAP_HUGETLB : 0;
	}
	at = mmap(NULL, len, protection, flags, rf_fd, (off_t)offset);
	if (at == MAP_FAILED)
		return;
	rf_count(mapped);
	map->at = at;
	map->len = len;
	map->protection = protection;
	map->offset = offset;
}

static void rf_change_map(u64 *seed, const struct rf_map *map)
{
	size_t from = 4096UL * rf_below(seed, (u32)(map->len / 4096));
	size_t len = rf_one_in(seed, 3) ? map->len : 4096UL * (1 + rf_below(seed, 8));

	switch (rf_below(seed, 8)) {
	case 0:
		munmap(map->at + from, len);
		break;
	case 1:
		munmap(map->at, map->len);
		break;
	case 2:
		mprotect(map->at + from, len, (int)rf_below(seed, 8));
		break;
	case 3:
		mremap(map->at, map->len, rf_one_in(seed, 2) ? map->len * 2 : len, rf_one_in(seed, 2) ? MREMAP_MAYMOVE : 0);
		break;
	case 4:
		mremap(map->at, map->len, map->len, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
		break;
	case 5:
		mremap(map->at, 0, map->len, MREMAP_MAYMOVE);
		break;
	case 6:
		/* Not those that poison the machine's memory. */
		madvise(map->at + from, len, (int)rf_below(seed, 26));
		break;
	default:
		if (rf_one_in(seed, 2))
			mlock(map->at, map->len);
		else
			msync(map->at, map->len, MS_SYNC);
	}
}

/* ---- writing ---- */

static void rf_scribble(u64 *seed, const struct rf_map *map)
{
	volatile u64 *words = (void *)map->at;
	u32 i, n = (u32)(map->len / 8);

	for (i = 0; i < 64; i++) {
		u32 at = rf_one_in(seed, 2) ? rf_below(seed, 16) : rf_below(seed, n);
		u64 value = (u64)rf_number(seed) << 32 | rf_number(seed);

		words[at] = rf_one_in(seed, 2) ? value : words[at] + rf_below(seed, 4096) - 2048;
	}
}

static const struct rf_map *rf_find_map(u64 offset, struct rf_map *copy)
{
	u32 i;

	for (i = 0; i < RF_MAPS; i++) {
		*copy = *(struct rf_map *)&rf_maps[i];
		if (copy->at && copy->offset == offset && (copy->protection & PROT_WRITE))
			return copy;
	}
	return NULL;
}

/* Slots that are nearly right, sent while another thread writes over them. */
static void rf_transmit(u64 *seed)
{
	struct rf_map index_map, data_map;
	volatile struct ringcap_tx_index *index;
	u32 at, len, packets = 1 + rf_below(seed, 8);

	if (!rf_find_map(RINGCAP_MMAP_TX_INDEX, &index_map) || !rf_find_map(RINGCAP_MMAP_TX_DATA, &data_map) || !rf_tx_size)
		return;
	index = (void *)index_map.at;
	/* To the beginning now and then, for what is behind the end is what breaks. */
	if (rf_one_in(seed, 6))
		index->produced = index->consumed + (rf_one_in(seed, 2) ? rf_tx_size : rf_number(seed));
	while (packets--) {
		volatile struct ringcap_tx_slot *slot;

		at = (u32)(index->produced & (rf_tx_size - 1));
		if (at + sizeof(*slot) > rf_tx_size)
			break;
		slot = (void *)(data_map.at + at);
		len = rf_one_in(seed, 6) ? rf_number(seed) : 14 + rf_below(seed, 1600);
		slot->len = rf_one_in(seed, 20) ? RINGCAP_TX_WRAP : len;
		slot->ifindex = rf_one_in(seed, 20) ? rf_number(seed) : 1 + rf_below(seed, 8);
		index->produced += rf_one_in(seed, 30) ? rf_number(seed) : (sizeof(*slot) + len + 7) & ~7ULL;
	}
	if (ioctl(rf_fd, RINGCAP_IOC_TX, rf_one_in(seed, 2) ? 0UL : rf_below(seed, 10)) > 0)
		rf_count(transmits);
}

static void rf_judge(u64 *seed)
{
	struct ringcap_verdict verdicts[20];
	struct ringcap_verdicts argument = { .verdicts = (unsigned long)verdicts, .nr = rf_below(seed, 20) };
	u32 i;

	rf_bytes(seed, verdicts, sizeof(verdicts));
	for (i = 0; i < 20; i++) {
		verdicts[i].position = rf_below(seed, 4096) * 8;
		verdicts[i].verdict = (u8)rf_below(seed, 7);
		verdicts[i].len = rf_one_in(seed, 4) ? rf_number(seed) : 64;
		verdicts[i].data = rf_one_in(seed, 3) ? rf_number(seed) : (unsigned long)verdicts;
		verdicts[i].lane = rf_one_in(seed, 20);
		verdicts[i].flags = rf_one_in(seed, 20);
	}
	if (rf_one_in(seed, 8))
		argument.verdicts = (u64)rf_number(seed) << rf_below(seed, 33);
	if (rf_one_in(seed, 8))
		argument.nr = rf_number(seed);
	ioctl(rf_fd, RINGCAP_IOC_VERDICT, &argument);
}

/* Flows of few hosts, so that some are known and some are a packet's, in all of the ioctls. */
static void rf_make_flow(u64 *seed, struct ringcap_exact *flow)
{
	memset(flow, 0, sizeof(*flow));
	flow->l3_proto = rf_one_in(seed, 4) ? 0x86dd : 0x0800;
	flow->saddr[0] = flow->daddr[0] = 10;
	flow->saddr[3] = (u8)rf_below(seed, 8);
	flow->daddr[3] = (u8)rf_below(seed, 8);
	flow->l4_proto = rf_one_in(seed, 2) ? 17 : 6;
	flow->sport = (u16)rf_below(seed, 64);
	flow->dport = (u16)rf_below(seed, 64);
	flow->vlan_id = (u16)(rf_one_in(seed, 4) ? rf_below(seed, 4) : 0);
	flow->action = (u8)rf_below(seed, 2);
	flow->idle_s = rf_below(seed, 3);
	if (rf_one_in(seed, 20))
		rf_bytes(seed, (u8 *)flow + rf_below(seed, sizeof(*flow) - 4), 4);
}

static void rf_shunt(u64 *seed)
{
	static const unsigned long requests[] = { RINGCAP_IOC_SHUNT, RINGCAP_IOC_SHUNT, RINGCAP_IOC_UNSHUNT, RINGCAP_IOC_SHUNT_READ,
						  RINGCAP_IOC_SHUNT_ENDED };
	struct ringcap_shunts argument = { .nr = rf_below(seed, 64) };
	struct ringcap_exact_state states[64];
	struct ringcap_exact flows[64];
	u32 which = rf_below(seed, 5), i;

	for (i = 0; i < 64; i++) {
		rf_make_flow(seed, &flows[i]);
		states[i].rule = flows[i];
	}
	argument.flows = which < 3 ? (unsigned long)flows : (unsigned long)states;
	if (rf_one_in(seed, 8))
		argument.flows = (u64)rf_number(seed) << rf_below(seed, 33);
	if (rf_one_in(seed, 8))
		argument.nr = rf_number(seed);
	/* What is behind the array is not ours to be written. */
	if (which > 2 && argument.nr > 64)
		argument.flows = 8;
	if (ioctl(rf_fd, requests[which], &argument) > 0)
		rf_count(shunts);
}

/* ---- the rest of the file's operations ---- */

static void rf_fork(u64 *seed)
{
	pid_t pid = fork();

	if (pid < 0)
		return;
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGALRM, SIG_DFL);
		alarm(2);
		if (rf_one_in(seed, 2))
			munmap(rf_maps[0].at, rf_maps[0].len);
		if (rf_one_in(seed, 2))
			close(rf_fd);
		if (rf_one_in(seed, 4))
			usleep(rf_below(seed, 20000));
		_exit(0);
	}
	if (!rf_one_in(seed, 4))
		waitpid(pid, NULL, 0);
}

static void rf_file_operation(u64 *seed)
{
	struct pollfd ready = { .fd = rf_fd, .events = POLLIN | POLLOUT | POLLPRI };
	static const u8 types[] = { 'R', 'T', 0x89, 0 };
	u8 bytes[64];
	int copy;

	switch (rf_below(seed, 12)) {
	case 0:
		ioctl(rf_fd, RINGCAP_IOC_TX, (unsigned long)rf_number(seed));
		rf_judge(seed);
		rf_shunt(seed);
		break;
	case 1:
		ioctl(rf_fd, rf_number(seed), (unsigned long)rf_number(seed) << rf_below(seed, 33));
		break;
	case 2:
		ioctl(rf_fd, _IOC(rf_below(seed, 4), types[rf_below(seed, 4)], rf_below(seed, 4), rf_below(seed, 64)), bytes);
		break;
	case 3:
		if (read(rf_fd, bytes, sizeof(bytes)) >= 0 || write(rf_fd, bytes, sizeof(bytes)) >= 0)
			_exit(3);
		break;
	case 4:
		lseek(rf_fd, (off_t)rf_number(seed), (int)rf_below(seed, 5));
		break;
	case 5:
		fcntl(rf_fd, F_SETFL, rf_below(seed, 2) ? O_NONBLOCK | O_ASYNC : 0);
		break;
	case 6:
		copy = dup(rf_fd);
		if (rf_one_in(seed, 3))
			close(rf_fd);
		if (copy >= 0)
			rf_fd = copy;
		break;
	case 7:
		fsync(rf_fd);
		ftruncate(rf_fd, 0) ? (void)0 : _exit(3);
		break;
	default:
		poll(&ready, 1, (int)rf_below(seed, 3));
	}
}

/* What takes a reference to the page behind an address: nothing may get one. */
static void rf_pin(u64 *seed, const struct rf_map *map)
{
	struct iovec vector = { .iov_base = map->at, .iov_len = 4096 };
	u8 bytes[64];

	if (rf_one_in(seed, 2) && vmsplice(rf_pipe[1], &vector, 1, SPLICE_F_GIFT) > 0)
		_exit(4);
	if (write(rf_pipe[1], map->at, sizeof(bytes)) <= 0)
		return;
	if (map->protection & PROT_WRITE)
		copy_file_range(rf_pipe[0], NULL, rf_fd, NULL, sizeof(bytes), 0);
	while (read(rf_pipe[0], bytes, sizeof(bytes)) > 0)
		;
}

/* ---- episodes ---- */

static void *rf_misbehave(void *arg)
{
	struct rf_thread *thread = arg;
	u64 seed = thread->seed;
	struct rf_map map;
	u32 step;

	thread->tid = gettid();
	if (pipe2(rf_pipe, O_NONBLOCK | O_CLOEXEC))
		_exit(0);
	pthread_barrier_wait(&rf_ready);
	for (step = 0; step < RF_EPISODE_STEPS; step++) {
		u32 what = rf_below(&seed, 20);

		__atomic_store_n(&thread->steps, step + 1, __ATOMIC_RELAXED);
		map = *(struct rf_map *)&rf_maps[rf_below(&seed, RF_MAPS)];
		if (what < 5 || !map.at || map.len < 4096)
			rf_map(&seed);
		else if (what < 9 && (map.protection & PROT_WRITE) && (map.offset & ~0xfULL) != RINGCAP_MMAP_INFO)
			rf_scribble(&seed, &map);
		else if (what < 12)
			rf_transmit(&seed);
		else if (what < 14)
			rf_change_map(&seed, &map);
		else if (what < 17)
			rf_file_operation(&seed);
		else if (what < 18)
			rf_pin(&seed, &map);
		else if (what < 19 && rf_one_in(&seed, 5))
			rf_fork(&seed);
		else
			sched_yield();
	}
	__atomic_store_n(&thread->steps, RF_EPISODE_STEPS + 1, __ATOMIC_RELAXED);
	return NULL;
}

static void rf_show_file(pid_t tid, const char *name)
{
	char path[64], text[2048];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[len < 0 ? 0 : len] = 0;
	printf("# %s: %s\n", path, text);
}

/* Whether a thread is in the step in which it was at the last alarm. Says where in the kernel it is. */
static bool rf_hangs(struct rf_thread *thread)
{
	u32 steps = __atomic_load_n(&thread->steps, __ATOMIC_RELAXED);
	bool hangs = steps == thread->seen && steps <= RF_EPISODE_STEPS;

	thread->seen = steps;
	if (hangs) {
		printf("# step %u of thread %d takes too long\n", steps, thread->tid);
		rf_show_file(thread->tid, "syscall");
		rf_show_file(thread->tid, "stack");
	}
	return hangs;
}

static void rf_alarm(int number)
{
	bool hangs = false;
	u32 i;

	for (i = 0; i < RF_THREADS; i++)
		hangs |= rf_hangs(&rf_threads[i]);
	alarm(RF_STEP_SECONDS);
	if (!hangs)
		return;
	fflush(stdout);
	signal(number, SIG_DFL);
	raise(number);
}

/* A mapping that another thread took away. */
static void rf_fault(int signal)
{
	(void)signal;
	_exit(0);
}

/* Another process may have deleted the cluster since it was opened: then nothing can be mapped. */
static void rf_end_where_dead(int otherwise)
{
	if (errno == ENODEV)
		_exit(0);
	printf("# mmap: %m\n");
	fflush(stdout);
	_exit(otherwise);
}

/* As an honest consumer begins. */
static void rf_map_all(void)
{
	static const u64 offsets[] = { RINGCAP_MMAP_CONSUMER, RINGCAP_MMAP_DATA, RINGCAP_MMAP_TX_INDEX, RINGCAP_MMAP_TX_DATA };
	u32 i;

	for (i = 0; i < (rf_tx_size ? 4 : 2); i++) {
		size_t len = rf_area_len(offsets[i]);
		int protection = PROT_READ | (offsets[i] == RINGCAP_MMAP_DATA ? 0 : PROT_WRITE);
		void *at = mmap(NULL, len, protection, MAP_SHARED, rf_fd, (off_t)offsets[i]);

		if (at == MAP_FAILED)
			rf_end_where_dead(6);
		rf_maps[i].len = len;
		rf_maps[i].protection = protection;
		rf_maps[i].offset = offsets[i];
		rf_maps[i].at = at;
	}
}

static void rf_open(u64 *seed)
{
	const struct ringcap_queue_info *info;
	char name[16], path[64];

	rf_cluster_name(seed, name, sizeof(name));
	snprintf(path, sizeof(path), "/dev/ringcap/%s/%u", name, rf_below(seed, RF_QUEUES));
	rf_fd = open(path, O_RDWR | O_CLOEXEC | (rf_one_in(seed, 4) ? O_NONBLOCK : 0));
	if (rf_fd < 0)
		_exit(2);
	rf_count(attached);
	info = mmap(NULL, 4096, PROT_READ, MAP_SHARED, rf_fd, RINGCAP_MMAP_INFO);
	/* Its page is the kernel's, and true while we are attached. */
	if (info == MAP_FAILED)
		rf_end_where_dead(5);
	if (info->magic != RINGCAP_MAGIC || info->nr_lanes > RINGCAP_LANES_MAX)
		_exit(5);
	rf_nr_lanes = info->nr_lanes;
	rf_lane_size = info->lane_size;
	rf_tx_size = info->tx_size;
	rf_map_all();
}

static void rf_be_consumer(u64 seed)
{
	pthread_t threads[RF_THREADS];
	u32 i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGSEGV, rf_fault);
	signal(SIGBUS, rf_fault);
	signal(SIGIO, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, rf_alarm);
	alarm(RF_STEP_SECONDS);
	rf_open(&seed);
	pthread_barrier_init(&rf_ready, NULL, RF_THREADS + 1);
	for (i = 0; i < RF_THREADS; i++) {
		rf_threads[i].seed = seed + i * 77;
		if (pthread_create(&threads[i], NULL, rf_misbehave, &rf_threads[i]))
			_exit(0);
	}
	pthread_barrier_wait(&rf_ready);
	/* The end of a process takes its threads by surprise. */
	if (rf_one_in(&seed, 2)) {
		usleep(rf_below(&seed, 5000));
		_exit(0);
	}
	for (i = 0; i < RF_THREADS; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

void rf_act_mappings(u64 seed)
{
	u32 steps;

	for (steps = 0; rf_go_on(steps); steps++) {
		u64 episode = ((u64)rt_random(&seed) << 8) + steps;
		int status;
		pid_t pid;

		fflush(stdout);
		pid = fork();
		RT_CHECK(pid >= 0, "%m");
		if (!pid)
			rf_be_consumer(episode);
		RT_CHECK(waitpid(pid, &status, 0) == pid, "%m");
		RT_CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 3, "a queue was read or written like a file");
		RT_CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 4, "a page of a queue could be pinned");
		RT_CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 5, "the info page is not right");
		RT_CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 6, "what the info page names cannot be mapped");
		RT_CHECK(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM, "a consumer hangs (seed %llu)",
			 (unsigned long long)episode);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
			usleep(2000);
	}
}
