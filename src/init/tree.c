/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c - Find and kill everything that an exec started, wherever it is now
 *
 * Theory of operation. A pass sends SIGKILL to all processes of the tree that it can find and says how many there were; the caller repeats passes
 * from the loop until there are none, so that no pass needs to be complete and none spins. Three ways, best first:
 *
 * Unified cgroup: one write to cgroup.kill, which the kernel does atomically even against forks.
 *
 * v1 pids group: "0" to pids.max first, so that nothing in it can fork any more, then every pid of cgroup.procs, which the kernel shows
 * as numbers of the reader's pid namespace. A number could be reused between the read and the kill() only if its process was
 * reaped by a parent of its own and the numbers went round once in these microseconds.
 *
 * No groups (rootless without delegation): if no other exec is there and none has left processes, the whole namespace is the tree: kill(-1).
 * Else what /proc shows: descendants of the leader and members of its session. A process that left the session and lost its parents
 * cannot be told from another exec's by anything the kernel records; when the exec is the only one running, orphans that are younger
 * than it are taken for its own. This is the best there is, and the receipt says that groups are missing. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/sys.h"
#include "init/internal.h"

#define TREE_NAME_MAX 48     /* bytes of "e<id>/cgroup.procs" */
#define TREE_CHUNK 4096      /* bytes of a pid list or directory read at once */
#define TREE_PIDS_MAX 4096   /* processes that one pass over a list looks at; the next pass sees the rest */
#define TREE_DEPTH_MAX 64    /* generations that one pass follows */
#define TREE_PROCS_MAX 32768 /* processes of a whole sandbox that one pass over /proc looks at */

static int tree_file(const struct init *in, uint64_t id, const char *file, int flags)
{
	char name[TREE_NAME_MAX];

	(void)snprintf(name, sizeof(name), "e%llu/%s", (unsigned long long)id, file); /* fits by construction */
	return sys_openat(in->cgroup2 >= 0 ? in->cgroup2 : in->pids1, name, flags, 0);
}

static void tree_write(const struct init *in, uint64_t id, const char *file, const char *text)
{
	auto_close int fd = tree_file(in, id, file, O_WRONLY);

	if (fd >= 0)
		(void)!write(fd, text, strlen(text)); /* the next pass finds out whether it helped */
}

/* Go through the pids of a group; send each @sig unless it is 0. Return: how many there are, at most about TREE_PIDS_MAX. */
static uint32_t group_signal(const struct init *in, uint64_t id, int sig)
{
	auto_close int fd = tree_file(in, id, "cgroup.procs", O_RDONLY);
	char chunk[TREE_CHUNK];
	uint32_t count = 0;
	pid_t pid = 0;
	ssize_t n;

	if (fd < 0)
		return 0;
	while (count < TREE_PIDS_MAX && (n = sys_read(fd, chunk, sizeof(chunk))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (chunk[i] >= '0' && chunk[i] <= '9') {
				pid = pid * 10 + (chunk[i] - '0'); /* at most 4194304 (PID_MAX_LIMIT) */
				continue;
			}
			/* 0 is a process that this namespace does not see; -1 would be everyone, 1 is init. */
			if (sig != 0 && pid > 1)
				(void)kill(pid, sig); /* it may be gone by now */
			count++;
			pid = 0;
		}
	}
	return count;
}

/* --- Without groups ---------------------------------------------------------------------------------------------------------- */

/** struct proc - What /proc/PID/stat says about the family of one process */
struct proc {
	pid_t pid, parent, session;
	uint64_t start_ticks;
	bool member;
};

/* Fields of /proc/PID/stat behind the command's closing parenthesis: state is 3, ppid 4, session 6, starttime 22 (proc(5)). */
static bool proc_parse(char *text, struct proc *p)
{
	char *at = strrchr(text, ')');
	unsigned field = 2;
	uint64_t v;

	while (at && (at = strchr(at, ' '))) {
		char *end = strchr(++at, ' ');

		field++;
		if (field == 3 && (*at == 'Z' || *at == 'X'))
			return false; /* dead: nothing to kill or count */
		if (field != 4 && field != 6 && field != 22)
			continue;
		if (!end)
			return false;
		*end = '\0';
		if (str_to_u64(at, &v) < 0)
			return false;
		*end = ' ';
		if (field == 4)
			p->parent = (pid_t)v;
		else if (field == 6)
			p->session = (pid_t)v;
		p->start_ticks = v;
		if (field == 22)
			return true;
	}
	return false;
}

static bool proc_read(const struct init *in, const char *name, struct proc *p)
{
	char path[32], text[1024];
	uint64_t pid;

	if (str_to_u64(name, &pid) < 0 || pid <= 1 || pid > INT_MAX)
		return false;
	*p = (struct proc){ .pid = (pid_t)pid };
	(void)snprintf(path, sizeof(path), "%d/stat", p->pid); /* fits by construction */
	return fd_read_file_at(in->proc, path, text, sizeof(text)) > 0 && proc_parse(text, p);
}

/* All processes of the sandbox. Return: how many, in *@ret, which the caller frees; 0 without memory or /proc. */
static size_t procs_read(const struct init *in, struct proc **ret)
{
	auto_close int fd = sys_openat(in->proc, ".", O_RDONLY | O_DIRECTORY, 0);
	auto_free struct proc *v = NULL;
	size_t num = 0, cap = 0;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir)
		return 0;
	(void)take_fd(fd);
	for (struct dirent *d; num < TREE_PROCS_MAX && (d = readdir(dir));) {
		if (num == cap) {
			struct proc *more = realloc(v, (cap = cap * 2 + 64) * sizeof(*v));

			if (!more)
				break;
			v = more;
		}
		num += proc_read(in, d->d_name, &v[num]);
	}
	(void)closedir(dir); /* read only */
	*ret = take_ptr(v);
	return num;
}

/* True if @x is the only exec whose leader is alive or was just reaped. */
static bool tree_is_alone(const struct init *in, const struct exec *x)
{
	for (const struct exec *y = in->execs; y; y = y->next)
		if (y != x && y->live && y->state != EXEC_ENDED)
			return false;
	return true;
}

static bool proc_is_root(const struct proc *p, const struct exec *x, bool alone)
{
	/* A tick less than the exec's start: starttime is rounded down. */
	uint64_t ticks = x->end.start_ns / (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));

	return p->pid == x->pid || p->session == x->pid || (alone && p->parent == 1 && p->start_ticks >= ticks);
}

static int proc_compare(const void *a, const void *b)
{
	const struct proc *p = a, *q = b;

	return (p->pid > q->pid) - (p->pid < q->pid);
}

/*
 * Mark the tree of @x: its roots, then children of members, generation by generation. /proc lists pids in ascending order, so a parent
 * is found by bisection. Generations beyond TREE_DEPTH_MAX are roots of the next pass, once their parents are dead.
 */
static uint32_t procs_mark(const struct init *in, const struct exec *x, struct proc *v, size_t num)
{
	bool alone = tree_is_alone(in, x);
	uint32_t members = 0;
	bool more = true;

	for (size_t i = 0; i < num; i++) {
		v[i].member = proc_is_root(&v[i], x, alone);
		members += v[i].member;
	}
	for (unsigned depth = 0; more && depth < TREE_DEPTH_MAX; depth++) {
		more = false;
		for (size_t i = 0; i < num; i++) {
			struct proc key = { .pid = v[i].parent };
			const struct proc *parent =
				v[i].member ? NULL : bsearch(&key, v, num, sizeof(*v), proc_compare);

			if (!parent || !parent->member)
				continue;
			v[i].member = more = true;
			members++;
		}
	}
	return members;
}

static uint32_t procs_signal(const struct init *in, const struct exec *x, int sig)
{
	auto_free struct proc *v = NULL;
	size_t num = procs_read(in, &v);
	uint32_t members = procs_mark(in, x, v, num);

	for (size_t i = 0; i < num && sig != 0; i++)
		if (v[i].member)
			(void)kill(v[i].pid, sig); /* it may be gone by now */
	return members;
}

static bool tree_is_everything(const struct init *in, const struct exec *x)
{
	return getpid() == 1 && !in->strays && tree_is_alone(in, x);
}

/* --- Both -------------------------------------------------------------------------------------------------------------------- */

/* Everything that can be found without groups. */
static uint32_t tree_kill_found(const struct init *in, const struct exec *x)
{
	if (tree_is_everything(in, x))
		return kill(-1, SIGKILL) == 0 ? procs_signal(in, x, 0) : 0;
	return procs_signal(in, x, SIGKILL);
}

uint32_t tree_kill(const struct init *in, const struct exec *x)
{
	if (in->cgroup2 >= 0) {
		tree_write(in, x->id, "cgroup.kill", "1");
		return group_signal(in, x->id, 0);
	}
	if (in->pids1 >= 0) {
		uint32_t left;

		tree_write(in, x->id, "pids.max", "0");
		left = group_signal(in, x->id, SIGKILL);
		/* With namespaces of its own a process may mount this hierarchy and go into a group below, which is not in that list. */
		return in->flags & CONFIG_NESTED_USERNS ? MAX(left, tree_kill_found(in, x)) : left;
	}
	return tree_kill_found(in, x);
}

uint32_t tree_count(const struct init *in, const struct exec *x)
{
	if (tree_has_groups(in))
		return x->live->grouped ? group_signal(in, x->id, 0) : 0;
	if (getpid() == 1 && kill(-1, 0) < 0)
		return 0; /* nobody else is in the namespace: the usual case, without a walk */
	return procs_signal(in, x, 0);
}
