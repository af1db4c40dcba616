/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - Bytes of a message: a writer with a limit and a reader that checks once
 *
 * Theory of operation. Pure: no I/O, no clock. The reader never looks beyond its bytes and never believes a length: a list says how many
 * items follow, and each item costs at least five bytes of message, so the array that is allocated is bounded by the message's own size. */
#include "wire/wire.h"

#include <string.h>

static const unsigned char *wire_take(struct wire_in *in, size_t n)
{
	const unsigned char *p = in->p;

	if (in->bad || in->left < n) {
		in->bad = true;
		return NULL;
	}
	in->p += n;
	in->left -= n;
	return p;
}

static uint64_t wire_le(struct wire_in *in, size_t bytes)
{
	const unsigned char *p = wire_take(in, bytes);
	uint64_t v = 0;

	if (!p)
		return 0;
	for (size_t i = bytes; i-- > 0;)
		v = v << 8 | p[i];
	return v;
}

uint8_t wire_u8(struct wire_in *in)
{
	return (uint8_t)wire_le(in, 1);
}

uint16_t wire_u16(struct wire_in *in)
{
	return (uint16_t)wire_le(in, 2);
}

uint32_t wire_u32(struct wire_in *in)
{
	return (uint32_t)wire_le(in, 4);
}

uint64_t wire_u64(struct wire_in *in)
{
	return wire_le(in, 8);
}

const char *wire_str(struct wire_in *in, size_t max)
{
	size_t len = wire_u32(in);
	const unsigned char *p;

	if (in->bad || len > max || len >= in->left) { /* >=: the NUL belongs to the text */
		in->bad = true;
		return "";
	}
	p = wire_take(in, len + 1);
	if (!p || memchr(p, '\0', len + 1) != p + len) {
		in->bad = true;
		return "";
	}
	return (const char *)p;
}

const char **wire_strv(struct wire_in *in, size_t max_items, size_t max_each)
{
	size_t n = wire_u32(in);
	const char **v;

	if (in->bad || n > max_items || n > in->left / 5) {
		in->bad = true;
		return NULL;
	}
	v = calloc(n + 1, sizeof(*v));
	if (!v) {
		in->bad = in->oom = true;
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		v[i] = wire_str(in, max_each);
	if (in->bad) {
		free(v);
		return NULL;
	}
	return v;
}

bool wire_done(const struct wire_in *in)
{
	return !in->bad && in->left == 0;
}

static void wire_put_le(struct buf *out, uint64_t v, size_t bytes)
{
	unsigned char b[8];

	for (size_t i = 0; i < bytes; i++, v >>= 8)
		b[i] = (unsigned char)v;
	(void)buf_add(out, b, bytes); /* sticky in out->r */
}

void wire_put_u8(struct buf *out, uint8_t v)
{
	wire_put_le(out, v, 1);
}

void wire_put_u16(struct buf *out, uint16_t v)
{
	wire_put_le(out, v, 2);
}

void wire_put_u32(struct buf *out, uint32_t v)
{
	wire_put_le(out, v, 4);
}

void wire_put_u64(struct buf *out, uint64_t v)
{
	wire_put_le(out, v, 8);
}

void wire_put_str(struct buf *out, const char *s)
{
	size_t len = strlen(s);

	if (len > UINT32_MAX) {
		out->r = -EMSGSIZE;
		return;
	}
	wire_put_u32(out, (uint32_t)len);
	(void)buf_add(out, s, len + 1); /* sticky in out->r */
}

void wire_put_strv(struct buf *out, const char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	if (n > UINT32_MAX) {
		out->r = -EMSGSIZE;
		return;
	}
	wire_put_u32(out, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		wire_put_str(out, v[i]);
}
