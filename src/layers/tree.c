/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c - Remove directory trees that a guest has shaped
 *
 * Theory of operation. Runs in the caller (warden, doctor, or a helper in the user namespace that owns the files)
 * when no process of the sandbox lives any more. The tree is hostile all the same: a hundred thousand levels (longer
 * than any path, more than any stack or descriptor table), a million entries in one directory, mode 000, links to
 * everywhere.
 *
 * One loop, no recursion, no paths. A directory is first removed as if it were empty; if it is not, the walk goes
 * down into it, and when its end is reached goes up and tries the same entry again. So no name has to be remembered
 * for the way back: the entry that the parent's walk stands at is the one. Each level keeps the position of its walk
 * (d_off), which file systems honour across reopening; one that does not merely makes the walk skip entries, and the
 * retry finds them.
 *
 * The deepest LEVELS_OPEN levels keep their descriptor and their batch of entries. Above them a level is closed, and
 * reached again by ".." of its child; device and inode must be those that were recorded on the way down, else the
 * walk stops: the tree was moved under us, and ".." leads to a place that nobody asked to be emptied. The position is
 * restored with lseek, so that a wide directory is read once, not once for each deep child.
 *
 * Rejected: nftw() and recursion (stack, descriptors), `rm -rf` (a process, paths), renaming deep subtrees up into
 * one directory (EXDEV across project quotas; a directory that was wide once stays slow to scan for the rest of the
 * removal). */
#include "layers/tree.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys.h"

/* Levels whose descriptor stays open. More saves little: a level that was closed costs 1.6 us to come back to, beside
 * the 4.2 us that its removal takes anyway (tmpfs, measured on 6.18). */
#define LEVELS_OPEN 16

/* Bytes of entries read at once for one level: about a thousand names; sixteen of them are half a MiB. */
#define BATCH_SIZE (32 * 1024)

/* Times that one directory is entered. Two suffice where a walk sees every entry; more only serves file systems whose
 * positions move under removal (tmpfs before 6.6). */
#define ENTER_MAX 16

/* The kernel's struct linux_dirent64 (getdents64(2)); C libraries disagree on its name. */
struct entry {
	uint64_t ino;
	int64_t next;
	uint16_t size;
	uint8_t type;
	char name[];
};

/**
 * struct level - One directory on the way down
 * @dev, @ino: Its identity, checked when ".." leads back to it
 * @next:      Position behind the last entry that is done with
 * @entered:   Times the current entry was descended into
 * @failed:    Something below stays; the parent does not try again
 */
struct level {
	dev_t dev;
	ino_t ino;
	int64_t next;
	uint32_t entered;
	bool failed;
};

/* struct window - An open level: descriptor and the rest of a batch */
struct window {
	int fd;
	size_t pos, len;
	char *batch;
};

struct walk {
	struct level *levels;
	size_t depth, cap;
	struct window open[LEVELS_OPEN];
	int first; /* negative errno of the first failure */
	size_t first_depth;
};

static struct window *walk_window(struct walk *w, size_t depth)
{
	return &w->open[depth % LEVELS_OPEN];
}

static void window_close(struct window *win)
{
	if (win->fd >= 0)
		(void)close(win->fd);
	win->fd = -EBADF;
	win->pos = win->len = 0;
}

static void walk_done(struct walk *w)
{
	for (size_t i = 0; i < LEVELS_OPEN; i++) {
		window_close(&w->open[i]);
		free(w->open[i].batch);
	}
	free(w->levels);
}

static void walk_note(struct walk *w, int r)
{
	if (w->depth)
		w->levels[w->depth - 1].failed = true;
	if (w->first)
		return;
	w->first = r;
	w->first_depth = w->depth;
}

/* remove_name() - Remove a file, a link or an empty directory. Return: 0; -ENOTEMPTY if it has to be emptied first */
static int remove_name(int dir, const char *name, uint8_t type)
{
	int r;

	if (type != DT_DIR) {
		r = sys_unlinkat(dir, name, 0);
		if (r != -EISDIR)
			return r;
	}
	r = sys_unlinkat(dir, name, AT_REMOVEDIR);
	if (r == -ENOTDIR)
		r = sys_unlinkat(dir, name, 0);
	return r == -EEXIST ? -ENOTEMPTY : r; /* POSIX allows both, file systems use both */
}

static int open_dir(int dir, const char *name, uint64_t resolve)
{
	const struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = resolve,
	};
	auto_close int handle = -EBADF;
	char path[64];
	int r;

	r = sys_openat2(dir, name, &how);
	if (r != -EACCES)
		return r;

	/* Not root, and the guest took its own permission away. The handle makes sure that a directory is changed. */
	handle = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (handle < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
	if (chmod(path, 0700) < 0)
		return -EACCES;
	return sys_openat2(dir, name, &how);
}

/* walk_push() - Make an open directory the deepest level; consumes @fd. */
static int walk_push(struct walk *w, int fd)
{
	struct window *win = walk_window(w, w->depth);
	auto_close int own = fd;
	struct level *levels;
	struct stat st;
	size_t cap;

	if (fstat(own, &st) < 0)
		return -errno;
	if ((st.st_mode & 0700) != 0700)
		(void)fchmod(own, 0700); /* if it mattered, the first removal in it fails and says so */
	if (w->depth == w->cap) {
		cap = w->cap ? w->cap * 2 : 64;
		levels = realloc(w->levels, cap * sizeof(*levels));
		if (!levels)
			return -ENOMEM;
		w->levels = levels;
		w->cap = cap;
	}
	if (!win->batch)
		win->batch = malloc(BATCH_SIZE);
	if (!win->batch)
		return -ENOMEM;
	window_close(win); /* the level LEVELS_OPEN above; ".." leads back to it */
	win->fd = take_fd(own);
	w->levels[w->depth++] = (struct level){ .dev = st.st_dev, .ino = st.st_ino };
	return 0;
}

/* window_next() - The entry the walk stands at, without leaving it. Return: 1; 0 at the end; negative errno */
static int window_next(struct window *win, struct entry **ret)
{
	struct entry *d;
	ssize_t n;

	for (;;) {
		if (win->pos >= win->len) {
			n = sys_call3(__NR_getdents64, win->fd, win->batch, BATCH_SIZE);
			if (n <= 0)
				return n == -ENOENT ? 0 : (int)n;
			win->pos = 0;
			win->len = (size_t)n;
		}
		d = (struct entry *)(void *)(win->batch + win->pos);
		if (strcmp(d->name, ".") != 0 && strcmp(d->name, "..") != 0)
			break;
		win->pos += d->size;
	}
	*ret = d;
	return 1;
}

/* walk_reopen() - Open again the level above @child, where its walk had stopped. */
static int walk_reopen(struct window *win, const struct level *l, int child)
{
	struct stat st;
	int fd;

	fd = open_dir(child, "..", RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	if (fd < 0)
		return fd;
	win->fd = fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != l->dev || st.st_ino != l->ino)
		return -ESTALE;
	if (lseek(fd, l->next, SEEK_SET) < 0)
		return -errno;
	return 0;
}

/* walk_pop() - Leave the deepest level. Return: 0; negative errno if the way up is gone */
static int walk_pop(struct walk *w)
{
	struct window *win = walk_window(w, w->depth - 1), *up;
	bool failed = w->levels[w->depth - 1].failed;
	struct level *l;
	int r = 0;

	if (w->depth > 1) {
		l = &w->levels[w->depth - 2];
		up = walk_window(w, w->depth - 2);
		if (up->fd < 0)
			r = walk_reopen(up, l, win->fd);
		if (failed) {
			l->failed = true;
			l->entered = ENTER_MAX; /* what stays below will not go by entering once more */
		}
	}
	window_close(win);
	w->depth--;
	return r;
}

/* walk_step() - Deal with one entry. Return: 0; negative errno if the walk cannot go on */
static int walk_step(struct walk *w)
{
	struct window *win = walk_window(w, w->depth - 1);
	struct level *l = &w->levels[w->depth - 1];
	struct entry *d = NULL;
	int r;

	r = window_next(win, &d);
	if (r < 0)
		walk_note(w, r);
	if (r <= 0)
		return walk_pop(w);

	r = remove_name(win->fd, d->name, d->type);
	if (r == -ENOTEMPTY && l->entered < ENTER_MAX) {
		l->entered++;
		r = open_dir(win->fd, d->name, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
		if (r >= 0)
			return walk_push(w, r);
	}
	if (r < 0 && r != -ENOENT)
		walk_note(w, r == -EXDEV ? -EBUSY : r); /* RESOLVE_NO_XDEV: a mount point */
	win->pos += d->size;
	l->next = d->next;
	l->entered = 0;
	return 0;
}

/* empty_dir() - Remove what is in a directory; consumes @fd. Return: 0, or the first failure */
static int empty_dir(int fd, size_t *ret_depth)
{
	struct walk w = { .first = 0 };
	int r;

	for (size_t i = 0; i < LEVELS_OPEN; i++)
		w.open[i].fd = -EBADF;
	r = walk_push(&w, fd);
	while (r == 0 && w.depth > 0)
		r = walk_step(&w);
	if (r < 0)
		walk_note(&w, r);
	*ret_depth = w.first_depth;
	walk_done(&w);
	return w.first;
}

int tree_remove_at(int dirfd, const char *name, struct err *e)
{
	size_t depth = 0;
	int r, fd;

	if (!name[0] || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return err_set(e, ERR_INVALID, "remove '%s': not a single name", name);

	r = remove_name(dirfd, name, DT_UNKNOWN);
	for (int i = 0; r == -ENOTEMPTY && i < ENTER_MAX; i++) {
		fd = open_dir(dirfd, name, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
		r = fd < 0 ? fd : empty_dir(fd, &depth);
		if (r < 0)
			break;
		r = remove_name(dirfd, name, DT_DIR);
	}
	if (r == 0 || r == -ENOENT)
		return 0;
	if (r == -EXDEV)
		r = -EBUSY;
	(void)err_sys(e, r, "remove the tree '%s'", name);
	if (e && depth)
		(void)snprintf(e->trail, sizeof(e->trail), "the first that stays is %zu levels down", depth);
	return r;
}
