/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - From the start of a command to its end: events, signals, and bytes in between
 *
 * Theory of operation. One poll() loop over signals, the sandbox, and the streams that are moved here; nothing else in it waits.
 * Without a terminal and without --output-limit nothing is moved: the command writes to our own stdout, and the loop turns twice. The end of
 * the command ends the run: what it left running is killed with the sandbox, and output counts up to that moment (the offsets in the
 * result), so a background process that keeps a pipe open does not keep us. */
#include "cli/session.h"

#include <poll.h>
#include <signal.h>

#include "cli/say.h"
#include "cli/signals.h"

/* Bytes that a write to a pipe takes whole if poll() said that it is writable (PIPE_BUF, pipe(7)); stdout may be one. */
#define FOLLOW_BYTES 4096
_Static_assert(FOLLOW_BYTES <= PUMP_BYTES, "a followed part must fit its pump");

#define POLL_MAX (2 + TTY_POLL_MAX)

static int is_writable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return poll(&p, 1, 0) > 0;
}

/*
 * Our output cannot be written any more. If its reader is gone, this process ends as one that writes there itself does.
 * Return: the signal that does it; else negative errno
 */
static int output_failed(int r, struct carrel_error *e)
{
	struct err why = { 0 };

	if (r == -EPIPE)
		return SIGPIPE;
	if (r == -EIO)
		return SIGHUP; /* of a terminal that was closed */
	r = err_sys(&why, r, "write the command's output");
	return error_from(e, err_hint(&why, r, "make room where stdout and stderr go"), &why);
}

/* One stream as far as it goes without waiting. Return: 0; a signal or negative errno as output_failed(); negative errno */
static int follow_move(struct session *s, size_t i, struct carrel_error *e)
{
	struct follow *f = &s->follow[i];
	int to = i == 0 ? STDOUT_FILENO : STDERR_FILENO;
	uint64_t end = i == 0 ? s->result.stdout_bytes : s->result.stderr_bytes;

	for (;;) {
		struct carrel_error why = { 0 };
		ssize_t n;
		int r;

		if (!pump_empty(&f->pump)) {
			if (!is_writable(to))
				return 0;
			r = pump_flush(&f->pump, to);
			if (r < 0)
				return r == -EAGAIN ? 0 : output_failed(r, e);
		}
		f->done = s->ended && f->offset >= end;
		if (f->done)
			return 0;
		n = carrel_exec_read(s->exec, (int)i + 1, f->offset, f->pump.bytes, FOLLOW_BYTES, 0, &why);
		if (n == 0 || n == -EAGAIN) {
			f->done = s->ended;
			return 0;
		}
		if (n < 0) {
			*e = why;
			return (int)n;
		}
		f->offset += (uint64_t)n;
		f->pump.len = (size_t)n;
	}
}

static bool follow_done(const struct session *s)
{
	return s->follow[0].done && pump_empty(&s->follow[0].pump) && s->follow[1].done && pump_empty(&s->follow[1].pump);
}

static bool session_done(const struct session *s)
{
	if (!s->ended || s->output == OUTPUT_NONE)
		return s->ended;
	return s->output == OUTPUT_FOLLOW ? follow_done(s) : tty_drained(&s->tty);
}

static void terminal_size(struct session *s)
{
	uint16_t rows, cols;

	if (tty_size(&rows, &cols) == 0)
		(void)carrel_exec_resize(s->exec, rows, cols, NULL); /* a wrong size is no reason to end */
}

/* Return: 0; the signal if it ends the run */
static int take_signals(struct session *s)
{
	int sig;

	while ((sig = signals_next(s->signals)) > 0) {
		if (signals_fatal(sig))
			return sig;
		if (s->output != OUTPUT_TERMINAL)
			continue;
		if (sig == SIGTSTP)
			tty_pause(&s->tty);
		if (sig == SIGTSTP || sig == SIGCONT)
			tty_resume(&s->tty);
		if (sig != SIGTTOU)
			terminal_size(s);
	}
	return 0;
}

/* Return: as follow_move() */
static int move_output(struct session *s, struct carrel_error *e)
{
	int r;

	if (s->output == OUTPUT_NONE)
		return 0;
	if (s->output == OUTPUT_TERMINAL) {
		r = tty_move(&s->tty);
		return r < 0 ? output_failed(r, e) : 0;
	}
	r = follow_move(s, 0, e);
	return r != 0 ? r : follow_move(s, 1, e);
}

static int look_for_end(struct session *s, struct carrel_error *e)
{
	struct carrel_error why = { 0 };
	int r;

	if (s->ended)
		return 0;
	r = carrel_exec_wait(s->exec, 0, &s->result, &why);
	if (r == -ETIMEDOUT)
		return 0;
	if (r < 0) {
		*e = why;
		return r;
	}
	s->ended = 1;
	tty_end(&s->tty);
	return 0;
}

static size_t fill_poll(const struct session *s, struct pollfd *fds)
{
	size_t n = 0;

	fds[n++] = (struct pollfd){ .fd = s->signals, .events = POLLIN };
	if (!s->ended)
		fds[n++] = (struct pollfd){ .fd = carrel_sandbox_fd(s->sandbox), .events = POLLIN };
	if (s->output == OUTPUT_TERMINAL)
		return n + tty_poll(&s->tty, fds + n);
	for (size_t i = 0; s->output == OUTPUT_FOLLOW && i < ARRAY_SIZE(s->follow); i++)
		if (!pump_empty(&s->follow[i].pump))
			fds[n++] = (struct pollfd){ .fd = i == 0 ? STDOUT_FILENO : STDERR_FILENO, .events = POLLOUT };
	return n;
}

/* The events that poll() told of. Reading a spool takes events too, the end among them: after it the end is looked for in any case,
 * and what came before the end is then moved, since nothing else would wake the loop. */
static int take_events(struct session *s, int readable, struct carrel_error *e)
{
	int r = readable ? carrel_sandbox_dispatch(s->sandbox, e) : 0;

	if (r < 0)
		return r;
	if (s->output == OUTPUT_FOLLOW)
		r = move_output(s, e);
	if (r == 0 && (readable || s->output == OUTPUT_FOLLOW))
		r = look_for_end(s, e);
	return r != 0 ? r : move_output(s, e);
}

static int one_turn(struct session *s, struct carrel_error *e)
{
	struct pollfd fds[POLL_MAX];
	size_t n = fill_poll(s, fds);
	int r;

	if (poll(fds, n, -1) < 0)
		return 0; /* EINTR of a stop and continue; the others would need a bad argument */
	if (fds[0].revents) {
		r = take_signals(s);
		if (r != 0)
			return r;
	}
	return take_events(s, !s->ended && fds[1].revents, e);
}

int session_run(struct session *s, struct carrel_error *e)
{
	int r;

	while (!session_done(s)) {
		r = one_turn(s, e);
		if (r != 0)
			return r;
	}
	return 0;
}
