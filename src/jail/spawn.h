/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.h - Make a sandbox: namespaces, root, privileges, and its init in it */
#pragma once

#include "jail/cgroup.h"
#include "jail/plan.h"

/** struct jail_init - A running init */
struct jail_init {
	pid_t pid; /* in the caller's pid namespace */
	int pidfd;
};

/**
 * struct jail_hooks - What the caller does while a sandbox is being made
 * @netns:     Called when its network namespace is needed, so that it can be made meanwhile: returns a descriptor that is closed
 *             here, or a negative errno. NULL for the caller's own namespace (rootless: for one of its own)
 * @meanwhile: Called when only the child is at work; a failure ends it. May be NULL
 * @data:      For both
 */
struct jail_hooks {
	int (*netns)(void *data, struct err *e);
	int (*meanwhile)(void *data, struct err *e);
	void *data;
};

/**
 * jail_spawn() - Execute a plan
 * @plan:    What to make
 * @cg:      Its groups, of which v2's must exist by now
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

/* jail_kill() - SIGKILL to an init, and wait for its end; the kernel ends everything else in its pid namespace before it. */
void jail_kill(struct jail_init *init);
