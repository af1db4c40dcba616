/* SPDX-License-Identifier: Apache-2.0 */
/* tty.c - The user's terminal, and the pump between it and the sandbox's
 *
 * Theory of operation. With -it the user's terminal is raw: every key, ^C among them, goes to the pty inside, whose line discipline makes
 * signals of it for the foreground job there. Without -i it stays as it is, and ^C reaches carrel. Nothing here may block, because a
 * stopped terminal would keep a SIGTERM waiting: keys are read only when they are there and the last ones have gone; stdout is written
 * through a description of our own, since O_NONBLOCK on the shared one would be seen by the shell. A pty that nobody reads inside takes
 * a few kilobytes of keys, and then no more are read. The end of the sandbox's terminal is EIO, not 0.
 * SIGTTOU is blocked by the caller (signals.c), so that a restore from the background works; taking the terminal is only ever done in
 * the foreground, where the kernel asks for no signal. */
#include "cli/tty.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/sys.h"

/* Bytes read after the end of the command: a pty holds 64 KiB at most (TTYB_DEFAULT_MEM_LIMIT), and a process that is about to be
 * killed may still be writing. */
#define DRAIN_MAX_BYTES MIB(1)

int pump_flush(struct pump *p, int to)
{
	while (!pump_empty(p)) {
		ssize_t n = sys_write(to, p->bytes + p->off, p->len - p->off);

		if (n == -EINTR)
			continue;
		if (n < 0)
			return (int)n;
		p->off += (size_t)n;
	}
	p->off = p->len = 0;
	return 0;
}

/* Read into an empty pump. Return: bytes; 0 at the end; negative errno */
static ssize_t pump_fill(struct pump *p, int from)
{
	ssize_t n;

	do
		n = sys_read(from, p->bytes, sizeof(p->bytes));
	while (n == -EINTR);
	p->off = 0;
	p->len = n > 0 ? (size_t)n : 0;
	return n;
}

int tty_check(struct err *e)
{
	int r;

	if (isatty(STDIN_FILENO))
		return 0;
	r = err_set(e, ERR_INVALID, "open a terminal for --tty: stdin is not one");
	(void)err_hint(e, r, "leave -t out (-i alone passes stdin on), or run it from a terminal");
	return -ENOTTY;
}

int tty_size(uint16_t *ret_rows, uint16_t *ret_cols)
{
	struct winsize size;

	if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0)
		return -ENOTTY;
	*ret_rows = size.ws_row;
	*ret_cols = size.ws_col;
	return 0;
}

static void tty_raw(struct tty *t)
{
	struct termios raw = t->saved;

	if (!t->input || t->state == TTY_RAW)
		return;
	cfmakeraw(&raw);
	if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0)
		t->state = TTY_RAW;
}

static void tty_cooked(struct tty *t)
{
	if (t->state != TTY_RAW)
		return;
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &t->saved); /* a terminal that is gone needs no restoring */
	t->state = TTY_COOKED;
}

static int is_foreground(void)
{
	return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

int tty_open(struct tty *t, int master, enum tty_mode mode, struct err *e)
{
	int r;

	*t = (struct tty){ .state = TTY_CLOSED, .keys = -EBADF, .screen = STDOUT_FILENO, .owned_screen = -EBADF };
	t->master = master;
	t->input = mode == TTY_INTERACTIVE;
	r = sys_fcntl(master, F_GETFL, 0);
	if (r >= 0)
		r = sys_fcntl(master, F_SETFL, r | O_NONBLOCK);
	if (r >= 0 && tcgetattr(STDIN_FILENO, &t->saved) < 0)
		r = -errno;
	if (r < 0)
		return err_sys(e, r, "attach to the terminal");
	if (isatty(STDOUT_FILENO))
		t->owned_screen = sys_openat(AT_FDCWD, "/proc/self/fd/1", O_WRONLY | O_NOCTTY | O_NONBLOCK, 0);
	if (t->owned_screen >= 0)
		t->screen = t->owned_screen; /* else stdout itself: it may be another user's, after su */
	t->state = TTY_COOKED;
	if (t->input)
		t->keys = STDIN_FILENO;
	tty_resume(t);
	return 0;
}

size_t tty_poll(const struct tty *t, struct pollfd *fds)
{
	size_t n = 0;

	if (t->keys >= 0 && t->state == TTY_RAW && pump_empty(&t->inward))
		fds[n++] = (struct pollfd){ .fd = t->keys, .events = POLLIN };
	if (t->master >= 0 && !pump_empty(&t->inward))
		fds[n++] = (struct pollfd){ .fd = t->master, .events = POLLOUT };
	if (t->master >= 0 && pump_empty(&t->outward))
		fds[n++] = (struct pollfd){ .fd = t->master, .events = POLLIN };
	if (!pump_empty(&t->outward))
		fds[n++] = (struct pollfd){ .fd = t->screen, .events = POLLOUT };
	return n;
}

static int is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static int move_inward(struct tty *t)
{
	ssize_t n;
	int r;

	if (t->keys >= 0 && t->state == TTY_RAW && pump_empty(&t->inward) && is_readable(t->keys)) {
		n = pump_fill(&t->inward, t->keys);
		if (n == 0 || n == -EIO)
			t->keys = -EBADF; /* hung up; SIGHUP says the rest */
	}
	if (t->master < 0)
		return 0;
	r = pump_flush(&t->inward, t->master);
	if (r == -EIO)
		t->inward.off = t->inward.len = 0; /* nobody inside has it open */
	return r == -EAGAIN || r == -EIO ? 0 : r;
}

static int move_outward(struct tty *t)
{
	ssize_t n;
	int r;

	r = pump_flush(&t->outward, t->screen);
	if (r < 0 || t->master < 0)
		return r == -EAGAIN ? 0 : r;
	n = pump_fill(&t->outward, t->master);
	if (t->ended && n > 0)
		t->drained += (size_t)n;
	if (n == 0 || n == -EIO || (n == -EAGAIN && t->ended) || t->drained > DRAIN_MAX_BYTES)
		t->master = -EBADF;
	else if (n < 0)
		return n == -EAGAIN ? 0 : (int)n;
	r = pump_flush(&t->outward, t->screen);
	return r == -EAGAIN ? 0 : r;
}

int tty_move(struct tty *t)
{
	int r = move_inward(t);

	return r < 0 ? r : move_outward(t);
}

bool tty_drained(const struct tty *t)
{
	return t->master < 0 && pump_empty(&t->outward);
}

void tty_end(struct tty *t)
{
	t->ended = 1;
}

void tty_pause(struct tty *t)
{
	tty_cooked(t);
	(void)raise(SIGSTOP);
}

void tty_resume(struct tty *t)
{
	if (is_foreground())
		tty_raw(t);
}

void tty_close(struct tty *t)
{
	if (t->state == TTY_CLOSED)
		return;
	tty_cooked(t);
	if (t->owned_screen >= 0)
		(void)close(t->owned_screen);
	t->owned_screen = -EBADF;
	t->state = TTY_CLOSED;
}
