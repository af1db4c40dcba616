/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - A JSON writer of bounded memory */
#pragma once

#include "base/buf.h"

/* Bytes that wait for a write. Above the half they are written; so no single value may be longer than the other half. */
#define JSON_BUFFER_MAX KIB(64)
/* Objects and arrays in each other: the deepest of ours has four. It is the number of bits in struct json.filled. */
#define JSON_DEPTH_MAX 32

/**
 * struct json - A document being written
 * @buf:    Bytes not written yet; its sticky failure is the document's
 * @fd:     Where they go; -EBADF keeps all of them in @buf, whose maximum then is the document's
 * @depth:  Objects and arrays that are open
 * @filled: Bit n is set once something is in the object or array at depth n, so that a comma comes first
 * @after_key: 1 if a key waits for its value
 * @carry, @carried: up to two bytes that do not fill a base64 group yet
 *
 * Failures stick: a writer of many values looks once, at json_finish().
 */
struct json {
	struct buf buf;
	int fd;
	unsigned depth;
	uint32_t filled;
	int after_key;
	unsigned char carry[2];
	size_t carried;
};

#define JSON_INIT(out_fd, max_bytes) ((struct json){ .buf = BUF_INIT(max_bytes), .fd = (out_fd) })

void json_done(struct json *j);
#define auto_json auto_(json_done)

void json_object(struct json *j);
void json_array(struct json *j);
/* json_end() - Close the innermost object or array. */
void json_end(struct json *j, char bracket);

/* json_key() - Name of the next value; a literal of ours that needs no escapes. */
void json_key(struct json *j, const char *name);

void json_null(struct json *j);
void json_bool(struct json *j, int value);
void json_u64(struct json *j, uint64_t value);
/* json_thousandths() - Thousandths of the unit, as a decimal fraction: 1500 is 1.5. */
void json_thousandths(struct json *j, uint64_t thousandths);
/* json_text() - A text; if it is not UTF-8, each byte above 0x7f becomes U+FFFD. NULL is null. */
void json_text(struct json *j, const char *text);

/* A long string in parts. The caller has checked that all of it is UTF-8; parts may cut a character in two. */
void json_string_begin(struct json *j);
void json_string_part(struct json *j, const void *p, size_t len);
void json_string_end(struct json *j);

/* The same as base64 (RFC 4648 section 4, with padding). */
void json_base64_part(struct json *j, const void *p, size_t len);
void json_base64_end(struct json *j);

/* json_finish() - End the line and write what is left. Return: 0, or the first failure of any step. */
must_check int json_finish(struct json *j);

/**
 * struct utf8_check - UTF-8 that arrives in parts
 * @held, @len: a character that the last part cut in two
 * @bad:        1 once the text cannot be UTF-8 any more
 */
struct utf8_check {
	unsigned char held[4];
	size_t len;
	int bad;
};

void utf8_check_part(struct utf8_check *c, const void *p, size_t len);
/* utf8_check_ok() - True if everything so far is whole UTF-8. */
bool utf8_check_ok(const struct utf8_check *c);
