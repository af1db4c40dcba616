/* SPDX-License-Identifier: Apache-2.0 */
/* net.h - A network namespace that holds a loopback interface and nothing else */
#pragma once

#include "base/err.h"

/**
 * net_make_here() - Put the calling task into a new network namespace
 *
 * For a task of its own, which then clones the sandbox into it (the undertaker). Made by root before the sandbox's user
 * namespace exists, so it belongs to the host: the sandbox's root cannot change its routes, filters or interface, whatever its
 * capabilities.
 * Return: 0; negative errno
 * Syscalls: unshare
 */
must_check int net_make_here(struct err *e);

/**
 * net_furnish() - Bring up loopback in the calling task's network namespace, and open the low ports
 *
 * Ports below 1024 are for everybody inside, since nobody there holds CAP_NET_BIND_SERVICE over a namespace that belongs to the host.
 * Syscalls: socket ioctl openat write close
 */
must_check int net_furnish(struct err *e);

/* net_lo_up() - Bring up `lo` of the current namespace (rootless: in the child, which owns its namespace). */
must_check int net_lo_up(struct err *e);
