/* SPDX-License-Identifier: Apache-2.0 */
/* say.h - What people see: one line for each failure, and whole texts */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/macros.h"
#include "carrel.h"

/* Exit statuses of the command line's own, as docker and timeout(1) have them */
enum exit_status {
	STATUS_TIMED_OUT = 124,
	STATUS_CARREL_FAILED = 125,
	STATUS_NOT_EXECUTABLE = 126,
	STATUS_NOT_FOUND = 127,
	STATUS_SIGNAL_BASE = 128,
};

/**
 * say_failure() - Print a failure on stderr: "carrel: ATTEMPT 'OBJECT': reason; REMEDY"
 *
 * Always one line: bytes that would break it or drive the terminal are shown as escapes. With CARREL_DEBUG in the
 * environment, nested steps are added in brackets. A failure to print is ignored: there is nobody to tell.
 */
void say_failure(const struct carrel_error *e);

/* say_note() - One line on stderr in the same form that is not a failure of Carrel's. */
void say_note(const char *fmt, ...) printf_like(1, 2);

/* say_all() - Write all of @len bytes, waiting where @fd does not block. Return: 0, or negative errno. */
must_check int say_all(int fd, const void *p, size_t len);

/* say_buf() - Write a whole text to stdout or stderr; that it cannot be written is ignored, as the exit status tells the rest. */
void say_buf(int fd, const struct buf *b);

/* error_from() - An err of base as the error of the library's face: same fields, other names. */
int error_from(struct carrel_error *ret, int r, const struct err *e);

/* error_name() - "not_found" for CARREL_ERROR_NOT_FOUND: the code as a program reads it in --json. */
const char *error_name(int code);

/* error_status() - Exit status where the command itself could not be started: 125, 126 or 127 (api/errors.tsv, column "exit"). */
int error_status(int code);

/* signal_name() - "SIGKILL"; NULL for a number without a name (real-time signals). */
const char *signal_name(int sig);
