/* SPDX-License-Identifier: Apache-2.0 */
/* error.c - The library's public kind of error
 *
 * Theory of operation. The public struct and our own are two, so that ours can grow without breaking programs; their codes are the same
 * numbers, which the compiler checks here. */
#include <string.h>

#include "warden/internal.h"

_Static_assert((int)CARREL_ERROR_INVALID == (int)ERR_INVALID, "codes differ");
_Static_assert((int)CARREL_ERROR_NOT_EXECUTABLE == (int)ERR_NOT_EXECUTABLE, "codes differ");
_Static_assert((int)CARREL_ERROR_EXHAUSTED == (int)ERR_EXHAUSTED, "codes differ");
_Static_assert((int)CARREL_ERROR_DEADLINE == (int)ERR_DEADLINE, "codes differ");
_Static_assert((int)CARREL_ERROR_SYSTEM == (int)ERR_SYSTEM && CARREL_ERROR_SYSTEM + 1 == (int)ERR_NUM_CODES, "codes differ");
_Static_assert(sizeof(((struct carrel_error *)0)->message) == ERR_MSG_MAX, "texts differ");
_Static_assert(sizeof(((struct carrel_error *)0)->remedy) == ERR_HINT_MAX, "texts differ");
_Static_assert(sizeof(((struct carrel_error *)0)->detail) == ERR_TRAIL_MAX, "texts differ");

/* One line, whatever the caller's own text brought into it. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

int error_out(int r, const struct err *e, struct carrel_error *ret)
{
	if (r >= 0 || !ret)
		return r;
	memset(ret, 0, sizeof(*ret));
	ret->code = (int)(e->code ? e->code : err_code_of_errno(-r));
	ret->sys = e->sys;
	memcpy(ret->remedy, e->hint, sizeof(ret->remedy));
	memcpy(ret->detail, e->trail, sizeof(ret->detail));
	memcpy(ret->message, e->msg, sizeof(ret->message));
	if (!e->msg[0])
		strncpy(ret->message, err_errno_text(-r), sizeof(ret->message) - 1);
	make_printable(ret->message);
	make_printable(ret->remedy);
	return r;
}

int carrel_spec_set(struct carrel_spec *spec, const char *key, const char *value, struct carrel_error *ret)
{
	struct err e = { .code = ERR_NONE };

	return error_out(spec_set(spec, key, value, &e), &e, ret);
}

int carrel_command_set(struct carrel_command *command, const char *key, const char *value, struct carrel_error *ret)
{
	struct err e = { .code = ERR_NONE };

	return error_out(command_set(command, key, value, &e), &e, ret);
}
