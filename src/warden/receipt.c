/* SPDX-License-Identifier: Apache-2.0 */
/* receipt.c - What isolates a process, as the kernel tells it
 *
 * Theory of operation. Runs in the caller's process, outside of the sandbox, on an exec that lives; best on one that is held, which has every
 * restriction in force and has not executed anything yet. Nothing here looks at the spec or the plan: a receipt that repeats what was asked
 * for proves nothing. One row of layers[] reads one layer; a row that cannot be read says so and counts as missing.
 *
 * The process is found by its pid inside, among the children of init, and held by its /proc directory (procfs.c). Its root is looked at with
 * statfs() and by names of one component that are never followed: what is behind a path belongs to the sandbox. Two facts have no file in
 * /proc. Landlock is what init answers, and its evidence says that it is init's word. What image files belong to is asked of one of them. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/sys.h"
#include "jail/caps.h"
#include "layers/store.h"
#include "warden/internal.h"
#include "warden/procfs.h"

#define EVIDENCE_MAX 192 /* bytes with NUL: what fits beside a name on two lines of a terminal */
#define SMALL_MAX KIB(64) /* bytes of /proc files other than mountinfo */
#define CAP_SYS_ADMIN_BIT (UINT64_C(1) << 21) /* include/uapi/linux/capability.h */
#define CAP_SYS_PTRACE_BIT (UINT64_C(1) << 19)

/** struct line - One layer as it was found */
struct line {
	const char *name;
	enum carrel_layer_state state;
	char evidence[EVIDENCE_MAX], why[EVIDENCE_MAX];
};

/** struct subject - The process, and what most layers need of it */
struct subject {
	const struct carrel_sandbox *sb;
	int proc, init; /* directories below /proc */
	int root;	/* the sandbox's, O_PATH */
	char status[PROCFS_STATUS_MAX];
	char cgroups[4096];
	struct buf mountinfo;
	struct procfs_mount *mounts; /* cut from mountinfo */
	size_t num_mounts;
};

/** struct layer_kind - How one layer is read; @file is the reader's own parameter */
struct layer_kind {
	const char *name;
	void (*read)(const struct subject *s, const struct layer_kind *kind, struct line *l);
	const char *file;
};

struct carrel_receipt {
	size_t count;
	struct carrel_layer *layers;
	struct line *lines;
};

/* --- Ways to say it --------------------------------------------------------------------------------------------------------- */

static void printf_like(2, 3) say(struct line *l, const char *fmt, ...)
{
	size_t len = strlen(l->evidence);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(l->evidence + len, sizeof(l->evidence) - len, fmt, ap); /* evidence that is too long is cut */
	va_end(ap);
}

static void printf_like(3, 4) lacks(struct line *l, enum carrel_layer_state state, const char *fmt, ...)
{
	va_list ap;

	l->state = state;
	va_start(ap, fmt);
	(void)vsnprintf(l->why, sizeof(l->why), fmt, ap);
	va_end(ap);
}

static void unreadable(struct line *l, const char *what, int r)
{
	lacks(l, CARREL_LAYER_MISSING, "cannot read %s: %s", what, err_errno_text(-r));
}

/* A layer that nobody asked for and that is off is no news. */
static void leave_out(struct line *l)
{
	l->name = NULL;
}

/* Names of processes and devices are the only bytes here that a sandbox may have chosen; a terminal must not obey them. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f)
			*text = '?';
}

static int read_small(int dir, const char *file, struct buf *out, struct line *l)
{
	int r = procfs_read(dir, file, out);

	if (r < 0)
		unreadable(l, file, r);
	return r;
}

static const struct procfs_mount *mount_at(const struct subject *s, const char *target)
{
	for (size_t i = s->num_mounts; i > 0; i--) /* the last one covers the others */
		if (str_eq(s->mounts[i - 1].target, target))
			return &s->mounts[i - 1];
	return NULL;
}

/* --- Namespaces and ids ----------------------------------------------------------------------------------------------------- */

static int read_link(int dir, const char *file, char *ret, size_t size)
{
	ssize_t n = readlinkat(dir, file, ret, size - 1);

	if (n < 0)
		return -errno;
	ret[n] = '\0';
	return 0;
}

/* Ours, and for who may read it that of the machine's first process: a caller may live in namespaces of its own. */
static void read_namespace(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	char theirs[64], ours[64], first[64], path[40];
	int r = read_link(s->proc, kind->file, theirs, sizeof(theirs));

	(void)snprintf(path, sizeof(path), "/proc/self/%s", kind->file);
	if (r == 0)
		r = read_link(AT_FDCWD, path, ours, sizeof(ours));
	if (r < 0) {
		unreadable(l, kind->file, r);
		return;
	}
	(void)snprintf(path, sizeof(path), "/proc/1/%s", kind->file);
	if (read_link(AT_FDCWD, path, first, sizeof(first)) < 0)
		memcpy(first, ours, sizeof(first));
	say(l, "%s, the caller's is %s", theirs, ours);
	if (!str_eq(theirs, ours) && !str_eq(theirs, first))
		return;
	if (str_eq(kind->file, "ns/net"))
		lacks(l, CARREL_LAYER_MISSING, "shares the host's network, as --network host asks");
	else
		lacks(l, CARREL_LAYER_MISSING, "shares the host's");
}

/* "0 1879048192 65536": first id inside, first outside, how many. */
static int parse_map(const char *line, uint64_t ret[3])
{
	char word[24];
	int r = 0;

	for (size_t i = 0; i < 3 && r == 0; i++) {
		size_t len = strcspn(line, " ");

		(void)snprintf(word, sizeof(word), "%.*s", (int)MIN(len, sizeof(word) - 1), line);
		r = str_to_u64(word, &ret[i]);
		line += len + (line[len] == ' ');
	}
	return r;
}

static void read_ids(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	static const char *const files[] = { "uid_map", "gid_map" };

	(void)kind;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		auto_buf struct buf text = BUF_INIT(SMALL_MAX);
		char map[64];
		uint64_t m[3];

		if (read_small(s->proc, files[i], &text, l) < 0)
			return;
		(void)procfs_squeeze(buf_text(&text), map, sizeof(map));
		say(l, "%s%s %s", i ? ", " : "", files[i], map);
		if (parse_map(map, m) < 0)
			lacks(l, CARREL_LAYER_MISSING, "%s has no id", files[i]);
		else if (m[0] == 0 && m[1] == 0)
			lacks(l, CARREL_LAYER_MISSING, "root inside is root outside");
		else if (m[2] == 1 && l->state == CARREL_LAYER_ON)
			lacks(l, CARREL_LAYER_PARTIAL, "a single id: an ordinary user started it, whose id root inside has");
	}
}

/* --- Files ------------------------------------------------------------------------------------------------------------------ */

static void read_root(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	const struct procfs_mount *root = mount_at(s, "/");
	size_t here = 0;

	(void)kind;
	if (!root) {
		lacks(l, CARREL_LAYER_MISSING, "no mount at /");
		return;
	}
	for (size_t i = 0; i < s->num_mounts; i++)
		here += str_eq(s->mounts[i].target, "/");
	say(l, "mountinfo: %s at / (%.100s), %zu mount%s there", root->type, root->options, here, here == 1 ? "" : "s");
	if (here > 1)
		lacks(l, CARREL_LAYER_MISSING, "another root is mounted at the same place");
	else if (!str_eq(root->type, "overlay"))
		lacks(l, CARREL_LAYER_MISSING, "not an overlay of its own");
	else if (!procfs_option(root->options, "nosuid") || !procfs_option(root->options, "nodev"))
		lacks(l, CARREL_LAYER_PARTIAL, "setuid files or device nodes of the image count");
}

/* An idmapped layer below an overlay is in no mountinfo; whom a file of it belongs to is the same fact. Only a whole range can be shifted. */
static void read_image_ids(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	static const char *const names[] = { "usr", "etc", "bin", "lib", "var" };
	char map[64] = "", text[256] = "";
	uint64_t m[3];
	struct stat st;

	(void)kind;
	if (fd_read_file_at(s->proc, "uid_map", text, sizeof(text)) < 0 ||
	    parse_map(procfs_squeeze(text, map, sizeof(map)), m) < 0 || m[2] == 1 || m[1] == 0) {
		leave_out(l);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (fstatat(s->root, names[i], &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
			continue;
		say(l, "/%s belongs to uid %u outside", names[i], (unsigned)st.st_uid);
		if (st.st_uid < m[1] || st.st_uid >= m[1] + m[2])
			lacks(l, CARREL_LAYER_PARTIAL, "no idmapped mount: the image's files belong to nobody inside");
		return;
	}
	leave_out(l);
}

static void read_masks(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	const char *open = NULL;
	size_t have = 0, covered = 0;

	(void)kind;
	for (size_t i = 0; i < jail_num_masks; i++) {
		const struct procfs_mount *m = mount_at(s, jail_masks[i].path);

		if (faccessat(AT_FDCWD, jail_masks[i].path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			continue; /* not every kernel has every path */
		have++;
		if (m && procfs_option(m->options, "ro"))
			covered++;
		else if (!open)
			open = jail_masks[i].path;
	}
	say(l, "mountinfo: %zu of %zu paths covered or read-only", covered, have);
	if (open)
		lacks(l, covered ? CARREL_LAYER_PARTIAL : CARREL_LAYER_MISSING, "%s is open", open);
}

static void list_devices(const struct subject *s, struct line *l)
{
	int fd = sys_openat(s->root, "dev", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat st;

	if (!dir) {
		close_p(&fd);
		return;
	}
	while ((entry = readdir(dir))) /* an ordinary user's nodes are mounts on files, so the entry's type would not tell */
		if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
			say(l, " %s", entry->d_name);
	(void)closedir(dir);
}

static void read_dev(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	const struct procfs_mount *dev = mount_at(s, "/dev");

	(void)kind;
	if (!dev) {
		lacks(l, CARREL_LAYER_MISSING, "the image's own directory");
		return;
	}
	say(l, "mountinfo: %s at /dev (%.60s);", dev->type, dev->options);
	list_devices(s, l);
	if (!str_eq(dev->type, "tmpfs"))
		lacks(l, CARREL_LAYER_MISSING, "not a directory of its own");
	else if (!procfs_option(dev->options, "ro"))
		lacks(l, CARREL_LAYER_PARTIAL, "it can be written");
}

/* --- Privileges ------------------------------------------------------------------------------------------------------------- */

static void read_nnp(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	char value[16] = "";
	int r = procfs_field(s->status, kind->file, value, sizeof(value));

	say(l, "%s %s", kind->file, value);
	if (r < 0 || !str_eq(value, "1"))
		lacks(l, CARREL_LAYER_MISSING, "setuid programs gain privileges");
}

static void read_seccomp(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	char value[16] = "", filters[16] = "";
	int r = procfs_field(s->status, kind->file, value, sizeof(value));

	say(l, "%s %s", kind->file, value);
	if (procfs_field(s->status, "Seccomp_filters:", filters, sizeof(filters)) == 0)
		say(l, ", %s filter%s", filters, str_eq(filters, "1") ? "" : "s");
	if (r < 0 || !str_eq(value, "2"))
		lacks(l, CARREL_LAYER_MISSING, "no filter: every system call of the kernel can be reached");
}

static int parse_hex(const char *s, uint64_t *ret)
{
	*ret = 0;
	for (; *s; s++) {
		unsigned digit = *s >= '0' && *s <= '9' ? (unsigned)(*s - '0') : (unsigned)(*s - 'a') + 10;

		if (digit > 15 || *ret >> 60)
			return -EINVAL;
		*ret = *ret << 4 | digit;
	}
	return 0;
}

static int bounding_set(const struct subject *s, char *value, size_t size, uint64_t *ret)
{
	int r = procfs_field(s->status, "CapBnd:", value, size);

	return r < 0 ? r : parse_hex(value, ret);
}

static void read_caps(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	char value[24] = "";
	uint64_t set;
	int r = bounding_set(s, value, sizeof(value), &set);

	(void)kind;
	if (r < 0) {
		unreadable(l, "CapBnd", r);
		return;
	}
	say(l, "CapBnd: %s, %d capabilities", value, __builtin_popcountll(set));
	if (set & CAP_SYS_ADMIN_BIT)
		lacks(l, CARREL_LAYER_MISSING, "CAP_SYS_ADMIN can be had inside");
	else if (set & ~caps_kept())
		lacks(l, CARREL_LAYER_PARTIAL, "%d more than a sandbox needs", __builtin_popcountll(set & ~caps_kept()));
}

/* What init says is not what the kernel shows; the evidence tells which it is. */
static void read_landlock(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	long kernel = sys_call3(__NR_landlock_create_ruleset, NULL, 0, 1 /* LANDLOCK_CREATE_RULESET_VERSION */);
	uint32_t abi = s->sb->landlock;

	(void)kind;
	if (kernel > 0)
		say(l, "the kernel has ABI %ld; ", kernel);
	else
		say(l, "the kernel has none; ");
	say(l, "init reports ABI %" PRIu32 " for execs, which /proc does not show", abi);
	if (abi == 0)
		lacks(l, CARREL_LAYER_MISSING, kernel > 1 ? "given up, as for nested user namespaces" :
							    "needs a kernel with Landlock of ABI 2 (lsm=landlock)");
}

/* /proc/PID/mem of a process that nobody in the sandbox may trace belongs to root of the machine: its memory is ruled by the first user
 * namespace (would_dump() in fs/exec.c), in which no capability of a sandbox counts. */
static void read_init(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	char exe[64] = "", bounding[24];
	struct stat program, memory;
	uint64_t caps = ~UINT64_C(0);
	int r = read_link(s->init, "exe", exe, sizeof(exe)), seals = -EBADF;
	auto_close int fd = sys_openat(s->init, "exe", O_RDONLY, 0);

	(void)kind;
	if (r == 0 && (fstatat(s->init, "exe", &program, 0) < 0 || fstatat(s->init, "mem", &memory, 0) < 0))
		r = -errno;
	if (r < 0) {
		unreadable(l, "init's program", r);
		return;
	}
	if (fd >= 0) /* an ordinary user may not read it either */
		seals = sys_fcntl(fd, F_GET_SEALS, 0);
	say(l, "exe is %s, mode %04o%s; its memory belongs to uid %u", exe, (unsigned)program.st_mode & 07777,
	    seals > 0 && seals & F_SEAL_WRITE ? ", sealed" : "", (unsigned)memory.st_uid);
	if (!str_starts(exe, "/memfd:carrel-init"))
		lacks(l, CARREL_LAYER_MISSING, "not executed from a file of its own");
	else if (program.st_mode & 0444)
		lacks(l, CARREL_LAYER_PARTIAL, "its program can be read inside, so only its own word keeps tracers out");
	else if (memory.st_uid != 0 && (bounding_set(s, bounding, sizeof(bounding), &caps) < 0 || caps & CAP_SYS_PTRACE_BIT))
		lacks(l, CARREL_LAYER_PARTIAL, "CAP_SYS_PTRACE inside is enough to trace it");
}

/* --- Limits ----------------------------------------------------------------------------------------------------------------- */

/* A limit counts if its group has it and the process is in that group. */
static bool in_group(const struct subject *s, enum cgroup_ctl ctl, struct line *l)
{
	char path[512] = "", want[40];
	bool v2 = s->sb->cg.version == CGROUP_V2;
	const char *at;

	(void)snprintf(want, sizeof(want), "/carrel/%s", s->sb->id);
	if (procfs_cgroup(s->cgroups, v2 ? NULL : cgroup_ctl_name(ctl), path, sizeof(path)) == 0) {
		at = strstr(path, want);
		if (at && (at[strlen(want)] == '\0' || at[strlen(want)] == '/'))
			return true;
	}
	lacks(l, CARREL_LAYER_MISSING, "the process is not in the group of the sandbox");
	return false;
}

static void no_group(const struct subject *s, enum cgroup_ctl ctl, struct line *l)
{
	if (s->sb->cg.version == CGROUP_NONE)
		lacks(l, CARREL_LAYER_MISSING, "no cgroup that this user may write to");
	else if (s->sb->cg.version == CGROUP_V1)
		lacks(l, CARREL_LAYER_MISSING, "no cgroup v1 hierarchy of '%s' that this user may write to", cgroup_ctl_name(ctl));
	else
		lacks(l, CARREL_LAYER_MISSING, "no cgroup v2 delegation of '%s'", cgroup_ctl_name(ctl));
}

/* No limit reads as the largest number that the kernel's counter takes; with v1's memory that is 2^63 less a page. */
#define LIMIT_NONE (UINT64_C(1) << 62)

static void read_cgroup_limit(const struct subject *s, enum cgroup_ctl ctl, enum cgroup_value limit, enum cgroup_value now,
			      struct line *l)
{
	const char *name = cgroup_ctl_name(ctl);
	uint64_t value, used;

	if (!(s->sb->cg.have & 1u << ctl) || cgroup_read(&s->sb->cg, limit, &value) < 0) {
		no_group(s, ctl, l);
		return;
	}
	say(l, "cgroup v%d, %s: ", s->sb->cg.version == CGROUP_V2 ? 2 : 1, name);
	if (value >= LIMIT_NONE) {
		say(l, "no limit");
		lacks(l, CARREL_LAYER_MISSING, "the group has no limit");
	} else {
		say(l, "at most %" PRIu64, value);
	}
	if (cgroup_read(&s->sb->cg, now, &used) == 0)
		say(l, ", now %" PRIu64, used);
	if (l->state == CARREL_LAYER_ON)
		(void)in_group(s, ctl, l);
}

static void read_memory(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	(void)kind;
	read_cgroup_limit(s, CTL_MEMORY, CGV_MEMORY_LIMIT, CGV_MEMORY, l);
}

static void read_pids(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	(void)kind;
	read_cgroup_limit(s, CTL_PIDS, CGV_PIDS_LIMIT, CGV_PIDS, l);
}

/* Most sandboxes have none. */
static void read_cpu(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	const struct cgroup *cg = &s->sb->cg;
	bool v2 = cg->version == CGROUP_V2;
	int dir = cg->version == CGROUP_NONE ? -EBADF : cg->dirs[v2 ? CTL_MEMORY : CTL_CPU];
	char quota[64] = "", period[64] = "";

	(void)kind;
	if (dir < 0 || fd_read_file_at(dir, v2 ? "cpu.max" : "cpu.cfs_quota_us", quota, sizeof(quota)) < 0 ||
	    str_starts(quota, "max") || str_starts(quota, "-1")) {
		leave_out(l);
		return;
	}
	if (!v2 && fd_read_file_at(dir, "cpu.cfs_period_us", period, sizeof(period)) < 0)
		period[0] = '\0';
	quota[strcspn(quota, "\n")] = '\0';
	period[strcspn(period, "\n")] = '\0';
	if (v2)
		say(l, "cgroup v2, cpu.max: %s", quota);
	else
		say(l, "cgroup v1, cpu: %s us in %s us", quota, period);
	(void)in_group(s, CTL_CPU, l);
}

/* An overlay answers statfs() for the file system of its writable layer. */
static void read_storage(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	auto_close int store = store_open(STORE_EXISTING, NULL);
	struct statfs layer, disk;

	(void)kind;
	if (fstatfs(s->root, &layer) < 0) {
		unreadable(l, "statfs of /", -errno);
		return;
	}
	say(l, "statfs of /: %" PRIu64 " bytes, %" PRIu64 " inodes", (uint64_t)layer.f_blocks * (uint64_t)layer.f_bsize,
	    (uint64_t)layer.f_files);
	if (layer.f_blocks == 0)
		lacks(l, CARREL_LAYER_MISSING, "it has no size");
	else if (store >= 0 && fstatfs(store, &disk) == 0 && disk.f_blocks == layer.f_blocks &&
		 disk.f_bsize == layer.f_bsize)
		lacks(l, CARREL_LAYER_MISSING, "it can fill the file system of the store");
	else if (layer.f_files == 0)
		lacks(l, CARREL_LAYER_PARTIAL, "any number of files");
}

static void read_rlimits(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	static const struct {
		const char *key, *name;
	} rows[] = {
		{ "Max open files", "open files" },
		{ "Max core file size", "core" },
		{ "Max cpu time", "cpu" },
		{ "Max file size", "file size" },
		{ "Max processes", "processes" },
	};
	auto_buf struct buf text = BUF_INIT(SMALL_MAX);

	if (read_small(s->proc, kind->file, &text, l) < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char value[64];
		char *blank;

		if (procfs_field(buf_text(&text), rows[i].key, value, sizeof(value)) < 0)
			continue;
		blank = strchr(value, ' ');
		if (!blank || (i > 1 && str_starts(value, "unlimited"))) /* the first two are always shown */
			continue;
		*blank = ':';
		value[strcspn(value, " ")] = '\0';
		say(l, "%s%s %s", l->evidence[0] ? ", " : "", rows[i].name, value);
		if (i == 0 && str_eq(value, "unlimited:unlimited"))
			lacks(l, CARREL_LAYER_PARTIAL, "any number of open files");
	}
}

static void read_devices(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	auto_buf struct buf text = BUF_INIT(SMALL_MAX);
	size_t others = 0;

	if (read_small(s->proc, kind->file, &text, l) < 0)
		return;
	for (const char *line = buf_text(&text); line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		size_t len;

		line += strspn(line, " ");
		len = strcspn(line, ":\n");
		if (line[len] != ':')
			continue; /* the two lines of headings */
		say(l, "%s%.*s", l->evidence[0] ? " " : "net/dev: ", (int)len, line);
		others += len != 2 || strncmp(line, "lo", 2) != 0;
	}
	if (others)
		lacks(l, CARREL_LAYER_MISSING, "%zu network device%s besides loopback", others, others == 1 ? "" : "s");
}

static const struct layer_kind kinds[] = {
	{ "user namespace", read_namespace, "ns/user" },
	{ "uid range", read_ids, NULL },
	{ "pid namespace", read_namespace, "ns/pid" },
	{ "mount namespace", read_namespace, "ns/mnt" },
	{ "network namespace", read_namespace, "ns/net" },
	{ "ipc namespace", read_namespace, "ns/ipc" },
	{ "uts namespace", read_namespace, "ns/uts" },
	{ "cgroup namespace", read_namespace, "ns/cgroup" },
	{ "root", read_root, NULL },
	{ "image ids", read_image_ids, NULL },
	{ "masked paths", read_masks, NULL },
	{ "minimal /dev", read_dev, NULL },
	{ "no_new_privs", read_nnp, "NoNewPrivs:" },
	{ "seccomp", read_seccomp, "Seccomp:" },
	{ "capabilities", read_caps, NULL },
	{ "Landlock", read_landlock, NULL },
	{ "init", read_init, NULL },
	{ "memory limit", read_memory, NULL },
	{ "pids limit", read_pids, NULL },
	{ "cpu limit", read_cpu, NULL },
	{ "writable layer limit", read_storage, NULL },
	{ "resource limits", read_rlimits, "limits" },
	{ "network devices", read_devices, "net/dev" },
};

/* --- Finding the process ---------------------------------------------------------------------------------------------------- */

/** struct search - For one process by its pid inside */
struct search {
	int init;
	pid_t inside;
	int found; /* its directory below /proc */
};

static bool is_searched(const struct search *w, int dir)
{
	char status[PROCFS_STATUS_MAX], theirs[64], inits[64];

	return fd_read_file_at(dir, "status", status, sizeof(status)) > 0 && procfs_namespaced_pid(status) == w->inside &&
	       read_link(dir, "ns/pid", theirs, sizeof(theirs)) == 0 &&
	       read_link(w->init, "ns/pid", inits, sizeof(inits)) == 0 && str_eq(theirs, inits);
}

static int search_visit(pid_t pid, int dir, void *data)
{
	struct search *w = data;

	if (!is_searched(w, dir))
		return 0;
	w->found = procfs_open(pid);
	if (w->found >= 0 && is_searched(w, w->found)) /* the number may have gone to another since */
		return 1;
	close_p(&w->found);
	w->found = -EBADF;
	return 0;
}

/* Leaders of execs are children of init, of which the kernel has a list (CONFIG_PROC_CHILDREN); without it every process is looked at. */
static int find_process(pid_t init_pid, struct search *w)
{
	auto_buf struct buf text = BUF_INIT(MIB(1)); /* the children that PID_MAX_LIMIT allows a small sandbox, many times */
	char file[48];
	const char *at;

	(void)snprintf(file, sizeof(file), "task/%d/children", (int)init_pid);
	if (procfs_read(w->init, file, &text) == 0) {
		for (at = buf_text(&text); *at; at += strcspn(at, " "), at += strspn(at, " ")) {
			auto_close int dir = -EBADF;
			char word[16];
			uint64_t pid;

			(void)snprintf(word, sizeof(word), "%.*s", (int)MIN(strcspn(at, " "), sizeof(word) - 1), at);
			if (str_to_u64(word, &pid) < 0 || pid > INT32_MAX)
				continue;
			dir = procfs_open((pid_t)pid);
			if (dir >= 0 && search_visit((pid_t)pid, dir, w) == 1)
				return 0;
		}
	}
	return procfs_each(search_visit, w) == 1 ? 0 : -ESRCH;
}

static int parse_mounts(struct subject *s)
{
	size_t lines = 1;
	char *at;

	for (const char *p = buf_text(&s->mountinfo); *p; p++)
		lines += *p == '\n';
	s->mounts = calloc(lines, sizeof(*s->mounts));
	if (!s->mounts)
		return -ENOMEM;
	at = s->mountinfo.p;
	while (s->num_mounts < lines && procfs_mount_next(&at, &s->mounts[s->num_mounts]))
		s->num_mounts++;
	return 0;
}

static void subject_done(struct subject *s)
{
	close_p(&s->proc);
	close_p(&s->init);
	close_p(&s->root);
	buf_done(&s->mountinfo);
	free(s->mounts);
}

static int ended(const struct carrel_exec *x, struct err *e)
{
	int r = err_set(e, ERR_UNAVAILABLE, "read what isolates exec %" PRIu64 ": its process has ended", x->number);

	return err_hint(e, r, "read it while the exec is held (hold=true)");
}

static int subject_open(struct subject *s, const struct carrel_exec *x, struct err *e)
{
	struct search w = { .inside = x->pid, .found = -EBADF };
	int r;

	s->init = w.init = procfs_open(s->sb->init.pid);
	if (s->init < 0 || s->sb->init.pidfd < 0 || sys_pidfd_send_signal(s->sb->init.pidfd, 0) < 0)
		return err_set(e, ERR_UNAVAILABLE, "read what isolates exec %" PRIu64 ": init is gone", x->number);
	if (find_process(s->sb->init.pid, &w) < 0)
		return ended(x, e);
	s->proc = w.found;
	s->root = sys_openat(s->init, "root", O_PATH | O_DIRECTORY, 0);
	if (s->root < 0)
		return err_sys(e, s->root, "open the root of sandbox '%s'", s->sb->id);
	r = (int)fd_read_file_at(s->proc, "status", s->status, sizeof(s->status));
	if (r >= 0)
		r = (int)fd_read_file_at(s->proc, "cgroup", s->cgroups, sizeof(s->cgroups));
	if (r >= 0)
		r = procfs_read(s->proc, "mountinfo", &s->mountinfo);
	if (r >= 0)
		r = parse_mounts(s);
	if (r == -ESRCH)
		return ended(x, e);
	return r < 0 ? err_sys(e, r, "read what isolates exec %" PRIu64, x->number) : 0;
}

/* A process that ended half way would leave a receipt of missing layers. */
static bool lives(const struct subject *s)
{
	char status[PROCFS_STATUS_MAX], state[32];

	return fd_read_file_at(s->proc, "status", status, sizeof(status)) > 0 &&
	       procfs_field(status, "State:", state, sizeof(state)) == 0 && state[0] != 'Z' && state[0] != 'X';
}

static struct carrel_receipt *receipt_new(void)
{
	struct carrel_receipt *receipt = calloc(1, sizeof(*receipt));

	if (!receipt)
		return NULL;
	receipt->lines = calloc(ARRAY_SIZE(kinds), sizeof(*receipt->lines));
	receipt->layers = calloc(ARRAY_SIZE(kinds), sizeof(*receipt->layers));
	if (receipt->lines && receipt->layers)
		return receipt;
	carrel_receipt_free(receipt);
	return NULL;
}

static void read_layers(const struct subject *s, struct carrel_receipt *receipt)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct line *l = &receipt->lines[receipt->count];

		*l = (struct line){ .name = kinds[i].name, .state = CARREL_LAYER_ON };
		kinds[i].read(s, &kinds[i], l);
		if (!l->name)
			continue;
		make_printable(l->evidence);
		make_printable(l->why);
		receipt->layers[receipt->count++] = (struct carrel_layer){ l->name, l->state, l->evidence, l->why };
	}
}

static int receipt_read(struct carrel_exec *x, struct carrel_receipt **ret, struct err *e)
{
	auto_(subject_done) struct subject s = { .proc = -EBADF, .init = -EBADF, .root = -EBADF };
	struct carrel_receipt *receipt;
	int r;

	s.mountinfo = BUF_INIT(PROCFS_MOUNTS_MAX);
	s.sb = x->sandbox;
	if (!s.sb || x->ended || x->pid <= 0)
		return ended(x, e);
	r = subject_open(&s, x, e);
	if (r < 0)
		return r;
	receipt = receipt_new();
	if (!receipt)
		return -ENOMEM;
	read_layers(&s, receipt);
	if (!lives(&s)) {
		carrel_receipt_free(receipt);
		return ended(x, e);
	}
	*ret = receipt;
	return 0;
}

int carrel_receipt_read(struct carrel_exec *exec, struct carrel_receipt **ret, struct carrel_error *ret_e)
{
	struct err e = { .code = ERR_NONE };

	return error_out(receipt_read(exec, ret, &e), &e, ret_e);
}

void carrel_receipt_free(struct carrel_receipt *receipt)
{
	if (!receipt)
		return;
	free(receipt->lines);
	free(receipt->layers);
	free(receipt);
}

size_t carrel_receipt_count(const struct carrel_receipt *receipt)
{
	return receipt->count;
}

const struct carrel_layer *carrel_receipt_layer(const struct carrel_receipt *receipt, size_t index)
{
	return index < receipt->count ? &receipt->layers[index] : NULL;
}
