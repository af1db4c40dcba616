/* SPDX-License-Identifier: Apache-2.0 */
/* tty.h - The user's terminal, and the pump between it and the sandbox's */
#pragma once

#include <poll.h>
#include <sys/types.h>
#include <termios.h>

#include "base/err.h"
#include "base/macros.h"

/* Bytes on their way. What a terminal's line discipline takes at once (N_TTY_BUF_SIZE); more would only make ^C wait longer. */
#define PUMP_BYTES 4096

/**
 * struct pump - Bytes that were read and not written yet
 * @bytes, @off, @len: bytes[off] to bytes[len - 1] wait
 */
struct pump {
	size_t off, len;
	char bytes[PUMP_BYTES];
};

static inline bool pump_empty(const struct pump *p)
{
	return p->off == p->len;
}

/* pump_flush() - Write what waits. Return: 0 if all went; -EAGAIN if some still waits; other negative errno. */
must_check int pump_flush(struct pump *p, int to);

enum tty_state {
	TTY_CLOSED, /* nothing to restore */
	TTY_COOKED, /* attached, as the user left it: output only, or while stopped */
	TTY_RAW,    /* every key goes inside; tty_close() and tty_pause() restore */
};

/**
 * struct tty - Our side of `run -t`
 * @state:  Only tty_*() write it
 * @input:  Keys are passed on (-i)
 * @keys:   Descriptor of the keyboard, -EBADF once it is at its end
 * @screen: Where output goes: a description of our own of stdout if that is a terminal (it must not block), else stdout
 * @owned_screen: @screen if we opened it
 * @master: The sandbox's terminal, owned by the exec; -EBADF once it is drained
 * @ended:  The command has ended
 * @drained: Bytes read since then
 */
struct tty {
	enum tty_state state;
	int input;
	int keys, screen, owned_screen, master;
	int ended;
	size_t drained;
	struct termios saved;
	struct pump inward, outward;
};

enum tty_mode {
	TTY_OUTPUT_ONLY,
	TTY_INTERACTIVE,
};

/* tty_check() - Whether `run -t` can work here: stdin is a terminal. Return: 0; -ENOTTY. */
must_check int tty_check(struct err *e);

/* tty_open() - Attach to the sandbox's terminal; with TTY_INTERACTIVE, ours becomes raw. Return: 0; negative errno. */
must_check int tty_open(struct tty *t, int master, enum tty_mode mode, struct err *e);

/* tty_size() - Rows and columns of our terminal. Return: 0; -ENOTTY. */
must_check int tty_size(uint16_t *ret_rows, uint16_t *ret_cols);

/* tty_poll() - Fill in what to wait for. Return: number of entries, at most TTY_POLL_MAX. */
size_t tty_poll(const struct tty *t, struct pollfd *fds);
#define TTY_POLL_MAX 4

/**
 * tty_move() - Move what can be moved without waiting
 * Return: 0; -EPIPE or -EIO if our terminal is gone; other negative errno
 */
must_check int tty_move(struct tty *t);

/* tty_drained() - True once everything that the sandbox's terminal had was written. */
bool tty_drained(const struct tty *t);

/* tty_end() - The command has ended: what its terminal holds now is the last that is moved. */
void tty_end(struct tty *t);

/* tty_pause() - Restore our terminal and stop this process, until SIGCONT; tty_resume() takes the terminal again. */
void tty_pause(struct tty *t);
void tty_resume(struct tty *t);

/* tty_close() - Restore our terminal. May be repeated. */
void tty_close(struct tty *t);
