/* SPDX-License-Identifier: Apache-2.0 */
/* test_warden_procfs.c - Texts of /proc, as kernels write them and as a process might wish them */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"
#include "warden/procfs.h"

static const char status[] = "Name:\tNSpid:\\n7\n"
			     "State:\tS (sleeping)\n"
			     "Pid:\t1234\n"
			     "NSpid:\t1234\t56\t7\n"
			     "CapBnd:\t00000000a80405fb\n"
			     "NoNewPrivs:\t1\n"
			     "Seccomp:\t2\n";

TEST(field_is_the_whole_line_behind_its_key)
{
	static const struct {
		const char *key, *want; /* NULL: no such line */
	} cases[] = {
		{ "State:", "S (sleeping)" }, { "NSpid:", "1234 56 7" }, { "Seccomp:", "2" },
		{ "Seccomp_filters:", NULL },  { "7", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char value[64];

		EXPECT_INT(cases[i].key, procfs_field(status, cases[i].key, value, sizeof(value)), cases[i].want ? 0 : -ENODATA);
		if (cases[i].want)
			assert_string_equal(value, cases[i].want);
	}
}

TEST(field_that_does_not_fit_is_cut)
{
	char value[5];

	assert_int_equal(procfs_field(status, "CapBnd:", value, sizeof(value)), 0);
	assert_string_equal(value, "0000");
}

TEST(squeeze_makes_blanks_one_and_ends_at_the_line)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "         0 1879048192      65536\n         1 5 6\n", "0 1879048192 65536" },
		{ "", "" },
		{ " \t \n", "" },
		{ "a \n", "a" },
		{ "a\t b", "a b" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char out[32];

		assert_string_equal(procfs_squeeze(cases[i].text, out, sizeof(out)), cases[i].want);
	}
}

TEST(namespaced_pid_is_the_innermost)
{
	assert_int_equal(procfs_namespaced_pid(status), 7);
	assert_int_equal(procfs_namespaced_pid("NSpid:\t12\n"), 12);
	assert_int_equal(procfs_namespaced_pid("NSpid:\t\n"), -EINVAL);
	assert_int_equal(procfs_namespaced_pid("NSpid:\t99999999999\n"), -EINVAL);
	assert_int_equal(procfs_namespaced_pid("Pid:\t1\n"), -ENODATA);
}

TEST(mounts_are_cut_from_lines_of_any_number_of_fields)
{
	char text[] = "71 44 0:41 / / rw,nosuid - overlay none rw,lowerdir+=/x\n"
		      "not a line of the kernel\n"
		      "80 71 0:47 /dev /dev ro,nosuid,idmapped shared:1 master:2 - tmpfs none rw\n"
		      "81 71 0:47 / /a\\040-\\040b rw - ext4 /dev/vda rw";
	static const struct procfs_mount want[] = {
		{ "/", "rw,nosuid", "overlay" },
		{ "/dev", "ro,nosuid,idmapped", "tmpfs" },
		{ "/a\\040-\\040b", "rw", "ext4" },
	};
	struct procfs_mount m;
	char *at = text;

	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_int_equal(procfs_mount_next(&at, &m), 1);
		assert_string_equal(m.target, want[i].target);
		assert_string_equal(m.options, want[i].options);
		assert_string_equal(m.type, want[i].type);
	}
	assert_int_equal(procfs_mount_next(&at, &m), 0);
}

TEST(option_is_a_word_and_not_a_part_of_one)
{
	assert_true(procfs_option("ro,nosuid", "ro"));
	assert_true(procfs_option("rw,nosuid,ro", "ro"));
	assert_false(procfs_option("errors=remount-ro,rootcontext", "ro"));
	assert_false(procfs_option("", "ro"));
}

TEST(cgroup_is_found_by_controller)
{
	static const char text[] = "9:name=systemd:/\n8:pids:/carrel/a/e1\n2:cpu,cpuacct:/c:d\n0::/user.slice\n";
	static const struct {
		const char *controller, *want; /* NULL: no such hierarchy */
	} cases[] = {
		{ "pids", "/carrel/a/e1" }, { "cpuacct", "/c:d" }, { "cpu", "/c:d" }, { NULL, "/user.slice" }, { "memory", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char path[32];

		EXPECT_INT(cases[i].controller ? cases[i].controller : "unified",
			   procfs_cgroup(text, cases[i].controller, path, sizeof(path)), cases[i].want ? 0 : -ENODATA);
		if (cases[i].want)
			assert_string_equal(path, cases[i].want);
	}
}

static int count_self(pid_t pid, int dir, void *data)
{
	assert_true(dir >= 0);
	if (pid == getpid())
		++*(int *)data;
	return 0;
}

TEST(each_visits_ourselves_once)
{
	int n = 0;

	assert_int_equal(procfs_each(count_self, &n), 0);
	assert_int_equal(n, 1);
}

TEST(files_longer_than_one_read_come_whole)
{
	auto_buf struct buf all = BUF_INIT(PROCFS_MOUNTS_MAX), little = BUF_INIT(16);
	auto_close int dir = procfs_open(getpid());

	assert_int_equal(procfs_read(dir, "smaps", &all), 0);
	assert_true(all.len > 4096);
	assert_int_equal(procfs_read(dir, "status", &little), -EMSGSIZE);
	assert_int_equal(procfs_read(dir, "no such file", &all), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(field_is_the_whole_line_behind_its_key),
		cmocka_unit_test(field_that_does_not_fit_is_cut),
		cmocka_unit_test(squeeze_makes_blanks_one_and_ends_at_the_line),
		cmocka_unit_test(namespaced_pid_is_the_innermost),
		cmocka_unit_test(mounts_are_cut_from_lines_of_any_number_of_fields),
		cmocka_unit_test(option_is_a_word_and_not_a_part_of_one),
		cmocka_unit_test(cgroup_is_found_by_controller),
		cmocka_unit_test(each_visits_ourselves_once),
		cmocka_unit_test(files_longer_than_one_read_come_whole),
	};

	return RUN(tests);
}
