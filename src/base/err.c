/* SPDX-License-Identifier: Apache-2.0 */
/* err.c - One number space of failures, with an optional story for a person
 *
 * Theory of operation. Runs in every process, and also between clone and exec on memory that is shared with the parent: no
 * allocation, no locale, no errno. A code is what programs branch on; the text is what people read. strerror() is avoided because
 * glibc translates it (locks, allocation) and because its words differ between C libraries, which tests would notice. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int sys;
} err_codes[] = {
	[ERR_NONE] = { "NONE", 0 },
	[ERR_INVALID] = { "INVALID", EINVAL },
	[ERR_NOT_FOUND] = { "NOT_FOUND", ENOENT },
	[ERR_NOT_EXECUTABLE] = { "NOT_EXECUTABLE", ENOEXEC },
	[ERR_DENIED] = { "DENIED", EPERM },
	[ERR_UNSUPPORTED] = { "UNSUPPORTED", EOPNOTSUPP },
	[ERR_EXHAUSTED] = { "EXHAUSTED", ENOSPC },
	[ERR_CONFLICT] = { "CONFLICT", EEXIST },
	[ERR_UNAVAILABLE] = { "UNAVAILABLE", ECONNREFUSED },
	[ERR_DEADLINE] = { "DEADLINE", ETIMEDOUT },
	[ERR_PROTOCOL] = { "PROTOCOL", EPROTO },
	[ERR_SYSTEM] = { "SYSTEM", EIO },
};
_Static_assert(ARRAY_SIZE(err_codes) == ERR_NUM_CODES, "err_codes[] misses a code");

/* Errnos that say more than ERR_SYSTEM would, and the words for those that people meet. */
static const struct {
	int sys;
	enum err_code code;
	const char *text;
} errnos[] = {
	{ EPERM, ERR_DENIED, "operation not permitted" },
	{ ENOENT, ERR_NOT_FOUND, "no such file or directory" },
	{ ESRCH, ERR_NOT_FOUND, "no such process" },
	{ EINTR, ERR_SYSTEM, "interrupted" },
	{ EIO, ERR_SYSTEM, "input/output error" },
	{ ENXIO, ERR_NOT_FOUND, "no such device or address" },
	{ E2BIG, ERR_INVALID, "argument list too long" },
	{ ENOEXEC, ERR_NOT_EXECUTABLE, "not in a format that this kernel executes" },
	{ EBADF, ERR_SYSTEM, "bad file descriptor" },
	{ EAGAIN, ERR_EXHAUSTED, "resource temporarily unavailable" },
	{ ENOMEM, ERR_EXHAUSTED, "out of memory" },
	{ EACCES, ERR_DENIED, "permission denied" },
	{ EFAULT, ERR_SYSTEM, "bad address" },
	{ EBUSY, ERR_CONFLICT, "device or resource busy" },
	{ EEXIST, ERR_CONFLICT, "already exists" },
	{ EXDEV, ERR_SYSTEM, "crosses a file system or leaves the allowed tree" },
	{ ENODEV, ERR_UNSUPPORTED, "no such device or file system type" },
	{ ENOTDIR, ERR_INVALID, "not a directory" },
	{ EISDIR, ERR_INVALID, "is a directory" },
	{ EINVAL, ERR_INVALID, "invalid argument" },
	{ ENFILE, ERR_EXHAUSTED, "too many open files on the system" },
	{ EMFILE, ERR_EXHAUSTED, "too many open files" },
	{ ENOTTY, ERR_UNSUPPORTED, "not a terminal or not supported by the device" },
	{ ETXTBSY, ERR_NOT_EXECUTABLE, "the file is open for writing" },
	{ EFBIG, ERR_EXHAUSTED, "file too large" },
	{ ENOSPC, ERR_EXHAUSTED, "no space left" },
	{ EROFS, ERR_DENIED, "read-only file system" },
	{ EMLINK, ERR_EXHAUSTED, "too many links" },
	{ EPIPE, ERR_UNAVAILABLE, "the other end is closed" },
	{ ENAMETOOLONG, ERR_INVALID, "name too long" },
	{ ENOSYS, ERR_UNSUPPORTED, "the kernel does not have this call" },
	{ ENOTEMPTY, ERR_CONFLICT, "directory not empty" },
	{ ELOOP, ERR_INVALID, "too many symbolic links, or one where none is allowed" },
	{ EOVERFLOW, ERR_INVALID, "value too large" },
	{ EPROTO, ERR_PROTOCOL, "protocol error" },
	{ EMSGSIZE, ERR_PROTOCOL, "message too long" },
	{ EOPNOTSUPP, ERR_UNSUPPORTED, "not supported here" },
	{ EADDRINUSE, ERR_CONFLICT, "address already in use" },
	{ ECONNRESET, ERR_UNAVAILABLE, "connection reset" },
	{ ENOTCONN, ERR_UNAVAILABLE, "not connected" },
	{ ETIMEDOUT, ERR_DEADLINE, "timed out" },
	{ ECONNREFUSED, ERR_UNAVAILABLE, "connection refused" },
	{ EUSERS, ERR_EXHAUSTED, "too many users" },
	{ EDQUOT, ERR_EXHAUSTED, "quota exceeded" },
};

const char *err_code_name(enum err_code code)
{
	return (unsigned)code < ERR_NUM_CODES ? err_codes[code].name : "SYSTEM";
}

int err_code_errno(enum err_code code)
{
	return (unsigned)code < ERR_NUM_CODES ? err_codes[code].sys : EIO;
}

enum err_code err_code_of_errno(int sys)
{
	for (size_t i = 0; i < ARRAY_SIZE(errnos); i++)
		if (errnos[i].sys == sys)
			return errnos[i].code;
	return ERR_SYSTEM;
}

const char *err_errno_text(int sys)
{
	for (size_t i = 0; i < ARRAY_SIZE(errnos); i++)
		if (errnos[i].sys == sys)
			return errnos[i].text;
	return "unexpected failure";
}

static void err_begin(struct err *e, enum err_code code, int sys)
{
	e->code = code;
	e->sys = sys;
	e->msg[0] = '\0';
	e->hint[0] = '\0';
	e->trail[0] = '\0';
}

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return -err_code_errno(code);
	err_begin(e, code, 0);
	va_start(ap, fmt);
	(void)vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	return -err_code_errno(code);
}

int err_sys(struct err *e, int r, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	if (!e)
		return r;
	err_begin(e, err_code_of_errno(-r), -r);
	va_start(ap, fmt);
	(void)vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	n = strlen(e->msg);
	(void)snprintf(e->msg + n, sizeof(e->msg) - n, ": %s", err_errno_text(-r));
	return r;
}

int err_wrap(struct err *e, int r, const char *fmt, ...)
{
	char inner[ERR_MSG_MAX];
	va_list ap;
	size_t n;

	if (!e)
		return r;
	if (e->code == ERR_NONE)
		err_begin(e, err_code_of_errno(-r), -r);
	memcpy(inner, e->msg, sizeof(inner));
	va_start(ap, fmt);
	(void)vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	n = strlen(e->msg);
	(void)snprintf(e->msg + n, sizeof(e->msg) - n, ": %s", inner[0] ? inner : err_errno_text(-r));
	return r;
}

int err_hint(struct err *e, int r, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return r;
	va_start(ap, fmt);
	(void)vsnprintf(e->hint, sizeof(e->hint), fmt, ap);
	va_end(ap);
	return r;
}
