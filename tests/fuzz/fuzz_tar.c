/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tar.c - Any bytes as an image: refused or unpacked, and nothing beside the directory changes
 *
 * Theory of operation. Each input is unpacked into BASE/out; BASE/outside holds one file. Afterwards BASE holds these
 * two directories and nothing else, and the file is what it was, with one link. What was unpacked is removed by
 * tree_remove_at(), which so gets its share of odd trees. A tar header has a checksum, which nearly every mutation
 * breaks; so each input is tried as it is and once more with the checksums of its headers put right. Limits are
 * small: what is looked for are paths, not patience. */
#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "layers/tree.h"
#include "unpack/unpack.h"

#define BLOCK 512 /* bytes of a tar header */

static char base_path[64];
static int base = -EBADF;

static void remove_base(void)
{
	int above = open("/dev/shm", O_PATH | O_CLOEXEC);

	if (tree_remove_at(base, "out", NULL) < 0 || tree_remove_at(above, base_path + strlen("/dev/shm/"), NULL) < 0)
		(void)fprintf(stderr, "fuzz_tar: '%s' stays\n", base_path);
}

static void make_base(void)
{
	int fd;

	(void)setlocale(LC_CTYPE, "C.UTF-8");
	(void)umask(0);
	(void)snprintf(base_path, sizeof(base_path), "/dev/shm/carrel-fuzz-tar-XXXXXX");
	MUST(mkdtemp(base_path));
	base = open(base_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(base >= 0 && mkdirat(base, "outside", 0755) == 0);
	fd = openat(base, "outside/canary", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	MUST(fd >= 0 && fd_write_full(fd, "alive", 5) == 0);
	(void)close(fd);
	MUST(atexit(remove_base) == 0);
}

static int count_entries(const char *path)
{
	DIR *dir = fdopendir(openat(base, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	int n = 0;

	MUST(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n - 2;
}

static void check_outside(void)
{
	char text[16];
	struct stat st;

	MUST(count_entries(".") == 2 && count_entries("outside") == 1);
	MUST(fd_read_file_at(base, "outside/canary", text, sizeof(text)) == 5 && memcmp(text, "alive", 5) == 0);
	MUST(fstatat(base, "outside/canary", &st, AT_SYMLINK_NOFOLLOW) == 0);
	MUST(S_ISREG(st.st_mode) && st.st_nlink == 1 && (st.st_mode & 07777) == 0600 && st.st_uid == geteuid());
	MUST(fstatat(base, "outside", &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & 07777) == 0755);
}

static void try_archive(const uint8_t *data, size_t size)
{
	static const struct unpack_limits limits = { .bytes_max = 1 << 20, .entries_max = 200, .depth_max = 32 };
	enum sink_owners owners = geteuid() == 0 ? SINK_OWNERS_KEEP : SINK_OWNERS_SQUASH;
	auto_close int in = memfd_create("archive", MFD_CLOEXEC), out = -EBADF;
	struct unpack_result res = { 0 };
	struct err e = { 0 };
	int r;

	MUST(in >= 0 && fd_write_full(in, data, size) == 0 && lseek(in, 0, SEEK_SET) == 0);
	MUST(mkdirat(base, "out", 0755) == 0);
	out = openat(base, "out", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(out >= 0);
	r = unpack_stream(in, out, &limits, owners, NULL, &res, &e);
	MUST(r == -ENOMEM || (r < 0) == (e.msg[0] != '\0'));
	MUST(r < 0 || (res.entries <= limits.entries_max && res.bytes <= limits.bytes_max));
	for (const char *p = e.msg; *p; p++)
		MUST((unsigned char)*p >= ' ' && (unsigned char)*p < 0x7f);
	check_outside();
	MUST(tree_remove_at(base, "out", NULL) == 0);
}

/* fix_checksums() - Put right what looks like a header. Return: true if something changed */
static bool fix_checksums(uint8_t *p, size_t size)
{
	bool changed = false;
	char sum_text[8];

	for (size_t at = 0; at + BLOCK <= size; at += BLOCK) {
		unsigned sum = 8 * ' '; /* the checksum's own field counts as blanks */

		if (memcmp(p + at + 257, "ustar", 5) != 0)
			continue;
		for (size_t i = 0; i < BLOCK; i++)
			sum += i >= 148 && i < 156 ? 0 : p[at + i];
		(void)snprintf(sum_text, sizeof(sum_text), "%06o", sum);
		sum_text[7] = ' ';
		changed |= memcmp(p + at + 148, sum_text, 7) != 0;
		memcpy(p + at + 148, sum_text, sizeof(sum_text));
	}
	return changed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free uint8_t *copy = malloc(size + !size);

	MUST(copy);
	if (base < 0)
		make_base();
	try_archive(data, size);
	memcpy(copy, data, size);
	if (fix_checksums(copy, size))
		try_archive(copy, size);
	return 0;
}
