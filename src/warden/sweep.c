/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c - Find and remove what dead sandboxes left on the host
 *
 * Theory of operation. Runs in the caller's process, as who may remove what it finds. A sandbox takes its slot before anything of it has a
 * name, and gives it back after everything is gone; init and owner hold the slot's lock, which the kernel drops with them, and the id
 * names the slot. So what has the id of a slot that nobody holds is an orphan, whatever state it died in; no clock or pid is needed to tell.
 *
 * Two traps. First, between the death of an owner and the end of its undertaker a sandbox is dead and still being removed: a finding counts
 * only if it is there again after SWEEP_WAIT_MS. Second, another run directory has another table of slots while the cgroups are those of the
 * machine: the tables that any process holds open are asked, too. Where one of those cannot be opened, every id counts as alive: in doubt
 * nothing is removed.
 *
 * Order of a removal: processes, groups, layer, directory. Each step finds what is there, so a sweep that is interrupted can be repeated. */
#include "warden/sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/sys.h"
#include "jail/cgroup.h"
#include "layers/scratch.h"
#include "layers/store.h"
#include "layers/tree.h"
#include "layers/upper.h"
#include "warden/procfs.h"
#include "warden/slot.h"

#define SWEEP_WAIT_MS 50      /* a removal by an owner or an undertaker takes a few milliseconds */
#define KILL_WAIT_MS 1000     /* until a killed init is gone: the kernel ends every process of its namespace first */
#define TABLES_MAX 64	      /* run directories besides ours; beyond them ids count as alive */
#define ORPHANS_MAX 65536     /* more are not listed: they are found by the next sweep */
#define SCRATCH_NAME ".tmp-" /* as layers/scratch.h says */

static const char *const kind_names[] = {
	[ORPHAN_PROCESS] = "orphan process", [ORPHAN_CGROUP] = "orphan cgroup",	 [ORPHAN_DIRECTORY] = "orphan run directory",
	[ORPHAN_LAYER] = "orphan writable layer", [ORPHAN_LOOP] = "orphan loop device", [ORPHAN_SCRATCH] = "orphan scratch",
};
_Static_assert(ARRAY_SIZE(kind_names) == ORPHAN_NUM, "kind_names[] misses a kind");

/** struct look - One look at the host */
struct look {
	int rundir, store;
	int tables[TABLES_MAX]; /* other run directories */
	size_t num_tables;
	unsigned unsure; /* 1: a table could not be asked */
	struct orphans found;
	int r; /* -ENOMEM sticks */
};

const char *orphan_name(enum orphan_kind kind)
{
	return (unsigned)kind < ORPHAN_NUM ? kind_names[kind] : "orphan";
}

void orphans_done(struct orphans *o)
{
	free(o->list);
	*o = ORPHANS_INIT;
}

/* --- Who lives -------------------------------------------------------------------------------------------------------------- */

/* The lock of its slot in any table. A slot that a later sandbox took counts for the earlier one, too, and so does a table that cannot be
 * read: in doubt it lives. */
static enum slot_life life_of(const struct look *w, const char *id)
{
	enum slot_life life = slot_find(w->rundir, id);

	for (size_t i = 0; i < w->num_tables && life == SLOT_DEAD; i++)
		life = slot_find(w->tables[i], id);
	return life == SLOT_DEAD && w->unsure ? SLOT_ALIVE : life;
}

/* Consumes @dir. One that is known already is not kept twice. */
static void add_table(struct look *w, int dir)
{
	struct stat mine, st;

	if (dir < 0 || fstat(dir, &mine) < 0 || w->num_tables == TABLES_MAX) {
		w->unsure = 1;
		close_p(&dir);
		return;
	}
	for (size_t i = 0; i <= w->num_tables; i++) {
		int other = i < w->num_tables ? w->tables[i] : w->rundir;

		if (other >= 0 && fstat(other, &st) == 0 && st.st_dev == mine.st_dev && st.st_ino == mine.st_ino) {
			(void)close(dir);
			return;
		}
	}
	w->tables[w->num_tables++] = dir;
}

/* A table of slots that a process holds open. Return: 1 if it holds one, 0 if none, negative errno if we may not see. */
static int find_table(struct look *w, int proc)
{
	int fd = sys_openat(proc, "fd", O_RDONLY | O_DIRECTORY, 0), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		close_p(&fd);
		return fd < 0 ? fd : -ENOMEM;
	}
	while (r == 0 && (entry = readdir(dir))) {
		char path[STORE_PATH_MAX];
		ssize_t n = readlinkat(fd, entry->d_name, path, sizeof(path) - 1);

		if (n < 6 || memcmp(path + n - 6, "/slots", 6) != 0)
			continue;
		path[n - 6] = '\0';
		add_table(w, sys_openat(AT_FDCWD, n > 6 ? path : "/", O_RDONLY | O_DIRECTORY, 0));
		r = 1;
	}
	(void)closedir(dir);
	return r;
}

static bool is_init(int proc)
{
	char exe[64];

	return procfs_link(proc, "exe", exe, sizeof(exe)) == 0 && str_starts(exe, "/memfd:carrel-init");
}

/* --- What is there ---------------------------------------------------------------------------------------------------------- */

static void printf_like(4, 5) add(struct look *w, enum orphan_kind kind, const char *name, const char *fmt, ...)
{
	struct orphan *o;
	va_list ap;

	for (size_t i = 0; i < w->found.count; i++)
		if (w->found.list[i].kind == kind && str_eq(w->found.list[i].name, name))
			return; /* a group has its directory in several hierarchies */
	if (w->r < 0 || w->found.count == ORPHANS_MAX)
		return;
	o = reallocarray(w->found.list, w->found.count + 1, sizeof(*o));
	if (!o) {
		w->r = -ENOMEM;
		return;
	}
	w->found.list = o;
	o = &o[w->found.count++];
	*o = (struct orphan){ .kind = kind };
	(void)snprintf(o->name, sizeof(o->name), "%s", name);
	va_start(ap, fmt);
	(void)vsnprintf(o->text, sizeof(o->text), fmt, ap);
	va_end(ap);
}

/* An init holds its slot from its first message to its end. One without is hung in its start, or its run directory was removed. */
static int look_at_process(pid_t pid, int dir, void *data)
{
	struct look *w = data;
	char name[16];

	if (find_table(w, dir) != 0 || !is_init(dir))
		return 0;
	(void)snprintf(name, sizeof(name), "%d", (int)pid);
	add(w, ORPHAN_PROCESS, name, "process %s is an init without a slot", name);
	return 0;
}

static int look_at_group(const char *id, void *data)
{
	struct look *w = data;
	struct cgroup cg;
	uint64_t pids = 0;

	if (life_of(w, id) != SLOT_DEAD)
		return 0;
	if (cgroup_open(&cg, id, NULL) < 0 || cgroup_read(&cg, CGV_PIDS, &pids) < 0)
		pids = 0;
	cgroup_done(&cg);
	add(w, ORPHAN_CGROUP, id, "groups of %s, with %llu processes", id, (unsigned long long)pids);
	return 0;
}

/* The v1 groups of root are in everybody's sight; an ordinary user neither made them nor can tell whether they live. */
static bool groups_are_ours(void)
{
	return geteuid() == 0 || cgroup_detect() == CGROUP_V2;
}

/* Directory entries of @dir that @take accepts; @dir stays open. */
static void look_at_dir(struct look *w, int dir, void (*take)(struct look *w, int dir, const struct dirent *entry))
{
	int fd = dir < 0 ? -EBADF : sys_openat(dir, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!d) {
		close_p(&fd);
		return;
	}
	while ((entry = readdir(d)))
		take(w, fd, entry);
	(void)closedir(d);
}

static void take_run_entry(struct look *w, int dir, const struct dirent *entry)
{
	(void)dir;
	if (entry->d_type == DT_DIR && life_of(w, entry->d_name) == SLOT_DEAD)
		add(w, ORPHAN_DIRECTORY, entry->d_name, "run directory of %s", entry->d_name);
}

/* Whoever builds there holds flock(); a shared lock that is given back at once disturbs nobody who is past his first call. */
static void take_scratch(struct look *w, int dir, const struct dirent *entry, const char *below)
{
	auto_close int fd = -EBADF;
	char name[ORPHAN_NAME_MAX];

	if (!str_starts(entry->d_name, SCRATCH_NAME))
		return;
	fd = sys_openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0)
		return;
	(void)snprintf(name, sizeof(name), "%s/%.40s", below, entry->d_name);
	add(w, ORPHAN_SCRATCH, name, "'%s' in the store, whose builder died", name);
}

static void take_host_entry(struct look *w, int dir, const struct dirent *entry)
{
	take_scratch(w, dir, entry, "host");
}

static void take_image_entry(struct look *w, int dir, const struct dirent *entry)
{
	take_scratch(w, dir, entry, "images");
}

static void look_at_store(struct look *w)
{
	auto_close int host = -EBADF, images = -EBADF;

	if (w->store < 0)
		return;
	host = sys_openat(w->store, "host", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	images = sys_openat(w->store, "images", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	look_at_dir(w, host, take_host_entry);
	look_at_dir(w, images, take_image_entry);
}

static int look_at_layer(const char *id, void *data)
{
	struct look *w = data;

	if (life_of(w, id) == SLOT_DEAD)
		add(w, ORPHAN_LAYER, id, "writable layer of %s in the store", id);
	return 0;
}

/* Devices of ours are named by their sandbox. They end with their last user, so one that is left has a user that is. */
static void take_block(struct look *w, int dir, const struct dirent *entry)
{
	auto_close int fd = -EBADF;
	struct loop_info64 info;
	char path[32];

	(void)dir;
	if (!str_starts(entry->d_name, "loop"))
		return;
	(void)snprintf(path, sizeof(path), "/dev/%.20s", entry->d_name);
	fd = sys_openat(AT_FDCWD, path, O_RDONLY, 0);
	if (fd < 0 || sys_ioctl(fd, LOOP_GET_STATUS64, (long)(uintptr_t)&info) < 0)
		return; /* nothing is attached to it, or it is not ours to see */
	info.lo_file_name[LO_NAME_SIZE - 1] = '\0';
	if (life_of(w, (const char *)info.lo_file_name) == SLOT_DEAD)
		add(w, ORPHAN_LOOP, entry->d_name, "%s of %s", path, (const char *)info.lo_file_name);
}

static int look_once(int rundir, int store, struct orphans *ret)
{
	struct look w = { .rundir = rundir, .store = store };
	auto_close int block = sys_openat(AT_FDCWD, "/sys/block", O_RDONLY | O_DIRECTORY, 0);

	if (procfs_each(look_at_process, &w) < 0)
		w.unsure = 1; /* first of all: it finds the other tables */
	if (groups_are_ours())
		ignored(cgroup_list(look_at_group, &w)); /* the visitor stops nothing; a hierarchy that is not there has no group */
	look_at_dir(&w, rundir, take_run_entry);
	look_at_store(&w);
	if (store >= 0)
		ignored(upper_list(store, look_at_layer, &w, NULL)); /* the visitor stops nothing; what cannot be listed cannot be swept */
	look_at_dir(&w, block, take_block);
	for (size_t i = 0; i < w.num_tables; i++)
		(void)close(w.tables[i]);
	if (w.r < 0) {
		orphans_done(&w.found);
		return w.r;
	}
	*ret = w.found;
	return 0;
}

/* Keep what both looks saw. */
static void intersect(struct orphans *o, const struct orphans *before)
{
	size_t n = 0;

	for (size_t i = 0; i < o->count; i++) {
		for (size_t k = 0; k < before->count; k++) {
			if (o->list[i].kind != before->list[k].kind || !str_eq(o->list[i].name, before->list[k].name))
				continue;
			o->list[n++] = o->list[i];
			break;
		}
	}
	o->count = n;
}

int sweep_find(int rundir, int store, struct orphans *ret, struct err *e)
{
	auto_(orphans_done) struct orphans before = ORPHANS_INIT;
	struct orphans now = ORPHANS_INIT;
	int r = look_once(rundir, store, &before);

	if (r == 0 && before.count > 0) {
		(void)poll(NULL, 0, SWEEP_WAIT_MS);
		r = look_once(rundir, store, &now);
		if (r == 0)
			intersect(&now, &before);
	}
	if (r < 0)
		return err_sys(e, r, "list what dead sandboxes left");
	*ret = now;
	return 0;
}

/* --- Removal ---------------------------------------------------------------------------------------------------------------- */

int sweep_sandbox(int rundir, int store, const char *id, struct err *e)
{
	enum slot_life life = slot_find(rundir, id);
	int r;

	if (life == SLOT_UNKNOWN)
		return err_set(e, ERR_INVALID, "sweep sandbox '%.64s': not an id", id);
	if (life == SLOT_ALIVE)
		return err_sys(e, -EBUSY, "sweep sandbox '%s': it lives", id);
	r = cgroup_remove(cgroup_detect(), id);
	if (r < 0)
		return err_sys(e, r, "remove the groups of sandbox '%s'", id);
	r = store < 0 ? 0 : upper_remove(store, id, e);
	if (r < 0)
		return err_wrap(e, r, "remove the writable layer of sandbox '%s'", id);
	r = tree_remove_at(rundir, id, e);
	return r < 0 ? err_wrap(e, r, "remove the run directory of sandbox '%s'", id) : 0;
}

/* The pidfd comes first: what it names is what is looked at, and nobody else is killed. */
static int sweep_process(const char *name, struct err *e)
{
	auto_close int pidfd = -EBADF, dir = -EBADF;
	struct pollfd gone = { .events = POLLIN };
	uint64_t pid;
	int r = str_to_u64(name, &pid);

	if (r < 0 || pid < 2 || pid > INT32_MAX)
		return err_set(e, ERR_INVALID, "kill process '%s': not a pid", name);
	pidfd = (int)sys_call2(__NR_pidfd_open, pid, 0);
	dir = procfs_open((pid_t)pid);
	if (pidfd < 0 || dir < 0 || !is_init(dir))
		return 0; /* it ended */
	r = sys_pidfd_send_signal(pidfd, SIGKILL);
	gone.fd = pidfd;
	if (r == 0 && poll(&gone, 1, KILL_WAIT_MS) == 0)
		r = -EBUSY;
	return r < 0 && r != -ESRCH ? err_sys(e, r, "kill init %s", name) : 0;
}

static int sweep_loop(const char *name, struct err *e)
{
	auto_close int fd = -EBADF;
	char path[ORPHAN_NAME_MAX + 8];
	int r;

	(void)snprintf(path, sizeof(path), "/dev/%s", name);
	fd = sys_openat(AT_FDCWD, path, O_RDWR | O_NOFOLLOW, 0);
	r = fd < 0 ? fd : sys_ioctl(fd, LOOP_CLR_FD, 0);
	return r < 0 && r != -ENXIO ? err_sys(e, r, "detach '%s'", path) : 0;
}

/* All stale scratch of one directory goes at once: the collector asks each for its lock again. */
static int sweep_scratch(int store, const char *name, struct err *e)
{
	auto_close int dir = -EBADF;
	char below[ORPHAN_NAME_MAX];
	int r;

	(void)snprintf(below, sizeof(below), "%.*s", (int)strcspn(name, "/"), name);
	dir = sys_openat(store, below, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (dir < 0)
		return dir == -ENOENT ? 0 : err_sys(e, dir, "open '%s' in the store", below);
	r = scratch_collect(dir, e);
	return r < 0 ? r : 0;
}

int sweep_orphan(int rundir, int store, const struct orphan *orphan, struct err *e)
{
	switch (orphan->kind) {
	case ORPHAN_PROCESS:
		return sweep_process(orphan->name, e);
	case ORPHAN_CGROUP:
	case ORPHAN_DIRECTORY:
	case ORPHAN_LAYER:
		return sweep_sandbox(rundir, store, orphan->name, e);
	case ORPHAN_LOOP:
		return sweep_loop(orphan->name, e);
	case ORPHAN_SCRATCH:
		return sweep_scratch(store, orphan->name, e);
	case ORPHAN_NUM:
		break;
	}
	return err_set(e, ERR_INVALID, "sweep an orphan of an unknown kind");
}
