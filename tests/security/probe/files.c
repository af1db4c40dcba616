/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - Ways to the host's files: the root, /proc, /sys, /dev, volumes, setuid programs, leaked descriptors
 *
 * Theory of operation. The test tells what to look for (fact()): a file that exists on the host and not inside, the masked paths as --dry-run
 * prints them, a read-only volume, programs that an image brought. Whatever opens for writing counts, and is not written. */
#include "probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* --- The root ---------------------------------------------------------------------------------------------------------------- */

/* A way that does not exist leads nowhere else. */
static bool is_elsewhere(const char *way)
{
	struct statx x, y;

	if (statx(AT_FDCWD, way, 0, STATX_INO | 0x1000U /* STATX_MNT_ID */, &x) < 0)
		return false;
	return statx(AT_FDCWD, "/", 0, STATX_INO | 0x1000U, &y) < 0 || x.stx_ino != y.stx_ino || x.stx_mnt_id != y.stx_mnt_id ||
	       x.stx_dev_minor != y.stx_dev_minor || x.stx_dev_major != y.stx_dev_major;
}

/* What is stacked on the root is where ".." of the root leads: an old root that was not detached is found there. */
static enum verdict dotdot_of_root(void)
{
	static const char *const ways[] = { "/..", "/../..", "/proc/self/root", "/proc/self/root/..", "/proc/self/cwd/../../../../../.." };
	char marker[512];

	for (size_t i = 0; i < COUNT(ways); i++) {
		if (is_elsewhere(ways[i]))
			return succeeded("'%s' is not '/'", ways[i]);
		(void)snprintf(marker, sizeof(marker), "%s%s", ways[i], fact("PROBE_MARKER") ? fact("PROBE_MARKER") : "/nowhere");
		if (access(marker, F_OK) == 0)
			return succeeded("%s is there", marker);
	}
	return harmless("'/..' is '/'");
}

static enum verdict host_file(void)
{
	const char *marker = fact("PROBE_MARKER");

	if (!marker)
		return untried("no PROBE_MARKER");
	return access(marker, F_OK) == 0 ? succeeded("%s is there", marker) : harmless("%s: %s", marker, errno_name(errno));
}

/* True for mount points that a sandbox has by itself, or that the test asked for. */
static bool is_own_mount(const char *at)
{
	static const char *const own[] = { "/", "/usr", "/tmp", "/proc", "/sys", "/dev", "/etc/hostname", "/etc/hosts", "/etc/resolv.conf" };
	const char *asked = fact("PROBE_MOUNTS");

	for (size_t i = 0; i < COUNT(own); i++)
		if (strcmp(at, own[i]) == 0)
			return true;
	if (strncmp(at, "/proc/", 6) == 0 || strncmp(at, "/dev/", 5) == 0 || strcmp(at, "/sys/devices/system/cpu") == 0)
		return true;
	while (asked && *asked) {
		size_t n = strcspn(asked, " ");

		if (strncmp(at, asked, n) == 0 && (at[n] == '\0' || at[n] == '/'))
			return true;
		asked += n + strspn(asked + n, " ");
	}
	return false;
}

static enum verdict host_mounts(void)
{
	static char text[65536];
	unsigned roots = 0;
	long n = read_text("/proc/self/mountinfo", text, sizeof(text));

	if (n <= 0)
		return untried("read mountinfo: %ld", n);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		char at[256] = "", type[64] = "";
		const char *rest = strstr(line, " - ");

		if (sscanf(line, "%*s %*s %*s %*s %255s", at) != 1 || !rest || sscanf(rest, " - %63s", type) != 1)
			return untried("cannot read '%s'", line);
		if (!is_own_mount(at))
			return succeeded("mountinfo has %s", at);
		roots += strcmp(at, "/") == 0;
		if (strncmp(type, "cgroup", 6) == 0)
			return succeeded("a cgroup file system at %s", at);
	}
	return roots == 1 ? harmless("only its own mounts") : succeeded("%u mounts on '/'", roots);
}

/* Hold a directory, make a root below it, climb out of the first by the second. */
static enum verdict chroot_escape(void)
{
	const char *marker = fact("PROBE_MARKER");
	int held = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (!marker)
		return untried("no PROBE_MARKER");
	(void)mkdir("/tmp/jail", 0700);
	if (chroot("/tmp/jail") < 0)
		return harmless("chroot: %s", errno_name(errno));
	(void)!fchdir(held);
	for (int i = 0; i < 64; i++)
		(void)!chdir("..");
	(void)!chroot(".");
	return access(marker, F_OK) == 0 ? succeeded("%s is there", marker) : harmless("climbed, and found nothing");
}

static enum verdict cwd_outside(void)
{
	char cwd[4096], up[256] = ".";
	long n = syscall(__NR_getcwd, cwd, sizeof(cwd));

	if (n < 0 || cwd[0] != '/')
		return succeeded("getcwd: %s", n < 0 ? errno_name(errno) : cwd);
	for (int i = 0; i < 64; i++)
		(void)strcat(up, "/..");
	return is_elsewhere(up) ? succeeded("above %s is another root", cwd) : harmless("in %s", cwd);
}

/* --- Descriptors ------------------------------------------------------------------------------------------------------------- */

static enum verdict leaked_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *entry;

	if (!d)
		return untried("open /proc/self/fd: %s", errno_name(errno));
	while ((entry = readdir(d))) {
		struct stat st;
		int fd = entry->d_name[0] == '.' ? dirfd(d) : atoi(entry->d_name);

		if (fd == dirfd(d))
			continue;
		if (fd > 2)
			return succeeded("descriptor %d is open", fd);
		if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
			return succeeded("descriptor %d is a directory", fd);
	}
	(void)closedir(d);
	return harmless("0, 1 and 2");
}

/* --- Masked and read-only paths ---------------------------------------------------------------------------------------------- */

/* Bytes or entries that show through; 0 if none */
static long shows_through(const char *path)
{
	struct dirent *entry;
	char text[256];
	struct stat st;
	long n = 0;
	DIR *d;

	if (stat(path, &st) < 0)
		return 0;
	if (!S_ISDIR(st.st_mode))
		return read_text(path, text, sizeof(text)) > 0;
	d = opendir(path);
	while (d && (entry = readdir(d)))
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	if (d)
		(void)closedir(d);
	return n;
}

/* PROBE_HIDDEN: paths below /proc, a space between them */
static enum verdict masks_by(const char *way)
{
	char paths[2048], full[512];
	unsigned n = 0;

	if (!fact("PROBE_HIDDEN"))
		return untried("no PROBE_HIDDEN");
	(void)snprintf(paths, sizeof(paths), "%s", fact("PROBE_HIDDEN"));
	for (char *path = strtok(paths, " "); path; path = strtok(NULL, " ")) {
		(void)snprintf(full, sizeof(full), "%s%s", way, path + strlen("/proc"));
		if (shows_through(full))
			return succeeded("%s is not empty", full);
		n += access(full, F_OK) == 0;
	}
	return harmless("%u of them are there, and empty", n);
}

static enum verdict masked_paths(void) { return masks_by("/proc"); }

static enum verdict masked_paths_redirected(void)
{
	static const char *const ways[] = { "/proc/self/..", "/proc/self/root/proc", "/proc/self/task/../..", "/proc/thread-self/../../..",
					    "/dev/fd/../..", "/proc/1/..", "/..", "/tmp/..", "/dev/.." };
	enum verdict v = HARMLESS;

	for (size_t i = 0; i < COUNT(ways) && v == HARMLESS; i++)
		v = masks_by(ways[i]);
	return v;
}

static enum verdict opens_for_write(const char *const *paths, size_t n)
{
	unsigned there = 0;

	for (size_t i = 0; i < n; i++) {
		int fd = open(paths[i], O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

		if (fd >= 0)
			return succeeded("%s opens for writing", paths[i]);
		there += errno != ENOENT;
	}
	return harmless("%u of %zu are there, last: %s", there, n, errno_name(errno));
}

#define WRITES(name_, ...)                                            \
	static enum verdict name_(void)                               \
	{                                                             \
		static const char *const paths[] = { __VA_ARGS__ };   \
		return opens_for_write(paths, COUNT(paths));          \
	}
WRITES(core_pattern, "/proc/sys/kernel/core_pattern", "/proc/self/../sys/kernel/core_pattern", "/proc/self/root/proc/sys/kernel/core_pattern")
WRITES(modprobe, "/proc/sys/kernel/modprobe", "/proc/sys/kernel/usermodehelper/bset", "/proc/sys/kernel/usermodehelper/inheritable",
       "/proc/sys/kernel/poweroff_cmd")
WRITES(binfmt, "/proc/sys/fs/binfmt_misc/register", "/proc/sys/fs/binfmt_misc/status")
WRITES(sysrq, "/proc/sysrq-trigger", "/proc/self/../sysrq-trigger", "/proc/sys/kernel/sysrq")
WRITES(uevent_helper, "/sys/kernel/uevent_helper", "/proc/sys/kernel/hotplug", "/sys/kernel/fscaps", "/sys/kernel/profiling")
WRITES(release_agent, "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/pids/release_agent",
       "/sys/fs/cgroup/devices/devices.allow", "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/cgroup.subtree_control")
WRITES(proc_controls, "/proc/mtrr", "/proc/kmsg", "/proc/kcore", "/proc/acpi/wakeup", "/proc/scsi/scsi", "/proc/irq/default_smp_affinity",
       "/proc/bus/pci/00/00.0", "/proc/sys/vm/drop_caches", "/proc/sys/vm/panic_on_oom", "/proc/sys/kernel/panic", "/proc/slabinfo",
       "/proc/timer_list", "/proc/dynamic_debug/control", "/proc/fs/nfsd/threads")
WRITES(host_disks, "/dev/sda", "/dev/vda", "/dev/nvme0n1", "/dev/loop0", "/dev/loop-control", "/dev/mapper/control", "/dev/zram0")
WRITES(host_memory, "/dev/mem", "/dev/kmem", "/dev/port", "/proc/kcore")
WRITES(host_kmsg, "/dev/kmsg", "/proc/kmsg", "/dev/console")

static enum verdict sysctl_writable(void)
{
	char first[256];
	int n = walk_writable("/proc/sys", first);

	return n ? succeeded("%d below /proc/sys open for writing, %s is one", n, first) : harmless("none below /proc/sys");
}

static enum verdict sys_writable(void)
{
	char first[256];
	int n = walk_writable("/sys", first);

	return n ? succeeded("%d below /sys open for writing, %s is one", n, first) : harmless("none below /sys");
}

static enum verdict sys_is_minimal(void)
{
	static const struct {
		const char *dir, *only;
	} level[] = { { "/sys", "devices" }, { "/sys/devices", "system" }, { "/sys/devices/system", "cpu" } };

	for (size_t i = 0; i < COUNT(level); i++) {
		DIR *d = opendir(level[i].dir);
		struct dirent *entry;

		while (d && (entry = readdir(d)))
			if (entry->d_name[0] != '.' && strcmp(entry->d_name, level[i].only) != 0)
				return succeeded("%s/%s is there", level[i].dir, entry->d_name);
		if (d)
			(void)closedir(d);
	}
	return harmless("/sys/devices/system/cpu alone");
}

/* --- What tells about the host ----------------------------------------------------------------------------------------------- */

static enum verdict reads(const char *const *paths, size_t n)
{
	char text[256];
	long r = 0;

	for (size_t i = 0; i < n; i++) {
		r = read_text(paths[i], text, sizeof(text));
		if (r > 0)
			return succeeded("%s: %.60s", paths[i], text);
	}
	return harmless("last: %s", errno_name(r < 0 ? (int)-r : 0));
}

#define READS(name_, ...)                                             \
	static enum verdict name_(void)                               \
	{                                                             \
		static const char *const paths[] = { __VA_ARGS__ };   \
		return reads(paths, COUNT(paths));                    \
	}
READS(kernel_log, "/dev/kmsg", "/proc/kmsg")
READS(kernel_memory, "/proc/kcore", "/dev/mem")
READS(host_timers, "/proc/timer_list", "/proc/sched_debug", "/proc/interrupts", "/proc/keys")

static enum verdict kernel_addresses(void)
{
	static char text[65536];
	long n = read_text("/proc/kallsyms", text, sizeof(text));

	for (char *line = n > 0 ? strtok(text, "\n") : NULL; line; line = strtok(NULL, "\n"))
		if (strtoull(line, NULL, 16) > 0xffff000000000000ULL)
			return succeeded("kallsyms: %.60s", line);
	return harmless("kallsyms: no addresses in %ld bytes", n);
}

static enum verdict host_name(void)
{
	char name[128] = "";

	if (!fact("PROBE_HOSTNAME"))
		return untried("no PROBE_HOSTNAME");
	(void)gethostname(name, sizeof(name) - 1);
	if (strcmp(name, fact("PROBE_HOSTNAME")) == 0)
		return succeeded("it is the host's: %s", name);
	return harmless("it is '%s'", name);
}

/* The name that is there already: what it changes, if it works, is nothing. */
static enum verdict set_host_name(void)
{
	char name[128] = "";

	(void)gethostname(name, sizeof(name) - 1);
	return sethostname(name, strlen(name)) == 0 ? succeeded("sethostname worked") : harmless("sethostname: %s", errno_name(errno));
}

static enum verdict host_processes(void)
{
	const char *name = fact("PROBE_PROCESS");
	DIR *d = opendir("/proc");
	struct dirent *entry;
	unsigned n = 0;

	if (!name || !d)
		return untried("no PROBE_PROCESS or no /proc");
	while ((entry = readdir(d))) {
		char path[300], line[1024];
		long len;

		(void)snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
		len = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? read_text(path, line, sizeof(line)) : 0;
		n += len > 0;
		if (len > 0 && memmem(line, (size_t)len, name, strlen(name)))
			return succeeded("process %s of the host", entry->d_name);
	}
	return is_init_ours() ? harmless("%u processes, pid 1 is carrel-init", n) : succeeded("pid 1 is not carrel-init");
}

/* Ids of the sandbox as the host has them; the test says from where on they are nobody's. */
static enum verdict uid_range(void)
{
	unsigned long inside, outside, count;
	char map[256];

	if (read_text("/proc/self/uid_map", map, sizeof(map)) <= 0 || sscanf(map, "%lu %lu %lu", &inside, &outside, &count) != 3)
		return untried("cannot read uid_map");
	if (!fact("PROBE_UID_MIN") || outside >= strtoul(fact("PROBE_UID_MIN"), NULL, 10))
		return harmless("root is %lu on the host", outside);
	return succeeded("root is %lu on the host", outside);
}

static enum verdict cgroup_names(void)
{
	static char text[65536];
	const char *name = fact("PROBE_CGROUP");

	if (!name)
		return untried("no PROBE_CGROUP");
	if (read_text("/proc/self/cgroup", text, sizeof(text)) > 0 && strstr(text, name))
		return succeeded("the host's cgroup %s is named", name);
	return harmless("the host's names do not show");
}

static enum verdict host_shm(void)
{
	const char *key = fact("PROBE_SHM_KEY");
	int id = key ? shmget((key_t)atoi(key), 0, 0) : -1;

	if (!key)
		return untried("no PROBE_SHM_KEY");
	return id >= 0 ? succeeded("System V segment %d of the host", id) : harmless("shmget: %s", errno_name(errno));
}

static enum verdict host_dev_shm(void)
{
	const char *name = fact("PROBE_DEV_SHM");

	if (!name)
		return untried("no PROBE_DEV_SHM");
	return access(name, F_OK) == 0 ? succeeded("%s is there", name) : harmless("%s: %s", name, errno_name(errno));
}

/* --- Devices ----------------------------------------------------------------------------------------------------------------- */

static enum verdict make_devices(void)
{
	static const struct {
		const char *name;
		mode_t type;
		unsigned major, minor;
	} devices[] = {
		{ "sda", S_IFBLK, 8, 0 },  { "vda", S_IFBLK, 254, 0 }, { "loop0", S_IFBLK, 7, 0 }, { "mem", S_IFCHR, 1, 1 },
		{ "port", S_IFCHR, 1, 4 }, { "kmsg", S_IFCHR, 1, 11 }, { "tty1", S_IFCHR, 4, 1 },  { "ptmx", S_IFCHR, 5, 2 },
		{ "kvm", S_IFCHR, 10, 232 }, { "fuse", S_IFCHR, 10, 229 }, { "null", S_IFCHR, 1, 3 },
	};
	static const char *const dirs[] = { "/tmp", "/dev/shm", "/var/tmp", "/root", "/dev" };
	char path[64];

	for (size_t d = 0; d < COUNT(dirs); d++) {
		for (size_t i = 0; i < COUNT(devices); i++) {
			int made, fd;

			(void)snprintf(path, sizeof(path), "%s/probe-%s", dirs[d], devices[i].name);
			made = mknod(path, devices[i].type | 0666, makedev(devices[i].major, devices[i].minor));
			if (made < 0)
				continue;
			fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
			(void)unlink(path);
			return fd >= 0 ? succeeded("made and opened %s", path) : succeeded("made %s (open: %s)", path, errno_name(errno));
		}
	}
	return harmless("mknod: %s", errno_name(errno));
}

static enum verdict device_list(void)
{
	static const char *const own[] = { "null", "zero", "full", "random", "urandom", "tty" };
	DIR *d = opendir("/dev");
	struct dirent *entry;

	if (!d)
		return untried("no /dev");
	while ((entry = readdir(d))) {
		bool known = entry->d_type != DT_CHR && entry->d_type != DT_BLK;

		for (size_t i = 0; i < COUNT(own) && !known; i++)
			known = strcmp(entry->d_name, own[i]) == 0;
		if (!known)
			return succeeded("/dev/%s is there", entry->d_name);
	}
	(void)closedir(d);
	return harmless("null zero full random urandom tty");
}

/* A regular file at /dev/null would collect what everybody throws away; a directory at /dev/shm/.. would redirect. */
static enum verdict plant_in_dev(void)
{
	int fd = open("/dev/probe", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0 || unlink("/dev/null") == 0 || rename("/dev/zero", "/dev/probe") == 0 || mkdir("/dev/block", 0755) == 0)
		return succeeded("/dev can be written");
	return harmless("/dev: %s", errno_name(errno));
}

/* Device files that an image brought: PROBE_NODES names a directory of them. */
static enum verdict image_devices(void)
{
	const char *dir = fact("PROBE_NODES");
	DIR *d = dir ? opendir(dir) : NULL;
	struct dirent *entry;
	unsigned n = 0;

	if (!d)
		return untried("no PROBE_NODES");
	while ((entry = readdir(d))) {
		char path[300];

		if (entry->d_type != DT_CHR && entry->d_type != DT_BLK)
			continue;
		n++;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		if (open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY) >= 0)
			return succeeded("%s opens", path);
	}
	return n ? harmless("%u nodes, last: %s", n, errno_name(errno)) : untried("no nodes in %s", dir);
}

/* --- Gaining rights ---------------------------------------------------------------------------------------------------------- */

static int copy_self(const char *to)
{
	int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	char buffer[65536];
	ssize_t n = -1;

	while (in >= 0 && out >= 0 && (n = read(in, buffer, sizeof(buffer))) > 0)
		if (write(out, buffer, (size_t)n) != n)
			return -1;
	(void)close(in);
	(void)close(out);
	return n == 0 ? 0 : -1;
}

static enum verdict run_as_user(const void *arg)
{
	const char *path = arg;
	pid_t pid;
	int status = 0;

	if (become(1000) < 0)
		return untried("become 1000: %s", errno_name(errno));
	pid = fork();
	if (pid == 0) {
		(void)execl(path, path, "--rights", NULL);
		_exit(UNTRIED);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) == UNTRIED)
		return untried("%s did not run", path);
	return WEXITSTATUS(status) == SUCCEEDED ? succeeded("%s gave rights", path) : harmless("%s gave none", path);
}

static enum verdict setuid_program(void)
{
	static const char path[] = "/var/tmp/probe-setuid";

	if (geteuid() != 0)
		return harmless("not root: another attack has a file of the image"); /* see image_setuid */
	if (copy_self(path) < 0 || chmod(path, 06755) < 0)
		return untried("make %s: %s", path, errno_name(errno));
	return in_child(run_as_user, path);
}

static enum verdict file_capabilities(void)
{
	static const char path[] = "/var/tmp/probe-capable";
	struct vfs_cap_data cap = { .magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE, .data = { { .permitted = 1U << CAP_CHOWN } } };

	if (geteuid() != 0)
		return harmless("not root: another attack has a file of the image");
	if (copy_self(path) < 0)
		return untried("make %s: %s", path, errno_name(errno));
	if (setxattr(path, "security.capability", &cap, sizeof(cap), 0) < 0)
		return harmless("set file capabilities: %s", errno_name(errno));
	return in_child(run_as_user, path);
}

/* What root inside holds, and what an exec could still give: rights that open the kernel's less used code (src/jail/caps.c says which stay) */
static enum verdict dangerous_capabilities(void)
{
	static const unsigned dangerous[] = { CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_BOOT, CAP_SYS_TIME,
					      CAP_SYS_RESOURCE, CAP_NET_ADMIN, CAP_NET_RAW, CAP_DAC_READ_SEARCH, CAP_SYSLOG, CAP_BPF, CAP_PERFMON,
					      CAP_SYS_NICE, CAP_IPC_LOCK, CAP_MAC_ADMIN, CAP_LINUX_IMMUTABLE, CAP_CHECKPOINT_RESTORE };

	for (size_t i = 0; i < COUNT(dangerous); i++)
		if (prctl(PR_CAPBSET_READ, dangerous[i]) == 1)
			return succeeded("capability %u is in the bounding set", dangerous[i]);
	return harmless("none of %zu", COUNT(dangerous));
}

static enum verdict new_privileges(void)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? harmless("no_new_privs is set") : succeeded("no_new_privs is not set");
}

static enum verdict image_setuid(void) { return fact("PROBE_SETUID") ? in_child(run_as_user, fact("PROBE_SETUID")) : untried("no PROBE_SETUID"); }
static enum verdict image_capable(void) { return fact("PROBE_CAPABLE") ? in_child(run_as_user, fact("PROBE_CAPABLE")) : untried("no PROBE_CAPABLE"); }

/* --- Volumes ----------------------------------------------------------------------------------------------------------------- */

static enum verdict write_read_only_volume(void)
{
	const char *dir = fact("PROBE_RO");
	char file[512], other[512], proc[64];
	struct timespec now[2] = { { 0, UTIME_NOW }, { 0, UTIME_NOW } };
	int fd;

	if (!dir)
		return untried("no PROBE_RO");
	(void)snprintf(file, sizeof(file), "%s/file", dir);
	(void)snprintf(other, sizeof(other), "%s/other", dir);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return untried("open %s: %s", file, errno_name(errno));
	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	if (open(file, O_WRONLY | O_CLOEXEC) >= 0 || open(proc, O_RDWR | O_CLOEXEC) >= 0)
		return succeeded("%s opens for writing", file);
	if (open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) >= 0 || mkdir(other, 0777) == 0 || symlink("x", other) == 0)
		return succeeded("%s was made", other);
	if (chmod(file, 04777) == 0 || fchmod(fd, 04777) == 0 || utimensat(AT_FDCWD, file, now, 0) == 0 || futimens(fd, now) == 0)
		return succeeded("%s was changed", file);
	if (link(file, other) == 0 || rename(file, other) == 0 || unlink(file) == 0 || truncate(file, 0) == 0)
		return succeeded("%s was moved", file);
	if (fsetxattr(fd, "user.probe", "x", 1, 0) == 0 || chown(file, geteuid(), getegid()) == 0)
		return succeeded("%s was marked", file);
	if (mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED)
		return succeeded("%s was mapped for writing", file);
	return harmless("last: %s", errno_name(errno));
}

/* Makes a setuid file on a writable volume. The test looks at it from the host: what matters is whose it is there. */
static enum verdict plant_setuid(void)
{
	const char *path = fact("PROBE_PLANT");

	if (!path)
		return untried("no PROBE_PLANT");
	if (copy_self(path) < 0 || chmod(path, 06755) < 0)
		return harmless("make %s: %s", path, errno_name(errno));
	return geteuid() == 0 && in_child(run_as_user, path) == SUCCEEDED ? succeeded("%s gave rights", path) :
									    harmless("%s gave none here", path);
}

#define ROW(name_, answers_) { #name_, name_, 0, answers_ }
const struct attack file_attacks[] = {
	ROW(dotdot_of_root, "an old root that stays mounted"),
	ROW(host_file, "the host's files"),
	ROW(host_mounts, "the host's mounts"),
	ROW(chroot_escape, "escape by chroot"),
	ROW(cwd_outside, "CVE-2024-21626"),
	ROW(leaked_descriptors, "CVE-2024-21626"),
	ROW(masked_paths, "CVE-2025-31133"),
	ROW(masked_paths_redirected, "CVE-2025-52565, CVE-2025-52881"),
	ROW(core_pattern, "CVE-2025-31133"),
	ROW(modprobe, "a program that the kernel runs"),
	ROW(binfmt, "a program that the kernel runs"),
	ROW(sysrq, "CVE-2025-52881"),
	ROW(uevent_helper, "a program that the kernel runs"),
	ROW(release_agent, "CVE-2022-0492"),
	ROW(proc_controls, "CVE-2018-10892, CVE-2017-16539"),
	ROW(host_disks, "devices"),
	ROW(host_memory, "devices"),
	ROW(host_kmsg, "devices"),
	ROW(sysctl_writable, "CVE-2025-31133"),
	ROW(sys_writable, "the host's hardware"),
	ROW(sys_is_minimal, "the host's hardware"),
	ROW(kernel_log, "other tenants' doings"),
	ROW(kernel_memory, "every process of the machine"),
	ROW(host_timers, "CVE-2017-5967, keystroke timing"),
	ROW(kernel_addresses, "defeats the kernel's address randomisation"),
	ROW(host_name, "the host's name"),
	ROW(set_host_name, "the host's name"),
	ROW(host_processes, "the host's processes"),
	ROW(uid_range, "root inside that is root outside"),
	ROW(cgroup_names, "the host's cgroups"),
	ROW(host_shm, "the host's System V IPC"),
	ROW(host_dev_shm, "the host's shared memory"),
	ROW(make_devices, "devices"),
	ROW(device_list, "devices"),
	ROW(plant_in_dev, "CVE-2025-52565"),
	ROW(setuid_program, "setuid binaries"),
	ROW(file_capabilities, "setuid binaries"),
	ROW(dangerous_capabilities, "kernel code that asks for rights in a namespace"),
	ROW(new_privileges, "setuid binaries"),
	ROW(write_read_only_volume, "read-only volumes"),
	{ "image_devices", image_devices, BY_NAME, "device nodes in images" },
	{ "image_setuid", image_setuid, BY_NAME, "setuid binaries in images" },
	{ "image_capable", image_capable, BY_NAME, "file capabilities in images" },
	{ "plant_setuid", plant_setuid, BY_NAME, "setuid binaries on volumes" },
	{ NULL, NULL, 0, NULL },
};
