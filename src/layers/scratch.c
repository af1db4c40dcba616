/* SPDX-License-Identifier: Apache-2.0 */
/* scratch.c - Build a directory out of sight, then give it its name
 *
 * Theory of operation. Runs in the caller of the library, on its own store (mode 0700). Trees of the store are
 * immutable once they have a name, so they are built under ".tmp-RANDOM" and renamed: a reader sees all of it or
 * nothing, two builders of the same tree cannot disturb each other, and the loser throws its copy away. While it
 * builds, a builder holds flock() on the directory; the kernel drops it with the process, so a collector that gets
 * the lock knows that nobody builds there. Between mkdir and flock a collector may take the directory away: the
 * builder notices by its link count and makes another.
 *
 * No fsync: everything here can be made again from the host or from an archive, and a power cut is dealt with by
 * whoever finds the store damaged (`carrel doctor`), not by making each start pay for it. */
#include "layers/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "layers/internal.h"
#include "layers/tree.h"

#define SCRATCH_PREFIX ".tmp-"
#define SCRATCH_TRIES 16 /* collisions of 64 random bits do not happen; a collector in between may, once or twice */

int dir_make_open(int parent, const char *name, mode_t mode)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd;

	fd = openat(parent, name, flags);
	if (fd >= 0 || errno != ENOENT)
		return fd < 0 ? -errno : fd;
	if (mkdirat(parent, name, mode) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(parent, name, flags);
	return fd < 0 ? -errno : fd;
}

/* Open the directory that was just made, and lock it. Return: as scratch_try() */
static int scratch_lock(int parent, const char *name)
{
	auto_close int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_nlink == 0 ? -EAGAIN : take_fd(fd);
}

/* scratch_try() - One attempt. Return: descriptor; -EAGAIN if the name was taken or taken away; negative errno */
static int scratch_try(int parent, char *name, size_t size)
{
	uint64_t id;
	int fd;

	if (getrandom(&id, sizeof(id), 0) != (ssize_t)sizeof(id))
		return -errno;
	(void)snprintf(name, size, SCRATCH_PREFIX "%016llx", (unsigned long long)id);
	if (mkdirat(parent, name, 0700) < 0)
		return errno == EEXIST ? -EAGAIN : -errno;
	fd = scratch_lock(parent, name);
	if (fd < 0 && fd != -EAGAIN) /* who took it away removes it */
		(void)unlinkat(parent, name, AT_REMOVEDIR);
	return fd;
}

int scratch_make(int parent, struct scratch *ret, struct err *e)
{
	struct scratch s = { .parent = parent };

	for (int i = 0; i < SCRATCH_TRIES; i++) {
		s.fd = scratch_try(parent, s.name, sizeof(s.name));
		if (s.fd != -EAGAIN)
			break;
	}
	if (s.fd < 0)
		return err_sys(e, s.fd, "make a directory in the store");
	*ret = s;
	return 0;
}

int scratch_publish(struct scratch *s, const char *name, struct err *e)
{
	int r;

	if (renameat(s->parent, s->name, s->parent, name) < 0) {
		r = -errno;
		if (r == -EEXIST || r == -ENOTEMPTY)
			return 1;
		return err_sys(e, r, "rename '%s' to '%s' in the store", s->name, name);
	}
	close_p(&s->fd);
	*s = SCRATCH_INIT;
	return 0;
}

void scratch_drop(struct scratch *s)
{
	if (s->fd < 0)
		return;
	(void)tree_remove_at(s->parent, s->name, NULL); /* else a collector finds it: its lock is free in a moment */
	close_p(&s->fd);
	*s = SCRATCH_INIT;
}

int scratch_retire(int parent, const char *name, struct err *e)
{
	char away[24];
	uint64_t id;

	if (getrandom(&id, sizeof(id), 0) != (ssize_t)sizeof(id))
		return err_sys(e, -errno, "read random bytes");
	(void)snprintf(away, sizeof(away), SCRATCH_PREFIX "%016llx", (unsigned long long)id);
	if (renameat(parent, name, parent, away) < 0)
		return errno == ENOENT ? 0 : err_sys(e, -errno, "rename '%s' in the store", name);
	return tree_remove_at(parent, away, e);
}

static int collect_one(int parent, const char *name, struct err *e)
{
	auto_close int fd = -EBADF;
	int r;

	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, -errno, "open '%s' in the store", name);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return 0; /* its builder lives */
	r = tree_remove_at(parent, name, e);
	return r < 0 ? r : 1;
}

int scratch_collect(int parent, struct err *e)
{
	struct dirent *d;
	int fd, r = 0, n = 0;
	DIR *dir;

	fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		r = -errno;
		close_p(&fd);
		return err_sys(e, r, "read a directory of the store");
	}
	while (r >= 0 && (d = readdir(dir))) {
		if (strncmp(d->d_name, SCRATCH_PREFIX, strlen(SCRATCH_PREFIX)) != 0)
			continue;
		r = collect_one(parent, d->d_name, e);
		n += r > 0;
	}
	(void)closedir(dir);
	return r < 0 ? r : n;
}
