/* SPDX-License-Identifier: Apache-2.0 */
/* init_box.c - Drive the real init over its control socket (see init_box.h) */
#include "init_box.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/sys.h"
#include "test.h"

/* In the namespaces, as their first process: a /proc and a devpts of their own, then init with the socket at 3. */
static void box_child(const struct box *b, int sock, int go)
{
	char *argv[] = { (char[]){ "carrel-init" }, NULL };
	char *env[] = { NULL };
	char byte;
	int null;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(go, &byte, 1) != 1)
		_exit(100);
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		_exit(101);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("proc", "/proc", "proc", 0, NULL) < 0)
		_exit(102);
	if (mount("devpts", "/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666") < 0)
		_exit(103);
	if (b->covered && mount(b->cover, b->covered, NULL, MS_BIND, NULL) < 0)
		_exit(104);
	null = open("/dev/null", O_RDWR);
	for (int i = 0; i < 3; i++)
		(void)dup2(null, i);
	if (dup2(sock, 3) < 0 || syscall(__NR_close_range, 4, ~0U, 0) < 0)
		_exit(105);
	execve(getenv("CARREL_INIT") ? getenv("CARREL_INIT") : INIT_EXE, argv, env);
	_exit(106);
}

static void write_map(pid_t pid, const char *file, const char *text)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	assert_int_equal(fd_write_file_at(AT_FDCWD, path, text), 0);
}

static void box_map(const struct box *b)
{
	char text[64];

	if (b->shared_users)
		return;
	if (geteuid() == 0) {
		write_map(b->pid, "uid_map", "0 100000 65536");
		write_map(b->pid, "gid_map", "0 100000 65536");
		return;
	}
	write_map(b->pid, "setgroups", "deny");
	(void)snprintf(text, sizeof(text), "0 %u 1", geteuid());
	write_map(b->pid, "uid_map", text);
	(void)snprintf(text, sizeof(text), "0 %u 1", getegid());
	write_map(b->pid, "gid_map", text);
}

static void box_spawn(struct box *b, int theirs)
{
	struct clone_args args = {
		.flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | (b->shared_users ? 0 : CLONE_NEWUSER),
		.exit_signal = SIGCHLD,
	};
	int go[2];

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	b->pid = (pid_t)sys_clone3(&args);
	assert_true(b->pid >= 0);
	if (b->pid == 0)
		box_child(b, theirs, go[0]);
	box_map(b);
	assert_int_equal(write(go[1], "", 1), 1);
	(void)close(go[0]);
	(void)close(go[1]);
}

static int box_listener(struct box *b)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(b->listen_path, sizeof(b->listen_path), "/tmp/carrel-init-test-%d.sock", getpid());
	(void)unlink(b->listen_path);
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", b->listen_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 16), 0);
	return fd;
}

void box_open(struct box *b)
{
	auto_buf struct buf body = BUF_INIT(MSG_INLINE_MAX);
	struct msg_config m = { .flags = b->flags, .tasks_fds = b->tasks_fds, .id = "test" };
	struct msg_packet p;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	b->sock = pair[0];
	box_spawn(b, pair[1]);
	(void)close(pair[1]);
	memmove(&b->fds[1], &b->fds[0], sizeof(b->fds) - sizeof(b->fds[0])); /* the listener's flag is the first */
	b->fds[0] = box_listener(b);
	b->num_fds++;
	m.flags |= CONFIG_FD_LISTEN;
	msg_config_put(&body, &m);
	packet_send(b->sock, MSG_CONFIG, 1, &body, b->fds, b->num_fds);
	p = packet_expect(b->sock, MSG_WELCOME);
	msg_packet_done(&p);
	(void)close(b->fds[0]);
	b->serial = 1;
}

void box_close(struct box *b)
{
	if (b->pid > 0) {
		(void)kill(b->pid, SIGKILL);
		(void)waitpid(b->pid, NULL, 0);
	}
	if (b->sock >= 0)
		(void)close(b->sock);
	(void)unlink(b->listen_path);
}

int box_connect(struct box *b)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct msg_packet p;

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", b->listen_path);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	packet_send(fd, MSG_HELLO, 1, NULL, NULL, 0);
	p = packet_expect(fd, MSG_WELCOME);
	msg_packet_done(&p);
	return fd;
}

void packet_send(int sock, enum msg_type type, uint32_t serial, struct buf *body, const int *fds, size_t num_fds)
{
	assert_int_equal(msg_send(sock, type, serial, body, fds, num_fds, 0), 0);
}

bool packet_next(int sock, struct msg_packet *ret)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	int r;

	if (poll(&p, 1, BOX_WAIT_MS) != 1)
		fail_msg("no packet came in %d ms", BOX_WAIT_MS);
	r = msg_recv(sock, MSG_DONTWAIT, ret);
	if (r < 0)
		fail_msg("receiving failed: %d", r);
	return r == 1;
}

struct msg_packet packet_expect(int sock, enum msg_type type)
{
	struct msg_packet p;

	if (!packet_next(sock, &p))
		fail_msg("the connection ended, %s should come", msg_name(type));
	if (p.h.type == MSG_FAILED && type != MSG_FAILED) {
		struct err e;

		assert_int_equal(msg_failed_get(p.body, &e), 0);
		fail_msg("FAILED came, not %s: %s", msg_name(type), e.msg);
	}
	if (p.h.type != type)
		fail_msg("%s came, not %s", msg_name(p.h.type), msg_name(type));
	return p;
}

void start_send(struct box *b, const struct msg_start *m, const int *fds, size_t num_fds)
{
	auto_buf struct buf body = BUF_INIT(MSG_BODY_MAX);
	static const char *const none[] = { NULL };
	struct msg_start full = *m;

	full.key = m->key ? m->key : "";
	full.user = m->user ? m->user : "";
	full.cwd = m->cwd ? m->cwd : "/";
	full.env = m->env ? m->env : (const char **)(uintptr_t)none;
	msg_start_put(&body, &full);
	packet_send(b->sock, MSG_START, ++b->serial, &body, fds, num_fds);
}

static void seen_add(struct seen *s, uint64_t exec, struct msg_packet *p)
{
	struct msg_output o;
	struct msg_ended end;

	switch (p->h.type) {
	case MSG_STARTED:
		assert_int_equal(msg_started_get(p->body, &s->started), 0);
		if (p->num_fds > 0)
			s->fd = take_fd(p->fds[0]);
		break;
	case MSG_FAILED:
		assert_int_equal(msg_failed_get(p->body, &s->failed), 0);
		break;
	case MSG_OUTPUT:
		assert_int_equal(msg_output_get(p->body, &o), 0);
		if (o.exec == exec) {
			assert_int_not_equal(s->started.exec, 0); /* never before STARTED */
			assert_true(o.end >= s->ends[o.stream - 1]);
			s->ends[o.stream - 1] = o.end;
			s->eof[o.stream - 1] = o.eof;
		}
		break;
	case MSG_ENDED:
		assert_int_equal(msg_ended_get(p->body, &end), 0);
		if (end.exec == exec) {
			s->ended = end;
			s->num_ended++;
		}
		break;
	default:
		fail_msg("%s came unexpectedly", msg_name(p->h.type));
	}
}

void start_wait(int sock, uint64_t exec, bool to_end, struct seen *s)
{
	while (s->failed.code == ERR_NONE && (to_end ? s->num_ended == 0 : s->started.exec == 0)) {
		struct msg_packet p;

		if (!packet_next(sock, &p))
			fail_msg("the connection ended before exec %llu did", (unsigned long long)exec);
		seen_add(s, exec, &p);
		msg_packet_done(&p);
	}
}

int spool_new(void)
{
	int fd = memfd_create("spool", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

void run(struct box *b, struct msg_start *m, struct seen *s, int *out, int *err)
{
	int fds[2] = { spool_new(), spool_new() };
	bool pty = m->flags & START_PTY;

	m->flags |= START_OUT_SPOOL | (pty ? 0 : (uint32_t)START_ERR_SPOOL);
	*s = (struct seen){ .fd = -EBADF };
	start_send(b, m, fds, pty ? 1 : 2);
	start_wait(b->sock, m->exec, true, s);
	if (out)
		*out = fds[0];
	else
		(void)close(fds[0]);
	if (err)
		*err = fds[1];
	else
		(void)close(fds[1]);
}

void request(int sock, enum msg_type type, struct buf *body, enum msg_type want)
{
	packet_send(sock, type, 4711, body, NULL, 0);
	for (;;) {
		struct msg_packet p;
		bool answer;

		assert_true(packet_next(sock, &p));
		answer = p.h.serial == 4711;
		if (answer && p.h.type != want)
			fail_msg("%s was answered with %s", msg_name(type), msg_name(p.h.type));
		msg_packet_done(&p);
		if (answer)
			return;
	}
}

void request_ref(int sock, enum msg_type type, uint64_t exec, enum msg_type want)
{
	auto_buf struct buf body = BUF_INIT(MSG_INLINE_MAX);

	msg_exec_ref_put(&body, &(struct msg_exec_ref){ exec });
	request(sock, type, &body, want);
}

const char *spool_text(int fd)
{
	static char text[65536];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	assert_true(n >= 0);
	text[n] = '\0';
	return text;
}
