/* SPDX-License-Identifier: Apache-2.0 */
/* lib_sandbox.c - Cases of lib_client about sandboxes and execs: every function of carrel.h, in order and out of it
 *
 * Theory of operation. See lib_client.c; one process for each case. */
#include "lib_client.h"

#include <poll.h>

/* --- Requests --------------------------------------------------------------------------------------------------------------- */

static void settings_are_checked(char **args UNUSED)
{
	struct carrel_spec *spec = carrel_spec_new();
	struct carrel_command *c = COMMAND("true");
	char *plan = NULL;

	check(spec);
	fails(carrel_spec_set(spec, "memroy", "1g", &err), -EINVAL, CARREL_ERROR_INVALID, "memroy");
	check(strstr(err.message, "memory") || strstr(err.remedy, "memory"));
	fails(carrel_spec_set(spec, "memory", "lots", &err), -EINVAL, CARREL_ERROR_INVALID, "lots");
	check(err.remedy[0]);
	fails(carrel_spec_set(spec, "hostname", "a\nb", &err), -EINVAL, CARREL_ERROR_INVALID, "hostname");
	check(carrel_spec_set(spec, "cpus", "0", NULL) == -EINVAL);
	ok(carrel_spec_set(spec, "memory", "64m", &err));
	fails(carrel_command_set(c, "tmeout", "1s", &err), -EINVAL, CARREL_ERROR_INVALID, "tmeout");
	fails(carrel_command_set(c, "workdir", "here", &err), -EINVAL, CARREL_ERROR_INVALID, "here");
	fails(carrel_command_set(c, "env", "=x", &err), -EINVAL, CARREL_ERROR_INVALID, "=x");
	ok(carrel_command_set(c, "timeout", "1.5s", &err));
	check(carrel_command_new(NULL) == NULL && carrel_command_new((const char *[]){ NULL }) == NULL);
	ok(carrel_plan(spec, c, &plan, &err));
	check(strstr(plan, "limit: memory 64m") && strstr(plan, "limit: time 1500 ms") && strstr(plan, "seccomp"));
	free(plan);
	plan = NULL;
	ok(carrel_plan(spec, NULL, &plan, &err));
	free(plan);
	ok(carrel_spec_set(spec, "image", "/no/such/image", &err));
	fails(carrel_plan(spec, NULL, &plan, &err), -ENOENT, CARREL_ERROR_NOT_FOUND, "/no/such/image");
	carrel_spec_free(spec);
	carrel_command_free(c);
	carrel_spec_free(NULL);
	carrel_command_free(NULL);
	carrel_sandbox_free(NULL);
	carrel_exec_free(NULL);
	carrel_receipt_free(NULL);
}

static void refused_starts_leave_nothing(char **args UNUSED)
{
	struct carrel_spec *spec = carrel_spec_new();
	struct carrel_sandbox *sb = NULL;
	size_t fds = open_fds();

	ok(carrel_spec_set(spec, "volume", "/no/such/source:/data", &err));
	fails(carrel_start(spec, &sb, &err), -ENOENT, CARREL_ERROR_NOT_FOUND, "/no/such/source");
	check(sb == NULL);
	check(carrel_start(spec, &sb, NULL) == -ENOENT);
	carrel_spec_free(spec);
	fails(carrel_connect("0123456789abcdef", &sb, &err), -ENOENT, CARREL_ERROR_NOT_FOUND, "0123456789abcdef");
	fails(carrel_connect("../../etc/passwd", &sb, &err), -EINVAL, CARREL_ERROR_INVALID, "not an id");
	fails(carrel_connect("", &sb, &err), -EINVAL, CARREL_ERROR_INVALID, "not an id");
	check(open_fds() == fds);
}

/* --- One sandbox ------------------------------------------------------------------------------------------------------------ */

static void a_sandbox_from_start_to_end(char **args UNUSED)
{
	struct carrel_sandbox *sb = START("memory=128m", "pids-limit=32", "hostname=box");
	struct carrel_exec *x, *again;
	struct carrel_result res;
	struct carrel_stats stats;

	check(strlen(carrel_sandbox_id(sb)) == 16 &&
	      strspn(carrel_sandbox_id(sb), "0123456789abcdefghijklmnopqrstuvwxyz") == 16);
	x = EXEC(sb, "echo $A $(hostname); echo err >&2; head -c 30000000 /dev/zero | tail -c 1 | wc -c; exit 7",
		 "env=A=b", "user=nobody");
	check(carrel_exec_pid(x) > 1 && carrel_exec_number(x) > 0 && carrel_exec_terminal(x) == -1);
	res = wait_for(x);
	check(res.outcome == CARREL_EXITED && res.exit_code == 7 && res.signal == 0 && !res.limit &&
	      res.left_running == 0);
	check(res.wall_ns > 1000000 && res.user_us + res.system_us > 0 && res.peak_bytes > 100000);
	check(res.stdout_bytes == 8 && res.stderr_bytes == 4);
	check(strcmp(carrel_outcome_name(res.outcome), "exited") == 0);
	expect_text(x, "b box\n1\n");
	check(strcmp(text_of(x, 2, 0), "err\n") == 0);
	again = EXEC(sb, "id -u");
	check(carrel_exec_number(again) != carrel_exec_number(x));
	expect_text(again, "0\n");
	check(wait_for(again).outcome == CARREL_EXITED);
	ok(carrel_stats(sb, &stats, &err));
	check(stats.memory_limit_bytes == 128u << 20 && stats.memory_peak_bytes > 0 &&
	      stats.memory_peak_bytes <= 128u << 20);
	check(stats.memory_bytes <= stats.memory_peak_bytes && stats.pids_limit == 32 && stats.pids < 32 &&
	      stats.cpu_us > 0);
	check(stats.oom_kills == 0 && stats.pids_denied == 0);
	carrel_exec_free(x);
	ok(carrel_destroy(sb, &err));
	ok(carrel_destroy(sb, &err));
	check(wait_for(again).outcome == CARREL_EXITED); /* what was known stays so */
	expect_text(again, "0\n");
	carrel_sandbox_free(sb);
	carrel_exec_free(again);
}

static void every_outcome(char **args UNUSED)
{
	static const struct {
		const char *line, *setting;
		enum carrel_outcome outcome;
		int code, signal;
		const char *limit;
	} cases[] = {
		{ "exit 255", "user=0", CARREL_EXITED, 255, 0, NULL },
		{ "kill -SEGV $$", "user=0", CARREL_SIGNALLED, -1, SIGSEGV, NULL },
		{ "sleep 60 & wait", "timeout=200ms", CARREL_TIMED_OUT, -1, 0, "timeout" },
		{ "yes", "output-limit=64k", CARREL_OUTPUT_LIMIT, -1, 0, "output" },
		{ "exec head -c 200m /dev/zero | exec tail -c 200m", "user=0", CARREL_EXITED, 137, 0, "memory" },
		{ "exec perl -e '$x = \"a\" x (200 << 20)'", "user=0", CARREL_OUT_OF_MEMORY, -1, SIGKILL, "memory" },
		{ "while :; do :; done", "ulimit=cpu=1:2", CARREL_SIGNALLED, -1, SIGXCPU, "cpu" },
		{ "exec head -c 2m /dev/zero > f", "ulimit=fsize=1m", CARREL_SIGNALLED, -1, SIGXFSZ, "fsize" },
	};
	struct carrel_sandbox *sb = START("memory=64m");

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct carrel_exec *x = EXEC(sb, cases[i].line, cases[i].setting);
		struct carrel_result res = wait_for(x);

		if (res.outcome != cases[i].outcome || res.exit_code != cases[i].code ||
		    res.signal != cases[i].signal ||
		    strcmp(res.limit ? res.limit : "", cases[i].limit ? cases[i].limit : "") != 0) {
			fprintf(stderr, "'%s': %s, code %d, signal %d, limit %s\n", cases[i].line,
				carrel_outcome_name(res.outcome), res.exit_code, res.signal,
				res.limit ? res.limit : "none");
			_exit(1);
		}
		carrel_exec_free(x);
	}
	carrel_sandbox_free(sb);
}

static void programs_that_cannot_run(char **args UNUSED)
{
	static const struct {
		const char *program;
		int r, code;
	} cases[] = {
		{ "no-such-program", -ENOENT, CARREL_ERROR_NOT_FOUND },
		{ "/no/such/program", -ENOENT, CARREL_ERROR_NOT_FOUND },
		{ "/etc/passwd", -ENOEXEC, CARREL_ERROR_NOT_EXECUTABLE },
		{ "/etc", -ENOEXEC, CARREL_ERROR_NOT_EXECUTABLE },
		{ "/tmp/text", -ENOEXEC, CARREL_ERROR_NOT_EXECUTABLE },
	};
	struct carrel_sandbox *sb = START();
	size_t fds;

	run_ok(sb, "echo '\001\002' > /tmp/text; chmod 755 /tmp/text");
	fds = open_fds();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct carrel_command *c = carrel_command_new((const char *[]){ cases[i].program, NULL });
		struct carrel_exec *x = NULL;

		fails(carrel_exec(sb, c, &x, &err), cases[i].r, cases[i].code, cases[i].program);
		check(x == NULL);
		carrel_command_free(c);
	}
	check(open_fds() == fds);
	run_ok(sb, "true");
	carrel_sandbox_free(sb);
}

/* --- Streams ---------------------------------------------------------------------------------------------------------------- */

static void output_from_any_offset(char **args UNUSED)
{
	struct carrel_sandbox *sb = START();
	struct carrel_exec *x = EXEC(sb, "seq -f %07.0f 0 99999; sleep 0.3; echo late"), *quiet;
	char buf[32];
	double began;

	expect_soon(x, "0000100\n");
	for (uint64_t i = 99999; i > 0; i /= 3) { /* backwards: any offset may be read again */
		uint64_t got;

		for (size_t len = 0; len < 8;)
			len += (size_t)ok(carrel_exec_read(x, 1, i * 8 + len, buf + len, 8 - len, WAIT_MS, &err));
		buf[8] = '\0';
		got = strtoull(buf, NULL, 10);
		check(got == i);
	}
	check(carrel_exec_read(x, 1, 800000, buf, sizeof(buf), WAIT_MS, &err) == 5 && memcmp(buf, "late\n", 5) == 0);
	check(carrel_exec_read(x, 1, 800005, buf, sizeof(buf), WAIT_MS, &err) == 0);
	check(carrel_exec_read(x, 1, UINT64_MAX / 2, buf, sizeof(buf), WAIT_MS, &err) == 0);
	check(carrel_exec_read(x, 2, 0, buf, sizeof(buf), WAIT_MS, &err) == 0);
	check(wait_for(x).stdout_bytes == 800005);
	check(carrel_exec_read(x, 1, 0, buf, 8, 0, &err) == 8); /* also when it is over */
	fails(carrel_exec_read(x, 3, 0, buf, sizeof(buf), 0, &err), -EINVAL, CARREL_ERROR_INVALID, "stream 3");
	carrel_exec_free(x);

	quiet = EXEC(sb, "sleep 60");
	began = now_ms();
	check(carrel_exec_read(quiet, 1, 0, buf, sizeof(buf), 0, &err) == -EAGAIN);
	check(carrel_exec_read(quiet, 1, 0, buf, sizeof(buf), 200, &err) == -EAGAIN);
	check(now_ms() - began >= 195 && now_ms() - began < 5000);
	check(carrel_exec_wait(quiet, 0, &(struct carrel_result){ 0 }, &err) == -ETIMEDOUT &&
	      err.code == CARREL_ERROR_DEADLINE);
	ok(carrel_exec_kill(quiet, &err));
	check(wait_for(quiet).outcome == CARREL_KILLED);
	carrel_exec_free(quiet);
	carrel_sandbox_free(sb);
}

/* A reader gets a part as it comes, not when the command ends. */
static void output_comes_as_it_is_written(char **args UNUSED)
{
	struct carrel_sandbox *sb = START();
	struct carrel_exec *x = EXEC(sb, "echo first; echo other >&2; sleep 60");
	struct carrel_exec *null_x;
	char buf[16];

	check(carrel_exec_read(x, 1, 0, buf, sizeof(buf), WAIT_MS, &err) == 6);
	check(carrel_exec_read(x, 2, 0, buf, sizeof(buf), WAIT_MS, &err) == 6);
	ok(carrel_exec_kill(x, &err));
	check(wait_for(x).outcome == CARREL_KILLED);
	null_x = EXEC(sb, "echo x", "output=null");
	fails(carrel_exec_read(null_x, 1, 0, buf, sizeof(buf), 0, &err), -EINVAL, CARREL_ERROR_INVALID, "spool");
	check(wait_for(null_x).stdout_bytes == 0);
	carrel_exec_free(null_x);
	carrel_exec_free(x);
	carrel_sandbox_free(sb);
}

/* What a background process writes after its leader's end is still read by whoever keeps reading. */
static void what_is_left_running(char **args UNUSED)
{
	struct carrel_sandbox *sb = START();
	struct carrel_exec *x = EXEC(sb, "(setsid sleep 30 >/dev/null 2>&1) & echo gone");
	struct carrel_result res = wait_for(x);
	struct carrel_stats stats;

	check(res.outcome == CARREL_EXITED && res.left_running >= 1);
	ok(carrel_stats(sb, &stats, &err));
	check(stats.pids >= 1);
	ok(carrel_exec_kill(x, &err)); /* the tree outlives its leader, and is killed as one */
	for (int i = 0; i < 200 && stats.pids > 0; i++) {
		usleep(10000);
		ok(carrel_stats(sb, &stats, &err));
	}
	check(stats.pids == 0);
	carrel_exec_free(x);
	carrel_sandbox_free(sb);
}

static void stdin_is_a_pipe(char **args UNUSED)
{
	struct carrel_sandbox *sb = START();
	struct carrel_exec *x = EXEC(sb, "cat", "stdin=pipe"), *none;
	char big[200000];
	size_t sent = 0;

	check(carrel_exec_write(x, "hello\n", 6, &err) == 6);
	expect_soon(x, "hello\n"); /* it comes back before the input ends */
	memset(big, 'x', sizeof(big));
	while (sent < sizeof(big))
		sent += (size_t)ok(carrel_exec_write(x, big + sent, sizeof(big) - sent, &err));
	ok(carrel_exec_close_stdin(x, &err));
	check(wait_for(x).stdout_bytes == 6 + sizeof(big));
	check(carrel_exec_write(x, "x", 1, &err) < 0 && err.message[0]);
	carrel_exec_free(x);

	x = EXEC(sb, "exec <&-; echo closed; sleep 60", "stdin=pipe");
	expect_soon(x, "closed");
	check(carrel_exec_write(x, "x", 1, &err) == -EPIPE); /* and no SIGPIPE, which would end us here */
	ok(carrel_exec_kill(x, &err));
	carrel_exec_free(x);

	none = EXEC(sb, "cat; echo end");
	expect_text(none, "end\n");
	check(carrel_exec_write(none, "x", 1, &err) < 0 && err.code == CARREL_ERROR_INVALID);
	check(carrel_exec_close_stdin(none, &err) < 0 && err.code == CARREL_ERROR_INVALID);
	carrel_exec_free(none);
	carrel_sandbox_free(sb);
}

/* The caller's own descriptors, lent: stdout and stderr are files that the test reads afterwards. */
static void streams_are_inherited(char **args UNUSED)
{
	struct carrel_sandbox *sb = START();
	struct carrel_exec *x = EXEC(sb, "echo to-out; echo to-err >&2; cat", "stdin=inherit", "output=inherit");

	check(wait_for(x).outcome == CARREL_EXITED);
	fails(carrel_exec_read(x, 1, 0, &(char){ 0 }, 1, 0, &err), -EINVAL, CARREL_ERROR_INVALID, "spool");
	carrel_exec_free(x);
	carrel_sandbox_free(sb);
}

static void a_terminal_resizes(char **args UNUSED)
{
	struct carrel_sandbox *sb = START();
	struct carrel_exec *x =
		EXEC(sb, "trap 'stty size' WINCH; tty; stty size; while :; do sleep 0.05; done", "tty=true");
	char buf[4096] = "";
	size_t len = 0;

	expect_soon(x, "/dev/pts/0\r\n24 80\r\n");
	ok(carrel_exec_resize(x, 40, 100, &err));
	expect_soon(x, "40 100");
	check(carrel_exec_write(x, "\003", 1, &err) == 1); /* ctrl-C of the terminal */
	check(wait_for(x).signal == SIGINT);
	check(carrel_exec_resize(x, 1, 1, &err) < 0);
	carrel_exec_free(x);

	x = EXEC(sb, "stty -echo; echo ready; read line; echo got $line", "tty=true", "output=inherit");
	check(carrel_exec_terminal(x) >= 0);
	while (!strstr(buf, "ready")) {
		struct pollfd fd = { carrel_exec_terminal(x), POLLIN, 0 };

		check(poll(&fd, 1, WAIT_MS) == 1);
		len += (size_t)read(fd.fd, buf + len, sizeof(buf) - 1 - len);
	}
	check(carrel_exec_write(x, "words\n", 6, &err) == 6);
	while (!strstr(buf, "got words")) {
		ssize_t n = read(carrel_exec_terminal(x), buf + len, sizeof(buf) - 1 - len);

		check(n > 0);
		len += (size_t)n;
	}
	check(wait_for(x).outcome == CARREL_EXITED);
	carrel_exec_free(x);

	x = EXEC(sb, "true");
	check(carrel_exec_resize(x, 1, 1, &err) == -EINVAL && err.code == CARREL_ERROR_INVALID);
	carrel_exec_free(x);
	carrel_sandbox_free(sb);
}

/* --- Control ---------------------------------------------------------------------------------------------------------------- */

static void held_until_go(char **args UNUSED)
{
	struct carrel_sandbox *sb = START();
	struct carrel_exec *x = EXEC(sb, "echo ran", "hold=true"), *killed;
	struct carrel_receipt *receipt = NULL;
	const struct carrel_layer *layer;
	bool seccomp = false;
	char c;

	check(carrel_exec_read(x, 1, 0, &c, 1, 200, &err) == -EAGAIN);
	ok(carrel_receipt_read(x, &receipt, &err));
	check(carrel_receipt_count(receipt) > 10);
	for (size_t i = 0; i < carrel_receipt_count(receipt); i++) {
		layer = carrel_receipt_layer(receipt, i);
		check(layer->name[0] && layer->evidence && layer->why);
		check(layer->state == CARREL_LAYER_ON || layer->why[0]);
		if (strcmp(layer->name, "seccomp") == 0)
			seccomp = layer->state == CARREL_LAYER_ON && strstr(layer->evidence, "Seccomp: 2");
	}
	check(seccomp);
	check(carrel_receipt_layer(receipt, carrel_receipt_count(receipt)) == NULL);
	ok(carrel_exec_go(x, &err));
	check(carrel_exec_go(x, &err) < 0 && err.code == CARREL_ERROR_CONFLICT);
	expect_text(x, "ran\n");
	check(wait_for(x).exit_code == 0);
	carrel_receipt_free(receipt);
	check(carrel_receipt_read(x, &receipt, &err) < 0 &&
	      err.message[0]); /* of a dead one there is nothing to read */

	killed = EXEC(sb, "echo ran", "hold=true");
	ok(carrel_exec_kill(killed, &err));
	check(wait_for(killed).outcome == CARREL_KILLED && wait_for(killed).stdout_bytes == 0);
	carrel_exec_free(killed);
	carrel_exec_free(x);
	carrel_sandbox_free(sb);
}

static void signals_and_kill(char **args UNUSED)
{
	struct carrel_sandbox *sb = START();
	struct carrel_exec *x = EXEC(sb, "trap 'echo usr1; exit 3' USR1; echo up; while :; do sleep 0.05; done"), *y;
	struct carrel_stats stats;

	expect_soon(x, "up");
	fails(carrel_exec_signal(x, 0, &err), -EINVAL, CARREL_ERROR_INVALID, "0");
	fails(carrel_exec_signal(x, 65, &err), -EINVAL, CARREL_ERROR_INVALID, "65");
	ok(carrel_exec_signal(x, SIGUSR1, &err));
	check(wait_for(x).exit_code == 3);
	fails(carrel_exec_signal(x, SIGUSR1, &err), -EEXIST, CARREL_ERROR_CONFLICT, "ended");
	ok(carrel_exec_kill(x, &err)); /* nothing of it is left: that is what was asked for */

	y = EXEC(sb, "trap '' TERM INT HUP; for i in 1 2 3 4 5; do (setsid sh -c 'trap \"\" TERM; while :; do sleep 1; "
		     "done' &); done; echo up; "
		     "while :; do sleep 1; done");
	expect_soon(y, "up");
	ok(carrel_exec_signal(y, SIGTERM, &err));
	check(carrel_exec_wait(y, 200, &(struct carrel_result){ 0 }, &err) == -ETIMEDOUT);
	ok(carrel_exec_kill(y, &err));
	check(wait_for(y).outcome == CARREL_KILLED);
	for (int i = 0; i < 1000; i++) { /* the kernel takes a dead process off the count some time after its parent was told */
		ok(carrel_stats(sb, &stats, &err));
		if (stats.pids == 0)
			break;
		usleep(1000);
	}
	check(stats.pids == 0);
	carrel_exec_free(x);
	carrel_exec_free(y);
	carrel_sandbox_free(sb);
}

static void the_same_key_is_the_same_exec(char **args UNUSED)
{
	struct carrel_sandbox *sb = START();
	struct carrel_command *c = COMMAND("echo once >> /count; echo out; sleep 0.3; exit 5", "key=k-1");
	struct carrel_command *other = COMMAND("echo other", "key=k-1");
	struct carrel_exec *first, *running, *ended, *conflict = NULL;
	struct carrel_result res;

	ok(carrel_exec(sb, c, &first, &err));
	ok(carrel_exec(sb, c, &running, &err));
	check(carrel_exec_number(running) == carrel_exec_number(first));
	check(carrel_exec_pid(running) == carrel_exec_pid(first));
	fails(carrel_exec(sb, other, &conflict, &err), -EEXIST, CARREL_ERROR_CONFLICT, "k-1");
	check(conflict == NULL && err.remedy[0]);
	expect_text(running, "out\n");
	res = wait_for(running);
	check(res.outcome == CARREL_EXITED && res.exit_code == 5);
	check(wait_for(first).exit_code == 5);
	expect_text(first, "out\n");
	ok(carrel_exec(sb, c, &ended, &err));
	check(carrel_exec_number(ended) == carrel_exec_number(first));
	check(wait_for(ended).exit_code == 5);
	expect_text(ended, "out\n");
	carrel_exec_free(first);
	ok(carrel_exec(sb, c, &first, &err)); /* also after one of its handles went */
	check(wait_for(first).exit_code == 5);
	run_ok(sb, "test $(wc -l < /count) = 1");
	carrel_exec_free(first);
	carrel_exec_free(running);
	carrel_exec_free(ended);
	carrel_command_free(c);
	carrel_command_free(other);
	carrel_sandbox_free(sb);
}

/* Two handles on one exec both see its output and its end. */
static void found_by_number(char **args UNUSED)
{
	struct carrel_sandbox *sb = START("die-with-owner=false");
	struct carrel_exec *x = EXEC(sb, "echo one; read line; echo two", "stdin=pipe"), *y, *z, *none = NULL;

	expect_soon(x, "one");
	ok(carrel_exec_find(sb, carrel_exec_number(x), &y, &err));
	check(carrel_exec_number(y) == carrel_exec_number(x) && carrel_exec_pid(y) == carrel_exec_pid(x));
	expect_soon(y, "one");
	check(carrel_exec_write(y, "\n", 1, &err) == 1);
	expect_text(x, "one\ntwo\n");
	check(wait_for(x).exit_code == 0);
	expect_text(y, "one\ntwo\n");
	check(wait_for(y).exit_code == 0);
	ok(carrel_exec_find(sb, carrel_exec_number(x), &z, &err));
	check(wait_for(z).exit_code == 0 && strcmp(text_of(z, 1, 4), "two\n") == 0);
	fails(carrel_exec_find(sb, 999, &none, &err), -ENOENT, CARREL_ERROR_NOT_FOUND, "999");
	check(none == NULL);
	carrel_exec_free(x);
	carrel_exec_free(y);
	carrel_exec_free(z);
	ok(carrel_destroy(sb, &err));
	carrel_sandbox_free(sb);
}

/* An event loop: many execs, one descriptor, nothing that blocks. */
static void an_event_loop(char **args UNUSED)
{
	enum { N = 24 };
	struct carrel_sandbox *sb = START();
	struct carrel_exec *x[N];
	bool ended[N] = { false };
	size_t left = N;

	for (int i = 0; i < N; i++) {
		char line[64];

		snprintf(line, sizeof(line), "sleep 0.%d; echo %d; exit %d", i % 5, i, i);
		x[i] = EXEC(sb, line);
	}
	while (left > 0) {
		struct pollfd fd = { carrel_sandbox_fd(sb), POLLIN, 0 };

		check(poll(&fd, 1, WAIT_MS) == 1);
		ok(carrel_sandbox_dispatch(sb, &err));
		for (int i = 0; i < N; i++) {
			struct carrel_result res;
			char text[16] = "", want[16];

			if (ended[i] || carrel_exec_wait(x[i], 0, &res, NULL) == -ETIMEDOUT)
				continue;
			snprintf(want, sizeof(want), "%d\n", i);
			check(res.exit_code == i);
			check(carrel_exec_read(x[i], 1, 0, text, sizeof(text) - 1, 0, &err) == (ssize_t)strlen(want));
			check(strcmp(text, want) == 0);
			ended[i] = true;
			left--;
		}
	}
	for (int i = 0; i < N; i++)
		carrel_exec_free(x[i]);
	carrel_sandbox_free(sb);
}

/* A timeout of 0 looks at what dispatch has taken: who dispatches and only ever looks sees the output and the end, too. */
static void looking_without_waiting(char **args UNUSED)
{
	struct carrel_sandbox *sb = START();
	struct carrel_exec *x = EXEC(sb, "sleep 0.1; echo seen");
	double deadline = now_ms() + WAIT_MS;
	struct carrel_result res;
	char buf[8];
	int r;

	while ((r = (int)carrel_exec_read(x, 1, 0, buf, sizeof(buf), 0, &err)) == -EAGAIN && now_ms() < deadline) {
		usleep(1000);
		ok(carrel_sandbox_dispatch(sb, &err));
	}
	check(r == 5);
	while ((r = carrel_exec_wait(x, 0, &res, &err)) == -ETIMEDOUT && now_ms() < deadline) {
		usleep(1000);
		ok(carrel_sandbox_dispatch(sb, &err));
	}
	check(r == 0 && res.exit_code == 0);
	carrel_exec_free(x);
	carrel_sandbox_free(sb);
}

/* Handles may be freed in any order; what is left of them answers, and does not crash. */
static void handles_in_any_order(char **args UNUSED)
{
	struct carrel_sandbox *sb = START();
	struct carrel_exec *x = EXEC(sb, "sleep 60"), *y = EXEC(sb, "echo kept"), *none = NULL;
	struct carrel_command *c = COMMAND("true");
	struct carrel_result res;
	struct carrel_stats stats;
	char buf[8];

	wait_for(y);
	ok(carrel_destroy(sb, &err));
	check(carrel_exec(sb, c, &none, &err) == -ECONNREFUSED && err.code == CARREL_ERROR_UNAVAILABLE && !none);
	check(carrel_exec_wait(x, WAIT_MS, &res, &err) == -ECONNREFUSED);
	check(carrel_exec_signal(x, SIGTERM, &err) == -ECONNREFUSED);
	check(carrel_exec_kill(x, &err) == -ECONNREFUSED);
	check(carrel_sandbox_dispatch(sb, &err) == -ECONNREFUSED);
	(void)carrel_stats(sb, &stats, &err);
	carrel_sandbox_free(sb);
	check(carrel_exec_wait(x, WAIT_MS, &res, &err) == -ECONNREFUSED && err.code == CARREL_ERROR_UNAVAILABLE);
	check(carrel_exec_go(x, &err) == -ECONNREFUSED);
	check(carrel_exec_read(x, 1, 0, buf, sizeof(buf), 100, &err) == -ECONNREFUSED);
	check(carrel_exec_read(y, 1, 0, buf, sizeof(buf), 0, &err) == 5);
	check(carrel_exec_wait(y, 0, &res, &err) == 0 && res.exit_code == 0);
	carrel_exec_free(x);
	carrel_exec_free(y);
	carrel_command_free(c);
}

const struct lib_case sandbox_cases[] = {
	{ "settings_are_checked", settings_are_checked, 0 },
	{ "refused_starts_leave_nothing", refused_starts_leave_nothing, 0 },
	{ "a_sandbox_from_start_to_end", a_sandbox_from_start_to_end, 0 },
	{ "every_outcome", every_outcome, 0 },
	{ "programs_that_cannot_run", programs_that_cannot_run, 0 },
	{ "output_from_any_offset", output_from_any_offset, 0 },
	{ "output_comes_as_it_is_written", output_comes_as_it_is_written, 0 },
	{ "what_is_left_running", what_is_left_running, 0 },
	{ "stdin_is_a_pipe", stdin_is_a_pipe, 0 },
	{ "streams_are_inherited", streams_are_inherited, 0 },
	{ "a_terminal_resizes", a_terminal_resizes, 0 },
	{ "held_until_go", held_until_go, 0 },
	{ "signals_and_kill", signals_and_kill, 0 },
	{ "the_same_key_is_the_same_exec", the_same_key_is_the_same_exec, 0 },
	{ "found_by_number", found_by_number, 0 },
	{ "an_event_loop", an_event_loop, 0 },
	{ "looking_without_waiting", looking_without_waiting, 0 },
	{ "handles_in_any_order", handles_in_any_order, 0 },
	{ NULL, NULL, 0 },
};
