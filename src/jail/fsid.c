/* SPDX-License-Identifier: Apache-2.0 */
/* fsid.c - Act on files as the root of a sandbox, for one call
 *
 * Theory of operation. Runs in the warden, in the thread that starts a sandbox. An overlay keeps the credentials of
 * who mounts it and makes its own directories with them. If its writable layer is an idmapped mount, the host's root
 * has no id there (EOVERFLOW), and the overlay comes up read-only; so it is mounted with the ids of the sandbox's
 * root. Changing the file system uid drops the capabilities over files, which the overlay needs:
 * SECBIT_NO_SETUID_FIXUP keeps them.
 *
 * All of this is per thread when asked of the kernel directly; libc's wrappers would change every thread of the
 * caller. The kernel also clears the thread's parent-death signal and its memory's dumpable flag: the first is
 * restored here, the second by jail_spawn(). */
#include "jail/fsid.h"

#include <linux/securebits.h>
#include <sys/prctl.h>

#include "base/sys.h"

int fsid_enter(uint32_t uid, uint32_t gid, struct fsid *ret, struct err *e)
{
	int r = ret->securebits = sys_prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);

	ret->pdeathsig = 0;
	if (r >= 0)
		r = sys_prctl(PR_GET_PDEATHSIG, (unsigned long)(uintptr_t)&ret->pdeathsig, 0, 0, 0);
	if (r >= 0)
		r = sys_prctl(PR_SET_SECUREBITS, (unsigned long)ret->securebits | SECBIT_NO_SETUID_FIXUP, 0, 0, 0);
	if (r < 0)
		return err_sys(e, r, "keep capabilities over a change of ids");
	r = sys_setfsgid(gid);
	if (r == 0)
		r = sys_setfsuid(uid);
	if (r < 0) {
		fsid_leave(ret);
		return err_sys(e, r, "take the ids of a sandbox's root");
	}
	return 0;
}

void fsid_leave(const struct fsid *old)
{
	/* None of these can fail: each leads back to what the thread was a moment ago. */
	ignored(sys_setfsuid((uid_t)sys_call0(__NR_geteuid)));
	ignored(sys_setfsgid((gid_t)sys_call0(__NR_getegid)));
	ignored(sys_prctl(PR_SET_SECUREBITS, (unsigned long)old->securebits, 0, 0, 0));
	if (old->pdeathsig)
		ignored(sys_prctl(PR_SET_PDEATHSIG, (unsigned long)old->pdeathsig, 0, 0, 0));
}
