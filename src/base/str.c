/* SPDX-License-Identifier: Apache-2.0 */
/* str.c - Checked conversions of text that a person or a peer wrote
 *
 * Theory of operation. Pure functions. Each accepts the whole text or refuses it: a number followed by rubbish is an error, never a
 * smaller number. Fractions are computed in integers, so that "0.1g" is the same on every machine. */
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Ten years: longer than any machine stays up, and far from overflow in nanoseconds. */
#define DURATION_MAX_NS (UINT64_C(3650) * 86400 * NSEC_PER_SEC)

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits at *s; advances *s behind them. -EINVAL if there are none. */
static int scan_u64(const char **s, uint64_t *ret)
{
	uint64_t v = 0;
	const char *p = *s;

	if (!is_digit(*p))
		return -EINVAL;
	for (; is_digit(*p); p++)
		if (__builtin_mul_overflow(v, UINT64_C(10), &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return -ERANGE;
	*s = p;
	*ret = v;
	return 0;
}

/* A decimal fraction at *s as whole and billionths; at most nine decimals. */
static int scan_fraction(const char **s, uint64_t *ret_whole, uint64_t *ret_nano)
{
	uint64_t nano = 0, scale = 100000000;
	int r;

	r = scan_u64(s, ret_whole);
	if (r < 0)
		return r;
	if (**s == '.') {
		const char *p = *s + 1;

		if (!is_digit(*p))
			return -EINVAL;
		for (; is_digit(*p); p++, scale /= 10) {
			if (scale == 0)
				return -EINVAL;
			nano += (uint64_t)(*p - '0') * scale;
		}
		*s = p;
	}
	*ret_nano = nano;
	return 0;
}

/* whole.nano × unit, rounded down */
static int scale_by(uint64_t whole, uint64_t nano, uint64_t unit, uint64_t *ret)
{
	unsigned __int128 v = (unsigned __int128)whole * unit + (unsigned __int128)nano * unit / 1000000000;

	if (v > INT64_MAX)
		return -ERANGE;
	*ret = (uint64_t)v;
	return 0;
}

int str_to_u64(const char *s, uint64_t *ret)
{
	uint64_t v;
	int r = scan_u64(&s, &v);

	if (r < 0)
		return r;
	if (*s)
		return -EINVAL;
	*ret = v;
	return 0;
}

int str_to_size(const char *s, uint64_t *ret_bytes)
{
	static const char suffixes[] = "bkmgtp";
	uint64_t whole, nano, unit = 1;
	int r;

	r = scan_fraction(&s, &whole, &nano);
	if (r < 0)
		return r;
	if (*s) {
		const char *at = strchr(suffixes, *s | 0x20);
		bool is_byte = (*s | 0x20) == 'b';

		if (!at)
			return -EINVAL;
		unit = UINT64_C(1) << (10 * (at - suffixes));
		s++;
		if (*s && (is_byte || (strcasecmp(s, "b") != 0 && strcasecmp(s, "ib") != 0)))
			return -EINVAL;
	}
	return scale_by(whole, nano, unit, ret_bytes);
}

int str_to_duration(const char *s, uint64_t *ret_ns)
{
	/* Longer suffixes first, so that "ms" is not taken for "m". */
	static const struct {
		const char *suffix;
		uint64_t ns;
	} units[] = {
		{ "ms", NSEC_PER_MSEC },
		{ "us", 1000 },
		{ "ns", 1 },
		{ "s", NSEC_PER_SEC },
		{ "m", 60 * NSEC_PER_SEC },
		{ "h", 3600 * NSEC_PER_SEC },
		{ "d", 86400 * NSEC_PER_SEC },
	};
	uint64_t total = 0;

	for (bool first = true; first || *s; first = false) {
		uint64_t whole, nano, part, unit = NSEC_PER_SEC;
		int r = scan_fraction(&s, &whole, &nano);

		if (r < 0)
			return r;
		if (*s || !first) {
			size_t i = 0;

			while (i < ARRAY_SIZE(units) && !str_starts(s, units[i].suffix))
				i++;
			if (i == ARRAY_SIZE(units))
				return -EINVAL;
			unit = units[i].ns;
			s += strlen(units[i].suffix);
		}
		r = scale_by(whole, nano, unit, &part);
		if (r < 0)
			return r;
		if (__builtin_add_overflow(total, part, &total) || total > DURATION_MAX_NS)
			return -ERANGE;
	}
	*ret_ns = total;
	return 0;
}

int str_to_milli(const char *s, uint32_t *ret)
{
	uint64_t whole, nano;
	int r = scan_fraction(&s, &whole, &nano);

	if (r < 0)
		return r;
	if (*s || nano % 1000000)
		return -EINVAL;
	if (whole > UINT32_MAX / 1000 - 1)
		return -ERANGE;
	*ret = (uint32_t)(whole * 1000 + nano / 1000000);
	return 0;
}

bool str_eq(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

const char *str_starts(const char *s, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(s, prefix, n) == 0 ? s + n : NULL;
}

/* Length of the sequence that @p starts, 0 if it is none (table 3-7 of the Unicode standard). */
static size_t utf8_sequence(const unsigned char *p, size_t len)
{
	unsigned char lo = 0x80, hi = 0xbf;
	size_t n;

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		n = 2;
	else if (p[0] >= 0xe0 && p[0] <= 0xef)
		n = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (p[0] == 0xe0)
		lo = 0xa0;
	else if (p[0] == 0xed)
		hi = 0x9f;
	else if (p[0] == 0xf0)
		lo = 0x90;
	else if (p[0] == 0xf4)
		hi = 0x8f;
	if (len < n || p[1] < lo || p[1] > hi)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

bool str_is_utf8(const void *p, size_t len)
{
	const unsigned char *s = p;

	while (len > 0) {
		size_t n = utf8_sequence(s, len);

		if (n == 0)
			return false;
		s += n;
		len -= n;
	}
	return true;
}

char *str_format_size(uint64_t bytes, char *buf, size_t size)
{
	static const char suffixes[] = " kmgtp";
	uint64_t unit = 1;
	size_t i = 0;

	while (i + 2 < sizeof(suffixes) && bytes / unit >= 1024) {
		unit <<= 10;
		i++;
	}
	if (i == 0)
		(void)snprintf(buf, size, "%" PRIu64, bytes);
	else if (bytes % unit == 0 || bytes / unit >= 100)
		(void)snprintf(buf, size, "%" PRIu64 "%c", bytes / unit, suffixes[i]);
	else
		(void)snprintf(buf, size, "%" PRIu64 ".%" PRIu64 "%c", bytes / unit, bytes % unit * 10 / unit,
			       suffixes[i]);
	return buf;
}
