/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c - The life of one exec: started, reported, reaped, ended, remembered
 *
 * Theory of operation. A START makes pipes, groups and a forked child, and returns to the loop. From then on three things report about the
 * child, in any order: its report pipe (end of file: execve() happened), SIGCHLD (it is dead), and its output pipes. enum exec_state in
 * internal.h says what holds in between; the only writers of exec::state are in this file.
 *
 * The child is made by fork(), not with shared memory: the kernel's out-of-memory killer kills every process that shares the memory of its
 * victim, and a child that is about to execute in a full memory group is such a victim. Tried on Linux 6.18: with CLONE_VM init dies with
 * it, with fork() the child alone does. Init has some 40 pages, so the price is 20 us of 650 for a dynamic /bin/true.
 *
 * ENDED is announced once: when the leader has been reaped and what lay in its pipes is in the spools. Background processes may hold the pipes
 * and the group for longer; the `live` part then goes on without the exec's end changing. When the tree is being killed (time-out, output
 * limit, request), ENDED waits until the tree is empty, but not longer than KILL_WAIT_NS: a process in uninterruptible sleep
 * dies when its device lets it. */
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/sys.h"
#include "init/internal.h"

/* How long ENDED waits for a killed tree to be gone. */
#define KILL_WAIT_NS (5 * NSEC_PER_SEC)
/* Passes over a tree start this far apart and double to the second value: a fork bomb is gone after a few, a stuck process is not polled. */
#define KILL_PASS_NS (1 * NSEC_PER_MSEC)
#define KILL_PASS_MAX_NS (500 * NSEC_PER_MSEC)
/* Attempts to remove a group that has processes. The reaping of the last one tries as well, so this is for what init cannot see. */
#define GROUP_RETRY_NS (500 * NSEC_PER_MSEC)
/* Descriptors that init needs besides those of execs: clients, a packet in flight, CONFIG's, and some for passing use. */
#define FDS_RESERVED (CLIENTS_MAX + 3 * MSG_FDS_MAX + 16)
/* Largest descriptor table that init asks for; EXECS_LIVE_MAX execs fit into it. */
#define FDS_MAX 16384

void exec_limit(struct init *in)
{
	struct rlimit l = { FDS_MAX, FDS_MAX };
	uint64_t room;

	(void)getrlimit(RLIMIT_NOFILE, &l); /* cannot fail for a valid resource */
	in->nofile_soft = l.rlim_cur;
	in->nofile_hard = l.rlim_max;
	l.rlim_cur = MIN(l.rlim_max, (rlim_t)FDS_MAX);
	if (l.rlim_cur < in->nofile_soft || setrlimit(RLIMIT_NOFILE, &l) < 0)
		l.rlim_cur = in->nofile_soft;
	room = l.rlim_cur > FDS_RESERVED ? (l.rlim_cur - FDS_RESERVED) / EXEC_FDS : 1;
	in->max_live = (unsigned)MIN(room, (uint64_t)EXECS_LIVE_MAX);
}

struct exec *exec_find(const struct init *in, uint64_t id)
{
	for (struct exec *x = in->execs_last; x; x = x->prev)
		if (x->id == id && x->state != EXEC_FAILED)
			return x;
	return NULL;
}

struct exec *exec_find_key(const struct init *in, const char *key)
{
	for (struct exec *x = in->execs_last; x; x = x->prev)
		if (x->key && x->state != EXEC_FAILED && strcmp(x->key, key) == 0)
			return x;
	return NULL;
}

int exec_input(const struct exec *x)
{
	if (!x->live)
		return -EBADF;
	if (x->flags & START_PTY && x->flags & START_OUT_SPOOL)
		return x->live->streams[0].src.fd;
	return x->live->input;
}

static void exec_link(struct init *in, struct exec *x)
{
	x->seq = ++in->seq;
	x->prev = in->execs_last;
	*(x->prev ? &x->prev->next : &in->execs) = x;
	in->execs_last = x;
	in->num_live++;
}

/* Take the waiter at @at off its list. */
static void waiter_free(struct waiter **at)
{
	struct waiter *w = *at;

	*at = w->next;
	w->client->num_answers--;
	free(w);
}

static void live_free(struct init *in, struct exec *x)
{
	struct live *l = take_ptr(x->live);

	if (!l)
		return;
	source_close(in, &l->report);
	while (l->waiters)
		waiter_free(&l->waiters);
	close_p(&l->go);
	close_p(&l->input);
	for (size_t i = 0; i < ARRAY_SIZE(l->streams); i++)
		stream_close(in, &l->streams[i]);
	if (l->grouped)
		(void)!group_remove(in, x->id); /* best effort: the callers that can wait have tried before */
	free(l);
}

/* Take @x off the list, if it is on it, and free it. */
static void exec_free(struct init *in, struct exec *x)
{
	if (x->seq != 0) {
		*(x->prev ? &x->prev->next : &in->execs) = x->next;
		*(x->next ? &x->next->prev : &in->execs_last) = x->prev;
		in->num_live -= x->live != NULL;
	}
	client_forget(in, x);
	live_free(in, x);
	free(x->key);
	free(x);
}

/* Forget the oldest ended exec once there are too many. One that still has a live part is bounded by max_live and stays. */
static void exec_forget_oldest(struct init *in)
{
	struct exec *x = in->execs;

	if (in->num_ended <= EXECS_ENDED_MAX)
		return;
	while (x && (x->state != EXEC_ENDED || x->live))
		x = x->next;
	if (!x)
		return;
	in->num_ended--;
	exec_free(in, x);
}

/* --- Start ------------------------------------------------------------------------------------------------------------------- */

static struct exec *exec_new(const struct msg_start *m, uint64_t digest)
{
	struct exec *x = calloc(1, sizeof(*x));
	struct live *l = calloc(1, sizeof(*l));
	char *key = m->key[0] ? strdup(m->key) : NULL;

	if (!x || !l || (m->key[0] && !key)) {
		free(x);
		free(l);
		free(key);
		return NULL;
	}
	l->report.fd = l->go = l->input = -EBADF;
	for (size_t i = 0; i < ARRAY_SIZE(l->streams); i++)
		l->streams[i] =
			(struct stream){ .src.fd = -EBADF, .spool = -EBADF, .exec = x, .number = (uint32_t)i + 1 };
	l->output_max = m->output_max;
	*x = (struct exec){ .id = m->exec, .flags = m->flags, .digest = digest, .key = key, .live = l };
	x->end.exec = m->exec;
	return x;
}

/** struct wiring - Both ends of everything between init and the child, while START is on its way */
struct wiring {
	int stdio[3];  /* the child's ends */
	int ours[3];   /* stdin write end, or read ends of stdout and stderr */
	int spools[2]; /* of stdout and stderr */
	bool own[3];   /* init made it, so that the exec's user gets it */
	int master;
	int report[2], go[2];
};

static void wiring_done(struct wiring *w)
{
	for (size_t i = 0; i < 3; i++) {
		close_p(&w->stdio[i]);
		close_p(&w->ours[i]);
	}
	for (size_t i = 0; i < 2; i++) {
		close_p(&w->spools[i]);
		close_p(&w->report[i]);
		close_p(&w->go[i]);
	}
	close_p(&w->master);
}

/* Take the packet's descriptors in the order of their flags, which is that of msg.h. */
static int wiring_take(struct wiring *w, struct msg_packet *p, uint32_t flags, struct err *e)
{
	static const struct {
		uint32_t flag;
		size_t index;
	} direct[] = { { START_STDIN_FD, 0 }, { START_OUT_FD, 1 }, { START_ERR_FD, 2 } };
	static const uint32_t spooled[] = { START_OUT_SPOOL, START_ERR_SPOOL };
	size_t at = 0;

	for (size_t i = 0; i < ARRAY_SIZE(direct); i++) {
		if (!(flags & direct[i].flag))
			continue;
		w->stdio[direct[i].index] = p->fds[at];
		p->fds[at++] = -EBADF;
	}
	for (size_t i = 0; i < ARRAY_SIZE(spooled); i++) {
		struct stat st;

		if (!(flags & spooled[i]))
			continue;
		w->spools[i] = p->fds[at];
		p->fds[at++] = -EBADF;
		if (fstat(w->spools[i], &st) < 0 || !S_ISREG(st.st_mode)) /* anything else could make init wait */
			return err_set(e, ERR_INVALID, "start: the spool of stream %zu is not a regular file", i + 1);
	}
	return 0;
}

/* A pipe at @index of the child's stdio; the other end is ours. */
static int wiring_pipe(struct wiring *w, size_t index)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	w->stdio[index] = fds[index == 0 ? 0 : 1];
	w->ours[index] = fds[index == 0 ? 1 : 0];
	w->own[index] = true;
	return 0;
}

/*
 * The master of a new pty. Opened below the directory that init found at its start: "/dev/ptmx" is whatever the sandbox has put there.
 * Nobody but init reads it when it is pumped, but a client has a duplicate: reading must not wait.
 */
static int wiring_pty(struct wiring *w, const struct init *in, const struct msg_start *m, struct err *e)
{
	struct winsize size = { .ws_row = m->rows, .ws_col = m->cols };
	int unlock = 0;

	if (in->pts < 0)
		return err_set(e, ERR_UNSUPPORTED, "make a terminal: this sandbox has no /dev/pts");
	w->master = sys_openat(in->pts, "ptmx", O_RDWR | O_NOCTTY | (m->flags & START_OUT_SPOOL ? O_NONBLOCK : 0), 0);
	if (w->master < 0)
		return err_sys(e, w->master, "make a terminal: open /dev/pts/ptmx");
	if (ioctl(w->master, TIOCSPTLCK, &unlock) < 0 || ioctl(w->master, TIOCSWINSZ, &size) < 0)
		return err_sys(e, -errno, "make a terminal: set up /dev/pts/ptmx");
	return 0;
}

static int wiring_make(struct wiring *w, const struct init *in, const struct msg_start *m, struct err *e)
{
	int r = 0;

	if (m->flags & START_PTY)
		r = wiring_pty(w, in, m, e);
	if (r < 0)
		return r;
	if (m->flags & START_STDIN_PIPE)
		r = wiring_pipe(w, 0);
	if (r == 0 && m->flags & START_OUT_SPOOL && !(m->flags & START_PTY))
		r = wiring_pipe(w, 1);
	if (r == 0 && m->flags & START_ERR_SPOOL)
		r = wiring_pipe(w, 2);
	if (r == 0 && m->flags & START_HOLD && pipe2(w->go, O_CLOEXEC) < 0)
		r = -errno;
	if (r == 0 && pipe2(w->report, O_CLOEXEC | O_NONBLOCK) < 0)
		r = -errno;
	return r < 0 ? err_sys(e, r, "start: make the pipes of a command") : 0;
}

/* Put init's ends into the exec and the loop, before the child exists, so that nothing can fail once it does. */
static int exec_adopt(struct init *in, struct exec *x, struct wiring *w)
{
	struct live *l = x->live;
	int r = source_open(in, &l->report, SOURCE_REPORT, take_fd(w->report[0]), EPOLLIN, x);

	if (r < 0)
		return r;
	l->go = take_fd(w->go[1]);
	l->input = take_fd(w->ours[0]);
	if (x->flags & START_PTY && x->flags & START_OUT_SPOOL) {
		r = stream_open(in, x, 0, sys_fcntl(w->master, F_DUPFD_CLOEXEC, 3), take_fd(w->spools[0]));
	} else if (x->flags & START_PTY) {
		l->input = sys_fcntl(w->master, F_DUPFD_CLOEXEC, 3);
		r = l->input < 0 ? l->input : 0;
	}
	for (unsigned i = 0; i < 2 && r == 0; i++)
		if (w->ours[i + 1] >= 0)
			r = stream_open(in, x, i, take_fd(w->ours[i + 1]), take_fd(w->spools[i]));
	return r;
}

static int exec_spawn(struct init *in, struct exec *x, const struct msg_start *m, struct wiring *w, struct err *e)
{
	struct child c = {
		.in = in,
		.start = m,
		.stdio = { w->stdio[0], w->stdio[1], w->stdio[2] },
		.own = { w->own[0], w->own[1], w->own[2] },
		.master = w->master,
		.report = w->report[1],
		.go = w->go[0],
	};
	int r;

	if (tree_has_groups(in)) {
		r = group_make(in, x->id, e);
		if (r < 0)
			return r;
		c.grouped = x->live->grouped = true;
	}
	x->end.start_ns = clock_ns();
	x->pid = group_spawn(in, x->id, c.grouped);
	if (x->pid == 0)
		child_run(&c);
	if (x->pid < 0) {
		r = x->pid == -EAGAIN
			    ? err_set(e, ERR_EXHAUSTED, "start: the sandbox has as many processes as its limit allows")
			    : err_sys(e, x->pid, "start: make a process");
		return err_hint(e, r, "raise --pids-limit, or end processes inside");
	}
	return 0;
}

int exec_start(struct init *in, struct client *c, uint32_t serial, struct msg_packet *p, const struct msg_start *m,
	       uint64_t digest, struct err *e)
{
	auto_(wiring_done) struct wiring w = { { -1, -1, -1 }, { -1, -1, -1 }, { -1, -1 }, { 0 }, -1,
					       { -1, -1 },     { -1, -1 } };
	struct exec *x;
	int r;

	if (in->num_live >= in->max_live)
		return err_set(e, ERR_EXHAUSTED, "start: %u commands are running, which is all that init keeps",
			       in->num_live);
	r = wiring_take(&w, p, m->flags, e);
	if (r < 0)
		return r;
	r = wiring_make(&w, in, m, e);
	if (r < 0)
		return r;
	x = exec_new(m, digest);
	if (!x)
		return -ENOMEM;
	r = exec_adopt(in, x, &w);
	if (r == 0)
		r = client_subscribe(x, c);
	if (r == 0)
		r = exec_wait_for(x, c, serial, MSG_START);
	if (r == 0)
		r = exec_spawn(in, x, m, &w, e);
	if (r < 0) {
		exec_free(in, x);
		return r;
	}
	exec_link(in, x);
	exec_forget_oldest(in);
	if (m->timeout_ns != 0) {
		x->live->deadline_ns =
			m->timeout_ns > UINT64_MAX - x->end.start_ns ? UINT64_MAX : x->end.start_ns + m->timeout_ns;
		init_wake_at(in, x->live->deadline_ns);
	}
	return 0;
}

/* --- Reported ---------------------------------------------------------------------------------------------------------------- */

int exec_wait_for(struct exec *x, struct client *c, uint32_t serial, enum msg_type request)
{
	struct waiter *w = malloc(sizeof(*w));

	if (!w)
		return -ENOMEM;
	*w = (struct waiter){ .next = x->live->waiters, .client = c, .serial = serial, .request = request };
	x->live->waiters = w;
	c->num_answers++;
	return 0;
}

void exec_answer_started(struct init *in, struct client *c, uint32_t serial, const struct exec *x)
{
	auto_buf struct buf body = BUF_INIT(MSG_INLINE_MAX);
	struct msg_started m = { .exec = x->id, .pid = x->state == EXEC_ENDED ? 0 : (uint32_t)x->pid };

	msg_started_put(&body, &m);
	client_answer(in, c, MSG_STARTED, serial, &body, x);
}

/* Answer everyone who waits: STARTED or OK, or FAILED with @e. */
static void exec_answer_waiters(struct init *in, struct exec *x, const struct err *e)
{
	while (x->live->waiters) {
		struct waiter w = *x->live->waiters;

		waiter_free(&x->live->waiters);
		if (e)
			client_fail(in, w.client, w.serial, -err_code_errno(e->code), e);
		else if (w.request == MSG_GO)
			client_answer(in, w.client, MSG_OK, w.serial, NULL, NULL);
		else
			exec_answer_started(in, w.client, w.serial, x);
	}
}

/* execve() did not happen. A held exec is known to clients by now, so it ends; any other never was. */
static void exec_not_executed(struct init *in, struct exec *x, const struct err *e)
{
	if (x->state == EXEC_HELD)
		x->live->cause = OUTCOME_FAILED;
	else
		x->state = EXEC_FAILED;
	exec_answer_waiters(in, x, e);
	if (x->state == EXEC_FAILED)
		client_forget(in, x);
}

void exec_reported(struct init *in, struct exec *x)
{
	struct report rep;
	ssize_t n = read(x->live->report.fd, &rep, sizeof(rep));
	bool first = x->state == EXEC_STARTING;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == (ssize_t)sizeof(rep.kind) && rep.kind == REPORT_HELD) {
		x->state = EXEC_HELD;
		exec_answer_waiters(in, x, NULL);
		journal_exec(in, x);
		return;
	}
	source_close(in, &x->live->report);
	if (n == (ssize_t)sizeof(rep) && rep.kind == REPORT_FAILED) {
		exec_not_executed(in, x, &rep.e);
		return;
	}
	x->state = EXEC_RUNNING; /* or it was killed before execve(): then its end says so */
	exec_answer_waiters(in, x, NULL);
	if (first)
		journal_exec(in, x);
}

/* --- Killed ------------------------------------------------------------------------------------------------------------------ */

static bool exec_has_leader(const struct exec *x)
{
	return x->state == EXEC_STARTING || x->state == EXEC_HELD || x->state == EXEC_RUNNING;
}

/* The one terminal event. @left: processes of the tree that are still there. */
static void exec_finish(struct init *in, struct exec *x, uint32_t left)
{
	struct live *l = x->live;

	x->end.left = left;
	x->end.out_bytes = l->streams[0].end;
	x->end.err_bytes = l->streams[1].end;
	if (l->cause != OUTCOME_RUNNING)
		x->end.outcome = l->cause;
	x->state = EXEC_ENDED;
	l->deadline_ns = 0;
	in->num_ended++;
	in->strays |= left > 0 && !l->grouped;
	close_p(&l->go);
	close_p(&l->input);
	l->go = l->input = -EBADF;
	journal_exec(in, x);
	client_notify(in, x, PENDING_ENDED);
	exec_settle(in, x);
}

/* One pass over the tree; decides when the next one is, or that there is none. */
static void exec_kill_pass(struct init *in, struct exec *x)
{
	struct live *l = x->live;
	uint32_t left = tree_kill(in, x);
	uint64_t now = clock_ns();

	if (left == 0 && !exec_has_leader(x)) {
		l->killing = false;
		l->kill_next_ns = 0;
	} else {
		l->kill_next_ns = now + MIN(KILL_PASS_NS << MIN(l->passes, 10U), KILL_PASS_MAX_NS);
		l->passes++;
		init_wake_at(in, l->kill_next_ns);
	}
	if (x->state == EXEC_ENDING && (!l->killing || now >= l->kill_until_ns))
		exec_finish(in, x, left);
	else if (x->state == EXEC_ENDED && !l->killing)
		exec_settle(in, x);
}

void exec_kill(struct init *in, struct exec *x, enum msg_outcome cause)
{
	struct live *l = x->live;

	if (x->state != EXEC_ENDED && l->cause == OUTCOME_RUNNING)
		l->cause = cause;
	l->deadline_ns = 0;
	if (!l->killing) {
		l->killing = true;
		l->passes = 0;
		l->kill_until_ns = clock_ns() + KILL_WAIT_NS;
	}
	if (!l->draining)
		exec_kill_pass(in, x);
}

/* --- Ended ------------------------------------------------------------------------------------------------------------------- */

static void end_status(struct msg_ended *end, int status)
{
	if (WIFSIGNALED(status)) {
		end->outcome = OUTCOME_SIGNALLED;
		end->sig = (uint32_t)WTERMSIG(status);
	} else {
		end->outcome = OUTCOME_EXITED;
		end->code = (uint32_t)WEXITSTATUS(status);
	}
}

void exec_reaped(struct init *in, struct exec *x, int status, uint64_t user_us, uint64_t system_us, uint64_t peak)
{
	struct live *l = x->live;

	for (unsigned i = 0; i < 2 && l->report.fd >= 0; i++) /* HELD and the end of the pipe at most */
		exec_reported(in, x);
	if (x->state == EXEC_FAILED) {
		exec_free(in, x);
		return;
	}
	x->state = EXEC_ENDING;
	x->end.end_ns = clock_ns();
	x->end.user_us = user_us;
	x->end.system_us = system_us;
	x->end.peak_bytes = peak;
	end_status(&x->end, status);
	if (l->grouped && group_usage(in, x->id, &user_us, &system_us) == 0) {
		x->end.user_us = user_us;
		x->end.system_us = system_us;
	}
	l->draining = true;
	for (size_t i = 0; i < ARRAY_SIZE(l->streams); i++)
		stream_drain(in, &l->streams[i]);
	l->draining = false;
	if (l->killing)
		exec_kill_pass(in, x);
	else
		exec_finish(in, x, tree_count(in, x));
}

void exec_settle(struct init *in, struct exec *x)
{
	struct live *l = x->live;

	if (x->state != EXEC_ENDED || !l)
		return;
	if (l->grouped && group_remove(in, x->id) == 0)
		l->grouped = false;
	if (l->grouped) {
		l->group_next_ns = clock_ns() + GROUP_RETRY_NS;
		init_wake_at(in, l->group_next_ns);
	}
	if (l->grouped || l->killing || l->streams[0].src.fd >= 0 || l->streams[1].src.fd >= 0)
		return;
	live_free(in, x);
	in->num_live--;
	client_notify(in, x, 0);
}

static void exec_tick_one(struct init *in, struct exec *x, uint64_t now)
{
	if (x->live->deadline_ns != 0 && x->live->deadline_ns <= now)
		exec_kill(in, x, OUTCOME_TIMED_OUT);
	if (x->live && x->live->kill_next_ns != 0 && x->live->kill_next_ns <= now)
		exec_kill_pass(in, x);
	if (x->live && x->live->group_next_ns != 0 && x->live->group_next_ns <= now)
		exec_settle(in, x);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

uint64_t exec_tick(struct init *in, uint64_t now)
{
	uint64_t next = 0;

	for (struct exec *x = in->execs; x; x = x->next) { /* nothing below takes an exec off the list */
		if (!x->live || x->state == EXEC_FAILED)
			continue;
		exec_tick_one(in, x, now);
		if (!x->live)
			continue;
		next = earlier(next, x->live->deadline_ns);
		next = earlier(next, x->live->kill_next_ns);
		next = earlier(next, x->live->group_next_ns);
	}
	return next;
}

void exec_settle_all(struct init *in)
{
	for (struct exec *x = in->execs; x; x = x->next)
		if (x->live && x->live->grouped)
			exec_settle(in, x);
}

void exec_client_gone(struct init *in, const struct client *c)
{
	for (struct exec *x = in->execs; x; x = x->next) {
		struct waiter **w = x->live ? &x->live->waiters : NULL;
		struct sub **s = &x->subs;

		while (w && *w) {
			if ((*w)->client == c)
				waiter_free(w);
			else
				w = &(*w)->next;
		}
		while (*s) {
			struct sub *gone = *s;

			if (gone->client != c) {
				s = &gone->next;
				continue;
			}
			*s = gone->next;
			free(gone);
		}
	}
}
