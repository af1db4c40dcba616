/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - Asking an init
 *
 * Theory of operation. Init runs beside code that nobody trusts, so what it sends is checked as if it were hostile: by the wire's decoders,
 * by an exec number that must be one of ours, and by a deadline for each answer. Requests are synchronous; events that arrive while an
 * answer is awaited are recorded in the exec they belong to, so no order of calls can lose one. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/clock.h"
#include "warden/internal.h"

/* Init never blocks, and answers START when execve() has succeeded: seconds only on a machine that swaps or a hung disk. */
#define CLIENT_DEADLINE_MS 30000

static int init_gone(struct carrel_sandbox *sb, struct err *e)
{
	close_p(&sb->control);
	sb->control = -EBADF;
	return err_set(e, ERR_UNAVAILABLE, "ask sandbox '%s': its init is gone", sb->id);
}

/* @what: the packet, or what was wrong with it */
static int init_broken(struct carrel_sandbox *sb, const char *what, struct err *e)
{
	close_p(&sb->control);
	sb->control = -EBADF;
	return err_set(e, ERR_PROTOCOL, "read from sandbox '%s': malformed %s", sb->id, what);
}

static void record_output(struct carrel_exec *x, const struct msg_output *m)
{
	size_t i = m->stream == 2;

	if (x->number != m->exec)
		return;
	if (m->end > x->spool_end[i])
		x->spool_end[i] = m->end; /* offsets only grow */
	x->spool_eof[i] |= m->eof;
}

/* Within one version only additions are made, which old and new both ignore; another version is another language. */
static int record_welcome(struct carrel_sandbox *sb, const struct msg_packet *p, struct err *e)
{
	struct msg_welcome m;

	if (msg_welcome_get(p->body, &m) < 0)
		return init_broken(sb, msg_name(p->h.type), e);
	if (m.version != MSG_VERSION)
		return err_hint(e,
				err_set(e, ERR_UNSUPPORTED, "talk to sandbox '%s': its init speaks version %u of the wire, we %u",
					sb->id, m.version, (unsigned)MSG_VERSION),
				"use the carrel that started it");
	sb->landlock = m.landlock;
	return 0;
}

static void record_end(struct carrel_exec *x, const struct msg_ended *m)
{
	if (x->number != m->exec || x->ended)
		return;
	x->ended = 1;
	x->end = *m;
	x->spool_end[0] = MAX(x->spool_end[0], m->out_bytes);
	x->spool_end[1] = MAX(x->spool_end[1], m->err_bytes);
}

/* Several handles may be on one exec, and each is told. Events of execs that this handle does not know (their handle was freed) are dropped. */
static int record_event(struct carrel_sandbox *sb, const struct msg_packet *p, struct err *e)
{
	struct msg_output output;
	struct msg_ended ended;

	switch ((enum msg_type)p->h.type) {
	case MSG_OUTPUT:
		if (msg_output_get(p->body, &output) < 0)
			return init_broken(sb, msg_name(p->h.type), e);
		for (struct carrel_exec *x = sb->execs; x; x = x->next)
			record_output(x, &output);
		return 0;
	case MSG_ENDED:
		if (msg_ended_get(p->body, &ended) < 0)
			return init_broken(sb, msg_name(p->h.type), e);
		for (struct carrel_exec *x = sb->execs; x; x = x->next)
			record_end(x, &ended);
		return 0;
	case MSG_WELCOME: /* answers CONFIG, which nobody waits for */
		return record_welcome(sb, p, e);
	case MSG_FAILED: { /* of CONFIG: init could not even begin */
		struct err story;

		if (msg_failed_get(p->body, &story) < 0)
			return init_broken(sb, msg_name(p->h.type), e);
		if (e)
			*e = story;
		return err_wrap(e, -err_code_errno(story.code), "start the init of sandbox '%s'", sb->id);
	}
	case MSG_CONFIG:
	case MSG_HELLO:
	case MSG_START:
	case MSG_GO:
	case MSG_SIGNAL:
	case MSG_RESIZE:
	case MSG_STDIN_CLOSE:
	case MSG_ATTACH:
	case MSG_LIST:
	case MSG_OK:
	case MSG_STARTED:
	case MSG_EXEC:
		break; /* late answers to a request whose deadline passed */
	}
	return 0;
}

/* One packet within @timeout_ms. Return: 1; 0 if none came; negative errno. */
static int receive(struct carrel_sandbox *sb, int timeout_ms, struct msg_packet *p, struct err *e)
{
	struct pollfd fd = { .fd = sb->control, .events = POLLIN };
	int r;

	if (sb->control < 0)
		return init_gone(sb, e);
	do
		r = poll(&fd, 1, timeout_ms);
	while (r < 0 && errno == EINTR && timeout_ms < 0);
	if (r == 0 || (r < 0 && errno == EINTR))
		return 0;
	if (r < 0)
		return err_sys(e, -errno, "wait for sandbox '%s'", sb->id);
	r = msg_recv(sb->control, MSG_DONTWAIT, p);
	if (r == -EAGAIN)
		return 0;
	if (r == -EPROTO)
		return init_broken(sb, "packet", e);
	if (r == 0 || r == -ECONNRESET)
		return init_gone(sb, e);
	return r < 0 ? err_sys(e, r, "read from sandbox '%s'", sb->id) : 1;
}

int client_dispatch(struct carrel_sandbox *sb, int timeout_ms, struct err *e)
{
	int n = 0, r;

	for (;; n++) {
		struct msg_packet p;

		r = receive(sb, n ? 0 : timeout_ms, &p, e);
		if (r <= 0)
			return n && r == 0 ? n : r;
		r = record_event(sb, &p, e);
		msg_packet_done(&p);
		if (r < 0)
			return r;
	}
}

static int take_answer(struct carrel_sandbox *sb, struct msg_packet *p, enum msg_type want, struct msg_packet *ret,
		       struct err *e)
{
	int r = 0;

	if (p->h.type == MSG_FAILED) {
		struct err story;

		r = msg_failed_get(p->body, &story) < 0 ? init_broken(sb, msg_name(p->h.type), e) : -err_code_errno(story.code);
		if (e && r != -EPROTO)
			*e = story;
	} else if (p->h.type != want) {
		r = init_broken(sb, msg_name(p->h.type), e);
	} else if (want == MSG_WELCOME) {
		r = record_welcome(sb, p, e);
	} else if (ret) {
		*ret = *p;
		return 0;
	}
	msg_packet_done(p);
	return r;
}

int client_deadline(struct carrel_sandbox *sb, struct err *e)
{
	const struct timeval deadline = { .tv_sec = CLIENT_DEADLINE_MS / 1000 };

	if (setsockopt(sb->control, SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof(deadline)) < 0)
		return err_sys(e, -errno, "set a deadline for what sandbox '%s' is sent", sb->id);
	return 0;
}

int client_call(struct carrel_sandbox *sb, enum msg_type type, const struct buf *body, const int *fds, size_t num_fds,
		enum msg_type want, struct msg_packet *ret, struct err *e)
{
	uint64_t deadline = clock_ns() + CLIENT_DEADLINE_MS * NSEC_PER_MSEC, now;
	uint32_t serial = ++sb->serial;
	int r;

	if (sb->control < 0)
		return init_gone(sb, e);
	r = msg_send(sb->control, type, serial, body, fds, num_fds, 0);
	if (r == -EPIPE || r == -ECONNRESET)
		return init_gone(sb, e);
	if (r == -EAGAIN)
		return err_set(e, ERR_DEADLINE, "send %s to sandbox '%s': it does not read", msg_name(type), sb->id);
	if (r < 0)
		return err_sys(e, r, "send %s to sandbox '%s'", msg_name(type), sb->id);
	while ((now = clock_ns()) < deadline) {
		struct msg_packet p;

		r = receive(sb, (int)((deadline - now) / NSEC_PER_MSEC) + 1, &p, e);
		if (r < 0)
			return r;
		if (r == 0)
			continue;
		if (p.h.serial == serial)
			return take_answer(sb, &p, want, ret, e);
		r = record_event(sb, &p, e);
		msg_packet_done(&p);
		if (r < 0)
			return r;
	}
	return err_set(e, ERR_DEADLINE, "wait for sandbox '%s' to answer %s", sb->id, msg_name(type));
}
