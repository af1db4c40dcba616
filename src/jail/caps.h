/* SPDX-License-Identifier: Apache-2.0 */
/* caps.h - The capabilities that root of a sandbox keeps, over its own user namespace only */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/**
 * caps_drop() - Reduce the bounding set to caps_kept() and clear the ambient and inheritable sets
 * @inits: Mask of what init keeps beside them and takes from each exec before it runs
 * @e:     Reason on failure
 *
 * Effective and permitted sets follow at the next execve(). Runs between clone and exec.
 * Return: 0; negative errno
 * Syscalls: prctl capset capget
 */
must_check int caps_drop(uint64_t inits, struct err *e);

/* caps_kept() - The bounding set of a sandbox as a mask. */
uint64_t caps_kept(void);

/* caps_print() - Names of the kept capabilities, each behind a blank. */
void caps_print(struct buf *out);
