/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h - Bytes of a message: a writer with a limit and a reader that checks once */
#pragma once

#include "base/buf.h"
#include "base/macros.h"

/**
 * struct wire_in - Reader over borrowed bytes
 *
 * Sticky: after the first short or oversized field every read answers 0 or an empty text, and wire_done() answers false.
 * All integers are little-endian; a text is a u32 length and its bytes, without NUL inside, followed by a NUL (so that it can be
 * borrowed as a C string).
 */
struct wire_in {
	const unsigned char *p;
	size_t left;
	bool bad;
	bool oom; /* bad for want of memory, not by the peer's fault */
};

/* WIRE_IN() - A reader over @len bytes at @ptr. */
#define WIRE_IN(ptr, bytes) ((struct wire_in){ .p = (ptr), .left = (bytes) })

uint8_t wire_u8(struct wire_in *in);
uint16_t wire_u16(struct wire_in *in);
uint32_t wire_u32(struct wire_in *in);
uint64_t wire_u64(struct wire_in *in);

/**
 * wire_str() - A text of at most @max bytes
 * Return: NUL-terminated, borrowed from the message; "" once the reader is bad. A text with a NUL inside makes it bad.
 */
const char *wire_str(struct wire_in *in, size_t max);

/**
 * wire_strv() - A list of texts
 * @max_items: More make the reader bad
 * @max_each:  Bytes of one text
 * Return: NULL-terminated array of borrowed texts that the caller frees; NULL once the reader is bad or without memory
 */
const char **wire_strv(struct wire_in *in, size_t max_items, size_t max_each);

/* wire_done() - True if every field was read as its type says and no byte is left over. */
must_check bool wire_done(const struct wire_in *in);

/* Writers append to a buf; its limit and its sticky failure apply. */
void wire_put_u8(struct buf *out, uint8_t v);
void wire_put_u16(struct buf *out, uint16_t v);
void wire_put_u32(struct buf *out, uint32_t v);
void wire_put_u64(struct buf *out, uint64_t v);
void wire_put_str(struct buf *out, const char *s);
void wire_put_strv(struct buf *out, const char *const *v);
