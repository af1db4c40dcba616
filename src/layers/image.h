/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - From the name of an image to a directory */
#pragma once

#include "base/err.h"
#include "layers/scratch.h"
#include "layers/store.h"

/**
 * enum image_kind - What a name turned out to be
 */
enum image_kind {
	IMAGE_HOST,      /* "host": the layer of host.h; the caller adds the host's /usr */
	IMAGE_DIRECTORY, /* a root file system in a directory of the host */
	IMAGE_ARCHIVE,   /* a root file system in a tar, unpacked into the store */
	IMAGE_NUM_KINDS,
};

/**
 * struct image - A root file system to lay a sandbox over
 * @kind:         Kind
 * @needs_unpack: An archive that is not in the store yet: see image_unpack_begin()
 * @fd:           The root directory (O_PATH); -EBADF while @needs_unpack
 * @archive_fd:   The archive, open for reading at its start; -EBADF unless @needs_unpack
 * @generation:   Of a host image; else 0
 * @key:          Of an archive: its directory in the store; else empty
 * @path:         For people: "host", or the absolute path of the directory or archive
 */
struct image {
	enum image_kind kind;
	bool needs_unpack;
	int fd;
	int archive_fd;
	uint64_t generation;
	char key[20];
	char path[STORE_PATH_MAX];
};

#define IMAGE_INIT ((struct image){ .fd = -EBADF, .archive_fd = -EBADF })

/**
 * struct image_unpack - An archive on its way into the store
 * @root_fd:   Empty directory (O_PATH, mode 0755) that receives the tree: bind it into the unpacker's sandbox
 * @images_fd: The directory of images in the store
 * @scratch:   What holds @root_fd until it is published
 */
struct image_unpack {
	int root_fd;
	int images_fd;
	struct scratch scratch;
};

#define IMAGE_UNPACK_INIT ((struct image_unpack){ .root_fd = -EBADF, .images_fd = -EBADF, .scratch = SCRATCH_INIT })

/**
 * image_resolve() - Find the image that a name means
 * @name:     "host", or the path of a directory or of an archive
 * @store_fd: From store_open()
 * @ret:      Give it to image_done()
 *
 * An archive is a tar, plain or compressed with gzip, bzip2, xz or zstd, of one flat root file system (`docker
 * export`). It is known by its content, not its name, and found in the store by device, inode, size, mtime and ctime.
 * Return: 0; -ENOENT; -EINVAL for what is no image; other negative errno
 */
must_check int image_resolve(const char *name, int store_fd, struct image *ret, struct err *e);

/* image_done() - Close what an image holds. */
void image_done(struct image *img);

/**
 * image_unpack_begin() - Make room in the store for an archive
 * @img: With @needs_unpack
 * @ret: Ends with image_unpack_end() or image_unpack_abort()
 *
 * The caller then runs carrel-unpack in a sandbox of its own with @img->archive_fd as stdin and @ret->root_fd as the
 * output directory. While @ret is held, its lock keeps collectors away.
 */
must_check int image_unpack_begin(int store_fd, const struct image *img, struct image_unpack *ret, struct err *e);

/**
 * image_unpack_end() - Give the unpacked tree its place; @img is usable afterwards
 *
 * Consumes @u, also on failure. If another process unpacked the same archive meanwhile, its tree is used.
 * Return: 0; -EINVAL if the tree is not a root file system; other negative errno
 */
must_check int image_unpack_end(struct image_unpack *u, struct image *img, struct err *e);

/* image_unpack_abort() - Remove what was unpacked; does nothing on one that ended. */
void image_unpack_abort(struct image_unpack *u);

/**
 * image_collect() - Remove what unpackers that died left behind
 * Return: number of directories removed, or negative errno
 */
must_check int image_collect(int store_fd, struct err *e);

#define auto_image auto_(image_done)
