/* SPDX-License-Identifier: Apache-2.0 */
/* mkfs.h - An ext4 file system in a file */
#pragma once

#include "base/err.h"

/* mkfs_probe() - Whether mkfs.ext4 is installed. Return: 0; -EOPNOTSUPP with the remedy. */
must_check int mkfs_probe(struct err *e);

/**
 * mkfs_ext4() - Make a file system without journal and without reserved blocks
 * @file:   Open for reading and writing, as large as the file system shall be; need not have a name
 * @inodes: At least so many, ten of which it uses itself
 *
 * Runs mkfs.ext4 with a deadline. Nothing of the caller is inherited but @file; no SIGCHLD is sent to the caller.
 * Return: 0; -EOPNOTSUPP if mkfs.ext4 is missing; -ETIMEDOUT; -EIO if it failed; other negative errno
 * Syscalls: memfd_create clone3 dup3 close_range execve ppoll waitid pidfd_send_signal
 */
must_check int mkfs_ext4(int file, uint64_t inodes, struct err *e);
