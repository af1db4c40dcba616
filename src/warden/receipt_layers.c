/* SPDX-License-Identifier: Apache-2.0 */
/* receipt_layers.c - How each layer is read: namespaces, ids, files, privileges
 *
 * Theory of operation. One function for each kind of evidence, one row of layer_kinds[] for each line of a receipt, in its order. A function
 * says what the kernel said, then judges it; it begins with a line that is in force. Limits are in receipt_limits.c; receipt.c says who
 * runs this and on what. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/sys.h"
#include "jail/caps.h"
#include "warden/receipt.h"

#define CAP_SYS_ADMIN_BIT (UINT64_C(1) << 21) /* include/uapi/linux/capability.h */
#define CAP_SYS_PTRACE_BIT (UINT64_C(1) << 19)
#define LANDLOCK_ABI_SCOPES 6 /* Documentation/userspace-api/landlock.rst, "Abstract UNIX socket": Linux 6.12 */

static const struct procfs_mount *mount_at(const struct subject *s, const char *target)
{
	for (size_t i = s->num_mounts; i > 0; i--) /* the last one covers the others */
		if (str_eq(s->mounts[i - 1].target, target))
			return &s->mounts[i - 1];
	return NULL;
}

/* --- Namespaces and ids ----------------------------------------------------------------------------------------------------- */

/* Ours, and for who may read it that of the machine's first process: a caller may live in namespaces of its own. */
static void read_namespace(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	char theirs[64], ours[64], first[64], path[40];
	int r = procfs_link(s->proc, kind->file, theirs, sizeof(theirs));

	(void)snprintf(path, sizeof(path), "/proc/self/%s", kind->file);
	if (r == 0)
		r = procfs_link(AT_FDCWD, path, ours, sizeof(ours));
	if (r < 0) {
		line_unreadable(l, kind->file, r);
		return;
	}
	(void)snprintf(path, sizeof(path), "/proc/1/%s", kind->file);
	if (procfs_link(AT_FDCWD, path, first, sizeof(first)) < 0)
		memcpy(first, ours, sizeof(first));
	line_say(l, "%s, the caller's is %s", theirs, ours);
	if (!str_eq(theirs, ours) && !str_eq(theirs, first))
		return;
	if (str_eq(kind->file, "ns/net"))
		line_lacks(l, CARREL_LAYER_MISSING, "shares the host's network%s, as --network host asks",
			   s->sb->landlock < LANDLOCK_ABI_SCOPES ? " and its abstract sockets" : "");
	else
		line_lacks(l, CARREL_LAYER_MISSING, "shares the host's");
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
		auto_buf struct buf text = BUF_INIT(RECEIPT_FILE_MAX);
		char map[64];
		uint64_t m[3];

		if (line_read_file(s->proc, files[i], &text, l) < 0)
			return;
		(void)procfs_squeeze(buf_text(&text), map, sizeof(map));
		line_say(l, "%s%s %s", i ? ", " : "", files[i], map);
		if (parse_map(map, m) < 0)
			line_lacks(l, CARREL_LAYER_MISSING, "%s has no id", files[i]);
		else if (m[0] == 0 && m[1] == 0)
			line_lacks(l, CARREL_LAYER_MISSING, "root inside is root outside");
		else if (m[2] == 1 && l->state == CARREL_LAYER_ON)
			line_lacks(l, CARREL_LAYER_PARTIAL, "a single id: an ordinary user started it, whose id root inside has");
	}
}

/* --- Files ------------------------------------------------------------------------------------------------------------------ */

static void read_root(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	const struct procfs_mount *root = mount_at(s, "/");
	size_t here = 0;

	(void)kind;
	if (!root) {
		line_lacks(l, CARREL_LAYER_MISSING, "no mount at /");
		return;
	}
	for (size_t i = 0; i < s->num_mounts; i++)
		here += str_eq(s->mounts[i].target, "/");
	line_say(l, "mountinfo: %s at / (%.100s), %zu mount%s there", root->type, root->options, here, here == 1 ? "" : "s");
	if (here > 1)
		line_lacks(l, CARREL_LAYER_MISSING, "another root is mounted at the same place");
	else if (!str_eq(root->type, "overlay"))
		line_lacks(l, CARREL_LAYER_MISSING, "not an overlay of its own");
	else if (!procfs_option(root->options, "nosuid") || !procfs_option(root->options, "nodev"))
		line_lacks(l, CARREL_LAYER_PARTIAL, "setuid files or device nodes of the image count");
}

/* An idmapped layer below an overlay is in no mountinfo; whom a file of it belongs to is the same fact. Only a whole range can be shifted. */
static void read_image_ids(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	/* /usr itself is last: of the image `host` it is the top of a writable layer, and ours whatever lies below. */
	static const char *const names[] = { "usr/bin", "usr/lib", "etc", "bin", "lib", "var", "usr" };
	char map[64] = "", text[256] = "";
	uint64_t m[3];
	struct stat st;

	(void)kind;
	if (fd_read_file_at(s->proc, "uid_map", text, sizeof(text)) < 0 ||
	    parse_map(procfs_squeeze(text, map, sizeof(map)), m) < 0 || m[2] == 1 || m[1] == 0) {
		line_leave_out(l);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (fstatat(s->root, names[i], &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
			continue;
		line_say(l, "/%s belongs to uid %u outside", names[i], (unsigned)st.st_uid);
		if (st.st_uid < m[1] || st.st_uid >= m[1] + m[2])
			line_lacks(l, CARREL_LAYER_PARTIAL, "no idmapped mount: the image's files belong to nobody inside");
		return;
	}
	line_leave_out(l);
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
	line_say(l, "mountinfo: %zu of %zu paths covered or read-only", covered, have);
	if (open)
		line_lacks(l, covered ? CARREL_LAYER_PARTIAL : CARREL_LAYER_MISSING, "%s is open", open);
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
			line_say(l, " %s", entry->d_name);
	(void)closedir(dir);
}

static void read_dev(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	const struct procfs_mount *dev = mount_at(s, "/dev");

	(void)kind;
	if (!dev) {
		line_lacks(l, CARREL_LAYER_MISSING, "the image's own directory");
		return;
	}
	line_say(l, "mountinfo: %s at /dev (%.60s);", dev->type, dev->options);
	list_devices(s, l);
	if (!str_eq(dev->type, "tmpfs"))
		line_lacks(l, CARREL_LAYER_MISSING, "not a directory of its own");
	else if (!procfs_option(dev->options, "ro"))
		line_lacks(l, CARREL_LAYER_PARTIAL, "it can be written");
}

/* --- Privileges ------------------------------------------------------------------------------------------------------------- */

static void read_nnp(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	char value[16] = "";
	int r = procfs_field(s->status, kind->file, value, sizeof(value));

	line_say(l, "%s %s", kind->file, value);
	if (r < 0 || !str_eq(value, "1"))
		line_lacks(l, CARREL_LAYER_MISSING, "setuid programs gain privileges");
}

static void read_seccomp(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	char value[16] = "", filters[16] = "";
	int r = procfs_field(s->status, kind->file, value, sizeof(value));

	line_say(l, "%s %s", kind->file, value);
	if (procfs_field(s->status, "Seccomp_filters:", filters, sizeof(filters)) == 0)
		line_say(l, ", %s filter%s", filters, str_eq(filters, "1") ? "" : "s");
	if (r < 0 || !str_eq(value, "2"))
		line_lacks(l, CARREL_LAYER_MISSING, "no filter: every system call of the kernel can be reached");
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
		line_unreadable(l, "CapBnd", r);
		return;
	}
	line_say(l, "CapBnd: %s, %d capabilities", value, __builtin_popcountll(set));
	if (set & CAP_SYS_ADMIN_BIT)
		line_lacks(l, CARREL_LAYER_MISSING, "CAP_SYS_ADMIN can be had inside");
	else if (set & ~caps_kept())
		line_lacks(l, CARREL_LAYER_PARTIAL, "%d more than a sandbox needs", __builtin_popcountll(set & ~caps_kept()));
}

/* What init says is not what the kernel shows; the evidence tells which it is. */
static void read_landlock(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	long kernel = sys_call3(__NR_landlock_create_ruleset, NULL, 0, 1 /* LANDLOCK_CREATE_RULESET_VERSION */);
	uint32_t abi = s->sb->landlock;

	(void)kind;
	if (kernel > 0)
		line_say(l, "the kernel has ABI %ld; ", kernel);
	else
		line_say(l, "the kernel has none; ");
	line_say(l, "init reports ABI %" PRIu32 " for execs, which /proc does not show", abi);
	if (abi == 0)
		line_lacks(l, CARREL_LAYER_MISSING, kernel > 1 ? "given up, as for nested user namespaces" :
							    "needs a kernel with Landlock of ABI 2 (lsm=landlock)");
}

/* /proc/PID/mem of a process that nobody in the sandbox may trace belongs to root of the machine: its memory is ruled by the first user
 * namespace (would_dump() in fs/exec.c), in which no capability of a sandbox counts. */
static void read_init(const struct subject *s, const struct layer_kind *kind, struct line *l)
{
	char exe[64] = "", bounding[24];
	struct stat program, memory;
	uint64_t caps = ~UINT64_C(0);
	int r = procfs_link(s->init, "exe", exe, sizeof(exe)), seals = -EBADF;
	auto_close int fd = sys_openat(s->init, "exe", O_RDONLY, 0);

	(void)kind;
	if (r == 0 && (fstatat(s->init, "exe", &program, 0) < 0 || fstatat(s->init, "mem", &memory, 0) < 0))
		r = -errno;
	if (r < 0) {
		line_unreadable(l, "init's program", r);
		return;
	}
	if (fd >= 0) /* an ordinary user may not read it either */
		seals = sys_fcntl(fd, F_GET_SEALS, 0);
	line_say(l, "exe is %s, mode %04o%s; its memory belongs to uid %u", exe, (unsigned)program.st_mode & 07777,
	    seals > 0 && seals & F_SEAL_WRITE ? ", sealed" : "", (unsigned)memory.st_uid);
	if (!str_starts(exe, "/memfd:carrel-init"))
		line_lacks(l, CARREL_LAYER_MISSING, "not executed from a file of its own");
	else if (program.st_mode & 0444)
		line_lacks(l, CARREL_LAYER_PARTIAL, "its program can be read inside, so only its own word keeps tracers out");
	else if (memory.st_uid != 0 && (bounding_set(s, bounding, sizeof(bounding), &caps) < 0 || caps & CAP_SYS_PTRACE_BIT))
		line_lacks(l, CARREL_LAYER_PARTIAL, "CAP_SYS_PTRACE inside is enough to trace it");
}

/* --- The table -------------------------------------------------------------------------------------------------------------- */

const struct layer_kind layer_kinds[] = {
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
	{ "memory limit", layer_memory, NULL },
	{ "pids limit", layer_pids, NULL },
	{ "cpu limit", layer_cpu, NULL },
	{ "writable layer limit", layer_storage, NULL },
	{ "resource limits", layer_rlimits, "limits" },
	{ "network devices", layer_devices, "net/dev" },
};
const size_t num_layer_kinds = ARRAY_SIZE(layer_kinds);
