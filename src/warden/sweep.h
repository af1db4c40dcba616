/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.h - Find and remove what dead sandboxes left on the host */
#pragma once

#include <sys/types.h>

#include "base/err.h"

/** enum orphan_kind - Things of a sandbox that the kernel does not remove by itself */
enum orphan_kind {
	ORPHAN_PROCESS, /* an init that holds no slot */
	ORPHAN_CGROUP,
	ORPHAN_DIRECTORY, /* in the run directory */
	ORPHAN_LAYER,	  /* writable layer in the store */
	ORPHAN_LOOP,
	ORPHAN_SCRATCH, /* half-built directory of the store */
	ORPHAN_NUM,
};

/* Bytes of a name with NUL: an id, a pid, a device, or "images/.tmp-0123456789abcdef". */
#define ORPHAN_NAME_MAX 64

/**
 * struct orphan - One thing that was left
 * @kind: Kind
 * @name: An id (group, directory, layer), a pid (process), "loop7", or a path below the store
 * @text: What is known of it, for people
 */
struct orphan {
	enum orphan_kind kind;
	char name[ORPHAN_NAME_MAX];
	char text[128];
};

/** struct orphans - A list */
struct orphans {
	struct orphan *list;
	size_t count;
};

#define ORPHANS_INIT ((struct orphans){ .list = NULL })

/* orphan_name() - "orphan process", "orphan cgroup", ... */
const char *orphan_name(enum orphan_kind kind);

/**
 * sweep_find() - List what dead sandboxes left
 * @rundir: From rundir_open(); negative if there is none: then no id can be called dead
 * @store:  From store_open(), or negative if there is none
 * @ret:    Free it with orphans_done()
 *
 * What is being made or being removed may look dead for a moment: whatever is found is looked at again after SWEEP_WAIT_MS, and listed if it is
 * still there. A sandbox counts as alive if a slot of this run directory says so, or of one whose table a process holds open.
 * Return: 0; -ENOMEM
 */
must_check int sweep_find(int rundir, int store, struct orphans *ret, struct err *e);
void orphans_done(struct orphans *o);

/**
 * sweep_sandbox() - Remove everything that a dead sandbox left: processes in its groups, groups, writable layer, run directory
 * @rundir: From rundir_open()
 * @store:  From store_open(), or negative if there is none
 * @id:     The sandbox
 *
 * May be repeated. Return: 0; -EBUSY if it lives, or if processes of it do not die; other negative errno
 */
must_check int sweep_sandbox(int rundir, int store, const char *id, struct err *e);

/* sweep_orphan() - Remove one orphan. Return: 0, also if it is gone; negative errno */
must_check int sweep_orphan(int rundir, int store, const struct orphan *orphan, struct err *e);
