// SPDX-License-Identifier: BSD-2-Clause
#include "find.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct list {
	struct found *items;
	size_t n, room;
};

const char *find_base(enum origin origin)
{
	const char *dir = secure_getenv(origin == ORIGIN_DEV ? "RINGCAP_DEV_DIR" : "RINGCAP_RUN_DIR");

	if (dir && *dir)
		return dir;
	return origin == ORIGIN_DEV ? "/dev/ringcap" : RINGCAP_RUN_DIR;
}

int find_path(const struct found *found, char *path, size_t size)
{
	const char *base = find_base(found->origin);
	int n;

	if (found->origin == ORIGIN_DEV)
		n = snprintf(path, size, "%s/%s/%d", base, found->name, found->queue);
	else
		n = snprintf(path, size, "%s/%s/%d/" RINGCAP_HANDOVER_SOCKET, base, found->name, found->queue);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int append(struct list *list, const struct found *found)
{
	struct found *items;

	if (list->n == list->room) {
		items = realloc(list->items, (list->room * 2 + 16) * sizeof(*items));
		if (!items)
			return -ENOMEM;
		list->items = items;
		list->room = list->room * 2 + 16;
	}
	list->items[list->n++] = *found;
	return 0;
}

static int list_name(struct list *list, enum origin origin, const char *name)
{
	struct found found = { .origin = origin };
	char path[PATH_MAX];
	struct dirent *entry;
	struct stat st;
	int err = 0;
	DIR *dir;

	snprintf(found.name, sizeof(found.name), "%s", name);
	if (snprintf(path, sizeof(path), "%s/%s", find_base(origin), name) >= (int)sizeof(path))
		return 0;
	dir = opendir(path);
	if (!dir)
		return 0;
	while (!err && (entry = readdir(dir))) {
		found.queue = queue_number(entry->d_name);
		if (found.queue < 0 || find_path(&found, path, sizeof(path)) || stat(path, &st) ||
		    (origin == ORIGIN_DEV ? !S_ISCHR(st.st_mode) : !S_ISSOCK(st.st_mode)))
			continue;
		err = append(list, &found);
	}
	closedir(dir);
	return err;
}

static int list_origin(struct list *list, enum origin origin)
{
	struct dirent *entry;
	DIR *dir = opendir(find_base(origin));
	int err = 0;

	if (!dir)
		return 0;
	while (!err && (entry = readdir(dir)))
		if (name_valid(entry->d_name, strlen(entry->d_name)))
			err = list_name(list, origin, entry->d_name);
	closedir(dir);
	return err;
}

static int by_name(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	int d = strcmp(x->name, y->name);

	if (d)
		return d;
	return x->queue != y->queue ? x->queue - y->queue : (int)x->origin - (int)y->origin;
}

/* Removes duplicates from a sorted list: keeps the first of equal neighbours. */
static void drop_doubles(struct list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->n; i++) {
		const struct found *last = kept ? &list->items[kept - 1] : NULL;

		if (!last || last->queue != list->items[i].queue || strcmp(last->name, list->items[i].name))
			list->items[kept++] = list->items[i];
	}
	list->n = kept;
}

int find_queues(const char *name, struct found **items)
{
	struct list list = { 0 };
	int err = 0;

	for (enum origin origin = ORIGIN_DEV; origin <= ORIGIN_RUN && !err; origin++)
		err = name ? list_name(&list, origin, name) : list_origin(&list, origin);
	if (err) {
		free(list.items);
		return err;
	}
	if (list.n)
		qsort(list.items, list.n, sizeof(*list.items), by_name);
	drop_doubles(&list);
	*items = list.items;
	return (int)list.n;
}
