/* SPDX-License-Identifier: Apache-2.0 */
/* idmap.h - Which id inside is which id outside */
#pragma once

#include "base/err.h"

/**
 * idmap_write() - Give a new user namespace its range of ids
 * @pid:      A process in it
 * @uid_base: First uid outside that 0 inside stands for
 * @gid_base: Likewise for groups
 * @count:    How many of each
 *
 * With the right to do so (root) the maps are written directly; an ordinary user may map a single id, its own.
 * Return: 0; -EPERM; other negative errno
 * Syscalls: openat write close
 */
must_check int idmap_write(pid_t pid, uint32_t uid_base, uint32_t gid_base, uint32_t count, struct err *e);

/**
 * idmap_for_owner() - A user namespace for an idmapped mount that gives one owner's files to one user of a sandbox
 * @fd:      The directory or file that will be mounted; its owner and group are the ids on disk
 * @to_id:   Uid and gid outside that they shall appear as
 *
 * Return: descriptor of the namespace; negative errno
 * Syscalls: newfstatat clone3 openat write close pidfd_send_signal wait4
 */
must_check int idmap_for_owner(int fd, uint32_t to_id, struct err *e);

/* idmap_open() - Descriptor of the user namespace of @pid. */
must_check int idmap_open(pid_t pid, struct err *e);
