/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.h - Make a sandbox: namespaces, root, privileges, and its init in it */
#pragma once

#include <linux/sched.h>

#include "jail/cgroup.h"
#include "jail/plan.h"

/** struct jail_init - A running init */
struct jail_init {
	pid_t pid; /* in the caller's pid namespace */
	int pidfd;
};

/**
 * struct jail_hooks - The caller's parts of a start
 * @before:    Called right before the clone
 * @clone:     sys_clone3_call() in the task that shall be init's parent, which shares memory and descriptors with the caller. It is
 *             the one whose network namespace the sandbox gets (rootless: makes one of its own)
 * @call:      Call a function in that task, and return its result
 * @parent:    Descriptor that polls readable when that task has ended (a pidfd)
 * @meanwhile: Called when only the child is at work, and nothing more is asked of that task; a failure ends the child
 * @data:      For all
 */
struct jail_hooks {
	int (*before)(void *data, struct err *e);
	long (*clone)(void *data, struct clone_args *args, void (*fn)(void *), void *arg);
	int (*call)(void *data, int (*fn)(void *), void *arg);
	int (*parent)(void *data);
	int (*meanwhile)(void *data, struct err *e);
	void *data;
};

/**
 * jail_spawn() - Execute a plan
 * @plan:    What to make
 * @cg:      Its groups, which may be made by @hooks->before
 * @hooks:   See above
 * @exe:     Descriptor of the init to execute
 * @control: Init's end of the control socket; becomes descriptor 3 of init
 * @ret:     The running init
 * @e:       What failed, wherever it did
 *
 * Returns when init has been executed. On failure no process and no mount is left. The caller's fork handlers do not run, its memory is not
 * copied, its signal handlers never run in the child.
 * Return: 0; negative errno
 */
must_check int jail_spawn(const struct jail_plan *plan, const struct cgroup *cg, const struct jail_hooks *hooks, int exe,
			  int control, struct jail_init *ret, struct err *e);

/* jail_kill() - SIGKILL to an init, and wait for its end, at most JAIL_KILL_MS; the kernel ends all else in its pid namespace before it. */
void jail_kill(struct jail_init *init);
#define JAIL_KILL_MS 10000 /* a process in uninterruptible sleep holds it up until its device answers */
