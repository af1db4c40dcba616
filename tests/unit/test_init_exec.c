/* SPDX-License-Identifier: Apache-2.0 */
/* test_init_exec.c - What one command goes through under the real init: started, refused, fed, limited, killed, ended
 *
 * Theory of operation. See init_box.h: the init is the built one, alone in namespaces of its own; this program is its only client. */
#include "init_box.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/str.h"
#include "test.h"

#define ARGV(...) ((const char *[]){ __VA_ARGS__, NULL })
#define SH(script) ARGV("/bin/sh", "-c", script)

static struct box box;
static char scratch[] =
	"/tmp/carrel-init-test-XXXXXX"; /* "@" in tables: a directory with a few files that do not run */

static int open_box(void **state)
{
	(void)state;
	box = (struct box){ .sock = -EBADF };
	box_open(&box);
	return 0;
}

static int close_box(void **state)
{
	(void)state;
	box_close(&box);
	return 0;
}

TEST(a_command_exits_with_its_code_and_its_output_is_in_the_spools)
{
	struct msg_start m = { .exec = 7, .argv = SH("echo out; echo err >&2; exit 3") };
	struct seen s;
	int out, err;

	run(&box, &m, &s, &out, &err);
	assert_int_equal(s.ended.outcome, OUTCOME_EXITED);
	assert_int_equal(s.ended.code, 3);
	assert_string_equal(spool_text(out), "out\n");
	assert_string_equal(spool_text(err), "err\n");
	assert_int_equal(s.ended.out_bytes, 4);
	assert_int_equal(s.ended.err_bytes, 4);
	assert_int_equal(s.ended.left, 0);
	assert_true(s.ended.end_ns > s.ended.start_ns);
	assert_true(s.ended.peak_bytes > KIB(100));
	assert_true(s.started.pid > 1);
	(void)close(out);
	(void)close(err);
}

TEST(a_signal_that_ends_the_leader_is_told)
{
	struct msg_start m = { .exec = 1, .argv = SH("kill -SEGV $$") };
	struct seen s;

	run(&box, &m, &s, NULL, NULL);
	assert_int_equal(s.ended.outcome, OUTCOME_SIGNALLED);
	assert_int_equal(s.ended.sig, SIGSEGV);
}

TEST(what_cannot_be_started_says_why_and_leaves_its_number_free)
{
	static const struct {
		const char *argv0, *cwd, *user;
		enum err_code code;
		const char *says;
	} cases[] = {
		{ "no-such-program", "/", "", ERR_NOT_FOUND, "no such program in PATH" },
		{ "/no/such/file", "/", "", ERR_NOT_FOUND, "'/no/such/file'" },
		{ "/etc/passwd", "/", "", ERR_NOT_EXECUTABLE, "permission denied" },
		{ "/etc", "/", "", ERR_NOT_EXECUTABLE, "is a directory" },
		{ "./noshebang", "@", "", ERR_NOT_EXECUTABLE, "format" },
		{ "./badshebang", "@", "", ERR_NOT_EXECUTABLE, "'/no/interpreter'" },
		{ "", "/", "", ERR_NOT_FOUND, "empty" },
		{ "/bin/true", "/no/such/dir", "", ERR_INVALID, "start in directory '/no/such/dir'" },
		{ "/bin/true", "/etc/passwd", "", ERR_INVALID, "not a directory" },
		{ "/bin/true", "/", "nobody-at-all", ERR_INVALID, "'nobody-at-all'" },
		{ "/bin/true", "/", "root:no-group", ERR_INVALID, "'no-group'" },
		{ "/bin/true", "/", ":5", ERR_INVALID, "empty" },
		{ "/bin/true", "/", "4000000000", ERR_INVALID, "does not have these ids" },
	};
	struct msg_start m = { .exec = 9 };
	struct seen s;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		m.argv = ARGV(cases[i].argv0);
		m.cwd = str_eq(cases[i].cwd, "@") ? scratch : cases[i].cwd;
		m.user = cases[i].user;
		run(&box, &m, &s, NULL, NULL);
		EXPECT_INT(cases[i].says, s.failed.code, cases[i].code);
		if (!strstr(s.failed.msg, cases[i].says))
			fail_msg("\"%s\" does not say \"%s\"", s.failed.msg, cases[i].says);
	}
	m.argv = ARGV("true");
	m.user = "";
	run(&box, &m, &s, NULL, NULL);
	assert_int_equal(s.ended.outcome, OUTCOME_EXITED);
}

TEST(path_comes_from_the_environment_of_the_command)
{
	struct msg_start m = { .exec = 1, .argv = ARGV("true"), .env = ARGV("PATH=/nowhere:/also", "A=1") };
	struct seen s;
	int out;

	run(&box, &m, &s, NULL, NULL);
	assert_int_equal(s.failed.code, ERR_NOT_FOUND);
	m = (struct msg_start){ .exec = 2, .argv = ARGV("env"), .env = ARGV("A=1", "PATH=/nowhere::/usr/bin") };
	run(&box, &m, &s, &out, NULL);
	assert_string_equal(spool_text(out), "A=1\nPATH=/nowhere::/usr/bin\nHOME=/root\n");
	(void)close(out);
	m = (struct msg_start){ .exec = 3, .argv = ARGV("env") };
	run(&box, &m, &s, &out, NULL);
	assert_string_equal(spool_text(out),
			    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nHOME=/root\n");
	(void)close(out);
}

TEST(a_user_is_looked_up_inside)
{
	static const struct {
		const char *user, *script, *says;
	} cases[] = {
		{ "", "id -u; id -g; id -G", "0\n0\n0\n" },
		{ "games", "id -u; id -g; echo $HOME", "5\n60\n/usr/games\n" },
		{ "5", "id -u; id -g", "5\n60\n" },
		{ "games:daemon", "id -u; id -g; id -G", "5\n1\n1\n" },
		{ "54321", "id -u; id -g; echo $HOME", "54321\n0\n/\n" },
		{ "54321:77", "id -u; id -g", "54321\n77\n" },
		{ "games", "grep CapEff /proc/self/status; echo x > /dev/stdout", "CapEff:\t0000000000000000\nx\n" },
	};
	struct seen s;
	int out;

	if (geteuid() != 0)
		skip(); /* one id is all that an ordinary user's namespace has */
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct msg_start m = { .exec = i + 1, .argv = SH(cases[i].script), .user = cases[i].user };

		run(&box, &m, &s, &out, NULL);
		assert_int_equal(s.failed.code, ERR_NONE);
		assert_string_equal(spool_text(out), cases[i].says);
		(void)close(out);
	}
}

TEST(limits_are_set_and_init_keeps_its_own_descriptors_to_itself)
{
	struct msg_start m = { .exec = 1,
			       .argv = SH(
				       "ulimit -n; ulimit -f; ls /proc/self/fd | tr '\\n' ' '; umask; grep -E "
				       "'^(NoNewPrivs|Seccomp|SigBlk|SigIgn):' /proc/self/status | tr '\\n\\t' '  '"),
			       .num_rlimits = 2,
			       .rlimits = { { RLIMIT_NOFILE, 77, 78 }, { RLIMIT_FSIZE, 1024, 2048 } } };
	struct seen s;
	int out;

	run(&box, &m, &s, &out, NULL);
	assert_string_equal(spool_text(out),
			    "77\n2\n0 1 2 3 0022\nSigBlk: 0000000000000000 SigIgn: 0000000000000000 NoNewPrivs: 1 "
			    "Seccomp: 2 ");
	(void)close(out);
	m = (struct msg_start){
		.exec = 2, .argv = ARGV("true"), .num_rlimits = 1, .rlimits = { { RLIMIT_NOFILE, 1, UINT64_MAX } }
	};
	run(&box, &m, &s, NULL, NULL);
	assert_int_equal(s.failed.code, ERR_DENIED);
	assert_non_null(strstr(s.failed.msg, "nofile"));
}

TEST(files_move_between_directories_and_devices_are_not_made)
{
	struct msg_start m = { .exec = 1,
			       .argv = SH("cd $(mktemp -d) && mkdir a b && touch a/x && python3 -c 'import os; "
					  "os.rename(\"a/x\", \"b/x\")' "
					  "&& ln b/x a/y && echo moved; mknod c c 1 3 2>&1 | grep -o 'not "
					  "permitted\\|denied'; cd /; rm -r \"$OLDPWD\"") };
	struct seen s;
	int out;

	run(&box, &m, &s, &out, NULL);
	assert_non_null(strstr(spool_text(out), "moved\n"));
	assert_true(strstr(spool_text(out), "not permitted") || strstr(spool_text(out), "denied"));
	(void)close(out);
}

TEST(a_spool_gets_every_byte_in_order)
{
	struct msg_start m = { .exec = 1, .argv = SH("seq 1 2000000") };
	struct seen s;
	struct stat st;
	char tail[9] = "";
	int out;

	run(&box, &m, &s, &out, NULL);
	assert_int_equal(fstat(out, &st), 0);
	assert_int_equal(st.st_size, 14888896);
	assert_int_equal(s.ended.out_bytes, 14888896);
	assert_int_equal(s.ends[0], 14888896);
	assert_true(s.eof[0]);
	assert_int_equal(pread(out, tail, 8, 14888888), 8);
	assert_string_equal(tail, "2000000\n");
	(void)close(out);
}

TEST(a_spool_opened_for_appending_works_too)
{
	struct msg_start m = { .exec = 1, .flags = START_OUT_SPOOL, .argv = SH("seq 1 200000") };
	struct seen s = { .fd = -EBADF };
	char path[] = "/tmp/carrel-spool-XXXXXX";
	int fd = mkostemp(path, O_APPEND);
	struct stat st;

	start_send(&box, &m, &fd, 1);
	start_wait(box.sock, 1, true, &s);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 1288895);
	(void)unlink(path);
	(void)close(fd);
}

TEST(output_ends_at_its_limit_to_the_byte)
{
	static const struct {
		const char *script;
		enum msg_outcome outcome;
		off_t size;
	} cases[] = {
		{ "head -c 1000 /dev/zero", OUTCOME_EXITED, 1000 },
		{ "head -c 1001 /dev/zero", OUTCOME_OUTPUT_LIMIT, 1000 },
		{ "cat /dev/zero", OUTCOME_OUTPUT_LIMIT, 1000 },
		{ "trap '' PIPE TERM; (setsid sh -c 'while :; do echo y; done' &); cat /dev/zero", OUTCOME_OUTPUT_LIMIT,
		  1000 },
	};
	struct seen s;
	struct stat st;
	int out;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct msg_start m = { .exec = i + 1, .argv = SH(cases[i].script), .output_max = 1000 };

		run(&box, &m, &s, &out, NULL);
		EXPECT_INT(cases[i].script, s.ended.outcome, cases[i].outcome);
		assert_int_equal(fstat(out, &st), 0);
		EXPECT_INT(cases[i].script, st.st_size, cases[i].size);
		EXPECT_INT(cases[i].script, s.ended.left, 0);
		(void)close(out);
	}
}

TEST(a_timeout_kills_what_ignores_signals_and_left_the_session)
{
	struct msg_start m = { .exec = 1,
			       .argv = SH("trap '' TERM HUP INT; for i in 1 2 3; do (setsid setsid sh -c \"trap '' "
					  "TERM; while :; do sleep "
					  "1000; done\" &); done; while :; do sleep 1000; done"),
			       .timeout_ns = 400 * NSEC_PER_MSEC };
	uint64_t start = clock_ns();
	struct seen s;
	int out;

	run(&box, &m, &s, NULL, NULL);
	assert_int_equal(s.ended.outcome, OUTCOME_TIMED_OUT);
	assert_int_equal(s.ended.left, 0);
	assert_true(clock_ns() - start < 3 * NSEC_PER_SEC);
	assert_true(clock_ns() - start >= 400 * NSEC_PER_MSEC);
	m = (struct msg_start){ .exec = 2, .argv = SH("set -- /proc/[0-9]*; echo $#") };
	run(&box, &m, &s, &out, NULL);
	assert_string_equal(spool_text(out), "2\n"); /* init and the shell */
	(void)close(out);
}

TEST(without_groups_a_kill_spares_the_other_exec)
{
	struct msg_start other = { .exec = 1, .argv = SH("exec sleep 1000") };
	struct msg_start m = { .exec = 2,
			       .argv = SH("sleep 1000 & sleep 1000 & setsid sleep 1000 & wait"),
			       .timeout_ns = 300 * NSEC_PER_MSEC };
	struct seen s = { .fd = -EBADF }, s1 = { .fd = -EBADF };

	start_send(&box, &other, NULL, 0);
	start_wait(box.sock, 1, false, &s);
	run(&box, &m, &s1, NULL, NULL);
	assert_int_equal(s1.ended.outcome, OUTCOME_TIMED_OUT);
	assert_int_equal(s1.ended.left, 0);
	request_ref(box.sock, MSG_ATTACH, 1, MSG_EXEC);
	assert_int_equal(s.num_ended, 0);
}

TEST(thousands_of_orphans_are_reaped)
{
	struct msg_start m = {
		.exec = 1,
		.argv = SH("python3 -c '\nimport os,time\nfor i in range(3000):\n  if os.fork()==0:\n    if "
			   "os.fork()==0: os._exit(0)\n    os._exit(0)\nwhile True:\n  try: os.wait()\n  except "
			   "ChildProcessError: break'; "
			   "sleep 0.3; set -- /proc/[0-9]*; echo $#")
	};
	struct seen s;
	int out;

	run(&box, &m, &s, &out, NULL);
	assert_string_equal(spool_text(out), "2\n"); /* init and the shell */
	(void)close(out);
}

TEST(stdin_is_a_pipe_that_closes)
{
	struct msg_start m = { .exec = 1, .flags = START_STDIN_PIPE | START_OUT_SPOOL, .argv = ARGV("cat") };
	struct seen s = { .fd = -EBADF };
	int out = spool_new();

	start_send(&box, &m, &out, 1);
	start_wait(box.sock, 1, false, &s);
	assert_true(s.fd >= 0);
	assert_int_equal(write(s.fd, "hello", 5), 5);
	request_ref(box.sock, MSG_STDIN_CLOSE, 1, MSG_OK);
	request_ref(box.sock, MSG_STDIN_CLOSE, 1, MSG_OK);
	(void)close(s.fd);
	start_wait(box.sock, 1, true, &s);
	assert_int_equal(s.ended.code, 0);
	assert_string_equal(spool_text(out), "hello");
	(void)close(out);
}

TEST(a_terminal_is_one_and_can_be_resized)
{
	struct msg_start m = { .exec = 1,
			       .flags = START_PTY,
			       .rows = 30,
			       .cols = 100,
			       .argv = SH(
				       "tty; stty size; read x; stty size; ls -l /dev/tty >/dev/null && echo $TERM") };
	auto_buf struct buf body = BUF_INIT(64);
	struct seen s = { .fd = -EBADF };
	char text[256] = "";
	size_t len = 0;

	start_send(&box, &m, NULL, 0);
	start_wait(box.sock, 1, false, &s);
	assert_true(s.fd >= 0);
	while (!strstr(text, "30 100\r\n")) {
		ssize_t n = read(s.fd, text + len, sizeof(text) - 1 - len);

		assert_true(n > 0);
		len += (size_t)n;
	}
	msg_resize_put(&body, &(struct msg_resize){ 1, 50, 132 });
	request(box.sock, MSG_RESIZE, &body, MSG_OK);
	assert_int_equal(write(s.fd, "\n", 1), 1);
	while (!strstr(text, "xterm\r\n")) {
		ssize_t n = read(s.fd, text + len, sizeof(text) - 1 - len);

		assert_true(n > 0);
		len += (size_t)n;
	}
	assert_non_null(strstr(text, "/dev/pts/"));
	assert_non_null(strstr(text, "50 132\r\n"));
	start_wait(box.sock, 1, true, &s);
	assert_int_equal(s.ended.code, 0);
	(void)close(s.fd);
}

TEST(a_terminal_can_have_a_spool)
{
	struct msg_start m = { .exec = 1,
			       .flags = START_PTY,
			       .rows = 24,
			       .cols = 80,
			       .user = geteuid() == 0 ? "games" : "",
			       .argv = SH("seq 1 20000; echo x > /dev/stdout; test -t 0 && test -t 2 && echo tty") };
	struct seen s;
	struct stat st;
	int out;

	run(&box, &m, &s, &out, NULL);
	assert_int_equal(s.ended.outcome, OUTCOME_EXITED);
	assert_int_equal(s.ended.code, 0);
	assert_int_equal(fstat(out, &st), 0);
	assert_int_equal(st.st_size, 108894 + 20000 + 3 + 5);
	(void)close(out);
	(void)close(s.fd);
}

TEST(a_terminal_that_nobody_reads_stops_only_its_own_command)
{
	struct msg_start m = { .exec = 1,
			       .flags = START_PTY,
			       .argv = SH("while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done"),
			       .timeout_ns = 500 * NSEC_PER_MSEC };
	struct msg_start other = { .exec = 2, .argv = ARGV("true") };
	struct seen s = { .fd = -EBADF }, s2;

	start_send(&box, &m, NULL, 0);
	start_wait(box.sock, 1, false, &s);
	run(&box, &other, &s2, NULL, NULL);
	assert_int_equal(s2.ended.outcome, OUTCOME_EXITED);
	start_wait(box.sock, 1, true, &s);
	assert_int_equal(s.ended.outcome, OUTCOME_TIMED_OUT);
	(void)close(s.fd);
}

TEST(a_held_command_waits_for_go)
{
	struct msg_start m = { .exec = 1, .flags = START_HOLD | START_OUT_SPOOL, .argv = SH("echo ran") };
	struct seen s = { .fd = -EBADF };
	int out = spool_new();
	char path[64], status[4096];
	FILE *f;
	size_t n;

	start_send(&box, &m, &out, 1);
	start_wait(box.sock, 1, false, &s);
	(void)snprintf(path, sizeof(path), "/proc/%d/root/proc/%u/status", box.pid, s.started.pid);
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(status, 1, sizeof(status) - 1, f);
	status[n] = '\0';
	(void)fclose(f);
	assert_non_null(strstr(status, "NoNewPrivs:\t1"));
	assert_non_null(strstr(status, "Seccomp_filters:\t2"));
	assert_string_equal(spool_text(out), "");
	request_ref(box.sock, MSG_GO, 1, MSG_OK);
	start_wait(box.sock, 1, true, &s);
	assert_string_equal(spool_text(out), "ran\n");
	request_ref(box.sock, MSG_GO, 1, MSG_FAILED);
	(void)close(out);
}

TEST(a_held_command_that_cannot_run_fails_at_go_and_ends)
{
	struct msg_start m = { .exec = 1, .flags = START_HOLD, .argv = ARGV("/no/such") };
	struct seen s = { .fd = -EBADF };

	start_send(&box, &m, NULL, 0);
	start_wait(box.sock, 1, false, &s);
	request_ref(box.sock, MSG_GO, 1, MSG_FAILED);
	start_wait(box.sock, 1, true, &s);
	assert_int_equal(s.ended.outcome, OUTCOME_FAILED);
}

TEST(a_held_command_can_be_killed)
{
	auto_buf struct buf body = BUF_INIT(64);
	struct msg_start m = { .exec = 1, .flags = START_HOLD, .argv = ARGV("true") };
	struct seen s = { .fd = -EBADF };

	start_send(&box, &m, NULL, 0);
	start_wait(box.sock, 1, false, &s);
	msg_signal_put(&body, &(struct msg_signal){ 1, SIGKILL, SCOPE_TREE });
	packet_send(box.sock, MSG_SIGNAL, 5, &body, NULL, 0);
	for (;;) {
		struct msg_packet p;

		assert_true(packet_next(box.sock, &p));
		if (p.h.type == MSG_ENDED) {
			assert_int_equal(msg_ended_get(p.body, &s.ended), 0);
			msg_packet_done(&p);
			break;
		}
		assert_int_equal(p.h.type, MSG_OK);
		msg_packet_done(&p);
	}
	assert_int_equal(s.ended.outcome, OUTCOME_KILLED);
}

TEST(signals_reach_the_leader_and_its_group)
{
	static const enum msg_scope scopes[] = { SCOPE_LEADER, SCOPE_GROUP };

	for (size_t i = 0; i < ARRAY_SIZE(scopes); i++) {
		auto_buf struct buf body = BUF_INIT(64);
		struct msg_start m = { .exec = i + 1, .argv = ARGV("sleep", "1000") };
		struct seen s = { .fd = -EBADF };

		start_send(&box, &m, NULL, 0);
		start_wait(box.sock, m.exec, false, &s);
		msg_signal_put(&body, &(struct msg_signal){ m.exec, SIGTERM, scopes[i] });
		request(box.sock, MSG_SIGNAL, &body, MSG_OK);
		start_wait(box.sock, m.exec, true, &s);
		assert_int_equal(s.ended.outcome, OUTCOME_SIGNALLED);
		assert_int_equal(s.ended.sig, SIGTERM);
		request(box.sock, MSG_SIGNAL, &body, MSG_FAILED);
	}
}

TEST(background_processes_do_not_hold_up_the_end_and_are_counted)
{
	struct msg_start m = { .exec = 1, .argv = SH("(sleep 0.5; echo late) & echo now") };
	uint64_t start = clock_ns();
	struct seen s;
	int out;

	run(&box, &m, &s, &out, NULL);
	assert_true(clock_ns() - start < 400 * NSEC_PER_MSEC);
	assert_string_equal(spool_text(out), "now\n");
	assert_int_equal(s.ended.out_bytes, 4);
	assert_true(s.ended.left >= 1);
	assert_false(s.eof[0]);
	while (!s.eof[0]) {
		struct msg_packet p = packet_expect(box.sock, MSG_OUTPUT);
		struct msg_output o;

		assert_int_equal(msg_output_get(p.body, &o), 0);
		s.eof[0] = o.stream == 1 && o.eof;
		msg_packet_done(&p);
	}
	assert_string_equal(spool_text(out), "now\nlate\n");
	(void)close(out);
}

TEST(ten_megabytes_of_arguments_are_refused_by_name)
{
	auto_free char *big = malloc(MSG_ARG_MAX);
	const char *argv[62] = { "/bin/true" };
	struct msg_start m = { .exec = 1, .argv = argv };
	struct seen s;

	memset(big, 'a', MSG_ARG_MAX - 1);
	big[MSG_ARG_MAX - 1] = '\0';
	for (size_t i = 1; i < 61; i++)
		argv[i] = big;
	run(&box, &m, &s, NULL, NULL);
	assert_int_equal(s.failed.code, ERR_INVALID);
	assert_non_null(strstr(s.failed.msg, "argument list too long"));
	argv[15] = NULL; /* 1.75 MiB: in a memfd, and fine */
	run(&box, &m, &s, NULL, NULL);
	assert_int_equal(s.failed.code, ERR_NONE);
}

TEST(a_key_names_one_exec)
{
	struct msg_start m = { .exec = 1, .key = "k1", .argv = SH("echo once; sleep 0.2") };
	struct seen s;
	int out;

	run(&box, &m, &s, &out, NULL);
	m.exec = 2;
	start_send(&box, &m, (int[]){ out, out }, 2);
	s = (struct seen){ .fd = -EBADF };
	start_wait(box.sock, 1, true, &s);
	assert_int_equal(s.started.exec, 1);
	assert_int_equal(s.started.pid, 0);
	assert_int_equal(s.ended.code, 0);
	m.exec = 3;
	m.argv = SH("echo twice");
	run(&box, &m, &s, NULL, NULL);
	assert_int_equal(s.failed.code, ERR_CONFLICT);
	m.key = NULL;
	m.exec = 1;
	run(&box, &m, &s, NULL, NULL);
	assert_int_equal(s.failed.code, ERR_CONFLICT);
	assert_string_equal(spool_text(out), "once\n");
	(void)close(out);
}

static void scratch_write(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0755);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		print_error("%s: cannot be written\n", name); /* its test will say the rest */
	(void)close(fd);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, open_box, close_box)
	const struct CMUnitTest tests[] = {
		CASE(a_command_exits_with_its_code_and_its_output_is_in_the_spools),
		CASE(a_signal_that_ends_the_leader_is_told),
		CASE(what_cannot_be_started_says_why_and_leaves_its_number_free),
		CASE(path_comes_from_the_environment_of_the_command),
		CASE(a_user_is_looked_up_inside),
		CASE(limits_are_set_and_init_keeps_its_own_descriptors_to_itself),
		CASE(files_move_between_directories_and_devices_are_not_made),
		CASE(a_spool_gets_every_byte_in_order),
		CASE(a_spool_opened_for_appending_works_too),
		CASE(output_ends_at_its_limit_to_the_byte),
		CASE(a_timeout_kills_what_ignores_signals_and_left_the_session),
		CASE(without_groups_a_kill_spares_the_other_exec),
		CASE(thousands_of_orphans_are_reaped),
		CASE(stdin_is_a_pipe_that_closes),
		CASE(a_terminal_is_one_and_can_be_resized),
		CASE(a_terminal_can_have_a_spool),
		CASE(a_terminal_that_nobody_reads_stops_only_its_own_command),
		CASE(a_held_command_waits_for_go),
		CASE(a_held_command_that_cannot_run_fails_at_go_and_ends),
		CASE(a_held_command_can_be_killed),
		CASE(signals_reach_the_leader_and_its_group),
		CASE(background_processes_do_not_hold_up_the_end_and_are_counted),
		CASE(ten_megabytes_of_arguments_are_refused_by_name),
		CASE(a_key_names_one_exec),
	};
	int dir = mkdtemp(scratch) ? open(scratch, O_RDONLY | O_DIRECTORY) : -EBADF;
	int r;

	if (dir < 0 || fchmod(dir, 0755) < 0)
		return 1;
	scratch_write(dir, "noshebang", "echo hi\n");
	scratch_write(dir, "badshebang", "#!/no/interpreter -x\n");
	r = RUN(tests);
	(void)unlinkat(dir, "noshebang", 0);
	(void)unlinkat(dir, "badshebang", 0);
	(void)rmdir(scratch);
	(void)close(dir);
	return r;
}
