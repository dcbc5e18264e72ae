// SPDX-License-Identifier: Apache-2.0
/*
 * probe: a consumer that does what no consumer should.
 *
 *   probe take NAME QUEUE              asks for a queue; says "given" or "refused: why"
 *   probe socket FOLDER                asks on the hand-over socket in a folder; says the same
 *   probe node MAJOR MINOR             makes a device node of its own and opens it; says the same
 *   probe scribble NAME QUEUE          asks for a queue and writes nonsense over all that it can map of it, until SIGTERM
 *
 * It knows both engines' queues from linux/ringcap.h alone, so that no library keeps it from harm.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ringcap.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

/* A queue as its holder has it: the module's device, or the eBPF engine's maps. */
struct queue {
	int fd;
	int consumer;	/* what may be written to: the same with the module, and a map of its own */
	int socket;	/* the hand-over's, -1 with the module */
	size_t page;
	size_t data;	/* bytes of all lanes and what is in front of them; of one lane with the module */
	unsigned int lanes;
};

static int refuse(const char *what, const char *why)
{
	printf("refused: %s: %s\n", what, why);
	return -1;
}

static int receive(int socket, struct ringcap_handover_reply *reply, int fds[3])
{
	union {
		char bytes[CMSG_SPACE(3 * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec part = { .iov_base = reply, .iov_len = sizeof(*reply) };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes),
	};
	struct cmsghdr *header;

	if (recvmsg(socket, &message, 0) != (ssize_t)sizeof(*reply))
		return -1;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(header), 3 * sizeof(int));
	return 0;
}

static size_t whole_pages(const struct queue *queue, size_t bytes)
{
	return (bytes + queue->page - 1) / queue->page * queue->page;
}

static int take_maps(struct queue *queue, const char *folder)
{
	struct ringcap_handover_request request = { .magic = RINGCAP_MAGIC, .abi = RINGCAP_ABI };
	struct ringcap_handover_reply reply = { 0 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fds[3] = { -1, -1, -1 };

	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/%s", folder, RINGCAP_HANDOVER_SOCKET);
	queue->socket = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	if (connect(queue->socket, (struct sockaddr *)&address, sizeof(address)))
		return refuse(address.sun_path, strerror(errno));
	if (send(queue->socket, &request, sizeof(request), 0) < 0 || receive(queue->socket, &reply, fds))
		return refuse("hand-over", strerror(errno));
	if (reply.error)
		return refuse(strerror((int)reply.error), reply.reason);
	queue->fd = fds[0];
	queue->consumer = fds[1];
	queue->lanes = reply.nr_lanes;
	queue->data = whole_pages(queue, reply.head_size + (size_t)reply.nr_lanes * (reply.lane_size + RINGCAP_LANE_TAIL));
	return 0;
}

static int take_device(struct queue *queue, const char *path)
{
	struct ringcap_queue_info *info;

	queue->fd = open(path, O_RDWR);
	if (queue->fd < 0)
		return refuse(path, strerror(errno));
	info = mmap(NULL, queue->page, PROT_READ, MAP_SHARED, queue->fd, RINGCAP_MMAP_INFO);
	if (info == MAP_FAILED)
		return refuse("info page", strerror(errno));
	queue->consumer = queue->fd;
	queue->data = info->lane_size;
	queue->lanes = info->nr_lanes;
	munmap(info, queue->page);
	return 0;
}

static int take(struct queue *queue, const char *name, const char *number)
{
	char path[96];
	struct stat found;

	*queue = (struct queue){ .fd = -1, .socket = -1, .page = (size_t)sysconf(_SC_PAGESIZE) };
	snprintf(path, sizeof(path), "/dev/ringcap/%.63s/%.3s", name, number);
	if (!stat(path, &found))
		return take_device(queue, path);
	snprintf(path, sizeof(path), "%s/%.63s/%.3s", RINGCAP_RUN_DIR, name, number);
	return take_maps(queue, path);
}

static int node(const char *major, const char *minor)
{
	char path[] = "/tmp/probe.node";
	int fd;

	unlink(path);
	if (mknod(path, S_IFCHR | 0600, makedev(strtoul(major, NULL, 10), strtoul(minor, NULL, 10))))
		return refuse("mknod", strerror(errno));
	fd = open(path, O_RDWR);
	if (fd < 0)
		return refuse("open", strerror(errno));
	puts("given");
	return 0;
}

/* Maps writable what may only be read; each mapping that is granted is a hole. */
static unsigned int try_writable(const struct queue *queue)
{
	unsigned int holes = 0;
	void *area;

	if (queue->socket < 0) {
		static const uint64_t offsets[] = { RINGCAP_MMAP_INFO, RINGCAP_MMAP_KERNEL, RINGCAP_MMAP_DATA };
		const size_t sizes[] = { queue->page, queue->page, 2 * queue->data };

		for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
			area = mmap(NULL, sizes[i], PROT_READ | PROT_WRITE, MAP_SHARED, queue->fd, (off_t)offsets[i]);
			holes += area != MAP_FAILED;
			area = mmap(NULL, sizes[i], PROT_READ, MAP_SHARED, queue->fd, (off_t)offsets[i]);
			holes += area != MAP_FAILED && !mprotect(area, sizes[i], PROT_READ | PROT_WRITE);
		}
		return holes;
	}
	area = mmap(NULL, queue->data, PROT_READ | PROT_WRITE, MAP_SHARED, queue->fd, 0);
	holes += area != MAP_FAILED;
	area = mmap(NULL, queue->data, PROT_READ, MAP_SHARED, queue->fd, 0);
	holes += area != MAP_FAILED && !mprotect(area, queue->data, PROT_READ | PROT_WRITE);
	return holes;
}

static volatile sig_atomic_t ended;

static void end(int signal)
{
	ended = signal;
}

/* Nonsense that is near what the other side believes is worse than mere noise: both are written. */
static void scribble(volatile uint64_t *words, size_t count)
{
	uint64_t noise = 88172645463325252ULL;

	while (!ended) {
		for (unsigned int round = 0; round < 100000; round++) {
			uint64_t was;

			noise ^= noise << 13;
			noise ^= noise >> 7;
			noise ^= noise << 17;
			was = words[noise % count];
			switch (noise >> 61) {
			case 0: words[noise % count] = noise; break;
			case 1: words[noise % count] = was + 8 * (noise & 0xfff); break;
			case 2: words[noise % count] = was - 8 * (noise & 0xfff); break;
			case 3: words[noise % count] = UINT64_MAX - (noise & 0xff); break;
			default: words[noise % count] = 0; break;
			}
		}
	}
}

static int ruin(const struct queue *queue)
{
	size_t size = sizeof(struct ringcap_consumer_page);
	unsigned int holes = try_writable(queue);
	void *area;

	if (queue->socket < 0)
		size = queue->lanes * sizeof(struct ringcap_lane_consumer);
	size = whole_pages(queue, size);
	area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, queue->consumer,
		    queue->socket < 0 ? (off_t)RINGCAP_MMAP_CONSUMER : 0);
	if (area == MAP_FAILED)
		return refuse("consumer page", strerror(errno));
	printf("scribbling over %zu bytes, %u holes\n", size, holes);
	fflush(stdout);
	signal(SIGTERM, end);
	scribble(area, size / sizeof(uint64_t));
	puts("done");
	return holes ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct queue queue = { .fd = -1, .socket = -1, .page = (size_t)sysconf(_SC_PAGESIZE) };

	if (argc == 4 && !strcmp(argv[1], "node"))
		return node(argv[2], argv[3]) ? 1 : 0;
	if (argc == 3 && !strcmp(argv[1], "socket")) {
		if (take_maps(&queue, argv[2]))
			return 1;
		puts("given");
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "take")) {
		if (take(&queue, argv[2], argv[3]))
			return 1;
		puts("given");
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "scribble"))
		return take(&queue, argv[2], argv[3]) || ruin(&queue) ? 1 : 0;
	fputs("usage: probe take NAME QUEUE | socket FOLDER | node MAJOR MINOR | scribble NAME QUEUE\n", stderr);
	return 2;
}
