/* SPDX-License-Identifier: Apache-2.0 */
/* undertaker.c - Who is init's parent, and removes what is left when we are killed
 *
 * Theory of operation. A small process beside each sandbox that dies with its owner. It shares the owner's memory (clone3 with CLONE_VM, so no
 * page table is copied) and, until the sandbox has started, its descriptors. In order, it
 *
 *  1. makes the network namespace, the longest step of a start, while the owner does everything else;
 *  2. does what the owner asks it to: clones init into that namespace, and on older kernels lays out the root's layers in a mount
 *     namespace of its own. So init is its child and not the owner's: execve() makes SIGCHLD the exit signal of every
 *     process, and a program that links us may wait() for children of its own;
 *  3. brings up loopback, while init's root is being assembled;
 *  4. lets go of the owner's descriptors, and sleeps until the owner kills it (the ordinary end: everything is removed) or dies. Then it removes
 *     the cgroups, which are the one thing that the kernel does not remove by itself, and the layer on disk if there is one. Its own
 *     end is the end of a child that has not become init yet (PDEATHSIG); init watches its control socket.
 *
 * It touches no heap and no lock, which the dead owner may have held. If both are killed at once, `carrel doctor --sweep` finds the groups by
 * name. A sandbox that outlives its owner has an undertaker for the duration of its start only. */
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/wait.h>
#include <poll.h>
#include <signal.h>
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

/** enum state - How far it is; a futex, which the kernel sets to 0 when the undertaker ends (CLONE_CHILD_CLEARTID) */
enum state {
	STATE_DEAD,
	STATE_STARTED,
	STATE_READY,	   /* the network namespace exists, or is not asked for: it waits for requests */
	STATE_ANSWERED,	     /* the first request has been answered; one more for each further */
	STATE_DONE = 1000,   /* loopback is up: a program may use it */
};

/** struct request - What the owner asks for; filled before undertaker::asked counts it */
struct request {
	enum { ASK_CLONE, ASK_CALL, ASK_LO_UP } what;
	struct clone_args *args; /* ASK_CLONE */
	void (*child)(void *);	 /* likewise */
	int (*fn)(void *);	 /* ASK_CALL */
	void *arg;		 /* of either */
	long result;
};

/** struct undertaker - What both see of it; on the same mapping as its stack */
struct undertaker {
	int owner;	  /* pidfd of the owner, in the shared table at first, then in its own */
	unsigned net;	  /* 1: make a network namespace first */
	uint32_t state;	  /* enum state */
	uint32_t asked;	  /* futex: number of requests so far */
	int failed;	  /* negative errno of the step that failed */
	struct err story; /* likewise */
	struct request request;
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
	(void)sys_futex(&u->state, FUTEX_WAKE, 1, NULL); /* not private: the kernel's own wake is not either */
}

static int wait_until(struct undertaker *u, uint32_t state, struct err *e)
{
	const struct timespec second = { .tv_sec = 1 };
	uint32_t now;

	for (int i = 0; (now = __atomic_load_n(&u->state, __ATOMIC_ACQUIRE)) < state && now != STATE_DEAD && i < ROUNDS;)
		i += sys_futex(&u->state, FUTEX_WAIT, now, &second) == -ETIMEDOUT;
	if (now == STATE_DEAD)
		return err_set(e, ERR_UNAVAILABLE, "start a sandbox: its helper process was killed");
	if (now < state)
		return err_set(e, ERR_DEADLINE, "start a sandbox: its helper process does not get on");
	if (u->failed < 0 && e)
		*e = u->story;
	return u->failed;
}

static struct undertaker *undertaker_of(const struct carrel_sandbox *sb)
{
	return (struct undertaker *)(void *)((char *)sb->undertaker_block + STACK_SIZE);
}

static bool owner_is_gone(const struct undertaker *u, const struct timespec *timeout)
{
	struct pollfd fd = { .fd = u->owner, .events = POLLIN };

	return sys_call4(__NR_ppoll, &fd, 1, timeout, 0) == 1;
}

/* Answer requests until the last, ASK_LO_UP. An owner that has died asks for nothing any more. */
static void serve(struct undertaker *u)
{
	const struct timespec at_once = { 0, 0 }, second = { .tv_sec = 1 };
	struct request *q = &u->request;

	for (uint32_t served = 0;; served++) {
		while (__atomic_load_n(&u->asked, __ATOMIC_ACQUIRE) == served) {
			if (owner_is_gone(u, &at_once))
				return;
			(void)sys_futex(&u->asked, FUTEX_WAIT_PRIVATE, served, &second);
		}
		if (q->what == ASK_LO_UP)
			return;
		q->result = q->what == ASK_CLONE ? sys_clone3_call(q->args, q->child, q->arg) : q->fn(q->arg);
		reach(u, STATE_ANSWERED + served);
	}
}

/* From here on it must hold nothing of the owner's: a pipe that it kept open would never end for who reads it. */
static void let_go(struct undertaker *u)
{
	if (sys_unshare(CLONE_FILES) < 0 || (u->owner != 0 && sys_dup3(u->owner, 0, O_CLOEXEC) < 0))
		sys_exit(1);
	u->owner = 0;
	(void)sys_close_range(1, ~0u, 0);
}

/* The kernel's own struct sigaction begins with the handler; the rest is zero: no flags, no mask. */
static void ignore_children(void)
{
	const uint64_t action[4] = { (uint64_t)(uintptr_t)SIG_IGN };

	(void)sys_call4(__NR_rt_sigaction, SIGCHLD, action, NULL, sizeof(uint64_t)); /* cannot fail with valid pointers */
}

static void undertaker_main(void *arg)
{
	struct undertaker *u = arg;

	(void)sys_prctl(PR_SET_NAME, (unsigned long)(uintptr_t) "carrel-undertak", 0, 0, 0); /* for people who read ps */
	(void)sys_call0(__NR_setsid);	     /* not to be hit by what is meant for the owner's group */
	ignore_children();		     /* so that init is reaped by the kernel */
	if (u->net)
		u->failed = net_make_here(&u->story);
	reach(u, STATE_READY);
	serve(u);
	if (u->net && u->failed == 0)
		u->failed = net_furnish(&u->story);
	reach(u, STATE_DONE);
	let_go(u);
	while (!owner_is_gone(u, NULL))
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
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_FILES | CLONE_PIDFD | CLONE_CLEAR_SIGHAND | CLONE_CHILD_CLEARTID,
		.stack_size = STACK_SIZE,
	};
	uint64_t all = ~UINT64_C(0), old;
	struct undertaker *u;
	char *block;
	long r;

	block = mmap(NULL, STACK_SIZE + sizeof(*u), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (block == MAP_FAILED)
		return err_sys(e, -ENOMEM, "map the stack of an undertaker");
	u = (struct undertaker *)(void *)(block + STACK_SIZE);
	u->net = net;
	u->state = STATE_STARTED;
	u->version = cgroup_detect();
	u->owner = sb->self = (int)sys_call2(__NR_pidfd_open, getpid(), 0);
	args.pidfd = (uint64_t)(uintptr_t)&sb->undertaker;
	args.child_tid = (uint64_t)(uintptr_t)&u->state;
	args.stack = (uint64_t)(uintptr_t)block;
	(void)sys_rt_sigprocmask(SIG_SETMASK, &all, &old); /* it keeps them blocked for good */
	r = u->owner < 0 ? u->owner : sys_clone3_call(&args, undertaker_main, u);
	(void)sys_rt_sigprocmask(SIG_SETMASK, &old, NULL);
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

int undertaker_ready(struct carrel_sandbox *sb, struct err *e)
{
	return wait_until(undertaker_of(sb), STATE_READY, e);
}

/* Return: what it answered; -ECHILD if it is gone. */
static long ask(struct undertaker *u, struct request q)
{
	uint32_t before = u->asked;

	q.result = -ECHILD;
	u->request = q;
	__atomic_store_n(&u->asked, before + 1, __ATOMIC_RELEASE);
	(void)sys_futex(&u->asked, FUTEX_WAKE_PRIVATE, 1, NULL);
	if (q.what != ASK_LO_UP && wait_until(u, STATE_ANSWERED + before, NULL) < 0)
		return -ECHILD;
	return u->request.result;
}

long undertaker_clone(struct carrel_sandbox *sb, struct clone_args *args, void (*child)(void *), void *arg)
{
	return ask(undertaker_of(sb), (struct request){ .what = ASK_CLONE, .args = args, .child = child, .arg = arg });
}

int undertaker_call(struct carrel_sandbox *sb, int (*fn)(void *), void *arg)
{
	return (int)ask(undertaker_of(sb), (struct request){ .what = ASK_CALL, .fn = fn, .arg = arg });
}

void undertaker_finish(struct carrel_sandbox *sb)
{
	(void)ask(undertaker_of(sb), (struct request){ .what = ASK_LO_UP }); /* nobody waits here */
}

int undertaker_net_up(struct carrel_sandbox *sb, struct err *e)
{
	return wait_until(undertaker_of(sb), STATE_DONE, e);
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
	close_p(&sb->self);
	sb->self = -EBADF;
	(void)munmap(sb->undertaker_block, STACK_SIZE + sizeof(struct undertaker));
	sb->undertaker_block = NULL;
}
