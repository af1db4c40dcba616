/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - System calls that a sandbox has no business with
 *
 * Theory of operation. "Closed" means that the filter answered: EPERM or ENOSYS. Arguments are chosen so that the kernel's own code would
 * answer something else (EFAULT, EBADF, EINVAL), wherever it looks at arguments before rights; so most rows tell the filter from the
 * capabilities behind it. Where it asks for rights first, both layers give EPERM, and only taking both out shows it. */
#include "probe.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80 /* include/uapi/linux/sched.h */
#endif
#define BAD ((long)1)	   /* an address that nothing is mapped at */
#define NS_GET_USERNS 0xb701 /* include/uapi/linux/nsfs.h */
#define NS_GET_PARENT 0xb702

static bool is_closed(long r)
{
	return r < 0 && (errno == EPERM || errno == ENOSYS);
}

static enum verdict judge(const char *what, long r)
{
	if (is_closed(r))
		return harmless("%s: %s", what, errno_name(errno));
	return succeeded("%s reached the kernel: %s", what, r < 0 ? errno_name(errno) : "it worked");
}

/* Calls whose answer says by itself whether they got past the filter. */
#define CALL(name_, ...)                                                      \
	static enum verdict call_##name_(void)                                \
	{                                                                     \
		return judge(#name_, syscall(__VA_ARGS__));                   \
	}

/* Kernel surface without use inside */
CALL(bpf, __NR_bpf, 9999L, 0L, 0L)
CALL(perf_event_open, __NR_perf_event_open, BAD, 0L, -1L, -1L, 0L)
CALL(io_uring_setup, 425L, 1L, BAD)
CALL(io_uring_enter, 426L, -1L, 0L, 0L, 0L, 0L, 0L)
CALL(io_uring_register, 427L, -1L, 0L, 0L, 0L)
CALL(userfaultfd, __NR_userfaultfd, 1L)
CALL(keyctl, __NR_keyctl, 0L, -3L, 0L)
CALL(add_key, __NR_add_key, BAD, BAD, BAD, 1L, -2L)
CALL(request_key, __NR_request_key, BAD, BAD, BAD, -2L)
CALL(vmsplice, __NR_vmsplice, -1L, 0L, 0L, 0L)
CALL(process_madvise, 440L, -1L, 0L, 0L, 0L, 1L)
CALL(memfd_secret, 447L, -1L)
CALL(remap_file_pages, __NR_remap_file_pages, 0L, 0L, 1L, 0L, 0L)
CALL(mbind, __NR_mbind, 1L, 1L, 99L, 0L, 0L, 0L)
CALL(set_mempolicy, __NR_set_mempolicy, 99L, 0L, 0L)
CALL(move_pages, __NR_move_pages, 0L, 1L, BAD, 0L, BAD, 99L)
CALL(lsm_get_self_attr, 459L, 0L, 0L, 0L, 99L)
CALL(fanotify_init, __NR_fanotify_init, 0x200L, 0L)
CALL(personality_read_implies_exec, __NR_personality, 0x0400000L)
#ifdef __x86_64__
CALL(modify_ldt, __NR_modify_ldt, 0L, 0L, 0L)
CALL(ioperm, __NR_ioperm, 0xffffffL, 1L, 1L)
CALL(iopl, __NR_iopl, 3L)
#endif

/* Mounts and namespaces */
CALL(mount_call, __NR_mount, BAD, BAD, BAD, 0L, 0L)
CALL(umount_call, __NR_umount2, "/", 0x7fffffffL)
CALL(open_tree_call, 428L, -1L, "", 0x7fffffffL)
CALL(open_tree_attr_call, 467L, -1L, "", 0x7fffffffL, BAD, 8L)
CALL(fsconfig_call, 431L, -1L, 0L, 0L, 0L, 0L)
CALL(mount_setattr_call, 442L, -1L, "", 0L, 0L, 0L)
CALL(pivot_root_call, __NR_pivot_root, ".", ".")
CALL(move_mount_call, 429L, -1L, "", -1L, "", 0x4L)
CALL(fsopen_call, 430L, "tmpfs", 0L)
CALL(fsmount_call, 432L, -1L, 0L, 0L)
CALL(fspick_call, 433L, -1L, "", 0L)
CALL(chroot_call, __NR_chroot, BAD)
CALL(setns_call, __NR_setns, -1L, 0L)
CALL(statmount, 457L, BAD, BAD, 1L, 0L)
CALL(listmount, 458L, BAD, BAD, 1L, 0L)
CALL(listns, 470L, BAD, BAD, 1L, 0L)
CALL(name_to_handle_at, __NR_name_to_handle_at, -1L, "x", BAD, BAD, 0L)
CALL(open_by_handle_at_call, __NR_open_by_handle_at, -1L, BAD, 0L)

/* The host's own affairs. None of these can do anything with the arguments given. */
CALL(init_module, __NR_init_module, BAD, 1L, BAD)
CALL(finit_module, __NR_finit_module, -1L, BAD, 0L)
CALL(delete_module, __NR_delete_module, BAD, 0L)
CALL(kexec_load, __NR_kexec_load, 0L, 1000000L, BAD, 0L)
CALL(reboot_call, __NR_reboot, 1L, 2L, 3L, 0L) /* none of the magic numbers: EINVAL from a kernel that would have done it */
CALL(swapon, __NR_swapon, BAD, 0L)
CALL(swapoff, __NR_swapoff, BAD)
CALL(acct, __NR_acct, BAD)
CALL(quotactl_fd, 443L, -1L, 0L, 0L, 0L)
CALL(syslog_call, __NR_syslog, 10L, 0L, 0L)
CALL(settimeofday, __NR_settimeofday, 0L, 0L)
CALL(adjtimex, __NR_adjtimex, BAD)
CALL(clock_adjtime, __NR_clock_adjtime, 0L, BAD)
CALL(setdomainname_call, __NR_setdomainname, BAD, 1L)

/* --- Numbers that nobody listed ---------------------------------------------------------------------------------------------- */

static enum verdict unknown_calls(void)
{
	for (long nr = 480; nr < 1024; nr++)
		if (syscall(nr, -1L, -1L, -1L, -1L, -1L, -1L) != -1 || errno != ENOSYS)
			return succeeded("call %ld: %s", nr, errno_name(errno));
	return harmless("480 to 1023: ENOSYS");
}

/* The log flavour of the filter would let this through to the kernel. */
static enum verdict filter_only_logs(void)
{
	errno = 0;
	return syscall(__NR_add_key, BAD, BAD, BAD, 1L, -2L) < 0 && errno == EFAULT ? succeeded("a refused call reached the kernel") :
										       harmless("%s", errno_name(errno));
}

#ifdef __x86_64__
static enum verdict abi_32bit(void)
{
	long r = 20; /* getpid of i386 */

	__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
	return r == getpid() ? succeeded("int 0x80 got an answer") : harmless("int 0x80: %ld", r);
}

static enum verdict abi_x32(void)
{
	long r = syscall(0x40000000L | __NR_getpid);

	return r >= 0 ? succeeded("an x32 call worked") : harmless("x32: %s", errno_name(errno));
}
#endif

/* --- Namespaces -------------------------------------------------------------------------------------------------------------- */

static enum verdict unshare_once(const void *arg)
{
	unsigned long flags = *(const unsigned long *)arg;

	return unshare((int)flags) == 0 ? succeeded("unshare(0x%lx) worked", flags) :
					  harmless("unshare(0x%lx): %s", flags, errno_name(errno));
}

/* Alone, and with a user namespace that would give the right to it. */
static enum verdict try_unshare(unsigned long flag)
{
	unsigned long with_user = flag | CLONE_NEWUSER;
	enum verdict v = in_child(unshare_once, &flag);

	return v == HARMLESS ? in_child(unshare_once, &with_user) : v;
}

static enum verdict try_clone(unsigned long flag)
{
	unsigned long flags[] = { flag, flag | CLONE_NEWUSER };

	for (size_t i = 0; i < 2; i++) {
		long pid = syscall(__NR_clone, flags[i] | SIGCHLD, 0L, 0L, 0L, 0L);

		if (pid == 0)
			_exit(0);
		if (pid > 0) {
			(void)waitpid((pid_t)pid, NULL, 0);
			return succeeded("clone(0x%lx) worked", flags[i]);
		}
	}
	return harmless("clone(0x%lx): %s", flags[1], errno_name(errno));
}

static enum verdict try_clone3(unsigned long flag)
{
	uint64_t args[11] = { flag, 0, 0, 0, SIGCHLD };
	long pid = syscall(__NR_clone3, args, sizeof(args));

	if (pid == 0)
		_exit(0);
	if (pid > 0) {
		(void)waitpid((pid_t)pid, NULL, 0);
		return succeeded("clone3(0x%lx) worked", flag);
	}
	return errno == ENOSYS ? harmless("clone3: ENOSYS") : succeeded("clone3 reached the kernel: %s", errno_name(errno));
}

#define NAMESPACE(word, flag)                                                     \
	static enum verdict unshare_##word(void) { return try_unshare(flag); }    \
	static enum verdict clone_##word(void) { return try_clone(flag); }        \
	static enum verdict clone3_##word(void) { return try_clone3(CLONE_NEWUSER | (flag)); }
NAMESPACE(user, CLONE_NEWUSER)
NAMESPACE(mnt, CLONE_NEWNS)
NAMESPACE(pid, CLONE_NEWPID)
NAMESPACE(net, CLONE_NEWNET)
NAMESPACE(ipc, CLONE_NEWIPC)
NAMESPACE(uts, CLONE_NEWUTS)
NAMESPACE(cgroup, CLONE_NEWCGROUP)
static enum verdict unshare_time(void) { return try_unshare(CLONE_NEWTIME); }
static enum verdict clone3_time(void) { return try_clone3(CLONE_NEWUSER | CLONE_NEWTIME); }

static enum verdict setns_own(void)
{
	static const char *const names[] = { "user", "mnt", "pid", "net", "ipc", "uts", "cgroup" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[32];
		int fd;

		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && setns(fd, 0) == 0)
			return succeeded("setns to %s worked", path);
		if (fd >= 0)
			(void)close(fd);
	}
	return harmless("setns: %s", errno_name(errno));
}

/* Handles and requests that walk from one namespace to another (CVE-2026-43391, CVE-2026-43403) */
static enum verdict nsfs_requests(void)
{
	static const unsigned long requests[] = { NS_GET_USERNS, NS_GET_PARENT, 0xb703, 0xb704, 0xb705, 0xb706, 0xb707, 0xb708, 0xb70a, 0xb70b, 0xb70c };
	int fd = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	char buffer[256];

	if (fd < 0)
		return untried("open /proc/self/ns/pid: %s", errno_name(errno));
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		if (ioctl(fd, requests[i], buffer) >= 0 || errno != EPERM)
			return succeeded("nsfs request 0x%lx: %s", requests[i], errno_name(errno));
	return harmless("nsfs requests: EPERM");
}

static enum verdict nsfs_handle(void)
{
	struct {
		unsigned bytes;
		int type;
		unsigned char id[128];
	} handle = { .bytes = 24, .type = 0xf1 }; /* FILEID_NSFS */
	long r = syscall(__NR_open_by_handle_at, -10003L, &handle, 0L); /* FD_NSFS_ROOT */

	return judge("open_by_handle_at on nsfs", r);
}

/* Shocker: a handle of the root's own inode number, opened on whatever file system is under us. */
static enum verdict open_by_handle(void)
{
	struct {
		unsigned bytes;
		int type;
		unsigned char id[128];
	} handle = { .bytes = 128 };
	int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), mount_id;
	long r = syscall(__NR_name_to_handle_at, AT_FDCWD, "/usr", &handle, &mount_id, 0L);

	if (is_closed(r) && is_closed(syscall(__NR_open_by_handle_at, (long)root, &handle, 0L)))
		return harmless("both calls: %s", errno_name(errno));
	return succeeded("handles can be asked for (%ld %s)", r, errno_name(errno));
}

/* --- Terminals --------------------------------------------------------------------------------------------------------------- */

/* A terminal of our own that we control: the kernel itself then allows TIOCSTI (unless legacy_tiocsti is 0). */
static int own_terminal(void)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC), unlock = 0, slave;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return -1;
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave >= 0 && (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0) < 0))
		return -1;
	return slave;
}

static enum verdict try_terminal(int tty, unsigned long request, const char *what)
{
	char argument[16] = "x";

	if (tty < 0)
		return untried("no terminal: %s", errno_name(errno));
	/* The high half of the request is not compared by the kernel, so a filter must not compare it either. */
	if (!is_closed(ioctl(tty, request, argument)))
		return succeeded("%s: %s", what, errno_name(errno));
	if (!is_closed(syscall(__NR_ioctl, (long)tty, (long)request | (1L << 40), argument)))
		return succeeded("%s with high bits: %s", what, errno_name(errno));
	return harmless("%s: %s", what, errno_name(errno));
}

static enum verdict tiocsti(void) { return try_terminal(own_terminal(), TIOCSTI, "TIOCSTI"); }
static enum verdict tioclinux(void) { return try_terminal(own_terminal(), TIOCLINUX, "TIOCLINUX"); }
static enum verdict tiocsetd(void) { return try_terminal(own_terminal(), TIOCSETD, "TIOCSETD"); }

/* The terminal that came as standard input; with --tty it is the sandbox's own, else the caller's. */
static enum verdict tiocsti_stdin(void)
{
	return isatty(0) ? try_terminal(0, TIOCSTI, "TIOCSTI on stdin") : untried("stdin is no terminal");
}

static enum verdict tioclinux_stdin(void)
{
	return isatty(0) ? try_terminal(0, TIOCLINUX, "TIOCLINUX on stdin") : untried("stdin is no terminal");
}

static enum verdict steal_terminal(void)
{
	if (!isatty(0))
		return untried("stdin is no terminal");
	(void)setsid();
	return ioctl(0, TIOCSCTTY, 1) == 0 ? succeeded("the caller's terminal is ours") : harmless("TIOCSCTTY: %s", errno_name(errno));
}

#define CALLED(name_, answers_) { #name_, call_##name_, 0, answers_ }
#define ROW(name_, answers_) { #name_, name_, 0, answers_ }
const struct attack call_attacks[] = {
	CALLED(bpf, "CVE-2021-3490, CVE-2023-2163"),
	CALLED(perf_event_open, "CVE-2013-2094, CVE-2023-5717"),
	CALLED(io_uring_setup, "CVE-2022-29582, CVE-2023-2598"),
	CALLED(io_uring_enter, "as io_uring_setup"),
	CALLED(io_uring_register, "as io_uring_setup"),
	CALLED(userfaultfd, "widens kernel races"),
	CALLED(keyctl, "CVE-2016-0728"),
	CALLED(add_key, "as keyctl"),
	CALLED(request_key, "as keyctl"),
	CALLED(vmsplice, "CVE-2008-0600, CVE-2020-29374"),
	CALLED(process_madvise, "rare memory code"),
	CALLED(memfd_secret, "rare memory code"),
	CALLED(remap_file_pages, "rare memory code"),
	CALLED(mbind, "CVE-2017-7616"),
	CALLED(set_mempolicy, "CVE-2017-7616"),
	CALLED(move_pages, "CVE-2017-14140"),
	CALLED(lsm_get_self_attr, "asks for the host's confinement"),
	CALLED(fanotify_init, "holds other processes' file accesses"),
	CALLED(personality_read_implies_exec, "CVE-2009-1895"),
#ifdef __x86_64__
	CALLED(modify_ldt, "CVE-2017-17053"),
	CALLED(ioperm, "hardware"),
	CALLED(iopl, "hardware"),
	ROW(abi_32bit, "calls that the filter does not know by number"),
	ROW(abi_x32, "as abi_32bit"),
#endif
	CALLED(mount_call, "CVE-2025-31133, CVE-2025-52565, CVE-2025-52881"),
	CALLED(umount_call, "as mount_call"),
	CALLED(open_tree_call, "as mount_call"),
	CALLED(open_tree_attr_call, "as mount_call"),
	CALLED(fsconfig_call, "CVE-2022-0185"),
	CALLED(mount_setattr_call, "as mount_call"),
	CALLED(pivot_root_call, "as mount_call"),
	CALLED(move_mount_call, "as mount_call"),
	CALLED(fsopen_call, "as fsconfig_call"),
	CALLED(fsmount_call, "as mount_call"),
	CALLED(fspick_call, "as mount_call"),
	CALLED(chroot_call, "escape by chroot"),
	CALLED(setns_call, "CVE-2026-43403"),
	CALLED(statmount, "CVE-2026-43403"),
	CALLED(listmount, "CVE-2026-43403"),
	CALLED(listns, "CVE-2026-43403"),
	CALLED(name_to_handle_at, "Shocker"),
	CALLED(open_by_handle_at_call, "Shocker"),
	ROW(open_by_handle, "Shocker"),
	ROW(nsfs_handle, "CVE-2026-43391"),
	ROW(nsfs_requests, "CVE-2026-43391"),
	CALLED(init_module, "code in the kernel"),
	CALLED(finit_module, "code in the kernel"),
	CALLED(delete_module, "code in the kernel"),
	CALLED(kexec_load, "another kernel"),
	CALLED(reboot_call, "stops the machine"),
	CALLED(swapon, "the host's memory"),
	CALLED(swapoff, "the host's memory"),
	CALLED(acct, "writes files as the kernel"),
	CALLED(quotactl_fd, "the host's quotas"),
	CALLED(syslog_call, "kernel addresses, other tenants"),
	CALLED(settimeofday, "the clock is every tenant's"),
	CALLED(adjtimex, "the clock is every tenant's"),
	CALLED(clock_adjtime, "the clock is every tenant's"),
	CALLED(setdomainname_call, "the host's name"),
	ROW(unknown_calls, "calls newer than the policy"),
	ROW(filter_only_logs, "a log-only filter in a normal build"),
	ROW(unshare_user, "CVE-2022-0185, CVE-2023-32233, CVE-2024-1086"),
	ROW(unshare_mnt, "as unshare_user"),
	ROW(unshare_pid, "as unshare_user"),
	ROW(unshare_net, "as unshare_user"),
	ROW(unshare_ipc, "as unshare_user"),
	ROW(unshare_uts, "as unshare_user"),
	ROW(unshare_cgroup, "as unshare_user"),
	ROW(unshare_time, "as unshare_user"),
	ROW(clone_user, "as unshare_user"),
	ROW(clone_mnt, "as unshare_user"),
	ROW(clone_pid, "as unshare_user"),
	ROW(clone_net, "as unshare_user"),
	ROW(clone_ipc, "as unshare_user"),
	ROW(clone_uts, "as unshare_user"),
	ROW(clone_cgroup, "as unshare_user"),
	ROW(clone3_user, "flags that a filter cannot see"),
	ROW(clone3_mnt, "as clone3_user"),
	ROW(clone3_pid, "as clone3_user"),
	ROW(clone3_net, "as clone3_user"),
	ROW(clone3_ipc, "as clone3_user"),
	ROW(clone3_uts, "as clone3_user"),
	ROW(clone3_cgroup, "as clone3_user"),
	ROW(clone3_time, "as clone3_user"),
	ROW(setns_own, "CVE-2026-43403"),
	ROW(tiocsti, "CVE-2017-5226, CVE-2023-28100"),
	ROW(tioclinux, "CVE-2023-28100"),
	ROW(tiocsetd, "CVE-2023-6546"),
	{ "tiocsti_stdin", tiocsti_stdin, BY_NAME, "CVE-2017-5226" },
	{ "tioclinux_stdin", tioclinux_stdin, BY_NAME, "CVE-2023-28100" },
	{ "steal_terminal", steal_terminal, BY_NAME, "an inherited terminal" },
	{ NULL, NULL, 0, NULL },
};
