/* SPDX-License-Identifier: Apache-2.0 */
/* upper.h - The writable layer on disk: made, limited, removed */
#pragma once

#include "base/err.h"

/**
 * enum upper_kind - What holds a writable layer
 */
enum upper_kind {
	UPPER_TMPFS, /* memory; made by the jail with the rest of the root, nothing here knows of it */
	UPPER_QUOTA, /* STORE/upper/ID, limited by project quota of the store's file system */
	UPPER_LOOP,  /* a file system in a file without a name; the kernel removes it with its last user */
	UPPER_NUM_KINDS,
};

/* upper_kind_name() - "memory", "project quota", "loop device": for plans and receipts. */
const char *upper_kind_name(enum upper_kind kind);

/* Project ids that Carrel uses: UPPER_PROJECT_BASE up to 0x7000ffff, sixteen for each slot (warden/slot.h). The
 * numbers are far from what /etc/projid and container engines count up from 1. */
#define UPPER_PROJECT_BASE UINT32_C(0x70000000)
#define UPPER_SLOTS 4096 /* more than there are */

/**
 * struct upper_want - One writable layer
 * @id:     Sandbox, sixteen characters
 * @slot:   A number that no other live sandbox of the run directory has
 * @bytes:  What the sandbox can write
 * @inodes: Files, directories, links that it can make
 */
struct upper_want {
	const char *id;
	uint32_t slot;
	uint64_t bytes;
	uint64_t inodes;
};

/**
 * upper_probe() - Whether this host can hold a writable layer in that way
 * @store_fd: From store_open()
 *
 * Changes nothing. Return: 0; -EOPNOTSUPP with the remedy; other negative errno
 */
must_check int upper_probe(int store_fd, enum upper_kind kind, struct err *e);

/**
 * upper_make() - Make a writable layer: a detached mount with the directories `upper`, `work`, `usr`, `usrwork`,
 * owned by 0 on disk
 * @store_fd: From store_open()
 * @kind:     Not UPPER_TMPFS
 *
 * The mount has no id map yet: the jail adds the sandbox's (mount_setattr), then lays an overlay over it.
 * Return: descriptor; negative errno, nothing is left
 * Syscalls: openat mkdirat fchmod ftruncate unlinkat fsopen fsconfig fsmount open_tree fallocate fstatfs, those of
 * quota.h loop.h mkfs.h
 */
must_check int upper_make(int store_fd, enum upper_kind kind, const struct upper_want *want, struct err *e);

/**
 * upper_remove() - Remove what a sandbox had in STORE/upper, once nothing of it runs
 *
 * May be repeated. Return: 0, also if nothing was there; negative errno
 */
must_check int upper_remove(int store_fd, const char *id, struct err *e);

/**
 * upper_list() - Visit the id of every sandbox that has something in STORE/upper
 * @visit: Returns negative to stop; it may call upper_remove() for the id
 *
 * Return: 0; what @visit returned; negative errno
 */
must_check int upper_list(int store_fd, int (*visit)(const char *id, void *data), void *data, struct err *e);
