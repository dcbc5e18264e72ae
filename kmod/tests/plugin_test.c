// SPDX-License-Identifier: GPL-2.0-only
/* Plugins: the two of the tree, eBPF programs, and how they come and go. */
#define _GNU_SOURCE
#include "faults.h"
#include "fixture.h"
#include "frame.h"
#include "rules.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- modules ---- */

static void rt_plugin_load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		rt_skip("%s: %m", path);
	RT_CHECK(!syscall(SYS_finit_module, fd, "", 0) || errno == EEXIST, "%s: %m", path);
	close(fd);
}

static int rt_plugin_unload(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? -errno : 0;
}

/* ---- rings with plugins ---- */

/* Up to the first without both; a name of "" is not put. */
struct rt_plugin {
	const char *name;
	const char *config;
	int fd;
};

static void rt_put_plugins(struct rt_message *message, const void *arg)
{
	const struct rt_plugin *plugin;
	u32 nest;

	for (plugin = arg; plugin->name || plugin->fd; plugin++) {
		nest = rt_message_nest(message, RINGCAP_A_PLUGIN);
		if (plugin->name && plugin->name[0])
			rt_message_put_name(message, RINGCAP_A_PLUGIN_NAME, plugin->name);
		if (plugin->fd)
			rt_message_put_u32(message, RINGCAP_A_PLUGIN_FD, (u32)plugin->fd);
		if (plugin->config)
			rt_message_put(message, RINGCAP_A_PLUGIN_CONFIG, plugin->config, (u32)strlen(plugin->config));
		rt_message_nest_end(message, nest);
	}
}

static int rt_set_plugins(const struct rt_fixture *fixture, const struct rt_plugin *plugins)
{
	return rt_fixture_change(fixture, &(struct rt_ring){ .more = rt_put_plugins, .arg = plugins });
}

static void rt_take_plugin(const struct rt_answer *answer, void *arg)
{
	const u8 *at = answer->attr[RINGCAP_A_PLUGIN], *end = at + answer->len[RINGCAP_A_PLUGIN];
	u64 *filtered = arg;

	/* In the last nest, RINGCAP_A_PLUGIN_FILTERED. */
	while (at && at + 4 <= end) {
		u16 head[2];

		memcpy(head, at, sizeof(head));
		if (head[1] == RINGCAP_A_PLUGIN_FILTERED)
			memcpy(filtered, at + 4, sizeof(*filtered));
		at += (head[0] + 3u) & ~3u;
	}
}

/* What the last plugin of the ring did not let pass. */
static u64 rt_plugin_filtered(const struct rt_fixture *fixture)
{
	static struct rt_message message;
	u64 filtered = UINT64_MAX;

	rt_message_init(&message, RINGCAP_CMD_RING_GET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, fixture->ring);
	RT_EQUAL(rt_call(&message, rt_take_plugin, &filtered), 0);
	return filtered;
}

/* ---- packets ---- */

static const struct rt_ends rt_dns_ends = { 0x0a000001, 0x0a000002, 40000, 53 };
static const struct rt_ends rt_http_ends = { 0x0a000001, 0x0a000002, 40000, 80 };

static void rt_send_payload(int sender, const struct rt_ends *ends, bool tcp, bool ipv6, const void *payload, u32 len)
{
	struct rt_frame frame;

	rt_frame_begin(&frame, 0, 8);
	/* Without the number that it begins with. */
	frame.data = frame.room + sizeof(frame.room);
	frame.len = 0;
	rt_frame_push(&frame, payload, len);
	if (tcp)
		rt_frame_push_tcp(&frame, ends);
	else
		rt_frame_push_udp(&frame, ends);
	if (ipv6)
		rt_frame_push_ipv6(&frame, ends, tcp ? 6 : 17);
	else
		rt_frame_push_ipv4(&frame, ends, tcp ? 6 : 17);
	rt_frame_push_ethernet(&frame, ipv6 ? 0x86dd : 0x0800);
	rt_frame_send(sender, &frame);
}

/* A query for @name, in labels as they are sent, without the 0. */
static u32 rt_dns_query(u8 *message, const char *name, bool with_length)
{
	u32 at = with_length ? 2 : 0, len = (u32)strlen(name);

	memset(message, 0, 14);
	message[at + 5] = 1;
	at += 12;
	memcpy(message + at, name, len);
	at += len;
	memcpy(message + at, "\0\0\1\0\1", 5);
	at += 5;
	if (with_length)
		message[1] = (u8)(at - 2);
	return at;
}

RT_CASE(plugin_dns)
{
	static const struct rt_plugin plugins[] = { { .name = "dns", .config = "name=example.com\nname=example.org\n" }, {} };
	static const char *const names[] = { "\7example\3com", "\3www\7EXAMPLE\3org", "\7another\3com", "\3www\xc0\x0c" };
	struct rt_fixture fixture;
	struct rt_queue queue;
	u8 message[300];
	u32 i, len;

	rt_plugin_load("/ringcap_dns.ko");
	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_CHECK(!rt_set_plugins(&fixture, plugins), "%s", rt_reason);
	RT_EQUAL(rt_plugin_unload("ringcap_dns"), -EWOULDBLOCK);
	RT_EQUAL(rt_plugin_unload("ringcap"), -EWOULDBLOCK);
	rt_queue_open(&queue, fixture.cluster, 0);
	for (i = 0; i < 4; i++) {
		len = rt_dns_query(message, names[i], false);
		rt_send_payload(fixture.sender, &rt_dns_ends, false, false, message, len);
		rt_send_payload(fixture.sender, &rt_dns_ends, false, true, message, len);
		len = rt_dns_query(message, names[i], true);
		rt_send_payload(fixture.sender, &rt_dns_ends, true, false, message, len);
		/* Elsewhere than on port 53. */
		rt_send_payload(fixture.sender, &rt_http_ends, true, false, message, len);
	}
	rt_fixture_check(&fixture, 16, 10, 6, 0, 0);
	RT_EQUAL(rt_plugin_filtered(&fixture), 10);
	RT_EQUAL(rt_queue_read(&queue, NULL, NULL), 6);
	/* Let go of, it can go. */
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){}), 0);
	RT_EQUAL(rt_plugin_unload("ringcap_dns"), 0);
	RT_EQUAL(rt_set_plugins(&fixture, plugins), -ENOENT);
	RT_CHECK(strstr(rt_reason, "RINGCAP_A_PLUGIN_NAME"), "%s", rt_reason);
	rt_send_payload(fixture.sender, &rt_dns_ends, false, false, message, len);
	rt_fixture_check(&fixture, 17, 10, 7, 0, 0);
	rt_queue_close(&queue);
}

RT_CASE(plugin_http)
{
	static const struct rt_plugin plugins[] = { { .name = "http", .config = "host=example.com\nuri=/api/\n" }, {} };
	static const char *const requests[] = {
		"GET /api/x HTTP/1.1\r\nHost: www.example.com\r\n\r\n",
		"POST /api/ HTTP/1.1\r\nAccept: */*\r\nhost: EXAMPLE.com:80\r\n\r\n",
		"GET /x HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET /api/x HTTP/1.1\r\nHost: example.net\r\n\r\n",
		"no request at all",
	};
	struct rt_fixture fixture;
	struct rt_queue queue;
	u32 i;

	rt_plugin_load("/ringcap_http.ko");
	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_CHECK(!rt_set_plugins(&fixture, plugins), "%s", rt_reason);
	rt_queue_open(&queue, fixture.cluster, 0);
	for (i = 0; i < 5; i++)
		rt_send_payload(fixture.sender, &rt_http_ends, true, i % 2, requests[i], (u32)strlen(requests[i]));
	rt_send_payload(fixture.sender, &rt_http_ends, true, false, "", 0);
	rt_fixture_check(&fixture, 6, 4, 2, 0, 0);
	RT_EQUAL(rt_plugin_filtered(&fixture), 4);
	rt_queue_close(&queue);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){}), 0);
	RT_EQUAL(rt_plugin_unload("ringcap_http"), 0);
}

/* ---- eBPF ---- */

#define RT_INSN(c, d, s, o, i) { .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) }

static int rt_program_load_insns(u32 type, const struct bpf_insn *insns, u32 nr)
{
	union bpf_attr attr = {};
	int fd;

	attr.prog_type = type;
	attr.insns = (u64)(uintptr_t)insns;
	attr.insn_cnt = nr;
	attr.license = (u64)(uintptr_t)"GPL";
	fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	RT_CHECK(fd > 0, "loading a program: %m");
	return fd;
}

/* A socket filter: destination port 53 of untagged UDP over IPv4, read from the MAC header on, as a raw socket's would. */
static int rt_program_load(u32 type)
{
	static const struct bpf_insn insns[] = {
		RT_INSN(BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0),
		RT_INSN(BPF_LD | BPF_H | BPF_ABS, 0, 0, 0, 36),
		RT_INSN(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2, RT_SERVER_PORT),
		RT_INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
		RT_INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
		RT_INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1),
		RT_INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};

	return rt_program_load_insns(type, insns, sizeof(insns) / sizeof(insns[0]));
}

static void rt_check_even(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	(void)arg;
	RT_EQUAL(rt_packet_number(packet, slot->caplen) % 2, 0);
}

RT_CASE(plugin_ebpf)
{
	struct rt_plugin plugins[3] = { { .fd = rt_program_load(BPF_PROG_TYPE_SOCKET_FILTER) } };
	struct rt_traffic traffic = { .flows = 10 };
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	/* Twice: the second one sees only what the first one let pass. */
	plugins[1] = plugins[0];
	RT_CHECK(!rt_set_plugins(&fixture, plugins), "%s", rt_reason);
	/* The ring holds it. */
	close(plugins[0].fd);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_send(fixture.sender, &traffic, 0, 1000);
	rt_fixture_check(&fixture, 1000, 500, 500, 0, 0);
	RT_EQUAL(rt_plugin_filtered(&fixture), 0);
	RT_EQUAL(rt_queue_read(&queue, rt_check_even, NULL), 500);
	rt_queue_close(&queue);
}

/* A socket filter that lets everything pass, after a while. */
static int rt_slow_program_load(void)
{
	static const struct bpf_insn insns[] = {
		RT_INSN(BPF_ALU64 | BPF_MOV | BPF_K, 7, 0, 0, 100000),
		RT_INSN(BPF_ALU64 | BPF_SUB | BPF_K, 7, 0, 0, 1),
		RT_INSN(BPF_JMP | BPF_JNE | BPF_K, 7, 0, -2, 0),
		RT_INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1),
		RT_INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};

	return rt_program_load_insns(BPF_PROG_TYPE_SOCKET_FILTER, insns, sizeof(insns) / sizeof(insns[0]));
}

struct rt_slow_stream {
	const struct rt_fixture *fixture;
	bool stop;
};

static void *rt_slow_stream_run(void *arg)
{
	struct rt_slow_stream *stream = arg;

	rt_pin(1);
	while (!__atomic_load_n(&stream->stop, __ATOMIC_RELAXED)) {
		rt_send(stream->fixture->sender, &(struct rt_traffic){ .flows = 3 }, 0, 1);
		/* Or a grace period waits for a tick that finds no packet under way: on a slow machine for seconds. */
		sched_yield();
	}
	return NULL;
}

/* Once the ring's first rules are committed no packet is still under way that knows of none. */
RT_CASE(rules_first_commit)
{
	struct rt_plugin plugins[] = { { .fd = rt_slow_program_load() }, { .fd = plugins[0].fd }, {} };
	const struct rt_rules drop = { .default_action = RINGCAP_ACTION_DROP };
	struct rt_ring_counts at_once, later;
	struct rt_slow_stream stream = {};
	struct rt_fixture fixture;
	pthread_t thread;
	u32 i;

	rt_pin(0);
	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_CHECK(!rt_set_plugins(&fixture, plugins), "%s", rt_reason);
	stream.fixture = &fixture;
	RT_CHECK(!pthread_create(&thread, NULL, rt_slow_stream_run, &stream), "no thread");
	for (i = 0; i < rt_scaled(20); i++) {
		u64 seen = rt_ring_seen(fixture.ring);

		RT_EVENTUALLY(rt_ring_seen(fixture.ring) > seen + 2, 10000);
		rt_rules_set(fixture.ring, &drop, NULL, 0, NULL, 0);
		rt_ring_counts(fixture.ring, &at_once);
		usleep(20000);
		rt_ring_counts(fixture.ring, &later);
		RT_EQUAL(later.passed, at_once.passed);
		rt_rules_set(fixture.ring, &(struct rt_rules){}, NULL, 0, NULL, 0);
	}
	__atomic_store_n(&stream.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	close(plugins[0].fd);
}

/* ---- refused ---- */

static void rt_plugins_refused(const struct rt_fixture *fixture, const struct rt_plugin *plugins, int err, const char *reason)
{
	u64 before = rt_control_digest();

	RT_EQUAL(rt_set_plugins(fixture, plugins), err);
	RT_CHECK(strstr(rt_reason, reason), "'%s' is not in '%s'", reason, rt_reason);
	RT_CHECK(rt_control_digest() == before, "refused, but something changed");
}

RT_CASE(plugin_refused)
{
	struct rt_plugin other = { .fd = rt_program_load(BPF_PROG_TYPE_SCHED_CLS) }, many[10] = {};
	struct rt_fixture fixture;
	u32 i;

	rt_plugin_load("/ringcap_dns.ko");
	rt_plugin_load("/ringcap_http.ko");
	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_plugins_refused(&fixture, (struct rt_plugin[]){ { .name = "none" }, {} }, -ENOENT, "RINGCAP_A_PLUGIN_NAME");
	rt_plugins_refused(&fixture, (struct rt_plugin[]){ { .name = "" }, {} }, -EINVAL, "RINGCAP_A_PLUGIN");
	rt_plugins_refused(&fixture, (struct rt_plugin[]){ { .name = "dns", .fd = 1 }, {} }, -EINVAL, "RINGCAP_A_PLUGIN");
	rt_plugins_refused(&fixture, (struct rt_plugin[]){ { .name = "dns" }, {} }, -EINVAL, "name=NAME");
	rt_plugins_refused(&fixture, (struct rt_plugin[]){ { .name = "dns", .config = "name=a\nport=x" }, {} }, -EINVAL,
			   "dns: line 2: a port");
	rt_plugins_refused(&fixture, (struct rt_plugin[]){ { .name = "http", .config = "host=a\n\nuri=a" }, {} }, -EINVAL,
			   "http: line 3: a URI");
	/* The good one before it is let go again. */
	rt_plugins_refused(&fixture, (struct rt_plugin[]){ { .name = "dns", .config = "name=a" }, { .name = "none" }, {} },
			   -ENOENT, "RINGCAP_A_PLUGIN_NAME");
	rt_plugins_refused(&fixture, (struct rt_plugin[]){ { .fd = 999 }, {} }, -EBADF, "RINGCAP_A_PLUGIN_FD");
	rt_plugins_refused(&fixture, (struct rt_plugin[]){ other, {} }, -EINVAL, "RINGCAP_A_PLUGIN_FD");
	other.fd = rt_program_load(BPF_PROG_TYPE_SOCKET_FILTER);
	other.config = "x";
	rt_plugins_refused(&fixture, (struct rt_plugin[]){ other, {} }, -EINVAL, "RINGCAP_A_PLUGIN_CONFIG");
	for (i = 0; i < 9; i++)
		many[i] = (struct rt_plugin){ .name = "dns", .config = "name=a" };
	rt_plugins_refused(&fixture, many, -EINVAL, "at most 8");
	RT_EQUAL(rt_plugin_unload("ringcap_dns"), 0);
	RT_EQUAL(rt_plugin_unload("ringcap_http"), 0);
}

/* ---- without memory ---- */

/* A plugin of each kind. */
static int rt_set_each(const struct rt_fixture *fixture)
{
	static struct rt_plugin plugins[] = { { .name = "dns", .config = "name=example.com\nname=example.org\n" },
					      { .name = "http", .config = "host=example.com\n" }, {}, {} };

	if (!plugins[2].fd)
		plugins[2].fd = rt_program_load(BPF_PROG_TYPE_SOCKET_FILTER);
	return rt_set_plugins(fixture, plugins);
}

static int rt_set_none(const struct rt_fixture *fixture)
{
	return rt_fixture_change(fixture, &(struct rt_ring){});
}

/* A configuration that a plugin has no memory for, and a wrong one while there is no memory for the reason. */
static int rt_set_wrong(const struct rt_fixture *fixture)
{
	int err = rt_set_plugins(fixture, (struct rt_plugin[]){ { .name = "dns", .config = "name=a\nname=b\nport=x" }, {} });

	return err == -EINVAL ? 0 : err;
}

/* Each allocation of attaching plugins fails in its turn: the ring stays as it was, and no plugin is held. */
RT_CASE(plugin_no_memory)
{
	struct rt_fixture fixture;

	rt_faults_open();
	rt_plugin_load("/ringcap_dns.ko");
	rt_plugin_load("/ringcap_http.ko");
	rt_fixture_open(&fixture, &(struct rt_cluster){});
	/* Loads the program. */
	RT_EQUAL(rt_set_each(&fixture), 0);
	RT_EQUAL(rt_set_none(&fixture), 0);
	rt_try_failures("attaching plugins", rt_set_each, &fixture, 10);
	rt_try_failures("detaching plugins", rt_set_none, &fixture, 3);
	rt_try_failures("a wrong configuration", rt_set_wrong, &fixture, 5);
	RT_EQUAL(rt_plugin_unload("ringcap_dns"), 0);
	RT_EQUAL(rt_plugin_unload("ringcap_http"), 0);
}
