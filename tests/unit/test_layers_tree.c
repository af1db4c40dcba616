/* SPDX-License-Identifier: Apache-2.0 */
/* test_layers_tree.c - Every tree goes, nothing else does */
#include "layers/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "test.h"

#define DEEP 100000 /* levels: two hundred times PATH_MAX in names of two bytes */
#define WIDE 100000 /* entries; a million is for the bench */

static char base_path[64];
static int base;

static int make_base(void **state)
{
	(void)state;
	(void)snprintf(base_path, sizeof(base_path), "/tmp/carrel-test-tree-XXXXXX");
	if (!mkdtemp(base_path))
		return -1;
	base = open(base_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return base < 0 ? -1 : 0;
}

static int remove_base(void **state)
{
	(void)state;
	(void)close(base);
	return rmdir(base_path); /* fails if a test left something */
}

static void make_file(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	(void)close(fd);
}

static int make_dir(int dir, const char *name, mode_t mode)
{
	int fd;

	assert_int_equal(mkdirat(dir, name, 0700), 0);
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	return fd;
}

/* A chain of directories; @each is called in every one of them. */
static void make_chain(int dir, const char *name, int levels, void (*each)(int fd))
{
	int at = make_dir(dir, name, 0700), next;

	for (int i = 1; i < levels; i++) {
		if (each)
			each(at);
		next = make_dir(at, "d", 0700);
		(void)close(at);
		at = next;
	}
	make_file(at, "bottom");
	(void)close(at);
}

static bool is_gone(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

static void assert_removed(const char *name)
{
	struct err e = { 0 };

	EXPECT_INT(e.msg[0] ? e.msg : name, tree_remove_at(base, name, &e), 0);
	assert_int_equal(e.code, ERR_NONE);
	assert_true(is_gone(base, name));
}

TEST(a_file_a_link_and_nothing_are_trees)
{
	make_file(base, "f");
	assert_removed("f");
	assert_int_equal(symlinkat("/", base, "l"), 0);
	assert_removed("l");
	assert_removed("nothing");
}

TEST(names_that_are_not_one_name_are_refused)
{
	static const char *const names[] = { "", ".", "..", "a/b", "/", "/tmp", "a/" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct err e = { 0 };

		EXPECT_INT(names[i], tree_remove_at(base, names[i], &e), -EINVAL);
		assert_int_equal(e.code, ERR_INVALID);
	}
}

TEST(a_hundred_thousand_levels_go_with_few_descriptors)
{
	struct rlimit old, few;

	make_chain(base, "deep", DEEP, NULL);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	few.rlim_cur = 32;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_removed("deep");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
}

static void add_siblings(int fd)
{
	for (char c = 'a'; c <= 'h'; c++)
		make_file(fd, (char[]){ c, 'x', '\0' });
	(void)close(make_dir(fd, "zz", 0700));
	(void)close(make_dir(fd, "0", 0700));
}

TEST(levels_that_were_closed_are_continued)
{
	make_chain(base, "bushy", 500, add_siblings);
	assert_removed("bushy");
}

TEST(a_hundred_thousand_entries_go)
{
	int fd = make_dir(base, "wide", 0700);
	char name[32];

	for (int i = 0; i < WIDE; i++) {
		(void)snprintf(name, sizeof(name), "file-%d", i);
		if (i % 10 == 0)
			(void)close(make_dir(fd, name, 0700));
		else
			make_file(fd, name);
	}
	(void)close(fd);
	assert_removed("wide");
}

TEST(many_deep_children_of_one_directory_go)
{
	int fd = make_dir(base, "comb", 0700);
	char name[32];

	for (int i = 0; i < 300; i++) {
		(void)snprintf(name, sizeof(name), "tooth-%d", i);
		make_chain(fd, name, 40, NULL);
	}
	(void)close(fd);
	assert_removed("comb");
}

TEST(links_are_removed_and_not_followed)
{
	int keep = make_dir(base, "keep", 0700), fd = make_dir(base, "tree", 0700);

	make_file(keep, "precious");
	assert_int_equal(symlinkat("../keep", fd, "to_dir"), 0);
	assert_int_equal(symlinkat("../keep/precious", fd, "to_file"), 0);
	assert_int_equal(symlinkat("/", fd, "to_root"), 0);
	assert_int_equal(symlinkat("loop", fd, "loop"), 0);
	assert_int_equal(linkat(keep, "precious", fd, "hard", 0), 0);
	(void)close(fd);
	assert_removed("tree");
	assert_false(is_gone(keep, "precious"));
	(void)close(keep);
	assert_removed("keep");
}

TEST(every_kind_of_file_goes)
{
	int fd = make_dir(base, "kinds", 0700);

	assert_int_equal(mkfifoat(fd, "fifo", 0000), 0);
	assert_int_equal(mknodat(fd, "socket", S_IFSOCK, 0), 0);
	if (geteuid() == 0)
		(void)mknodat(fd, "whiteout", S_IFCHR, 0); /* overlayfs makes them */
	(void)close(fd);
	assert_removed("kinds");
}

static void make_closed_tree(int dir)
{
	int fd = make_dir(dir, "closed", 0700), in = make_dir(fd, "in", 0700), deeper = make_dir(in, "deeper", 0500);

	make_file(in, "f");
	assert_int_equal(fchmod(deeper, 0000), 0);
	assert_int_equal(fchmod(in, 0000), 0);
	assert_int_equal(fchmod(fd, 0000), 0);
	(void)close(deeper);
	(void)close(in);
	(void)close(fd);
}

/* Run in a child, which may give up its rights. Return: its exit status */
static int in_child(int (*run)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(run());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int remove_as_nobody(void)
{
	if (geteuid() == 0 && (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0))
		return 100;
	return -tree_remove_at(base, "closed", NULL);
}

TEST(directories_without_permission_go)
{
	make_closed_tree(base);
	assert_removed("closed");
	if (geteuid() != 0)
		return;

	/* Again as an ordinary user, who needs the owner's right to change modes. */
	assert_int_equal(fchmod(base, 0777), 0);
	make_closed_tree(base);
	assert_int_equal(fchownat(base, "closed", 65534, 65534, 0), 0);
	assert_int_equal(fchownat(base, "closed/in", 65534, 65534, 0), 0);
	assert_int_equal(fchownat(base, "closed/in/deeper", 65534, 65534, 0), 0);
	EXPECT_INT("as nobody", in_child(remove_as_nobody), 0);
	assert_true(is_gone(base, "closed"));
}

static int remove_with_mount(void)
{
	struct stat st;
	char path[128];
	struct err e = { 0 };
	int r;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 77;
	(void)snprintf(path, sizeof(path), "%s/mounted/a/point", base_path);
	if (mount("tmpfs", path, "tmpfs", 0, NULL) < 0)
		return 77;
	if (mkdirat(base, "mounted/a/point/precious", 0700) < 0)
		return 100;
	r = tree_remove_at(base, "mounted", &e);
	if (r != -EBUSY || e.code != ERR_CONFLICT)
		return 101;
	if (fstatat(base, "mounted/a/point/precious", &st, 0) < 0) /* the mount is as it was */
		return 102;
	if (!is_gone(base, "mounted/a/file") || !is_gone(base, "mounted/z")) /* what is beside it is not */
		return 103;
	return 0;
}

TEST(a_mount_inside_is_left_alone)
{
	int fd = make_dir(base, "mounted", 0700), a = make_dir(fd, "a", 0700), r;

	(void)close(make_dir(a, "point", 0700));
	make_file(a, "file");
	(void)close(make_dir(fd, "z", 0700));
	(void)close(a);
	(void)close(fd);
	r = in_child(remove_with_mount);
	assert_removed("mounted"); /* the mount went with the child's namespace */
	if (r == 77)
		skip();
	EXPECT_INT("child", r, 0);
}

/* The levels above a mount stay, each is tried once: a retry of retries would take until the end of days. */
static int remove_with_deep_mount(void)
{
	int at, next;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 77;
	at = open(base_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* in this mount namespace */
	next = make_dir(at, "stuck", 0700);
	(void)close(at);
	at = next;
	for (int i = 0; i < 60; i++, at = next) {
		next = make_dir(at, "d", 0700);
		(void)close(at);
	}
	if (fchdir(at) < 0 || mount("tmpfs", ".", "tmpfs", 0, NULL) < 0)
		return 77;
	(void)close(at);
	return tree_remove_at(base, "stuck", NULL) == -EBUSY ? 0 : 100;
}

TEST(a_mount_far_down_ends_the_walk_once)
{
	int r = in_child(remove_with_deep_mount);

	assert_removed("stuck");
	if (r == 77)
		skip();
	EXPECT_INT("child", r, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_a_link_and_nothing_are_trees),
		cmocka_unit_test(names_that_are_not_one_name_are_refused),
		cmocka_unit_test(a_hundred_thousand_levels_go_with_few_descriptors),
		cmocka_unit_test(levels_that_were_closed_are_continued),
		cmocka_unit_test(a_hundred_thousand_entries_go),
		cmocka_unit_test(many_deep_children_of_one_directory_go),
		cmocka_unit_test(links_are_removed_and_not_followed),
		cmocka_unit_test(every_kind_of_file_goes),
		cmocka_unit_test(directories_without_permission_go),
		cmocka_unit_test(a_mount_inside_is_left_alone),
		cmocka_unit_test(a_mount_far_down_ends_the_walk_once),
	};

	return cmocka_run_group_tests(tests, make_base, remove_base);
}
