// SPDX-License-Identifier: Apache-2.0
/*
 * send ADDRESS PORT COUNT: that many datagrams of 32 bytes, a thousand a second.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct timespec next, step = { .tv_nsec = 1000000 };
	char data[32] = "";
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	long count;

	if (fd < 0 || argc != 4 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1) {
		fputs("usage: send ADDRESS PORT COUNT\n", stderr);
		return 2;
	}
	to.sin_port = htons((in_port_t)atoi(argv[2]));
	count = atol(argv[3]);
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (long i = 0; i < count; i++) {
		snprintf(data, sizeof(data), "%ld", i);
		/* An unreachable port is said of an earlier one. */
		while (sendto(fd, data, sizeof(data), 0, (struct sockaddr *)&to, sizeof(to)) != sizeof(data))
			nanosleep(&step, NULL);
		next.tv_nsec += step.tv_nsec;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	printf("sent %ld\n", count);
	return 0;
}
