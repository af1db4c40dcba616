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
#include "warden/internal.h"

#define STACK_SIZE KIB(32) /* cgroup_remove() holds three directory buffers, two paths and a list of processes */
/* How long it goes on when groups stay busy: a process in an uninterruptible wait leaves only when its disk answers. */
#define ROUNDS 60 /* of about a second each */

/** struct undertaker - What both see of it; on the same mapping as its stack */
struct undertaker {
	pid_t pid;
	int owner;	  /* pidfd of the owner, a number in its own table of descriptors */
	unsigned net;	  /* 1: make a network namespace first */
	uint32_t net_done; /* futex: 1 when that is decided */
	int net_failed;	  /* negative errno, valid when net_done is 1 */
	struct err story; /* likewise */
	enum cgroup_version version;
	char id[17];
};

static void undertaker_main(void *arg)
{
	struct undertaker *u = arg;
	struct pollfd fd = { .events = POLLIN };

	(void)sys_prctl(PR_SET_NAME, (unsigned long)(uintptr_t) "carrel-undertak", 0, 0, 0); /* for people who read ps */
	if (u->net) {
		u->net_failed = net_make_here(&u->story);
		__atomic_store_n(&u->net_done, 1, __ATOMIC_RELEASE);
		(void)sys_futex(&u->net_done, FUTEX_WAKE_PRIVATE, 1, NULL);
	}
	(void)sys_call0(__NR_setsid); /* not to be hit by what is meant for the owner's group */
	/* It must hold nothing of the owner's: a pipe that it kept open would never end for who reads it. */
	if (sys_dup3(u->owner, 0, O_CLOEXEC) < 0 && u->owner != 0)
		sys_exit(1);
	(void)sys_close_range(1, ~0u, 0);
	while (sys_call4(__NR_ppoll, &fd, 1, 0, 0) != 1)
		;
	for (int i = 0; i < ROUNDS && cgroup_remove(u->version, u->id) < 0; i++)
		;
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
	memcpy(u->id, sb->id, sizeof(u->id));
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

int undertaker_netns(void *sandbox, struct err *e)
{
	struct carrel_sandbox *sb = sandbox;
	struct undertaker *u = (struct undertaker *)(void *)((char *)sb->undertaker_block + STACK_SIZE);
	const struct timespec second = { .tv_sec = 1 };
	char path[40];
	int fd;

	for (int i = 0; i < ROUNDS && !__atomic_load_n(&u->net_done, __ATOMIC_ACQUIRE); i++)
		(void)sys_futex(&u->net_done, FUTEX_WAIT_PRIVATE, 0, &second);
	if (!__atomic_load_n(&u->net_done, __ATOMIC_ACQUIRE))
		return err_set(e, ERR_DEADLINE, "make a network namespace");
	if (u->net_failed < 0) {
		if (e)
			*e = u->story;
		return u->net_failed;
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)u->pid);
	fd = sys_openat(AT_FDCWD, path, O_RDONLY, 0);
	return fd < 0 ? err_sys(e, fd, "open the new network namespace") : fd;
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
