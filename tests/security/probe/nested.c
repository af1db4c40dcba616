/* SPDX-License-Identifier: Apache-2.0 */
/* nested.c - What a user namespace of one's own gives: mounts, and what they would uncover
 *
 * Theory of operation. With --nested-userns a program may become root of a namespace below the sandbox's, with every capability and with mount().
 * What it must still not get is what the sandbox covered: the masks of /proc, the read-only mounts, the root's own neighbours. Each attack
 * makes its namespaces first; without the option that already fails. The mounts made here are in a mount namespace of their own, marked private. */
#include "probe.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define WORK "/tmp/nested"

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	(void)close(fd);
	return r;
}

static int become_nested_root(void)
{
	char uid[64], gid[64];

	(void)snprintf(uid, sizeof(uid), "0 %u 1\n", geteuid());
	(void)snprintf(gid, sizeof(gid), "0 %u 1\n", getegid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) < 0)
		return -errno;
	(void)put("/proc/self/setgroups", "deny");
	if (put("/proc/self/uid_map", uid) < 0 || put("/proc/self/gid_map", gid) < 0)
		return -EPERM;
	(void)mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	(void)mkdir(WORK, 0755);
	return 0;
}

static enum verdict call_attack(const void *arg)
{
	enum verdict (*const *f)(void) = arg;

	return (*f)();
}

/* Run @f as pid 1 and root of namespaces below the sandbox's. */
static enum verdict nested(enum verdict (*f)(void))
{
	int r = become_nested_root();

	if (r < 0)
		return harmless("no namespace: %s", errno_name(-r));
	return in_child(call_attack, &f);
}

/* The masked paths, seen through another mount of the same file system */
static enum verdict uncovered(const char *proc)
{
	char paths[2048], full[512], text[16];

	if (!fact("PROBE_HIDDEN"))
		return untried("no PROBE_HIDDEN");
	(void)snprintf(paths, sizeof(paths), "%s", fact("PROBE_HIDDEN"));
	for (char *path = strtok(paths, " "); path; path = strtok(NULL, " ")) {
		struct stat st;

		(void)snprintf(full, sizeof(full), "%s%s", proc, path + strlen("/proc"));
		if (stat(full, &st) == 0 && (S_ISDIR(st.st_mode) ? st.st_nlink > 2 : read_text(full, text, sizeof(text)) > 0))
			return succeeded("%s can be read", full);
	}
	return harmless("mounted, and what is masked stays so");
}

static enum verdict fresh_proc(void)
{
	if (mount("proc", WORK, "proc", 0, NULL) == 0)
		return uncovered(WORK);
	return harmless("mount proc: %s", errno_name(errno));
}

static enum verdict fresh_proc_subset(void)
{
	if (mount("proc", WORK, "proc", 0, "subset=pid") == 0)
		return uncovered(WORK);
	return harmless("mount proc subset=pid: %s", errno_name(errno));
}

static enum verdict fresh_sysfs(void)
{
	if (mount("sysfs", WORK, "sysfs", 0, NULL) == 0)
		return succeeded("sysfs was mounted");
	return harmless("mount sysfs: %s", errno_name(errno));
}

static enum verdict fresh_devtmpfs(void)
{
	if (mount("devtmpfs", WORK, "devtmpfs", 0, NULL) == 0)
		return succeeded("devtmpfs was mounted");
	return harmless("mount devtmpfs: %s", errno_name(errno));
}

/* A control group file system is no break by itself; one whose controls open for writing is. */
static enum verdict fresh_cgroup(void)
{
	static const char *const types[][2] = {
		{ "cgroup2", NULL }, { "cgroup", "memory" }, { "cgroup", "devices" }, { "cgroup", "freezer" }, { "cgroup", "pids" },
	};
	static const char *const controls[] = { "release_agent", "devices.allow", "memory.limit_in_bytes", "memory.max", "cpu.cfs_quota_us", "cpu.max" };
	unsigned mounted = 0;

	for (size_t i = 0; i < COUNT(types); i++) {
		if (mount("none", WORK, types[i][0], 0, types[i][1]) < 0)
			continue;
		mounted++;
		for (size_t j = 0; j < COUNT(controls); j++) {
			char path[128];

			(void)snprintf(path, sizeof(path), WORK "/%s", controls[j]);
			if (open(path, O_WRONLY | O_CLOEXEC) >= 0)
				return succeeded("%s of %s opens for writing", controls[j], types[i][1] ? types[i][1] : types[i][0]);
		}
		(void)umount2(WORK, MNT_DETACH);
	}
	return harmless("%u of %zu mounted, none to write: %s", mounted, COUNT(types), errno_name(errno));
}

/* A group below one's own: a place where Carrel does not look for processes, and one that it must remove all the same. */
static enum verdict cgroup_children(void)
{
	static const char *const types[][2] = { { "cgroup2", NULL }, { "cgroup", "pids" }, { "cgroup", "memory" }, { "cgroup", "cpuacct" } };

	for (size_t i = 0; i < COUNT(types); i++) {
		if (mount("none", WORK, types[i][0], 0, types[i][1]) < 0)
			continue;
		if (mkdir(WORK "/child", 0755) == 0)
			return put(WORK "/child/cgroup.procs", "0") == 0 ? succeeded("moved into a group of its own in %s", types[i][0]) :
									   succeeded("made a group in %s", types[i][0]);
		(void)umount2(WORK, MNT_DETACH);
	}
	return harmless("%s", errno_name(errno));
}

/* As deep as a sweep that counts on a depth would not look. What is left on the host afterwards is for the test to see. */
static enum verdict cgroup_chain(void)
{
	char path[128] = WORK;
	unsigned depth = 0;

	if (mount("none", WORK, "cgroup", 0, "pids") < 0 && mount("none", WORK, "cgroup2", 0, NULL) < 0)
		return harmless("mount: %s", errno_name(errno));
	while (depth < 12 && strlen(path) + 3 < sizeof(path)) {
		(void)strcat(path, "/d");
		if (mkdir(path, 0755) < 0)
			break;
		depth++;
	}
	return depth ? succeeded("%u groups below each other", depth) : harmless("mkdir: %s", errno_name(errno));
}

static enum verdict unmount_masks(void)
{
	char paths[2048];

	if (!fact("PROBE_HIDDEN"))
		return untried("no PROBE_HIDDEN");
	(void)snprintf(paths, sizeof(paths), "%s", fact("PROBE_HIDDEN"));
	for (char *path = strtok(paths, " "); path; path = strtok(NULL, " "))
		if (umount2(path, MNT_DETACH) == 0)
			return succeeded("%s was unmounted", path);
	if (umount2("/proc/sys", MNT_DETACH) == 0 || umount2("/proc", MNT_DETACH) == 0 || umount2("/", MNT_DETACH) == 0)
		return succeeded("/proc/sys, /proc or / was unmounted");
	return harmless("umount: %s", errno_name(errno));
}

static enum verdict bind_without_masks(void)
{
	int fd;

	if (mount("/proc", WORK, NULL, MS_BIND, NULL) == 0)
		return uncovered(WORK);
	fd = (int)syscall(428 /* open_tree */, AT_FDCWD, "/proc", 1L /* OPEN_TREE_CLONE */);
	if (fd >= 0) {
		char path[32];

		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		return uncovered(path);
	}
	return harmless("bind of /proc: %s", errno_name(errno));
}

static enum verdict overlay_of_proc(void)
{
	if (mount("none", WORK, "overlay", 0, "lowerdir=/proc:/sys") == 0)
		return uncovered(WORK);
	return harmless("overlay: %s", errno_name(errno));
}

/* move_mount() of a mask to somewhere else leaves its place bare. */
static enum verdict move_masks(void)
{
	char paths[2048];

	if (!fact("PROBE_HIDDEN"))
		return untried("no PROBE_HIDDEN");
	(void)snprintf(paths, sizeof(paths), "%s /proc/sys", fact("PROBE_HIDDEN"));
	(void)mkdir(WORK "/to", 0755);
	for (char *path = strtok(paths, " "); path; path = strtok(NULL, " "))
		if (mount(path, WORK "/to", NULL, MS_MOVE, NULL) == 0)
			return succeeded("%s was moved", path);
	return harmless("move: %s", errno_name(errno));
}

static enum verdict remount_writable(void)
{
	static const char *const paths[] = { "/proc/sys", "/proc", "/sys", "/dev", "/sys/devices/system/cpu", NULL };
	const char *volume = fact("PROBE_RO");
	struct mount_attr clear = { .attr_clr = MOUNT_ATTR_RDONLY };

	for (size_t i = 0; i < COUNT(paths); i++) {
		const char *path = paths[i] ? paths[i] : volume;

		if (!path || strcmp(path, "/proc") == 0)
			continue;
		if (mount(NULL, path, NULL, MS_REMOUNT | MS_BIND, NULL) == 0)
			return succeeded("%s was remounted writable", path);
		if (syscall(442 /* mount_setattr */, AT_FDCWD, path, 0L, &clear, sizeof(clear)) == 0)
			return succeeded("%s was made writable", path);
		if (mount(path, WORK, NULL, MS_BIND, NULL) == 0 && mount(NULL, WORK, NULL, MS_REMOUNT | MS_BIND, NULL) == 0)
			return succeeded("a bind of %s was made writable", path);
		(void)umount2(WORK, MNT_DETACH);
	}
	return harmless("%s", errno_name(errno));
}

/* nosuid and nodev, off */
static enum verdict remount_with_devices(void)
{
	static const char *const paths[] = { "/", "/usr", "/tmp", "/dev/shm" };
	struct mount_attr clear = { .attr_clr = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID };

	for (size_t i = 0; i < COUNT(paths); i++)
		if (syscall(442, AT_FDCWD, paths[i], 0L, &clear, sizeof(clear)) == 0)
			return succeeded("%s allows devices and setuid now", paths[i]);
	return harmless("%s", errno_name(errno));
}

/* A new root, the sandbox's put below it and pulled apart there: what was under its masks and under its root? */
static enum verdict pivot_and_peel(void)
{
	if (mount("none", WORK, "tmpfs", 0, NULL) < 0)
		return harmless("mount tmpfs: %s", errno_name(errno));
	(void)mkdir(WORK "/old", 0755);
	if (syscall(__NR_pivot_root, WORK, WORK "/old") < 0)
		return harmless("pivot_root: %s", errno_name(errno));
	(void)!chdir("/");
	if (umount2("/old/proc/sys", MNT_DETACH) == 0 || umount2("/old/proc", MNT_DETACH) == 0 || umount2("/old/tmp", MNT_DETACH) == 0)
		return succeeded("a cover came off");
	if (fact("PROBE_MARKER")) {
		char marker[512];

		(void)snprintf(marker, sizeof(marker), "/old%s", fact("PROBE_MARKER"));
		if (access(marker, F_OK) == 0)
			return succeeded("%s is there", marker);
	}
	return umount2("/old", MNT_DETACH) == 0 && access("/old/usr", F_OK) == 0 ? succeeded("something was below the root") :
										     harmless("nothing comes off");
}

static enum verdict nested_devices(void)
{
	return mknod(WORK "/mem", S_IFCHR | 0666, 0x101) == 0 ? succeeded("made a device") : harmless("mknod: %s", errno_name(errno));
}

static enum verdict nested_sysctls(void)
{
	static const char *const paths[] = { "/proc/sys/kernel/core_pattern", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/kernel/hostname" };

	for (size_t i = 0; i < COUNT(paths); i++)
		if (open(paths[i], O_WRONLY | O_CLOEXEC) >= 0)
			return succeeded("%s opens for writing", paths[i]);
	return harmless("%s", errno_name(errno));
}

/* The parent's namespaces, entered from below with every capability of the nested one */
static enum verdict nested_setns(void)
{
	static const char *const names[] = { "mnt", "net", "user" };
	char path[64];

	for (size_t i = 0; i < COUNT(names); i++) {
		int fd;

		(void)snprintf(path, sizeof(path), "/proc/1/ns/%s", names[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			return succeeded("%s opens", path);
	}
	return harmless("/proc/1/ns: %s", errno_name(errno));
}

#define NESTED(name_) \
	static enum verdict nested_##name_(void) { return nested(name_); }
NESTED(fresh_proc)
NESTED(fresh_proc_subset)
NESTED(fresh_sysfs)
NESTED(fresh_devtmpfs)
NESTED(fresh_cgroup)
NESTED(cgroup_children)
NESTED(cgroup_chain)
NESTED(unmount_masks)
NESTED(bind_without_masks)
NESTED(overlay_of_proc)
NESTED(move_masks)
NESTED(remount_writable)
NESTED(remount_with_devices)
NESTED(pivot_and_peel)
static enum verdict nested_mknod(void) { return nested(nested_devices); }
static enum verdict nested_sysctl(void) { return nested(nested_sysctls); }
static enum verdict nested_enter(void) { return nested(nested_setns); }

/* Not a break with --nested-userns, where it has to succeed: then the attacks above did what they say. */
static enum verdict mounted(void)
{
	return mount("none", WORK, "tmpfs", 0, NULL) == 0 ? succeeded("a tmpfs was mounted") : harmless("mount: %s", errno_name(errno));
}
static enum verdict nested_mount(void) { return nested(mounted); }

#define ROW(name_, answers_) { #name_, name_, 0, answers_ }
const struct attack nested_attacks[] = {
	ROW(nested_fresh_proc, "uncovers masked paths"),
	ROW(nested_fresh_proc_subset, "uncovers masked paths"),
	ROW(nested_fresh_sysfs, "the host's hardware"),
	ROW(nested_fresh_devtmpfs, "devices"),
	ROW(nested_fresh_cgroup, "CVE-2022-0492"),
	ROW(nested_cgroup_children, "leaves the group that is killed with it"),
	ROW(nested_unmount_masks, "uncovers masked paths"),
	ROW(nested_bind_without_masks, "uncovers masked paths"),
	ROW(nested_overlay_of_proc, "uncovers masked paths"),
	ROW(nested_move_masks, "uncovers masked paths"),
	ROW(nested_remount_writable, "read-only mounts"),
	ROW(nested_remount_with_devices, "devices, setuid binaries"),
	ROW(nested_pivot_and_peel, "the host's root"),
	ROW(nested_mknod, "devices"),
	ROW(nested_sysctl, "CVE-2025-31133"),
	ROW(nested_enter, "CVE-2026-43403"),
	ROW(nested_mount, "mounts at all"),
	{ "nested_cgroup_chain", nested_cgroup_chain, BY_NAME, "groups that stay on the host" },
	{ NULL, NULL, 0, NULL },
};
