/* SPDX-License-Identifier: Apache-2.0 */
/* test_layers_store.c - The store and the run directory are where the variables say, and ours alone */
#include "layers/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "layers/tree.h"
#include "test.h"

static char base[64];

static int make_base(void **state)
{
	(void)state;
	(void)snprintf(base, sizeof(base), "/tmp/carrel-test-store-XXXXXX");
	return mkdtemp(base) ? 0 : -1;
}

static int remove_base(void **state)
{
	auto_close int tmp = open("/tmp", O_PATH | O_CLOEXEC);

	(void)state;
	return tree_remove_at(tmp, base + strlen("/tmp/"), NULL);
}

static const char *below(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", base, name);
	return path;
}

static int open_at(const char *name, enum store_flags flags, struct err *e)
{
	assert_int_equal(setenv("CARREL_STORE", below(name), 1), 0);
	return store_open(flags, e);
}

TEST(a_store_is_made_for_its_owner_only)
{
	auto_close int fd = -EBADF, again = -EBADF;
	struct stat st;

	assert_int_equal(open_at("a/b/store", STORE_EXISTING, NULL), -ENOENT);
	fd = open_at("a/b/store", STORE_CREATE, NULL);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	again = open_at("a/b/store/", STORE_EXISTING, NULL);
	assert_true(again >= 0);
}

TEST(what_others_may_write_is_refused)
{
	struct err e = { 0 };

	assert_int_equal(mkdir(below("open"), 0700), 0);
	assert_int_equal(chmod(below("open"), 0770), 0);
	assert_int_equal(open_at("open", STORE_CREATE, &e), -EPERM);
	assert_non_null(strstr(e.msg, "others may write to it (mode 0770)"));
	assert_non_null(strstr(e.hint, "chmod go-w"));
	assert_int_equal(chmod(below("open"), 0755), 0); /* to be read by others is its owner's choice */
	(void)close(open_at("open", STORE_CREATE, NULL));
}

TEST(what_belongs_to_others_is_refused)
{
	struct err e = { 0 };

	if (geteuid() != 0)
		skip(); /* only root can give a directory away */
	assert_int_equal(mkdir(below("theirs"), 0700), 0);
	assert_int_equal(chown(below("theirs"), 1234, 1234), 0);
	assert_int_equal(open_at("theirs", STORE_CREATE, &e), -EPERM);
	assert_non_null(strstr(e.msg, "user 1234 owns it"));
}

TEST(links_and_files_are_refused)
{
	struct err e = { 0 };

	assert_int_equal(mkdir(below("real"), 0700), 0);
	assert_int_equal(symlink("real", below("link")), 0);
	assert_true(open_at("link", STORE_CREATE, &e) < 0);
	assert_true(open_at("link/", STORE_CREATE, &e) < 0);
	(void)close(open(below("file"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(open_at("file", STORE_CREATE, &e), -ENOTDIR);
}

TEST(variables_decide_in_their_order)
{
	static const struct {
		const char *own, *base, *home, *want;
		bool root;
	} cases[] = {
		{ "/x/store", "/y", "/z", "/x/store", true },
		{ "/x/store", "/y", "/z", "/x/store", false },
		{ "", "/y", "/z", "/var/lib/carrel", true },
		{ NULL, "/y", "/z", "/y/carrel", false },
		{ NULL, "relative", "/z", "/z/.local/share/carrel", false },
		{ NULL, NULL, "/z", "/z/.local/share/carrel", false },
		{ NULL, NULL, NULL, NULL, false },
		{ "relative", "/y", "/z", NULL, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char path[STORE_PATH_MAX];
		struct err e = { 0 };
		pid_t pid;
		int status, r;

		if (cases[i].root != (geteuid() == 0) && geteuid() != 0)
			continue;
		pid = fork(); /* the environment and the user are the process's */
		if (pid == 0) {
			cases[i].own ? (void)setenv("CARREL_STORE", cases[i].own, 1) : (void)unsetenv("CARREL_STORE");
			cases[i].base ? (void)setenv("XDG_DATA_HOME", cases[i].base, 1)
				      : (void)unsetenv("XDG_DATA_HOME");
			cases[i].home ? (void)setenv("HOME", cases[i].home, 1) : (void)unsetenv("HOME");
			if (!cases[i].root && geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
				_exit(1);
			r = store_path(path, sizeof(path), &e);
			if (!cases[i].want)
				_exit(r == -EINVAL && e.hint[0] ? 0 : 2);
			_exit(r == 0 && strcmp(path, cases[i].want) == 0 ? 0 : 3);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		EXPECT_INT(cases[i].want ? cases[i].want : "refused", status, 0);
	}
}

TEST(the_run_directory_follows_the_same_rules)
{
	struct err e = { 0 };
	struct stat st;
	int fd;

	assert_int_equal(setenv("CARREL_RUN_DIR", below("run/carrel"), 1), 0);
	assert_int_equal(rundir_open(STORE_EXISTING, NULL), -ENOENT);
	fd = rundir_open(STORE_CREATE, &e);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	(void)close(fd);
	assert_int_equal(chmod(below("run/carrel"), 0777), 0);
	assert_int_equal(rundir_open(STORE_CREATE, &e), -EPERM);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_store_is_made_for_its_owner_only),
		cmocka_unit_test(what_others_may_write_is_refused),
		cmocka_unit_test(what_belongs_to_others_is_refused),
		cmocka_unit_test(links_and_files_are_refused),
		cmocka_unit_test(variables_decide_in_their_order),
		cmocka_unit_test(the_run_directory_follows_the_same_rules),
	};

	return cmocka_run_group_tests(tests, make_base, remove_base);
}
