/* SPDX-License-Identifier: Apache-2.0 */
/* loop.h - A file as a block device */
#pragma once

#include "base/err.h"

/* loop_probe() - Whether loop devices can be had here. Return: 0; -EOPNOTSUPP or other negative errno, with the
 * remedy. */
must_check int loop_probe(struct err *e);

/**
 * loop_attach() - Give a file a loop device that ends with its last user
 * @file: Open for reading and writing; need not have a name
 * @name: Shown by losetup, cut to 63 bytes: who owns it
 *
 * The device is freed by the kernel when nothing has it open or mounted any more (LO_FLAGS_AUTOCLEAR), so a crash
 * leaks none.
 * Return: descriptor of the device; -EOPNOTSUPP; -EBUSY if others took every device that was tried; other negative
 * errno
 * Syscalls: openat ioctl fstat close
 */
must_check int loop_attach(int file, const char *name, struct err *e);
