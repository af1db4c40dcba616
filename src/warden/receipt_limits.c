/* SPDX-License-Identifier: Apache-2.0 */
/* receipt_limits.c - How limits are read back: groups, writable layer, resources, network devices
 *
 * Theory of operation. A limit is in force if the kernel has it where the process is counted: so a group's value is not enough, the process
 * must be in that group, by its own /proc file. See receipt.c for who runs this and on what. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/str.h"
#include "layers/store.h"
#include "warden/receipt.h"

/* A limit counts if its group has it and the process is in that group. */
static bool in_group(const struct subject *s, enum cgroup_ctl ctl, struct line *l)
{
	char path[512] = "", want[40];
	bool v2 = s->sb->cg.version == CGROUP_V2;
	const char *at;

	(void)snprintf(want, sizeof(want), "/carrel/%s", s->sb->id);
	if (procfs_cgroup(s->cgroups, v2 ? NULL : cgroup_ctl_name(ctl), path, sizeof(path)) == 0) {
		at = strstr(path, want);
		if (at && (at[strlen(want)] == '\0' || at[strlen(want)] == '/'))
			return true;
	}
	line_lacks(l, CARREL_LAYER_MISSING, "the process is not in the group of the sandbox");
	return false;
}

static void no_group(const struct subject *s, enum cgroup_ctl ctl, struct line *l)
{
	if (s->sb->cg.version == CGROUP_NONE)
		line_lacks(l, CARREL_LAYER_MISSING, "no cgroup that this user may write to");
	else if (s->sb->cg.version == CGROUP_V1)
		line_lacks(l, CARREL_LAYER_MISSING, "no cgroup v1 hierarchy of '%s' that this user may write to", cgroup_ctl_name(ctl));
	else
		line_lacks(l, CARREL_LAYER_MISSING, "no cgroup v2 delegation of '%s'", cgroup_ctl_name(ctl));
}

/* No limit reads as the largest number that the kernel's counter takes; with v1's memory that is 2^63 less a page. */
#define LIMIT_NONE (UINT64_C(1) << 62)

static void read_cgroup_limit(const struct subject *s, enum cgroup_ctl ctl, enum cgroup_value limit, enum cgroup_value now,
			      struct line *l)
{
	const char *name = cgroup_ctl_name(ctl);
	uint64_t value, used;

	if (!(s->sb->cg.have & 1u << ctl) || cgroup_read(&s->sb->cg, limit, &value) < 0) {
		no_group(s, ctl, l);
		return;
	}
	line_say(l, "cgroup v%d, %s: ", s->sb->cg.version == CGROUP_V2 ? 2 : 1, name);
	if (value >= LIMIT_NONE) {
		line_say(l, "no limit");
		line_lacks(l, CARREL_LAYER_MISSING, "the group has no limit");
	} else {
		line_say(l, "at most %" PRIu64, value);
	}
	if (cgroup_read(&s->sb->cg, now, &used) == 0)
		line_say(l, ", now %" PRIu64, used);
	if (l->state == CARREL_LAYER_ON)
		(void)in_group(s, ctl, l);
}

void layer_memory(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	(void)kind;
	read_cgroup_limit(s, CTL_MEMORY, CGV_MEMORY_LIMIT, CGV_MEMORY, l);
}

void layer_pids(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	(void)kind;
	read_cgroup_limit(s, CTL_PIDS, CGV_PIDS_LIMIT, CGV_PIDS, l);
}

/* Most sandboxes have none. */
void layer_cpu(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	const struct cgroup *cg = &s->sb->cg;
	bool v2 = cg->version == CGROUP_V2;
	int dir = cg->version == CGROUP_NONE ? -EBADF : cg->dirs[v2 ? CTL_MEMORY : CTL_CPU];
	char quota[64] = "", period[64] = "";

	(void)kind;
	if (dir < 0 || fd_read_file_at(dir, v2 ? "cpu.max" : "cpu.cfs_quota_us", quota, sizeof(quota)) < 0 ||
	    str_starts(quota, "max") || str_starts(quota, "-1")) {
		line_leave_out(l);
		return;
	}
	if (!v2 && fd_read_file_at(dir, "cpu.cfs_period_us", period, sizeof(period)) < 0)
		period[0] = '\0';
	quota[strcspn(quota, "\n")] = '\0';
	period[strcspn(period, "\n")] = '\0';
	if (v2)
		line_say(l, "cgroup v2, cpu.max: %s", quota);
	else
		line_say(l, "cgroup v1, cpu: %s us in %s us", quota, period);
	(void)in_group(s, CTL_CPU, l);
}

/* An overlay answers statfs() for the file system of its writable layer. */
void layer_storage(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	auto_close int store = store_open(STORE_EXISTING, NULL);
	struct statfs layer, disk;

	(void)kind;
	if (fstatfs(s->root, &layer) < 0) {
		line_unreadable(l, "statfs of /", -errno);
		return;
	}
	line_say(l, "statfs of /: %" PRIu64 " bytes, %" PRIu64 " inodes", (uint64_t)layer.f_blocks * (uint64_t)layer.f_bsize,
	    (uint64_t)layer.f_files);
	if (layer.f_blocks == 0)
		line_lacks(l, CARREL_LAYER_MISSING, "it has no size");
	else if (store >= 0 && fstatfs(store, &disk) == 0 && disk.f_blocks == layer.f_blocks &&
		 disk.f_bsize == layer.f_bsize)
		line_lacks(l, CARREL_LAYER_MISSING, "it can fill the file system of the store");
	else if (layer.f_files == 0)
		line_lacks(l, CARREL_LAYER_PARTIAL, "any number of files");
}

void layer_rlimits(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	static const struct {
		const char *key, *name;
	} rows[] = {
		{ "Max open files", "open files" },
		{ "Max core file size", "core" },
		{ "Max cpu time", "cpu" },
		{ "Max file size", "file size" },
		{ "Max processes", "processes" },
	};
	auto_buf struct buf text = BUF_INIT(RECEIPT_FILE_MAX);

	if (line_read_file(s->proc, kind->file, &text, l) < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char value[64];
		char *blank;

		if (procfs_field(buf_text(&text), rows[i].key, value, sizeof(value)) < 0)
			continue;
		blank = strchr(value, ' ');
		if (!blank || (i > 1 && str_starts(value, "unlimited"))) /* the first two are always shown */
			continue;
		*blank = ':';
		value[strcspn(value, " ")] = '\0';
		line_say(l, "%s%s %s", l->evidence[0] ? ", " : "", rows[i].name, value);
		if (i == 0 && str_eq(value, "unlimited:unlimited"))
			line_lacks(l, CARREL_LAYER_PARTIAL, "any number of open files");
	}
}

void layer_devices(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	auto_buf struct buf text = BUF_INIT(RECEIPT_FILE_MAX);
	size_t others = 0;

	if (line_read_file(s->proc, kind->file, &text, l) < 0)
		return;
	for (const char *line = buf_text(&text); line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		size_t len;

		line += strspn(line, " ");
		len = strcspn(line, ":\n");
		if (line[len] != ':')
			continue; /* the two lines of headings */
		line_say(l, "%s%.*s", l->evidence[0] ? " " : "net/dev: ", (int)len, line);
		others += len != 2 || strncmp(line, "lo", 2) != 0;
	}
	if (others)
		line_lacks(l, CARREL_LAYER_MISSING, "%zu network device%s besides loopback", others, others == 1 ? "" : "s");
}
