/* SPDX-License-Identifier: Apache-2.0 */
/* undertaker.c - Who removes what is left when we are killed
 *
 * Theory of operation. A sandbox that dies with its owner leaves nothing that the kernel does not remove, but for its cgroups: empty
 * directories that only a process outside can remove. So the owner starts a small process beside the sandbox, which sleeps until one of two
 * things happens: the owner kills it (the ordinary end: everything is removed), or the owner dies (then it waits for init, which ends with its
 * control socket, and removes the groups). It shares the owner's memory (clone3 with CLONE_VM, no copy of page tables) but only reads its
 * own block there; it has its own table of descriptors, of which it keeps one. If both are killed at once, the next `carrel doctor --sweep`
 * finds the groups by name.
 *
 * Being a task of its own, it is also who makes the sandbox's network namespace, beside the rest of the start (see net.c). A sandbox that
 * outlives its owner has one for the duration of its start, for that reason alone. */
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/wait.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/sys.h"
#include "jail/net.h"
#include "layers/store.h"
#include "warden/internal.h"

#define STACK_SIZE KIB(32) /* cgroup_remove() holds three directory buffers, two paths and a list of processes */
/* How long it goes on when groups stay busy: a process in an uninterruptible wait leaves only when its disk answers. */
#define ROUNDS 60 /* of about a second each */

/** enum state - How far its network namespace is */
enum state {
	NET_NONE,
	NET_MADE,  /* it may be entered */
	NET_READY, /* loopback is up: a program may use it */
};

/** struct undertaker - What both see of it; on the same mapping as its stack */
struct undertaker {
	pid_t pid;
	int owner;	  /* pidfd of the owner, a number in its own table of descriptors */
	unsigned net;	  /* 1: make a network namespace first */
	uint32_t state;	  /* enum state; a futex */
	int failed;	  /* negative errno of the state that was not reached */
	struct err story; /* likewise */
	enum cgroup_version version;
	char id[17];
	uint32_t named;	    /* 1 when @id is whole */
	uint32_t has_layer; /* 1 when @layer is whole: half a path must never be removed */
	char layer[STORE_PATH_MAX + sizeof("/upper/") + 16];
};

/* A tree of a guest's making takes memory to walk, and the heap that we see belongs to a dead process that may have held its locks: so another
 * program does it. What it leaves is found by the next sweep. */
static void remove_layer(const char *path)
{
	const char *const argv[] = { "rm", "-rf", "--", path, NULL };
	const char *const envp[] = { NULL };

	(void)sys_call3(__NR_execve, "/bin/rm", argv, envp);
}

static void reach(struct undertaker *u, uint32_t state)
{
	__atomic_store_n(&u->state, state, __ATOMIC_RELEASE);
	(void)sys_futex(&u->state, FUTEX_WAKE_PRIVATE, 1, NULL);
}

static int wait_until(struct undertaker *u, uint32_t state, struct err *e)
{
	const struct timespec second = { .tv_sec = 1 };
	uint32_t now;

	for (int i = 0; i < ROUNDS && (now = __atomic_load_n(&u->state, __ATOMIC_ACQUIRE)) < state; i++)
		(void)sys_futex(&u->state, FUTEX_WAIT_PRIVATE, now, &second);
	if (__atomic_load_n(&u->state, __ATOMIC_ACQUIRE) < state)
		return err_set(e, ERR_DEADLINE, "make a network namespace");
	if (u->failed < 0 && e)
		*e = u->story;
	return u->failed;
}

static struct undertaker *undertaker_of(const struct carrel_sandbox *sb)
{
	return (struct undertaker *)(void *)((char *)sb->undertaker_block + STACK_SIZE);
}

static void undertaker_main(void *arg)
{
	struct undertaker *u = arg;
	struct pollfd fd = { .events = POLLIN };

	(void)sys_prctl(PR_SET_NAME, (unsigned long)(uintptr_t) "carrel-undertak", 0, 0, 0); /* for people who read ps */
	if (u->net) {
		u->failed = net_make_here(&u->story);
		reach(u, NET_MADE);
		if (u->failed == 0)
			u->failed = net_furnish(&u->story);
		reach(u, NET_READY);
	}
	(void)sys_call0(__NR_setsid); /* not to be hit by what is meant for the owner's group */
	/* It must hold nothing of the owner's: a pipe that it kept open would never end for who reads it. */
	if (sys_dup3(u->owner, 0, O_CLOEXEC) < 0 && u->owner != 0)
		sys_exit(1);
	(void)sys_close_range(1, ~0u, 0);
	while (sys_call4(__NR_ppoll, &fd, 1, 0, 0) != 1)
		;
	/* Without a whole name nothing was made yet. */
	for (int i = 0; i < ROUNDS && __atomic_load_n(&u->named, __ATOMIC_ACQUIRE) && cgroup_remove(u->version, u->id) < 0; i++)
		;
	if (__atomic_load_n(&u->has_layer, __ATOMIC_ACQUIRE))
		remove_layer(u->layer);
	sys_exit(0);
}

int undertaker_start(struct carrel_sandbox *sb, unsigned net, struct err *e)
{
	struct clone_args args = { .flags = CLONE_VM | CLONE_PIDFD | CLONE_CLEAR_SIGHAND, .stack_size = STACK_SIZE };
	uint64_t all = ~UINT64_C(0), old;
	struct undertaker *u;
	char *block;
	long r;

	block = mmap(NULL, STACK_SIZE + sizeof(*u), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (block == MAP_FAILED)
		return err_sys(e, -ENOMEM, "map the stack of an undertaker");
	u = (struct undertaker *)(void *)(block + STACK_SIZE);
	u->net = net;
	u->version = cgroup_detect();
	u->owner = (int)sys_call2(__NR_pidfd_open, getpid(), 0);
	args.pidfd = (uint64_t)(uintptr_t)&sb->undertaker;
	args.stack = (uint64_t)(uintptr_t)block;
	(void)sys_rt_sigprocmask(SIG_SETMASK, &all, &old); /* it keeps them blocked for good */
	r = u->owner < 0 ? u->owner : sys_clone3_call(&args, undertaker_main, u);
	u->pid = (pid_t)r;
	(void)sys_rt_sigprocmask(SIG_SETMASK, &old, NULL);
	close_p(&u->owner);
	if (r < 0) {
		(void)munmap(block, STACK_SIZE + sizeof(*u));
		return err_sys(e, (int)r, "start an undertaker");
	}
	sb->undertaker_block = block;
	return 0;
}

void undertaker_layer(struct carrel_sandbox *sb, const char *store)
{
	struct undertaker *u = undertaker_of(sb);

	if (!sb->undertaker_block)
		return;
	(void)snprintf(u->layer, sizeof(u->layer), "%s/upper/%s", store, sb->id);
	__atomic_store_n(&u->has_layer, 1, __ATOMIC_RELEASE);
}

void undertaker_names(struct carrel_sandbox *sb)
{
	struct undertaker *u = undertaker_of(sb);

	if (!sb->undertaker_block)
		return;
	memcpy(u->id, sb->id, sizeof(u->id));
	__atomic_store_n(&u->named, 1, __ATOMIC_RELEASE);
}

int undertaker_netns(struct carrel_sandbox *sb, struct err *e)
{
	struct undertaker *u = undertaker_of(sb);
	char path[40];
	int fd, r;

	r = wait_until(u, NET_MADE, e);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)u->pid);
	fd = sys_openat(AT_FDCWD, path, O_RDONLY, 0);
	return fd < 0 ? err_sys(e, fd, "open the new network namespace") : fd;
}

int undertaker_net_ready(struct carrel_sandbox *sb, struct err *e)
{
	return wait_until(undertaker_of(sb), NET_READY, e);
}

void undertaker_leave(struct carrel_sandbox *sb)
{
	if (sb->undertaker >= 0)
		(void)sys_pidfd_send_signal(sb->undertaker, SIGKILL); /* our exit reaps it */
}

void undertaker_end(struct carrel_sandbox *sb)
{
	if (sb->undertaker < 0)
		return;
	(void)sys_pidfd_send_signal(sb->undertaker, SIGKILL); /* it has not ended before us */
	(void)sys_call5(__NR_waitid, P_PIDFD, sb->undertaker, 0, WEXITED | __WALL, 0);
	(void)sys_close(sb->undertaker);
	sb->undertaker = -EBADF;
	(void)munmap(sb->undertaker_block, STACK_SIZE + sizeof(struct undertaker));
	sb->undertaker_block = NULL;
}
