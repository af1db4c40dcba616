/* SPDX-License-Identifier: Apache-2.0 */
/* buf.c - A growing run of bytes that cannot be made without a maximum
 *
 * Theory of operation. Every place where untrusted input accumulates goes through here, so that each has a stated limit. Failures are
 * sticky: a writer of many small pieces checks buf.r once. Growth doubles, starting at 256 bytes. */
#include "base/buf.h"

#include <stdio.h>
#include <string.h>

void buf_done(struct buf *b)
{
	free(b->p);
	b->p = NULL;
	b->len = b->cap = 0;
	b->r = 0;
}

static int buf_reserve(struct buf *b, size_t more)
{
	size_t need, cap;
	char *p;

	if (b->r < 0)
		return b->r;
	if (more > b->max || b->len > b->max - more)
		return b->r = -EMSGSIZE;
	need = b->len + more + 1;
	if (need <= b->cap)
		return 0;
	cap = MAX(b->cap * 2, (size_t)256);
	cap = MAX(cap, need);
	p = realloc(b->p, cap);
	if (!p)
		return b->r = -ENOMEM;
	b->p = p;
	b->cap = cap;
	return 0;
}

int buf_add(struct buf *b, const void *p, size_t len)
{
	int r = buf_reserve(b, len);

	if (r < 0)
		return r;
	if (len > 0)
		memcpy(b->p + b->len, p, len);
	b->len += len;
	b->p[b->len] = '\0';
	return 0;
}

int buf_puts(struct buf *b, const char *s)
{
	return buf_add(b, s, strlen(s));
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n, r;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return b->r = -EINVAL;
	r = buf_reserve(b, (size_t)n);
	if (r < 0)
		return r;
	va_start(ap, fmt);
	(void)vsnprintf(b->p + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
	return 0;
}

const char *buf_text(const struct buf *b)
{
	return b->p ? b->p : "";
}
