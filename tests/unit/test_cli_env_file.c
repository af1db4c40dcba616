/* SPDX-License-Identifier: Apache-2.0 */
/* test_cli_env_file.c - Variables as --env and --env-file name them
 *
 * Theory of operation. Pure but for one missing file: lines in, calls of the setter out. */
#include "cli/env_file.h"

#include <string.h>

#include "base/buf.h"
#include "test.h"

#define S(text) (text), sizeof(text) - 1

static int collect(const char *text, void *data, struct carrel_error *e)
{
	(void)e;
	return buf_printf(data, "[%s]", text);
}

static int refuse(const char *text, void *data, struct carrel_error *e)
{
	(void)text;
	(void)data;
	(void)snprintf(e->message, sizeof(e->message), "refused");
	return -E2BIG;
}

static int parse(const char *text, size_t len, struct buf *got, struct carrel_error *e)
{
	char copy[256];

	assert_true(len < sizeof(copy));
	memcpy(copy, text, len);
	copy[len] = '\0';
	return env_file_parse("vars", copy, len, collect, got, e);
}

TEST(files_are_read_as_docker_reads_them)
{
	static const struct {
		const char *text;
		size_t len;
		const char *want;
	} cases[] = {
		{ S(""), "" },
		{ S("A=1"), "[A=1]" },
		{ S("A=1\nB=2\n"), "[A=1][B=2]" },
		{ S("A=1\r\nB=2\r\n"), "[A=1][B=2]" },
		{ S("\xef\xbb\xbf" "A=1\n"), "[A=1]" },
		{ S("# A=1\n\n  \n\tB=2\n  # C=3\n"), "[B=2]" },
		{ S("A= \"x y\" # no comment\n"), "[A= \"x y\" # no comment]" },
		{ S("A=\n"), "[A=]" },
		{ S("A=B=C\n"), "[A=B=C]" },
		{ S("CARREL_TEST_HERE\nCARREL_TEST_NOT_HERE\n"), "[CARREL_TEST_HERE=yes]" },
	};

	assert_int_equal(setenv("CARREL_TEST_HERE", "yes", 1), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_buf struct buf got = BUF_INIT(256);
		struct carrel_error e = { 0 };

		assert_int_equal(parse(cases[i].text, cases[i].len, &got, &e), 0);
		assert_string_equal(buf_text(&got), cases[i].want);
	}
}

TEST(a_bad_line_is_named)
{
	static const struct {
		const char *text;
		size_t len;
		const char *want; /* a part of the message */
	} cases[] = {
		{ S("A=1\n=2\n"), "'vars' line 2" },
		{ S("A B=1\n"), "blank" },
		{ S("A\tB=1\n"), "blank" },
		{ S("A\x01=1\n"), "control character" },
		{ S("A=1\nB=\0" "2\nC=3\n"), "line 2: a NUL byte" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_buf struct buf got = BUF_INIT(256);
		struct carrel_error e = { 0 };

		assert_int_equal(parse(cases[i].text, cases[i].len, &got, &e), -EINVAL);
		assert_non_null(strstr(e.message, cases[i].want));
		assert_int_equal(e.code, CARREL_ERROR_INVALID);
	}
}

TEST(the_engine_has_the_last_word)
{
	struct carrel_error e = { 0 };
	char text[] = "A=1\nB=2\n";

	assert_int_equal(env_file_parse("vars", text, strlen(text), refuse, NULL, &e), -E2BIG);
	assert_string_equal(e.message, "read 'vars' line 1: refused");
}

TEST(a_missing_file_is_named)
{
	struct carrel_error e = { 0 };

	assert_int_equal(env_file_read("/nonexistent/vars", collect, NULL, &e), -ENOENT);
	assert_non_null(strstr(e.message, "'/nonexistent/vars'"));
	assert_true(e.remedy[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_read_as_docker_reads_them),
		cmocka_unit_test(a_bad_line_is_named),
		cmocka_unit_test(the_engine_has_the_last_word),
		cmocka_unit_test(a_missing_file_is_named),
	};

	return RUN(tests);
}
