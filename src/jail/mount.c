/* SPDX-License-Identifier: Apache-2.0 */
/* mount.c - Mounts by descriptor: made detached, attached once
 *
 * Theory of operation. Runs in the parent (root) or in the child (rootless), always on memory that both share, so it uses base/sys.h and
 * neither heap nor errno. The new mount API is used throughout: a mount under construction has no path, so nobody can race with it, and a
 * crash of ours unmounts it. Options go one by one, so there is no string of commas to quote. mount(2) with paths was rejected: its target
 * is looked up again by name, which is how CVE-2021-30465 and the procfs redirects of November 2025 were possible.
 *
 * Before 6.7 there is no `lowerdir+`; there the layers are named in one text of /proc/self/fd paths. */
#include "jail/mount.h"

#include <inttypes.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "jail/plan.h"

/* Path of one descriptor: "/proc/self/fd/" and ten digits. */
#define FD_PATH_MAX 32
/* Text of all layers for kernels without lowerdir+: what fsconfig() takes (strndup_user() in fs/fsopen.c). */
#define LOWERDIR_MAX 256

/* The last line that the file system logged for this configuration, which says more than the errno. */
static int mount_failed(int fs, int r, const char *type, const char *step, struct err *e)
{
	char log[200];
	ssize_t n;

	(void)err_sys(e, r, "%s %s", step, type);
	n = sys_read(fs, log, sizeof(log) - 1);
	if (n > 0 && e) {
		while (n > 0 && (log[n - 1] == '\n' || log[n - 1] == '\0'))
			n--;
		log[n] = '\0';
		(void)snprintf(e->trail, sizeof(e->trail), "%s", log);
	}
	(void)sys_close(fs);
	return r;
}

static int mount_finish(int fs, const char *type, unsigned attrs, struct err *e)
{
	int fd, r;

	r = sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	if (r < 0)
		return mount_failed(fs, r, type, "create", e);
	fd = sys_fsmount(fs, attrs);
	if (fd < 0)
		return mount_failed(fs, fd, type, "mount", e);
	(void)sys_close(fs);
	return fd;
}

int mount_new(const char *type, const struct mount_option *options, unsigned attrs, struct err *e)
{
	int fs = sys_fsopen(type), r;

	if (fs < 0)
		return err_sys(e, fs, "open file system type '%s'", type);
	for (; options && options->key; options++) {
		unsigned cmd = options->value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

		r = sys_fsconfig(fs, cmd, options->key, options->value, 0);
		if (r < 0)
			return mount_failed(fs, r, type, options->key, e);
	}
	return mount_finish(fs, type, attrs, e);
}

int mount_tmpfs(uint64_t bytes, uint64_t inodes, unsigned mode, unsigned attrs, struct err *e)
{
	char size_text[24], inodes_text[24], mode_text[8];
	struct mount_option options[] = {
		{ "size", size_text }, { "mode", mode_text }, { inodes ? "nr_inodes" : NULL, inodes_text }, { NULL, NULL },
	};

	(void)snprintf(size_text, sizeof(size_text), "%" PRIu64, bytes);
	(void)snprintf(inodes_text, sizeof(inodes_text), "%" PRIu64, inodes);
	(void)snprintf(mode_text, sizeof(mode_text), "%o", mode);
	return mount_new("tmpfs", options, attrs, e);
}

int mount_clone(int dir, const char *path, int userns_fd, unsigned attrs, struct err *e)
{
	struct mount_attr attr = { .attr_set = attrs };
	int fd, r;

	fd = sys_open_tree(dir, path, OPEN_TREE_CLONE | AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
	if (fd < 0)
		return err_sys(e, fd, "clone mount of '%s'", path);
	if (userns_fd >= 0) {
		attr.attr_set |= MOUNT_ATTR_IDMAP;
		attr.userns_fd = (uint64_t)userns_fd;
	}
	if (!attr.attr_set)
		return fd;
	r = sys_mount_setattr(fd, "", AT_EMPTY_PATH, &attr);
	if (r < 0) {
		(void)sys_close(fd);
		return err_sys(e, r, "%s mount of '%s'", userns_fd >= 0 ? "map the ids of a" : "restrict a", path);
	}
	return fd;
}

static int open_target(int root, const char *path, uint64_t flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

	return sys_openat2(root, path, &how);
}

/* Make one component below @root; it may be there already. */
static int make_component(int root, const char *path, size_t len, enum mount_target kind)
{
	char name[256], parent_path[4096];
	const char *slash = memrchr(path, '/', len);
	size_t parent_len = slash ? (size_t)(slash - path) : 0, name_len = len - parent_len - (slash ? 1 : 0);
	int parent, r;

	if (name_len >= sizeof(name) || parent_len >= sizeof(parent_path))
		return -ENAMETOOLONG;
	memcpy(parent_path, path, parent_len);
	memcpy(parent_path + parent_len, parent_len ? "" : ".", parent_len ? 1 : 2);
	memcpy(name, path + len - name_len, name_len);
	name[name_len] = '\0';
	parent = open_target(root, parent_path, O_PATH | O_DIRECTORY);
	if (parent < 0)
		return parent;
	if (kind == TARGET_FILE) {
		r = sys_openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
		if (r >= 0)
			r = sys_close(r);
	} else {
		r = sys_mkdirat(parent, name, 0755);
	}
	(void)sys_close(parent);
	return r == -EEXIST ? 0 : r;
}

static int make_target(int root, const char *target, enum mount_target kind)
{
	size_t len = strlen(target);

	for (size_t i = 1; i <= len; i++) {
		int r;

		if (target[i] != '/' && target[i] != '\0')
			continue;
		r = make_component(root, target, i, i == len ? kind : TARGET_DIR);
		if (r < 0)
			return r;
	}
	return 0;
}

int mount_target_open(int root, const char *target)
{
	return open_target(root, target, O_PATH);
}

int mount_attach_at(int at, const char *name, int mount, struct err *e)
{
	int r = sys_move_mount(mount, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);

	return r < 0 ? err_sys(e, r, "mount on '%s'", name) : 0;
}

/* A mount on the root would be out of the way of every path but "/..", and what covers parts of it would not find them. */
static bool is_same(int a, int b)
{
	struct stat x, y;

	return sys_call4(__NR_newfstatat, a, "", &x, AT_EMPTY_PATH) == 0 && sys_call4(__NR_newfstatat, b, "", &y, AT_EMPTY_PATH) == 0 &&
	       x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int mount_attach(int root, const char *target, int mount, enum mount_target create, struct err *e)
{
	int at, r;

	at = open_target(root, target, O_PATH);
	if (at == -ENOENT && create != TARGET_MUST_EXIST) {
		r = make_target(root, target, create);
		if (r < 0)
			return err_sys(e, r, "make mount target '/%s'", target);
		at = open_target(root, target, O_PATH);
	}
	if (at < 0)
		return err_sys(e, at, "open mount target '/%s'", target);
	if (is_same(root, at)) {
		(void)sys_close(at);
		return err_set(e, ERR_INVALID, "mount on '/%s': a link of the image makes it the root itself", target);
	}
	r = mount_attach_at(at, target, mount, e);
	(void)sys_close(at);
	return r;
}

/* One text for all layers. It cannot be found out by trying: 6.1 takes any key, and fails later. */
static int overlay_list(int fs, const int *lowers, size_t n)
{
	char all[LOWERDIR_MAX];
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		int k = snprintf(all + len, sizeof(all) - len, "%s/proc/self/fd/%d", i ? ":" : "", lowers[i]);

		if (k < 0 || (size_t)k >= sizeof(all) - len)
			return -E2BIG;
		len += (size_t)k;
	}
	return sys_fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", all, 0);
}

static int overlay_lowers(int fs, const int *lowers, size_t n)
{
	char one[FD_PATH_MAX];
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		(void)snprintf(one, sizeof(one), "/proc/self/fd/%d", lowers[i]);
		r = sys_fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir+", one, 0);
	}
	return r;
}

static int overlay_upper(int fs, const char *key, int upper, const char *name)
{
	char path[FD_PATH_MAX + 16];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", upper, name);
	return sys_fsconfig(fs, FSCONFIG_SET_STRING, key, path, 0);
}

int mount_overlay(const int *lowers, size_t num_lowers, int upper, const char *upper_name, const char *work_name,
		  unsigned flags, unsigned attrs, struct err *e)
{
	int fs = sys_fsopen("overlay"), r;

	if (fs < 0)
		return err_hint(e, err_sys(e, fs, "open file system type 'overlay'"), "load the module: modprobe overlay");
	r = flags & OVERLAY_LIST ? overlay_list(fs, lowers, num_lowers) : overlay_lowers(fs, lowers, num_lowers);
	if (r < 0)
		return mount_failed(fs, r, "overlay", "name the layers of", e);
	r = overlay_upper(fs, "upperdir", upper, upper_name);
	if (r == 0)
		r = overlay_upper(fs, "workdir", upper, work_name);
	if (r == 0 && flags & OVERLAY_VOLATILE)
		r = sys_fsconfig(fs, FSCONFIG_SET_FLAG, "volatile", NULL, 0);
	if (r == 0 && flags & OVERLAY_ROOTLESS)
		r = sys_fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0);
	if (r == 0 && !(flags & OVERLAY_ROOTLESS)) /* without it a directory of an image cannot be renamed (EXDEV) */
		r = sys_fsconfig(fs, FSCONFIG_SET_STRING, "redirect_dir", "on", 0);
	if (r < 0)
		return mount_failed(fs, r, "overlay", "configure", e);
	return mount_finish(fs, "overlay", attrs, e);
}
