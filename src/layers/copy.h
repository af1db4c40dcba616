/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h - Copy what anybody may read, within a budget */
#pragma once

#include "base/err.h"

/**
 * struct copy_budget - What a series of copies may still use
 * @file_max_bytes: Largest file; larger ones are left out
 * @bytes:          Content that is left to copy
 * @entries:        Files, directories and links that are left to make
 *
 * Both counters go down; what does not fit fails the copy with -ENOSPC.
 */
struct copy_budget {
	uint64_t file_max_bytes;
	uint64_t bytes;
	uint32_t entries;
};

/**
 * copy_public_at() - Copy a file, a symbolic link or a directory tree
 * @from: Directory that holds the source
 * @to:   Directory that receives the copy
 * @path: Name in both; may have directories, which must exist at @to
 *
 * Only what every user of the host may read is copied: a file or directory that others cannot read, or that lies
 * below a directory that others cannot search, is left out, and so are devices, sockets, FIFOs and what is missing.
 * The copy belongs to the caller, has mode 0644 or 0755 and the source's mtime. Links are copied as links; none is
 * followed, on the way neither.
 * Return: 0, also if nothing was copied; -ENOSPC beyond the budget; other negative errno
 * Syscalls: openat fstat read write fchmod utimensat mkdirat symlinkat readlinkat getdents64 close
 */
must_check int copy_public_at(int from, int to, const char *path, struct copy_budget *budget, struct err *e);
