/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.c - Bring an archive into the store, in a sandbox of its own
 *
 * Theory of operation. An archive is hostile input, and a library that reads six compressors is a large parser: it runs in a sandbox
 * that we make as any other, with the host image, no network, and one writable directory, the place in the store where the tree
 * grows. That directory is mounted with the sandbox's whole range of ids, so that files get the owners that the archive says, on
 * disk as plain ids. What the unpacker prints is only ever shown, never believed. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "layers/image.h"
#include "warden/internal.h"

#ifndef CARREL_LIBEXEC
#error "the build names the directory of carrel-unpack"
#endif

/* Unpacking is bound by the disk: a 10 GB root file system takes minutes, a stalled one must end. */
#define UNPACK_TIMEOUT "30m"
#define UNPACK_INSIDE "/run/carrel-unpack"

static int add_fd_mount(struct carrel_spec *spec, int fd, const char *target, unsigned writable)
{
	struct spec_mount *m = &spec->mounts[spec->num_mounts];

	*m = (struct spec_mount){ .kind = JAIL_BIND, .source_fd = fd, .read_only = !writable, .map_all = writable };
	m->source = strdup(target);
	m->target = strdup(target);
	spec->num_mounts++;
	return m->source && m->target ? 0 : -ENOMEM;
}

static int unpack_spec(int root_fd, int program_fd, struct carrel_spec **ret, struct err *e)
{
	struct carrel_spec *spec = carrel_spec_new();
	int r;

	if (!spec)
		return -ENOMEM;
	r = add_fd_mount(spec, root_fd, "/out", 1);
	if (r == 0)
		r = add_fd_mount(spec, program_fd, UNPACK_INSIDE, 0);
	if (r == 0)
		r = spec_set(spec, "memory", "1g", e); /* xz dictionaries reach hundreds of MiB */
	if (r < 0) {
		carrel_spec_free(spec);
		return r;
	}
	*ret = spec;
	return 0;
}

/* The last line that the unpacker wrote to stderr, made harmless for a terminal. */
static void last_words(struct carrel_exec *x, char *text, size_t size)
{
	ssize_t n = carrel_exec_read(x, 2, 0, text, size - 1, 0, NULL);

	text[n > 0 ? n : 0] = '\0';
	for (char *p = text; *p; p++) {
		if (*p == '\n') {
			*p = '\0';
			break;
		}
		if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
			*p = '?';
	}
}

/* The archive is the command's stdin: the unpacker gets a descriptor to read from, not a path. */
static int run_unpacker(struct carrel_sandbox *sb, struct image *img, struct err *e)
{
	static const char *const argv[] = { UNPACK_INSIDE, "--out=/out", NULL };
	struct carrel_command *c = carrel_command_new(argv);
	struct carrel_exec *x = NULL;
	struct carrel_result result;
	struct carrel_error story = { .code = 0 };
	char words[160];
	int r;

	if (!c)
		return -ENOMEM;
	r = command_set(c, "timeout", UNPACK_TIMEOUT, e);
	c->stdin_fd = img->archive_fd;
	c->in = STDIN_INHERIT;
	if (r == 0)
		r = carrel_exec(sb, c, &x, &story);
	if (r == 0)
		r = carrel_exec_wait(x, -1, &result, &story);
	if (r < 0) {
		r = err_set(e, (enum err_code)story.code, "unpack '%.128s': %s", img->path, story.message);
	} else if (result.outcome != CARREL_EXITED || result.exit_code != 0) {
		last_words(x, words, sizeof(words));
		r = err_set(e, ERR_INVALID, "unpack '%.100s': %s", img->path,
			    words[0] ? words : carrel_outcome_name(result.outcome));
	}
	carrel_exec_free(x);
	carrel_command_free(c);
	return r;
}

/* $CARREL_LIBEXEC, the directory of the running program (a build tree, or a copy), or where it was installed. */
static int open_unpacker(struct err *e)
{
	const char *dir = getenv("CARREL_LIBEXEC");
	char path[PATH_MAX], *slash;
	ssize_t n;
	int fd;

	if (!dir || *dir != '/') {
		n = readlink("/proc/self/exe", path, sizeof(path) - sizeof("/carrel-unpack"));
		path[n > 0 ? n : 0] = '\0';
		slash = strrchr(path, '/');
		if (slash) {
			memcpy(slash, "/carrel-unpack", sizeof("/carrel-unpack"));
			fd = sys_openat(AT_FDCWD, path, O_PATH | O_NOFOLLOW, 0);
			if (fd >= 0)
				return fd;
		}
		dir = CARREL_LIBEXEC;
	}
	(void)snprintf(path, sizeof(path), "%.4000s/carrel-unpack", dir);
	fd = sys_openat(AT_FDCWD, path, O_PATH | O_NOFOLLOW, 0);
	return fd < 0 ? err_hint(e, err_sys(e, fd, "find the unpacker '%s'", path), "install Carrel whole, or set CARREL_LIBEXEC") : fd;
}

static int run_sandbox(struct image *img, int root_fd, struct err *e)
{
	auto_close int program = open_unpacker(e);
	struct carrel_spec *spec = NULL;
	struct carrel_sandbox *sb = NULL;
	int r;

	if (program < 0)
		return program;
	r = unpack_spec(root_fd, program, &spec, e);
	if (r == 0)
		r = sandbox_start(spec, &sb, e);
	if (r == 0)
		r = run_unpacker(sb, img, e);
	carrel_sandbox_free(sb);
	carrel_spec_free(spec);
	return r;
}

int unpack_archive(int store_fd, struct image *img, struct err *e)
{
	struct image_unpack u = IMAGE_UNPACK_INIT;
	int r = image_unpack_begin(store_fd, img, &u, e);

	if (r < 0)
		return r;
	r = run_sandbox(img, u.root_fd, e);
	if (r < 0) {
		image_unpack_abort(&u);
		return r;
	}
	return image_unpack_end(&u, img, e);
}
