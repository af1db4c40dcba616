/* SPDX-License-Identifier: Apache-2.0 */
/* net.h - A network namespace that holds a loopback interface and nothing else */
#pragma once

#include "base/err.h"

/**
 * net_make_here() - Put the calling task into a new network namespace, loopback up
 *
 * For a task of its own (the undertaker), which keeps the namespace alive until a sandbox is in it. Made by root before the sandbox's user
 * namespace exists, so it belongs to the host: the sandbox's root cannot change its routes, filters or interface, whatever its
 * capabilities. Ports below 1024 are open to everybody inside, since nobody there holds CAP_NET_BIND_SERVICE over it.
 * Return: 0; negative errno
 * Syscalls: unshare socket ioctl openat write close
 */
must_check int net_make_here(struct err *e);

/**
 * net_enter() - Put the calling thread into a network namespace
 * @netns:   Descriptor of the namespace
 * @ret_old: Descriptor of the one that the thread was in
 *
 * Return: 0; negative errno, the thread is where it was
 * Syscalls: openat setns
 */
must_check int net_enter(int netns, int *ret_old, struct err *e);

/* net_return() - Put the calling thread back. Consumes @old; nothing happens if it is negative. */
void net_return(int old);

/* net_lo_up() - Bring up `lo` of the current namespace (rootless: in the child, which owns its namespace). */
must_check int net_lo_up(struct err *e);
