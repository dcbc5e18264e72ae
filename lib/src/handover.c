// SPDX-License-Identifier: BSD-2-Clause
#include "handover.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi.h"

int handover_connect(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

int handover_ask(int fd, __u32 map_id)
{
	struct ringcap_handover_request request = {
		.magic = RINGCAP_MAGIC, .abi = abi_handover.newest, .abi_min = abi_handover.oldest, .map_id = map_id,
	};

	return send(fd, &request, sizeof(request), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Takes the descriptors out of a message. Closes those that fds has no room for. */
static void take_descriptors(struct msghdr *msg, int fds[HANDOVER_FDS])
{
	int n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (n < HANDOVER_FDS)
				fds[n++] = fd;
			else
				close(fd);
		}
	}
}

static void make_printable(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

int handover_check(struct ringcap_handover_reply *reply, size_t n)
{
	if (n != sizeof(*reply) || reply->magic != RINGCAP_MAGIC)
		return -EPROTO;
	make_printable(reply->reason, sizeof(reply->reason));
	make_printable(reply->name, sizeof(reply->name));
	if (reply->error)
		return reply->error < 4096 ? 0 : -EPROTO;
	if (reply->abi < abi_handover.oldest || reply->abi > abi_handover.newest)
		return -EPROTO;
	if (reply->lane_size < RINGCAP_LANE_SIZE_MIN || reply->lane_size > RINGCAP_LANE_SIZE_MAX ||
	    reply->lane_size & (reply->lane_size - 1))
		return -EPROTO;
	if (reply->nr_lanes < 1 || reply->nr_lanes > RINGCAP_LANES_MAX || reply->head_size % 64 ||
	    reply->head_size < reply->nr_lanes * sizeof(struct ringcap_lane_kernel) || reply->head_size > RINGCAP_LANE_SIZE_MAX)
		return -EPROTO;
	if (reply->nr_queues < 1 || reply->nr_queues > RINGCAP_QUEUES_MAX || reply->queue >= reply->nr_queues)
		return -EPROTO;
	return 0;
}

int handover_read(int fd, struct ringcap_handover_reply *reply, int fds[HANDOVER_FDS])
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(8 * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = reply, .iov_len = sizeof(*reply) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t n;
	int err;

	for (int i = 0; i < HANDOVER_FDS; i++)
		fds[i] = -1;
	memset(reply, 0, sizeof(*reply));
	n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (n == 0)
		return -ECONNRESET;
	take_descriptors(&msg, fds);
	err = msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EPROTO : handover_check(reply, (size_t)n);
	if (err)
		for (int i = 0; i < HANDOVER_FDS; i++) {
			if (fds[i] >= 0)
				close(fds[i]);
			fds[i] = -1;
		}
	return err;
}
