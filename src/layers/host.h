/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - The `host` image: a root around the host's /usr */
#pragma once

#include "base/err.h"

/* "host/", 16 digits, "/root" */
#define HOST_PATH_SIZE 32 /* bytes with NUL */

/**
 * struct host_layer - One generation of the host's root
 * @fd:         The directory (O_PATH)
 * @generation: The state of the host that it was made from; changes with its packages and the files of /etc shown
 * @path:       The directory, relative to the store
 */
struct host_layer {
	int fd;
	uint64_t generation;
	char path[HOST_PATH_SIZE];
};

/**
 * host_layer_open() - Open the layer for the host as it is now, making it if this generation is new
 * @store_fd: From store_open()
 * @ret:      The caller closes @ret->fd
 *
 * The layer is the lower directory of a root on which the caller mounts the host's /usr, read-only. It belongs to the
 * caller (root: plain ids, with /home/agent of uid 1000) and must not be written to. If the layer exists, the cost is
 * that of 21 system calls: 8 us, measured on 6.18.
 * Return: 0; -EOPNOTSUPP if the host has no merged /usr; other negative errno
 * Syscalls: newfstatat openat, and to make it those of scratch.c and copy.c
 */
must_check int host_layer_open(int store_fd, struct host_layer *ret, struct err *e);

/**
 * host_collect() - Remove generations that nothing uses, and the leftovers of builders that died
 * @in_use: Generations that live sandboxes (or steps) name; overlayfs reads their files, so they must stay
 * @count:  Number of them
 *
 * The current generation stays in any case.
 * Return: number of directories removed, or negative errno
 */
must_check int host_collect(int store_fd, const uint64_t *in_use, size_t count, struct err *e);
