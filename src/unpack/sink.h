/* SPDX-License-Identifier: Apache-2.0 */
/* sink.h - Write a tree by descriptors, never through a link that the tree itself holds */
#pragma once

#include <sys/types.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "unpack/name.h"

/**
 * enum sink_owners - What becomes of owners
 */
enum sink_owners {
	SINK_OWNERS_KEEP,   /* as in the archive */
	SINK_OWNERS_SQUASH, /* everything belongs to the caller: there is only one id (rootless without ranges) */
};

/**
 * struct sink_meta - What an entry says about itself
 */
struct sink_meta {
	uid_t uid;
	gid_t gid;
	mode_t mode; /* permission bits, with set-id and sticky */
	struct timespec mtime;
};

/**
 * struct sink - A tree that is being written
 * @root:         Its directory; borrowed
 * @owners:       What becomes of owners
 * @parent_fd:    The directory that was used last (O_PATH), or -EBADF: archives name neighbours together
 * @parent:       Its path
 * @dir_times:    Directories and their mtimes, set at the end since writing into a directory changes them
 * @entries:      Entries made so far, implied directories included
 * @entries_max:  Limit
 *
 * All paths are as name_normalise() makes them. Each is resolved with openat2() beneath @root without following any
 * link; an entry below a link is refused. A later entry of the same name replaces an earlier one, except a directory
 * that is not empty.
 */
struct sink {
	int root;
	enum sink_owners owners;
	int parent_fd;
	char parent[NAME_PATH_MAX];
	struct buf dir_times;
	uint64_t entries, entries_max;
};

/* sink_init() - Start writing below @root, which must be a directory that nobody else writes to. */
void sink_init(struct sink *s, int root, enum sink_owners owners, uint64_t entries_max);

/* sink_done() - Release; sets no times. */
void sink_done(struct sink *s);

/* sink_dir() - Make or update a directory; "" is the root. Return: descriptor for attributes; negative errno */
must_check int sink_dir(struct sink *s, const char *path, const struct sink_meta *m, struct err *e);

/* sink_file() - Make an empty file; sink_file_finish() gives it its attributes. Return: descriptor; negative errno */
must_check int sink_file(struct sink *s, const char *path, struct err *e);
must_check int sink_file_finish(struct sink *s, int fd, const char *path, const struct sink_meta *m, struct err *e);

must_check int sink_symlink(struct sink *s, const char *path, const char *target, const struct sink_meta *m,
			    struct err *e);
must_check int sink_fifo(struct sink *s, const char *path, const struct sink_meta *m, struct err *e);

/* sink_hardlink() - Give the file @target of this tree a second name. */
must_check int sink_hardlink(struct sink *s, const char *path, const char *target, struct err *e);

/* sink_finish() - Set the times of directories. */
must_check int sink_finish(struct sink *s, struct err *e);

/**
 * sink_write() - Write a part of a new file; pages of zeroes become holes
 *
 * The caller sets the file's size at the end.
 * Return: 0, or negative errno
 */
must_check int sink_write(int fd, const void *p, size_t len, uint64_t offset);
