/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - carrel-unpack: unpack a tar from stdin into a directory
 *
 * Theory of operation. One process, no threads, started by the warden in a sandbox of its own, where --out is a bind
 * mount of a directory of the store. It may be run by hand as well, as root or in a user namespace. What it prints is
 * for programs: stderr has one line for each problem, tab-separated (`skipped WHAT NAME`, `error MESSAGE HINT`),
 * stdout one last line of key=value when all went well. Names of entries are escaped in both. Exit status: 0; 1 for
 * an archive that is refused or cannot be written; 2 for bad arguments. */
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "unpack/unpack.h"

#define NOTES_MAX 100 /* lines: an archive of a million devices must not fill the log of whoever reads them */

struct options {
	const char *out;
	struct unpack_limits limits;
	enum sink_owners owners;
};

static void note(const char *what, const char *name)
{
	static unsigned notes;

	if (notes++ < NOTES_MAX)
		(void)fprintf(stderr, "skipped\t%s\t%s\n", what, name);
}

static int fail(const struct err *e, int status)
{
	(void)fprintf(stderr, "error\t%s\t%s\n", e->msg[0] ? e->msg : "out of memory", e->hint);
	return status;
}

static int parse_owners(const char *value, enum sink_owners *ret)
{
	if (str_eq(value, "keep"))
		*ret = SINK_OWNERS_KEEP;
	else if (str_eq(value, "squash"))
		*ret = SINK_OWNERS_SQUASH;
	else
		return -EINVAL;
	return 0;
}

static int parse_option(const char *arg, struct options *o)
{
	uint64_t depth;
	const char *v;
	int r;

	v = str_starts(arg, "--out=");
	if (v) {
		o->out = v;
		return 0;
	}
	if ((v = str_starts(arg, "--max-bytes=")))
		return str_to_size(v, &o->limits.bytes_max);
	if ((v = str_starts(arg, "--max-entries=")))
		return str_to_u64(v, &o->limits.entries_max);
	if ((v = str_starts(arg, "--max-depth="))) {
		r = str_to_u64(v, &depth);
		o->limits.depth_max = (uint32_t)MIN(depth, UINT32_MAX);
		return r;
	}
	if ((v = str_starts(arg, "--owners=")))
		return parse_owners(v, &o->owners);
	return -EINVAL;
}

int main(int argc, char **argv)
{
	struct options o = { .out = "/out", .limits = unpack_limits_default, .owners = SINK_OWNERS_KEEP };
	struct unpack_result res;
	auto_close int root = -EBADF;
	struct err e = { 0 };

	for (int i = 1; i < argc; i++)
		if (parse_option(argv[i], &o) < 0) {
			(void)err_set(&e, ERR_INVALID, "bad argument '%s'", argv[i]);
			(void)err_hint(&e, 0, "%s",
				       "--out=DIR --max-bytes=SIZE --max-entries=N --max-depth=N --owners=keep|squash");
			return fail(&e, 2);
		}

	/* Names in pax headers are UTF-8; libarchive converts them to the locale, or has no name where that fails. */
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	(void)umask(0);
	root = open(o.out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0) {
		(void)err_sys(&e, -errno, "open the directory '%s'", o.out);
		return fail(&e, 1);
	}
	if (unpack_stream(STDIN_FILENO, root, &o.limits, o.owners, note, &res, &e) < 0)
		return fail(&e, 1);
	if (printf("entries=%llu bytes=%llu skipped_devices=%llu skipped_others=%llu dropped_xattrs=%llu "
		   "setid_files=%llu\n",
		   (unsigned long long)res.entries, (unsigned long long)res.bytes,
		   (unsigned long long)res.skipped_devices, (unsigned long long)res.skipped_others,
		   (unsigned long long)res.dropped_xattrs, (unsigned long long)res.setid_files) < 0 ||
	    fflush(stdout) != 0)
		return 1;
	return 0;
}
