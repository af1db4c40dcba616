/* SPDX-License-Identifier: Apache-2.0 */
/* test_sock.c - Packets arrive whole with their descriptors, or not at all and without any
 *
 * Theory of operation. Each test has a socket pair of its own. The hostile peer is sendmsg() with any bytes and any descriptors. Whatever a
 * test does, the number of this process's open descriptors is the same before and after it: setup and teardown count them, so that a
 * descriptor that a refusal forgot fails the test. */
#include "wire/sock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "test.h"

#ifndef MFD_HUGETLB
#define MFD_HUGETLB 4u
#endif
#define ALL_SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)
#define LARGE (MSG_INLINE_MAX + 1) /* bytes of the smallest body that needs a memfd */

/*
 * malloc() and mmap() of the code under test fail while these are set (the program is linked with --wrap for both). Meson asks for 64-bit
 * file offsets, with which glibc's mmap() is mmap64().
 */
static bool no_memory, no_mapping;
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_mmap64(void *at, size_t len, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t len, int prot, int flags, int fd, off_t offset);

void *__wrap_malloc(size_t size)
{
	return no_memory ? NULL : __real_malloc(size);
}

void *__wrap_mmap64(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (!no_mapping)
		return __real_mmap64(at, len, prot, flags, fd, offset);
	errno = ENOMEM;
	return MAP_FAILED;
}

static int near = -EBADF, far = -EBADF; /* the two ends */
static int fds_before;

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

static int setup(void **state __attribute__((unused)))
{
	int s[2];

	fds_before = count_fds();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s) < 0)
		return -1;
	near = s[0];
	far = s[1];
	return 0;
}

static void shut(int *fd)
{
	close_p(fd);
	*fd = -EBADF;
}

static int teardown(void **state __attribute__((unused)))
{
	shut(&near);
	shut(&far);
	return count_fds() == fds_before ? 0 : -1;
}

/* What a peer without manners does: any bytes, any descriptors. */
static void send_raw(const void *bytes, size_t len, const int *fds, size_t num_fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * 253)]; /* SCM_MAX_FD */
	} control = { 0 };
	struct iovec iov = { .iov_len = len };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };

	memcpy(&iov.iov_base, &bytes, sizeof(bytes)); /* sendmsg() does not write, iovec cannot say so */
	if (num_fds > 0) {
		h.msg_control = &control;
		h.msg_controllen = CMSG_SPACE(num_fds * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(num_fds * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, num_fds * sizeof(int));
	}
	assert_int_equal(sendmsg(near, &h, MSG_NOSIGNAL), (ssize_t)len);
}

static void send_header(const struct msg_header *head, const int *fds, size_t num_fds)
{
	unsigned char bytes[MSG_HEADER_SIZE];

	msg_header_put(bytes, head);
	send_raw(bytes, sizeof(bytes), fds, num_fds);
}

/* Nothing of a refused packet is left in the caller's struct. */
static void expect_refused(const char *row)
{
	auto_(msg_packet_done) struct msg_packet p;

	EXPECT_INT(row, msg_recv(far, MSG_DONTWAIT, &p), -EPROTO);
	assert_int_equal(p.num_fds, 0);
	assert_null(p.storage);
}

static int memfd_of(size_t len, unsigned flags, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd < 0)
		return -errno;
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

TEST(a_packet_without_a_body_arrives)
{
	auto_(msg_packet_done) struct msg_packet p;

	assert_int_equal(msg_send(near, MSG_OK, 7, NULL, NULL, 0, 0), 0);
	assert_int_equal(msg_recv(far, 0, &p), 1);
	assert_int_equal(p.h.type, MSG_OK);
	assert_int_equal(p.h.serial, 7);
	assert_int_equal(p.num_fds, 0);
	assert_true(wire_done(&p.body));
}

TEST(a_body_arrives)
{
	auto_buf struct buf body = BUF_INIT(MSG_BODY_MAX);
	auto_(msg_packet_done) struct msg_packet p;
	struct msg_signal m;

	msg_signal_put(&body, &(struct msg_signal){ 5, 9, SCOPE_TREE });
	assert_int_equal(msg_send(near, MSG_SIGNAL, 1, &body, NULL, 0, 0), 0);
	assert_int_equal(msg_recv(far, 0, &p), 1);
	assert_int_equal(msg_signal_get(p.body, &m), 0);
	assert_true(m.exec == 5 && m.sig == 9 && m.scope == SCOPE_TREE);
}

TEST(bodies_up_to_the_limit_are_inline_and_larger_ones_are_mapped)
{
	static const size_t sizes[] = { 1, 4096, MSG_INLINE_MAX - 1, MSG_INLINE_MAX, LARGE, MIB(1), MSG_BODY_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		auto_(msg_packet_done) struct msg_packet p;
		auto_free char *bytes = malloc(sizes[i]);
		struct buf body = { .p = bytes, .len = sizes[i] };

		assert_non_null(bytes);
		for (size_t at = 0; at < sizes[i]; at++)
			bytes[at] = (char)(at * 7 + at / 251);
		assert_int_equal(msg_send(near, MSG_START, 1, &body, NULL, 0, 0), 0);
		assert_int_equal(msg_recv(far, 0, &p), 1);
		assert_int_equal(p.body.left, sizes[i]);
		assert_memory_equal(p.body.p, bytes, sizes[i]);
		assert_int_equal(p.mapped, sizes[i] > MSG_INLINE_MAX ? sizes[i] : 0);
		assert_int_equal(p.num_fds, 0); /* the one that carried the body is gone */
	}
}

static bool same_file(int a, int b)
{
	struct stat sa, sb;

	assert_int_equal(fstat(a, &sa) | fstat(b, &sb), 0);
	return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

TEST(descriptors_arrive_in_order_and_are_not_inherited)
{
	static const size_t sizes[] = { 8, LARGE };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		auto_(msg_packet_done) struct msg_packet p;
		auto_free char *bytes = calloc(1, sizes[i]);
		struct buf body = { .p = bytes, .len = sizes[i] };
		int fds[MSG_FDS_MAX - 1];

		for (size_t n = 0; n < ARRAY_SIZE(fds); n++)
			fds[n] = memfd_of(n, 0, 0);
		assert_int_equal(msg_send(near, MSG_START, 1, &body, fds, ARRAY_SIZE(fds), 0), 0);
		assert_int_equal(msg_recv(far, 0, &p), 1);
		assert_int_equal(p.num_fds, ARRAY_SIZE(fds));
		for (size_t n = 0; n < ARRAY_SIZE(fds); n++) {
			assert_true(same_file(fds[n], p.fds[n]));
			assert_int_equal(fcntl(p.fds[n], F_GETFD), FD_CLOEXEC);
			shut(&fds[n]);
		}
	}
}

TEST(a_descriptor_that_was_taken_stays_open)
{
	struct msg_packet p;
	auto_close int fd = -EBADF;

	assert_int_equal(msg_send(near, MSG_OK, 1, NULL, &near, 1, 0), 0);
	assert_int_equal(msg_recv(far, 0, &p), 1);
	fd = take_fd(p.fds[0]);
	msg_packet_done(&p);
	msg_packet_done(&p); /* may be repeated */
	assert_true(fcntl(fd, F_GETFD) >= 0);
}

TEST(an_inline_packet_may_be_full_of_descriptors)
{
	auto_(msg_packet_done) struct msg_packet p;
	int fds[MSG_FDS_MAX];

	for (size_t i = 0; i < MSG_FDS_MAX; i++)
		fds[i] = near;
	assert_int_equal(msg_send(near, MSG_OK, 1, NULL, fds, MSG_FDS_MAX, 0), 0);
	assert_int_equal(msg_recv(far, 0, &p), 1);
	assert_int_equal(p.num_fds, MSG_FDS_MAX);
}

TEST(what_else_the_kernel_attaches_is_no_descriptor)
{
	auto_(msg_packet_done) struct msg_packet p;
	int on = 1;

	assert_int_equal(setsockopt(far, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
	assert_int_equal(msg_send(near, MSG_OK, 1, NULL, NULL, 0, 0), 0);
	assert_int_equal(msg_recv(far, 0, &p), 1);
	assert_int_equal(p.num_fds, 0);
}

TEST(what_cannot_be_a_packet_is_not_sent)
{
	auto_buf struct buf body = BUF_INIT(100), overflown = BUF_INIT(1);
	auto_free char *bytes = calloc(1, MSG_BODY_MAX + 1);
	struct buf large = { .p = bytes, .len = LARGE }, huge = { .p = bytes, .len = MSG_BODY_MAX + 1 };
	int fds[MSG_FDS_MAX + 1];
	struct msg_packet p;

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = near;
	wire_put_u8(&body, 1);
	wire_put_u32(&overflown, 1);
	assert_int_equal(msg_send(near, MSG_START, 1, &overflown, NULL, 0, 0), -EMSGSIZE);
	assert_int_equal(msg_send(near, MSG_OK, 1, &body, NULL, 0, 0), -EMSGSIZE);
	assert_int_equal(msg_send(near, MSG_START, 1, &huge, NULL, 0, 0), -EMSGSIZE);
	assert_int_equal(msg_send(near, MSG_OK, 1, NULL, fds, MSG_FDS_MAX + 1, 0), -EINVAL);
	assert_int_equal(msg_send(near, MSG_START, 1, &large, fds, MSG_FDS_MAX, 0), -EINVAL);
	assert_int_equal(msg_recv(far, MSG_DONTWAIT, &p), -EAGAIN);
}

TEST(a_malformed_packet_is_refused_and_its_descriptors_are_closed)
{
	/* clang-format off */
	static const struct {
		const char *name;
		const char *bytes;
		size_t len;
	} rows[] = {
		{ "one byte", "\3", 1 },
		{ "header cut off", "\3\0\0\0" "\1\0\0\0" "\0\0\0", 11 },
		{ "unknown type", "\13\0\0\0" "\1\0\0\0" "\0\0\0\0", 12 },
		{ "unknown flag", "\3\0\2\0" "\1\0\0\0" "\0\0\0\0", 12 },
		{ "body where none is", "\3\0\0\0" "\1\0\0\0" "\1\0\0\0x", 13 },
		{ "bytes behind the body", "\3\0\0\0" "\1\0\0\0" "\0\0\0\0x", 13 },
		{ "body cut off", "\6\0\0\0" "\1\0\0\0" "\10\0\0\0xxxx", 16 },
		{ "body missing", "\6\0\0\0" "\1\0\0\0" "\10\0\0\0", 12 },
		{ "small body in a descriptor", "\6\0\1\0" "\1\0\0\0" "\10\0\0\0", 12 },
		{ "no body in a descriptor", "\3\0\1\0" "\1\0\0\0" "\0\0\0\0", 12 },
		{ "large body that is nowhere", "\4\0\0\0" "\1\0\0\0" "\1\0\1\0", 12 },
		{ "large body that is no memfd", "\4\0\1\0" "\1\0\0\0" "\1\0\1\0", 12 },
		{ "body in both places", "\4\0\1\0" "\1\0\0\0" "\1\0\1\0x", 13 },
		{ "longer than any body", "\4\0\1\0" "\1\0\0\0" "\1\0\200\0", 12 },
	};
	/* clang-format on */
	const int fds[] = { near, STDIN_FILENO };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		send_raw(rows[i].bytes, rows[i].len, fds, ARRAY_SIZE(fds));
		expect_refused(rows[i].name);
		send_raw(rows[i].bytes, rows[i].len, NULL, 0);
		expect_refused(rows[i].name);
	}
}

TEST(an_empty_packet_is_the_end_unless_it_brings_descriptors)
{
	struct msg_packet p;

	send_raw("", 0, NULL, 0);
	assert_int_equal(msg_recv(far, MSG_DONTWAIT, &p), 0);
	send_raw("", 0, &near, 1);
	expect_refused("empty with a descriptor");
}

TEST(a_packet_longer_than_any_is_refused)
{
	auto_free char *bytes = calloc(1, MSG_HEADER_SIZE + LARGE);

	assert_non_null(bytes);
	msg_header_put((unsigned char *)bytes, &(struct msg_header){ MSG_START, 0, 1, LARGE });
	send_raw(bytes, MSG_HEADER_SIZE + LARGE, &near, 1);
	expect_refused("one byte over");
	msg_header_put((unsigned char *)bytes, &(struct msg_header){ MSG_START, 0, 1, MSG_INLINE_MAX });
	send_raw(bytes, MSG_HEADER_SIZE + LARGE, &near, 1);
	expect_refused("one byte over, header short");
}

TEST(more_descriptors_than_a_packet_may_have_are_all_closed)
{
	static const size_t counts[] = { MSG_FDS_MAX + 1, 100, 253 };
	const struct msg_header head = { .type = MSG_OK, .serial = 1 };
	int fds[253];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = near;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		send_header(&head, fds, counts[i]);
		expect_refused("too many descriptors");
	}
}

TEST(a_body_must_be_sealed_in_every_way)
{
	static const struct {
		const char *name;
		int seals;
	} rows[] = {
		{ "no seal", 0 },
		{ "may be written", ALL_SEALS & ~F_SEAL_WRITE },
		{ "may grow", ALL_SEALS & ~F_SEAL_GROW },
		{ "may shrink", ALL_SEALS & ~F_SEAL_SHRINK },
		{ "may be sealed", ALL_SEALS & ~F_SEAL_SEAL },
	};
	const struct msg_header head = { MSG_START, MSG_BODY_IN_FD, 1, LARGE };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_close int fd = memfd_of(LARGE, 0, rows[i].seals);

		send_header(&head, &fd, 1);
		expect_refused(rows[i].name);
	}
}

TEST(a_body_must_be_as_long_as_its_header_says)
{
	static const size_t sizes[] = { 0, LARGE - 1, LARGE + 1, MIB(1) };
	const struct msg_header head = { MSG_START, MSG_BODY_IN_FD, 1, LARGE };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		auto_close int fd = memfd_of(sizes[i], 0, ALL_SEALS);

		send_header(&head, &fd, 1);
		expect_refused("length");
	}
}

TEST(a_body_must_be_an_ordinary_memory_file)
{
	const struct msg_header head = { MSG_START, MSG_BODY_IN_FD, 1, MIB(2) };
	auto_close int huge = memfd_of(MIB(2), MFD_HUGETLB, ALL_SEALS);
	auto_close int dir = open("/", O_PATH | O_CLOEXEC), null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const int fds[] = { dir, null, near, huge };

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		if (fds[i] < 0) /* a kernel without huge pages */
			continue;
		send_header(&head, &fds[i], 1);
		expect_refused("no memory file");
	}
}

TEST(other_seals_do_no_harm)
{
	const struct msg_header head = { MSG_START, MSG_BODY_IN_FD, 1, LARGE };
	auto_(msg_packet_done) struct msg_packet p;
	auto_close int fd = memfd_of(LARGE, 0, 0);

	(void)fcntl(fd, F_ADD_SEALS, 0x0020); /* F_SEAL_EXEC, Linux 6.3; older ones refuse it */
	assert_int_equal(fcntl(fd, F_ADD_SEALS, ALL_SEALS), 0);
	send_header(&head, &fd, 1);
	assert_int_equal(msg_recv(far, 0, &p), 1);
	assert_int_equal(p.mapped, LARGE);
}

TEST(without_memory_the_packet_stays_in_the_socket)
{
	auto_(msg_packet_done) struct msg_packet p;

	assert_int_equal(msg_send(near, MSG_OK, 1, NULL, NULL, 0, 0), 0);
	no_memory = true;
	assert_int_equal(msg_recv(far, MSG_DONTWAIT, &p), -ENOMEM);
	no_memory = false;
	assert_int_equal(msg_recv(far, MSG_DONTWAIT, &p), 1);
}

TEST(without_memory_for_a_body_the_packet_is_lost_and_that_is_said)
{
	const struct msg_header head = { MSG_START, MSG_BODY_IN_FD, 1, LARGE };
	auto_close int fd = memfd_of(LARGE, 0, ALL_SEALS);
	struct msg_packet p;

	send_header(&head, (const int[]){ fd, near }, 2);
	no_mapping = true;
	assert_int_equal(msg_recv(far, MSG_DONTWAIT, &p), -ENOBUFS);
	no_mapping = false;
	assert_int_equal(msg_recv(far, MSG_DONTWAIT, &p), -EAGAIN);
}

TEST(a_full_descriptor_table_loses_the_packet_and_no_descriptor)
{
	struct rlimit before, full;
	struct msg_packet p;
	int next = dup(near), r;

	assert_true(next >= 0);
	(void)close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	full = (struct rlimit){ (rlim_t)next + 1, before.rlim_max }; /* room for one of the two */
	assert_int_equal(msg_send(near, MSG_OK, 1, NULL, (const int[]){ near, far }, 2, 0), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &full), 0);
	r = msg_recv(far, MSG_DONTWAIT, &p);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(r, -EPROTO);
}

TEST(nothing_to_read_is_eagain_and_the_end_is_zero)
{
	struct msg_packet p;

	assert_int_equal(msg_recv(far, MSG_DONTWAIT, &p), -EAGAIN);
	shut(&near);
	assert_int_equal(msg_recv(far, 0, &p), 0);
	assert_int_equal(msg_recv(-1, 0, &p), -EBADF);
}

TEST(a_peer_that_is_gone_is_epipe_and_no_signal)
{
	auto_free char *bytes = calloc(1, LARGE);
	struct buf body = { .p = bytes, .len = LARGE };

	assert_true(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
	shut(&far);
	assert_int_equal(msg_send(near, MSG_OK, 1, NULL, &near, 1, 0), -EPIPE);
	assert_int_equal(msg_send(near, MSG_START, 1, &body, &near, 1, 0), -EPIPE);
}

TEST(a_peer_that_went_with_packets_unread_is_epipe_too)
{
	assert_int_equal(msg_send(near, MSG_OK, 1, NULL, NULL, 0, 0), 0);
	shut(&far);
	assert_int_equal(msg_send(near, MSG_OK, 1, NULL, NULL, 0, 0), -EPIPE); /* the kernel says ECONNRESET */
}

TEST(what_a_peer_said_before_it_went_is_still_heard)
{
	struct msg_packet p;

	assert_int_equal(msg_send(near, MSG_OK, 11, NULL, NULL, 0, 0), 0);
	assert_int_equal(msg_send(far, MSG_OK, 12, NULL, NULL, 0, 0),
			 0); /* never read: the kernel says ECONNRESET first */
	shut(&near);
	assert_int_equal(msg_recv(far, 0, &p), 1);
	assert_int_equal(p.h.serial, 11);
	msg_packet_done(&p);
	assert_int_equal(msg_recv(far, 0, &p), 0);
}

TEST(a_peer_that_does_not_read_is_eagain)
{
	int r = 0;

	for (int i = 0; i < 100000 && r == 0; i++)
		r = msg_send(near, MSG_OK, 1, NULL, &near, 1, MSG_DONTWAIT);
	assert_int_equal(r, -EAGAIN);
}

static void on_alarm(int sig __attribute__((unused)))
{
	static int calls;

	if (++calls == 5)
		(void)!write(near,
			     "\3\0\0\0"
			     "\1\0\0\0"
			     "\0\0\0\0",
			     MSG_HEADER_SIZE);
}

TEST(a_signal_does_not_end_a_wait)
{
	const struct itimerval every_ms = { { 0, 1000 }, { 0, 1000 } }, never = { 0 };
	struct sigaction act = { .sa_handler = on_alarm }; /* no SA_RESTART */
	auto_(msg_packet_done) struct msg_packet p;

	assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &every_ms, NULL), 0);
	assert_int_equal(msg_recv(far, 0, &p), 1);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(p.h.type, MSG_OK);
}

#define TEST_ROW(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST_ROW(a_packet_without_a_body_arrives),
		TEST_ROW(a_body_arrives),
		TEST_ROW(bodies_up_to_the_limit_are_inline_and_larger_ones_are_mapped),
		TEST_ROW(descriptors_arrive_in_order_and_are_not_inherited),
		TEST_ROW(a_descriptor_that_was_taken_stays_open),
		TEST_ROW(an_inline_packet_may_be_full_of_descriptors),
		TEST_ROW(what_else_the_kernel_attaches_is_no_descriptor),
		TEST_ROW(what_cannot_be_a_packet_is_not_sent),
		TEST_ROW(a_malformed_packet_is_refused_and_its_descriptors_are_closed),
		TEST_ROW(an_empty_packet_is_the_end_unless_it_brings_descriptors),
		TEST_ROW(a_packet_longer_than_any_is_refused),
		TEST_ROW(more_descriptors_than_a_packet_may_have_are_all_closed),
		TEST_ROW(a_body_must_be_sealed_in_every_way),
		TEST_ROW(a_body_must_be_as_long_as_its_header_says),
		TEST_ROW(a_body_must_be_an_ordinary_memory_file),
		TEST_ROW(other_seals_do_no_harm),
		TEST_ROW(without_memory_the_packet_stays_in_the_socket),
		TEST_ROW(without_memory_for_a_body_the_packet_is_lost_and_that_is_said),
		TEST_ROW(a_full_descriptor_table_loses_the_packet_and_no_descriptor),
		TEST_ROW(nothing_to_read_is_eagain_and_the_end_is_zero),
		TEST_ROW(a_peer_that_is_gone_is_epipe_and_no_signal),
		TEST_ROW(a_peer_that_went_with_packets_unread_is_epipe_too),
		TEST_ROW(what_a_peer_said_before_it_went_is_still_heard),
		TEST_ROW(a_peer_that_does_not_read_is_eagain),
		TEST_ROW(a_signal_does_not_end_a_wait),
	};

	return RUN(tests);
}
