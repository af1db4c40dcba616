/* SPDX-License-Identifier: Apache-2.0 */
/* test_layers_host.c - The host image holds what its tables say, and nothing else of the host */
#include "layers/host.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "layers/tree.h"
#include "test.h"

static char store_path[64];
static int store;

static int make_store(void **state)
{
	(void)state;
	(void)snprintf(store_path, sizeof(store_path), "/tmp/carrel-test-host-XXXXXX");
	if (!mkdtemp(store_path))
		return -1;
	store = open(store_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return store < 0 ? -1 : 0;
}

static int remove_store(void **state)
{
	auto_close int tmp = open("/tmp", O_PATH | O_CLOEXEC);

	(void)state;
	(void)close(store);
	return tree_remove_at(tmp, store_path + strlen("/tmp/"), NULL);
}

static struct host_layer layer_open(void)
{
	struct host_layer h;
	struct err e = { 0 };

	EXPECT_INT(e.msg, host_layer_open(store, &h, &e), 0);
	assert_int_equal(e.code, ERR_NONE);
	return h;
}

static struct stat stat_of(int dir, const char *path)
{
	struct stat st = { 0 };

	if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		fail_msg("'%s' is missing", path);
	return st;
}

static bool has(int dir, const char *path)
{
	struct stat st;

	return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int count_entries(int at, const char *path)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0;
	DIR *dir = fdopendir(fd);

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n - 2;
}

TEST(the_skeleton_is_complete)
{
	static const struct {
		const char *path;
		unsigned mode;
	} dirs[] = {
		{ ".", 0755 },          { "proc", 0755 },    { "dev", 0755 },       { "sys", 0755 },
		{ "tmp", 01777 },       { "run", 0755 },     { "var", 0755 },       { "var/tmp", 01777 },
		{ "usr", 0755 },        { "root", 0700 },    { "home", 0755 },      { "etc", 0755 },
		{ "opt", 0755 },        { "mnt", 0755 },     { "srv", 0755 },       { "media", 0755 },
		{ "home/agent", 0755 }, { "var/log", 0755 }, { "var/cache", 0755 }, { "var/lib", 0755 },
	};
	static const char *const empty[] = {
		"proc", "dev", "sys", "tmp", "run", "usr", "root", "home/agent", "var/tmp"
	};
	struct host_layer h = layer_open();

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		EXPECT_INT(dirs[i].path, stat_of(h.fd, dirs[i].path).st_mode, S_IFDIR | dirs[i].mode);
	for (size_t i = 0; i < ARRAY_SIZE(empty); i++)
		EXPECT_INT(empty[i], count_entries(h.fd, empty[i]), 0);
	if (geteuid() == 0)
		assert_int_equal(stat_of(h.fd, "home/agent").st_uid, 1000);
	(void)close(h.fd);
}

TEST(links_into_usr_are_those_of_the_host)
{
	static const char *const names[] = { "bin", "sbin", "lib", "lib64", "lib32", "libx32" };
	struct host_layer h = layer_open();

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char path[16], want[64] = "", got[64] = "";
		ssize_t n;

		(void)snprintf(path, sizeof(path), "/%s", names[i]);
		n = readlink(path, want, sizeof(want) - 1);
		assert_int_equal(readlinkat(h.fd, names[i], got, sizeof(got) - 1), n);
		assert_string_equal(got, want);
	}
	(void)close(h.fd);
}

static void expect_text(int dir, const char *path, const char *part)
{
	char text[4096];

	assert_true(fd_read_file_at(dir, path, text, sizeof(text)) >= 0);
	if (!strstr(text, part))
		fail_msg("'%s' lacks '%s'", path, part);
}

TEST(etc_is_made_and_not_taken)
{
	struct host_layer h = layer_open();

	expect_text(h.fd, "etc/passwd", "\nagent:x:1000:1000:agent:/home/agent:");
	expect_text(h.fd, "etc/group", "\ntty:x:5:\n");
	expect_text(h.fd, "etc/hosts", "127.0.0.1\tlocalhost\n");
	expect_text(h.fd, "etc/resolv.conf", "# ");
	expect_text(h.fd, "etc/nsswitch.conf", "hosts: files dns\n");
	assert_int_equal(stat_of(h.fd, "etc/machine-id").st_size, 0);
	assert_true(S_ISLNK(stat_of(h.fd, "etc/mtab").st_mode));
	(void)close(h.fd);
}

TEST(programs_find_what_they_need)
{
	static const char *const paths[] = { "ld.so.cache",     "alternatives",
					     "localtime",       "ssl/certs/ca-certificates.crt",
					     "ssl/openssl.cnf", "services",
					     "protocols",       "profile",
					     "os-release" };
	struct host_layer h = layer_open();

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		char host[64], inside[64];

		(void)snprintf(host, sizeof(host), "/etc/%s", paths[i]);
		(void)snprintf(inside, sizeof(inside), "etc/%s", paths[i]);
		if (has(AT_FDCWD, host) != has(h.fd, inside))
			fail_msg("'%s' is on one side only", host);
	}
	EXPECT_INT("alternatives", count_entries(h.fd, "etc/alternatives"),
		   count_entries(AT_FDCWD, "/etc/alternatives"));
	(void)close(h.fd);
}

/* Everything that may be in the layer's /etc; a new name here is a decision, as a new row in host.c is. */
static const char *const expected[] = {
	"alternatives",
	"bash.bashrc",
	"ca-certificates",
	"ca-certificates.conf",
	"debian_version",
	"dpkg",
	"fonts",
	"gai.conf",
	"group",
	"host.conf",
	"hostname",
	"hosts",
	"inputrc",
	"ld.so.cache",
	"ld.so.conf",
	"ld.so.conf.d",
	"locale.alias",
	"localtime",
	"login.defs",
	"machine-id",
	"magic",
	"magic.mime",
	"mime.types",
	"mtab",
	"netconfig",
	"networks",
	"nsswitch.conf",
	"os-release",
	"passwd",
	"perl",
	"pki",
	"profile",
	"protocols",
	"resolv.conf",
	"rpc",
	"services",
	"shells",
	"skel",
	"ssl",
	"terminfo",
	"timezone",
	"xattr.conf",
	"xml",
};
static const char *const expected_families[] = { "ImageMagick-", "java-", "ld-musl-", "python" };

static bool is_expected(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		if (strcmp(name, expected[i]) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(expected_families); i++)
		if (strncmp(name, expected_families[i], strlen(expected_families[i])) == 0)
			return true;
	return false;
}

TEST(nothing_else_of_etc_is_there)
{
	static const char *const secrets[] = { "etc/shadow",    "etc/gshadow", "etc/ssh",         "etc/sudoers",
					       "etc/sudoers.d", "etc/fstab",   "etc/ssl/private", "etc/environment",
					       "etc/pip.conf",  "etc/npmrc",   "etc/gitconfig",   "etc/apt",
					       "etc/profile.d", "etc/cron.d",  "etc/security" };
	struct host_layer h = layer_open();
	DIR *dir = fdopendir(openat(h.fd, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *d;

	assert_non_null(dir);
	while ((d = readdir(dir)))
		if (d->d_name[0] != '.' && !is_expected(d->d_name))
			fail_msg("'%s' is in the layer", d->d_name);
	(void)closedir(dir);
	for (size_t i = 0; i < ARRAY_SIZE(secrets); i++)
		EXPECT_INT(secrets[i], has(h.fd, secrets[i]), false);
	(void)close(h.fd);
}

static uint64_t total;

static int check_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)type;
	(void)ftw;
	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode) && !S_ISLNK(st->st_mode))
		fail_msg("'%s' is of another kind", path);
	if (st->st_uid != geteuid() && !strstr(path, "/home/agent"))
		fail_msg("'%s' belongs to uid %u", path, st->st_uid);
	if (!S_ISLNK(st->st_mode) && !(st->st_mode & S_ISVTX) && (st->st_mode & (S_ISUID | S_ISGID | 022)))
		fail_msg("'%s' has mode %04o", path, st->st_mode & 07777);
	total += S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
	return 0;
}

TEST(modes_owners_and_sizes_are_tame)
{
	struct host_layer h = layer_open();
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", store_path, h.path);
	total = 0;
	assert_int_equal(nftw(path, check_entry, 20, FTW_PHYS), 0);
	assert_true(total > 0 && total < MIB(64));
	(void)close(h.fd);
}

TEST(a_generation_is_made_once)
{
	struct host_layer a = layer_open(), b = layer_open();
	char path[64];

	assert_true(a.generation == b.generation);
	assert_string_equal(a.path, b.path);
	assert_true(stat_of(a.fd, ".").st_ino == stat_of(b.fd, ".").st_ino);
	(void)snprintf(path, sizeof(path), "host/%016llx/root", (unsigned long long)a.generation);
	assert_string_equal(a.path, path);
	EXPECT_INT("generations", count_entries(store, "host"), 1);
	(void)close(a.fd);
	(void)close(b.fd);
}

TEST(builders_at_the_same_time_end_with_one_layer)
{
	enum { BUILDERS = 8 };
	int ready[2], status;

	(void)tree_remove_at(store, "host", NULL);
	assert_int_equal(pipe(ready), 0);
	for (int i = 0; i < BUILDERS; i++) {
		if (fork() == 0) {
			struct host_layer h;
			char c;

			(void)close(ready[1]);
			(void)!read(ready[0], &c, 1); /* until all are there */
			_exit(host_layer_open(store, &h, NULL) < 0);
		}
	}
	(void)close(ready[0]);
	(void)close(ready[1]);
	for (int i = 0; i < BUILDERS; i++) {
		assert_true(wait(&status) > 0);
		EXPECT_INT("builder", status, 0);
	}
	EXPECT_INT("generations", count_entries(store, "host"), 1);
}

TEST(collect_removes_what_nothing_uses)
{
	static const uint64_t in_use[] = { 0x1111 };
	struct host_layer h = layer_open();
	struct err e = { 0 };

	assert_int_equal(mkdirat(store, "host/0000000000001111", 0700), 0);
	assert_int_equal(mkdirat(store, "host/0000000000002222", 0700), 0);
	assert_int_equal(mkdirat(store, "host/0000000000002222/root", 0700), 0);
	assert_int_equal(mkdirat(store, "host/.tmp-00000000deadbeef", 0700), 0); /* its builder died */
	assert_int_equal(mkdirat(store, "host/notes", 0700), 0);                 /* not ours */
	EXPECT_INT(e.msg, host_collect(store, in_use, 1, &e), 2);
	EXPECT_INT("left", count_entries(store, "host"), 3);
	assert_true(has(store, "host/0000000000001111") && has(store, "host/notes") && has(store, h.path));
	EXPECT_INT("again", host_collect(store, in_use, 1, &e), 0);
	(void)close(h.fd);
}

TEST(a_store_that_cannot_be_written_is_an_error)
{
	auto_close int nowhere = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct host_layer h;
	struct err e = { 0 };

	assert_true(host_layer_open(nowhere, &h, &e) < 0);
	assert_non_null(strstr(e.msg, "make the host image"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_skeleton_is_complete),
		cmocka_unit_test(links_into_usr_are_those_of_the_host),
		cmocka_unit_test(etc_is_made_and_not_taken),
		cmocka_unit_test(programs_find_what_they_need),
		cmocka_unit_test(nothing_else_of_etc_is_there),
		cmocka_unit_test(modes_owners_and_sizes_are_tame),
		cmocka_unit_test(a_generation_is_made_once),
		cmocka_unit_test(builders_at_the_same_time_end_with_one_layer),
		cmocka_unit_test(collect_removes_what_nothing_uses),
		cmocka_unit_test(a_store_that_cannot_be_written_is_an_error),
	};

	return cmocka_run_group_tests(tests, make_store, remove_store);
}
