/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.c - Unpack a tar that somebody else made
 *
 * Theory of operation. Runs in carrel-unpack, which the warden starts in a sandbox of its own: stdin is the archive,
 * one directory is writable, there is no network, and memory, time and processes are limited from outside. libarchive
 * parses; that is why the jail is there. libarchive does not write: archive_write_disk works with paths and with
 * options whose combinations have let links escape, so writing is sink.c's, by descriptors.
 *
 * An entry is either taken as it is, skipped and counted, or the end of the whole archive. Refused: names that are
 * absolute or have "..", names below a link, hard links to what is not there, owners beyond the range of a sandbox (0
 * to 65535), overlayfs whiteouts (character device 0/0: they would delete files of other layers), more bytes or
 * entries than allowed, damage. Skipped: devices, sockets. Dropped: attributes other than user.* (a file capability
 * or an SELinux label of somebody else's system means nothing here), and user.overlay.* and trusted.overlay.*, by
 * which a layer could redirect overlayfs to directories that it does not own. Kept: set-id bits. Sandboxes mount
 * their root with nosuid and run with no_new_privs, the store lets nobody else in, and an image that is saved again
 * should be what it was.
 *
 * Size is charged before a byte of a file is written, as the header declares it, and a file cannot get more than it
 * declared; pages of zeroes become holes. So ten gigabytes of zeroes cost time to decompress, up to the limit, and no
 * space. */
#include "unpack/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/str.h"

#define READ_SIZE (64 * 1024) /* bytes: one pipe buffer */
#define ID_MAX 65535          /* the range of one sandbox, docs/ARCHITECTURE.md */
#define XATTRS_MAX 64         /* attributes kept for one entry */

const struct unpack_limits unpack_limits_default = {
	.bytes_max = GIB(16),   /* four times a desktop with compilers */
	.entries_max = 1000000, /* a Debian with compilers has 200,000 */
	.depth_max = 256,       /* node_modules reach 60 */
};

struct unpack {
	struct archive *a;
	struct sink sink;
	const struct unpack_limits *limits;
	unpack_note_fn *note;
	struct unpack_result result;
};

static void unpack_skip(struct unpack *u, const char *what, const char *path)
{
	char shown[NAME_SHOWN_SIZE];

	if (u->note)
		u->note(what, name_show(path, shown));
}

/* bad_archive() - What libarchive says, made fit to be shown: it may quote the archive */
static int bad_archive(struct unpack *u, struct err *e)
{
	const char *why = archive_error_string(u->a);
	char shown[NAME_SHOWN_SIZE];
	int sys = archive_errno(u->a);

	/* libarchive's own codes (damage, format) are -1, 84, 79; of errnos only those of reading matter here. */
	if (sys == ENOMEM)
		return -ENOMEM;
	return err_set(e, ERR_INVALID, "read the archive: %s", name_show(why ? why : "damaged", shown));
}

static int entry_meta(struct archive_entry *entry, const char *path, struct sink_meta *ret, struct err *e)
{
	const int64_t uid = archive_entry_uid(entry), gid = archive_entry_gid(entry);
	const long nsec = archive_entry_mtime_nsec(entry);
	char shown[NAME_SHOWN_SIZE];

	if (uid < 0 || uid > ID_MAX || gid < 0 || gid > ID_MAX)
		return err_set(e, ERR_INVALID, "entry '%s': owner %lld:%lld is beyond %d", name_show(path, shown),
			       (long long)uid, (long long)gid, ID_MAX);
	*ret = (struct sink_meta){
		.uid = (uid_t)uid,
		.gid = (gid_t)gid,
		.mode = archive_entry_perm(entry) & 07777,
		.mtime = { .tv_sec = archive_entry_mtime(entry), .tv_nsec = nsec >= 0 && nsec < 1000000000 ? nsec : 0 },
	};
	return 0;
}

static bool xattr_is_kept(const char *name)
{
	return str_starts(name, "user.") && !str_starts(name, "user.overlay.");
}

/* set_xattrs() - Keep what a user may set; a file system that cannot hold it drops it like the rest */
static void set_xattrs(struct unpack *u, struct archive_entry *entry, int fd)
{
	const char *name;
	const void *value;
	size_t size;
	int n = 0;

	(void)archive_entry_xattr_reset(entry); /* answers their number */
	while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK)
		if (!name || !xattr_is_kept(name) || n++ >= XATTRS_MAX || fsetxattr(fd, name, value, size, 0) < 0)
			u->result.dropped_xattrs++;
}

/* copy_data() - Write what the archive has for a file of @size bytes */
static int copy_data(struct unpack *u, int fd, const char *path, uint64_t size, struct err *e)
{
	char shown[NAME_SHOWN_SIZE];
	const void *block;
	int64_t offset;
	size_t len;
	int r;

	for (;;) {
		r = archive_read_data_block(u->a, &block, &len, &offset);
		if (r == ARCHIVE_EOF)
			break;
		if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
			return bad_archive(u, e);
		if (offset < 0 || (uint64_t)offset > size || len > size - (uint64_t)offset)
			return err_set(e, ERR_INVALID, "entry '%s': more data than it declares",
				       name_show(path, shown));
		r = sink_write(fd, block, len, (uint64_t)offset);
		if (r < 0)
			return err_sys(e, r, "entry '%s': write to it", name_show(path, shown));
	}
	if (ftruncate(fd, (off_t)size) < 0) /* holes at the end */
		return err_sys(e, -errno, "entry '%s': give it its size", name_show(path, shown));
	return 0;
}

static int unpack_file(struct unpack *u, struct archive_entry *entry, const char *path, const struct sink_meta *m,
		       struct err *e)
{
	const int64_t size = archive_entry_size(entry);
	char shown[NAME_SHOWN_SIZE], limit[24];
	auto_close int fd = -EBADF;
	int r;

	if (size < 0 || (uint64_t)size > u->limits->bytes_max - u->result.bytes)
		return err_set(e, ERR_EXHAUSTED, "entry '%s': with it the archive is larger than %s",
			       name_show(path, shown), str_format_size(u->limits->bytes_max, limit, sizeof(limit)));
	u->result.bytes += (uint64_t)size;
	fd = sink_file(&u->sink, path, e);
	if (fd < 0)
		return fd;
	r = copy_data(u, fd, path, (uint64_t)size, e);
	if (r < 0)
		return r;
	u->result.setid_files += (m->mode & (S_ISUID | S_ISGID)) != 0;
	set_xattrs(u, entry, fd);
	return sink_file_finish(&u->sink, fd, path, m, e);
}

static int unpack_dir(struct unpack *u, struct archive_entry *entry, const char *path, const struct sink_meta *m,
		      struct err *e)
{
	auto_close int fd = -EBADF;

	fd = sink_dir(&u->sink, path, m, e);
	if (fd < 0)
		return fd;
	set_xattrs(u, entry, fd);
	return 0;
}

static int unpack_symlink(struct unpack *u, struct archive_entry *entry, const char *path, const struct sink_meta *m,
			  struct err *e)
{
	const char *target = archive_entry_symlink(entry);
	char shown[NAME_SHOWN_SIZE];

	/* Any target will do: it is text, which nothing outside a sandbox follows. */
	if (!target || !target[0] || strlen(target) >= NAME_PATH_MAX)
		return err_set(e, ERR_INVALID, "entry '%s': a symbolic link without a usable target",
			       name_show(path, shown));
	return sink_symlink(&u->sink, path, target, m, e);
}

static int unpack_device(struct unpack *u, struct archive_entry *entry, const char *path, struct err *e)
{
	char shown[NAME_SHOWN_SIZE];

	if (archive_entry_filetype(entry) == AE_IFCHR && archive_entry_rdev(entry) == makedev(0, 0))
		return err_set(e, ERR_INVALID, "entry '%s': an overlayfs whiteout, not a file", name_show(path, shown));
	u->result.skipped_devices++;
	unpack_skip(u, "device", path);
	return 0;
}

static int unpack_hardlink(struct unpack *u, const char *path, const char *to, struct err *e)
{
	char target[NAME_PATH_MAX], shown[NAME_SHOWN_SIZE];
	int r;

	r = name_normalise(to, u->limits->depth_max, target, e);
	if (r < 0)
		return err_wrap(e, r, "entry '%s': a hard link", name_show(path, shown));
	return sink_hardlink(&u->sink, path, target, e);
}

/* unpack_entry() - Deal with one entry, whose name is normalised */
static int unpack_entry(struct unpack *u, struct archive_entry *entry, const char *path, struct err *e)
{
	const char *hardlink = archive_entry_hardlink(entry);
	struct sink_meta m;
	int r;

	r = entry_meta(entry, path, &m, e);
	if (r < 0)
		return r;
	if (hardlink)
		return unpack_hardlink(u, path, hardlink, e);
	switch (archive_entry_filetype(entry)) {
	case AE_IFREG:
		return unpack_file(u, entry, path, &m, e);
	case AE_IFDIR:
		return unpack_dir(u, entry, path, &m, e);
	case AE_IFLNK:
		return unpack_symlink(u, entry, path, &m, e);
	case AE_IFIFO:
		return sink_fifo(&u->sink, path, &m, e);
	case AE_IFBLK:
	case AE_IFCHR:
		return unpack_device(u, entry, path, e);
	default:
		u->result.skipped_others++;
		unpack_skip(u, "other", path);
		return 0;
	}
}

static int unpack_next(struct unpack *u, struct err *e)
{
	struct archive_entry *entry;
	char path[NAME_PATH_MAX];
	const char *name;
	int r;

	r = archive_read_next_header(u->a, &entry);
	if (r == ARCHIVE_EOF)
		return 0;
	if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
		return bad_archive(u, e);
	name = archive_entry_pathname(entry);
	if (!name || !name[0])
		return err_set(e, ERR_INVALID, "an entry has no usable name");
	r = name_normalise(name, u->limits->depth_max, path, e);
	if (r < 0)
		return r;
	r = unpack_entry(u, entry, path, e);
	return r < 0 ? r : 1;
}

/* unpack_open() - A reader for tar and nothing else */
static int unpack_open(struct unpack *u, int in, struct err *e)
{
	u->a = archive_read_new();
	if (!u->a)
		return -ENOMEM;
	if (archive_read_support_format_tar(u->a) != ARCHIVE_OK ||
	    archive_read_support_filter_gzip(u->a) != ARCHIVE_OK ||
	    archive_read_support_filter_bzip2(u->a) != ARCHIVE_OK ||
	    archive_read_support_filter_xz(u->a) != ARCHIVE_OK || archive_read_support_filter_zstd(u->a) != ARCHIVE_OK)
		return err_hint(e, err_set(e, ERR_UNSUPPORTED, "this libarchive lacks gzip, bzip2, xz or zstd"),
				"install the libarchive of the distribution");
	if (archive_read_open_fd(u->a, in, READ_SIZE) != ARCHIVE_OK)
		return bad_archive(u, e);
	return 0;
}

int unpack_stream(int in, int root, const struct unpack_limits *limits, enum sink_owners owners, unpack_note_fn *note,
		  struct unpack_result *ret, struct err *e)
{
	struct unpack u = { .limits = limits, .note = note };
	uint64_t seen = 0;
	int r;

	sink_init(&u.sink, root, owners, limits->entries_max);
	r = unpack_open(&u, in, e);
	if (r == 0) {
		while ((r = unpack_next(&u, e)) > 0)
			if (++seen > limits->entries_max) { /* skipped ones cost time, too */
				r = err_set(e, ERR_EXHAUSTED, "more than %llu entries",
					    (unsigned long long)limits->entries_max);
				break;
			}
		if (r == 0 && seen == 0)
			r = err_set(e, ERR_INVALID, "read the archive: it is empty");
	}
	if (r == 0)
		r = sink_finish(&u.sink, e);
	u.result.entries = u.sink.entries;
	if (r == 0)
		*ret = u.result;
	sink_done(&u.sink);
	(void)archive_read_free(u.a);
	return r;
}
