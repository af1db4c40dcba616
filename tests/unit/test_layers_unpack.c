/* SPDX-License-Identifier: Apache-2.0 */
/* test_layers_unpack.c - What becomes of good archives, and that bad ones reach nothing
 *
 * The archives are those of tests/fuzz/make_tar_corpus.py, by name; CORPUS_TAR is their directory. */
#include "unpack/unpack.h"

#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/fd.h"
#include "layers/tree.h"
#include "test.h"

#ifndef CORPUS_TAR
#define CORPUS_TAR "tests/fuzz/corpus/tar"
#endif

/* base/outside/canary must survive; base/out is where archives go */
static char base_path[64];
static int base, out;
static struct unpack_result result;
static struct err err;

static int make_base(void **state)
{
	int fd;

	(void)state;
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	(void)umask(0);
	(void)snprintf(base_path, sizeof(base_path), "/tmp/carrel-test-unpack-XXXXXX");
	if (!mkdtemp(base_path))
		return -1;
	base = open(base_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (base < 0 || mkdirat(base, "outside", 0755) < 0)
		return -1;
	fd = openat(base, "outside/canary", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || fd_write_full(fd, "alive", 5) < 0)
		return -1;
	return close(fd);
}

static int remove_base(void **state)
{
	auto_close int tmp = open("/tmp", O_PATH | O_CLOEXEC);

	(void)state;
	(void)close(base);
	return tree_remove_at(tmp, base_path + strlen("/tmp/"), NULL);
}

/* Each test begins with an empty directory. */
static int make_out(void **state)
{
	(void)state;
	if (mkdirat(base, "out", 0755) < 0)
		return -1;
	out = openat(base, "out", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	memset(&err, 0, sizeof(err));
	return out < 0 ? -1 : 0;
}

static int count_entries(int at, const char *path)
{
	DIR *dir = fdopendir(openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n - 2;
}

static int remove_out(void **state)
{
	char canary[16];
	struct stat st;

	(void)state;
	(void)close(out);
	assert_int_equal(fd_read_file_at(base, "outside/canary", canary, sizeof(canary)), 5);
	assert_string_equal(canary, "alive");
	assert_int_equal(fstatat(base, "outside/canary", &st, 0), 0);
	assert_int_equal(st.st_nlink, 1);
	EXPECT_INT("outside", count_entries(base, "outside"), 1);
	EXPECT_INT("base", count_entries(base, "."), 2);
	return tree_remove_at(base, "out", NULL);
}

static int unpack_limited(const char *name, const struct unpack_limits *limits)
{
	enum sink_owners owners = geteuid() == 0 ? SINK_OWNERS_KEEP : SINK_OWNERS_SQUASH;
	auto_close int fd = -EBADF;
	char path[256];

	(void)snprintf(path, sizeof(path), CORPUS_TAR "/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail_msg("no archive '%s'", path);
	return unpack_stream(fd, out, limits, owners, NULL, &result, &err);
}

static void unpack(const char *name)
{
	if (unpack_limited(name, &unpack_limits_default) < 0)
		fail_msg("%s: %s", name, err.msg);
}

static struct stat stat_of(const char *path)
{
	struct stat st = { 0 };

	if (fstatat(out, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		fail_msg("'%s' is missing", path);
	return st;
}

static void expect_text(const char *path, const char *want)
{
	char text[64] = "";

	assert_true(fd_read_file_at(out, path, text, sizeof(text)) >= 0);
	assert_string_equal(text, want);
}

static void expect_link(const char *path, const char *want)
{
	char target[64] = "";

	assert_true(readlinkat(out, path, target, sizeof(target) - 1) > 0);
	assert_string_equal(target, want);
}

TEST(a_root_is_the_same_however_it_is_compressed)
{
	static const char *const names[] = { "root.tar", "root_gz", "root_bz2", "root_xz", "root_zst" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		unpack(names[i]);
		EXPECT_INT(names[i], result.entries, 11);
		expect_link("bin", "usr/bin");
		expect_text("usr/bin/tool", "#!/bin/sh\n");
		EXPECT_INT(names[i], stat_of("usr/bin/tool").st_mode, S_IFREG | 0755);
		EXPECT_INT(names[i], stat_of("usr/bin/tool").st_mtim.tv_sec, 1700000000);
		EXPECT_INT(names[i], stat_of("usr/bin").st_mtim.tv_sec, 1700000000);
		assert_true(stat_of("usr/bin/tool").st_ino == stat_of("usr/bin/alias").st_ino);
		EXPECT_INT(names[i], stat_of("tmp").st_mode, S_IFDIR | 01777);
		assert_true(S_ISFIFO(stat_of("run/pipe").st_mode));
		if (geteuid() == 0)
			EXPECT_INT(names[i], stat_of("etc/motd").st_uid, 1000);
		assert_int_equal(remove_out(NULL), 0);
		assert_int_equal(make_out(NULL), 0);
	}
}

TEST(names_of_every_dialect_are_read)
{
	unpack("gnu.tar");
	unpack("ustar.tar");
	unpack("long_names.tar");
	unpack("utf8.tar");
	EXPECT_INT("utf8", stat_of("usr/\xc3\xa9t\xc3\xa9-\xe6\x97\xa5\xe6\x9c\xac").st_size, 1);
	unpack("control_name.tar");
	EXPECT_INT("control", stat_of("a\nb\x1b[31m").st_size, 1);
}

TEST(implied_directories_are_made_and_counted)
{
	unpack("implied_dirs.tar");
	EXPECT_INT("entries", result.entries, 7);
	EXPECT_INT("mode", stat_of("a/b/c").st_mode, S_IFDIR | 0755);
}

TEST(dots_and_slashes_mean_nothing)
{
	unpack("dots.tar");
	expect_text("a/b", "x");
	EXPECT_INT("root", stat_of(".").st_mode, S_IFDIR | 0711);
}

TEST(a_later_entry_replaces_an_earlier_one)
{
	unpack("twice.tar");
	expect_text("f", "second");
	assert_true(S_ISDIR(stat_of("d").st_mode));
	expect_text("d/x", "in a directory");
	expect_text("e", "was a directory");
}

TEST(devices_are_skipped_and_counted)
{
	struct stat st;

	unpack("devices.tar");
	EXPECT_INT("devices", result.skipped_devices, 2);
	assert_int_equal(fstatat(out, "dev/null", &st, 0), -1);
	expect_text("f", "x");
}

TEST(set_id_bits_are_kept_and_counted)
{
	unpack("setuid.tar");
	EXPECT_INT("su", stat_of("su").st_mode, S_IFREG | 04755);
	EXPECT_INT("d", stat_of("d").st_mode, S_IFDIR | 02775);
	EXPECT_INT("counted", result.setid_files, 2);
}

TEST(closed_directories_are_filled)
{
	if (geteuid() != 0)
		skip(); /* needs CAP_DAC_OVERRIDE, which the unpacker has in its user namespace */
	unpack("closed_dir.tar");
	EXPECT_INT("mode", stat_of("d").st_mode, S_IFDIR | 0000);
	EXPECT_INT("file", stat_of("d/f").st_mode, S_IFREG | 0000);
	expect_text("d/e/f", "x");
}

TEST(attributes_are_filtered)
{
	static const char *const names[] = { "user.overlay.redirect", "trusted.overlay.opaque", "security.capability" };
	auto_close int fd = -EBADF;
	char value[16];

	unpack("xattrs.tar");
	fd = openat(out, "f", O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		EXPECT_INT(names[i], fgetxattr(fd, names[i], value, sizeof(value)), -1);
	if (result.dropped_xattrs > 4)
		skip(); /* this file system has no user attributes */
	EXPECT_INT("dropped", result.dropped_xattrs, 4);
	EXPECT_INT("kept", fgetxattr(fd, "user.kept", value, sizeof(value)), 3);
}

TEST(zeroes_and_sparse_files_take_no_room)
{
	unpack("zeroes.tar");
	EXPECT_INT("z", stat_of("z").st_size, 20000);
	assert_true(stat_of("z").st_blocks * 512 <= 4096);
	EXPECT_INT("m", stat_of("m").st_size, 12002);
	assert_true(stat_of("m").st_blocks * 512 <= 8192);
	unpack("sparse.tar");
	EXPECT_INT("s", stat_of("s").st_size, 2 << 20);
	assert_true(stat_of("s").st_blocks * 512 <= 16384);
}

TEST(links_are_text_and_hard_links_stay_inside)
{
	unpack("loop_links.tar");
	expect_link("c", "/etc/passwd");
	unpack("self_link.tar");
	expect_text("f", "x");
	unpack("link_to_link.tar");
	expect_link("h", "/etc/passwd");
}

TEST(bad_archives_are_refused_with_the_reason)
{
	static const struct {
		const char *name, *words;
	} cases[] = {
		{ "bad_dotdot.tar", "entry '../evil': its name has '..'" },
		{ "bad_dotdot_inside.tar", "has '..'" },
		{ "bad_dotdot_end.tar", "has '..'" },
		{ "bad_absolute.tar", "entry '/evil': its name is absolute" },
		{ "bad_through_link.tar", "entry 'a/evil': a directory of its name is a symbolic link" },
		{ "bad_through_absolute_link.tar", "is a symbolic link" },
		{ "bad_through_own_link.tar", "is a symbolic link" },
		{ "bad_dir_below_link.tar", "is a symbolic link" },
		{ "bad_hardlink_dotdot.tar", "entry 'h': a hard link: entry '../outside/canary'" },
		{ "bad_hardlink_absolute.tar", "is absolute" },
		{ "bad_hardlink_through_link.tar", "entry 'h': a hard link to 'a/canary'" },
		{ "bad_hardlink_missing.tar", "which is not in the archive before it" },
		{ "bad_hardlink_to_dir.tar", "entry 'h': make the hard link" },
		{ "bad_hardlink_to_root.tar", "entry 'h': a hard link to '.'" },
		{ "bad_symlink_at_root.tar", "the root is not a directory" },
		{ "bad_file_at_root.tar", "the root is not a directory" },
		{ "bad_below_file.tar", "a directory of its name is a file" },
		{ "bad_replaces_full_dir.tar", "entry 'd': replace an earlier entry" },
		{ "bad_whiteout.tar", "an overlayfs whiteout" },
		{ "bad_owner.tar", "owner 70000:0 is beyond 65535" },
		{ "bad_group.tar", "is beyond 65535" },
		{ "bad_negative_owner.tar", "is beyond 65535" },
		{ "bad_long_component.tar", "its name is too long" },
		{ "bad_long_path.tar", "its name is too long" },
		{ "bad_deep.tar", "more than 256 directories deep" },
		{ "bad_huge_size.tar", "larger than 16g" },
		{ "bad_huge_sparse.tar", "larger than 16g" },
		{ "bad_cut.tar", "read the archive: Truncated" },
		{ "bad_cut_gz", "read the archive: truncated gzip" },
		{ "bad_empty", "read the archive: " },
		{ "bad_zeroes", "it is empty" },
		{ "bad_text", "read the archive: " },
		{ "bad_zip", "read the archive: " },
		{ "bad_cpio", "read the archive: " },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int r = unpack_limited(cases[i].name, &unpack_limits_default);

		if (r >= 0)
			fail_msg("%s was unpacked", cases[i].name);
		if (!strstr(err.msg, cases[i].words))
			fail_msg("%s: '%s' lacks '%s'", cases[i].name, err.msg, cases[i].words);
		assert_int_equal(remove_out(NULL), 0);
		assert_int_equal(make_out(NULL), 0);
	}
}

TEST(limits_are_reached_exactly_and_not_passed)
{
	static const struct {
		const char *name;
		struct unpack_limits limits;
		int want;
	} cases[] = {
		{ "implied_dirs.tar", { KIB(1), 7, 6 }, 0 },
		{ "implied_dirs.tar", { KIB(1), 6, 6 }, -ENOSPC },
		{ "implied_dirs.tar", { KIB(1), 7, 5 }, -EINVAL },
		{ "devices.tar", { KIB(1), 4, 2 }, 0 },
		{ "devices.tar", { KIB(1), 3, 2 }, -ENOSPC }, /* two are made, two are skipped, four are looked at */
		{ "zeroes.tar", { 32002, 2, 1 }, 0 },
		{ "zeroes.tar", { 32001, 2, 1 }, -ENOSPC },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		EXPECT_INT(cases[i].name, unpack_limited(cases[i].name, &cases[i].limits), cases[i].want);
		assert_int_equal(remove_out(NULL), 0);
		assert_int_equal(make_out(NULL), 0);
	}
}

TEST(names_are_shown_without_their_control_characters)
{
	static const struct {
		const char *name, *want;
	} cases[] = {
		{ "plain", "plain" },        { "a\nb", "a\\x0ab" },        { "it's", "it\\x27s" },
		{ "\x1b[31m", "\\x1b[31m" }, { "\xc3\xa9", "\\xc3\\xa9" }, { "", "" },
	};
	char shown[NAME_SHOWN_SIZE], lengthy[500];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(name_show(cases[i].name, shown), cases[i].want);
	memset(lengthy, '\n', sizeof(lengthy) - 1);
	lengthy[sizeof(lengthy) - 1] = '\0';
	assert_true(strlen(name_show(lengthy, shown)) < NAME_SHOWN_SIZE);
	assert_non_null(strstr(shown, "..."));
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, make_out, remove_out)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(a_root_is_the_same_however_it_is_compressed),
		CASE(names_of_every_dialect_are_read),
		CASE(implied_directories_are_made_and_counted),
		CASE(dots_and_slashes_mean_nothing),
		CASE(a_later_entry_replaces_an_earlier_one),
		CASE(devices_are_skipped_and_counted),
		CASE(set_id_bits_are_kept_and_counted),
		CASE(closed_directories_are_filled),
		CASE(attributes_are_filtered),
		CASE(zeroes_and_sparse_files_take_no_room),
		CASE(links_are_text_and_hard_links_stay_inside),
		CASE(bad_archives_are_refused_with_the_reason),
		CASE(limits_are_reached_exactly_and_not_passed),
		cmocka_unit_test(names_are_shown_without_their_control_characters),
	};

	return cmocka_run_group_tests(tests, make_base, remove_base);
}
