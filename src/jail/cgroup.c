/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.c - Limits and accounts of one sandbox, on cgroup v1 and v2 alike
 *
 * Theory of operation. Runs in the parent, outside the sandbox. Groups are made before the first process and named by the sandbox's id, so
 * that a crash of ours leaves something that can be found. Nobody is ever moved by writing a pid to cgroup.procs: that takes the kernel's
 * threadgroup lock and with it an RCU grace period (measured 7 to 15 ms after a quiet time, docs/bench/README.md). Instead
 *
 *  v1: a single-threaded process writes "0" to `tasks` and so moves itself, which skips that lock (15 us each);
 *  v2: a process is born in its group (CLONE_INTO_CGROUP).
 *
 * The mount points are the conventional ones; their file system type is checked, /proc/mounts is not read (hosts with many containers
 * have thousands of lines in it). */
#include "jail/cgroup.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/sys.h"

#define CGROUP_PATH_MAX 128
#define CGROUP_ROOT "/sys/fs/cgroup"
/* The kernel's default period (Documentation/admin-guide/cgroup-v2.rst, "cpu.max"). */
#define CPU_PERIOD_US 100000
/* How often and how long a removal waits for killed processes to leave: a second in all. */
#define REMOVE_TRIES 200
#define REMOVE_WAIT_MS 5

static const char *const ctl_names[] = {
	[CTL_MEMORY] = "memory",
	[CTL_PIDS] = "pids",
	[CTL_CPU] = "cpu",
	[CTL_CPUACCT] = "cpuacct",
};
_Static_assert(ARRAY_SIZE(ctl_names) == CTL_NUM, "ctl_names[] misses a controller");

/* Where each account is. @key picks a line "key N" of a file; NULL: the file is one number. */
static const struct {
	enum cgroup_ctl ctl;
	const char *v1_file, *v1_key;
	const char *v2_file, *v2_key;
	unsigned v1_per_unit; /* v1 counts in this fraction of the unit */
} values[] = {
	[CGV_MEMORY] = { CTL_MEMORY, "memory.usage_in_bytes", NULL, "memory.current", NULL, 1 },
	[CGV_MEMORY_PEAK] = { CTL_MEMORY, "memory.max_usage_in_bytes", NULL, "memory.peak", NULL, 1 },
	[CGV_MEMORY_LIMIT] = { CTL_MEMORY, "memory.limit_in_bytes", NULL, "memory.max", NULL, 1 },
	[CGV_OOM_KILLS] = { CTL_MEMORY, "memory.oom_control", "oom_kill ", "memory.events", "oom_kill ", 1 },
	[CGV_CPU_US] = { CTL_CPUACCT, "cpuacct.usage", NULL, "cpu.stat", "usage_usec ", 1000 },
	[CGV_PIDS] = { CTL_PIDS, "pids.current", NULL, "pids.current", NULL, 1 },
	[CGV_PIDS_LIMIT] = { CTL_PIDS, "pids.max", NULL, "pids.max", NULL, 1 },
	[CGV_PIDS_PEAK] = { CTL_PIDS, "pids.peak", NULL, "pids.peak", NULL, 1 },
	[CGV_PIDS_DENIED] = { CTL_PIDS, "pids.events", "max ", "pids.events", "max ", 1 },
};
_Static_assert(ARRAY_SIZE(values) == CGV_NUM, "values[] misses an account");

const char *cgroup_ctl_name(enum cgroup_ctl ctl)
{
	return (unsigned)ctl < CTL_NUM ? ctl_names[ctl] : "?";
}

void cgroup_init(struct cgroup *cg)
{
	*cg = (struct cgroup){ .init = -EBADF };
	for (size_t i = 0; i < CTL_NUM; i++)
		cg->dirs[i] = -EBADF;
}

void cgroup_done(struct cgroup *cg)
{
	for (size_t i = 0; i < CTL_NUM; i++)
		close_p(&cg->dirs[i]);
	close_p(&cg->init);
	cgroup_init(cg);
}

static bool is_fs(const char *path, unsigned long magic)
{
	struct statfs st;

	return sys_call2(__NR_statfs, path, &st) == 0 && (unsigned long)st.f_type == magic;
}

enum cgroup_version cgroup_detect(void)
{
	if (is_fs(CGROUP_ROOT, CGROUP2_SUPER_MAGIC))
		return CGROUP_V2;
	if (is_fs(CGROUP_ROOT "/pids", CGROUP_SUPER_MAGIC) || is_fs(CGROUP_ROOT "/memory", CGROUP_SUPER_MAGIC))
		return CGROUP_V1;
	return CGROUP_NONE;
}

static int open_dir(int dir, const char *path)
{
	return sys_openat(dir, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* A directory that may be there already. Return: 1 if it was made, 0 if it was there, negative errno. */
static int make_dir(int dir, const char *path)
{
	int r = sys_mkdirat(dir, path, 0755);

	return r == 0 ? 1 : r == -EEXIST ? 0 : r;
}

static int write_u64(int dir, const char *file, uint64_t v)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, v);
	return fd_write_file_at(dir, file, text);
}

static int give_to(int dir, const char *path, uint32_t owner)
{
	return (int)sys_call5(__NR_fchownat, dir, path, owner, owner, AT_EMPTY_PATH);
}

/* --- v1 --------------------------------------------------------------------------------------------------------------------- */

static int v1_limit(const struct cgroup *cg, enum cgroup_ctl ctl, const struct cgroup_limits *limits)
{
	int dir = cg->dirs[ctl], r = 0;

	switch (ctl) {
	case CTL_MEMORY:
		if (!limits->memory_bytes)
			return 0;
		r = write_u64(dir, "memory.limit_in_bytes", limits->memory_bytes);
		if (r == 0) /* without swap accounting the file is not there, and there is nothing to limit */
			(void)write_u64(dir, "memory.memsw.limit_in_bytes", limits->memory_bytes);
		return r;
	case CTL_PIDS:
		return limits->pids ? write_u64(dir, "pids.max", limits->pids) : 0;
	case CTL_CPU:
		return limits->cpu_milli ?
			       write_u64(dir, "cpu.cfs_quota_us", (uint64_t)limits->cpu_milli * CPU_PERIOD_US / 1000) :
			       0;
	case CTL_CPUACCT:
	case CTL_NUM:
		break;
	}
	return 0;
}

static int v1_open(const struct cgroup *cg, enum cgroup_ctl ctl, const char *name)
{
	char path[CGROUP_PATH_MAX];

	(void)cg;
	(void)snprintf(path, sizeof(path), CGROUP_ROOT "/%s/carrel/%s", ctl_names[ctl], name);
	return open_dir(AT_FDCWD, path);
}

/* The sandbox's group in one hierarchy. Return: 1; 0 if the host lacks it; negative errno */
static int v1_create(struct cgroup *cg, enum cgroup_ctl ctl, const struct cgroup_limits *limits, uint32_t owner)
{
	char path[CGROUP_PATH_MAX];
	int r;

	(void)snprintf(path, sizeof(path), CGROUP_ROOT "/%s/carrel/%s", ctl_names[ctl], cg->id);
	r = make_dir(AT_FDCWD, path);
	if (r == -ENOENT) { /* the first sandbox since boot, or no such hierarchy */
		char base[CGROUP_PATH_MAX];

		(void)snprintf(base, sizeof(base), CGROUP_ROOT "/%s/carrel", ctl_names[ctl]);
		r = make_dir(AT_FDCWD, base);
		if (r >= 0)
			r = make_dir(AT_FDCWD, path);
	}
	if (r == -ENOENT || r == -EROFS || r == -EACCES || r == -EPERM)
		return 0;
	if (r < 0)
		return r;
	cg->dirs[ctl] = open_dir(AT_FDCWD, path);
	if (cg->dirs[ctl] < 0)
		return cg->dirs[ctl];
	r = v1_limit(cg, ctl, limits);
	if (r == 0 && (ctl == CTL_PIDS || ctl == CTL_CPUACCT))
		r = give_to(cg->dirs[ctl], "", owner);
	return r < 0 ? r : 1;
}

static int v1_create_all(struct cgroup *cg, const struct cgroup_limits *limits, uint32_t owner, struct err *e)
{
	for (unsigned ctl = 0; ctl < CTL_NUM; ctl++) {
		int r;

		if (ctl == CTL_CPU && !limits->cpu_milli)
			continue; /* a group that limits nothing would only cost its time */
		r = v1_create(cg, ctl, limits, owner);
		if (r < 0)
			return err_sys(e, r, "make the %s group of sandbox '%s'", ctl_names[ctl], cg->id);
		if (r > 0)
			cg->have |= 1u << ctl;
	}
	return 0;
}

/* --- v2 --------------------------------------------------------------------------------------------------------------------- */

/* Controllers one by one: a kernel or a parent that lacks one refuses the whole line otherwise. */
static unsigned v2_enable(int dir)
{
	static const struct {
		enum cgroup_ctl ctl;
		const char *text;
	} all[] = { { CTL_MEMORY, "+memory" }, { CTL_PIDS, "+pids" }, { CTL_CPU, "+cpu" } };
	unsigned have = 0;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (fd_write_file_at(dir, "cgroup.subtree_control", all[i].text) == 0)
			have |= 1u << all[i].ctl;
	return have;
}

/* The directory below which sandboxes are made: CGROUP_ROOT/carrel for root, else in the topmost group that was delegated to us. */
static int v2_base(struct err *e)
{
	char self[4096], path[4200];
	uint32_t uid = (uint32_t)sys_call0(__NR_geteuid);
	struct stat st;
	char *at, *end;
	ssize_t n;

	if (uid == 0)
		return make_dir(AT_FDCWD, CGROUP_ROOT "/carrel") < 0 ?
			       err_set(e, ERR_DENIED, "make '" CGROUP_ROOT "/carrel'") :
			       open_dir(AT_FDCWD, CGROUP_ROOT "/carrel");
	n = fd_read_file_at(AT_FDCWD, "/proc/self/cgroup", self, sizeof(self));
	at = n > 0 ? strstr(self, "0::/") : NULL;
	if (!at)
		return err_set(e, ERR_UNSUPPORTED, "find the current cgroup");
	at += strlen("0::");
	end = strchrnul(at, '\n');
	*end = '\0';
	for (char *slash = at + 1; slash && *slash; slash = strchr(slash, '/') ? strchr(slash, '/') + 1 : NULL) {
		int len = (int)(strchrnul(slash, '/') - at);

		(void)snprintf(path, sizeof(path), CGROUP_ROOT "%.*s", len, at);
		if (sys_call4(__NR_newfstatat, AT_FDCWD, path, &st, 0) < 0 || st.st_uid != uid)
			continue;
		n = (ssize_t)strlen(path);
		(void)snprintf(path + n, sizeof(path) - (size_t)n, "/carrel");
		if (make_dir(AT_FDCWD, path) >= 0)
			return open_dir(AT_FDCWD, path);
	}
	return err_set(e, ERR_DENIED, "find a cgroup that is delegated to this user");
}

static int v2_limits(int work, unsigned have, const struct cgroup_limits *limits)
{
	char quota[48];
	int r = 0;

	if (have & 1u << CTL_MEMORY && limits->memory_bytes) {
		r = write_u64(work, "memory.max", limits->memory_bytes);
		if (r == 0) /* absent without swap accounting */
			ignored(fd_write_file_at(work, "memory.swap.max", "0"));
	}
	if (r == 0 && have & 1u << CTL_PIDS && limits->pids)
		r = write_u64(work, "pids.max", limits->pids);
	if (r == 0 && have & 1u << CTL_CPU && limits->cpu_milli) {
		(void)snprintf(quota, sizeof(quota), "%" PRIu64 " %d", (uint64_t)limits->cpu_milli * CPU_PERIOD_US / 1000,
			       CPU_PERIOD_US);
		r = fd_write_file_at(work, "cpu.max", quota);
	}
	return r;
}

static int v2_open_at(struct cgroup *cg, int base, struct err *e)
{
	char path[CGROUP_PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/work", cg->id);
	cg->dirs[CTL_MEMORY] = open_dir(base, path);
	(void)snprintf(path, sizeof(path), "%s/init", cg->id);
	cg->init = open_dir(base, path);
	return cg->dirs[CTL_MEMORY] < 0 || cg->init < 0 ? err_set(e, ERR_NOT_FOUND, "open the group of sandbox '%s'", cg->id) : 0;
}

static int v2_create_all(struct cgroup *cg, const struct cgroup_limits *limits, uint32_t owner, struct err *e)
{
	static const char *const given[] = { "", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control" };
	auto_close int base = v2_base(e);
	auto_close int root = -EBADF, dir = -EBADF;
	char path[CGROUP_PATH_MAX];
	int r = 0;

	if (base < 0)
		return base;
	root = sys_openat(base, "..", O_PATH | O_DIRECTORY, 0);
	(void)v2_enable(root); /* a controller that stays off is missing below, and noticed there */
	(void)v2_enable(base);
	if (make_dir(base, cg->id) < 0)
		return err_set(e, ERR_SYSTEM, "make the group of sandbox '%s'", cg->id);
	dir = open_dir(base, cg->id);
	cg->have = v2_enable(dir) | 1u << CTL_CPUACCT;
	(void)snprintf(path, sizeof(path), "%s/work", cg->id);
	if (make_dir(base, path) < 0)
		return err_set(e, ERR_SYSTEM, "make the work group of sandbox '%s'", cg->id);
	(void)snprintf(path, sizeof(path), "%s/init", cg->id);
	if (make_dir(base, path) < 0)
		return err_set(e, ERR_SYSTEM, "make the init group of sandbox '%s'", cg->id);
	r = v2_open_at(cg, base, e);
	if (r < 0)
		return r;
	r = v2_limits(cg->dirs[CTL_MEMORY], cg->have, limits);
	/* Moving a process takes the right to write cgroup.procs of the common ancestor, which is the sandbox's directory. */
	if (r == 0)
		r = give_to(dir, "cgroup.procs", owner);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(given); i++)
		r = give_to(cg->dirs[CTL_MEMORY], given[i], owner);
	return r < 0 ? err_sys(e, r, "limit sandbox '%s'", cg->id) : 0;
}

/* --- Both ------------------------------------------------------------------------------------------------------------------- */

int cgroup_create(struct cgroup *cg, const char *id, const struct cgroup_limits *limits, uint32_t owner, struct err *e)
{
	int r = 0;

	cgroup_init(cg);
	cg->version = cgroup_detect();
	(void)snprintf(cg->id, sizeof(cg->id), "%s", id);
	if (cg->version == CGROUP_V1) {
		r = v1_create_all(cg, limits, owner, e);
	} else if (cg->version == CGROUP_V2) {
		r = v2_create_all(cg, limits, owner, e);
		if (r == -EPERM && cg->dirs[CTL_MEMORY] < 0) { /* nothing was delegated to this user */
			cg->version = CGROUP_NONE;
			r = 0;
		}
	}
	if (r < 0)
		ignored(cgroup_destroy(cg, NULL)); /* the first failure is the one to tell */
	return r;
}

int cgroup_open(struct cgroup *cg, const char *id, struct err *e)
{
	cgroup_init(cg);
	cg->version = cgroup_detect();
	(void)snprintf(cg->id, sizeof(cg->id), "%s", id);
	if (cg->version == CGROUP_V2) {
		auto_close int base = v2_base(e);

		return base < 0 ? base : v2_open_at(cg, base, e);
	}
	for (unsigned ctl = 0; cg->version == CGROUP_V1 && ctl < CTL_NUM; ctl++) {
		cg->dirs[ctl] = v1_open(cg, ctl, id);
		if (cg->dirs[ctl] >= 0)
			cg->have |= 1u << ctl;
	}
	return cg->have ? 0 : err_set(e, ERR_NOT_FOUND, "open the groups of sandbox '%s'", id);
}

int cgroup_delegate(const struct cgroup *cg, enum cgroup_ctl ctl, struct err *e)
{
	int fd;

	if (cg->dirs[ctl] < 0)
		return -ENODATA;
	fd = sys_open_tree(cg->dirs[ctl], "", OPEN_TREE_CLONE | AT_EMPTY_PATH);
	if (fd == -EPERM) /* an ordinary user may not; and what ".." leads to was delegated to the user who runs init, too */
		fd = sys_openat(cg->dirs[ctl], ".", O_PATH | O_DIRECTORY, 0);
	return fd < 0 ? err_sys(e, fd, "delegate the %s group of sandbox '%s'", ctl_names[ctl], cg->id) : fd;
}

int cgroup_tasks(const struct cgroup *cg, enum cgroup_ctl ctl)
{
	return cg->dirs[ctl] < 0 ? -ENODATA : sys_openat(cg->dirs[ctl], "tasks", O_WRONLY, 0);
}

int cgroup_read(const struct cgroup *cg, enum cgroup_value value, uint64_t *ret)
{
	bool v2 = cg->version == CGROUP_V2;
	int dir = cg->version == CGROUP_NONE ? -EBADF : cg->dirs[v2 ? CTL_MEMORY : values[value].ctl];
	const char *key = v2 ? values[value].v2_key : values[value].v1_key;
	char text[1024], number[24];
	const char *at = text;
	size_t n = 0;
	int r;

	if (dir < 0 || fd_read_file_at(dir, v2 ? values[value].v2_file : values[value].v1_file, text, sizeof(text)) < 0)
		return -ENODATA;
	if (key) {
		at = strstr(text, key);
		if (!at)
			return -ENODATA;
		at += strlen(key);
	}
	if (str_starts(at, "max")) {
		*ret = UINT64_MAX;
		return 0;
	}
	while (n < sizeof(number) - 1 && at[n] >= '0' && at[n] <= '9') {
		number[n] = at[n];
		n++;
	}
	number[n] = '\0';
	r = str_to_u64(number, ret);
	if (r == 0 && !v2)
		*ret /= values[value].v1_per_unit;
	return r < 0 ? -ENODATA : 0;
}

/* SIGKILL to every process of a group. The pids come from the kernel's list a moment ago; a reused one is not in the group, so a
 * group is frozen against new members first: nobody outside it can be hit as long as its members are our sandbox's only. */
static void kill_members(int dir)
{
	char text[4096];
	ssize_t n;

	if (fd_write_file_at(dir, "cgroup.kill", "1") == 0)
		return;
	n = fd_read_file_at(dir, "cgroup.procs", text, sizeof(text));
	for (char *line = text; n > 0 && *line;) {
		char *end = strchrnul(line, '\n');
		uint64_t pid;

		if (*end)
			*end++ = '\0';
		if (str_to_u64(line, &pid) == 0 && pid > 1 && pid <= INT32_MAX)
			(void)sys_call2(__NR_kill, pid, SIGKILL); /* it may have ended meanwhile */
		line = end;
	}
}

/* The kernel's directory entry (getdents64(2)); C libraries hide it behind a heap. */
struct entry {
	uint64_t ino;
	int64_t off;
	unsigned short reclen;
	unsigned char type;
	char name[];
};

/* Name of a group below @dir. Return: 1; 0 if there is none */
static int first_child(int dir, char name[NAME_MAX + 1])
{
	_Alignas(struct entry) char entries[2048];
	long n;

	while ((n = sys_call3(__NR_getdents64, dir, entries, sizeof(entries))) > 0) {
		for (long at = 0; at < n;) {
			const struct entry *entry = (const struct entry *)(const void *)(entries + at);

			if (entry->type == DT_DIR && entry->name[0] != '.') {
				memcpy(name, entry->name, strlen(entry->name) + 1);
				return 1;
			}
			at += entry->reclen;
		}
	}
	return 0;
}

/* Go down from @dir, which is consumed, to a group without groups, killing on the way, and remove it. Return: 1; 0 if @dir is it; negative */
static int remove_leaf(int dir)
{
	char name[NAME_MAX + 1] = "", next[NAME_MAX + 1];
	int up = -EBADF, r;

	for (;;) {
		int child;

		kill_members(dir);
		if (!first_child(dir, next))
			break;
		child = sys_openat(dir, next, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

		if (up >= 0)
			(void)sys_close(up);
		up = dir;
		memcpy(name, next, sizeof(name));
		if (child < 0) {
			(void)sys_close(up);
			return child == -ENOENT ? 1 : child;
		}
		dir = child;
	}
	(void)sys_close(dir);
	if (up < 0)
		return 0;
	r = sys_unlinkat(up, name, AT_REMOVEDIR);
	(void)sys_close(up);
	return r < 0 && r != -ENOENT ? r : 1;
}

/* Remove a group with the groups in it. A sandbox with user namespaces of its own may have nested them as deep as it liked. */
static int remove_group(int parent, const char *name)
{
	for (;;) {
		int r = sys_unlinkat(parent, name, AT_REMOVEDIR), fd;

		if (r == 0 || r == -ENOENT)
			return 0;
		fd = sys_openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		if (fd < 0)
			return fd == -ENOENT ? 0 : fd;
		r = remove_leaf(fd);
		if (r < 0)
			return r;
		if (r == 0) {
			r = sys_unlinkat(parent, name, AT_REMOVEDIR);
			return r == -ENOENT ? 0 : r;
		}
	}
}

static int remove_patiently(int parent, const char *name)
{
	const struct timespec pause = { .tv_nsec = REMOVE_WAIT_MS * (long)NSEC_PER_MSEC };
	int r = remove_group(parent, name);

	for (int i = 0; (r == -EBUSY || r == -ENOTEMPTY) && i < REMOVE_TRIES; i++) {
		(void)sys_call2(__NR_nanosleep, &pause, NULL);
		r = remove_group(parent, name);
	}
	return r;
}

/* Each group of a sandbox in turn, by @remove. The first failure is returned, the others are tried all the same. */
static int each_group(enum cgroup_version version, const char *id, int (*remove)(int parent, const char *name))
{
	char path[CGROUP_PATH_MAX];
	int r = 0;

	if (version == CGROUP_NONE)
		return 0;
	if (strlen(id) != sizeof(((struct cgroup *)0)->id) - 1) /* "" would name the groups of everybody */
		return -EINVAL;
	if (version == CGROUP_V2) {
		int base = v2_base(NULL);

		if (base < 0)
			return 0; /* nothing was ever made */
		r = remove(base, id);
		(void)sys_close(base);
	}
	for (unsigned ctl = 0; version == CGROUP_V1 && ctl < CTL_NUM; ctl++) {
		int k;

		(void)snprintf(path, sizeof(path), CGROUP_ROOT "/%s/carrel/%s", ctl_names[ctl], id);
		k = remove(AT_FDCWD, path);
		r = r < 0 ? r : k;
	}
	return r;
}

static int remove_if_empty(int parent, const char *name)
{
	int r = sys_unlinkat(parent, name, AT_REMOVEDIR);

	return r == -ENOENT ? 0 : r;
}

int cgroup_remove_empty(enum cgroup_version version, const char *id)
{
	return each_group(version, id, remove_if_empty);
}

int cgroup_remove(enum cgroup_version version, const char *id)
{
	return each_group(version, id, remove_patiently);
}

int cgroup_destroy(struct cgroup *cg, struct err *e)
{
	int r = cgroup_remove(cg->version, cg->id);

	if (r < 0)
		return err_sys(e, r, "remove the groups of sandbox '%s'", cg->id);
	cgroup_done(cg);
	return 0;
}

static int list_dir(const char *path, int (*visit)(const char *id, void *data), void *data)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return 0; /* no sandbox was ever made here */
	while (r >= 0 && (entry = readdir(dir)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			r = visit(entry->d_name, data);
	(void)closedir(dir);
	return r < 0 ? r : 0;
}

int cgroup_list(int (*visit)(const char *id, void *data), void *data)
{
	enum cgroup_version version = cgroup_detect();
	char path[CGROUP_PATH_MAX];
	int r = 0;

	if (version == CGROUP_V2) {
		auto_close int base = v2_base(NULL);

		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", base);
		return base < 0 ? 0 : list_dir(path, visit, data);
	}
	for (unsigned ctl = 0; version == CGROUP_V1 && r == 0 && ctl < CTL_NUM; ctl++) {
		(void)snprintf(path, sizeof(path), CGROUP_ROOT "/%s/carrel", ctl_names[ctl]);
		r = list_dir(path, visit, data);
	}
	return r;
}
