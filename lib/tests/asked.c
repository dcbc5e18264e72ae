// SPDX-License-Identifier: BSD-2-Clause
#include "asked.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "fake.h"

static int go, done;	/* pipes: the child asks, and hears that they are there */

static int put(struct fake_queue *q, unsigned int i)
{
	struct ringcap_slot slot = { .hdr_len = sizeof(slot), .caplen = 60 + i % 40, .len = 100 + i,
				     .ts_ns = 1000000000ULL + i * 1000ULL + 7, .flags = i % 3 ? 0 : RINGCAP_SLOT_OUTGOING,
				     .ifindex = 3 + i % 2 };
	uint8_t data[100];

	memset(data, (int)i, sizeof(data));
	return fake_put(q, &slot, data);
}

static int put_udp(struct fake_queue *q)
{
	static const uint8_t data[60] = {
		2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0,
		0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 0x27, 0x10, 0, 53, 0, 26, 0, 0,
	};
	struct ringcap_slot slot = { .hdr_len = sizeof(slot), .caplen = sizeof(data), .len = sizeof(data) };

	return fake_put(q, &slot, data);
}

void asked_put(unsigned char n)
{
	CHECK_EQ(write(go, &n, 1), 1);
	CHECK_EQ(read(done, &n, 1), 1);
}

unsigned int asked_timeout_ms(void)
{
	uint32_t ms;

	asked_put(ASKED_TIMEOUT);
	CHECK_EQ(read(done, &ms, sizeof(ms)), sizeof(ms));
	return ms;
}

uint64_t asked_unreleased(void)
{
	uint64_t bytes;

	asked_put(ASKED_UNRELEASED);
	CHECK_EQ(read(done, &bytes, sizeof(bytes)), sizeof(bytes));
	return bytes;
}

static void delete_queue(const char *dir, struct pollfd *listener, struct pollfd *consumer)
{
	CHECK(!fake_remove(dir, "mirror", 0));
	close(listener->fd);
	close(consumer->fd);
	listener->fd = consumer->fd = -1;
}

static void put_all(struct fake_queue *q, unsigned char n)
{
	for (unsigned int i = 0; i < (n == ASKED_FLOOD ? ASKED_FLOOD_PACKETS : n); i++)
		CHECK(put(q, i) || n == ASKED_FLOOD);
}

static void serve_asked(struct fake_queue *q, unsigned char n, int answered)
{
	uint32_t ms = (uint32_t)(q->consumer->lane[0].timeout_us / 1000);
	uint64_t unreleased = q->kernel[0].producer - q->consumer->lane[0].released;

	if (n == ASKED_UDP)
		CHECK(put_udp(q));
	else if (n < ASKED_UNRELEASED || n == ASKED_FLOOD)
		put_all(q, n);
	CHECK_EQ(write(answered, &n, 1), 1);
	if (n == ASKED_TIMEOUT)
		CHECK_EQ(write(answered, &ms, sizeof(ms)), sizeof(ms));
	if (n == ASKED_UNRELEASED)
		CHECK_EQ(write(answered, &unreleased, sizeof(unreleased)), sizeof(unreleased));
}

/* Serves until the child ends. Returns whether the queue is still there. */
static bool serve(const char *dir, int listener, struct fake_queue *q, int asked, int answered)
{
	struct pollfd fds[3] = { { .fd = listener, .events = POLLIN }, { .fd = asked, .events = POLLIN },
				 { .fd = -1, .events = POLLIN } };
	struct ringcap_handover_request request;
	unsigned char n;

	for (;;) {
		CHECK(poll(fds, 3, 60000) > 0);
		if (fds[2].revents) {
			close(fds[2].fd);
			fds[2] = (struct pollfd){ .fd = -1, .events = POLLIN };
		}
		if (fds[0].revents) {
			int fd = fake_accept(listener, &request), busy = fds[2].fd >= 0;

			fake_answer(fd, q, "mirror", 0, busy ? EBUSY : 0, busy ? "another consumer is attached" : "", !busy);
			if (busy)
				close(fd);
			else
				fds[2] = (struct pollfd){ .fd = fd, .events = POLLIN };
		}
		if (!fds[1].revents)
			continue;
		if (read(asked, &n, 1) != 1)
			break;
		if (n == ASKED_DELETE)
			delete_queue(dir, &fds[0], &fds[2]);
		serve_asked(q, n, answered);
	}
	close(fds[0].fd);
	return fds[0].fd >= 0;
}

int asked_run(const char *test, uint32_t size, void (*consume)(void))
{
	char dir[64];
	struct fake_queue q;
	int up[2], down[2], listener, status;
	bool there;
	pid_t pid;

	if (geteuid()) {
		fprintf(stderr, "%s: skipped: making BPF maps needs root\n", test);
		return 77;
	}
	snprintf(dir, sizeof(dir), "/tmp/ringcap-asked-%d", getpid());
	CHECK(!setenv("RINGCAP_RUN_DIR", dir, 1) && !setenv("RINGCAP_DEV_DIR", "/nonexistent", 1));
	fake_make(&q, size, 1);
	listener = fake_listen(dir, "mirror", 0);
	CHECK(!pipe(up) && !pipe(down));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		close(up[0]);
		close(down[1]);
		close(listener);
		go = up[1];
		done = down[0];
		CHECK(!setgroups(0, NULL) && !setresgid(65534, 65534, 65534) && !setresuid(65534, 65534, 65534));
		consume();
		exit(0);
	}
	close(up[1]);
	close(down[0]);
	there = serve(dir, listener, &q, up[0], down[1]);
	close(up[0]);
	close(down[1]);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	fake_free(&q);
	return (there && fake_remove(dir, "mirror", 0)) || fake_remove_all(dir, "mirror");
}
