/* SPDX-License-Identifier: Apache-2.0 */
/* upper.c - The writable layer on disk: made, limited, removed
 *
 * Theory of operation. Runs in the warden, as root of the host. Both kinds end as the same thing, a detached mount of
 * an empty directory whose size is limited by the kernel, so that the jail need not know which it is. Ids on disk are
 * plain (0, 1000); the mount maps them.
 *
 *   quota  STORE/upper/ID on the store's own file system, with a project of its own, and as fast. A SIGKILL of the
 *          owner leaves the directory, named by the sandbox's id: the undertaker removes it, else a sweep.
 *   loop   a sparse file, an ext4 in it, a loop device. The file never has a name (O_TMPFILE; where that is missing,
 *          one for the instant between open and unlink), the device frees itself, the mount is detached: a SIGKILL
 *          at any point leaves nothing.
 *
 * The size of a loop is made exact from within: its image is somewhat larger than asked for (inode tables, bitmaps,
 * what ext4 holds back), and "ballast", an unwritten file outside of `upper`, takes what is too much. Computing the
 * overhead exactly was rejected: it depends on the version of mkfs and the kernel. Reserved blocks were rejected:
 * `-m` counts in percent, and root of some hosts may use them.
 *
 * Nothing is synced: the layer lives as long as its sandbox, and the overlay is mounted `volatile`. The directory of
 * a quota outlives a power cut, and is collected with the first sweep, since the table of slots does not. */
#include "layers/upper.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/sys.h"
#include "layers/internal.h"
#include "layers/loop.h"
#include "layers/mkfs.h"
#include "layers/quota.h"
#include "layers/tree.h"

#define DIR_NAME "upper"
#define ID_SIZE 16
#define PROJECTS_PER_SLOT 16

/* What we and two overlays make ourselves, which is not the sandbox's to pay: the directory, upper, work, usr,
 * usrwork, and in each work directory work, index, incompat, incompat/volatile and a temporary one. A directory takes
 * a block of 4 KiB, 16 at most with its extents. */
#define OWN_INODES 16
#define OWN_BYTES KIB(128)

/* ext4 as mkfs.c makes it (kernel Documentation/filesystems/ext4/blockgroup.rst). */
#define BLOCK 4096
#define INODE 256
#define GROUP_BLOCKS 32768 /* and as many inodes at most: one bit each in a bitmap of one block */
#define RESERVED_INODES 11 /* the first that a file can have */
/* Blocks that ext4 keeps for its own late allocations: 2 %, at most this (ext4_calculate_resv_clusters). */
#define HELD_BACK 4096
#define DESCRIPTOR 64 /* bytes for each group, in each copy of the table; copies are in 0, 1 and powers of 3, 5 and 7 */
#define MAX_COPIES 32 /* groups of that kind in 2^32 blocks */

/* Sizes beyond are not for one sandbox, and come near what ext4 can have (2^32 inodes). */
#define BYTES_MAX (UINT64_C(64) << 40)
#define INODES_MAX UINT64_C(0xf0000000)

static const char *const kind_names[] = {
	[UPPER_TMPFS] = "memory",
	[UPPER_QUOTA] = "project quota",
	[UPPER_LOOP] = "loop device",
};
_Static_assert(ARRAY_SIZE(kind_names) == UPPER_NUM_KINDS, "kind_names[] misses a kind");

const char *upper_kind_name(enum upper_kind kind)
{
	return (unsigned)kind < UPPER_NUM_KINDS ? kind_names[kind] : "?";
}

int upper_probe(int store_fd, enum upper_kind kind, struct err *e)
{
	int r;

	if (kind == UPPER_TMPFS)
		return 0;
	if (kind == UPPER_QUOTA)
		return quota_probe(store_fd, e);
	r = mkfs_probe(e);
	return r < 0 ? r : loop_probe(e);
}

/* The umask is the caller's: modes are set afterwards. */
static int make_dirs(int layer, struct err *e)
{
	static const struct {
		const char *name;
		mode_t mode;
	} dirs[] = { { "upper", 0755 }, { "work", 0700 }, { "usr", 0755 }, { "usrwork", 0700 } };

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdirat(layer, dirs[i].name, 0700) < 0 || fchmodat(layer, dirs[i].name, dirs[i].mode, 0) < 0)
			return err_sys(e, -errno, "make '%s' of the writable layer", dirs[i].name);
	return 0;
}

static int open_parent(int store_fd, struct err *e)
{
	int fd = dir_make_open(store_fd, DIR_NAME, 0700);

	return fd < 0 ? err_sys(e, fd, "open '%s' in the store", DIR_NAME) : fd;
}

/* --- Quota ------------------------------------------------------------------------------------------------------- */

static int remove_layer(int parent, const char *name, struct err *e)
{
	auto_close int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	uint32_t project = 0;
	int r;

	if (fd >= 0)
		ignored(quota_project(fd, &project)); /* a file system without projects has none to forget */
	r = tree_remove_at(parent, name, e);
	if (r == 0 && project >= UPPER_PROJECT_BASE)
		ignored(quota_limit(parent, project, 0, 0, NULL)); /* a limit on nothing does no harm */
	return r;
}

/* A project of this slot that nobody has files in. Usually it is the first: the others are for what a killed sandbox
 * left, and for sandboxes of another run directory over the same store. */
static int find_project(int parent, uint32_t slot, uint32_t *ret, struct err *e)
{
	int r;

	for (uint32_t i = 0; i < PROJECTS_PER_SLOT; i++) {
		uint32_t project = UPPER_PROJECT_BASE + slot + i * UPPER_SLOTS;
		uint64_t inodes;

		r = quota_inodes(parent, project, &inodes, e);
		if (r < 0)
			return r;
		if (inodes == 0) {
			*ret = project;
			return 0;
		}
	}
	r = err_set(e, ERR_EXHAUSTED, "find a free project for the writable layer: %d have files of dead sandboxes",
		    PROJECTS_PER_SLOT);
	return err_hint(e, r, "carrel doctor --sweep");
}

static int quota_layer(int parent, const char *id, uint32_t project, struct err *e)
{
	auto_close int fd = -EBADF;
	int r;

	if (mkdirat(parent, id, 0700) < 0)
		return err_sys(e, -errno, "make the writable layer of sandbox '%s'", id);
	fd = openat(parent, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, -errno, "open the writable layer of sandbox '%s'", id);
	r = quota_assign(fd, project, e);
	if (r == 0)
		r = make_dirs(fd, e);
	if (r < 0)
		return r;
	r = sys_open_tree(fd, "", OPEN_TREE_CLONE | AT_EMPTY_PATH);
	return r < 0 ? err_sys(e, r, "clone the mount of a writable layer") : r;
}

static int make_quota(int parent, const struct upper_want *want, struct err *e)
{
	uint32_t project = 0;
	int r, fd;

	r = quota_probe(parent, e);
	if (r == 0)
		r = find_project(parent, want->slot, &project, e);
	if (r == 0) /* before there is anything to limit */
		r = quota_limit(parent, project, want->bytes + OWN_BYTES, want->inodes + OWN_INODES, e);
	if (r < 0)
		return r;
	fd = quota_layer(parent, want->id, project, e);
	if (fd < 0)
		ignored(remove_layer(parent, want->id, NULL)); /* what stays is named by the id, and collected */
	return fd;
}

/* --- Loop -------------------------------------------------------------------------------------------------------- */

static uint64_t div_up(uint64_t n, uint64_t by)
{
	return (n + by - 1) / by;
}

/* Bytes of an image that has room for at least @bytes and @inodes: too much is made ballast. */
static uint64_t image_size(uint64_t bytes, uint64_t inodes)
{
	uint64_t blocks = div_up(bytes, BLOCK) + div_up(inodes * INODE, BLOCK), groups, last;

	blocks += MIN(blocks / 40, HELD_BACK); /* 2 % of the whole */
	groups = MAX(div_up(inodes, GROUP_BLOCKS), blocks / (GROUP_BLOCKS - MAX_COPIES) + 1);
	/* Each group: two bitmaps, and its part of the inode table rounded up. */
	blocks += groups * 3 + MAX_COPIES * (1 + div_up(groups * DESCRIPTOR, BLOCK)) + 64;
	if (div_up(inodes, GROUP_BLOCKS) > div_up(blocks, GROUP_BLOCKS))
		blocks = div_up(inodes, GROUP_BLOCKS) * GROUP_BLOCKS;
	last = blocks % GROUP_BLOCKS; /* mkfs leaves out a last group that its own tables would fill */
	if (blocks > GROUP_BLOCKS && last < GROUP_BLOCKS / 8)
		blocks += GROUP_BLOCKS / 8;
	return blocks * BLOCK;
}

static int open_image(int parent, const char *id, struct err *e)
{
	char name[ID_SIZE + sizeof(".img")];
	int fd = openat(parent, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
		return err_sys(e, -errno, "make a file for the writable layer");
	(void)snprintf(name, sizeof(name), "%.16s.img", id);
	fd = openat(parent, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, -errno, "make a file for the writable layer");
	if (unlinkat(parent, name, 0) < 0) {
		int r = err_sys(e, -errno, "unlink '%s' in the store", name);

		(void)close(fd);
		return r;
	}
	return fd;
}

static int mount_failed(int r, const char *step, struct err *e)
{
	return err_sys(e, r, "%s the file system of the writable layer", step);
}

/* noinit_itable: the kernel would fill the unused inode tables with zeroes in the background, and the sparse file
 * with them. nobarrier: a flush of the device is a flush of the store's file system, for data that nobody will read
 * after a crash. */
static int mount_device(int device, struct err *e)
{
	auto_close int fs = sys_fsopen("ext4");
	char source[32];
	int r = fs;

	(void)snprintf(source, sizeof(source), "/proc/self/fd/%d", device);
	if (r >= 0)
		r = sys_fsconfig(fs, FSCONFIG_SET_STRING, "source", source, 0);
	if (r >= 0)
		r = sys_fsconfig(fs, FSCONFIG_SET_FLAG, "noinit_itable", NULL, 0);
	if (r >= 0)
		r = sys_fsconfig(fs, FSCONFIG_SET_FLAG, "nobarrier", NULL, 0);
	if (r < 0)
		return mount_failed(r, "configure", e);
	r = sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	if (r < 0)
		return mount_failed(r, "open", e);
	r = sys_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return r < 0 ? mount_failed(r, "mount", e) : r;
}

/* Take from the file system what it has beyond @bytes. */
static int add_ballast(int layer, uint64_t bytes, struct err *e)
{
	auto_close int fd = -EBADF;
	struct statfs st;
	uint64_t have;

	if (fstatfs(layer, &st) < 0)
		return err_sys(e, -errno, "look at the writable layer");
	have = (uint64_t)st.f_bavail * BLOCK;
	if (have < bytes)
		return err_set(e, ERR_SYSTEM,
			       "make a writable layer of %" PRIu64 " bytes: its file system has %" PRIu64, bytes, have);
	fd = openat(layer, "ballast", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || (have > bytes && fallocate(fd, 0, 0, (off_t)(have - bytes)) < 0))
		return err_sys(e, -errno, "limit the writable layer to %" PRIu64 " bytes", bytes);
	return 0;
}

static int make_loop(int parent, const struct upper_want *want, struct err *e)
{
	uint64_t inodes = want->inodes + OWN_INODES + RESERVED_INODES;
	auto_close int file = -EBADF, device = -EBADF, layer = -EBADF;
	int r;

	file = open_image(parent, want->id, e);
	if (file < 0)
		return file;
	if (ftruncate(file, (off_t)image_size(want->bytes + OWN_BYTES, inodes)) < 0)
		return err_hint(e, err_sys(e, -errno, "size the file of the writable layer"),
				"ask for less: --storage-opt size=SIZE");
	r = mkfs_ext4(file, inodes, e);
	if (r < 0)
		return r;
	device = loop_attach(file, want->id, e);
	if (device < 0)
		return device;
	layer = mount_device(device, e);
	if (layer < 0)
		return layer;
	r = make_dirs(layer, e);
	if (r == 0)
		r = add_ballast(layer, want->bytes + OWN_BYTES, e);
	return r < 0 ? r : take_fd(layer);
}

/* --- Both -------------------------------------------------------------------------------------------------------- */

int upper_make(int store_fd, enum upper_kind kind, const struct upper_want *want, struct err *e)
{
	auto_close int parent = -EBADF;
	int r;

	if (strlen(want->id) != ID_SIZE || strchr(want->id, '/') || want->slot >= UPPER_SLOTS)
		return err_set(e, ERR_INVALID, "make the writable layer of '%.32s'", want->id);
	if (want->bytes > BYTES_MAX || want->inodes > INODES_MAX) {
		r = err_set(e, ERR_INVALID, "make a writable layer of %" PRIu64 " bytes and %" PRIu64 " inodes",
			    want->bytes, want->inodes);
		return err_hint(e, r, "on disk it has at most 64t and 4026531840 inodes");
	}
	parent = open_parent(store_fd, e);
	if (parent < 0)
		return parent;
	return kind == UPPER_QUOTA ? make_quota(parent, want, e) : make_loop(parent, want, e);
}

static int open_existing(int store_fd, struct err *e)
{
	int fd = openat(store_fd, DIR_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 || errno == ENOENT)
		return fd < 0 ? -ENOENT : fd;
	return err_sys(e, -errno, "open '%s' in the store", DIR_NAME);
}

int upper_remove(int store_fd, const char *id, struct err *e)
{
	auto_close int parent = open_existing(store_fd, e);

	char image[ID_SIZE + sizeof(".img")];
	int r;

	if (parent < 0)
		return parent == -ENOENT ? 0 : parent;
	(void)snprintf(image, sizeof(image), "%.16s.img", id);
	r = remove_layer(parent, id, e);
	return r < 0 ? r : tree_remove_at(parent, image, e);
}

int upper_list(int store_fd, int (*visit)(const char *id, void *data), void *data, struct err *e)
{
	int fd = open_existing(store_fd, e), r = 0;
	struct dirent *d;
	DIR *dir;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	dir = fdopendir(fd);
	if (!dir) {
		(void)close(fd);
		return -ENOMEM;
	}
	while (r >= 0 && (d = readdir(dir))) {
		char id[ID_SIZE + 1];

		if (d->d_name[0] == '.')
			continue;
		(void)snprintf(id, sizeof(id), "%.16s", d->d_name); /* without ".img" */
		r = visit(id, data);
	}
	(void)closedir(dir);
	return MIN(r, 0);
}
