/* SPDX-License-Identifier: Apache-2.0 */
/* test_init_clients.c - Several clients of one init: late ones, silent ones, rude ones, and the owner's death
 *
 * Theory of operation. See init_box.h. */
#include "init_box.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "test.h"

#define ARGV(...) ((const char *[]){ __VA_ARGS__, NULL })
#define SH(script) ARGV("/bin/sh", "-c", script)

static struct box box;

static int open_box(void **state)
{
	(void)state;
	box = (struct box){ .sock = -EBADF };
	box_open(&box);
	return 0;
}

static int open_dying_box(void **state)
{
	(void)state;
	box = (struct box){ .sock = -EBADF, .flags = CONFIG_DIE_WITH_OWNER };
	box_open(&box);
	return 0;
}

static int close_box(void **state)
{
	(void)state;
	box_close(&box);
	return 0;
}

static int connect_raw(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", box.listen_path);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void expect_closed(int fd)
{
	struct msg_packet p;

	while (packet_next(fd, &p))
		msg_packet_done(&p);
	(void)close(fd);
}

static struct msg_exec exec_get(struct msg_packet *p, int *ret_fd)
{
	struct msg_exec m;

	assert_int_equal(msg_exec_get(p->body, &m), 0);
	if (ret_fd)
		*ret_fd = p->num_fds > 0 ? take_fd(p->fds[0]) : -EBADF;
	return m;
}

TEST(a_later_client_finds_execs_that_run_and_that_ended)
{
	struct msg_start done = { .exec = 5, .key = "five", .argv = SH("echo x; exit 9") };
	struct msg_start m = { .exec = 6, .flags = START_STDIN_PIPE, .argv = ARGV("cat") };
	auto_buf struct buf body = BUF_INIT(64);
	struct seen s, s6 = { .fd = -EBADF };
	struct msg_packet p;
	struct msg_exec x;
	int fd, input;

	run(&box, &done, &s, NULL, NULL);
	start_send(&box, &m, NULL, 0);
	start_wait(box.sock, 6, false, &s6);
	(void)close(s6.fd);
	(void)close(box.sock); /* whoever started it is gone */
	box.sock = -EBADF;
	fd = box_connect(&box);
	packet_send(fd, MSG_LIST, 9, NULL, NULL, 0);
	p = packet_expect(fd, MSG_EXEC);
	x = exec_get(&p, NULL);
	assert_int_equal(x.end.exec, 5);
	assert_string_equal(x.key, "five");
	assert_int_equal(x.end.outcome, OUTCOME_EXITED);
	assert_int_equal(x.end.code, 9);
	assert_int_equal(x.end.out_bytes, 2);
	msg_packet_done(&p);
	p = packet_expect(fd, MSG_EXEC);
	x = exec_get(&p, NULL);
	assert_int_equal(x.end.exec, 6);
	assert_int_equal(x.end.outcome, OUTCOME_RUNNING);
	assert_int_equal(x.pid, s6.started.pid);
	msg_packet_done(&p);
	p = packet_expect(fd, MSG_OK);
	msg_packet_done(&p);
	msg_exec_ref_put(&body, &(struct msg_exec_ref){ 6 });
	packet_send(fd, MSG_ATTACH, 10, &body, NULL, 0);
	p = packet_expect(fd, MSG_EXEC);
	(void)exec_get(&p, &input);
	msg_packet_done(&p);
	assert_true(input >= 0);
	request_ref(fd, MSG_STDIN_CLOSE, 6, MSG_OK);
	(void)close(input);
	start_wait(fd, 6, true, &s6);
	assert_int_equal(s6.ended.outcome, OUTCOME_EXITED);
	(void)close(fd);
}

TEST(attaching_to_what_has_ended_tells_its_end)
{
	struct msg_start done = { .exec = 5, .argv = SH("echo x; exit 9") };
	auto_buf struct buf body = BUF_INIT(64);
	struct seen s, s2 = { .started.exec = 5 };
	struct msg_packet p;
	int fd;

	run(&box, &done, &s, NULL, NULL);
	fd = box_connect(&box);
	msg_exec_ref_put(&body, &(struct msg_exec_ref){ 5 });
	packet_send(fd, MSG_ATTACH, 10, &body, NULL, 0);
	p = packet_expect(fd, MSG_EXEC);
	msg_packet_done(&p);
	start_wait(fd, 5, true, &s2);
	assert_int_equal(s2.ended.code, 9);
	assert_int_equal(s2.ends[0], 2);
	assert_true(s2.eof[0]);
	(void)close(fd);
}

TEST(a_client_that_never_reads_is_not_waited_for)
{
	struct msg_start flood = { .exec = 1, .argv = SH("i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done") };
	struct seen s;
	int fd = box_connect(&box);
	unsigned sent = 0, got = 0;
	struct stat st;
	int out;

	/* Requests until its socket takes no more, unanswered ones included. */
	while (msg_send(fd, MSG_LIST, ++sent, NULL, NULL, 0, MSG_DONTWAIT) == 0 && sent < 100000)
		;
	assert_true(sent > 10);
	for (uint64_t i = 1; i <= 20; i++) {
		flood.exec = i;
		run(&box, &flood, &s, &out, NULL);
		assert_int_equal(s.ended.outcome, OUTCOME_EXITED);
		assert_int_equal(fstat(out, &st), 0);
		assert_int_equal(st.st_size, 13890);
		(void)close(out);
	}
	/* It may still read everything. */
	while (got < sent - 1) {
		struct msg_packet p;

		assert_true(packet_next(fd, &p));
		got += p.h.type == MSG_OK;
		msg_packet_done(&p);
	}
	(void)close(fd);
}

TEST(a_subscriber_that_does_not_read_gets_the_latest_when_it_does)
{
	struct msg_start m = { .exec = 1,
			       .flags = START_STDIN_PIPE | START_OUT_SPOOL,
			       .argv = SH("read x; i=0; while [ $i -lt 4000 ]; do echo $i; i=$((i+1)); done") };
	auto_buf struct buf body = BUF_INIT(64);
	struct seen s = { .fd = -EBADF }, s2 = { .started.exec = 1 };
	struct msg_packet p;
	int fd = box_connect(&box), out = spool_new();
	int small = 1;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	start_send(&box, &m, &out, 1);
	start_wait(box.sock, 1, false, &s);
	msg_exec_ref_put(&body, &(struct msg_exec_ref){ 1 });
	packet_send(fd, MSG_ATTACH, 10, &body, NULL, 0);
	p = packet_expect(fd, MSG_EXEC);
	msg_packet_done(&p);
	assert_int_equal(write(s.fd, "\n", 1), 1);
	start_wait(box.sock, 1, true, &s);
	start_wait(fd, 1, true, &s2);
	assert_int_equal(s2.ends[0], s.ended.out_bytes);
	assert_true(s2.eof[0]);
	(void)close(fd);
	(void)close(out);
}

TEST(who_breaks_the_protocol_is_closed_and_others_are_not)
{
	auto_buf struct buf junk = BUF_INIT(64);
	struct msg_start m = { .exec = 1, .argv = ARGV("true") };
	struct seen s;
	int fd = connect_raw();

	packet_send(fd, MSG_LIST, 1, NULL, NULL, 0); /* before HELLO */
	expect_closed(fd);
	fd = connect_raw();
	assert_int_equal(send(fd, "nonsense-nonsense", 17, 0), 17);
	expect_closed(fd);
	fd = box_connect(&box);
	packet_send(fd, MSG_HELLO, 1, NULL, NULL, 0); /* twice */
	expect_closed(fd);
	fd = box_connect(&box);
	(void)buf_puts(&junk, "eightbyt");
	packet_send(fd, MSG_SIGNAL, 1, &junk, NULL, 0); /* short */
	expect_closed(fd);
	fd = box_connect(&box);
	packet_send(fd, MSG_OUTPUT, 1, NULL, NULL, 0); /* an answer is no request */
	expect_closed(fd);
	run(&box, &m, &s, NULL, NULL);
	assert_int_equal(s.ended.outcome, OUTCOME_EXITED);
}

TEST(a_silent_connection_is_closed_after_a_while)
{
	uint64_t start = clock_ns();

	expect_closed(connect_raw());
	assert_true(clock_ns() - start > 4 * NSEC_PER_SEC);
}

TEST(too_many_connections_are_closed_and_places_come_back)
{
	int fds[64];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = box_connect(&box);
	expect_closed(connect_raw());
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		(void)close(fds[i]);
	(void)usleep(50000);
	(void)close(box_connect(&box));
}

TEST(many_starts_at_once_are_all_answered)
{
	enum { N = 300 };
	unsigned started = 0, ended = 0;

	for (uint64_t i = 1; i <= N; i++) {
		struct msg_start m = { .exec = i, .argv = ARGV("true") };
		struct msg_packet p;
		struct pollfd r = { .fd = box.sock, .events = POLLIN };

		start_send(&box, &m, NULL, 0);
		while (poll(&r, 1, 0) == 1 && packet_next(box.sock, &p)) {
			started += p.h.type == MSG_STARTED;
			ended += p.h.type == MSG_ENDED;
			msg_packet_done(&p);
		}
	}
	while (ended < N) {
		struct msg_packet p;

		assert_true(packet_next(box.sock, &p));
		started += p.h.type == MSG_STARTED;
		ended += p.h.type == MSG_ENDED;
		msg_packet_done(&p);
	}
	assert_int_equal(started, N);
}

TEST(ended_execs_are_forgotten_oldest_first)
{
	struct msg_start m = { .argv = ARGV("/bin/true") };
	unsigned count = 0;
	uint64_t first = 0;

	for (uint64_t i = 1; i <= 1100; i++) {
		struct seen s = { .fd = -EBADF };

		m.exec = i;
		start_send(&box, &m, NULL, 0);
		start_wait(box.sock, i, true, &s);
	}
	packet_send(box.sock, MSG_LIST, 3, NULL, NULL, 0);
	for (;;) {
		struct msg_packet p;
		struct msg_exec x;
		bool last;

		assert_true(packet_next(box.sock, &p));
		last = p.h.type == MSG_OK;
		if (!last) {
			assert_int_equal(msg_exec_get(p.body, &x), 0);
			first = first ? first : x.end.exec;
			count++;
		}
		msg_packet_done(&p);
		if (last)
			break;
	}
	assert_in_range(count, 1024, 1025);
	assert_int_equal(first, 1100 - count + 1);
}

/* One record of a journal at *@at. */
static struct msg_exec record_next(const unsigned char *bytes, size_t len, size_t *at)
{
	struct wire_in in = WIRE_IN(bytes + *at, len - *at);
	size_t size = wire_u32(&in);
	struct msg_exec x;

	assert_true(size <= in.left);
	in.left = size;
	assert_int_equal(msg_exec_get(in, &x), 0);
	*at += 4 + size;
	return x;
}

TEST(the_journal_tells_starts_and_ends_but_not_failures)
{
	static const char *const scripts[] = { "exit 4", "kill -9 $$" };
	unsigned char bytes[2048];
	int journal = spool_new();
	struct msg_start bad = { .exec = 9, .argv = ARGV("/no/such") };
	struct seen s;
	size_t at = 0;
	ssize_t n;

	box = (struct box){ .sock = -EBADF, .flags = CONFIG_FD_JOURNAL, .fds = { journal }, .num_fds = 1 };
	assert_int_equal(fcntl(journal, F_SETFL, O_APPEND), 0);
	box_open(&box);
	run(&box, &bad, &s, NULL, NULL);
	for (uint64_t i = 0; i < ARRAY_SIZE(scripts); i++) {
		struct msg_start m = { .exec = i + 1, .key = i == 0 ? "first" : "", .argv = SH(scripts[i]) };

		run(&box, &m, &s, NULL, NULL);
	}
	n = pread(journal, bytes, sizeof(bytes), 0);
	assert_true(n > 0);
	for (uint64_t i = 0; i < ARRAY_SIZE(scripts); i++) {
		struct msg_exec start = record_next(bytes, (size_t)n, &at);
		struct msg_exec end = record_next(bytes, (size_t)n, &at);

		assert_int_equal(start.end.exec, i + 1);
		assert_int_equal(start.end.outcome, OUTCOME_RUNNING);
		assert_string_equal(start.key, i == 0 ? "first" : "");
		assert_int_equal(end.end.exec, i + 1);
		assert_int_equal(end.end.outcome, i == 0 ? OUTCOME_EXITED : OUTCOME_SIGNALLED);
	}
	assert_int_equal(at, n);
	(void)close(journal);
	box_close(&box);
}

TEST(without_die_with_owner_commands_go_on)
{
	struct msg_start m = { .exec = 1, .flags = START_OUT_SPOOL, .argv = SH("sleep 0.3; echo done") };
	struct seen s = { .fd = -EBADF }, s2 = { .started.exec = 1 };
	auto_buf struct buf body = BUF_INIT(64);
	struct msg_packet p;
	int out = spool_new(), fd;

	start_send(&box, &m, &out, 1);
	start_wait(box.sock, 1, false, &s);
	(void)close(box.sock);
	box.sock = -EBADF;
	fd = box_connect(&box);
	msg_exec_ref_put(&body, &(struct msg_exec_ref){ 1 });
	packet_send(fd, MSG_ATTACH, 10, &body, NULL, 0);
	p = packet_expect(fd, MSG_EXEC);
	msg_packet_done(&p);
	start_wait(fd, 1, true, &s2);
	assert_string_equal(spool_text(out), "done\n");
	(void)close(fd);
	(void)close(out);
}

TEST(with_die_with_owner_everything_ends_at_once)
{
	struct msg_start m = { .exec = 1,
			       .flags = START_OUT_FD,
			       .argv = SH("trap '' TERM HUP; setsid sleep 1000 & sleep 1000") };
	struct seen s = { .fd = -EBADF };
	int fds[2], status;
	uint64_t start;
	char byte;

	assert_int_equal(pipe(fds), 0);
	start_send(&box, &m, &fds[1], 1);
	(void)close(fds[1]);
	start_wait(box.sock, 1, false, &s);
	start = clock_ns();
	(void)close(box.sock);
	box.sock = -EBADF;
	assert_int_equal(read(fds[0], &byte, 1), 0); /* the last process that held the pipe is gone */
	assert_int_equal(waitpid(box.pid, &status, 0), box.pid);
	box.pid = 0;
	assert_true(clock_ns() - start < NSEC_PER_SEC);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	(void)close(fds[0]);
}

TEST(init_cannot_be_signalled_or_traced_from_inside)
{
	struct msg_start m = {
		.exec = 1,
		.argv = SH(
			"for s in 1 2 3 9 11 13 15 17 19 34 64; do kill -$s 1; done; ls -l /proc/1/fd 2>&1 | tail -1; "
			"cat /proc/1/environ 2>&1; strace -p 1 -o /dev/null 2>&1 | grep -o 'not permitted'")
	};
	struct seen s;
	int out;

	run(&box, &m, &s, &out, NULL);
	if (!strstr(spool_text(out), "ermission denied"))
		fail_msg("%s", spool_text(out));
	m = (struct msg_start){ .exec = 2, .argv = ARGV("true") };
	run(&box, &m, &s, NULL, NULL);
	assert_int_equal(s.ended.code, 0);
	(void)close(out);
}

/* One random request on @sock; whatever it does, it is in the protocol. */
static void random_request(int sock, unsigned *seed)
{
	static const char *const scripts[] = {
		"true",       "exit 3",     "sleep 0.01; echo x",  "cat",    "(sleep 0.02; echo y) & echo z",
		"kill -9 $$", "seq 1 3000", "setsid sleep 0.05 &", "sleep 5"
	};
	static const uint32_t flags[] = { 0,
					  START_HOLD,
					  START_STDIN_PIPE,
					  START_PTY,
					  START_OUT_SPOOL,
					  START_OUT_SPOOL | START_PTY,
					  START_OUT_SPOOL | START_HOLD | START_STDIN_PIPE,
					  START_OUT_FD };
	auto_buf struct buf body = BUF_INIT(MSG_INLINE_MAX);
	uint64_t exec = 1 + (uint64_t)rand_r(seed) % 40;
	static const char *none[] = { NULL };
	struct msg_start m = { .exec = exec, .user = "", .cwd = "/", .env = none };
	char key[16] = "";
	auto_close int spool = -EBADF;
	enum msg_type type = MSG_START;

	switch (rand_r(seed) % 9) {
	case 0:
		type = MSG_GO;
		msg_exec_ref_put(&body, &(struct msg_exec_ref){ exec });
		break;
	case 1:
		type = MSG_STDIN_CLOSE;
		msg_exec_ref_put(&body, &(struct msg_exec_ref){ exec });
		break;
	case 2:
		type = MSG_ATTACH;
		msg_exec_ref_put(&body, &(struct msg_exec_ref){ exec });
		break;
	case 3:
		type = MSG_LIST;
		break;
	case 4:
		type = MSG_RESIZE;
		msg_resize_put(&body, &(struct msg_resize){ exec, 5, 6 });
		break;
	case 5:
		type = MSG_SIGNAL;
		msg_signal_put(&body, &(struct msg_signal){ exec, SIGKILL, (uint32_t)rand_r(seed) % SCOPE_NUM });
		break;
	default:
		if (rand_r(seed) % 2)
			(void)snprintf(key, sizeof(key), "k%u", (unsigned)rand_r(seed) % 10);
		m.key = key;
		m.flags = flags[(unsigned)rand_r(seed) % ARRAY_SIZE(flags)];
		m.argv = SH(scripts[(unsigned)rand_r(seed) % ARRAY_SIZE(scripts)]);
		m.timeout_ns = rand_r(seed) % 2 ? (uint64_t)rand_r(seed) % (50 * NSEC_PER_MSEC) : 0;
		m.output_max = rand_r(seed) % 2 ? (uint64_t)rand_r(seed) % 4000 : 0;
		msg_start_put(&body, &m);
		if (m.flags & (START_OUT_SPOOL | START_OUT_FD))
			spool = spool_new();
	}
	(void)!msg_send(sock, type, 1, &body, &spool, spool >= 0 ? 1 : 0, MSG_DONTWAIT);
}

/* CARREL_TEST_SEED repeats a run. */
TEST(random_requests_of_clients_that_come_and_go_leave_init_whole)
{
	const char *text = getenv("CARREL_TEST_SEED");
	unsigned seed = text ? (unsigned)strtoul(text, NULL, 10) : (unsigned)clock_ns();
	struct msg_start m = { .exec = 1000, .argv = ARGV("true") };
	int fds[4];
	struct seen s;

	print_message("seed %u\n", seed);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = box_connect(&box);
	for (unsigned n = 0; n < 4000; n++) {
		size_t i = (size_t)rand_r(&seed) % ARRAY_SIZE(fds);
		struct pollfd r = { .fd = fds[i], .events = POLLIN };
		struct msg_packet p;

		random_request(fds[i], &seed);
		for (unsigned k = (unsigned)rand_r(&seed) % 8; k > 0 && poll(&r, 1, 0) == 1 && packet_next(fds[i], &p);
		     k--)
			msg_packet_done(&p);
		if (rand_r(&seed) % 100 == 0) {
			(void)close(fds[i]);
			fds[i] = box_connect(&box);
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		(void)close(fds[i]);
	run(&box, &m, &s, NULL, NULL);
	assert_int_equal(s.ended.outcome, OUTCOME_EXITED);
}

/* Open a box in which /etc/passwd is another file, and have an exec look it up. */
static void passwd_is(const char *path, struct seen *s)
{
	struct msg_start m = { .exec = 1, .user = "games", .argv = ARGV("true"), .timeout_ns = NSEC_PER_SEC };
	struct msg_start other = { .exec = 2, .argv = ARGV("true") };
	struct seen s2;

	box = (struct box){ .sock = -EBADF, .covered = "/etc/passwd", .cover = path };
	box_open(&box);
	run(&box, &m, s, NULL, NULL);
	run(&box, &other, &s2, NULL, NULL);
	assert_int_equal(s2.ended.outcome, OUTCOME_EXITED);
	box_close(&box);
}

TEST(a_hostile_passwd_file_stops_nobody)
{
	char fifo[] = "/tmp/carrel-fifo-XXXXXX", big[] = "/tmp/carrel-big-XXXXXX";
	struct seen s;
	int fd = mkstemp(fifo);

	(void)close(fd);
	(void)unlink(fifo);
	assert_int_equal(mkfifo(fifo, 0644), 0);
	passwd_is(fifo, &s);
	assert_int_equal(s.failed.code, ERR_INVALID);
	(void)unlink(fifo);
	fd = mkstemp(big);
	assert_int_equal(fchmod(fd, 0644), 0);
	assert_int_equal(ftruncate(fd, (off_t)GIB(10)), 0);
	passwd_is(big, &s);
	assert_int_equal(s.failed.code, ERR_EXHAUSTED);
	assert_int_equal(ftruncate(fd, MIB(1)), 0);
	passwd_is(big, &s);
	assert_int_equal(s.failed.code, ERR_INVALID);
	(void)unlink(big);
	(void)close(fd);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, open_box, close_box)
	const struct CMUnitTest tests[] = {
		CASE(a_later_client_finds_execs_that_run_and_that_ended),
		CASE(attaching_to_what_has_ended_tells_its_end),
		CASE(a_client_that_never_reads_is_not_waited_for),
		CASE(a_subscriber_that_does_not_read_gets_the_latest_when_it_does),
		CASE(who_breaks_the_protocol_is_closed_and_others_are_not),
		CASE(a_silent_connection_is_closed_after_a_while),
		CASE(too_many_connections_are_closed_and_places_come_back),
		CASE(many_starts_at_once_are_all_answered),
		CASE(ended_execs_are_forgotten_oldest_first),
		CASE(without_die_with_owner_commands_go_on),
		cmocka_unit_test_setup_teardown(with_die_with_owner_everything_ends_at_once, open_dying_box, close_box),
		CASE(init_cannot_be_signalled_or_traced_from_inside),
		CASE(random_requests_of_clients_that_come_and_go_leave_init_whole),
		cmocka_unit_test(the_journal_tells_starts_and_ends_but_not_failures),
		cmocka_unit_test(a_hostile_passwd_file_stops_nobody),
	};

	return RUN(tests);
}
