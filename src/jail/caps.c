/* SPDX-License-Identifier: Apache-2.0 */
/* caps.c - The capabilities that root of a sandbox keeps
 *
 * Theory of operation. Runs in the child, as root of the new user namespace, after the mounts and before init is executed. In that
 * namespace every capability is harmless to the host in theory; in practice CAP_SYS_ADMIN and CAP_NET_ADMIN in a user namespace are what
 * most kernel privilege escalations of the last years needed to reach their bug. So the bounding set keeps only what installing packages
 * and switching users takes, and no program inside can get more: not by setuid files (no_new_privs), not by file capabilities. */
#include "jail/caps.h"

#include <linux/capability.h>
#include <sys/prctl.h>

#include "base/sys.h"

/* Why each is kept. Left out on purpose: SYS_ADMIN, SYS_PTRACE, SYS_MODULE, SYS_RAWIO, SYS_BOOT, SYS_TIME, SYS_RESOURCE, NET_ADMIN,
 * NET_RAW, IPC_LOCK, BPF, PERFMON, DAC_READ_SEARCH (open_by_handle_at: "shocker"), MAC_*, SYSLOG, WAKE_ALARM, LEASE, LINUX_IMMUTABLE. */
static const struct {
	unsigned cap;
	const char *name;
	const char *why;
} kept[] = {
	{ CAP_CHOWN, "chown", "package managers" },
	{ CAP_DAC_OVERRIDE, "dac_override", "root reads and writes its own machine's files" },
	{ CAP_FOWNER, "fowner", "chmod and utimes on files of other users inside" },
	{ CAP_FSETID, "fsetid", "setgid directories survive chmod" },
	{ CAP_KILL, "kill", "root signals other users inside" },
	{ CAP_SETGID, "setgid", "su, apt's _apt user, postgres" },
	{ CAP_SETUID, "setuid", "su, apt's _apt user, postgres" },
	{ CAP_SETPCAP, "setpcap", "programs that drop what they have" },
	{ CAP_NET_BIND_SERVICE, "net_bind_service", "servers on ports below 1024 of the own namespace" },
	{ CAP_SYS_CHROOT, "sys_chroot", "debootstrap, sshd; the old root is gone, so there is nothing to escape to" },
	{ CAP_MKNOD, "mknod", "FIFOs need none; dpkg checks for it; the kernel refuses devices here" },
	{ CAP_AUDIT_WRITE, "audit_write", "login programs report and go on" },
	{ CAP_SETFCAP, "setfcap", "package managers; such capabilities hold in this namespace only" },
};

uint64_t caps_kept(void)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		mask |= UINT64_C(1) << kept[i].cap;
	return mask;
}

void caps_print(struct buf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		(void)buf_printf(out, " %s", kept[i].name);
}

int caps_drop(uint64_t inits, struct err *e)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	uint64_t keep = caps_kept() | inits;
	int r;

	for (unsigned cap = 0; cap < 64; cap++) {
		if (keep & UINT64_C(1) << cap)
			continue;
		r = sys_prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
		if (r == -EINVAL)
			break; /* beyond the kernel's last capability */
		if (r < 0)
			return err_sys(e, r, "drop capability %u from the bounding set", cap);
	}
	(void)sys_prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); /* empty after clone anyway */
	for (size_t i = 0; i < 2; i++) {
		data[i].permitted = (uint32_t)(keep >> 32 * i);
		data[i].effective = data[i].permitted;
	}
	r = (int)sys_call2(__NR_capset, &header, data);
	return r < 0 ? err_sys(e, r, "reduce the capabilities of init") : 0;
}
