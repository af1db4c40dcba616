/* SPDX-License-Identifier: Apache-2.0 */
/* sink.c - Write a tree by descriptors, never through a link that the tree itself holds
 *
 * Theory of operation. Runs in the unpacker, as root of a user namespace (CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER,
 * CAP_FSETID), in a sandbox whose only writable directory is the one that is written. The classic break of unpackers
 * is a link that the archive plants and then writes through ("a -> /etc", "a/passwd"). So no path is ever given to
 * the kernel as a whole but to openat2() with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, which answers for the parent
 * directory; the last name is only used with calls that do not follow: O_EXCL | O_NOFOLLOW, mkdirat, symlinkat,
 * linkat, unlinkat. Owner, mode and times are set on descriptors.
 *
 * Following links beneath the root (RESOLVE_IN_ROOT) would be safe, too, and was rejected: archives of flat trees do
 * not need it, and two programs that unpack the same archive would disagree on the result.
 *
 * A directory gets its mode at once, also one without write permission, which is why the namespace's root has to be
 * who runs here. */
#include "unpack/sink.h"

#include <string.h>
#include <sys/stat.h>

#include "base/sys.h"

/* Room for paths of directories until their times are set. A Debian with a desktop has 2 MiB of them. */
#define DIR_TIMES_MAX MIB(64) /* bytes */

#define HOLE_SIZE 4096 /* bytes: the page, the smallest hole that file systems keep */

struct dir_time {
	struct timespec mtime;
	size_t len; /* of the path behind it, with NUL */
};

void sink_init(struct sink *s, int root, enum sink_owners owners, uint64_t entries_max)
{
	*s = (struct sink){
		.root = root,
		.owners = owners,
		.parent_fd = -EBADF,
		.dir_times = BUF_INIT(DIR_TIMES_MAX),
		.entries_max = entries_max,
	};
}

static void forget_parent(struct sink *s)
{
	close_p(&s->parent_fd);
	s->parent_fd = -EBADF;
}

void sink_done(struct sink *s)
{
	forget_parent(s);
	buf_done(&s->dir_times);
}

static int open_beneath(int dir, const char *path, uint64_t flags)
{
	const struct open_how how = {
		.flags = flags | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
	};

	return sys_openat2(dir, path, &how);
}

static int refuse(struct err *e, int r, const char *path, const char *attempt)
{
	char shown[NAME_SHOWN_SIZE];

	(void)name_show(path, shown);
	if (r == -ELOOP)
		return err_set(e, ERR_INVALID, "entry '%s': a directory of its name is a symbolic link", shown);
	if (r == -ENOTDIR)
		return err_set(e, ERR_INVALID, "entry '%s': a directory of its name is a file", shown);
	return err_sys(e, r, "entry '%s': %s", shown, attempt);
}

static int count_entry(struct sink *s, struct err *e)
{
	if (s->entries >= s->entries_max)
		return err_set(e, ERR_EXHAUSTED, "more than %llu entries", (unsigned long long)s->entries_max);
	s->entries++;
	return 0;
}

/* imply_dirs() - Make directories that no entry has named. Return: descriptor of the last; negative errno */
static int imply_dirs(struct sink *s, const char *path, struct err *e)
{
	auto_close int dir = -EBADF;
	char name[NAME_COMPONENT_MAX + 1];

	for (const char *p = path; *p; p += *p == '/') {
		int at = dir < 0 ? s->root : dir, next, r = 0;
		size_t n = strcspn(p, "/");

		memcpy(name, p, n);
		name[n] = '\0';
		p += n;
		next = open_beneath(at, name, O_PATH);
		if (next == -ENOENT) {
			r = count_entry(s, e);
			if (r < 0)
				return r;
			r = sys_mkdirat(at, name, 0755);
			next = r < 0 ? r : open_beneath(at, name, O_PATH);
		}
		if (next < 0)
			return refuse(e, next, path, "make the directories above it");
		close_p(&dir);
		dir = next;
	}
	return take_fd(dir);
}

/* sink_parent() - The directory that holds @path, and the last name. Return: descriptor, borrowed; negative errno */
static int sink_parent(struct sink *s, const char *path, const char **ret_leaf, struct err *e)
{
	const char *slash = strrchr(path, '/');
	size_t len;
	int fd;

	*ret_leaf = slash ? slash + 1 : path;
	if (!slash)
		return s->root;
	len = (size_t)(slash - path);
	if (s->parent_fd >= 0 && strncmp(s->parent, path, len) == 0 && s->parent[len] == '\0')
		return s->parent_fd;

	forget_parent(s);
	memcpy(s->parent, path, len);
	s->parent[len] = '\0';
	fd = open_beneath(s->root, s->parent, O_PATH);
	if (fd == -ENOENT) {
		fd = imply_dirs(s, s->parent, e);
		if (fd < 0)
			return fd;
	}
	if (fd < 0)
		return refuse(e, fd, path, "open the directory above it");
	s->parent_fd = fd;
	return fd;
}

/* clear_name() - Remove what an earlier entry put there */
static int clear_name(struct sink *s, int dir, const char *leaf, const char *path, struct err *e)
{
	int r;

	r = sys_unlinkat(dir, leaf, 0);
	if (r == -EISDIR) {
		r = sys_unlinkat(dir, leaf, AT_REMOVEDIR);
		if (r == 0 && dir != s->parent_fd)
			forget_parent(s); /* it may be the one that is gone */
	}
	return r < 0 && r != -ENOENT ? refuse(e, r, path, "replace an earlier entry of that name") : 0;
}

static int set_owner(struct sink *s, int dir, const char *leaf, const struct sink_meta *m)
{
	if (s->owners == SINK_OWNERS_SQUASH)
		return 0;
	return fchownat(dir, leaf, m->uid, m->gid, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int refuse_owner(int r, const char *path, const struct sink_meta *m, struct err *e)
{
	char shown[NAME_SHOWN_SIZE];

	return err_hint(e,
			err_sys(e, r, "entry '%s': give it to uid %u, gid %u, mode %04o", name_show(path, shown),
				m->uid, m->gid, m->mode),
			"unpack as root, or in a user namespace with a range of ids, or with --owners=squash");
}

static int remember_time(struct sink *s, const char *path, const struct sink_meta *m, struct err *e)
{
	const struct dir_time t = { .mtime = m->mtime, .len = strlen(path) + 1 };

	(void)buf_add(&s->dir_times, &t, sizeof(t)); /* the failure sticks; the next line reports it */
	if (buf_add(&s->dir_times, path, t.len) < 0)
		return err_set(e, ERR_EXHAUSTED, "the names of its directories fill more than %llu MiB",
			       (unsigned long long)(DIR_TIMES_MAX >> 20));
	return 0;
}

static int make_dir(struct sink *s, const char *path, struct err *e)
{
	const char *leaf;
	int dir, fd, r;

	if (!path[0]) {
		fd = sys_openat(s->root, ".", O_RDONLY | O_DIRECTORY, 0);
		return fd < 0 ? refuse(e, fd, ".", "open it") : fd;
	}
	dir = sink_parent(s, path, &leaf, e);
	if (dir < 0)
		return dir;
	r = sys_mkdirat(dir, leaf, 0700);
	if (r == -EEXIST) {
		fd = open_beneath(dir, leaf, O_RDONLY);
		if (fd >= 0)
			return fd;
		r = clear_name(s, dir, leaf, path, e); /* a file or a link was there */
		if (r < 0)
			return r;
		r = sys_mkdirat(dir, leaf, 0700);
	}
	fd = r < 0 ? r : open_beneath(dir, leaf, O_RDONLY);
	return fd < 0 ? refuse(e, fd, path, "make the directory") : fd;
}

int sink_dir(struct sink *s, const char *path, const struct sink_meta *m, struct err *e)
{
	auto_close int fd = -EBADF;
	int r;

	r = count_entry(s, e);
	if (r < 0)
		return r;
	fd = make_dir(s, path, e);
	if (fd < 0)
		return fd;
	r = set_owner(s, fd, "", m);
	if (r == 0 && fchmod(fd, m->mode) < 0)
		r = -errno;
	if (r < 0)
		return refuse_owner(r, path, m, e);
	r = remember_time(s, path, m, e);
	return r < 0 ? r : take_fd(fd);
}

/**
 * struct making - An entry that is no directory
 * @kind:   S_IFREG, S_IFLNK, S_IFIFO, or 0 for a hard link
 * @target: Of a link; a hard link's is a name in @from
 * @from:   Directory
 */
struct making {
	mode_t kind;
	const char *target;
	int from;
};

/* make_leaf() - Return: descriptor of a file, else 0; -EEXIST if the name is taken; negative errno */
static int make_leaf(const struct making *mk, int dir, const char *leaf)
{
	switch (mk->kind) {
	case S_IFREG:
		return sys_openat(dir, leaf, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	case S_IFLNK:
		return sys_symlinkat(mk->target, dir, leaf);
	case S_IFIFO:
		return sys_mknodat(dir, leaf, S_IFIFO | 0600, 0);
	default:
		return linkat(mk->from, mk->target, dir, leaf, 0) < 0 ? -errno : 0;
	}
}

/* sink_make() - Make an entry that is no directory; @ret_dir is borrowed. Return: as make_leaf() */
static int sink_make(struct sink *s, const char *path, const struct making *mk, int *ret_dir, const char **ret_leaf,
		     struct err *e)
{
	const char *leaf;
	int dir, r;

	if (!path[0])
		return err_set(e, ERR_INVALID, "entry '.': the root is not a directory");
	r = count_entry(s, e);
	if (r < 0)
		return r;
	dir = sink_parent(s, path, &leaf, e);
	if (dir < 0)
		return dir;
	r = make_leaf(mk, dir, leaf);
	if (r == -EEXIST) {
		r = clear_name(s, dir, leaf, path, e);
		if (r < 0)
			return r;
		r = make_leaf(mk, dir, leaf);
	}
	if (r < 0)
		return r == -ENOENT && mk->kind == 0 ? r
						     : refuse(e, r, path, mk->kind ? "make it" : "make the hard link");
	*ret_dir = dir;
	*ret_leaf = leaf;
	return r;
}

int sink_file(struct sink *s, const char *path, struct err *e)
{
	const struct making mk = { .kind = S_IFREG };
	const char *leaf;
	int dir;

	return sink_make(s, path, &mk, &dir, &leaf, e);
}

int sink_file_finish(struct sink *s, int fd, const char *path, const struct sink_meta *m, struct err *e)
{
	const struct timespec times[2] = { m->mtime, m->mtime };
	int r;

	/* chown clears set-id bits, so the mode comes behind it. */
	r = set_owner(s, fd, "", m);
	if (r == 0 && (fchmod(fd, m->mode) < 0 || futimens(fd, times) < 0))
		r = -errno;
	return r < 0 ? refuse_owner(r, path, m, e) : 0;
}

int sink_symlink(struct sink *s, const char *path, const char *target, const struct sink_meta *m, struct err *e)
{
	const struct making mk = { .kind = S_IFLNK, .target = target };
	const struct timespec times[2] = { m->mtime, m->mtime };
	const char *leaf;
	int dir, r;

	r = sink_make(s, path, &mk, &dir, &leaf, e);
	if (r < 0)
		return r;
	r = set_owner(s, dir, leaf, m);
	if (r == 0 && utimensat(dir, leaf, times, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	return r < 0 ? refuse_owner(r, path, m, e) : 0;
}

int sink_fifo(struct sink *s, const char *path, const struct sink_meta *m, struct err *e)
{
	const struct making mk = { .kind = S_IFIFO };
	const struct timespec times[2] = { m->mtime, m->mtime };
	const char *leaf;
	int dir, r;

	r = sink_make(s, path, &mk, &dir, &leaf, e);
	if (r < 0)
		return r;
	/* fchmodat() follows links; what is there was made a moment ago, in a directory that nobody else writes to. */
	r = set_owner(s, dir, leaf, m);
	if (r == 0 && (fchmodat(dir, leaf, m->mode, 0) < 0 || utimensat(dir, leaf, times, AT_SYMLINK_NOFOLLOW) < 0))
		r = -errno;
	return r < 0 ? refuse_owner(r, path, m, e) : 0;
}

static int refuse_hardlink(const char *path, const char *target, struct err *e)
{
	char shown[NAME_SHOWN_SIZE], shown_target[NAME_SHOWN_SIZE];

	return err_set(e, ERR_INVALID, "entry '%s': a hard link to '%s', which is not in the archive before it",
		       name_show(path, shown), name_show(target[0] ? target : ".", shown_target));
}

int sink_hardlink(struct sink *s, const char *path, const char *target, struct err *e)
{
	const char *slash = strrchr(target, '/'), *leaf;
	struct making mk = { .target = slash ? slash + 1 : target };
	auto_close int above = -EBADF;
	char parent[NAME_PATH_MAX];
	int dir, r;

	if (strcmp(path, target) == 0 && path[0])
		return 0; /* GNU tar writes this for a name that is given twice */
	(void)snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - target) : 1, slash ? target : ".");
	above = open_beneath(s->root, parent, O_PATH);
	if (above < 0)
		return refuse_hardlink(path, target, e);
	mk.from = above;
	r = sink_make(s, path, &mk, &dir, &leaf, e);
	return r == -ENOENT ? refuse_hardlink(path, target, e) : r;
}

int sink_finish(struct sink *s, struct err *e)
{
	const char *p = buf_text(&s->dir_times), *end = p + s->dir_times.len;
	struct dir_time t;

	for (; p < end; p += sizeof(t) + t.len) {
		const char *path = p + sizeof(t);
		struct timespec times[2];
		int fd;

		memcpy(&t, p, sizeof(t));
		fd = open_beneath(s->root, path[0] ? path : ".", O_RDONLY);
		if (fd < 0)
			continue; /* a later entry replaced it */
		times[0] = times[1] = t.mtime;
		if (futimens(fd, times) < 0) {
			int r = -errno;

			(void)close(fd);
			return refuse(e, r, path, "set its time");
		}
		(void)close(fd);
	}
	return 0;
}

static int write_all_at(int fd, const char *p, size_t len, uint64_t offset)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, p, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

int sink_write(int fd, const void *p, size_t len, uint64_t offset)
{
	const char *bytes = p;
	size_t run = 0; /* bytes before the next hole */
	int r;

	/* Cut at page boundaries; a piece of zeroes need not be written: the file is new and gets its size later. */
	while (run < len) {
		size_t n = MIN(len - run, HOLE_SIZE - (size_t)((offset + run) % HOLE_SIZE));
		const char *piece = bytes + run;

		if (piece[0] != 0 || memcmp(piece, piece + 1, n - 1) != 0) {
			run += n;
			continue;
		}
		r = write_all_at(fd, bytes, run, offset);
		if (r < 0)
			return r;
		bytes += run + n;
		offset += run + n;
		len -= run + n;
		run = 0;
	}
	return write_all_at(fd, bytes, run, offset);
}
