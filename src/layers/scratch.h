/* SPDX-License-Identifier: Apache-2.0 */
/* scratch.h - Build a directory out of sight, then give it its name */
#pragma once

#include "base/err.h"

/**
 * struct scratch - A directory that is being built and has no public name yet
 * @parent: Where it lives; borrowed
 * @fd:     The directory; holds the lock that says "somebody is building"
 * @name:   ".tmp-" and 16 random digits
 *
 * A builder that dies drops the lock with its last descriptor, so scratch_collect() knows its leftovers without a
 * clock or a pid.
 */
struct scratch {
	int parent;
	int fd;
	char name[24];
};

#define SCRATCH_INIT ((struct scratch){ .parent = -EBADF, .fd = -EBADF })

/**
 * scratch_make() - Make an empty directory, mode 0700, under a name of its own
 * Syscalls: getrandom mkdirat openat flock fstat
 */
must_check int scratch_make(int parent, struct scratch *ret, struct err *e);

/**
 * scratch_publish() - Give the directory its public name, at once and whole
 * @name: Name below the parent
 *
 * Return: 0; 1 if another builder was first: its directory stands, this one is for scratch_drop(); negative errno
 * Syscalls: renameat
 */
must_check int scratch_publish(struct scratch *s, const char *name, struct err *e);

/* scratch_drop() - Remove what was not published; does nothing on one that was published or never made. */
void scratch_drop(struct scratch *s);

/**
 * scratch_collect() - Remove the leftovers of builders that died
 * Return: number removed, or negative errno
 */
must_check int scratch_collect(int parent, struct err *e);

/**
 * scratch_retire() - Take a published directory out of sight, then remove it
 *
 * A crash in between leaves scratch, never half a directory under a public name.
 * Return: 0, also if it was not there; negative errno
 */
must_check int scratch_retire(int parent, const char *name, struct err *e);
