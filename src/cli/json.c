/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - A JSON writer of bounded memory
 *
 * Theory of operation. Values are appended to a buf, which is written out whenever it is half full: a result with gigabytes of output
 * takes as much memory as one without. Commas and nesting are kept here, so a caller cannot forget one. A program's output is
 * in two forms only, a JSON string if the whole of it is UTF-8 and base64 if not: replacement characters would make two different
 * outputs look the same. For names in messages of our own, losing such a byte is better than a base64 that nobody reads. */
#include "cli/json.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "cli/say.h"

/* Bytes of input that one append looks at; six times that, as \u00xx, stays well below half of JSON_BUFFER_MAX. */
#define PART_BYTES 1024

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void json_done(struct json *j)
{
	buf_done(&j->buf);
}

static void json_flush(struct json *j, size_t above)
{
	if (j->fd < 0 || j->buf.r < 0 || j->buf.len <= above)
		return;
	j->buf.r = say_all(j->fd, j->buf.p, j->buf.len);
	j->buf.len = 0;
}

/* Whatever stands before a value: a comma, unless its key has already put one */
static void json_begin(struct json *j)
{
	uint32_t bit = UINT32_C(1) << j->depth;

	json_flush(j, JSON_BUFFER_MAX / 2);
	if (j->after_key) {
		j->after_key = 0;
		return;
	}
	if (j->filled & bit)
		(void)buf_puts(&j->buf, ",");
	j->filled |= bit;
}

static void json_open(struct json *j, const char *bracket)
{
	json_begin(j);
	assert(j->depth + 1 < JSON_DEPTH_MAX);
	j->depth++;
	j->filled &= ~(UINT32_C(1) << j->depth);
	(void)buf_puts(&j->buf, bracket);
}

void json_object(struct json *j)
{
	json_open(j, "{");
}

void json_array(struct json *j)
{
	json_open(j, "[");
}

void json_end(struct json *j, char bracket)
{
	assert(j->depth > 0);
	j->depth--;
	(void)buf_add(&j->buf, &bracket, 1);
}

void json_key(struct json *j, const char *name)
{
	json_begin(j);
	(void)buf_printf(&j->buf, "\"%s\":", name);
	j->after_key = 1;
}

void json_null(struct json *j)
{
	json_begin(j);
	(void)buf_puts(&j->buf, "null");
}

void json_bool(struct json *j, int value)
{
	json_begin(j);
	(void)buf_puts(&j->buf, value ? "true" : "false");
}

void json_u64(struct json *j, uint64_t value)
{
	json_begin(j);
	(void)buf_printf(&j->buf, "%" PRIu64, value);
}

void json_thousandths(struct json *j, uint64_t thousandths)
{
	json_begin(j);
	(void)buf_printf(&j->buf, "%" PRIu64 ".%03" PRIu64, thousandths / 1000, thousandths % 1000);
}

void json_string_begin(struct json *j)
{
	json_begin(j);
	j->carried = 0;
	(void)buf_puts(&j->buf, "\"");
}

void json_string_end(struct json *j)
{
	(void)buf_puts(&j->buf, "\"");
}

/* RFC 8259 section 7: what a string cannot hold as it is. DEL is legal, but nobody wants it on a terminal. */
/* Without printf(): a stream of nothing but control characters is 64 MiB of these. */
static void put_escape(struct buf *b, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	static const char letters[0x20] = { ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't' };
	const char letter = c == '"' || c == '\\' ? (char)c : c < sizeof(letters) ? letters[c] : '\0';
	const char text[] = { '\\', letter ? letter : 'u', '0', '0', hex[c >> 4], hex[c & 15] };

	(void)buf_add(b, text, letter ? 2 : sizeof(text));
}

static bool needs_escape(unsigned char c)
{
	return c < 0x20 || c == '"' || c == '\\' || c == 0x7f;
}

static void put_escaped(struct buf *b, const unsigned char *p, size_t len)
{
	size_t plain = 0;

	for (size_t i = 0; i < len; i++) {
		if (!needs_escape(p[i]))
			continue;
		(void)buf_add(b, p + plain, i - plain);
		put_escape(b, p[i]);
		plain = i + 1;
	}
	(void)buf_add(b, p + plain, len - plain);
}

void json_string_part(struct json *j, const void *p, size_t len)
{
	const unsigned char *s = p;

	while (len > 0) {
		size_t n = MIN(len, (size_t)PART_BYTES);

		json_flush(j, JSON_BUFFER_MAX / 2);
		put_escaped(&j->buf, s, n);
		s += n;
		len -= n;
	}
}

void json_text(struct json *j, const char *text)
{
	size_t len;

	if (!text) {
		json_null(j);
		return;
	}
	len = strlen(text);
	json_string_begin(j);
	if (str_is_utf8(text, len)) {
		json_string_part(j, text, len);
	} else {
		for (size_t i = 0; i < len; i++) {
			if ((unsigned char)text[i] > 0x7f)
				json_string_part(j, "\xef\xbf\xbd", 3); /* U+FFFD */
			else
				json_string_part(j, text + i, 1);
		}
	}
	json_string_end(j);
}

/* One group: 1 to 3 bytes in, 4 digits out */
static void put_base64(struct buf *b, const unsigned char *p, size_t n)
{
	uint32_t v = (uint32_t)p[0] << 16 | (n > 1 ? (uint32_t)p[1] << 8 : 0) | (n > 2 ? p[2] : 0);
	char out[4];

	out[0] = base64_digits[v >> 18];
	out[1] = base64_digits[v >> 12 & 63];
	out[2] = n > 1 ? base64_digits[v >> 6 & 63] : '=';
	out[3] = n > 2 ? base64_digits[v & 63] : '=';
	(void)buf_add(b, out, sizeof(out));
}

void json_base64_part(struct json *j, const void *p, size_t len)
{
	const unsigned char *s = p;
	unsigned char group[3];

	while (j->carried + len >= sizeof(group)) {
		size_t take = sizeof(group) - j->carried;

		memcpy(group, j->carry, j->carried);
		memcpy(group + j->carried, s, take);
		j->carried = 0;
		s += take;
		len -= take;
		json_flush(j, JSON_BUFFER_MAX / 2);
		put_base64(&j->buf, group, sizeof(group));
	}
	if (len > 0)
		memcpy(j->carry + j->carried, s, len);
	j->carried += len;
}

void json_base64_end(struct json *j)
{
	if (j->carried > 0)
		put_base64(&j->buf, j->carry, j->carried);
	j->carried = 0;
	json_string_end(j);
}

int json_finish(struct json *j)
{
	assert(j->depth == 0);
	(void)buf_puts(&j->buf, "\n");
	json_flush(j, 0);
	return j->buf.r;
}

/* Bytes at the end of @p that begin a character without ending it: 0 to 3 */
static size_t cut_character(const unsigned char *p, size_t len)
{
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		unsigned char c = p[len - back];

		if ((c & 0xc0) == 0x80)
			continue;
		if ((c >= 0xf0 && back < 4) || (c >= 0xe0 && back < 3) || (c >= 0xc0 && back < 2))
			return back;
		return 0;
	}
	return 0;
}

void utf8_check_part(struct utf8_check *c, const void *p, size_t len)
{
	const unsigned char *s = p;
	size_t cut;

	/* Finish the held character byte by byte; it ends after at most three more. */
	while (c->len > 0 && len > 0 && !c->bad) {
		c->held[c->len++] = *s++;
		len--;
		if (cut_character(c->held, c->len) == c->len)
			continue;
		c->bad = !str_is_utf8(c->held, c->len);
		c->len = 0;
	}
	if (c->bad || len == 0)
		return;
	cut = cut_character(s, len);
	c->bad = !str_is_utf8(s, len - cut);
	memcpy(c->held, s + len - cut, cut);
	c->len = cut;
}

bool utf8_check_ok(const struct utf8_check *c)
{
	return !c->bad && c->len == 0;
}
