// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests what programs do with libpcap apart from reading in a loop, as uid 65534, on a queue of the stand-in for the
 * agent. It is linked with the libpcap that is built here. Needs root; 77 = skipped.
 */
#include "check.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <pcap/pcap.h>

#include "asked.h"

static void check_packet(const struct pcap_pkthdr *h, const u_char *data, unsigned int i)
{
	CHECK_EQ(h->caplen, 60 + i % 40);
	CHECK_EQ(h->len, 100 + i);
	for (bpf_u_int32 k = 0; k < h->caplen; k++)
		CHECK_EQ(data[k], (uint8_t)i);
}

static pcap_t *create(const char *name, int timeout)
{
	char errbuf[PCAP_ERRBUF_SIZE];
	pcap_t *p = pcap_create(name, errbuf);

	CHECK(p);
	CHECK_EQ(pcap_set_timeout(p, timeout), 0);
	return p;
}

static void test_refused(void)
{
	pcap_t *p = create("rc-other", 1000);

	CHECK_EQ(pcap_activate(p), PCAP_ERROR_NO_SUCH_DEVICE);
	CHECK(strstr(pcap_geterr(p), "ringcap.io/other"));
	pcap_close(p);
	p = create("ringcap:BAD", 1000);
	CHECK_EQ(pcap_activate(p), PCAP_ERROR);
	CHECK(strstr(pcap_geterr(p), "a name is"));
	pcap_close(p);
	p = create("rc-mirror", 1000);
	CHECK_EQ(pcap_can_set_rfmon(p), 0);
	CHECK_EQ(pcap_activate(p), 0);
	pcap_t *second = create("rc-mirror@0", 1000);

	CHECK_EQ(pcap_activate(second), PCAP_ERROR);
	CHECK(strstr(pcap_geterr(second), "attached"));
	pcap_close(second);
	pcap_close(p);
}

/* pcap_next_ex, whose packet must stay as it is until the next call. */
static void test_next_ex(void)
{
	pcap_t *p = create("rc-mirror", 50);
	struct pcap_pkthdr *h;
	struct pcap_stat stat;
	const u_char *data;

	CHECK_EQ(pcap_set_tstamp_precision(p, PCAP_TSTAMP_PRECISION_NANO), 0);
	CHECK_EQ(pcap_set_snaplen(p, 70), 0);
	CHECK_EQ(pcap_set_immediate_mode(p, 1), 0);
	CHECK_EQ(pcap_set_promisc(p, 1), 0);
	CHECK_EQ(pcap_set_buffer_size(p, 1 << 20), 0);
	CHECK_EQ(pcap_activate(p), 0);
	CHECK_EQ(pcap_datalink(p), DLT_EN10MB);
	CHECK_EQ(pcap_snapshot(p), 70);
	CHECK(pcap_fileno(p) >= 0);
	CHECK_EQ(pcap_get_selectable_fd(p), pcap_fileno(p));
	CHECK_EQ(pcap_next_ex(p, &h, &data), 0);	/* the timeout */
	asked_put(100);
	for (unsigned int i = 0; i < 100; i++) {
		CHECK_EQ(pcap_next_ex(p, &h, &data), 1);
		CHECK_EQ(h->ts.tv_sec, 1);
		CHECK_EQ(h->ts.tv_usec, i * 1000 + 7);
		CHECK_EQ(h->caplen, 60 + i % 40 > 70 ? 70 : 60 + i % 40);
		for (bpf_u_int32 k = 0; k < h->caplen; k++)
			CHECK_EQ(data[k], i);
	}
	CHECK_EQ(pcap_next_ex(p, &h, &data), 0);
	CHECK_EQ(pcap_stats(p, &stat), 0);
	CHECK_EQ(stat.ps_recv, 100);
	CHECK_EQ(stat.ps_drop, 0);
	CHECK_EQ(stat.ps_ifdrop, 0);
	CHECK_EQ(pcap_inject(p, "x", 1), PCAP_ERROR);
	CHECK(strstr(pcap_geterr(p), "EBPF engine cannot send"));
	CHECK(strstr(pcap_geterr(p), "cannot send"));
	pcap_close(p);
}

struct seen {
	pcap_t *pcap;
	unsigned int n, step, next, stop;
};

static void on_packet(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	struct seen *s = (void *)user;

	check_packet(h, data, s->next);
	s->next += s->step;
	if (++s->n == s->stop)
		pcap_breakloop(s->pcap);
}

static void count_packet(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	(void)h, (void)data;
	++*(unsigned int *)user;
}

/* Not blocking, with poll on the descriptor, as event loops do it. */
static void test_nonblock(void)
{
	pcap_t *p = create("rc-mirror", 1000);
	struct seen s = { .pcap = p, .step = 1 };
	char errbuf[PCAP_ERRBUF_SIZE];
	struct pollfd pfd;

	CHECK_EQ(pcap_setnonblock(p, 1, errbuf), 0);
	CHECK_EQ(pcap_activate(p), 0);
	CHECK_EQ(pcap_getnonblock(p, errbuf), 1);
	pfd = (struct pollfd){ .fd = pcap_get_selectable_fd(p), .events = POLLIN };
	CHECK_EQ(poll(&pfd, 1, 0), 0);
	CHECK_EQ(pcap_dispatch(p, -1, on_packet, (u_char *)&s), 0);
	asked_put(90);
	CHECK_EQ(poll(&pfd, 1, 60000), 1);
	CHECK_EQ(pcap_dispatch(p, 10, on_packet, (u_char *)&s), 10);
	CHECK_EQ(poll(&pfd, 1, 60000), 1);
	while (s.n < 90)
		CHECK(pcap_dispatch(p, -1, on_packet, (u_char *)&s) > 0);
	CHECK_EQ(pcap_dispatch(p, -1, on_packet, (u_char *)&s), 0);
	CHECK_EQ(poll(&pfd, 1, 0), 0);
	CHECK_EQ(pcap_setnonblock(p, 0, errbuf), 0);
	CHECK_EQ(pcap_getnonblock(p, errbuf), 0);
	pcap_close(p);
}

/* Blocking reads after poll, as softflowd does it: readable with packets and not without, or it would hang in the read. */
static void test_blocking_after_poll(void)
{
	pcap_t *p = create("rc-mirror", 0);	/* waits for ever */
	unsigned int n = 0, want = 0;
	struct pollfd pfd;

	CHECK_EQ(pcap_activate(p), 0);
	pfd = (struct pollfd){ .fd = pcap_get_selectable_fd(p), .events = POLLIN };
	for (unsigned char round = 1; round < 200; round++) {
		CHECK_EQ(poll(&pfd, 1, 0), 0);
		asked_put(round);
		want += round;
		while (n < want) {
			CHECK_EQ(poll(&pfd, 1, 10000), 1);
			CHECK(pcap_dispatch(p, round % 2 ? -1 : 7, count_packet, (u_char *)&n) > 0);
		}
	}
	CHECK_EQ(n, want);
	pcap_close(p);
}

/* The same one by one, not blocking: each packet stays in hand until the next is asked for. */
static void test_next_ex_after_poll(void)
{
	pcap_t *p = create("rc-mirror", 0);
	unsigned int n = 0, want = 0, empty = 0;
	struct pcap_pkthdr *h;
	char errbuf[PCAP_ERRBUF_SIZE];
	struct pollfd pfd;
	const u_char *data;

	CHECK_EQ(pcap_activate(p), 0);
	CHECK_EQ(pcap_setnonblock(p, 1, errbuf), 0);
	pfd = (struct pollfd){ .fd = pcap_get_selectable_fd(p), .events = POLLIN };
	for (unsigned char round = 1; round < 100; round++) {
		asked_put(round);
		want += round;
		while (n < want) {
			int got;

			CHECK_EQ(poll(&pfd, 1, 10000), 1);
			got = pcap_next_ex(p, &h, &data);
			CHECK(got >= 0);
			n += (unsigned int)got;
			empty += !got;
		}
	}
	CHECK_EQ(n, want);
	CHECK(empty <= 100);	/* once a burst, for the last packet was in hand */
	pcap_close(p);
}

/*
 * A program that takes packets one by one, as dumpcap does, does not release each: that costs more than the packet. The
 * descriptor is readable until the last one.
 */
static void test_one_by_one(void)
{
	pcap_t *p = create("rc-mirror", 0);
	struct seen s = { .pcap = p, .step = 1 };
	struct pollfd pfd;

	CHECK_EQ(pcap_activate(p), 0);
	pfd = (struct pollfd){ .fd = pcap_get_selectable_fd(p), .events = POLLIN };
	for (unsigned int round = 0; round < 50; round++) {
		uint64_t before, now, releases = 0;

		s.next = 0;
		asked_put(30);
		before = asked_unreleased();
		for (unsigned int i = 0; i < 30; i++, before = now) {
			CHECK_EQ(poll(&pfd, 1, 10000), 1);
			CHECK_EQ(pcap_dispatch(p, 1, on_packet, (u_char *)&s), 1);
			now = asked_unreleased();
			releases += now != before;
		}
		CHECK(releases <= 2);	/* a run also ends where the lane does */
		CHECK_EQ(asked_unreleased(), 0);
		CHECK_EQ(poll(&pfd, 1, 0), 0);
	}
	pcap_close(p);
}

/* Packets that a program has not passed when it closes the handle are there for the next one. */
static void test_closed_in_a_run(void)
{
	pcap_t *p = create("rc-mirror", 0);
	struct seen s = { .pcap = p, .step = 1 };

	CHECK_EQ(pcap_activate(p), 0);
	asked_put(30);
	CHECK_EQ(pcap_dispatch(p, 10, on_packet, (u_char *)&s), 10);
	pcap_close(p);
	p = create("rc-mirror", 0);
	CHECK_EQ(pcap_activate(p), 0);
	CHECK_EQ(pcap_loop(p, 20, on_packet, (u_char *)&s), 0);
	CHECK_EQ(asked_unreleased(), 0);
	pcap_close(p);
}

static void *break_later(void *p)
{
	poll(NULL, 0, 50);
	pcap_breakloop(p);
	return NULL;
}

static void test_breakloop(void)
{
	pcap_t *p = create("rc-mirror", 0);	/* waits for ever */
	struct seen s = { .pcap = p, .step = 1, .stop = 5 };
	pthread_t thread;

	CHECK_EQ(pcap_activate(p), 0);
	CHECK(!pthread_create(&thread, NULL, break_later, p));
	CHECK_EQ(pcap_loop(p, -1, on_packet, (u_char *)&s), PCAP_ERROR_BREAK);
	pthread_join(thread, NULL);
	asked_put(20);
	CHECK_EQ(pcap_loop(p, -1, on_packet, (u_char *)&s), PCAP_ERROR_BREAK);	/* from the callback */
	CHECK_EQ(s.n, 5);
	CHECK_EQ(pcap_loop(p, 15, on_packet, (u_char *)&s), 0);	/* none lost by that */
	CHECK_EQ(s.n, 20);
	pcap_close(p);
}

static pcap_t *closing;

/* Instead of libc's, for libpcap too: where a signal may come while a handle is closed, and its handler breaks the loop. */
void free(void *p)
{
	static void (*libc_free)(void *);

	if (closing)
		pcap_breakloop(closing);
	if (!libc_free)
		*(void **)&libc_free = dlsym(RTLD_NEXT, "free");
	libc_free(p);
}

static void test_breakloop_while_closing(void)
{
	pcap_t *p = create("rc-mirror", 0);

	CHECK_EQ(pcap_activate(p), 0);
	closing = p;
	pcap_close(p);
	closing = NULL;
}

static void test_filter_and_direction(void)
{
	pcap_t *p = create("rc-mirror", 100);
	struct seen s = { .pcap = p, .step = 3 };
	struct bpf_program program;
	struct pcap_stat stat;

	CHECK_EQ(pcap_activate(p), 0);
	CHECK_EQ(pcap_setdirection(p, PCAP_D_OUT), 0);
	asked_put(30);
	while (s.n < 10)
		CHECK(pcap_dispatch(p, -1, on_packet, (u_char *)&s) > 0);
	CHECK_EQ(pcap_dispatch(p, -1, on_packet, (u_char *)&s), 0);
	CHECK_EQ(pcap_setdirection(p, PCAP_D_INOUT), 0);
	CHECK_EQ(pcap_compile(p, &program, "ether[5] = 7 or len = 109", 1, PCAP_NETMASK_UNKNOWN), 0);
	CHECK_EQ(pcap_setfilter(p, &program), 0);
	pcap_freecode(&program);
	s = (struct seen){ .pcap = p, .step = 2, .next = 7 };
	asked_put(30);
	while (s.n < 2)
		CHECK(pcap_dispatch(p, -1, on_packet, (u_char *)&s) > 0);
	CHECK_EQ(pcap_dispatch(p, -1, on_packet, (u_char *)&s), 0);
	CHECK_EQ(pcap_stats(p, &stat), 0);
	CHECK_EQ(stat.ps_recv, 60);
	pcap_close(p);
}

static unsigned int passing(pcap_t *p, const char *filter)
{
	struct bpf_program program;
	unsigned int n = 0;
	int got;

	CHECK_EQ(pcap_compile(p, &program, filter, 1, PCAP_NETMASK_UNKNOWN), 0);
	CHECK_EQ(pcap_setfilter(p, &program), 0);
	pcap_freecode(&program);
	asked_put(30);
	while ((got = pcap_dispatch(p, -1, count_packet, (u_char *)&n)) > 0)
		;
	CHECK_EQ(got, 0);
	return n;
}

/* Of 30 packets every third goes out; all are of interface 3 + i % 2. */
static void test_filter_of_metadata(void)
{
	pcap_t *p = create("rc-mirror", 100);

	CHECK_EQ(pcap_activate(p), 0);
	CHECK_EQ(passing(p, "inbound"), 20);
	CHECK_EQ(passing(p, "outbound"), 10);
	CHECK_EQ(passing(p, "not inbound"), 10);
	CHECK_EQ(passing(p, "not outbound"), 20);
	CHECK_EQ(passing(p, "ifindex 3"), 15);
	CHECK_EQ(passing(p, "not ifindex 3 and outbound or ether[5] = 0"), 6);
	CHECK_EQ(passing(p, "ifindex 5"), 0);
	CHECK_EQ(passing(p, ""), 30);
	pcap_close(p);
}

/* As arpwatch and pmacctd do. */
static void write_into(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	struct seen *s = (void *)user;

	check_packet(h, data, s->next++);
	memset((u_char *)data, 0xff, h->caplen);
	s->n++;
}

static void write_into_all(void)
{
	pcap_t *p = create("rc-mirror", 100);
	struct seen s = { .pcap = p };

	CHECK_EQ(pcap_activate(p), 0);
	asked_put(50);
	while (s.n < 50)
		CHECK(pcap_dispatch(p, -1, write_into, (u_char *)&s) > 0);
	pcap_close(p);
}

static void test_program_that_writes(void)
{
	CHECK(!setenv("RINGCAP_PCAP_COPY", "1", 1));
	write_into_all();
	CHECK(!unsetenv("RINGCAP_PCAP_COPY"));
	program_invocation_short_name = "arpwatch";
	write_into_all();
	program_invocation_short_name = "Core Process";
	CHECK_EQ(prctl(PR_SET_NAME, "pmacctd"), 0);
	write_into_all();
	CHECK_EQ(prctl(PR_SET_NAME, "pcap_api"), 0);
	program_invocation_short_name = "pcap_api";
}

/* More than fits: what was lost is in ps_recv too. */
static void test_statistics_of_loss(void)
{
	pcap_t *p = create("rc-mirror", 100);
	struct pcap_stat stat;
	unsigned int n = 0;

	CHECK_EQ(pcap_activate(p), 0);
	asked_put(ASKED_FLOOD);
	CHECK(pcap_loop(p, 1000, count_packet, (u_char *)&n) == 0);
	while (pcap_dispatch(p, -1, count_packet, (u_char *)&n) > 0)
		;
	CHECK_EQ(pcap_stats(p, &stat), 0);
	CHECK(stat.ps_drop > 0);
	CHECK_EQ(stat.ps_recv, ASKED_FLOOD_PACKETS);
	CHECK_EQ(stat.ps_recv - stat.ps_drop, n);
	pcap_close(p);
}

static unsigned int timeout_of(int timeout_ms, int immediate)
{
	pcap_t *p = create("rc-mirror", timeout_ms);
	unsigned int own;

	CHECK_EQ(pcap_set_immediate_mode(p, immediate), 0);
	CHECK_EQ(pcap_activate(p), 0);
	own = asked_timeout_ms();
	pcap_close(p);
	return own;
}

/* The stand-in does not set it to 0 between consumers, as the engines do. */
static void test_timeout_is_the_consumers_own(void)
{
	CHECK_EQ(timeout_of(0, 0), 0);
	CHECK_EQ(timeout_of(1000, 1), 0);
	CHECK_EQ(timeout_of(1000, 0), 980);	/* before the program's own */
	CHECK_EQ(timeout_of(250, 0), 245);
	CHECK_EQ(timeout_of(1, 0), 1);
	CHECK_EQ(timeout_of(60000, 0), 10000);
}

static void test_lookups(void)
{
	char errbuf[PCAP_ERRBUF_SIZE];
	bpf_u_int32 net, mask;
	pcap_if_t *all, *d;
	int found = 0;

	CHECK_EQ(pcap_lookupnet("rc-mirror", &net, &mask, errbuf), 0);
	CHECK_EQ(pcap_lookupnet("ringcap:mirror@0", &net, &mask, errbuf), 0);
	CHECK_EQ(pcap_findalldevs(&all, errbuf), 0);
	for (d = all; d; d = d->next)
		found += !strcmp(d->name, "rc-mirror@0") && strstr(d->description, "queue 0 of mirror");
	CHECK_EQ(found, 1);
	pcap_freealldevs(all);
}

static void consume(void)
{
	RUN(test_timeout_is_the_consumers_own);	/* first: no other has set one yet */
	RUN(test_lookups);
	RUN(test_refused);
	RUN(test_next_ex);
	RUN(test_nonblock);
	RUN(test_blocking_after_poll);
	RUN(test_next_ex_after_poll);
	RUN(test_one_by_one);
	RUN(test_closed_in_a_run);
	RUN(test_breakloop);
	RUN(test_breakloop_while_closing);
	RUN(test_filter_and_direction);
	RUN(test_filter_of_metadata);
	RUN(test_program_that_writes);
	RUN(test_statistics_of_loss);
}

int main(void)
{
	return asked_run("pcap_api", 1u << 18, consume);
}
