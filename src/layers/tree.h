/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - Remove directory trees that a guest has shaped */
#pragma once

#include "base/err.h"

/**
 * tree_remove_at() - Remove a file or a whole tree
 * @dirfd: Directory that holds it
 * @name:  One name below @dirfd: not empty, no slash, not "." or ".."
 * @e:     Reason of the first failure, may be NULL
 *
 * Whatever can be removed is, also behind a failure; entries that vanish meanwhile are fine, so a repeated call is,
 * too. Symbolic links are removed and never followed, mount points are left alone and reported. At most 17
 * descriptors are open and no memory grows but 40 bytes for each level of depth. Nothing may be creating entries in
 * the tree at the same time: each directory is given a bounded number of tries.
 * Return: 0, also if nothing was there; -EINVAL for a bad name; -EBUSY for a mount point; other negative errno
 * A caller that tidies up behind another failure may ignore the result; doctor finds what stayed.
 * Syscalls: openat2 openat fstat fchmod getdents64 lseek unlinkat close
 */
int tree_remove_at(int dirfd, const char *name, struct err *e);
