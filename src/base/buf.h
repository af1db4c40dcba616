/* SPDX-License-Identifier: Apache-2.0 */
/* buf.h - A growing run of bytes that cannot be made without a maximum */
#pragma once

#include <stdarg.h>

#include "base/macros.h"

/**
 * struct buf - Owned bytes
 * @p:   Bytes, NUL behind the last; NULL while empty
 * @len: Bytes in use
 * @cap: Bytes allocated
 * @max: Length that is never exceeded
 * @r:   First failure, 0 if none; once set, every append is a no-op (so a caller checks once, at the end)
 */
struct buf {
	char *p;
	size_t len, cap, max;
	int r;
};

/* BUF_INIT() - An empty buffer that never holds more than @max bytes. */
#define BUF_INIT(max_bytes) ((struct buf){ .max = (max_bytes) })

/* buf_done() - Free the bytes; the buffer is empty and usable afterwards. */
void buf_done(struct buf *b);

/* buf_add() - Append bytes. Return: 0; -ENOMEM; -EMSGSIZE beyond the maximum. The failure sticks. */
int buf_add(struct buf *b, const void *p, size_t len);

/* buf_puts() - Append a NUL-terminated text. Return: as buf_add(). */
int buf_puts(struct buf *b, const char *s);

/* buf_printf() - Append formatted text. Return: as buf_add(). */
int buf_printf(struct buf *b, const char *fmt, ...) printf_like(2, 3);

/* buf_text() - The bytes as a text; "" while empty. Borrowed until the next append. */
const char *buf_text(const struct buf *b);

#define auto_buf auto_(buf_done)
