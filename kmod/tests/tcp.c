// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "tcp.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link.h"
#include "traffic.h"

#define RT_TCP_BYTES (2U << 20)	/* bytes */
#define RT_TCP_SEED 3

/* A namespace that @interface moves into, with @address; the descriptor of the namespace. */
static int rt_tcp_host(const char *interface, const char *address)
{
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), there;

	RT_CHECK(here >= 0 && !unshare(CLONE_NEWNET), "%m");
	there = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	RT_CHECK(there >= 0 && !setns(here, CLONE_NEWNET), "%m");
	RT_EQUAL(rt_link_move(interface, there), 0);
	RT_CHECK(!setns(there, CLONE_NEWNET), "%m");
	rt_ip("address add %s/24 dev %s", address, interface);
	RT_EQUAL(rt_link_set_up(interface, true), 0);
	RT_CHECK(!setns(here, CLONE_NEWNET), "%m");
	close(here);
	return there;
}

static int rt_tcp_socket_in(int namespace)
{
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), fd;

	RT_CHECK(here >= 0 && !setns(namespace, CLONE_NEWNET), "%m");
	fd = socket(AF_INET, SOCK_STREAM, 0);
	RT_CHECK(fd >= 0 && !setns(here, CLONE_NEWNET), "%m");
	close(here);
	return fd;
}

void rt_tcp_open(struct rt_tcp *tcp, const char *from, const char *to)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(4711) };
	int listener;

	tcp->there[0] = rt_tcp_host(from, "10.9.0.1");
	tcp->there[1] = rt_tcp_host(to, "10.9.0.2");
	listener = rt_tcp_socket_in(tcp->there[1]);
	tcp->client = rt_tcp_socket_in(tcp->there[0]);
	inet_pton(AF_INET, "10.9.0.2", &address.sin_addr);
	RT_CHECK(!bind(listener, (struct sockaddr *)&address, sizeof(address)) && !listen(listener, 1), "%m");
	RT_CHECK(!connect(tcp->client, (struct sockaddr *)&address, sizeof(address)), "%m");
	tcp->server = accept(listener, NULL, NULL);
	RT_CHECK(tcp->server >= 0, "%m");
	close(listener);
}

static void *rt_tcp_write(void *arg)
{
	const struct rt_tcp *tcp = arg;
	u64 seed = RT_TCP_SEED;
	u8 bytes[8192];
	u32 done, i;

	for (done = 0; done < RT_TCP_BYTES; done += sizeof(bytes)) {
		for (i = 0; i < sizeof(bytes); i++)
			bytes[i] = (u8)rt_random(&seed);
		for (i = 0; i < sizeof(bytes);) {
			ssize_t n = write(tcp->client, bytes + i, sizeof(bytes) - i);

			RT_CHECK(n > 0, "%m");
			i += (u32)n;
		}
	}
	return NULL;
}

void rt_tcp_run(struct rt_tcp *tcp)
{
	u64 seed = RT_TCP_SEED;
	pthread_t thread;
	u32 done = 0;

	RT_CHECK(!pthread_create(&thread, NULL, rt_tcp_write, tcp), "no thread");
	while (done < RT_TCP_BYTES) {
		static u8 bytes[65536];
		ssize_t n = read(tcp->server, bytes, sizeof(bytes)), i;

		RT_CHECK(n > 0, "%m after %u bytes", done);
		for (i = 0; i < n; i++)
			RT_EQUAL(bytes[i], (u8)rt_random(&seed));
		done += (u32)n;
	}
	pthread_join(thread, NULL);
}

void rt_tcp_close(struct rt_tcp *tcp)
{
	close(tcp->client);
	close(tcp->server);
	close(tcp->there[0]);
	close(tcp->there[1]);
}
