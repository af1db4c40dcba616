/* SPDX-License-Identifier: Apache-2.0 */
/* err.h - One number space of failures, with an optional story for a person */
#pragma once

#include "base/macros.h"

/**
 * enum err_code - What kind of failure, independent of where it happened
 *
 * Each code has one row in api/errors.tsv, which maps it to errno, exit status and the remote faces; tests/unit walks both.
 */
enum err_code {
	ERR_NONE,
	ERR_INVALID,	    /* the request is malformed or contradicts itself; retrying cannot help */
	ERR_NOT_FOUND,	    /* a named thing (program, image, exec, mount source) is not there */
	ERR_NOT_EXECUTABLE, /* the program exists and cannot be executed */
	ERR_DENIED,	    /* the caller may not do this */
	ERR_UNSUPPORTED,    /* this kernel or host lacks what the request needs */
	ERR_EXHAUSTED,	    /* a limit or a pool is used up */
	ERR_CONFLICT,	    /* the same key or name with another content, or a wrong state */
	ERR_UNAVAILABLE,    /* the other process is gone or does not answer */
	ERR_DEADLINE,	    /* a wait reached its deadline */
	ERR_PROTOCOL,	    /* a peer sent bytes that the wire does not allow */
	ERR_SYSTEM,	    /* a system call failed for a reason that none of the above names */
	ERR_NUM_CODES,
};

/* Sizes: a message and a hint are one terminal line each; a trail holds a few nested steps with host paths. */
#define ERR_MSG_MAX 256	  /* bytes with NUL */
#define ERR_HINT_MAX 192  /* bytes with NUL */
#define ERR_TRAIL_MAX 320 /* bytes with NUL */

/**
 * struct err - One failure
 * @code:  Kind
 * @sys:   errno of the call that failed, 0 if none did
 * @msg:   The attempt and the object, lower case, user data in ticks; may be shown to any client
 * @hint:  The remedy, may be empty
 * @trail: Host paths and nested steps; for the operator's log only
 *
 * Owned by the caller, of fixed size and without pointers: it is filled between clone and exec, and it travels as one
 * wire message. Untouched on success.
 */
struct err {
	enum err_code code;
	int sys;
	char msg[ERR_MSG_MAX];
	char hint[ERR_HINT_MAX];
	char trail[ERR_TRAIL_MAX];
};

/**
 * err_set() - Record a failure with a reason that may be shown
 * @e:    May be NULL
 * @code: Kind
 * @fmt:  The attempt and the object
 *
 * Return: the negative errno of @code, so that a function can end with `return err_set(...)`
 */
int err_set(struct err *e, enum err_code code, const char *fmt, ...) printf_like(3, 4);

/**
 * err_sys() - Record that a system call failed
 * @e:   May be NULL
 * @r:   Negative errno of the call
 * @fmt: The attempt and the object
 *
 * The code follows from @r (ENOENT is NOT_FOUND, ...). The kernel's reason is appended to the message.
 * Return: @r
 */
int err_sys(struct err *e, int r, const char *fmt, ...) printf_like(3, 4);

/**
 * err_wrap() - Put an outer step before what is recorded already
 * @e:   May be NULL
 * @r:   Negative errno that is being returned
 * @fmt: The outer attempt and object
 *
 * Return: @r
 */
int err_wrap(struct err *e, int r, const char *fmt, ...) printf_like(3, 4);

/**
 * err_hint() - Say what the reader can do about it
 * @e:   May be NULL
 * @r:   Negative errno that is being returned
 * @fmt: The remedy, an imperative
 *
 * Return: @r
 */
int err_hint(struct err *e, int r, const char *fmt, ...) printf_like(3, 4);

/* err_code_name() - "INVALID", "NOT_FOUND", ...: the first column of api/errors.tsv. */
const char *err_code_name(enum err_code code);

/* err_code_errno() - Positive errno that stands for @code at a function's return. */
int err_code_errno(enum err_code code);

/* err_code_of_errno() - Kind of failure that a positive errno of a system call stands for. */
enum err_code err_code_of_errno(int sys);

/* err_errno_text() - The kernel's reason in words, without a locale and without strerror()'s static buffer. */
const char *err_errno_text(int sys);
