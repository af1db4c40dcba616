/* SPDX-License-Identifier: Apache-2.0 */
/* root.c - A sandbox's root directory: made of detached mounts, then entered
 *
 * Theory of operation. Four parts. root_begin() and root_build() run where the rights are: in the parent for root (it may make device nodes, map ids, and
 * give the overlay trusted xattrs), in the child for an ordinary user (whose rights exist only inside the new user namespace). The first needs nothing of
 * the child and is done before it exists. root_prepare() and root_enter() always run in the child, the first of them beside root_build(),
 * on another CPU:
 *
 *  1. everything private, else our mounts propagate to the host;
 *  2. file systems of the child's namespaces; /proc while the host's is still in sight: the kernel refuses one to a namespace that sees
 *     none (mount_too_revealing);
 *  3. the new root is stacked on "/", entered by descriptor, and pivot_root(".", ".") makes it the root of the namespace;
 *  4. the old root is detached. From here on no path of the host resolves, so every later path is the sandbox's own;
 *  5. file systems and volumes are attached, the masks over /proc last.
 *
 * A detached mount that is closed costs an RCU grace period (100 us and more), one that is attached costs nothing. So the layers' clones,
 * which only the overlays need, are not closed: they are mounted in the old root ("buried") and go with it in step 4, all in one.
 *
 * chroot was rejected: a directory descriptor held from outside escapes it. One tmpfs ("furniture") serves /dev, /sys and the masks, because
 * each further superblock costs about 25 us to make and as much to end; its clones cost 4. */
#include "jail/root.h"

#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/sys.h"
#include "jail/fsid.h"
#include "jail/idmap.h"
#include "jail/mount.h"

#define ATTR_PLAIN (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define ATTR_DATA (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

/* Directories and links that every /dev has. */
static const struct {
	const char *path;
	const char *link; /* NULL: a directory */
} dev_tree[] = {
	{ "dev", NULL },
	{ "dev/pts", NULL },
	{ "dev/shm", NULL },
	{ "dev/mqueue", NULL },
	{ "dev/net", NULL },
	{ "sys", NULL },
	{ "sys/devices", NULL },
	{ "sys/devices/system", NULL },
	{ "sys/devices/system/cpu", NULL },
	{ "empty", NULL },
	{ "dev/ptmx", "pts/ptmx" },
	{ "dev/fd", "/proc/self/fd" },
	{ "dev/stdin", "/proc/self/fd/0" },
	{ "dev/stdout", "/proc/self/fd/1" },
	{ "dev/stderr", "/proc/self/fd/2" },
};

/* File systems of the child's own namespaces, in the order in which they are attached. */
#define OWN_PROC 0
enum own_size { SIZE_NONE, SIZE_PTS, SIZE_SHM, SIZE_TMP };
static const struct own_mount {
	const char *target, *type;
	unsigned attrs;
	enum own_size size;
} own_mounts[] = {
	[OWN_PROC] = { "proc", "proc", ATTR_DATA, SIZE_NONE },
	{ "dev/pts", "devpts", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, SIZE_PTS },
	{ "dev/shm", "tmpfs", ATTR_PLAIN, SIZE_SHM },
	{ "dev/mqueue", "mqueue", ATTR_DATA, SIZE_NONE },
	{ "tmp", "tmpfs", ATTR_PLAIN, SIZE_TMP },
};
_Static_assert(ARRAY_SIZE(own_mounts) == ROOT_OWN_MAX, "struct root has another number of own mounts");

void root_init(struct root *root)
{
	*root = (struct root){ .overlay = -EBADF, .usr = -EBADF, .furniture = -EBADF, .cpus = -EBADF };
	for (size_t i = 0; i < ARRAY_SIZE(root->own); i++)
		root->own[i] = -EBADF;
	for (size_t i = 0; i < ARRAY_SIZE(root->nodes); i++)
		root->nodes[i] = -EBADF;
}

void root_done(struct root *root)
{
	close_p(&root->overlay);
	close_p(&root->usr);
	close_p(&root->furniture);
	close_p(&root->cpus);
	for (size_t i = 0; i < ARRAY_SIZE(root->own); i++)
		close_p(&root->own[i]);
	for (size_t i = 0; i < root->num_buried; i++)
		close_p(&root->buried[i]);
	for (size_t i = 0; i < root->num_volumes; i++)
		close_p(&root->volumes[i]);
	for (size_t i = 0; i < ARRAY_SIZE(root->nodes); i++)
		close_p(&root->nodes[i]);
	root_init(root);
}

/* Modes are set afterwards: the caller's umask is not ours to change, and it would take bits away. */
static int make_dir(int dir, const char *path, mode_t mode)
{
	int r = sys_mkdirat(dir, path, mode);

	return r < 0 ? r : (int)sys_call3(__NR_fchmodat, dir, path, mode);
}

static int make_node(int dir, const char *path, mode_t mode, unsigned dev)
{
	int r = sys_mknodat(dir, path, mode, dev);

	return r < 0 ? r : (int)sys_call3(__NR_fchmodat, dir, path, mode & 07777);
}

/* Root makes the node; an ordinary user makes a file and later binds the host's node over it. */
static int make_device(const struct jail_plan *plan, int furniture, const struct jail_device *d)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "dev/%s", d->name);
	if (plan->flags & JAIL_ROOTLESS)
		return make_node(furniture, path, S_IFREG | 0666, 0);
	return make_node(furniture, path, S_IFCHR | 0666, (unsigned)makedev(d->major, d->minor));
}

/* What a machine knows of its own name. Mounted over the image's files, not written into the layer: a commit or fork must not carry it on. */
static const struct {
	const char *name, *target;
} identity[] = { { "hostname", "etc/hostname" }, { "hosts", "etc/hosts" } };

static int write_identity(const struct jail_plan *plan, int furniture, struct err *e)
{
	char text[256];
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(identity); i++) {
		int fd = sys_openat(furniture, identity[i].name, O_WRONLY | O_CREAT | O_EXCL, 0644), n;

		if (fd < 0)
			return err_sys(e, fd, "make '/%s'", identity[i].target);
		n = i == 0 ? snprintf(text, sizeof(text), "%s\n", plan->hostname) :
			     snprintf(text, sizeof(text),
				      "127.0.0.1\tlocalhost %s\n::1\tlocalhost ip6-localhost ip6-loopback\n", plan->hostname);
		r = fd_write_full(fd, text, (size_t)n);
		(void)sys_close(fd);
		if (r == 0)
			r = (int)sys_call3(__NR_fchmodat, furniture, identity[i].name, 0644);
	}
	return r < 0 ? err_sys(e, r, "write the name of the sandbox") : 0;
}

static bool has_device(const struct jail_plan *plan, size_t i)
{
	return jail_devices[i].always || plan->devices & UINT64_C(1) << i;
}

/* Rootless: clones of the host's nodes, taken while its /dev is in sight. */
static int build_nodes(const struct jail_plan *plan, struct root *ret, struct err *e)
{
	for (size_t i = 0; i < jail_num_devices; i++) {
		char host[32];

		if (!has_device(plan, i))
			continue;
		(void)snprintf(host, sizeof(host), "/dev/%s", jail_devices[i].name);
		ret->nodes[i] = mount_clone(AT_FDCWD, host, -1, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, e);
		if (ret->nodes[i] < 0)
			return err_wrap(e, ret->nodes[i], "lend device '%s'", jail_devices[i].name);
	}
	return 0;
}

static int build_furniture(const struct jail_plan *plan, struct err *e)
{
	int fd, r;

	fd = mount_tmpfs(KIB(64), 128, 0755, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, e);
	if (fd < 0)
		return fd;
	for (size_t i = 0; i < ARRAY_SIZE(dev_tree); i++) {
		r = dev_tree[i].link ? sys_symlinkat(dev_tree[i].link, fd, dev_tree[i].path) :
				       make_dir(fd, dev_tree[i].path, 0755);
		if (r < 0) {
			r = err_sys(e, r, "make '/%s'", dev_tree[i].path);
			goto out;
		}
	}
	for (size_t i = 0; i < jail_num_devices; i++) {
		if (!has_device(plan, i))
			continue;
		r = make_device(plan, fd, &jail_devices[i]);
		if (r < 0) {
			r = err_sys(e, r, "make device '%s'", jail_devices[i].name);
			goto out;
		}
	}
	r = make_node(fd, "hidden", S_IFREG | 0444, 0);
	if (r < 0)
		r = err_sys(e, r, "make an empty file");
	else
		r = write_identity(plan, fd, e);
	if (r == 0)
		return fd;
out:
	(void)sys_close(fd);
	return r;
}

/* Rootless, and on older kernels: the plan's descriptors belong to the mount namespace that we left, where nothing may be cloned any more. The same directory is
 * opened again by its name in ours, and must be the same. */
static int reopen(int fd, struct err *e)
{
	char link[32], path[4096];
	struct stat old, new;
	ssize_t n;
	int again;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = sys_call4(__NR_readlinkat, AT_FDCWD, link, path, sizeof(path) - 1);
	if (n < 0)
		return err_sys(e, (int)n, "find the name of a layer");
	path[n] = '\0';
	again = sys_openat(AT_FDCWD, path, O_PATH | O_NOFOLLOW, 0);
	if (again < 0)
		return err_sys(e, again, "open '%s'", path);
	if (sys_call4(__NR_newfstatat, fd, "", &old, AT_EMPTY_PATH) < 0 ||
	    sys_call4(__NR_newfstatat, again, "", &new, AT_EMPTY_PATH) < 0 || old.st_dev != new.st_dev ||
	    old.st_ino != new.st_ino) {
		(void)sys_close(again);
		return err_set(e, ERR_CONFLICT, "open '%s': it was replaced meanwhile", path);
	}
	return again;
}

/* A clone of what a descriptor of the plan names, whoever builds the root. */
static int clone_planned(const struct jail_plan *plan, int fd, int userns_fd, unsigned attrs, struct err *e)
{
	int again, clone;

	if (!(plan->flags & (JAIL_ROOTLESS | JAIL_ATTACH_LAYERS)))
		return mount_clone(fd, "", userns_fd, attrs, e);
	again = reopen(fd, e);
	if (again < 0)
		return again;
	clone = mount_clone(again, "", plan->flags & JAIL_ROOTLESS ? -1 : userns_fd, attrs, e);
	(void)sys_close(again);
	return clone;
}

/* A clone of one layer with the sandbox's ids. File systems that cannot be idmapped are laid in as they are: root's files then
 * belong to nobody inside, which is safe; the receipt says so. */
static int clone_layer(const struct jail_plan *plan, int dir, int userns_fd, struct err *e)
{
	int fd = clone_planned(plan, dir, userns_fd, 0, e);

	if (fd == -EINVAL && userns_fd >= 0)
		fd = clone_planned(plan, dir, -1, 0, e);
	return fd;
}

/* Clones of layers, kept in ret->buried. Return: index of the first; negative errno */
static int clone_layers(const struct jail_plan *plan, const int *dirs, size_t n, int userns_fd, struct root *ret, struct err *e)
{
	size_t first = ret->num_buried;

	for (size_t i = 0; i < n; i++) {
		int fd = clone_layer(plan, dirs[i], userns_fd, e);

		if (fd == -EINVAL && plan->flags & JAIL_ROOTLESS) /* the kernel's has_locked_children() */
			return err_hint(e, fd, "something is mounted below it, which an ordinary user cannot leave out; run as root");
		if (fd < 0)
			return fd;
		ret->buried[ret->num_buried++] = fd;
	}
	return (int)first;
}

static unsigned overlay_flags(const struct jail_plan *plan)
{
	return (plan->flags & JAIL_ROOTLESS ? OVERLAY_ROOTLESS : 0) | (plan->upper_fd >= 0 ? OVERLAY_VOLATILE : 0) |
	       (plan->flags & JAIL_LOWERDIR_LIST ? OVERLAY_LIST : 0);
}

/** struct overlay_names - Directories of one overlay in the writable layer */
struct overlay_names {
	const char *upper, *work;
};

/* In memory the top directory belongs to the sandbox's root, or nobody inside may write to it. On disk it is there already, and mapped. */
static int make_upper(const struct jail_plan *plan, int userns_fd, int layer, struct overlay_names names, struct err *e)
{
	int r;

	if (plan->upper_fd >= 0)
		return 0;
	if (make_dir(layer, names.upper, 0755) < 0 || make_dir(layer, names.work, 0700) < 0)
		return err_set(e, ERR_SYSTEM, "make the writable layer '%s'", names.upper);
	if (userns_fd < 0)
		return 0;
	r = (int)sys_call5(__NR_fchownat, layer, names.upper, plan->uid_base, plan->gid_base, 0);
	return r < 0 ? err_sys(e, r, "give the writable layer to the sandbox") : 0;
}

/*
 * Mount what only the overlays need somewhere in the current root. On a directory below it, not on the root itself: when the old root goes,
 * umount2() takes the topmost mount of a stack, and that must be the old root with all its children. Its /sys is there, and nothing
 * looks for it any more; /proc must stay in sight, since the layers are named by /proc/self/fd.
 */
static int attach_buried(struct root *root, struct err *e)
{
	for (; root->num_attached < root->num_buried; root->num_attached++) {
		int r = sys_move_mount(root->buried[root->num_attached], "", AT_FDCWD, "/sys", MOVE_MOUNT_F_EMPTY_PATH);

		if (r < 0)
			return err_sys(e, r, "mount a layer in the old root");
	}
	return 0;
}

static int build_overlay(const struct jail_plan *plan, const int *dirs, size_t n, int userns_fd, int layer,
			 struct overlay_names names, struct root *ret, struct err *e)
{
	unsigned attrs = jail_without(plan, PART_NNP) ? 0 : ATTR_PLAIN;
	bool mapped = plan->upper_fd >= 0 && userns_fd >= 0;
	struct fsid own;
	int first, r;

	r = make_upper(plan, userns_fd, layer, names, e);
	if (r < 0)
		return r;
	first = clone_layers(plan, dirs, n, userns_fd, ret, e);
	if (first < 0)
		return first;
	if (plan->flags & JAIL_ATTACH_LAYERS && (r = attach_buried(ret, e)) < 0)
		return r;
	if (mapped && (r = fsid_enter(plan->uid_base, plan->gid_base, &own, e)) < 0)
		return r;
	r = mount_overlay(ret->buried + first, n, layer, names.upper, names.work,
			  overlay_flags(plan), attrs, e);
	if (mapped)
		fsid_leave(&own);
	return r;
}

static int build_layers(const struct jail_plan *plan, int userns_fd, struct root *ret, struct err *e)
{
	static const struct overlay_names root = { "upper", "work" }, usr = { "usr", "usrwork" };
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns_fd };
	int layer = ret->buried[0], r;

	if (plan->upper_fd >= 0 && userns_fd >= 0) {
		r = sys_mount_setattr(layer, "", AT_EMPTY_PATH, &attr);
		if (r < 0)
			return err_hint(e, err_sys(e, r, "map the ids of the writable layer"), "use --storage-opt backing=tmpfs");
	}
	ret->overlay = build_overlay(plan, plan->lowers, plan->num_lowers, userns_fd, layer, root, ret, e);
	if (ret->overlay < 0)
		return err_wrap(e, ret->overlay, "lay out the root of image '%s'", plan->image);
	if (plan->usr_fd < 0)
		return 0;
	ret->usr = build_overlay(plan, &plan->usr_fd, 1, userns_fd, layer, usr, ret, e);
	return ret->usr < 0 ? err_wrap(e, ret->usr, "lay out /usr") : 0;
}

/* A bind whose files belong to the sandbox's user, whoever owns the directory outside: the owner's id and the user's id are made
 * one, and no other id of the host can be written, so that a sandbox's root never makes root's files on the host by accident. */
static int build_bind(const struct jail_plan *plan, const struct jail_mount *m, int userns_fd, struct err *e)
{
	unsigned attrs = ATTR_PLAIN | (m->read_only && !jail_without(plan, PART_RO_VOLUMES) ? MOUNT_ATTR_RDONLY : 0);
	int userns, fd;

	if (plan->flags & JAIL_ROOTLESS || jail_without(plan, PART_USERNS))
		return clone_planned(plan, m->source_fd, -1, attrs, e);
	if (m->map_all)
		return clone_planned(plan, m->source_fd, userns_fd, attrs, e);
	userns = idmap_for_owner(m->source_fd, plan->uid_base + plan->run_uid, e);
	if (userns < 0)
		return userns;
	fd = clone_planned(plan, m->source_fd, userns, attrs, e);
	if (fd == -EINVAL)
		fd = clone_planned(plan, m->source_fd, -1, attrs, e); /* no idmap there: its files belong to nobody inside */
	(void)sys_close(userns);
	return fd;
}

static int build_volumes(const struct jail_plan *plan, int userns_fd, struct root *ret, struct err *e)
{
	for (size_t i = 0; i < plan->num_mounts; i++) {
		const struct jail_mount *m = &plan->mounts[i];
		int fd = -EBADF;

		if (m->kind == JAIL_BIND) {
			fd = build_bind(plan, m, userns_fd, e);
			if (fd < 0)
				return err_wrap(e, fd, "mount '%s'", m->source);
		}
		ret->volumes[ret->num_volumes++] = fd;
	}
	return 0;
}

int root_begin(const struct jail_plan *plan, struct root *ret, struct err *e)
{
	int r;

	if (plan->upper_fd >= 0)
		r = sys_fcntl(plan->upper_fd, F_DUPFD_CLOEXEC, 3); /* one of our own, since the plan closes its */
	else
		r = mount_tmpfs(plan->upper_bytes, plan->upper_inodes, 0755, ATTR_PLAIN, e);
	if (r < 0)
		return err_wrap(e, r, "make the writable layer");
	ret->buried[ret->num_buried++] = r; /* the first, where build_layers() finds it */
	r = ret->furniture = build_furniture(plan, e);
	if (r < 0)
		return r;
	r = ret->cpus = mount_clone(AT_FDCWD, "/sys/devices/system/cpu", -1, ATTR_DATA | MOUNT_ATTR_RDONLY, e);
	if (r == -ENOENT || (r < 0 && plan->flags & JAIL_ROOTLESS))
		r = 0; /* a host without /sys, or one that locks it for us: programs count CPUs by affinity */
	if (r >= 0 && plan->flags & JAIL_ROOTLESS)
		r = build_nodes(plan, ret, e);
	return MIN(r, 0);
}

int root_build(const struct jail_plan *plan, int userns_fd, struct root *ret, struct err *e)
{
	int r = build_layers(plan, userns_fd, ret, e);

	return r < 0 ? r : build_volumes(plan, userns_fd, ret, e);
}

static int attach_clone(int root, const char *target, int dir, const char *path, unsigned attrs, enum mount_target create,
			struct err *e)
{
	int fd = mount_clone(dir, path, -1, attrs, e), r;

	if (fd < 0)
		return fd;
	r = mount_attach(root, target, fd, create, e);
	(void)sys_close(fd);
	return r;
}

static int attach_nodes(const struct root *parts, int root, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts->nodes); i++) {
		char target[32];
		int r;

		if (parts->nodes[i] < 0)
			continue;
		(void)snprintf(target, sizeof(target), "dev/%s", jail_devices[i].name);
		r = mount_attach(root, target, parts->nodes[i], TARGET_MUST_EXIST, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int attach_dev(int root, const struct root *parts, struct err *e)
{
	int r = attach_clone(root, "dev", parts->furniture, "dev", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY,
			     TARGET_DIR, e);

	return r < 0 ? r : attach_nodes(parts, root, e);
}

static int attach_sys(int root, const struct root *parts, struct err *e)
{
	int r;

	r = attach_clone(root, "sys", parts->furniture, "sys", ATTR_DATA | MOUNT_ATTR_RDONLY, TARGET_DIR, e);
	if (r == 0 && parts->cpus >= 0)
		r = mount_attach(root, "sys/devices/system/cpu", parts->cpus, TARGET_MUST_EXIST, e);
	return r;
}

/* A clone over a path that an image or a kernel may lack. The path is opened first: a clone that finds no place costs a grace period. */
static int cover(int root, const char *target, int dir, const char *path, struct err *e)
{
	int at = mount_target_open(root, target), fd, r;

	if (at < 0)
		return at == -ENOENT ? 0 : err_sys(e, at, "open '/%s'", target);
	r = fd = mount_clone(dir < 0 ? at : dir, path, -1, ATTR_DATA | MOUNT_ATTR_RDONLY, e);
	if (fd >= 0) {
		r = mount_attach_at(at, target, fd, e);
		(void)sys_close(fd);
	}
	(void)sys_close(at);
	return r;
}

/* Files that an image lacks are made; one that has something else at that name keeps it. */
static void attach_identity(int root, const struct root *parts)
{
	for (size_t i = 0; i < ARRAY_SIZE(identity); i++) {
		int fd = mount_clone(parts->furniture, identity[i].name, -1, ATTR_DATA | MOUNT_ATTR_RDONLY, NULL);

		if (fd < 0)
			continue;
		ignored(mount_attach(root, identity[i].target, fd, TARGET_FILE, NULL));
		(void)sys_close(fd);
	}
}

/* Below our own mount of /proc, not below what an image has at that name: a mask that finds no place is taken for one that this kernel lacks. */
static int attach_masks(const struct root *parts, struct err *e)
{
	static const char *const covers[] = { [MASK_HIDE_FILE] = "hidden", [MASK_HIDE_DIR] = "empty", [MASK_READ_ONLY] = "" };

	for (size_t i = 0; i < jail_num_masks; i++) {
		const struct jail_mask *m = &jail_masks[i];
		int r = cover(parts->own[OWN_PROC], m->path + strlen("/proc/"), m->how == MASK_READ_ONLY ? -1 : parts->furniture,
			      covers[m->how], e);

		if (r < 0)
			return err_wrap(e, r, "mask '%s'", m->path);
	}
	return 0;
}

static int attach_volumes(const struct jail_plan *plan, int root, const struct root *parts, struct err *e)
{
	for (size_t i = 0; i < plan->num_mounts; i++) {
		const struct jail_mount *m = &plan->mounts[i];
		struct stat st;
		int r;

		if (m->kind == JAIL_TMPFS) {
			int fd = mount_tmpfs(m->size_bytes, 0, m->mode, ATTR_PLAIN, e);

			if (fd < 0)
				return fd;
			r = mount_attach(root, m->target + 1, fd, TARGET_DIR, e);
			(void)sys_close(fd);
		} else {
			enum mount_target create = TARGET_DIR;

			if (sys_call4(__NR_newfstatat, m->source_fd, "", &st, AT_EMPTY_PATH) == 0 && !S_ISDIR(st.st_mode))
				create = TARGET_FILE;
			r = mount_attach(root, m->target + 1, parts->volumes[i], create, e);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* Step 3 and 4: from here on "/" and "." are the sandbox's root. */
static int enter(const struct jail_plan *plan, struct root *root, struct err *e)
{
	int overlay = root->overlay, r;

	r = attach_buried(root, e);
	if (r < 0)
		return r;
	r = sys_move_mount(overlay, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH);
	if (r < 0)
		return err_sys(e, r, "attach the new root");
	r = sys_fchdir(overlay);
	if (r < 0)
		return err_sys(e, r, "enter the new root");
	r = sys_pivot_root(".", ".");
	if (r < 0)
		return err_sys(e, r, "make the new root the root");
	if (!jail_without(plan, PART_PIVOT)) {
		r = sys_umount2(".", MNT_DETACH);
		if (r < 0)
			return err_sys(e, r, "detach the host's root");
	}
	r = sys_chdir("/");
	return r < 0 ? err_sys(e, r, "enter the new root") : 0;
}

/* Everything below the new root. The furniture is parked below /tmp, where the /tmp of the sandbox covers it for good: before 6.15 a
 * mount must be attached somewhere to be cloned. */
static int furnish(const struct jail_plan *plan, const struct root *root, struct err *e)
{
	int fd = root->overlay, r;

	r = mount_attach(fd, "tmp", root->furniture, TARGET_DIR, e);
	if (r == 0 && root->usr >= 0)
		r = mount_attach(fd, "usr", root->usr, TARGET_MUST_EXIST, e);
	if (r == 0)
		r = attach_sys(fd, root, e);
	if (r == 0 && !jail_without(plan, PART_DEV))
		r = attach_dev(fd, root, e);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(own_mounts); i++)
		if (root->own[i] >= 0)
			r = mount_attach(fd, own_mounts[i].target, root->own[i], TARGET_DIR, e);
	if (r == 0) {
		attach_identity(fd, root);
		r = attach_volumes(plan, fd, root, e);
	}
	if (r == 0 && !jail_without(plan, PART_MASKS))
		r = attach_masks(root, e);
	return r;
}

static int make_read_only(int overlay, int usr, struct err *e)
{
	struct mount_attr ro = { .attr_set = MOUNT_ATTR_RDONLY };
	int r = sys_mount_setattr(overlay, "", AT_EMPTY_PATH, &ro);

	if (r == 0 && usr >= 0)
		r = sys_mount_setattr(usr, "", AT_EMPTY_PATH, &ro);
	return r < 0 ? err_sys(e, r, "make the root read-only") : 0;
}

int root_prepare(const struct jail_plan *plan, struct root *root, struct err *e)
{
	static const struct mount_option pts[] = {
		{ "newinstance", NULL }, { "ptmxmode", "0666" }, { "mode", "0620" }, { "gid", "5" }, { NULL, NULL },
	};
	static const struct mount_option pts_one_id[] = {
		{ "newinstance", NULL }, { "ptmxmode", "0666" }, { "mode", "0620" }, { NULL, NULL },
	};
	int r = sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);

	if (r < 0)
		return err_sys(e, r, "make the mounts private");
	for (size_t i = 0; i < ARRAY_SIZE(own_mounts); i++) {
		const struct own_mount *m = &own_mounts[i];

		if (jail_without(plan, PART_DEV) && str_starts(m->target, "dev/"))
			continue;
		if (m->size == SIZE_SHM || m->size == SIZE_TMP)
			r = mount_tmpfs(m->size == SIZE_SHM ? plan->shm_bytes : plan->tmp_bytes, 0, 01777, m->attrs, e);
		else if (m->size == SIZE_PTS)
			r = mount_new(m->type, plan->uid_count > 5 ? pts : pts_one_id, m->attrs, e);
		else
			r = mount_new(m->type, NULL, m->attrs, e);
		if (r < 0)
			return err_hint(e, err_wrap(e, r, "make /%s", m->target),
					"in a container, its /proc must not be masked");
		root->own[i] = r;
	}
	return 0;
}

int root_enter(const struct jail_plan *plan, struct root *root, struct err *e)
{
	int r = enter(plan, root, e);

	if (r == 0)
		r = furnish(plan, root, e);
	if (r == 0 && plan->flags & JAIL_READ_ONLY_ROOT)
		r = make_read_only(root->overlay, root->usr, e);
	return r;
}
