/* SPDX-License-Identifier: Apache-2.0 */
/* fd.h - Whole reads and writes, and small kernel files */
#pragma once

#include <sys/types.h>

#include "base/macros.h"

/**
 * fd_read_full() - Read until @len bytes or end of file
 * Return: bytes read (short only at end of file), or negative errno; EINTR is retried
 */
must_check ssize_t fd_read_full(int fd, void *buf, size_t len);

/**
 * fd_write_full() - Write all of @len bytes
 * Return: 0, or negative errno; EINTR is retried
 */
must_check int fd_write_full(int fd, const void *buf, size_t len);

/**
 * fd_write_file_at() - Write a text into an existing kernel file (cgroup, /proc) in one write
 * @dir:  Directory descriptor or AT_FDCWD
 * @path: File below it
 * @text: NUL-terminated
 *
 * Return: 0, or negative errno of the open or the write
 * Syscalls: openat write close
 */
must_check int fd_write_file_at(int dir, const char *path, const char *text);

/**
 * fd_read_file_at() - Read a small text file whole
 * @dir:  Directory descriptor or AT_FDCWD
 * @path: File below it
 * @buf:  Receives the text and a NUL
 * @size: Bytes in @buf
 *
 * Return: bytes without the NUL; -EFBIG if the file does not fit; other negative errno
 */
must_check ssize_t fd_read_file_at(int dir, const char *path, char *buf, size_t size);

/* fd_cloexec_from3() - A duplicate (F_DUPFD_CLOEXEC) that can never land on 0, 1 or 2. Return: descriptor or negative errno. */
must_check int fd_cloexec_from3(int fd);
