/* SPDX-License-Identifier: Apache-2.0 */
/* test_layers_image.c - A name becomes a directory, or an error that says what to do */
#include "layers/image.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "layers/tree.h"
#include "test.h"
#include "unpack/unpack.h"

#ifndef CORPUS_TAR
#define CORPUS_TAR "tests/fuzz/corpus/tar"
#endif

static char base[64];
static int store;

static const char *below(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", base, name);
	return path;
}

static int make_base(void **state)
{
	(void)state;
	(void)snprintf(base, sizeof(base), "/tmp/carrel-test-image-XXXXXX");
	if (!mkdtemp(base) || mkdir(below("store"), 0700) < 0)
		return -1;
	store = open(below("store"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return store < 0 ? -1 : 0;
}

static int remove_base(void **state)
{
	auto_close int tmp = open("/tmp", O_PATH | O_CLOEXEC);

	(void)state;
	(void)close(store);
	return tree_remove_at(tmp, base + strlen("/tmp/"), NULL);
}

static void write_file(const char *name, const void *p, size_t len)
{
	auto_close int fd = open(below(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, p, len), 0);
}

static void copy_archive(const char *from, const char *to)
{
	char path[256], bytes[16384];
	auto_close int fd = -EBADF;
	ssize_t n;

	(void)snprintf(path, sizeof(path), CORPUS_TAR "/%s", from);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd_read_full(fd, bytes, sizeof(bytes));
	assert_true(n > 0);
	write_file(to, bytes, (size_t)n);
}

static int count_images(void)
{
	DIR *dir = fdopendir(openat(store, "images", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	int n = 0;

	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n - 2;
}

/* What the warden does, without its sandbox. */
static void unpack_into(const struct image *img, const struct image_unpack *u)
{
	auto_close int root = openat(u->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct unpack_result res;
	struct err e = { 0 };

	assert_true(root >= 0);
	EXPECT_INT(e.msg,
		   unpack_stream(img->archive_fd, root, &unpack_limits_default, SINK_OWNERS_SQUASH, NULL, &res, &e), 0);
}

static struct image resolve(const char *name)
{
	struct image img = IMAGE_INIT;
	struct err e = { 0 };

	if (image_resolve(name, store, &img, &e) < 0)
		fail_msg("%s: %s", name, e.msg);
	return img;
}

TEST(host_is_an_image)
{
	auto_image struct image img = resolve("host");

	assert_int_equal(img.kind, IMAGE_HOST);
	assert_true(img.fd >= 0 && img.generation != 0 && !img.needs_unpack);
	assert_string_equal(img.path, "host");
}

TEST(a_directory_is_an_image)
{
	auto_image struct image img = IMAGE_INIT;

	assert_int_equal(mkdir(below("root"), 0755), 0);
	assert_int_equal(mkdir(below("root/usr"), 0755), 0);
	assert_int_equal(symlink("root", below("link")), 0);
	img = resolve(below("link"));
	assert_int_equal(img.kind, IMAGE_DIRECTORY);
	assert_string_equal(img.path, below("root"));
	assert_int_equal(fcntl(img.fd, F_GETFL) & O_PATH, O_PATH);
}

TEST(what_is_no_image_is_refused_with_a_remedy)
{
	static const struct {
		const char *name, *words;
		int want;
	} cases[] = {
		{ "", "the name is empty", -EINVAL },
		{ "/", "it would show the whole host", -EINVAL },
		{ "/dev/null", "neither a directory nor a file", -EINVAL },
		{ "/nonexistent/image", "no such file", -ENOENT },
		{ "python:3.12", "find the image 'python:3.12'", -ENOENT },
	};
	struct image img;
	struct err e = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		EXPECT_INT(cases[i].name, image_resolve(cases[i].name, store, &img, &e), cases[i].want);
		if (!strstr(e.msg, cases[i].words) || !e.hint[0])
			fail_msg("'%s': '%s' (%s)", cases[i].name, e.msg, e.hint);
	}
	assert_int_equal(mkdir(below("empty"), 0755), 0);
	assert_int_equal(image_resolve(below("empty"), store, &img, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "it is empty"));
	write_file("text.tar", "hello", 5);
	assert_int_equal(image_resolve(below("text.tar"), store, &img, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "not a tar archive"));
	assert_int_equal(mkfifo(below("fifo"), 0600), 0);
	assert_int_equal(image_resolve(below("fifo"), store, &img, &e), -EINVAL); /* and does not hang */
}

TEST(an_archive_is_unpacked_once)
{
	static const char *const names[] = { "root.tar", "root_gz", "root_bz2", "root_xz", "root_zst" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		auto_image struct image img = IMAGE_INIT, again = IMAGE_INIT;
		auto_(image_unpack_abort) struct image_unpack u = IMAGE_UNPACK_INIT;
		struct stat st;

		copy_archive(names[i], names[i]);
		img = resolve(below(names[i]));
		assert_true(img.needs_unpack && img.fd < 0 && img.archive_fd >= 0);
		assert_int_equal(image_unpack_begin(store, &img, &u, NULL), 0);
		unpack_into(&img, &u);
		assert_int_equal(image_unpack_end(&u, &img, NULL), 0);
		assert_true(!img.needs_unpack && img.fd >= 0 && img.archive_fd < 0);
		again = resolve(below(names[i]));
		assert_true(!again.needs_unpack && again.fd >= 0);
		assert_int_equal(fstatat(again.fd, "usr/bin/tool", &st, 0), 0);
		EXPECT_INT("images", count_images(), (int)i + 1);
	}
}

TEST(a_changed_archive_is_another_image)
{
	auto_image struct image a = IMAGE_INIT, b = IMAGE_INIT;

	copy_archive("root.tar", "changing.tar");
	a = resolve(below("changing.tar"));
	copy_archive("gnu.tar", "changing.tar");
	b = resolve(below("changing.tar"));
	assert_string_not_equal(a.key, b.key);
}

TEST(an_abort_and_a_crash_leave_nothing)
{
	auto_image struct image img = IMAGE_INIT;
	struct image_unpack u, other;
	int before = count_images();

	copy_archive("root.tar", "abort.tar");
	img = resolve(below("abort.tar"));
	assert_int_equal(image_unpack_begin(store, &img, &u, NULL), 0);
	unpack_into(&img, &u);
	image_unpack_abort(&u);
	image_unpack_abort(&u); /* nothing twice */
	EXPECT_INT("images", count_images(), before);

	assert_int_equal(image_unpack_begin(store, &img, &u, NULL), 0);
	assert_int_equal(image_unpack_begin(store, &img, &other, NULL), 0);
	(void)close(u.root_fd); /* a process that dies closes its descriptors */
	(void)close(u.scratch.fd);
	(void)close(u.images_fd);
	EXPECT_INT("collected", image_collect(store, NULL), 1); /* the other builder lives */
	image_unpack_abort(&other);
	EXPECT_INT("images", count_images(), before);
}

TEST(the_first_of_two_unpackers_wins)
{
	auto_image struct image a = IMAGE_INIT, b = IMAGE_INIT;
	struct image_unpack ua, ub;
	struct stat sa, sb;
	int before = count_images();

	copy_archive("root.tar", "race.tar");
	a = resolve(below("race.tar"));
	b = resolve(below("race.tar"));
	assert_int_equal(image_unpack_begin(store, &a, &ua, NULL), 0);
	assert_int_equal(image_unpack_begin(store, &b, &ub, NULL), 0);
	unpack_into(&a, &ua);
	unpack_into(&b, &ub);
	assert_int_equal(image_unpack_end(&ua, &a, NULL), 0);
	assert_int_equal(image_unpack_end(&ub, &b, NULL), 0);
	assert_int_equal(fstat(a.fd, &sa), 0);
	assert_int_equal(fstat(b.fd, &sb), 0);
	assert_true(sa.st_ino == sb.st_ino);
	EXPECT_INT("images", count_images(), before + 1);
}

TEST(layers_of_docker_save_are_not_a_root)
{
	auto_image struct image img = IMAGE_INIT;
	struct image_unpack u;
	struct err e = { 0 };
	int before = count_images();

	copy_archive("two_layers.tar", "saved.tar");
	img = resolve(below("saved.tar"));
	assert_int_equal(image_unpack_begin(store, &img, &u, NULL), 0);
	unpack_into(&img, &u);
	assert_int_equal(image_unpack_end(&u, &img, &e), -EINVAL);
	assert_non_null(strstr(e.hint, "docker export"));
	EXPECT_INT("images", count_images(), before);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_is_an_image),
		cmocka_unit_test(a_directory_is_an_image),
		cmocka_unit_test(what_is_no_image_is_refused_with_a_remedy),
		cmocka_unit_test(an_archive_is_unpacked_once),
		cmocka_unit_test(a_changed_archive_is_another_image),
		cmocka_unit_test(an_abort_and_a_crash_leave_nothing),
		cmocka_unit_test(the_first_of_two_unpackers_wins),
		cmocka_unit_test(layers_of_docker_save_are_not_a_root),
	};

	return cmocka_run_group_tests(tests, make_base, remove_base);
}
