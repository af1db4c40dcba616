/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - Connections: who may ask, and how an answer gets out without waiting for its reader
 *
 * Theory of operation. Init trusts a client as far as the socket's directory does (that is where authority is decided), but waits for none.
 * What a client has coming is of two kinds:
 *
 * Answers, one for each request, in order of their completion. When the socket is full they queue, and while CLIENT_ANSWERS_MAX are queued
 * or deferred (a START whose child has not reported), the client's requests stay in its socket. So a queue has a bound, and the client that
 * fills it is the one that waits. A LIST may be long: it is sent as the socket takes it, from a cursor, and holds up that client's requests too.
 *
 * Events, which coalesce: a subscription is a set of bits, and the numbers are taken when the event is sent. An event never overtakes
 * a queued answer, so STARTED comes before ENDED.
 *
 * A client that breaks the protocol is closed. Closing happens at the end of the loop's turn (client_sweep()), so that no function
 * on the stack holds a freed client. */
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "init/internal.h"

/* Pause after accept() failed for want of memory or descriptors: the listener stays readable and would spin. */
#define LISTEN_PAUSE_NS NSEC_PER_SEC

void client_break(struct init *in, struct client *c)
{
	c->broken = true;
	in->sweep = true;
}

static void reply_free(struct reply *r)
{
	buf_done(&r->body);
	free(r);
}

static void client_free(struct init *in, struct client *c)
{
	exec_client_gone(in, c);
	source_close(in, &c->src);
	while (c->replies) {
		struct reply *r = c->replies;

		c->replies = r->next;
		reply_free(r);
	}
	free(c);
}

int client_new(struct init *in, int sock, struct client **ret)
{
	struct client *c;
	size_t i = 0;
	int r;

	while (i < ARRAY_SIZE(in->clients) && in->clients[i])
		i++;
	c = i < ARRAY_SIZE(in->clients) ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		(void)close(sock); /* see close_p() */
		return -ENOMEM;
	}
	r = source_open(in, &c->src, SOURCE_CLIENT, sock, EPOLLIN, c);
	if (r < 0) {
		free(c);
		return r;
	}
	c->replies_end = &c->replies;
	in->clients[i] = c;
	*ret = c;
	return 0;
}

void client_accept(struct init *in)
{
	int fd = accept4(in->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *c;

	if (fd < 0) {
		if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR)
			return;
		in->listen_ns = clock_ns() + LISTEN_PAUSE_NS;
		source_set(in, &in->listen, 0);
		init_wake_at(in, in->listen_ns);
		return;
	}
	if (client_new(in, fd, &c) < 0)
		return; /* the client sees end of file */
	c->deadline_ns = clock_ns() + CLIENT_HELLO_NS;
	init_wake_at(in, c->deadline_ns);
}

/* True while @c may be sent an event: nothing that must come first is waiting. */
static bool client_is_clear(const struct client *c)
{
	return !c->broken && !c->replies && !c->listing && !(c->src.events & EPOLLOUT);
}

/* Wait for what makes sense now: more requests, or room in the socket. @blocked: EPOLLOUT if the socket was full. */
static void client_arm(struct init *in, struct client *c, uint32_t blocked)
{
	bool full = c->num_answers >= CLIENT_ANSWERS_MAX || c->listing;

	source_set(in, &c->src, (full ? 0 : (uint32_t)EPOLLIN) | blocked);
}

/* Return: 0; -EAGAIN if the socket is full; other failures break the client and answer 0, since there is nobody to tell. */
static int client_send(struct init *in, struct client *c, enum msg_type type, uint32_t serial, const struct buf *body,
		       const struct exec *with)
{
	int fd = with ? exec_input(with) : -EBADF;
	int r = msg_send(c->src.fd, type, serial, body, &fd, fd >= 0 ? 1 : 0, MSG_DONTWAIT);

	if (r == -EAGAIN)
		return r;
	if (r < 0)
		client_break(in, c);
	return 0;
}

void client_answer(struct init *in, struct client *c, enum msg_type type, uint32_t serial, const struct buf *body,
		   const struct exec *with)
{
	struct reply *r;

	if (c->broken)
		return;
	if (!c->replies && client_send(in, c, type, serial, body, with) == 0) {
		client_arm(in, c, c->src.events & EPOLLOUT); /* there may be room for a further request now */
		return;
	}
	r = calloc(1, sizeof(*r));
	if (!r) {
		client_break(in, c); /* it would wait for this answer for ever */
		return;
	}
	*r = (struct reply){
		.type = type, .serial = serial, .fd_of = with ? with->id : 0, .body = BUF_INIT(MSG_INLINE_MAX)
	};
	if (body && buf_add(&r->body, body->p, body->len) < 0) {
		reply_free(r);
		client_break(in, c);
		return;
	}
	*c->replies_end = r;
	c->replies_end = &r->next;
	c->num_answers++;
	client_arm(in, c, EPOLLOUT);
}

void client_fail(struct init *in, struct client *c, uint32_t serial, int r, const struct err *e)
{
	auto_buf struct buf body = BUF_INIT(MSG_INLINE_MAX);
	struct err bare = { .code = err_code_of_errno(-r), .sys = -r };

	if (e->code == ERR_NONE)
		(void)err_sys(&bare, r, "serve a request"); /* -ENOMEM may come with an empty story */
	msg_failed_put(&body, e->code == ERR_NONE ? &bare : e);
	client_answer(in, c, MSG_FAILED, serial, &body, NULL);
}

static int client_send_output(struct init *in, struct client *c, const struct exec *x, unsigned index)
{
	auto_buf struct buf body = BUF_INIT(MSG_INLINE_MAX);
	const struct stream *s = x->live ? &x->live->streams[index] : NULL;
	struct msg_output m = {
		.exec = x->id,
		.stream = index + 1,
		.eof = !s || s->src.fd < 0,
		.end = s ? s->end : (index == 0 ? x->end.out_bytes : x->end.err_bytes),
	};

	msg_output_put(&body, &m);
	return client_send(in, c, MSG_OUTPUT, 0, &body, NULL);
}

static int client_send_ended(struct init *in, struct client *c, const struct exec *x)
{
	auto_buf struct buf body = BUF_INIT(MSG_INLINE_MAX);

	msg_ended_put(&body, &x->end);
	return client_send(in, c, MSG_ENDED, 0, &body, NULL);
}

/* Send what @s has pending, as far as the socket takes it. */
static void sub_flush(struct init *in, const struct exec *x, struct sub *s)
{
	struct client *c = s->client;

	while (s->pending && client_is_clear(c)) {
		uint32_t bit = s->pending & -s->pending; /* OUTPUT before ENDED: the lowest first */
		int r;

		if (bit == PENDING_ENDED)
			r = client_send_ended(in, c, x);
		else
			r = client_send_output(in, c, x, bit == PENDING_OUT ? 0 : 1);
		if (r < 0) {
			client_arm(in, c, EPOLLOUT);
			return;
		}
		s->pending &= ~bit;
	}
}

/* Drop subscriptions through which nothing can come any more. */
static void sub_prune(struct exec *x)
{
	struct sub **at = &x->subs;

	while (x->state == EXEC_ENDED && !x->live && *at) {
		struct sub *s = *at;

		if (s->pending) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		free(s);
	}
}

void client_notify(struct init *in, struct exec *x, uint32_t pending)
{
	for (struct sub *s = x->subs; s; s = s->next) {
		s->pending |= pending;
		sub_flush(in, x, s);
	}
	sub_prune(x);
}

int client_subscribe(struct exec *x, struct client *c)
{
	struct sub *s = x->subs;

	while (s && s->client != c)
		s = s->next;
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return -ENOMEM;
		*s = (struct sub){ .next = x->subs, .client = c };
		x->subs = s;
	}
	return 0;
}

void client_forget(struct init *in, struct exec *x)
{
	while (x->subs) {
		struct sub *s = x->subs;

		if (s->pending)
			client_break(in, s->client);
		x->subs = s->next;
		free(s);
	}
}

static void client_flush_replies(struct init *in, struct client *c)
{
	while (c->replies && !c->broken) {
		struct reply *r = c->replies;
		const struct exec *with = r->fd_of ? exec_find(in, r->fd_of) : NULL;

		if (client_send(in, c, r->type, r->serial, &r->body, with) < 0)
			return;
		c->replies = r->next;
		if (!c->replies)
			c->replies_end = &c->replies;
		c->num_answers--;
		reply_free(r);
	}
}

/* Go on with a LIST. Every turn starts from the cursor, since execs come and go in between. */
static void client_flush_list(struct init *in, struct client *c)
{
	for (const struct exec *x = in->execs; x && !c->broken; x = x->next) {
		auto_buf struct buf body = BUF_INIT(MSG_INLINE_MAX);

		if (x->seq <= c->list_seq || x->state == EXEC_FAILED)
			continue;
		request_put_exec(x, &body);
		if (client_send(in, c, MSG_EXEC, c->list_serial, &body, NULL) < 0)
			return;
		c->list_seq = x->seq;
	}
	if (client_send(in, c, MSG_OK, c->list_serial, NULL, NULL) == 0)
		c->listing = false;
}

static void client_flush(struct init *in, struct client *c)
{
	client_arm(in, c, 0); /* and back to EPOLLOUT by whatever finds the socket full */
	client_flush_replies(in, c);
	if (!c->replies && c->listing)
		client_flush_list(in, c);
	client_arm(in, c, c->replies || c->listing ? (uint32_t)EPOLLOUT : 0);
	for (struct exec *x = in->execs; x && client_is_clear(c); x = x->next) {
		for (struct sub *s = x->subs; s; s = s->next)
			if (s->client == c)
				sub_flush(in, x, s);
		sub_prune(x);
	}
}

void client_readable(struct init *in, struct client *c, uint32_t events)
{
	auto_(msg_packet_done) struct msg_packet p = { 0 };
	int r;

	if (events & EPOLLOUT)
		client_flush(in, c);
	if (!(events & EPOLLIN) || !(c->src.events & EPOLLIN)) {
		if (events & (EPOLLHUP | EPOLLERR))
			client_break(in, c); /* it is gone, and what it still asks for has nobody to be told */
		return;
	}
	r = msg_recv(c->src.fd, MSG_DONTWAIT, &p);
	if (r == -EAGAIN || r == -ENOMEM)
		return;
	if (r <= 0 || request_handle(in, c, &p) < 0) {
		client_break(in, c);
		return;
	}
	if (c->listing)
		client_flush(in, c);
	else
		client_arm(in, c, c->src.events & EPOLLOUT);
}

void client_sweep(struct init *in)
{
	in->sweep = false;
	for (size_t i = 0; i < ARRAY_SIZE(in->clients); i++) {
		struct client *c = in->clients[i];

		if (!c || !c->broken)
			continue;
		if (c->owner && in->flags & CONFIG_DIE_WITH_OWNER)
			_exit(EXIT_SUCCESS);
		in->clients[i] = NULL;
		client_free(in, c);
	}
}

uint64_t client_tick(struct init *in, uint64_t now)
{
	uint64_t next = 0;

	for (size_t i = 0; i < ARRAY_SIZE(in->clients); i++) {
		struct client *c = in->clients[i];

		if (!c || c->deadline_ns == 0)
			continue;
		if (c->deadline_ns <= now)
			client_break(in, c);
		else if (next == 0 || c->deadline_ns < next)
			next = c->deadline_ns;
	}
	return next;
}
