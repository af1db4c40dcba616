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
#define UNPACK_MEMORY GIB(1) /* xz dictionaries reach hundreds of MiB */
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

static int unpack_spec(int root_fd, int program_fd, struct carrel_spec **ret)
{
	struct carrel_spec *spec = carrel_spec_new();
	int r;

	if (!spec)
		return -ENOMEM;
	r = add_fd_mount(spec, root_fd, "/out", 1);
	if (r == 0)
		r = add_fd_mount(spec, program_fd, UNPACK_INSIDE, 0);
	spec->memory_bytes = UNPACK_MEMORY; /* not by spec_set(): where nothing can enforce it, it is not an error */
	if (r < 0) {
		carrel_spec_free(spec);
		return r;
	}
	*ret = spec;
	return 0;
}

/** struct complaint - A line "error TAB message TAB remedy" of the unpacker, made harmless for a terminal */
struct complaint {
	char text[1024];
	const char *message, *remedy;
};

static void read_complaint(struct carrel_exec *x, struct complaint *c)
{
	ssize_t n = carrel_exec_read(x, 2, 0, c->text, sizeof(c->text) - 1, 0, NULL);
	char *line, *tab;

	c->message = c->remedy = "";
	c->text[n > 0 ? n : 0] = '\0';
	line = strstr(c->text, "error\t"); /* warnings may come before it */
	if (!line)
		return;
	line += strlen("error\t");
	line[strcspn(line, "\n")] = '\0';
	tab = strchr(line, '\t');
	if (tab)
		*tab++ = '\0';
	for (char *p = line; *p || (tab && p < tab); p++)
		if (*p && ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f))
			*p = '?';
	c->message = line;
	c->remedy = tab ? tab : "";
}

static int refused(struct carrel_exec *x, const struct carrel_result *result, const struct image *img, struct err *e)
{
	struct complaint c;
	int r;

	read_complaint(x, &c);
	r = err_set(e, ERR_INVALID, "unpack '%.100s': %s", img->path,
		    c.message[0] ? c.message : carrel_outcome_name(result->outcome));
	return c.remedy[0] ? err_hint(e, r, "%s", c.remedy) : r;
}

/* The archive is the command's stdin: the unpacker gets a descriptor to read from, not a path. */
static int run_unpacker(struct carrel_sandbox *sb, struct image *img, struct err *e)
{
	/* An ordinary user has one id inside, which gets everything. */
	const char *const argv[] = { UNPACK_INSIDE, "--out=/out", geteuid() ? "--owners=squash" : "--owners=keep", NULL };
	struct carrel_command *c = carrel_command_new(argv);
	struct carrel_exec *x = NULL;
	struct carrel_result result;
	struct carrel_error story = { .code = 0 };
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
		r = refused(x, &result, img, e);
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
	r = unpack_spec(root_fd, program, &spec);
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
