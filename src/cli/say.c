/* SPDX-License-Identifier: Apache-2.0 */
/* say.c - What people see: one line for each failure, and whole texts
 *
 * Theory of operation. Everything below `run` and `doctor` returns errors; here, at the boundary, each is printed once. A line is
 * built whole and written with one write, so that lines of processes that share a terminal do not mix. Messages hold words that the
 * user or a file gave, so control bytes are escaped: a newline would forge a second line, an escape sequence would drive the terminal. */
#include "cli/say.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/sys.h"

/* Bytes of a line: message, remedy and detail of a carrel_error, all escaped. */
#define LINE_MAX_BYTES KIB(4)

/* The codes as --json writes them: the names of api/errors.tsv in lower case. */
static const char *const error_names[] = {
	[CARREL_ERROR_NONE] = "none",
	[CARREL_ERROR_INVALID] = "invalid",
	[CARREL_ERROR_NOT_FOUND] = "not_found",
	[CARREL_ERROR_NOT_EXECUTABLE] = "not_executable",
	[CARREL_ERROR_DENIED] = "denied",
	[CARREL_ERROR_UNSUPPORTED] = "unsupported",
	[CARREL_ERROR_EXHAUSTED] = "exhausted",
	[CARREL_ERROR_CONFLICT] = "conflict",
	[CARREL_ERROR_UNAVAILABLE] = "unavailable",
	[CARREL_ERROR_DEADLINE] = "deadline",
	[CARREL_ERROR_PROTOCOL] = "protocol",
	[CARREL_ERROR_SYSTEM] = "system",
};

static const char *const signal_names[] = {
	[SIGHUP] = "SIGHUP",   [SIGINT] = "SIGINT",	  [SIGQUIT] = "SIGQUIT", [SIGILL] = "SIGILL",
	[SIGTRAP] = "SIGTRAP", [SIGABRT] = "SIGABRT",	  [SIGBUS] = "SIGBUS",	 [SIGFPE] = "SIGFPE",
	[SIGKILL] = "SIGKILL", [SIGUSR1] = "SIGUSR1",	  [SIGSEGV] = "SIGSEGV", [SIGUSR2] = "SIGUSR2",
	[SIGPIPE] = "SIGPIPE", [SIGALRM] = "SIGALRM",	  [SIGTERM] = "SIGTERM", [SIGSTKFLT] = "SIGSTKFLT",
	[SIGCHLD] = "SIGCHLD", [SIGCONT] = "SIGCONT",	  [SIGSTOP] = "SIGSTOP", [SIGTSTP] = "SIGTSTP",
	[SIGTTIN] = "SIGTTIN", [SIGTTOU] = "SIGTTOU",	  [SIGURG] = "SIGURG",	 [SIGXCPU] = "SIGXCPU",
	[SIGXFSZ] = "SIGXFSZ", [SIGVTALRM] = "SIGVTALRM", [SIGPROF] = "SIGPROF", [SIGWINCH] = "SIGWINCH",
	[SIGIO] = "SIGIO",     [SIGPWR] = "SIGPWR",	  [SIGSYS] = "SIGSYS",
};

const char *error_name(int code)
{
	return code >= 0 && (size_t)code < ARRAY_SIZE(error_names) ? error_names[code] : "system";
}

int error_status(int code)
{
	switch (code) {
	case CARREL_ERROR_NOT_FOUND:
		return STATUS_NOT_FOUND;
	case CARREL_ERROR_NOT_EXECUTABLE:
		return STATUS_NOT_EXECUTABLE;
	default:
		return STATUS_CARREL_FAILED;
	}
}

const char *signal_name(int sig)
{
	return sig > 0 && (size_t)sig < ARRAY_SIZE(signal_names) ? signal_names[sig] : NULL;
}

int error_from(struct carrel_error *ret, int r, const struct err *e)
{
	ret->code = (int)e->code;
	ret->sys = e->sys;
	(void)snprintf(ret->message, sizeof(ret->message), "%s", e->msg);
	(void)snprintf(ret->remedy, sizeof(ret->remedy), "%s", e->hint);
	(void)snprintf(ret->detail, sizeof(ret->detail), "%s", e->trail);
	return r;
}

int say_all(int fd, const void *p, size_t len)
{
	const char *s = p;

	while (len > 0) {
		ssize_t n = sys_write(fd, s, len);

		if (n == -EAGAIN) {
			struct pollfd wait = { .fd = fd, .events = POLLOUT };

			(void)poll(&wait, 1, -1); /* if it fails, the next write says why */
			continue;
		}
		if (n == -EINTR)
			continue;
		if (n < 0)
			return (int)n;
		s += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Escaped: C0 and DEL; C1 as UTF-8 has it (U+0080 to U+009F: a second ESC [ to some terminals); what is not UTF-8 */
static void add_escaped(struct buf *b, const char *text)
{
	bool utf8 = str_is_utf8(text, strlen(text));

	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		bool c1 = *p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f;

		if (*p == '\n')
			(void)buf_puts(b, "\\n");
		else if (*p == '\t')
			(void)buf_puts(b, "\\t");
		else if (c1)
			(void)buf_printf(b, "\\x%02x", *++p);
		else if (*p < 0x20 || *p == 0x7f || (*p > 0x7f && !utf8))
			(void)buf_printf(b, "\\x%02x", *p);
		else
			(void)buf_add(b, p, 1);
	}
}

void say_buf(int fd, const struct buf *b)
{
	if (b->r < 0 || say_all(fd, buf_text(b), b->len) < 0)
		return;
}

static void say_line(struct buf *line)
{
	(void)buf_puts(line, "\n");
	say_buf(STDERR_FILENO, line);
}

void say_failure(const struct carrel_error *e)
{
	auto_buf struct buf line = BUF_INIT(LINE_MAX_BYTES);

	(void)buf_puts(&line, "carrel: ");
	add_escaped(&line, e->message[0] ? e->message : "out of memory");
	if (e->remedy[0]) {
		(void)buf_puts(&line, "; ");
		add_escaped(&line, e->remedy);
	}
	if (e->detail[0] && getenv("CARREL_DEBUG")) {
		(void)buf_puts(&line, " [");
		add_escaped(&line, e->detail);
		(void)buf_puts(&line, "]");
	}
	say_line(&line);
}

void say_note(const char *fmt, ...)
{
	auto_buf struct buf line = BUF_INIT(LINE_MAX_BYTES);
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)buf_puts(&line, "carrel: ");
	add_escaped(&line, text);
	say_line(&line);
}
