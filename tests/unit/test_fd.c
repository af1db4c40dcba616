/* SPDX-License-Identifier: Apache-2.0 */
/* test_fd.c - Reads and writes are whole, survive signals, and leave errno alone */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

/* Kernel calls go around the C library, so MemorySanitizer does not see what they write: buffers here start defined. */

/* A memory file with @text in it. */
static int file_with(const char *text)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static const char *path_of(int fd)
{
	static char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return path;
}

struct drip {
	int fd;
	pthread_t to; /* whom to disturb with a signal */
	const char *text;
};

/* Write a text byte by byte, with a signal before each. */
static void *drip_run(void *data)
{
	const struct drip *d = data;

	for (const char *p = d->text; *p; p++) {
		(void)usleep(2000);
		(void)pthread_kill(d->to, SIGUSR1);
		(void)usleep(2000);
		if (write(d->fd, p, 1) != 1)
			break;
	}
	(void)close(d->fd);
	return NULL;
}

static void on_signal(int sig __attribute__((unused)))
{
}

TEST(a_read_gathers_pieces_through_signals)
{
	struct sigaction act = { .sa_handler = on_signal }; /* no SA_RESTART: read() answers EINTR */
	struct drip d = { .to = pthread_self(), .text = "drop by drop" };
	char buf[64] = { 0 };
	pthread_t thread;
	int p[2];

	assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	d.fd = p[1];
	assert_int_equal(pthread_create(&thread, NULL, drip_run, &d), 0);
	assert_int_equal(fd_read_full(p[0], buf, sizeof(buf)), 12);
	assert_string_equal(buf, "drop by drop");
	assert_int_equal(pthread_join(thread, NULL), 0);
	(void)close(p[0]);
}

TEST(a_read_stops_at_its_length)
{
	auto_close int fd = file_with("0123456789");
	char buf[5] = "....";

	assert_int_equal(fd_read_full(fd, buf, 4), 4);
	assert_string_equal(buf, "0123");
	assert_int_equal(fd_read_full(fd, buf, 0), 0);
}

TEST(failures_are_returned_and_errno_is_not_touched)
{
	char buf[4] = { 0 };

	errno = 4711;
	assert_int_equal(fd_read_full(-1, buf, 4), -EBADF);
	assert_int_equal(fd_write_full(-1, buf, 4), -EBADF);
	assert_int_equal(fd_write_full(-1, buf, 0), 0);
	assert_int_equal(fd_write_file_at(AT_FDCWD, "/nonexistent/file", "x"), -ENOENT);
	assert_int_equal(fd_read_file_at(AT_FDCWD, "/nonexistent/file", buf, 4), -ENOENT);
	assert_int_equal(fd_cloexec_from3(-1), -EBADF);
	assert_int_equal(errno, 4711);
}

static void *drain_run(void *data)
{
	const struct drip *d = data;
	char buf[1000];

	for (ssize_t n = 1; n > 0; n = read(d->fd, buf, sizeof(buf)))
		(void)pthread_kill(d->to, SIGUSR1);
	return NULL;
}

TEST(a_write_larger_than_the_pipe_is_whole_in_spite_of_signals)
{
	static const char big[300000] = "x";
	struct sigaction act = { .sa_handler = on_signal };
	struct drip d = { .to = pthread_self() };
	pthread_t thread;
	int p[2];

	assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	d.fd = p[0];
	assert_int_equal(pthread_create(&thread, NULL, drain_run, &d), 0);
	assert_int_equal(fd_write_full(p[1], big, sizeof(big)), 0);
	(void)close(p[1]);
	assert_int_equal(pthread_join(thread, NULL), 0);
	(void)close(p[0]);
}

TEST(a_write_to_nobody_is_epipe)
{
	int p[2];

	assert_true(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	(void)close(p[0]);
	assert_int_equal(fd_write_full(p[1], "x", 1), -EPIPE);
	(void)close(p[1]);
}

TEST(a_kernel_file_is_written_in_place_and_never_made)
{
	auto_close int fd = file_with("old text");
	char buf[32] = { 0 };

	assert_int_equal(fd_write_file_at(AT_FDCWD, path_of(fd), "new"), 0);
	assert_int_equal(fd_read_file_at(AT_FDCWD, path_of(fd), buf, sizeof(buf)), 8);
	assert_string_equal(buf, "new text");
	assert_int_equal(fd_write_file_at(AT_FDCWD, "/dev/shm/carrel-test-no-such-file", "x"), -ENOENT);
	assert_int_equal(access("/dev/shm/carrel-test-no-such-file", F_OK), -1);
}

TEST(the_kernels_refusal_of_a_value_is_returned)
{
	assert_int_equal(fd_write_file_at(AT_FDCWD, "/proc/self/oom_score_adj", "rubbish"), -EINVAL);
}

TEST(a_small_file_is_read_whole_or_not_at_all)
{
	static const struct {
		const char *text;
		size_t size;
		ssize_t r;
	} cases[] = {
		{ "", 1, 0 },    { "", 0, -EFBIG }, /* no room for the NUL */
		{ "abc", 4, 3 }, { "abc", 3, -EFBIG }, { "abc", 1, -EFBIG },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_close int fd = file_with(cases[i].text);
		char buf[8] = "#######";

		EXPECT_INT(cases[i].text, fd_read_file_at(AT_FDCWD, path_of(fd), buf, cases[i].size), cases[i].r);
		EXPECT_INT(cases[i].text, buf[cases[i].size], '#');
		if (cases[i].r >= 0)
			assert_string_equal(buf, cases[i].text);
	}
}

TEST(a_duplicate_lies_above_the_standard_descriptors_and_is_not_inherited)
{
	auto_close int fd = fd_cloexec_from3(STDIN_FILENO);

	assert_true(fd >= 3);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_read_gathers_pieces_through_signals),
		cmocka_unit_test(a_read_stops_at_its_length),
		cmocka_unit_test(failures_are_returned_and_errno_is_not_touched),
		cmocka_unit_test(a_write_larger_than_the_pipe_is_whole_in_spite_of_signals),
		cmocka_unit_test(a_write_to_nobody_is_epipe),
		cmocka_unit_test(a_kernel_file_is_written_in_place_and_never_made),
		cmocka_unit_test(the_kernels_refusal_of_a_value_is_returned),
		cmocka_unit_test(a_small_file_is_read_whole_or_not_at_all),
		cmocka_unit_test(a_duplicate_lies_above_the_standard_descriptors_and_is_not_inherited),
	};

	return RUN(tests);
}
