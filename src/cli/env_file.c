/* SPDX-License-Identifier: Apache-2.0 */
/* env_file.c - Environment variables as --env and --env-file name them
 *
 * Theory of operation. A file is read whole into a bounded buffer and cut into lines in place; each variable goes to the engine at once, which
 * has the last word on it. Every message carries the file and the line. */
#include "cli/env_file.h"

#include <fcntl.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/sys.h"
#include "cli/say.h"

/* Bytes of a file: the kernel takes at most 6 MiB of arguments and environment together (_STK_LIM / 4 * 3, fs/exec.c). */
#define ENV_FILE_MAX MIB(8)
#define READ_BYTES 16384 /* one read; the file is copied once */

/* Bytes of a name that a message shows */
#define NAME_SHOWN 48

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* What is wrong with a name, NULL if nothing is */
static const char *name_fault(const char *text, size_t len)
{
	if (len == 0)
		return "the name is empty";
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (is_blank(text[i]))
			return "the name has a blank in it";
		if (c < 0x20 || c == 0x7f)
			return "the name has a control character in it";
	}
	return NULL;
}

static int take_inherited(const char *name, env_setter set, void *data, struct carrel_error *e)
{
	const char *value = getenv(name);
	struct buf b = BUF_INIT(ENV_FILE_MAX);
	int r;

	if (!value)
		return 0;
	r = buf_printf(&b, "%s=%s", name, value);
	if (r == 0)
		r = set(b.p, data, e);
	buf_done(&b);
	return r;
}

int env_take(const char *text, env_setter set, void *data, struct carrel_error *e)
{
	size_t len = strcspn(text, "=");
	const char *fault = name_fault(text, len);
	struct err why = { 0 };
	int r;

	if (fault) {
		r = err_set(&why, ERR_INVALID, "read variable '%.*s': %s", NAME_SHOWN, text, fault);
		return error_from(e, err_hint(&why, r, "write NAME=VALUE, or NAME to pass on your own"), &why);
	}
	return text[len] == '=' ? set(text, data, e) : take_inherited(text, set, data, e);
}

/* The message of a line's failure gets the place in front, once */
static int at_line(const char *path, size_t line, int r, struct carrel_error *e)
{
	char inner[sizeof(e->message)];

	memcpy(inner, e->message, sizeof(inner));
	(void)snprintf(e->message, sizeof(e->message), "read '%.96s' line %zu: %.140s", path, line, inner);
	return r;
}

int env_file_parse(const char *path, char *text, size_t len, env_setter set, void *data, struct carrel_error *e)
{
	const char *end = text + len;
	size_t line = 0;

	if (str_starts(text, "\xef\xbb\xbf"))
		text += 3;
	while (text < end) {
		char *newline = memchr(text, '\n', (size_t)(end - text));
		char *stop = newline ? newline : text + (end - text);
		char *next = newline ? newline + 1 : stop;
		int r = 0;

		line++;
		*stop = '\0';
		if (stop > text && stop[-1] == '\r')
			*--stop = '\0';
		if (strlen(text) != (size_t)(stop - text)) {
			struct err why = { 0 };

			r = err_set(&why, ERR_INVALID, "a NUL byte is in the line");
			return at_line(path, line, error_from(e, r, &why), e);
		}
		while (is_blank(*text))
			text++;
		if (*text && *text != '#')
			r = env_take(text, set, data, e);
		if (r < 0)
			return at_line(path, line, r, e);
		text = next;
	}
	return 0;
}

static int read_all(int fd, struct buf *b)
{
	char chunk[READ_BYTES];
	ssize_t n;

	do {
		n = fd_read_full(fd, chunk, sizeof(chunk));
		if (n < 0)
			return (int)n;
		if (buf_add(b, chunk, (size_t)n) == -EMSGSIZE)
			return -EFBIG;
	} while (n == (ssize_t)sizeof(chunk) && b->r == 0);
	return b->r;
}

int env_file_read(const char *path, env_setter set, void *data, struct carrel_error *e)
{
	auto_buf struct buf b = BUF_INIT(ENV_FILE_MAX);
	struct err why = { 0 };
	auto_close int fd = sys_openat(AT_FDCWD, path, O_RDONLY, 0);
	int r = fd;

	if (r >= 0)
		r = read_all(fd, &b);
	if (r < 0) {
		r = err_sys(&why, r, "read --env-file '%.160s'", path);
		(void)err_hint(&why, r, r == -EFBIG ? "a command's environment has at most 6 MiB" :
						      "give a text file with one NAME=VALUE on each line");
		return error_from(e, r, &why);
	}
	return b.len > 0 ? env_file_parse(path, b.p, b.len, set, data, e) : 0;
}
