/* SPDX-License-Identifier: Apache-2.0 */
/* str.h - Checked conversions of text that a person or a peer wrote */
#pragma once

#include "base/macros.h"

/**
 * str_to_u64() - Decimal digits and nothing else
 * Return: 0; -EINVAL for an empty text, a sign, a blank or any other byte; -ERANGE beyond 64 bits
 */
must_check int str_to_u64(const char *s, uint64_t *ret);

/**
 * str_to_size() - Bytes as docker writes them: "512", "64k", "1.5g", "2GiB", "10MB"
 *
 * Suffixes b k m g t p, optionally followed by "b" or "ib", any case; all are powers of 1024, as docker's memory options are.
 * Return: 0; -EINVAL if malformed; -ERANGE beyond INT64_MAX, which no kernel interface takes
 */
must_check int str_to_size(const char *s, uint64_t *ret_bytes);

/**
 * str_to_duration() - Time as "90", "1.5s", "500ms", "2m", "1h", "1h30m"; a bare number is seconds
 * Return: 0; -EINVAL if malformed; -ERANGE beyond ten years
 */
must_check int str_to_duration(const char *s, uint64_t *ret_ns);

/**
 * str_to_milli() - A decimal fraction in thousandths: "1.5" is 1500
 * Return: 0; -EINVAL if malformed or with more than three decimals; -ERANGE beyond 32 bits
 */
must_check int str_to_milli(const char *s, uint32_t *ret);

/* str_eq() - Equality of NUL-terminated texts; two NULLs are equal. */
bool str_eq(const char *a, const char *b);

/* str_starts() - The rest of @s behind @prefix, or NULL. */
const char *str_starts(const char *s, const char *prefix);

/* str_is_utf8() - True if @p holds well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms). */
bool str_is_utf8(const void *p, size_t len);

/**
 * str_format_size() - The shortest of "512", "64k", "1.5g"
 * @buf: At least 24 bytes
 * Return: @buf
 */
char *str_format_size(uint64_t bytes, char *buf, size_t size);
