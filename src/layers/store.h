/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - Where things live on the host */
#pragma once

#include "base/err.h"

/**
 * enum store_flags - What to do when the directory is not there
 */
enum store_flags {
	STORE_EXISTING = 0,     /* fail with -ENOENT: for commands that only look */
	STORE_CREATE = 1u << 0, /* make it, and the missing directories above it */
};

/* Longest path of a store or run directory, with NUL. */
#define STORE_PATH_MAX 4096

/**
 * store_path() - Name the store: $CARREL_STORE; for root /var/lib/carrel; else $XDG_DATA_HOME/carrel or
 * ~/.local/share/carrel
 * @path: At least STORE_PATH_MAX bytes
 *
 * Return: 0; -EINVAL if the variable that decides is not an absolute path
 */
must_check int store_path(char *path, size_t size, struct err *e);

/**
 * store_open() - Open the store
 *
 * It is ours alone: mode 0700 when made here, and refused when another user owns it or could write to it. Nothing
 * else needs to search it: layers reach the kernel as descriptors, and overlayfs reads them with the credentials of
 * who mounted it.
 * Return: descriptor of the directory; -ENOENT; -EPERM if others own or may write it; other negative errno
 * Syscalls: geteuid openat fstat mkdirat close
 */
must_check int store_open(enum store_flags flags, struct err *e);

/**
 * rundir_path() - Name the run directory: $CARREL_RUN_DIR; for root /run/carrel; else $XDG_RUNTIME_DIR/carrel or
 * /tmp/carrel-UID
 *
 * Return: as store_path()
 */
must_check int rundir_path(char *path, size_t size, struct err *e);

/**
 * rundir_open() - Open the run directory: sockets, spools and journals of live sandboxes
 *
 * Return: as store_open()
 */
must_check int rundir_open(enum store_flags flags, struct err *e);
