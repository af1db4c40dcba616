/* SPDX-License-Identifier: Apache-2.0 */
/* test_str.c - Text becomes a number whole or not at all
 *
 * Theory of operation. Tables of text, answer and value. Each refused text is one that a laxer parser would have taken: a sign, a blank, a
 * rest, a value that wraps. The value variable is poisoned first, since an output is written on success only. */
#include "base/str.h"

#include <errno.h>
#include <string.h>

#include "test.h"

#define UNTOUCHED UINT64_C(0x5a5a5a5a5a5a5a5a)
#define DAY (UINT64_C(86400) * NSEC_PER_SEC)

struct number {
	const char *text;
	int r;
	uint64_t value;
};

static void check_numbers(int (*parse)(const char *, uint64_t *), const struct number *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t v = UNTOUCHED;

		EXPECT_INT(cases[i].text, parse(cases[i].text, &v), cases[i].r);
		EXPECT_INT(cases[i].text, v, cases[i].r == 0 ? cases[i].value : UNTOUCHED);
	}
}

TEST(u64_takes_decimal_digits_only)
{
	static const struct number cases[] = {
		{ "0", 0, 0 },
		{ "007", 0, 7 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "99999999999999999999999", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1 ", -EINVAL, 0 },
		{ "1\n", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "1e3", -EINVAL, 0 },
		{ "1.0", -EINVAL, 0 },
		{ "\xd9\xa1", -EINVAL, 0 }, /* a digit to Unicode (U+0661) */
	};

	check_numbers(str_to_u64, cases, ARRAY_SIZE(cases));
}

TEST(size_takes_what_docker_takes)
{
	static const struct number cases[] = {
		{ "0", 0, 0 },
		{ "512", 0, 512 },
		{ "512b", 0, 512 },
		{ "64k", 0, 65536 },
		{ "64K", 0, 65536 },
		{ "64kb", 0, 65536 },
		{ "64KiB", 0, 65536 },
		{ "10MB", 0, MIB(10) },
		{ "1.5g", 0, GIB(3) / 2 },
		{ "2GiB", 0, GIB(2) },
		{ "0.1g", 0, 107374182 }, /* rounded down, the same on every machine */
		{ "1t", 0, GIB(1024) },
		{ "1p", 0, GIB(1024) * 1024 },
		{ "0.000000001g", 0, 1 },
		{ "9223372036854775807", 0, INT64_MAX },
	};

	check_numbers(str_to_size, cases, ARRAY_SIZE(cases));
}

TEST(size_refuses_what_it_cannot_mean)
{
	static const struct number cases[] = {
		{ "", -EINVAL, 0 },
		{ "k", -EINVAL, 0 },
		{ ".5g", -EINVAL, 0 },
		{ "1.", -EINVAL, 0 },
		{ "1.g", -EINVAL, 0 },
		{ "1..5g", -EINVAL, 0 },
		{ "1 k", -EINVAL, 0 },
		{ "-1k", -EINVAL, 0 },
		{ "1kk", -EINVAL, 0 },
		{ "1bb", -EINVAL, 0 },
		{ "1bib", -EINVAL, 0 },
		{ "1ki", -EINVAL, 0 },
		{ "1kibi", -EINVAL, 0 },
		{ "1x", -EINVAL, 0 },
		{ "1e", -EINVAL, 0 },
		{ "1k ", -EINVAL, 0 },
		{ "1,5g", -EINVAL, 0 },
		{ "1.0000000001g", -EINVAL, 0 },
		{ "1\xeb", -EINVAL, 0 },
		{ "9223372036854775808", -ERANGE, 0 },
		{ "8192p", -ERANGE, 0 },
		{ "99999999999p", -ERANGE, 0 },
		{ "18446744073709551616", -ERANGE, 0 },
	};

	check_numbers(str_to_size, cases, ARRAY_SIZE(cases));
}

TEST(duration_takes_units_and_their_sums)
{
	static const struct number cases[] = {
		{ "0", 0, 0 },
		{ "90", 0, 90 * NSEC_PER_SEC },
		{ "1.5", 0, 1500 * NSEC_PER_MSEC },
		{ "1.5s", 0, 1500 * NSEC_PER_MSEC },
		{ "500ms", 0, 500 * NSEC_PER_MSEC },
		{ "5us", 0, 5000 },
		{ "5ns", 0, 5 },
		{ "0.000000001s", 0, 1 },
		{ "2m", 0, 120 * NSEC_PER_SEC },
		{ "1h", 0, 3600 * NSEC_PER_SEC },
		{ "1h30m", 0, 5400 * NSEC_PER_SEC },
		{ "1h30m5.5s", 0, 5405500 * NSEC_PER_MSEC },
		{ "1d", 0, DAY },
		{ "3650d", 0, 3650 * DAY },
	};

	check_numbers(str_to_duration, cases, ARRAY_SIZE(cases));
}

TEST(duration_refuses_what_it_cannot_mean)
{
	static const struct number cases[] = {
		{ "", -EINVAL, 0 },
		{ "s", -EINVAL, 0 },
		{ "-1s", -EINVAL, 0 },
		{ "1 s", -EINVAL, 0 },
		{ "1S", -EINVAL, 0 },
		{ "1y", -EINVAL, 0 },
		{ "1h30", -EINVAL, 0 }, /* minutes or seconds? */
		{ "0h30", -EINVAL, 0 }, /* likewise, although the first part is zero */
		{ "1hm", -EINVAL, 0 },
		{ "1s ", -EINVAL, 0 },
		{ "1.s", -EINVAL, 0 },
		{ "0.0000000001s", -EINVAL, 0 },
		{ "3650d1ns", -ERANGE, 0 },
		{ "3651d", -ERANGE, 0 },
		{ "18446744073709551615", -ERANGE, 0 },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "9223372036s9223372036s", -ERANGE, 0 },
	};

	check_numbers(str_to_duration, cases, ARRAY_SIZE(cases));
}

TEST(milli_takes_three_decimals)
{
	static const struct {
		const char *text;
		int r;
		uint32_t value;
	} cases[] = {
		{ "0", 0, 0 },
		{ "1", 0, 1000 },
		{ "1.5", 0, 1500 },
		{ "0.01", 0, 10 },
		{ "0.001", 0, 1 },
		{ "0.001000", 0, 1 }, /* trailing zeroes change nothing */
		{ "4294966.999", 0, 4294966999u },
		{ "4294967", -ERANGE, 0 },
		{ "18446744073709551615", -ERANGE, 0 },
		{ "0.0001", -EINVAL, 0 },
		{ "1.", -EINVAL, 0 },
		{ ".5", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "1x", -EINVAL, 0 },
		{ "inf", -EINVAL, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t v = 77;

		EXPECT_INT(cases[i].text, str_to_milli(cases[i].text, &v), cases[i].r);
		EXPECT_INT(cases[i].text, v, cases[i].r == 0 ? cases[i].value : 77);
	}
}

TEST(equality_knows_null)
{
	char a[] = "x", b[] = "x";

	assert_true(str_eq(a, b));
	assert_true(str_eq(NULL, NULL));
	assert_false(str_eq(a, NULL));
	assert_false(str_eq(NULL, a));
	assert_false(str_eq("x", "xy"));
}

TEST(a_prefix_leaves_the_rest)
{
	assert_string_equal(str_starts("size=1g", "size="), "1g");
	assert_string_equal(str_starts("abc", "abc"), "");
	assert_string_equal(str_starts("abc", ""), "abc");
	assert_null(str_starts("ab", "abc"));
	assert_null(str_starts("", "a"));
}

TEST(utf8_follows_rfc_3629)
{
	static const struct {
		const char *bytes;
		size_t len;
		bool ok;
	} cases[] = {
		{ "", 0, true },
		{ "plain", 5, true },
		{ "a\0b", 3, true }, /* U+0000 is a character */
		{ "\xc2\x80", 2, true },
		{ "\xdf\xbf", 2, true },
		{ "\xe0\xa0\x80", 3, true },
		{ "\xed\x9f\xbf", 3, true },
		{ "\xef\xbf\xbf", 3, true },
		{ "\xf0\x90\x80\x80", 4, true },
		{ "\xf4\x8f\xbf\xbf", 4, true },
		{ "\x80", 1, false },
		{ "\xc0\x80", 2, false },         /* overlong NUL */
		{ "\xc1\xbf", 2, false },         /* overlong U+007F */
		{ "\xe0\x9f\xbf", 3, false },     /* overlong U+07FF */
		{ "\xf0\x8f\xbf\xbf", 4, false }, /* overlong U+FFFF */
		{ "\xed\xa0\x80", 3, false },     /* surrogate */
		{ "\xed\xbf\xbf", 3, false },     /* surrogate */
		{ "\xf4\x90\x80\x80", 4, false }, /* over U+10FFFF */
		{ "\xf5\x80\x80\x80", 4, false },
		{ "\xff", 1, false },
		{ "\xc3", 1, false }, /* cut off */
		{ "\xe2\x82", 2, false },
		{ "\xf0\x9f\x98", 3, false },
		{ "\xe2\x82(", 3, false },
		{ "\xf0\x9f(\x80", 4, false },
		{ "ok\xe2\x82\xac then \xfe", 12, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_free char *exact = malloc(cases[i].len + !cases[i].len);

		/* A copy of exactly that length, so that a look beyond it is an error that ASan reports. */
		assert_non_null(exact);
		memcpy(exact, cases[i].bytes, cases[i].len);
		EXPECT_INT(cases[i].bytes, str_is_utf8(exact, cases[i].len), cases[i].ok);
	}
}

TEST(sizes_print_short)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{ 0, "0" },
		{ 512, "512" },
		{ 1023, "1023" },
		{ 1024, "1k" },
		{ 1536, "1.5k" },
		{ KIB(100) - 512, "99.5k" },
		{ KIB(100) + 512, "100k" }, /* three digits are enough */
		{ MIB(64), "64m" },
		{ GIB(3) / 2, "1.5g" },
		{ GIB(1) - 1, "1023m" },
		{ GIB(1024) * 1024, "1p" },
		{ UINT64_MAX, "16383p" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char buf[24];

		assert_string_equal(str_format_size(cases[i].bytes, buf, sizeof(buf)), cases[i].text);
	}
}

TEST(a_printed_size_reads_back_within_a_tenth)
{
	for (unsigned shift = 0; shift < 63; shift++) {
		uint64_t bytes = (UINT64_C(1) << shift) + (UINT64_C(1) << shift) / 3, back;
		char buf[24];

		if (bytes > INT64_MAX)
			break;
		assert_int_equal(str_to_size(str_format_size(bytes, buf, sizeof(buf)), &back), 0);
		assert_true(back <= bytes && bytes - back <= bytes / 10);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(u64_takes_decimal_digits_only),
		cmocka_unit_test(size_takes_what_docker_takes),
		cmocka_unit_test(size_refuses_what_it_cannot_mean),
		cmocka_unit_test(duration_takes_units_and_their_sums),
		cmocka_unit_test(duration_refuses_what_it_cannot_mean),
		cmocka_unit_test(milli_takes_three_decimals),
		cmocka_unit_test(equality_knows_null),
		cmocka_unit_test(a_prefix_leaves_the_rest),
		cmocka_unit_test(utf8_follows_rfc_3629),
		cmocka_unit_test(sizes_print_short),
		cmocka_unit_test(a_printed_size_reads_back_within_a_tenth),
	};

	return RUN(tests);
}
