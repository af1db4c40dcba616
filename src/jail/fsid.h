/* SPDX-License-Identifier: Apache-2.0 */
/* fsid.h - Act on files as the root of a sandbox, for one call */
#pragma once

#include "base/err.h"

/** struct fsid - What the calling thread was before */
struct fsid {
	int securebits;
	int pdeathsig;
};

/**
 * fsid_enter() - Give the calling thread the file system ids of a sandbox's root, and leave it its capabilities
 * @uid, @gid: First ids of the sandbox's range
 * @ret:       For fsid_leave()
 *
 * Return: 0; -EPERM without CAP_SETUID, CAP_SETGID and CAP_SETPCAP
 * Syscalls: prctl setfsuid setfsgid
 */
must_check int fsid_enter(uint32_t uid, uint32_t gid, struct fsid *ret, struct err *e);

/* fsid_leave() - Back to the thread's own ids (those of effective uid and gid). */
void fsid_leave(const struct fsid *old);
