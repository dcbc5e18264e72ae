// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "nic.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link.h"
#include "traffic.h"

#define CARRIER_MS 30000
#define PROBE_PROTOCOL 0x88b5	/* IEEE's, for experiments */
#define PROBE_MS 50
#define PROBES_STEADY 20
#define PROBES_MAX 400

/* Finds the first entry of a folder with a name that starts with begin. Returns false if there is none. */
static bool rt_nic_entry(const char *folder, const char *begin, char *name, size_t size)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strncmp(entry->d_name, begin, strlen(begin)))
			continue;
		found = true;
		snprintf(name, size, "%.*s", (int)size - 1, entry->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

void rt_nic_find(struct rt_nic *nic, u32 slot, const char *driver)
{
	char folder[160];

	snprintf(nic->bus, sizeof(nic->bus), "pci");
	snprintf(nic->device, sizeof(nic->device), "0000:%02x:00.0", slot);
	if (strcmp(driver, "virtio_net"))
		return;
	snprintf(folder, sizeof(folder), "/sys/bus/pci/devices/%s", nic->device);
	snprintf(nic->bus, sizeof(nic->bus), "virtio");
	RT_CHECK(rt_nic_entry(folder, "virtio", nic->device, sizeof(nic->device)), "no virtio device in %s", folder);
}

static void rt_nic_write(const struct rt_nic *nic, const char *file, u32 number)
{
	char path[160], text[16];

	snprintf(path, sizeof(path), "/sys/bus/%s/devices/%s/%s", nic->bus, nic->device, file);
	snprintf(text, sizeof(text), "%u", number);
	RT_CHECK(rt_write_file(path, text), "%s: %m", path);
}

void rt_nic_set_functions(const struct rt_nic *nic, u32 number)
{
	rt_nic_write(nic, "sriov_drivers_autoprobe", 0);
	rt_nic_write(nic, "sriov_numvfs", number);
}

void rt_nic_find_function(struct rt_nic *function, const struct rt_nic *nic, u32 number)
{
	char path[160], target[160];
	ssize_t len;

	snprintf(path, sizeof(path), "/sys/bus/%s/devices/%s/virtfn%u", nic->bus, nic->device, number);
	len = readlink(path, target, sizeof(target) - 1);
	RT_CHECK(len > 0, "%s: %m", path);
	target[len] = '\0';
	*function = (struct rt_nic){};
	snprintf(function->bus, sizeof(function->bus), "%s", nic->bus);
	snprintf(function->device, sizeof(function->device), "%s", strrchr(target, '/') + 1);
}

static int rt_namespace_enter(const char *path)
{
	int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), other = open(path, O_RDONLY | O_CLOEXEC);

	RT_CHECK(own >= 0 && other >= 0 && !setns(other, CLONE_NEWNET), "%s: %m", path);
	close(other);
	return own;
}

void rt_nic_release(const struct rt_nic *nic)
{
	char path[160];

	snprintf(path, sizeof(path), "/sys/bus/%s/devices/%s/driver/unbind", nic->bus, nic->device);
	if (!access(path, W_OK))
		RT_CHECK(rt_write_file(path, nic->device), "%s: %m", path);
}

static void rt_nic_bind(const struct rt_nic *nic, const char *driver)
{
	char path[160];

	rt_nic_release(nic);
	if (!strcmp(nic->bus, "pci")) {
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver_override", nic->device);
		RT_CHECK(rt_write_file(path, driver), "%s: %m", path);
	}
	snprintf(path, sizeof(path), "/sys/bus/%s/drivers/%s/bind", nic->bus, driver);
	RT_CHECK(rt_write_file(path, nic->device), "%s: %m", path);
}

/*
 * A bound device has its interface in the initial namespace, to which /sys belongs. The namespace of another case may
 * not have given it back yet. Unbinding works anyway.
 */
void rt_nic_take(struct rt_nic *nic, const char *driver, const char *name)
{
	int own = rt_namespace_enter("/proc/1/ns/net"), error;
	char folder[160], current[16];

	rt_nic_bind(nic, driver);
	snprintf(folder, sizeof(folder), "/sys/bus/%s/devices/%s/net", nic->bus, nic->device);
	RT_CHECK(rt_nic_entry(folder, "", current, sizeof(current)), "%s made no interface of %s", driver, nic->device);
	error = rt_link_move(current, own);
	RT_CHECK(!error, "%s: %s", current, strerror(-error));
	RT_CHECK(!setns(own, CLONE_NEWNET), "%m");
	close(own);
	snprintf(nic->name, sizeof(nic->name), "%s", name);
	error = rt_link_rename(current, name);
	RT_CHECK(!error, "%s: %s", name, strerror(-error));
	rt_ip("link set %s promisc on", name);
	RT_EVENTUALLY(rt_link_is_ready(name), CARRIER_MS);
}

void rt_nic_set_mtu(const char *name, u32 mtu)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_mtu = (int)mtu };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	RT_CHECK(fd >= 0 && !ioctl(fd, SIOCSIFMTU, &request), "%s: %m", name);
	close(fd);
}

void rt_nic_set_descriptors(const char *name, u32 number)
{
	struct ethtool_ringparam sizes = { .cmd = ETHTOOL_GRINGPARAM };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_data = (void *)&sizes };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	RT_CHECK(fd >= 0 && !ioctl(fd, SIOCETHTOOL, &request), "%s: %m", name);
	sizes.cmd = ETHTOOL_SRINGPARAM;
	sizes.rx_pending = number;
	RT_CHECK(!ioctl(fd, SIOCETHTOOL, &request), "%s, %u descriptors: %m", name, number);
	close(fd);
}

static int rt_probe_open(const char *interface)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(PROBE_PROTOCOL),
				       .sll_ifindex = (int)if_nametoindex(interface) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	RT_CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof(address)), "%s: %m", interface);
	return fd;
}

void rt_nic_wait_for_link(const char *from, const char *to)
{
	/* struct rt_traffic has the same destination. */
	struct ethhdr probe = { .h_dest = { 2, 0, 0, 0, 0, 2 }, .h_source = { 2, 0, 0, 0, 0, 1 }, .h_proto = htons(PROBE_PROTOCOL) };
	int sender = rt_probe_open(from), receiver = rt_probe_open(to);
	struct pollfd ready = { .fd = receiver, .events = POLLIN };
	u32 probes, steady = 0;
	char bytes[128] = {};

	memcpy(bytes, &probe, sizeof(probe));
	for (probes = 0; probes < PROBES_MAX && steady < PROBES_STEADY; probes++) {
		/* Sending on a link that is down may fail. */
		if (send(sender, bytes, 60, 0) == 60 && poll(&ready, 1, PROBE_MS) == 1 && recv(receiver, bytes, sizeof(bytes), 0) > 0)
			steady++;
		else
			steady = 0;
		usleep(PROBE_MS * 1000);
	}
	RT_CHECK(steady == PROBES_STEADY, "from %s to %s there is no link", from, to);
	close(sender);
	close(receiver);
}

u64 rt_nic_received(const char *name)
{
	unsigned long long packets = 0;
	bool found = false;
	char line[512], *at;
	FILE *file;

	/* This file is of our namespace; /sys is not. */
	file = fopen("/proc/self/net/dev", "r");
	while (file && !found && fgets(line, sizeof(line), file)) {
		at = strchr(line, ':');
		if (!at)
			continue;
		*at = '\0';
		found = !strcmp(line + strspn(line, " "), name) && sscanf(at + 1, "%*u %llu", &packets) == 1;
	}
	RT_CHECK(found, "%s is not in /proc/net/dev", name);
	fclose(file);
	return packets;
}
