/* SPDX-License-Identifier: Apache-2.0 */
/* test_init_groups.c - Execs in control groups: billed, counted, killed whole, and nothing left of them
 *
 * Theory of operation. See init_box.h. As root only; the groups are made below one directory of this test's own in each hierarchy that this
 * machine has, v1 and v2 alike, and are owned by the sandbox's root as a warden would have it. */
#include "init_box.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "test.h"

#define ARGV(...) ((const char *[]){ __VA_ARGS__, NULL })
#define SH(script) ARGV("/bin/sh", "-c", script)
#define SANDBOX_ROOT 100000 /* init_box.c maps 0 to it */

static struct box box;
static char dirs[4][128]; /* of this test: pids, cpuacct, memory, unified */
static const char *const hierarchies[] = { "pids", "cpuacct", "memory", "unified" };

static const char *below(unsigned h, const char *name)
{
	static char path[256];

	(void)snprintf(path, sizeof(path), "%.127s%.64s", dirs[h], name);
	return path;
}

static void own(unsigned h, const char *name)
{
	assert_int_equal(chown(below(h, name), SANDBOX_ROOT, SANDBOX_ROOT), 0);
}

static bool have(unsigned h)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", hierarchies[h]);
	return geteuid() == 0 && access(path, W_OK) == 0;
}

static void make_group(unsigned h)
{
	(void)snprintf(dirs[h], sizeof(dirs[h]), "/sys/fs/cgroup/%s/carrel-init-test-%d", hierarchies[h], getpid());
	assert_int_equal(mkdir(dirs[h], 0755), 0);
	assert_int_equal(mkdir(below(h, "/work"), 0755), 0);
	own(h, "/work");
}

static int open_v1(void **state)
{
	(void)state;
	if (!have(0) || !have(1) || !have(2)) {
		box.sock = -EBADF;
		return 0;
	}
	for (unsigned h = 0; h < 3; h++)
		make_group(h);
	assert_int_equal(fd_write_file_at(AT_FDCWD, below(0, "/work/pids.max"), "200"), 0);
	assert_int_equal(fd_write_file_at(AT_FDCWD, below(2, "/work/memory.limit_in_bytes"), "268435456"), 0);
	box = (struct box){ .sock = -EBADF,
			    .flags = CONFIG_FD_PIDS1 | CONFIG_FD_CPUACCT1 | CONFIG_FD_TASKS1,
			    .tasks_fds = 1,
			    .num_fds = 3 };
	box.fds[0] = open(below(0, "/work"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	box.fds[1] = open(below(1, "/work"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	box.fds[2] = open(below(2, "/work/tasks"), O_WRONLY | O_CLOEXEC);
	box_open(&box);
	return 0;
}

static int open_v2(void **state)
{
	char pid[16];

	(void)state;
	box = (struct box){ .sock = -EBADF };
	if (!have(3) || access("/sys/fs/cgroup/unified/cgroup.controllers", R_OK) < 0)
		return 0;
	make_group(3);
	assert_int_equal(mkdir(below(3, "/init"), 0755), 0);
	own(3, "/cgroup.procs");
	own(3, "/work/cgroup.procs");
	box = (struct box){ .sock = -EBADF, .flags = CONFIG_FD_CGROUP2, .num_fds = 1 };
	box.fds[0] = open(below(3, "/work"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	box_open(&box);
	(void)snprintf(pid, sizeof(pid), "%d", box.pid);
	assert_int_equal(fd_write_file_at(AT_FDCWD, below(3, "/init/cgroup.procs"), pid), 0);
	return 0;
}

static void remove_group(unsigned h)
{
	DIR *d = opendir(below(h, "/work"));

	for (struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] == 'e')
			(void)unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	if (d)
		(void)closedir(d);
	(void)rmdir(below(h, "/work"));
	(void)rmdir(below(h, "/init"));
	if (rmdir(dirs[h]) < 0)
		print_error("%s: %s\n", dirs[h], strerror(errno));
	dirs[h][0] = '\0';
}

static int close_box(void **state)
{
	(void)state;
	box_close(&box);
	for (unsigned h = 0; h < ARRAY_SIZE(dirs); h++)
		if (dirs[h][0])
			remove_group(h);
	return 0;
}

/* Groups of execs that exist in hierarchy @h. */
static unsigned groups_now(unsigned h)
{
	DIR *d = opendir(below(h, "/work"));
	unsigned n = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_type == DT_DIR && e->d_name[0] == 'e';
	(void)closedir(d);
	return n;
}

/* Init removes a group after it has told the end: wait until there are @want, at most a second. Return: how many there are. */
static unsigned groups_left(unsigned h, unsigned want)
{
	unsigned n = groups_now(h);

	for (unsigned i = 0; n != want && i < 500; i++) {
		(void)usleep(10000);
		n = groups_now(h);
	}
	return n;
}

static unsigned pids_inside(void)
{
	struct msg_start m = { .exec = 999, .argv = SH("set -- /proc/[0-9]*; echo $#") };
	struct seen s;
	unsigned n;
	int out;

	run(&box, &m, &s, &out, NULL);
	n = (unsigned)(spool_text(out)[0] - '0');
	(void)close(out);
	return n - 2; /* init and the shell */
}

static void need_box(void)
{
	if (box.sock < 0)
		skip();
}

static unsigned hierarchy(void)
{
	return box.flags & CONFIG_FD_CGROUP2 ? 3 : 0;
}

TEST(an_exec_is_billed_and_its_group_goes_away)
{
	struct msg_start m = { .exec = 1,
			       .argv = SH("grep -E 'pids|^0:' /proc/self/cgroup; (i=0; while [ $i -lt 200000 ]; do "
					  "i=$((i+1)); done) & wait") };
	struct seen s;
	int out;

	need_box();
	run(&box, &m, &s, &out, NULL);
	assert_int_equal(s.ended.code, 0);
	/* v2: in a cgroup namespace that begins at its group */
	assert_true(strstr(spool_text(out), "/work/e1") || strstr(spool_text(out), "0::/\n"));
	assert_true(s.ended.user_us > 10000);
	assert_int_equal(s.ended.left, 0);
	assert_int_equal(groups_left(hierarchy(), 0), 0);
	(void)close(out);
}

TEST(a_fork_bomb_is_killed_whole)
{
	static const char bomb[] = "import os, signal\n"
				   "for s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)\n"
				   "while True:\n"
				   "  try:\n"
				   "    if os.fork() == 0: os.setsid()\n"
				   "  except OSError: pass\n";
	struct msg_start m = { .exec = 1,
			       .argv = ARGV("/usr/bin/python3", "-c", bomb),
			       .timeout_ns = 1500 * NSEC_PER_MSEC };
	struct seen s;
	uint64_t start;

	need_box();
	start = clock_ns();
	run(&box, &m, &s, NULL, NULL);
	assert_int_equal(s.ended.outcome, OUTCOME_TIMED_OUT);
	assert_int_equal(s.ended.left, 0);
	assert_true(clock_ns() - start < 5 * NSEC_PER_SEC);
	assert_int_equal(pids_inside(), 0);
	assert_int_equal(groups_left(hierarchy(), 0), 0);
}

TEST(a_kill_takes_the_tree_and_spares_the_neighbour)
{
	struct msg_start other = { .exec = 1, .argv = ARGV("sleep", "1000") };
	struct msg_start m = { .exec = 2,
			       .argv = SH("for i in 1 2 3 4 5; do (setsid setsid sleep 1000 &); done; exec sleep 1000"),
			       .timeout_ns = 300 * NSEC_PER_MSEC };
	struct seen s = { .fd = -EBADF };

	need_box();
	start_send(&box, &other, NULL, 0);
	start_wait(box.sock, 1, false, &s);
	run(&box, &m, &s, NULL, NULL);
	assert_int_equal(s.ended.outcome, OUTCOME_TIMED_OUT);
	assert_int_equal(s.ended.left, 0);
	assert_int_equal(pids_inside(), 1);
	assert_int_equal(groups_left(hierarchy(), 1), 1);
}

TEST(background_processes_keep_their_group_until_they_end)
{
	struct msg_start m = {
		.exec = 1, .argv = SH("setsid sleep 0.6 >/dev/null 2>&1 & setsid sleep 0.6 >/dev/null 2>&1 & true")
	};
	struct seen s;

	need_box();
	run(&box, &m, &s, NULL, NULL);
	assert_int_equal(s.ended.outcome, OUTCOME_EXITED);
	assert_int_equal(s.ended.left, 2);
	assert_int_equal(groups_left(hierarchy(), 1), 1);
	(void)usleep(900000);
	assert_int_equal(groups_left(hierarchy(), 0), 0);
}

TEST(background_processes_of_an_ended_exec_can_be_killed)
{
	auto_buf struct buf body = BUF_INIT(64);
	struct msg_start m = { .exec = 1, .argv = SH("setsid sleep 1000 >/dev/null 2>&1 & true") };
	struct seen s;

	need_box();
	run(&box, &m, &s, NULL, NULL);
	assert_int_equal(s.ended.left, 1);
	msg_signal_put(&body, &(struct msg_signal){ 1, SIGKILL, SCOPE_TREE });
	request(box.sock, MSG_SIGNAL, &body, MSG_OK);
	(void)usleep(500000);
	assert_int_equal(pids_inside(), 0);
	assert_int_equal(groups_left(hierarchy(), 0), 0);
}

/* A group full of pages that nothing can reclaim: the next exec dies of it, init does not. */
TEST(memory_that_is_used_up_kills_execs_and_not_init)
{
	struct msg_start fill = { .exec = 1, .argv = SH("head -c 320m /dev/zero > /dev/shm/carrel-init-test-fill") };
	struct seen s;
	bool died = false;

	need_box();
	run(&box, &fill, &s, NULL, NULL);
	for (uint64_t i = 2; i < 12; i++) {
		struct msg_start m = { .exec = i, .argv = ARGV("/usr/bin/python3", "-c", "x = bytearray(8 << 20)") };

		run(&box, &m, &s, NULL, NULL);
		died |= s.failed.code != ERR_NONE || s.ended.outcome == OUTCOME_SIGNALLED;
	}
	(void)unlink("/dev/shm/carrel-init-test-fill");
	assert_true(died);
	assert_int_equal(pids_inside(), 0);
}

int main(void)
{
/* Two tests need limits, and where this suite runs the unified hierarchy may have no controllers to set them in. */
#define V1(f) { #f " (v1)", f, open_v1, close_box, NULL }
#define V2(f) { #f " (v2)", f, open_v2, close_box, NULL }
	const struct CMUnitTest tests[] = {
		V1(an_exec_is_billed_and_its_group_goes_away),
		V2(an_exec_is_billed_and_its_group_goes_away),
		V1(a_fork_bomb_is_killed_whole),
		V1(a_kill_takes_the_tree_and_spares_the_neighbour),
		V2(a_kill_takes_the_tree_and_spares_the_neighbour),
		V1(background_processes_keep_their_group_until_they_end),
		V2(background_processes_keep_their_group_until_they_end),
		V1(background_processes_of_an_ended_exec_can_be_killed),
		V2(background_processes_of_an_ended_exec_can_be_killed),
		V1(memory_that_is_used_up_kills_execs_and_not_init),
	};

	return RUN(tests);
}
