/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - What a client may ask: one row per message
 *
 * Theory of operation. A handler decodes, acts, and answers one of four ways: 0, the answer was sent or will be; DONE, say OK; -EPROTO with an
 * empty story, the packet is not in the protocol and the client is closed; any other failure is sent as FAILED with its story. Handlers
 * run on the loop's thread and touch no path of the sandbox. */
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/str.h"
#include "init/internal.h"

#define DONE 1

void request_put_exec(const struct exec *x, struct buf *out)
{
	struct msg_exec m = { .flags = x->flags, .pid = (uint32_t)x->pid, .key = x->key ? x->key : "", .end = x->end };

	if (x->state != EXEC_ENDED) {
		m.end.out_bytes = x->live->streams[0].end;
		m.end.err_bytes = x->live->streams[1].end;
	}
	msg_exec_put(out, &m);
}

/* Requests that name an exec: the visible one with that number. */
static struct exec *request_exec(const struct init *in, uint64_t id, struct err *e)
{
	struct exec *x = exec_find(in, id);

	if (!x)
		(void)err_set(e, ERR_NOT_FOUND, "find exec %llu: this sandbox has none with that number",
			      (unsigned long long)id);
	return x;
}

static int handle_hello(struct init *in, struct client *c, struct msg_packet *p, struct err *e)
{
	auto_buf struct buf body = BUF_INIT(MSG_INLINE_MAX);
	struct msg_welcome m = { .version = MSG_VERSION, .landlock = in->landlock };

	(void)e;
	for (const struct exec *x = in->execs; x; x = x->next)
		m.num_execs += x->state != EXEC_FAILED;
	c->greeted = true;
	c->deadline_ns = 0;
	msg_welcome_put(&body, &m);
	client_answer(in, c, MSG_WELCOME, p->h.serial, &body, NULL);
	return 0;
}

/* FNV-1a (Fowler, Noll, Vo; 64 bits): tells a repeated request from another one by the same client; nobody gains from a collision. */
static uint64_t digest_add(uint64_t h, const void *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		h = (h ^ ((const unsigned char *)p)[i]) * UINT64_C(0x100000001b3);
	return h;
}

static uint64_t digest_text(uint64_t h, const char *s)
{
	return digest_add(h, s, strlen(s) + 1);
}

static uint64_t digest_list(uint64_t h, const char *const *v)
{
	for (; *v; v++)
		h = digest_text(h, *v);
	return digest_add(h, "", 1); /* an empty text ends the list: ["a"] and ["b"] is not ["a", "b"] and [] */
}

/* Everything that makes a request what it is; not its number, which a client that lost the first answer chooses anew. */
static uint64_t digest_start(const struct msg_start *m)
{
	uint64_t fixed[] = { m->flags, m->rows, m->cols, m->timeout_ns, m->output_max, m->num_rlimits };
	uint64_t h = digest_add(UINT64_C(0xcbf29ce484222325), fixed, sizeof(fixed));

	for (size_t i = 0; i < m->num_rlimits; i++) {
		uint64_t limit[] = { m->rlimits[i].resource, m->rlimits[i].soft, m->rlimits[i].hard };

		h = digest_add(h, limit, sizeof(limit));
	}
	h = digest_text(digest_text(h, m->user), m->cwd);
	return digest_list(digest_list(h, m->argv), m->env);
}

/* The key is known: the answer is the exec that it named first, or a conflict. */
static int start_again(struct init *in, struct client *c, uint32_t serial, struct exec *x, uint64_t digest,
		       const struct msg_start *m, struct err *e)
{
	uint32_t streams = (x->flags & (START_OUT_SPOOL | START_ERR_SPOOL)) / START_OUT_SPOOL;

	if (x->digest != digest) {
		(void)err_set(e, ERR_CONFLICT, "start with key '%s': exec %llu has that key and another request",
			      m->key, (unsigned long long)x->id);
		return err_hint(e, -EEXIST, "use a new key for a new command");
	}
	if (client_subscribe(x, c) < 0)
		return -ENOMEM;
	if (x->state == EXEC_STARTING)
		return exec_wait_for(x, c, serial, MSG_START);
	exec_answer_started(in, c, serial, x);
	client_notify(in, x, streams | (x->state == EXEC_ENDED ? (uint32_t)PENDING_ENDED : 0));
	return 0;
}

static int handle_start(struct init *in, struct client *c, struct msg_packet *p, struct err *e)
{
	auto_(msg_start_done) struct msg_start m = { 0 };
	int r = msg_start_get(p->body, &m);
	const uint32_t with_fd = START_STDIN_FD | START_OUT_FD | START_ERR_FD | START_OUT_SPOOL | START_ERR_SPOOL;
	uint64_t digest;
	struct exec *x;

	if (r < 0)
		return r;
	if (p->num_fds != (size_t)__builtin_popcount(m.flags & with_fd))
		return -EPROTO;
	digest = digest_start(&m);
	x = m.key[0] ? exec_find_key(in, m.key) : NULL;
	if (x)
		return start_again(in, c, p->h.serial, x, digest, &m, e);
	if (exec_find(in, m.exec))
		return err_set(e, ERR_CONFLICT, "start exec %llu: the number is taken", (unsigned long long)m.exec);
	return exec_start(in, c, p->h.serial, p, &m, digest, e);
}

static int handle_go(struct init *in, struct client *c, struct msg_packet *p, struct err *e)
{
	struct msg_exec_ref m;
	int r = msg_exec_ref_get(p->body, &m);
	struct exec *x;

	if (r < 0)
		return r;
	x = request_exec(in, m.exec, e);
	if (!x)
		return -ENOENT;
	if (x->state != EXEC_HELD || x->live->go < 0)
		return err_set(e, ERR_CONFLICT, "let exec %llu go: it is not held", (unsigned long long)m.exec);
	r = exec_wait_for(x, c, p->h.serial, MSG_GO);
	if (r < 0)
		return r;
	(void)!write(x->live->go, "", 1);  /* the child may be dead already: its report pipe tells */
	(void)close(take_fd(x->live->go)); /* see close_p() */
	return 0;
}

static int signal_leader(const struct exec *x, const struct msg_signal *m, struct err *e)
{
	bool there = x->state == EXEC_STARTING || x->state == EXEC_HELD || x->state == EXEC_RUNNING;
	int r;

	if (!there)
		return err_set(e, ERR_CONFLICT, "signal exec %llu: it has ended", (unsigned long long)m->exec);
	r = kill(m->scope == SCOPE_GROUP ? -x->pid : x->pid, (int)m->sig);
	if (r < 0)
		return err_sys(e, -errno, "send signal %u to exec %llu", m->sig, (unsigned long long)m->exec);
	return DONE;
}

static int handle_signal(struct init *in, struct client *c, struct msg_packet *p, struct err *e)
{
	struct msg_signal m;
	int r = msg_signal_get(p->body, &m);
	struct exec *x;

	(void)c;
	if (r < 0)
		return r;
	x = request_exec(in, m.exec, e);
	if (!x)
		return -ENOENT;
	if (m.scope != SCOPE_TREE)
		return signal_leader(x, &m, e);
	if (x->live)
		exec_kill(in, x, OUTCOME_KILLED);
	return DONE; /* without a live part nothing of it is left: that is what was asked for */
}

static int handle_resize(struct init *in, struct client *c, struct msg_packet *p, struct err *e)
{
	struct msg_resize m;
	int r = msg_resize_get(p->body, &m);
	struct winsize size;
	struct exec *x;

	(void)c;
	if (r < 0)
		return r;
	x = request_exec(in, m.exec, e);
	if (!x)
		return -ENOENT;
	if (!(x->flags & START_PTY))
		return err_set(e, ERR_INVALID, "resize exec %llu: it has no terminal", (unsigned long long)m.exec);
	if (exec_input(x) < 0)
		return err_set(e, ERR_CONFLICT, "resize exec %llu: its terminal is closed", (unsigned long long)m.exec);
	size = (struct winsize){ .ws_row = m.rows, .ws_col = m.cols };
	if (ioctl(exec_input(x), TIOCSWINSZ, &size) < 0)
		return err_sys(e, -errno, "resize exec %llu", (unsigned long long)m.exec);
	return DONE;
}

static int handle_stdin_close(struct init *in, struct client *c, struct msg_packet *p, struct err *e)
{
	struct msg_exec_ref m;
	int r = msg_exec_ref_get(p->body, &m);
	struct exec *x;

	(void)c;
	if (r < 0)
		return r;
	x = request_exec(in, m.exec, e);
	if (!x)
		return -ENOENT;
	if (!(x->flags & START_STDIN_PIPE))
		return err_set(e, ERR_INVALID, "close stdin of exec %llu: it was not started with a pipe there",
			       (unsigned long long)m.exec);
	if (x->live && x->live->input >= 0)
		(void)close(take_fd(x->live->input)); /* see close_p() */
	return DONE;
}

static int handle_attach(struct init *in, struct client *c, struct msg_packet *p, struct err *e)
{
	auto_buf struct buf body = BUF_INIT(MSG_INLINE_MAX);
	struct msg_exec_ref m;
	int r = msg_exec_ref_get(p->body, &m);
	struct exec *x;

	if (r < 0)
		return r;
	x = request_exec(in, m.exec, e);
	if (!x)
		return -ENOENT;
	r = client_subscribe(x, c);
	if (r < 0)
		return r;
	request_put_exec(x, &body);
	client_answer(in, c, MSG_EXEC, p->h.serial, &body, x);
	client_notify(in, x,
		      (x->flags & (START_OUT_SPOOL | START_ERR_SPOOL)) / START_OUT_SPOOL |
			      (x->state == EXEC_ENDED ? (uint32_t)PENDING_ENDED : 0));
	return 0;
}

static int handle_list(struct init *in, struct client *c, struct msg_packet *p, struct err *e)
{
	(void)in;
	(void)e;
	c->listing = true; /* client_readable() sends it */
	c->list_serial = p->h.serial;
	c->list_seq = 0;
	return 0;
}

_Static_assert(START_ERR_SPOOL / START_OUT_SPOOL == PENDING_ERR && PENDING_OUT == 1,
	       "spool flags shift to pending bits");

static const struct {
	int (*handle)(struct init *in, struct client *c, struct msg_packet *p, struct err *e);
	bool before_hello;
} requests[] = {
	[MSG_HELLO] = { handle_hello, true },    [MSG_START] = { handle_start, false },
	[MSG_GO] = { handle_go, false },         [MSG_SIGNAL] = { handle_signal, false },
	[MSG_RESIZE] = { handle_resize, false }, [MSG_STDIN_CLOSE] = { handle_stdin_close, false },
	[MSG_ATTACH] = { handle_attach, false }, [MSG_LIST] = { handle_list, false },
};

int request_handle(struct init *in, struct client *c, struct msg_packet *p)
{
	struct err e;
	int r;

	e.code = ERR_NONE;
	if (p->h.type >= ARRAY_SIZE(requests) || !requests[p->h.type].handle)
		return -EPROTO;
	if (requests[p->h.type].before_hello == c->greeted)
		return -EPROTO;
	r = requests[p->h.type].handle(in, c, p, &e);
	if (r == DONE)
		client_answer(in, c, MSG_OK, p->h.serial, NULL, NULL);
	else if (r == -EPROTO && e.code == ERR_NONE)
		return r;
	else if (r < 0)
		client_fail(in, c, p->h.serial, r, &e);
	return 0;
}
