/* SPDX-License-Identifier: Apache-2.0 */
/* group.c - The cgroups of one exec, so that "its tree" is something the kernel knows
 *
 * Theory of operation. Below the sandbox's `work` each exec has a directory `e<id>`: in the unified hierarchy, or in the v1 hierarchies pids (to
 * kill and count) and cpuacct (to bill). Init holds descriptors of `work` only, as detached mounts; no path of the host is visible.
 *
 * v2: the child is born inside (CLONE_INTO_CGROUP), which is the one way that never waits for an RCU grace period, and in a cgroup namespace that
 * begins there, for which the jail left init CAP_SYS_ADMIN (jail/spawn.c says why); the child gives it up for good before anything else. v1: the child writes "0" into
 * `tasks`. Into `tasks`, not `cgroup.procs`: moving a whole thread group takes the lock that waits 7 to 15 ms after a quiet time, moving oneself as
 * a single thread takes 15 us (measured 2026-11). Other v1 controllers have no group per exec; the child joins `work` there by
 * descriptors of its `tasks` files.
 *
 * A group goes away when it is empty. Background processes keep theirs. */
#include "base/fd.h"
#include "base/str.h"
#include "base/sys.h"
#include "init/internal.h"

#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#define GROUP_NAME_MAX 48 /* bytes: "e", 20 digits, "/", a file name, NUL */

static const char *group_file(char name[GROUP_NAME_MAX], uint64_t id, const char *file)
{
	(void)snprintf(name, GROUP_NAME_MAX, file ? "e%llu/%s" : "e%llu", (unsigned long long)id,
		       file); /* fits by construction */
	return name;
}

bool tree_has_groups(const struct init *in)
{
	return in->cgroup2 >= 0 || in->pids1 >= 0;
}

int group_make(struct init *in, uint64_t id, struct err *e)
{
	const int dirs[] = { in->cgroup2, in->pids1, in->cpuacct1 };
	char name[GROUP_NAME_MAX];

	group_file(name, id, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		int r = dirs[i] >= 0 ? sys_mkdirat(dirs[i], name, 0755) : 0;

		if (r == 0)
			continue;
		while (i-- > 0)
			if (dirs[i] >= 0)
				(void)sys_unlinkat(dirs[i], name, AT_REMOVEDIR); /* just made and empty */
		return err_sys(e, r, "start: make the control group of exec %llu", (unsigned long long)id);
	}
	return 0;
}

static bool may_have(unsigned cap)
{
	return sys_prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1;
}

/* What init keeps for making cgroup namespaces is not the command's. A build that takes layers out may leave all capabilities: not ours to take. */
static int drop_inits_caps(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	int r;

	if (!may_have(CAP_SYS_ADMIN) || may_have(CAP_SYS_BOOT))
		return 0;
	r = sys_prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0);
	if (r == 0)
		r = (int)sys_call2(__NR_capget, &header, data);
	if (r < 0)
		return r;
	data[0].permitted &= ~(1u << CAP_SYS_ADMIN);
	data[0].effective &= ~(1u << CAP_SYS_ADMIN);
	return (int)sys_call2(__NR_capset, &header, data);
}

pid_t group_spawn(const struct init *in, uint64_t id, bool grouped)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	auto_close int group = -EBADF;
	char name[GROUP_NAME_MAX];

	if (grouped && in->cgroup2 >= 0) {
		group = sys_openat(in->cgroup2, group_file(name, id, NULL), O_PATH | O_DIRECTORY, 0);
		if (group < 0)
			return group;
		args.flags = CLONE_INTO_CGROUP | (may_have(CAP_SYS_ADMIN) ? CLONE_NEWCGROUP : 0);
		args.cgroup = (uint64_t)group;
	}
	return (pid_t)sys_clone3(&args);
}

static int tasks_join(int tasks)
{
	ssize_t n = sys_write(tasks, "0", 1);

	return n < 0 ? (int)n : 0;
}

int group_enter(const struct init *in, uint64_t id, struct err *e)
{
	const int dirs[] = { in->pids1, in->cpuacct1 };
	char name[GROUP_NAME_MAX];
	int r = in->cgroup2 >= 0 ? drop_inits_caps() : 0;

	for (size_t i = 0; i < ARRAY_SIZE(dirs) && r >= 0; i++)
		if (dirs[i] >= 0)
			r = fd_write_file_at(dirs[i], group_file(name, id, "tasks"), "0");
	for (size_t i = 0; i < in->num_tasks1 && r >= 0; i++)
		r = tasks_join(in->tasks1[i]);
	return r < 0 ? err_sys(e, r, "start: join the control group of exec %llu", (unsigned long long)id) : 0;
}

static int group_read_u64(int dir, uint64_t id, const char *file, uint64_t *ret)
{
	char name[GROUP_NAME_MAX], text[32];
	ssize_t n = fd_read_file_at(dir, group_file(name, id, file), text, sizeof(text));

	if (n < 0)
		return (int)n;
	if (n > 0 && text[n - 1] == '\n')
		text[n - 1] = '\0';
	return str_to_u64(text, ret);
}

/* The number behind "@key " at the start of a line of cpu.stat. */
static int stat_field(char *text, const char *key, uint64_t *ret)
{
	for (char *line = text, *next; line && *line; line = next) {
		const char *value = str_starts(line, key);
		char *end = strchr(line, '\n');
		int r;

		next = end ? end + 1 : NULL;
		if (!value)
			continue;
		if (end)
			*end = '\0';
		r = str_to_u64(value, ret);
		if (end)
			*end = '\n';
		return r;
	}
	return -ENODATA;
}

int group_usage(const struct init *in, uint64_t id, uint64_t *ret_user_us, uint64_t *ret_system_us)
{
	char name[GROUP_NAME_MAX],
		text[1024]; /* cpu.stat has some 20 lines of 30 bytes at most; the first three count */
	uint64_t user = 0, system = 0;
	int r = -ENODATA;

	if (in->cgroup2 >= 0) {
		r = (int)fd_read_file_at(in->cgroup2, group_file(name, id, "cpu.stat"), text, sizeof(text));
		if (r >= 0)
			r = stat_field(text, "user_usec ", &user);
		if (r >= 0)
			r = stat_field(text, "system_usec ", &system);
	} else if (in->cpuacct1 >= 0) {
		r = group_read_u64(in->cpuacct1, id, "cpuacct.usage_user", &user);
		if (r >= 0)
			r = group_read_u64(in->cpuacct1, id, "cpuacct.usage_sys", &system);
		user /= 1000; /* these are nanoseconds */
		system /= 1000;
	}
	if (r < 0)
		return -ENODATA;
	*ret_user_us = user;
	*ret_system_us = system;
	return 0;
}

int group_remove(const struct init *in, uint64_t id)
{
	const int dirs[] = { in->cgroup2, in->pids1, in->cpuacct1 };
	char name[GROUP_NAME_MAX];
	int busy = 0;

	group_file(name, id, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		int r = dirs[i] >= 0 ? sys_unlinkat(dirs[i], name, AT_REMOVEDIR) : 0;

		if (r < 0 && r != -ENOENT) /* gone is as good as removed */
			busy = r;
	}
	return busy;
}
