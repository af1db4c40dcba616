/* SPDX-License-Identifier: Apache-2.0 */
/* test_layers_upper.c - Writable layers on disk hold what was asked for, and leave nothing */
#include "layers/upper.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "layers/loop.h"
#include "layers/mkfs.h"
#include "layers/quota.h"
#include "layers/store.h"
#include "layers/tree.h"
#include "test.h"

#define ID "0123456789abcdef"
#define SLACK KIB(192) /* what is given beyond the size for the directories of ours and of two overlays */

static char base[64];
static int store = -EBADF;

static int make_base(void **state)
{
	(void)state;
	(void)snprintf(base, sizeof(base), "/tmp/carrel-test-upper-XXXXXX");
	if (!mkdtemp(base))
		return -1;
	store = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return store < 0 ? -1 : 0;
}

static int remove_base(void **state)
{
	auto_close int tmp = open("/tmp", O_PATH | O_CLOEXEC);

	(void)state;
	(void)close(store);
	return tree_remove_at(tmp, base + strlen("/tmp/"), NULL);
}

static int entries(const char *name)
{
	char path[128];
	struct dirent *d;
	int n = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "%s/%s", base, name);
	dir = opendir(path);
	while (dir && (d = readdir(dir)))
		n += d->d_name[0] != '.';
	if (dir)
		(void)closedir(dir);
	return n;
}

/* Loop devices whose file is below @base, by what the kernel says: the file has no name, but "/.../upper/#123
 * (deleted)". */
static int devices(void)
{
	DIR *dir = opendir("/sys/block");
	struct dirent *d;
	int n = 0;

	assert_non_null(dir);
	while ((d = readdir(dir))) {
		char path[300], text[256] = "";

		(void)snprintf(path, sizeof(path), "/sys/block/%s/loop/backing_file", d->d_name);
		n += fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0 && strncmp(text, base, strlen(base)) == 0;
	}
	(void)closedir(dir);
	return n;
}

/* The last user of a device may be a moment behind: the kernel ends a mount after close() has answered. */
static void expect_no_device(void)
{
	for (int i = 0; i < 500 && devices() > 0; i++)
		(void)usleep(10000);
	assert_int_equal(devices(), 0);
}

static bool lacks_loop(void)
{
	struct err e = { 0 };

	if (geteuid() == 0 && upper_probe(store, UPPER_LOOP, &e) == 0)
		return false;
	(void)fprintf(stderr, "skipped: %s; %s\n", geteuid() ? "needs root" : e.msg, e.hint);
	return true;
}

TEST(every_kind_has_a_name)
{
	assert_string_equal(upper_kind_name(UPPER_TMPFS), "memory");
	assert_string_equal(upper_kind_name(UPPER_NUM_KINDS), "?");
}

TEST(a_loop_holds_what_was_asked_for)
{
	static const struct {
		const char *name;
		uint64_t bytes, inodes;
	} rows[] = {
		{ "smallest", MIB(1), 1 },        { "many inodes", MIB(1), 100000 }, { "few inodes", MIB(300), 10 },
		{ "one group", MIB(128), 32768 }, { "a bit more", MIB(129), 32769 }, { "default", GIB(1), 262144 },
		{ "large", GIB(40), 1000000 },    { "odd", 12345678, 1234 },         { "huge", GIB(4096), 5000000 },
	};

	if (lacks_loop())
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct upper_want want = { ID, 0, rows[i].bytes, rows[i].inodes };
		struct err e = { 0 };
		auto_close int layer = upper_make(store, UPPER_LOOP, &want, &e);
		struct statfs st;

		if (layer < 0)
			fail_msg("%s: %s; %s", rows[i].name, e.msg, e.hint);
		assert_int_equal(fstatfs(layer, &st), 0);
		EXPECT_INT(rows[i].name, (uint64_t)st.f_bavail * 4096 >= rows[i].bytes, true);
		EXPECT_INT(rows[i].name, (uint64_t)st.f_bavail * 4096 <= rows[i].bytes + SLACK, true);
		EXPECT_INT(rows[i].name, st.f_ffree >= rows[i].inodes, true);
		/* mkfs rounds up to a block of inodes, 16, in each group of 128 MiB or 32768 inodes */
		EXPECT_INT(rows[i].name,
			   st.f_ffree <= rows[i].inodes + 64 + 16 * (rows[i].bytes / MIB(128) + rows[i].inodes / 32768),
			   true);
	}
	expect_no_device();
}

TEST(a_loop_has_no_name_and_ends_with_its_last_user)
{
	struct upper_want want = { ID, 7, MIB(16), 1000 };
	struct err e = { 0 };
	struct stat st;
	int layer;

	if (lacks_loop())
		skip();
	layer = upper_make(store, UPPER_LOOP, &want, &e);
	assert_true(layer >= 0);
	assert_int_equal(entries("upper"), 0);
	assert_int_equal(devices(), 1);
	assert_int_equal(fstatat(layer, "upper", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(fstatat(layer, "work", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	(void)close(layer);
	expect_no_device();
}

TEST(a_killed_maker_leaves_nothing)
{
	if (lacks_loop())
		skip();
	for (useconds_t after = 0; after < 16000; after += 500) {
		pid_t pid = fork();

		if (pid == 0) {
			struct upper_want want = { ID, 7, MIB(16), 1000 };

			for (;;) {
				auto_close int layer = upper_make(store, UPPER_LOOP, &want, NULL);

				ignored(layer);
			}
		}
		(void)usleep(after);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	expect_no_device();
	assert_int_equal(entries("upper"), 0);
}

TEST(mkfs_says_what_went_wrong)
{
	auto_close int fd = open(base, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct err e = { 0 };

	if (mkfs_probe(NULL) < 0)
		skip();
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(mkfs_ext4(fd, 100, &e), -EIO);
	assert_non_null(strstr(e.msg, "mkfs.ext4 ended with 1: "));
	assert_true(strlen(e.msg) > strlen("make a file system for the writable layer: mkfs.ext4 ended with 1: "));
}

TEST(what_is_not_an_id_is_refused)
{
	static const char *const ids[] = { "", "short", "0123456789abcdefg", "../../../../../x", "/123456789abcdef" };

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		struct upper_want want = { ids[i], 0, MIB(1), 10 };

		EXPECT_INT(ids[i], upper_make(store, UPPER_LOOP, &want, NULL), -EINVAL);
	}
}

TEST(sizes_beyond_reason_are_refused)
{
	struct upper_want bytes = { ID, 0, INT64_MAX, 10 }, inodes = { ID, 0, MIB(1), UINT64_MAX };
	struct err e = { 0 };

	assert_int_equal(upper_make(store, UPPER_LOOP, &bytes, &e), -EINVAL);
	assert_int_equal(upper_make(store, UPPER_QUOTA, &inodes, &e), -EINVAL);
	assert_non_null(strstr(e.hint, "at most"));
}

static int count(const char *id, void *data)
{
	assert_int_equal(strlen(id), 16);
	(*(int *)data)++;
	return upper_remove(store, id, NULL);
}

TEST(leftovers_are_listed_and_removed)
{
	int n = 0;

	assert_int_equal(upper_list(store, count, &n, NULL), 0); /* also without the directory */
	ignored(mkdirat(store, "upper", 0700));
	assert_int_equal(mkdirat(store, "upper/" ID, 0700), 0);
	assert_int_equal(mkdirat(store, "upper/" ID "/work", 0), 0);
	(void)close(openat(store, "upper/0000000000000001.img", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(upper_list(store, count, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_int_equal(entries("upper"), 0);
	assert_int_equal(upper_remove(store, ID, NULL), 0);
}

TEST(a_file_system_without_projects_says_so)
{
	struct err e = { 0 };
	struct upper_want want = { ID, 0, MIB(1), 10 };
	auto_close int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(quota_probe(proc, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.msg, "neither on ext4 nor on xfs"));
	assert_non_null(strstr(e.hint, "backing=loop"));
	if (quota_probe(store, NULL) == 0)
		skip(); /* /tmp has quotas here */
	ignored(mkdirat(store, "upper", 0700));
	assert_true(upper_make(store, UPPER_QUOTA, &want, NULL) < 0);
	assert_int_equal(entries("upper"), 0);
}

/* --- Quota, on file systems of the test's own ----------------------------------------------------------------- */

/** struct disk - A file system with project quotas in a file, mounted in a mount namespace of the test */
struct disk {
	const char *type, *make;
};

static bool mount_disk(const struct disk *d)
{
	char image[128], command[256], path[32];
	auto_close int file = -EBADF, device = -EBADF;

	(void)snprintf(image, sizeof(image), "%s/%s.disk", base, d->type);
	(void)snprintf(command, sizeof(command), "%s %s >/dev/null 2>&1", d->make, image);
	file = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0 || ftruncate(file, (off_t)MIB(400)) < 0 || system(command) != 0)
		return false;
	device = loop_attach(file, image, NULL);
	if (device < 0 || unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", device);
	return mount(path, base, d->type, 0, "prjquota") == 0;
}

/* Files of 4 KiB, then one large file, as @uid, until the limit; then the same after removal. Return: what differs
 * from the wish, or NULL. */
static const char *fill(int layer, uid_t uid, uint64_t bytes, uint64_t inodes)
{
	static char block[65536];
	auto_close int upper = openat(layer, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC), big = -EBADF;
	uint64_t files = 0, written = 0;
	char name[32];
	ssize_t n;

	if (uid && (fchown(upper, uid, uid) < 0 || setfsuid(uid) < 0))
		return "chown";
	for (; files < 2 * inodes; files++) {
		auto_close int fd = -EBADF;

		(void)snprintf(name, sizeof(name), "f%u", (unsigned)files);
		fd = openat(upper, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
		if (fd < 0)
			break;
	}
	if ((errno != EDQUOT && errno != ENOSPC) || files < inodes || files > inodes + 16) {
		(void)fprintf(stderr, "%ju files of %ju: %s\n", (uintmax_t)files, (uintmax_t)inodes, strerror(errno));
		return "inodes";
	}
	for (uint64_t i = 0; i < files; i++) {
		(void)snprintf(name, sizeof(name), "f%u", (unsigned)i);
		(void)unlinkat(upper, name, 0);
	}
	big = openat(upper, "big", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	while ((n = write(big, block, sizeof(block))) > 0 && written < 2 * bytes)
		written += (uint64_t)n;
	if ((errno != EDQUOT && errno != ENOSPC) || written + 65536 < bytes || written > bytes + SLACK) {
		(void)fprintf(stderr, "%ju bytes of %ju: %s\n", (uintmax_t)written, (uintmax_t)bytes, strerror(errno));
		return "bytes";
	}
	return unlinkat(upper, "big", 0) == 0 ? NULL : "remove";
}

/* Root may pass any quota with it. Overlayfs writes without it, and so do we. */
static bool drop_resource(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	data[0].effective &= ~(1u << CAP_SYS_RESOURCE);
	return syscall(SYS_capset, &header, data) == 0;
}

static const char *use_quota(void)
{
	struct upper_want want = { ID, 4093, MIB(20), 500 };
	auto_close int mounted = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err e = { 0 };
	uint64_t inodes;
	const char *wrong;
	int layer;

	for (uid_t uid = 0; uid <= 1000; uid += 1000) {
		layer = upper_make(mounted, UPPER_QUOTA, &want, &e);
		if (layer < 0) {
			(void)fprintf(stderr, "%s; %s\n", e.msg, e.hint);
			return "make";
		}
		wrong = fill(layer, uid, want.bytes, want.inodes);
		(void)setfsuid(0);
		(void)close(layer);
		if (wrong)
			return wrong;
		/* The first stays, as if its owner was killed: another project is taken. */
		want.id = "fedcba9876543210";
	}
	if (quota_inodes(mounted, UPPER_PROJECT_BASE + 4093, &inodes, NULL) < 0 || inodes < 5)
		return "use of the first project";
	if (quota_inodes(mounted, UPPER_PROJECT_BASE + 4093 + UPPER_SLOTS, &inodes, NULL) < 0 || inodes < 5)
		return "use of the second project";
	if (upper_remove(mounted, want.id, NULL) < 0 || upper_remove(mounted, ID, NULL) < 0)
		return "remove";
	/* xfs frees inodes in the background since 5.14; until then a new layer takes the slot's next project. */
	(void)syncfs(mounted);
	for (int i = 0; i < 500 && quota_inodes(mounted, UPPER_PROJECT_BASE + 4093, &inodes, NULL) == 0 && inodes; i++)
		(void)usleep(10000);
	if (inodes != 0)
		return "use after removal";
	return NULL;
}

static void check_disk(const struct disk *d)
{
	int status;
	pid_t pid;

	if (lacks_loop())
		skip();
	pid = fork(); /* its mount namespace, and the device with it, end with it */
	if (pid == 0) {
		const char *wrong;

		if (!mount_disk(d) || !drop_resource())
			_exit(77);
		wrong = use_quota();
		if (wrong)
			(void)fprintf(stderr, "%s: %s\n", d->type, wrong);
		_exit(wrong ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	expect_no_device();
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		(void)fprintf(stderr, "skipped: this kernel mounts no %s with project quotas, or its mkfs is missing\n",
			      d->type);
		skip();
	}
	assert_int_equal(status, 0);
}

TEST(quota_of_ext4_limits_bytes_and_inodes)
{
	static const struct disk ext4 = { "ext4", "mkfs.ext4 -F -O quota,project -E quotatype=prjquota" };

	check_disk(&ext4);
}

TEST(quota_of_xfs_limits_bytes_and_inodes)
{
	static const struct disk xfs = { "xfs", "mkfs.xfs -f" };

	check_disk(&xfs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_has_a_name),
		cmocka_unit_test(what_is_not_an_id_is_refused),
		cmocka_unit_test(sizes_beyond_reason_are_refused),
		cmocka_unit_test(leftovers_are_listed_and_removed),
		cmocka_unit_test(a_file_system_without_projects_says_so),
		cmocka_unit_test(mkfs_says_what_went_wrong),
		cmocka_unit_test(a_loop_holds_what_was_asked_for),
		cmocka_unit_test(a_loop_has_no_name_and_ends_with_its_last_user),
		cmocka_unit_test(a_killed_maker_leaves_nothing),
		cmocka_unit_test(quota_of_ext4_limits_bytes_and_inodes),
		cmocka_unit_test(quota_of_xfs_limits_bytes_and_inodes),
	};

	return cmocka_run_group_tests(tests, make_base, remove_base);
}
