/* SPDX-License-Identifier: Apache-2.0 */
/* quota.h - Limits of bytes and inodes on a directory tree, by project quota of ext4 and xfs */
#pragma once

#include "base/err.h"

/**
 * quota_probe() - Whether the file system of a directory enforces limits of projects
 * @dir: Any directory on it
 * @e:   What is missing and how to get it
 *
 * Return: 0; -EOPNOTSUPP; other negative errno
 * Syscalls: fstatfs quotactl_fd
 */
must_check int quota_probe(int dir, struct err *e);

/**
 * quota_limit() - Set the hard limits of a project
 * @dir:     Any directory on the file system
 * @project: Project id; its limits are replaced
 * @bytes:   0 with @inodes 0: no limits, which makes the file system forget the project
 * @inodes:  Files, directories, links
 *
 * Syscalls: quotactl_fd
 */
must_check int quota_limit(int dir, uint32_t project, uint64_t bytes, uint64_t inodes, struct err *e);

/* quota_inodes() - How many inodes a project has now. Return: 0; negative errno. Syscalls: quotactl_fd */
must_check int quota_inodes(int dir, uint32_t project, uint64_t *ret, struct err *e);

/**
 * quota_assign() - Give a directory, and all that will be made below it, to a project
 * @dir: Empty directory, open for reading
 *
 * Return: 0; -EOPNOTSUPP where the file system has no projects; other negative errno
 * Syscalls: ioctl
 */
must_check int quota_assign(int dir, uint32_t project, struct err *e);

/* quota_project() - The project of a directory, 0 if it has none. @dir is open for reading. Return: 0; negative
 * errno. */
must_check int quota_project(int dir, uint32_t *ret);
