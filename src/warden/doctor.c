/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c - What this host lacks, and what dead sandboxes left on it
 *
 * Theory of operation. Runs in the caller's process, as the user who would start sandboxes. Wherever a thing can be tried, it is tried, and what
 * is reported is what happened: a sysctl that allows user namespaces proves nothing on a host whose security module refuses them. What is
 * tried is a namespace, a mount that nobody sees, and a group under a slot of our own, which an interrupted doctor leaves as any other
 * orphan; nothing else is made but the run directory.
 *
 * Only what carrel cannot work without is lacking (ok = 0). What makes a sandbox weaker, or is needed for one option, is fine with a remedy.
 * Orphans come last, after the prerequisites: sweep.c finds and removes them. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/wait.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/sys.h"
#include "jail/idmap.h"
#include "jail/mount.h"
#include "layers/store.h"
#include "warden/internal.h"
#include "warden/sweep.h"

/* The oldest kernel that the tests run on: Debian 12's. */
#define KERNEL_MAJOR 6
#define KERNEL_MINOR 1
#define LANDLOCK_ABI_WANTED 2 /* the first that lets files be moved between directories */
/* Less room than this in the store, and the next image will not fit. */
#define STORE_ROOM_WANTED GIB(1)
#define PROBE_STACK_SIZE 4096
#define SYSCTL_MAX 256

#ifndef CARREL_LIBEXEC
#error "the build names the directory of carrel-unpack"
#endif

/** struct doctor - What the checks share */
struct doctor {
	int rundir, store;
	struct err run_error, store_error;
	struct cgroup_limits limits; /* of the group that is tried */
	enum cgroup_version version;
	unsigned have; /* controllers whose limits could be set */
};

/** struct note - One finding while it is written */
struct note {
	int ok;
	char found[256], remedy[256];
};

static void printf_like(2, 3) found(struct note *n, const char *fmt, ...)
{
	size_t len = strlen(n->found);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(n->found + len, sizeof(n->found) - len, fmt, ap);
	va_end(ap);
}

/* @ok: 0 if carrel cannot work so, 1 if it works with less */
static void printf_like(3, 4) advise(struct note *n, int ok, const char *fmt, ...)
{
	va_list ap;

	n->ok = ok;
	va_start(ap, fmt);
	(void)vsnprintf(n->remedy, sizeof(n->remedy), fmt, ap);
	va_end(ap);
}

/* The first line of a kernel file, "" if it is not there. Return: @text */
static const char *sysctl(const char *path, char text[SYSCTL_MAX])
{
	if (fd_read_file_at(AT_FDCWD, path, text, SYSCTL_MAX) < 0)
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return text;
}

/* --- The kernel ------------------------------------------------------------------------------------------------------------- */

/* The number at the start of @s; @end receives what follows. */
static unsigned leading_number(const char *s, const char **end)
{
	unsigned n = 0;

	for (; *s >= '0' && *s <= '9' && n < 10000; s++)
		n = n * 10 + (unsigned)(*s - '0');
	*end = s;
	return n;
}

static void check_kernel(const struct doctor *d, struct note *n)
{
	struct utsname name;
	const char *at;
	unsigned major, minor;

	(void)d;
	(void)uname(&name); /* cannot fail with a valid pointer */
	major = leading_number(name.release, &at);
	minor = leading_number(at + (*at == '.'), &at);
	found(n, "Linux %s on %s", name.release, name.machine);
	if (major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR))
		advise(n, 0, "use Linux %d.%d or later", KERNEL_MAJOR, KERNEL_MINOR);
}

static void check_mount_api(const struct doctor *d, struct note *n)
{
	struct mount_attr none = { .attr_set = 0 };
	auto_close int fs = sys_fsopen("tmpfs");
	int attr = sys_mount_setattr(-1, "", AT_EMPTY_PATH, &none);

	(void)d;
	if (fs >= 0)
		found(n, "fsopen, mount_setattr");
	else
		found(n, "fsopen: %s; mount_setattr is there", err_errno_text(-fs));
	if (fs == -ENOSYS || attr == -ENOSYS) /* -EPERM outside of a user namespace of one's own is as it should be */
		advise(n, 0, "allow the mount calls of Linux 5.12; an old container runtime or seccomp profile hides them");
	else if (fs < 0 && geteuid() == 0)
		advise(n, 0, "give this container CAP_SYS_ADMIN, or run carrel as an ordinary user");
}

static bool has_filesystem(const char *name)
{
	char text[4096], want[32];

	if (fd_read_file_at(AT_FDCWD, "/proc/filesystems", text, sizeof(text)) < 0)
		return false;
	(void)snprintf(want, sizeof(want), "\t%s\n", name);
	return strstr(text, want) != NULL;
}

static void check_overlay(const struct doctor *d, struct note *n)
{
	bool have = has_filesystem("overlay");

	(void)d;
	if (!have && geteuid() == 0) { /* asking for it loads the module */
		auto_close int fs = sys_fsopen("overlay");

		have = fs >= 0;
	}
	found(n, "%s to the kernel", have ? "known" : "unknown");
	if (!have)
		advise(n, 0, "as root: modprobe overlay (and name it in /etc/modules-load.d)");
}

static void check_memfd(const struct doctor *d, struct note *n)
{
	char text[SYSCTL_MAX];

	(void)d;
	if (str_eq(sysctl("/proc/sys/vm/memfd_noexec", text), "2")) {
		found(n, "vm.memfd_noexec is 2: programs in memory may not be executed");
		advise(n, 0, "sysctl vm.memfd_noexec=1");
	} else {
		found(n, "may be executed");
	}
}

/* Runs on the parent's memory in the new namespace: only system calls. Without privilege there, the namespace is of no use. */
static void probe_main(void *arg)
{
	(void)arg;
	sys_exit(sys_sethostname("probe", 5) < 0 ? 1 : 0);
}

/* Return: 0; -EPERM if the namespace came without its privileges; what clone3() answered */
static int probe_userns(void)
{
	_Alignas(16) char stack[PROBE_STACK_SIZE];
	int pidfd = -EBADF;
	struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWUTS | CLONE_VM | CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.stack = (uint64_t)(uintptr_t)stack,
		.stack_size = sizeof(stack),
	};
	siginfo_t info = { .si_code = 0 };
	long pid = sys_clone3_call(&args, probe_main, NULL);

	if (pid < 0)
		return (int)pid;
	(void)sys_call5(__NR_waitid, P_PIDFD, pidfd, &info, WEXITED | __WALL, 0); /* our child: there is one to wait for */
	(void)sys_close(pidfd);
	return info.si_code == CLD_EXITED && info.si_status == 0 ? 0 : -EPERM;
}

static void check_userns(const struct doctor *d, struct note *n)
{
	char limit[SYSCTL_MAX], clone[SYSCTL_MAX], armor[SYSCTL_MAX];
	int r = probe_userns();

	(void)d;
	(void)sysctl("/proc/sys/user/max_user_namespaces", limit);
	(void)sysctl("/proc/sys/kernel/unprivileged_userns_clone", clone);
	(void)sysctl("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", armor);
	found(n, "%s%s", r < 0 ? "refused: " : "made one", r < 0 ? err_errno_text(-r) : "");
	if (limit[0])
		found(n, "; user.max_user_namespaces is %s", limit);
	if (r < 0 && str_eq(limit, "0"))
		advise(n, 0, "sysctl user.max_user_namespaces=15000");
	else if (r < 0 && str_eq(clone, "0"))
		advise(n, 0, "sysctl kernel.unprivileged_userns_clone=1");
	else if (r < 0 && str_eq(armor, "1"))
		advise(n, 0, "AppArmor restricts them here: install packaging/apparmor/carrel in /etc/apparmor.d and load it "
			     "with apparmor_parser -r");
	else if (r < 0)
		advise(n, 0, "in a container: let its runtime and seccomp profile allow user namespaces");
	else if (str_eq(armor, "1"))
		advise(n, 1, "for ordinary users AppArmor needs packaging/apparmor/carrel in /etc/apparmor.d");
}

static void check_seccomp(const struct doctor *d, struct note *n)
{
	static const char *const wanted[] = { "kill_process", "errno", "allow" };
	char text[SYSCTL_MAX], padded[SYSCTL_MAX + 2], word[24];

	(void)d;
	found(n, "%s", sysctl("/proc/sys/kernel/seccomp/actions_avail", text));
	(void)snprintf(padded, sizeof(padded), " %s ", text);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		(void)snprintf(word, sizeof(word), " %s ", wanted[i]);
		if (!strstr(padded, word))
			advise(n, 0, "use a kernel with CONFIG_SECCOMP_FILTER");
	}
	if (!text[0])
		found(n, "not there");
}

static void check_landlock(const struct doctor *d, struct note *n)
{
	long abi = sys_call3(__NR_landlock_create_ruleset, NULL, 0, 1 /* LANDLOCK_CREATE_RULESET_VERSION */);

	(void)d;
	if (abi >= 0)
		found(n, "ABI %ld", abi);
	else
		found(n, "%s", err_errno_text((int)-abi));
	if (abi < LANDLOCK_ABI_WANTED)
		advise(n, 1, "boot with landlock in lsm= (see /sys/kernel/security/lsm); sandboxes go without until then");
}

/* --- cgroups ---------------------------------------------------------------------------------------------------------------- */

/* A real group with real limits, under a slot like that of any sandbox. */
static void try_groups(struct doctor *d)
{
	struct slot slot = { .fd = -EBADF };
	char id[SLOT_ID_SIZE + 1];
	struct cgroup cg;

	d->version = cgroup_detect();
	if (d->version == CGROUP_NONE || d->rundir < 0 || slot_take(d->rundir, id, &slot, NULL) < 0)
		return;
	cgroup_init(&cg);
	if (cgroup_create(&cg, id, &d->limits, geteuid(), NULL) == 0) {
		d->version = cg.version;
		d->have = cg.have;
		ignored(cgroup_destroy(&cg, NULL)); /* empty: nothing keeps it */
	}
	slot_release(&slot);
}

static void check_cgroup(const struct doctor *d, struct note *n)
{
	static const char *const names[] = { [CGROUP_NONE] = "none that this user may use", [CGROUP_V1] = "v1", [CGROUP_V2] = "v2" };

	found(n, "%s", names[d->version]);
	if (d->version == CGROUP_NONE && geteuid() == 0)
		advise(n, 0, "mount cgroup2 at /sys/fs/cgroup: without it nothing limits memory and processes");
	else if (d->version == CGROUP_NONE)
		advise(n, 1, "for limits: systemd-run --user --scope -p Delegate=yes carrel ..., or run as root");
}

static void check_controller(const struct doctor *d, enum cgroup_ctl ctl, int essential, struct note *n)
{
	const char *name = cgroup_ctl_name(ctl);

	if (d->have & 1u << ctl) {
		found(n, "%s", ctl == CTL_CPUACCT ? "counts" : "set a limit");
		return;
	}
	found(n, "no group of it that this user may make");
	if (geteuid() != 0)
		advise(n, 1, "for this limit: delegate it (Delegate=%s in user@.service, cgroup v2), or run as root", name);
	else if (d->version == CGROUP_V1)
		advise(n, essential ? 0 : 1, "mount -t cgroup -o %s %s /sys/fs/cgroup/%s", name, name, name);
	else
		advise(n, essential ? 0 : 1, "enable '%s' in cgroup.subtree_control of the groups above", name);
}

static void check_memory(const struct doctor *d, struct note *n)
{
	check_controller(d, CTL_MEMORY, 1, n);
}

static void check_pids(const struct doctor *d, struct note *n)
{
	check_controller(d, CTL_PIDS, 1, n);
}

static void check_cpu(const struct doctor *d, struct note *n)
{
	check_controller(d, CTL_CPU, 0, n);
}

static void check_cpuacct(const struct doctor *d, struct note *n)
{
	check_controller(d, CTL_CPUACCT, 0, n);
}

/* --- Places ----------------------------------------------------------------------------------------------------------------- */

static void describe_place(struct note *n, const char *path, int fd, uint64_t room_wanted)
{
	struct statfs fs;
	struct stat st;
	char size[24];

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return;
	found(n, "'%.120s', uid %u, mode %04o, %s free", path, (unsigned)st.st_uid, (unsigned)st.st_mode & 07777,
	      str_format_size((uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize & ~(MIB(1) - 1), size, sizeof(size)));
	if ((uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize < room_wanted)
		advise(n, 1, "make room: the next image needs some");
}

static void check_rundir(const struct doctor *d, struct note *n)
{
	char path[STORE_PATH_MAX];

	if (d->rundir < 0) {
		found(n, "%s", d->run_error.msg);
		advise(n, 0, "%s", d->run_error.hint[0] ? d->run_error.hint : "set $CARREL_RUN_DIR to a directory of yours");
	} else if (rundir_path(path, sizeof(path), NULL) == 0) {
		describe_place(n, path, d->rundir, 0);
	}
}

static void check_store(const struct doctor *d, struct note *n)
{
	char path[STORE_PATH_MAX];

	if (d->store == -ENOENT) {
		found(n, "not there yet: the first sandbox makes it");
	} else if (d->store < 0) {
		found(n, "%s", d->store_error.msg);
		advise(n, 0, "%s", d->store_error.hint[0] ? d->store_error.hint : "set $CARREL_STORE to a directory of yours");
	} else if (store_path(path, sizeof(path), NULL) == 0) {
		describe_place(n, path, d->store, STORE_ROOM_WANTED);
	}
}

/* A mount that nobody sees, with the ids of its owner made others. Return: 0; negative errno */
static int try_idmap(int dir)
{
	auto_close int userns = -EBADF, mount = -EBADF;

	userns = idmap_for_owner(dir, SLOT_UID_BASE, NULL);
	if (userns < 0)
		return userns;
	mount = mount_clone(dir, "", userns, 0, NULL);
	return mount < 0 ? mount : 0;
}

static void check_idmap(const struct doctor *d, struct note *n)
{
	static const char *const names[] = { "store", "/usr" };
	auto_close int usr = sys_openat(AT_FDCWD, "/usr", O_RDONLY | O_DIRECTORY, 0);
	const int dirs[] = { d->store, usr };

	if (geteuid() != 0) {
		found(n, "only root makes them; an ordinary user's sandbox has a single id");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		int r = dirs[i] < 0 ? 0 : try_idmap(dirs[i]);

		if (dirs[i] < 0)
			continue;
		found(n, "%s%s: %s", n->found[0] ? ", " : "", names[i], r < 0 ? err_errno_text(-r) : "possible");
		if (r < 0)
			advise(n, 1, "put it on ext4, xfs, btrfs or (since 6.3) tmpfs; else image files belong to nobody inside");
	}
}

/* "name:start:count" of the user, by name or number. */
static bool has_subids(const char *path)
{
	char text[KIB(16)], uid[16];
	const char *names[2] = { getenv("USER"), uid };

	(void)snprintf(uid, sizeof(uid), "%u", (unsigned)geteuid());
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			if (names[i] && names[i][0] && str_starts(line, names[i]) && line[strlen(names[i])] == ':')
				return true;
	return false;
}

static void check_subids(const struct doctor *d, struct note *n)
{
	(void)d;
	if (geteuid() == 0)
		found(n, "not needed: root has ranges of its own");
	else
		found(n, "%s in /etc/subuid, %s in /etc/subgid", has_subids("/etc/subuid") ? "a range" : "none",
		      has_subids("/etc/subgid") ? "a range" : "none");
}

/* Beside the running program, or where it was installed: as unpack.c looks for it. */
static void check_unpacker(const struct doctor *d, struct note *n)
{
	const char *dirs[3] = { getenv("CARREL_LIBEXEC"), "", CARREL_LIBEXEC };
	char self[PATH_MAX], path[PATH_MAX + 32], *slash;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	(void)d;
	self[len > 0 ? len : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash) {
		*slash = '\0';
		dirs[1] = self;
	}
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		if (!dirs[i] || dirs[i][0] != '/')
			continue;
		(void)snprintf(path, sizeof(path), "%.4000s/carrel-unpack", dirs[i]);
		if (access(path, X_OK) == 0) {
			found(n, "'%.200s'", path);
			return;
		}
	}
	found(n, "not found");
	advise(n, 1, "install Carrel whole, or set CARREL_LIBEXEC; only archives as images need it");
}

/* --- The report ------------------------------------------------------------------------------------------------------------- */

static const struct {
	const char *what;
	void (*look)(const struct doctor *d, struct note *n);
} checks[] = {
	{ "kernel", check_kernel },
	{ "mount calls", check_mount_api },
	{ "overlayfs", check_overlay },
	{ "programs in memory", check_memfd },
	{ "user namespaces", check_userns },
	{ "seccomp", check_seccomp },
	{ "Landlock", check_landlock },
	{ "cgroups", check_cgroup },
	{ "memory limits", check_memory },
	{ "pids limits", check_pids },
	{ "cpu limits", check_cpu },
	{ "cpu accounts", check_cpuacct },
	{ "run directory", check_rundir },
	{ "store", check_store },
	{ "idmapped mounts", check_idmap },
	{ "subordinate ids", check_subids },
	{ "unpacker", check_unpacker },
};

/** struct report - Where findings go */
struct report {
	void (*visit)(const struct carrel_finding *finding, void *data);
	void *data;
};

static void tell(const struct report *to, int ok, const char *what, const char *text, const char *remedy)
{
	const struct carrel_finding f = { .ok = ok, .what = what, .found = text, .remedy = remedy };

	to->visit(&f, to->data);
}

/* Return: number that is left */
static int tell_orphans(const struct doctor *d, const struct orphans *o, unsigned flags, const struct report *to)
{
	int left = 0;

	for (size_t i = 0; i < o->count; i++) {
		struct err why = { .code = ERR_NONE };
		char text[160];
		int r = -EBUSY;

		if (flags & CARREL_DOCTOR_SWEEP)
			r = sweep_orphan(d->rundir, d->store, &o->list[i], &why);
		(void)snprintf(text, sizeof(text), "%s%s", r == 0 ? "removed: " : "", o->list[i].text);
		left += r < 0;
		tell(to, r == 0, orphan_name(o->list[i].kind), text,
		     r == 0 ? "" : why.msg[0] ? why.msg : "carrel doctor --sweep");
	}
	if (o->count == 0)
		tell(to, 1, "orphans", "none", "");
	return left;
}

static int doctor_examine(unsigned flags, const struct report *to, struct err *e)
{
	struct doctor d = { .limits = { .memory_bytes = MIB(64), .pids = 64, .cpu_milli = 1000 } };
	auto_(orphans_done) struct orphans orphans = ORPHANS_INIT;
	int r;

	d.rundir = rundir_open(STORE_CREATE, &d.run_error);
	d.store = store_open(STORE_EXISTING, &d.store_error);
	try_groups(&d);
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		struct note n = { .ok = 1 };

		checks[i].look(&d, &n);
		tell(to, n.ok, checks[i].what, n.found, n.remedy);
	}
	r = sweep_find(d.rundir, d.store, &orphans, e);
	if (r == 0)
		r = tell_orphans(&d, &orphans, flags, to);
	close_p(&d.rundir);
	close_p(&d.store);
	return r;
}

int carrel_doctor(unsigned flags, void (*visit)(const struct carrel_finding *finding, void *data), void *data,
		  struct carrel_error *ret_e)
{
	const struct report to = { visit, data };
	struct err e = { .code = ERR_NONE };
	int r;

	if (flags & ~(unsigned)CARREL_DOCTOR_SWEEP)
		return error_out(err_set(&e, ERR_INVALID, "examine the host: unknown flags 0x%x", flags), &e, ret_e);
	r = doctor_examine(flags, &to, &e);
	return error_out(r, &e, ret_e);
}
