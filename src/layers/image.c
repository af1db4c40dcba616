/* SPDX-License-Identifier: Apache-2.0 */
/* image.c - From the name of an image to a directory
 *
 * Theory of operation. Runs in the caller, as the user who named the image: paths are followed with that user's
 * rights and links, as any program would. What comes out is a descriptor, so the path is walked once and nothing can
 * change behind it afterwards.
 *
 * Nothing here parses an archive. A look at the first bytes tells an archive from a wrong file, so that the error
 * comes at once and is about the right thing; the rest is the work of carrel-unpack, in a sandbox of its own, into a
 * directory that has no public name before it is complete (scratch.c). The states of an archive:
 *   needs_unpack, no image_unpack    nothing in the store
 *   image_unpack held                .tmp-RANDOM in the store, locked; an abort or a crash leaves no public name
 *   image_unpack_end() returned 0    images/KEY/root is immutable, and every later image_resolve() finds it
 *
 * Two processes may unpack the same archive at once; the first to finish wins and the other uses its tree. Waiting
 * for each other was rejected: a stalled unpacker would stall everybody. */
#include "layers/image.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "layers/host.h"
#include "layers/internal.h"

/* The longest look: the magic of a tar header is at byte 257 (POSIX.1-1988 ustar), five bytes. */
#define SNIFF_SIZE 512 /* bytes: one tar header */

static const struct {
	size_t offset, len;
	const char *bytes;
} magics[] = {
	{ 257, 5, "ustar" },  /* POSIX and GNU tar */
	{ 0, 2, "\x1f\x8b" }, /* gzip, RFC 1952 */
	{ 0, 3, "BZh" },      /* bzip2 */
	{ 0, 6,
	  "\xfd"
	  "7zXZ\0" },                 /* xz file format 1.1, section 2.1.1.1 */
	{ 0, 4, "\x28\xb5\x2f\xfd" }, /* zstd, RFC 8878 */
};

static int open_path_absolute(const char *name, char *path, size_t size)
{
	char link[64];
	int fd;
	ssize_t n;

	fd = open(name, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, size - 1);
	if (n <= 0) /* no /proc: the name as given is as good for people */
		n = snprintf(path, size, "%s", name);
	path[MIN((size_t)n, size - 1)] = '\0';
	return fd;
}

/* dir_is_empty() - Return: 1, 0, or negative errno */
static int dir_is_empty(int handle)
{
	struct dirent *d;
	int fd, n = 0;
	DIR *dir;

	fd = openat(handle, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		close_p(&fd);
		return -ENOMEM;
	}
	while (n == 0 && (d = readdir(dir)))
		n = strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
	(void)closedir(dir);
	return n == 0;
}

static bool dir_has(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* root_check() - Refuse a directory that no program can be started from */
static int root_check(int fd, const char *path, struct err *e)
{
	int r;

	r = dir_is_empty(fd);
	if (r < 0)
		return err_sys(e, r, "look into the image '%s'", path);
	if (r > 0)
		return err_hint(e, err_set(e, ERR_INVALID, "use the image '%s': it is empty", path),
				"unpack a root file system there first, or give the archive itself");
	if (!dir_has(fd, "usr") && !dir_has(fd, "bin") && (dir_has(fd, "manifest.json") || dir_has(fd, "oci-layout")))
		return err_hint(e,
				err_set(e, ERR_INVALID, "use the image '%s': it holds layers, not a root file system",
					path),
				"make a flat archive: docker create NAME, then docker export ID > image.tar");
	return 0;
}

static int resolve_host(int store_fd, struct image *img, struct err *e)
{
	struct host_layer h;
	int r;

	r = host_layer_open(store_fd, &h, e);
	if (r < 0)
		return r;
	img->kind = IMAGE_HOST;
	img->fd = h.fd;
	img->generation = h.generation;
	(void)snprintf(img->path, sizeof(img->path), "host");
	return 0;
}

static int resolve_directory(int fd, struct image *img, struct err *e)
{
	if (strcmp(img->path, "/") == 0)
		return err_hint(e, err_set(e, ERR_INVALID, "use the image '/': it would show the whole host"),
				"use the image 'host', which shows its programs and nothing else");
	img->kind = IMAGE_DIRECTORY;
	img->fd = fd;
	return root_check(fd, img->path, e);
}

static bool is_archive(int fd)
{
	char head[SNIFF_SIZE];
	ssize_t n;

	n = pread(fd, head, sizeof(head), 0);
	for (size_t i = 0; i < ARRAY_SIZE(magics); i++)
		if (n >= (ssize_t)(magics[i].offset + magics[i].len) &&
		    memcmp(head + magics[i].offset, magics[i].bytes, magics[i].len) == 0)
			return true;
	return false;
}

static void archive_key(const struct stat *st, char *key, size_t size)
{
	uint64_t h = HASH_INIT;

	h = hash_word(h, (uint64_t)st->st_dev);
	h = hash_word(h, (uint64_t)st->st_ino);
	h = hash_word(h, (uint64_t)st->st_size);
	h = hash_word(h, (uint64_t)st->st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st->st_mtim.tv_nsec);
	/* mtime can be set to what it was; ctime cannot. */
	h = hash_word(h, (uint64_t)st->st_ctim.tv_sec * NSEC_PER_SEC + (uint64_t)st->st_ctim.tv_nsec);
	(void)snprintf(key, size, "%016llx", (unsigned long long)h);
}

static int open_unpacked(int images_fd, const char *key)
{
	char path[32];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/root", key);
	fd = openat(images_fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* image_use_tree() - From now on the image is the tree in the store; consumes @fd */
static void image_use_tree(struct image *img, int fd)
{
	img->fd = fd;
	img->needs_unpack = false;
	close_p(&img->archive_fd);
	img->archive_fd = -EBADF;
}

static int resolve_archive(const char *name, const struct stat *seen, int store_fd, struct image *img, struct err *e)
{
	auto_close int images = -EBADF;
	struct stat st;
	int fd;

	img->kind = IMAGE_ARCHIVE;
	img->archive_fd = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (img->archive_fd < 0 || fstat(img->archive_fd, &st) < 0)
		return err_sys(e, -errno, "open the image '%s'", name);
	if (st.st_dev != seen->st_dev || st.st_ino != seen->st_ino)
		return err_hint(e, err_set(e, ERR_CONFLICT, "open the image '%s': it is being replaced", name),
				"try again");
	if (!is_archive(img->archive_fd))
		return err_hint(e, err_set(e, ERR_INVALID, "use the image '%s': not a tar archive", name),
				"give a directory, or a tar (plain, gzip, bzip2, xz, zstd) of a root file system");
	archive_key(&st, img->key, sizeof(img->key));
	images = openat(store_fd, "images", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	fd = images < 0 ? -errno : open_unpacked(images, img->key);
	if (fd < 0 && fd != -ENOENT)
		return err_sys(e, fd, "open the image '%s' in the store", img->key);
	img->needs_unpack = fd < 0;
	if (fd >= 0)
		image_use_tree(img, fd);
	return 0;
}

static int resolve_path(const char *name, int store_fd, struct image *img, struct err *e)
{
	auto_close int fd = -EBADF;
	struct stat st;

	fd = open_path_absolute(name, img->path, sizeof(img->path));
	if (fd < 0)
		return err_hint(e, err_sys(e, fd, "find the image '%s'", name),
				"images are 'host', a directory, or a tar of a root file system");
	if (fstat(fd, &st) < 0)
		return err_sys(e, -errno, "look at the image '%s'", name);
	if (S_ISDIR(st.st_mode))
		return resolve_directory(take_fd(fd), img, e);
	if (S_ISREG(st.st_mode))
		return resolve_archive(name, &st, store_fd, img, e);
	return err_hint(e, err_set(e, ERR_INVALID, "use the image '%s': neither a directory nor a file", name),
			"images are 'host', a directory, or a tar of a root file system");
}

int image_resolve(const char *name, int store_fd, struct image *ret, struct err *e)
{
	auto_image struct image img = IMAGE_INIT;
	int r;

	if (!name[0])
		return err_hint(e, err_set(e, ERR_INVALID, "find the image '': the name is empty"),
				"leave --image out for 'host'");
	r = strcmp(name, "host") == 0 ? resolve_host(store_fd, &img, e) : resolve_path(name, store_fd, &img, e);
	if (r < 0)
		return r;
	*ret = img;
	img = IMAGE_INIT;
	return 0;
}

void image_done(struct image *img)
{
	close_p(&img->fd);
	close_p(&img->archive_fd);
	*img = IMAGE_INIT;
}

int image_unpack_begin(int store_fd, const struct image *img, struct image_unpack *ret, struct err *e)
{
	auto_(image_unpack_abort) struct image_unpack u = IMAGE_UNPACK_INIT;
	int r;

	if (!img->needs_unpack)
		return err_set(e, ERR_CONFLICT, "unpack the image '%s': it is there already", img->path);
	u.images_fd = dir_make_open(store_fd, "images", 0700);
	if (u.images_fd < 0)
		return err_sys(e, u.images_fd, "open 'images' in the store");
	r = scratch_make(u.images_fd, &u.scratch, e);
	if (r < 0)
		return r;
	/* chmod as well: mkdir is subject to umask, which a library must not change */
	if (mkdirat(u.scratch.fd, "root", 0700) < 0 || fchmodat(u.scratch.fd, "root", 0755, 0) < 0)
		return err_sys(e, -errno, "make room for the image '%s'", img->path);
	u.root_fd = openat(u.scratch.fd, "root", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (u.root_fd < 0)
		return err_sys(e, -errno, "make room for the image '%s'", img->path);
	*ret = u;
	u = IMAGE_UNPACK_INIT;
	return 0;
}

void image_unpack_abort(struct image_unpack *u)
{
	close_p(&u->root_fd);
	scratch_drop(&u->scratch);
	close_p(&u->images_fd);
	*u = IMAGE_UNPACK_INIT;
}

int image_unpack_end(struct image_unpack *u, struct image *img, struct err *e)
{
	auto_(image_unpack_abort) struct image_unpack own = *u; /* what is not published is removed */
	int r, fd;

	*u = IMAGE_UNPACK_INIT;
	r = root_check(own.root_fd, img->path, e);
	if (r < 0)
		return r;
	r = scratch_publish(&own.scratch, img->key, e);
	if (r < 0)
		return r;
	fd = open_unpacked(own.images_fd, img->key);
	if (fd < 0)
		return err_sys(e, fd, "open the unpacked image '%s'", img->path);
	image_use_tree(img, fd);
	return 0;
}

int image_collect(int store_fd, struct err *e)
{
	auto_close int images = -EBADF;

	images = openat(store_fd, "images", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (images < 0)
		return errno == ENOENT ? 0 : err_sys(e, -errno, "open 'images' in the store");
	return scratch_collect(images, e);
}
