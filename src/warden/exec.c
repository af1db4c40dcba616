/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c - Execs as the caller sees them: start, wait, read, write, signal
 *
 * Theory of operation. Init starts, times and reaps; this side only asks. Bytes do not travel through init's socket: input and terminals are
 * descriptors that came with STARTED, output is either the caller's own descriptors (nothing is copied) or a spool, a file that init
 * appends to and that is read here by absolute offset. MSG_OUTPUT says how far a spool has grown, so a read never sees half a fact.
 *
 * Out of memory is decided here and not by init: the kernel counts its kills in the sandbox's group, which init does not see. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys.h"
#include "warden/internal.h"

static const char *const outcome_names[] = {
	[CARREL_RUNNING] = "running",		  [CARREL_EXITED] = "exited",
	[CARREL_SIGNALLED] = "signalled",	  [CARREL_TIMED_OUT] = "timed_out",
	[CARREL_OUT_OF_MEMORY] = "out_of_memory", [CARREL_OUTPUT_LIMIT] = "output_limit",
	[CARREL_KILLED] = "killed",		  [CARREL_FAILED] = "failed",
};

const char *carrel_outcome_name(enum carrel_outcome outcome)
{
	return (unsigned)outcome < ARRAY_SIZE(outcome_names) ? outcome_names[outcome] : "failed";
}

/* Init's outcomes in the caller's words, and the limit that each names. */
static const struct {
	enum carrel_outcome outcome;
	const char *limit;
} outcomes[] = {
	[OUTCOME_RUNNING] = { CARREL_RUNNING, NULL },
	[OUTCOME_EXITED] = { CARREL_EXITED, NULL },
	[OUTCOME_SIGNALLED] = { CARREL_SIGNALLED, NULL },
	[OUTCOME_TIMED_OUT] = { CARREL_TIMED_OUT, "timeout" },
	[OUTCOME_OUTPUT_LIMIT] = { CARREL_OUTPUT_LIMIT, "output" },
	[OUTCOME_KILLED] = { CARREL_KILLED, NULL },
	[OUTCOME_FAILED] = { CARREL_FAILED, NULL },
};
_Static_assert(ARRAY_SIZE(outcomes) == OUTCOME_NUM, "outcomes[] misses an outcome");

/* --- Finding ---------------------------------------------------------------------------------------------------------------- */

static struct carrel_exec *exec_new(struct carrel_sandbox *sb, uint64_t number)
{
	struct carrel_exec *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->spools[0] = x->spools[1] = x->input = x->terminal = -EBADF;
	x->spool_eof[0] = x->spool_eof[1] = 1;
	x->number = number;
	x->sandbox = sb;
	x->next = sb->execs;
	sb->execs = x;
	return x;
}

/* A spool in the run directory has a name; an anonymous one is only known to the handle that made it. */
static int find_spool(const struct carrel_exec *x, size_t i)
{
	char name[32];

	if (x->sandbox->dir >= 0) {
		(void)snprintf(name, sizeof(name), "%c%" PRIu64, i ? 'e' : 'o', x->number);
		return sys_openat(x->sandbox->dir, name, O_RDONLY | O_NOFOLLOW, 0);
	}
	for (const struct carrel_exec *y = x->sandbox->execs; y; y = y->next)
		if (y != x && y->number == x->number && y->spools[i] >= 0)
			return fd_cloexec_from3(y->spools[i]);
	return -ENOENT;
}

static int take_state(struct carrel_exec *x, struct msg_packet *p, const struct msg_exec *m, struct err *e)
{
	static const unsigned flags[] = { START_OUT_SPOOL, START_ERR_SPOOL };

	x->pid = (pid_t)m->pid;
	x->ended = m->end.outcome != OUTCOME_RUNNING;
	x->end = m->end;
	x->spool_end[0] = m->end.out_bytes;
	x->spool_end[1] = m->end.err_bytes;
	for (size_t i = 0; i < 2; i++) {
		if (!(m->flags & flags[i]))
			continue;
		x->spools[i] = find_spool(x, i);
		x->spool_eof[i] = 0;
		if (x->spools[i] < 0)
			return err_hint(e, err_sys(e, x->spools[i], "find the spool of exec %" PRIu64, x->number),
					"keep the first handle, or use die-with-owner=false");
	}
	if (p->num_fds > 0)
		*(m->flags & START_PTY ? &x->terminal : &x->input) = take_fd(p->fds[0]);
	return 0;
}

/* Make @x a handle on the exec that init knows by its number. */
static int attach(struct carrel_exec *x, struct err *e)
{
	auto_buf struct buf body = BUF_INIT(MSG_INLINE_MAX);
	struct msg_exec_ref ref = { x->number };
	struct msg_packet p;
	struct msg_exec m;
	int r;

	msg_exec_ref_put(&body, &ref);
	r = client_call(x->sandbox, MSG_ATTACH, &body, NULL, 0, MSG_EXEC, &p, e);
	if (r < 0)
		return r;
	r = msg_exec_get(p.body, &m);
	r = r < 0 ? err_set(e, ERR_PROTOCOL, "read from sandbox '%s': malformed EXEC", x->sandbox->id) : take_state(x, &p, &m, e);
	msg_packet_done(&p);
	return r;
}

static int sandbox_find(struct carrel_sandbox *sb, uint64_t number, struct carrel_exec **ret, struct err *e)
{
	struct carrel_exec *x = exec_new(sb, number);
	int r;

	if (!x)
		return -ENOMEM;
	r = attach(x, e);
	if (r < 0) {
		carrel_exec_free(x);
		return r;
	}
	*ret = x;
	return 0;
}

/* --- Start ------------------------------------------------------------------------------------------------------------------ */

/** struct start - START under construction */
struct start {
	struct msg_start m;
	int fds[MSG_FDS_MAX];
	size_t num_fds;
};

/* The caller's own descriptor, lent for the call. A directory would be a way out of the sandbox (CVE-2024-21626). */
static int lend(struct start *s, unsigned flag, int fd, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0) /* closed in the caller: the command gets /dev/null */
		return 0;
	if (S_ISDIR(st.st_mode))
		return err_set(e, ERR_INVALID, "pass descriptor %d to the command: it is a directory", fd);
	s->m.flags |= flag;
	s->fds[s->num_fds++] = fd;
	return 0;
}

static int open_spool(struct carrel_sandbox *sb, char kind, uint64_t number)
{
	char name[32];
	int fd;

	(void)snprintf(name, sizeof(name), "%c%" PRIu64, kind, number);
	if (sb->dir >= 0)
		return sys_openat(sb->dir, name, O_RDWR | O_CREAT | O_EXCL, 0600);
	fd = memfd_create(name, MFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int add_spool(struct carrel_sandbox *sb, struct carrel_exec *x, struct start *s, size_t i, struct err *e)
{
	int fd = open_spool(sb, i ? 'e' : 'o', x->number);

	if (fd < 0)
		return err_sys(e, fd, "make a spool of exec %" PRIu64, x->number);
	x->spools[i] = fd;
	x->spool_eof[i] = 0;
	s->m.flags |= i ? START_ERR_SPOOL : START_OUT_SPOOL;
	s->fds[s->num_fds++] = fd;
	return 0;
}

/* Descriptors go in the order of enum msg_start_flags: stdin, then output as it is, then spools. */
static int add_streams(struct carrel_sandbox *sb, const struct carrel_command *c, struct carrel_exec *x, struct start *s,
		       struct err *e)
{
	int r = 0;

	if (c->tty) {
		s->m.flags |= START_PTY;
		return c->out == OUTPUT_SPOOL ? add_spool(sb, x, s, 0, e) : 0;
	}
	if (c->in == STDIN_INHERIT)
		r = lend(s, START_STDIN_FD, c->stdin_fd, e);
	else if (c->in == STDIN_PIPE)
		s->m.flags |= START_STDIN_PIPE;
	if (r == 0 && c->out == OUTPUT_INHERIT)
		r = lend(s, START_OUT_FD, 1, e);
	if (r == 0 && c->out == OUTPUT_INHERIT)
		r = lend(s, START_ERR_FD, 2, e);
	for (size_t i = 0; r == 0 && c->out == OUTPUT_SPOOL && i < 2; i++)
		r = add_spool(sb, x, s, i, e);
	return r;
}

static void fill_start(const struct carrel_command *c, const struct carrel_exec *x, struct msg_start *m)
{
	static const char *none[] = { NULL };

	m->exec = x->number;
	m->flags |= c->hold ? START_HOLD : 0;
	m->rows = 24; /* a terminal of the usual size until the client says its own */
	m->cols = 80;
	m->timeout_ns = c->timeout_ns;
	m->output_max = c->output_max;
	m->key = c->key ? c->key : "";
	m->user = c->user ? c->user : "";
	m->cwd = c->workdir ? c->workdir : "";
	m->num_rlimits = (uint32_t)c->num_rlimits;
	memcpy(m->rlimits, c->rlimits, sizeof(m->rlimits));
	m->argv = (const char **)(uintptr_t)c->argv;
	m->env = c->env ? (const char **)(uintptr_t)c->env : none;
}

/* The key was used before: this handle is on the exec of that time, and what was made for another goes. */
static int become(struct carrel_exec *x, uint64_t number, struct err *e)
{
	char name[32];

	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(name, sizeof(name), "%c%" PRIu64, i ? 'e' : 'o', x->number);
		if (x->spools[i] >= 0 && x->sandbox->dir >= 0)
			ignored(sys_unlinkat(x->sandbox->dir, name, 0)); /* it goes with the directory at the latest */
		close_p(&x->spools[i]);
		x->spools[i] = -EBADF;
		x->spool_eof[i] = 1;
	}
	x->number = number;
	return attach(x, e);
}

static int start(struct carrel_sandbox *sb, const struct carrel_command *c, struct carrel_exec *x, struct err *e)
{
	auto_buf struct buf body = BUF_INIT(MSG_BODY_MAX);
	struct start s = { .num_fds = 0 };
	struct msg_started started;
	struct msg_packet p;
	int r;

	r = add_streams(sb, c, x, &s, e);
	if (r < 0)
		return r;
	fill_start(c, x, &s.m);
	msg_start_put(&body, &s.m);
	if (body.r == -EMSGSIZE)
		return err_hint(e, err_set(e, ERR_INVALID, "run '%.64s': arguments and environment over %d MiB", c->argv[0],
					   (int)(MSG_BODY_MAX >> 20)),
				"pass large data in a file or on stdin");
	r = client_call(sb, MSG_START, &body, s.fds, s.num_fds, MSG_STARTED, &p, e);
	if (r < 0)
		return r;
	r = msg_started_get(p.body, &started);
	if (r == 0 && started.exec == x->number) {
		x->pid = (pid_t)started.pid;
		if (p.num_fds > 0) /* one at most: stdin's write end or the pty's master */
			*(s.m.flags & START_PTY ? &x->terminal : &x->input) = take_fd(p.fds[0]);
	}
	msg_packet_done(&p);
	if (r < 0)
		return err_set(e, ERR_PROTOCOL, "read from sandbox '%s': malformed STARTED", sb->id);
	return started.exec == x->number ? 0 : become(x, started.exec, e);
}

static int sandbox_exec(struct carrel_sandbox *sb, const struct carrel_command *c, struct carrel_exec **ret, struct err *e)
{
	struct carrel_exec *x;
	int r;

	if (sb->last_exec == 0 && !sb->owned)
		sb->last_exec = clock_ns(); /* other clients number theirs too */
	x = exec_new(sb, ++sb->last_exec);
	if (!x)
		return -ENOMEM;
	if (cgroup_read(&sb->cg, CGV_OOM_KILLS, &x->oom_kills) < 0)
		x->oom_kills = 0;
	if (cgroup_read(&sb->cg, CGV_PIDS_DENIED, &x->pids_denied) < 0)
		x->pids_denied = 0;
	r = start(sb, c, x, e);
	if (r < 0) {
		carrel_exec_free(x);
		return r;
	}
	*ret = x;
	return 0;
}

int carrel_exec(struct carrel_sandbox *sandbox, const struct carrel_command *command, struct carrel_exec **ret,
		struct carrel_error *ret_e)
{
	struct err e = { .code = ERR_NONE };

	return error_out(sandbox_exec(sandbox, command, ret, &e), &e, ret_e);
}

int carrel_exec_find(struct carrel_sandbox *sandbox, uint64_t number, struct carrel_exec **ret, struct carrel_error *ret_e)
{
	struct err e = { .code = ERR_NONE };

	return error_out(sandbox_find(sandbox, number, ret, &e), &e, ret_e);
}

uint64_t carrel_exec_number(const struct carrel_exec *exec)
{
	return exec->number;
}

pid_t carrel_exec_pid(const struct carrel_exec *exec)
{
	return exec->pid;
}

int carrel_exec_terminal(const struct carrel_exec *exec)
{
	return exec->terminal < 0 ? -1 : exec->terminal;
}

void carrel_exec_free(struct carrel_exec *x)
{
	if (!x)
		return;
	if (x->sandbox) {
		struct carrel_exec **link = &x->sandbox->execs;

		while (*link != x)
			link = &(*link)->next;
		*link = x->next;
	}
	close_p(&x->spools[0]);
	close_p(&x->spools[1]);
	close_p(&x->input);
	close_p(&x->terminal);
	free(x);
}

/* --- Wait ------------------------------------------------------------------------------------------------------------------- */

static struct carrel_sandbox *sandbox_of(const struct carrel_exec *x, struct err *e)
{
	if (!x->sandbox)
		ignored(err_set(e, ERR_UNAVAILABLE, "use exec %" PRIu64 ": its sandbox was freed", x->number));
	return x->sandbox;
}

/* Milliseconds left of a wait that began at @start; -1 stays -1. */
static int time_left(uint64_t start, int timeout_ms)
{
	uint64_t gone = (clock_ns() - start) / NSEC_PER_MSEC;

	if (timeout_ms < 0)
		return -1;
	return gone >= (uint64_t)timeout_ms ? 0 : timeout_ms - (int)gone;
}

/* v1 counts a refused fork in the group that forks, which is the exec's own and gone by now: there, that the limit was reached must do. */
static bool pids_limit_bit(const struct carrel_exec *x)
{
	const struct cgroup *cg = &x->sandbox->cg;
	uint64_t denied, peak, limit;

	if (cgroup_read(cg, CGV_PIDS_DENIED, &denied) == 0 && denied > x->pids_denied)
		return true;
	return cgroup_read(cg, CGV_PIDS_PEAK, &peak) == 0 && cgroup_read(cg, CGV_PIDS_LIMIT, &limit) == 0 && peak >= limit;
}

static void fill_result(const struct carrel_exec *x, struct carrel_result *ret)
{
	const struct msg_ended *end = &x->end;
	uint64_t now;

	*ret = (struct carrel_result){
		.outcome = outcomes[end->outcome].outcome,
		.limit = outcomes[end->outcome].limit,
		.exit_code = end->outcome == OUTCOME_EXITED ? (int)end->code : -1,
		.signal = end->outcome == OUTCOME_SIGNALLED ? (int)end->sig : 0,
		.wall_ns = end->end_ns - end->start_ns,
		.user_us = end->user_us,
		.system_us = end->system_us,
		.peak_bytes = end->peak_bytes,
		.stdout_bytes = end->out_bytes,
		.stderr_bytes = end->err_bytes,
		.left_running = end->left,
	};
	if (!x->sandbox)
		return;
	if (cgroup_read(&x->sandbox->cg, CGV_OOM_KILLS, &now) == 0 && now > x->oom_kills) {
		ret->limit = "memory";
		if (ret->signal == SIGKILL)
			ret->outcome = CARREL_OUT_OF_MEMORY;
	} else if (ret->signal == SIGXCPU) {
		ret->limit = "cpu";
	} else if (ret->signal == SIGXFSZ) {
		ret->limit = "fsize";
	} else if (!ret->limit && pids_limit_bit(x)) {
		ret->limit = "pids";
	}
}

static int exec_wait(struct carrel_exec *x, int timeout_ms, struct carrel_result *ret, struct err *e)
{
	uint64_t start = clock_ns();

	while (!x->ended) {
		struct carrel_sandbox *sb = sandbox_of(x, e);
		int left = time_left(start, timeout_ms), r;

		if (!sb)
			return -ECONNREFUSED;
		if (left == 0)
			return err_set(e, ERR_DEADLINE, "wait for exec %" PRIu64, x->number);
		r = client_dispatch(sb, left, e);
		if (r < 0)
			return r;
	}
	fill_result(x, ret);
	return 0;
}

int carrel_exec_wait(struct carrel_exec *exec, int timeout_ms, struct carrel_result *ret, struct carrel_error *ret_e)
{
	struct err e = { .code = ERR_NONE };

	return error_out(exec_wait(exec, timeout_ms, ret, &e), &e, ret_e);
}

/* --- Streams ---------------------------------------------------------------------------------------------------------------- */

static ssize_t exec_read(struct carrel_exec *x, size_t i, uint64_t offset, void *buf, size_t len, int timeout_ms, struct err *e)
{
	uint64_t start = clock_ns();
	ssize_t n;

	if (x->spools[i] < 0)
		return err_set(e, ERR_INVALID, "read stream %zu of exec %" PRIu64 ": it has no spool", i + 1, x->number);
	while (offset >= x->spool_end[i]) {
		int left = time_left(start, timeout_ms), r;

		if (x->spool_eof[i] || x->ended)
			return 0; /* after the end only background processes could add to it */
		if (left == 0)
			return -EAGAIN;
		if (!sandbox_of(x, e))
			return -ECONNREFUSED;
		r = client_dispatch(x->sandbox, left, e);
		if (r < 0)
			return r;
	}
	n = pread(x->spools[i], buf, MIN(len, x->spool_end[i] - offset), (off_t)offset);
	return n < 0 ? err_sys(e, -errno, "read the spool of exec %" PRIu64, x->number) : n;
}

ssize_t carrel_exec_read(struct carrel_exec *exec, int stream, uint64_t offset, void *buf, size_t len, int timeout_ms,
			 struct carrel_error *ret_e)
{
	struct err e = { .code = ERR_NONE };
	ssize_t n;

	if (stream != 1 && stream != 2)
		n = err_set(&e, ERR_INVALID, "read stream %d: 1 is stdout, 2 is stderr", stream);
	else
		n = exec_read(exec, (size_t)stream - 1, offset, buf, len, timeout_ms, &e);
	if (n < 0)
		(void)error_out((int)n, &e, ret_e);
	return n;
}

/* A pipe whose reader is gone must not kill the caller with SIGPIPE, whose handler is not ours to change: the signal is blocked
 * in this thread for the write, and taken back if it came. */
static ssize_t write_quietly(int fd, const void *buf, size_t len)
{
	const struct timespec at_once = { 0, 0 };
	uint64_t pipe_only = UINT64_C(1) << (SIGPIPE - 1), old;
	ssize_t n;

	(void)sys_rt_sigprocmask(SIG_BLOCK, &pipe_only, &old);
	n = sys_write(fd, buf, len);
	if (n == -EPIPE && !(old & pipe_only))
		(void)sys_call4(__NR_rt_sigtimedwait, &pipe_only, NULL, &at_once, sizeof(pipe_only));
	(void)sys_rt_sigprocmask(SIG_SETMASK, &old, NULL);
	return n;
}

ssize_t carrel_exec_write(struct carrel_exec *exec, const void *buf, size_t len, struct carrel_error *ret_e)
{
	int fd = exec->terminal >= 0 ? exec->terminal : exec->input;
	struct err e = { .code = ERR_NONE };
	ssize_t n;

	if (fd < 0)
		return error_out(err_set(&e, ERR_INVALID, "write to exec %" PRIu64 ": its stdin is not open", exec->number), &e,
				 ret_e);
	n = write_quietly(fd, buf, len);
	return n < 0 ? error_out(err_sys(&e, (int)n, "write to exec %" PRIu64, exec->number), &e, ret_e) : n;
}

/* --- Requests --------------------------------------------------------------------------------------------------------------- */

static int request(struct carrel_exec *x, enum msg_type type, const struct buf *body, struct carrel_error *ret_e)
{
	struct err e = { .code = ERR_NONE };
	struct carrel_sandbox *sb = sandbox_of(x, &e);
	int r = sb ? client_call(sb, type, body, NULL, 0, MSG_OK, NULL, &e) : -ECONNREFUSED;

	return error_out(r, &e, ret_e);
}

static int request_ref(struct carrel_exec *x, enum msg_type type, struct carrel_error *ret_e)
{
	auto_buf struct buf body = BUF_INIT(MSG_INLINE_MAX);
	struct msg_exec_ref ref = { x->number };

	msg_exec_ref_put(&body, &ref);
	return request(x, type, &body, ret_e);
}

int carrel_exec_go(struct carrel_exec *exec, struct carrel_error *e)
{
	return request_ref(exec, MSG_GO, e);
}

int carrel_exec_close_stdin(struct carrel_exec *exec, struct carrel_error *e)
{
	close_p(&exec->input);
	exec->input = -EBADF;
	return request_ref(exec, MSG_STDIN_CLOSE, e);
}

int carrel_exec_resize(struct carrel_exec *exec, uint16_t rows, uint16_t cols, struct carrel_error *e)
{
	auto_buf struct buf body = BUF_INIT(MSG_INLINE_MAX);
	struct msg_resize m = { exec->number, rows, cols };

	msg_resize_put(&body, &m);
	return request(exec, MSG_RESIZE, &body, e);
}

static int request_signal(struct carrel_exec *x, int sig, enum msg_scope scope, struct carrel_error *e)
{
	auto_buf struct buf body = BUF_INIT(MSG_INLINE_MAX);
	struct msg_signal m = { x->number, (uint32_t)sig, scope };
	struct err story = { .code = ERR_NONE };

	if (sig < 1 || sig > 64)
		return error_out(err_set(&story, ERR_INVALID, "signal exec %" PRIu64 " with %d: not 1 to 64", x->number, sig),
				 &story, e);
	msg_signal_put(&body, &m);
	return request(x, MSG_SIGNAL, &body, e);
}

int carrel_exec_signal(struct carrel_exec *exec, int signal, struct carrel_error *e)
{
	return request_signal(exec, signal, SCOPE_LEADER, e);
}

int carrel_exec_kill(struct carrel_exec *exec, struct carrel_error *e)
{
	return request_signal(exec, SIGKILL, SCOPE_TREE, e);
}
