/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c - Copy what anybody may read, within a budget
 *
 * Theory of operation. Runs in the caller, often as root, and reads the host's /etc for a layer that guests will see.
 * So the question for each entry is not whether we can read it but whether every user of the host can: the permission
 * bits for others decide, on each directory of the way. The type is looked at through an O_PATH handle before
 * anything is opened for reading, since opening a device or a FIFO has effects. The host's files may change
 * meanwhile; an entry that vanished is left out.
 *
 * Recursion is bounded by DEPTH_MAX levels, which no directory of the allow-list comes near. */
#include "layers/copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"

#define DEPTH_MAX 12           /* levels; /etc of a full Debian desktop has 6 */
#define COPY_BLOCK (32 * 1024) /* bytes on the stack */

static int copy_entry(int from, int to, const char *name, int depth, struct copy_budget *b);

static int spend(struct copy_budget *b, uint64_t bytes)
{
	if (b->entries == 0 || b->bytes < bytes)
		return -ENOSPC;
	b->entries--;
	b->bytes -= bytes;
	return 0;
}

static int copy_link(int handle, int to, const char *name, struct copy_budget *b)
{
	char target[PATH_MAX];
	ssize_t n;
	int r;

	n = readlinkat(handle, "", target, sizeof(target) - 1);
	if (n < 0)
		return -errno;
	target[n] = '\0';
	r = spend(b, 0);
	if (r < 0)
		return r;
	return symlinkat(target, to, name) < 0 ? -errno : 0;
}

static int copy_bytes(int in, int out, uint64_t size)
{
	char block[COPY_BLOCK];
	int r;

	/* No more than the size that was paid for, even if the file grows. */
	while (size > 0) {
		ssize_t n = fd_read_full(in, block, MIN(size, sizeof(block)));

		if (n <= 0)
			return (int)n;
		r = fd_write_full(out, block, (size_t)n);
		if (r < 0)
			return r;
		size -= (uint64_t)n;
	}
	return 0;
}

static int copy_file(int from, int to, const char *name, const struct stat *st, struct copy_budget *b)
{
	const struct timespec times[2] = { st->st_mtim, st->st_mtim };
	auto_close int in = -EBADF, out = -EBADF;
	struct stat now;
	int r;

	if ((uint64_t)st->st_size > b->file_max_bytes)
		return 0;
	r = spend(b, (uint64_t)st->st_size);
	if (r < 0)
		return r;
	in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (in < 0)
		return -errno;
	if (fstat(in, &now) < 0)
		return -errno;
	if (now.st_ino != st->st_ino || now.st_dev != st->st_dev)
		return -ENOENT; /* replaced in between: the next generation has it */
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return -errno;
	r = copy_bytes(in, out, (uint64_t)st->st_size);
	if (r < 0)
		return r;
	if (fchmod(out, st->st_mode & S_IXOTH ? 0755 : 0644) < 0 || futimens(out, times) < 0)
		return -errno;
	return 0;
}

static int copy_dir(int from, int to, const char *name, int depth, struct copy_budget *b)
{
	auto_close int out = -EBADF;
	struct dirent *d;
	int in, r;
	DIR *dir;

	r = depth < DEPTH_MAX ? spend(b, 0) : -ELOOP;
	if (r < 0)
		return r;
	in = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (in < 0)
		return -errno;
	dir = fdopendir(in);
	if (!dir) {
		close_p(&in);
		return -ENOMEM;
	}
	if (mkdirat(to, name, 0700) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0)
		out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r == 0 && (out < 0 || fchmod(out, 0755) < 0))
		r = -errno;
	while (r == 0 && (d = readdir(dir)))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			r = copy_entry(in, out, d->d_name, depth + 1, b);
	(void)closedir(dir);
	return r;
}

static int copy_entry(int from, int to, const char *name, int depth, struct copy_budget *b)
{
	auto_close int handle = -EBADF;
	struct stat st;
	int r = 0;

	handle = openat(from, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (handle < 0 || fstat(handle, &st) < 0)
		return errno == ENOENT || errno == EACCES ? 0 : -errno;
	if (S_ISLNK(st.st_mode))
		r = copy_link(handle, to, name, b);
	else if (S_ISREG(st.st_mode) && (st.st_mode & S_IROTH))
		r = copy_file(from, to, name, &st, b);
	else if (S_ISDIR(st.st_mode) && (st.st_mode & (S_IROTH | S_IXOTH)) == (S_IROTH | S_IXOTH))
		r = copy_dir(from, to, name, depth, b);
	return r == -ENOENT || r == -EACCES ? 0 : r;
}

/* open_public() - Go down one level, if others may. Return: descriptor; -ENOENT if there is nothing for everybody */
static int open_public(int dir, const char *name)
{
	auto_close int fd = -EBADF;
	struct stat st;

	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOTDIR || errno == EACCES ? -ENOENT : -errno;
	return st.st_mode & S_IXOTH ? take_fd(fd) : -ENOENT;
}

int copy_public_at(int from, int to, const char *path, struct copy_budget *budget, struct err *e)
{
	auto_close int source = -EBADF, target = -EBADF;
	char dir[256];
	int r;

	for (const char *s; (s = strchr(path, '/')); path = s + 1) {
		int down, made;

		if ((size_t)(s - path) >= sizeof(dir))
			return err_set(e, ERR_INVALID, "copy '%s': name too long", path);
		memcpy(dir, path, (size_t)(s - path));
		dir[s - path] = '\0';
		down = open_public(source < 0 ? from : source, dir);
		if (down == -ENOENT)
			return 0;
		close_p(&source);
		source = down;
		made = openat(target < 0 ? to : target, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = made < 0 ? -errno : down;
		close_p(&target);
		target = made;
		if (r < 0)
			return err_sys(e, r, "copy below '%s'", dir);
	}
	r = copy_entry(source < 0 ? from : source, target < 0 ? to : target, path, 0, budget);
	if (r == -ENOSPC && (budget->entries == 0 || budget->bytes < budget->file_max_bytes))
		return err_set(e, ERR_EXHAUSTED, "copy '%s': more than the host layer may hold", path);
	return r < 0 ? err_sys(e, r, "copy '%s'", path) : 0;
}
