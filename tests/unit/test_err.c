/* SPDX-License-Identifier: Apache-2.0 */
/* test_err.c - One number space, told in one way, and the same in api/errors.tsv and in the public header */
#include "base/err.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "carrel.h"
#include "test.h"

/* libcarrel hands a struct err out as a struct carrel_error: same numbers, same sizes. */
#define SAME(code) _Static_assert((int)CARREL_ERROR_##code == (int)ERR_##code, "carrel.h and err.h disagree")
SAME(NONE);
SAME(INVALID);
SAME(NOT_FOUND);
SAME(NOT_EXECUTABLE);
SAME(DENIED);
SAME(UNSUPPORTED);
SAME(EXHAUSTED);
SAME(CONFLICT);
SAME(UNAVAILABLE);
SAME(DEADLINE);
SAME(PROTOCOL);
SAME(SYSTEM);
#undef SAME
_Static_assert(sizeof(((struct carrel_error *)0)->message) == ERR_MSG_MAX, "carrel.h and err.h disagree");
_Static_assert(sizeof(((struct carrel_error *)0)->remedy) == ERR_HINT_MAX, "carrel.h and err.h disagree");
_Static_assert(sizeof(((struct carrel_error *)0)->detail) == ERR_TRAIL_MAX, "carrel.h and err.h disagree");

TEST(a_reason_carries_its_code_and_returns_its_errno)
{
	struct err e = { .sys = 99, .hint = "old", .trail = "old" };

	assert_int_equal(err_set(&e, ERR_CONFLICT, "start '%s'", "box"), -EEXIST);
	assert_int_equal(e.code, ERR_CONFLICT);
	assert_int_equal(e.sys, 0);
	assert_string_equal(e.msg, "start 'box'");
	assert_string_equal(e.hint, "");
	assert_string_equal(e.trail, "");
}

TEST(a_failed_call_tells_the_kernels_reason)
{
	struct err e = { 0 };

	assert_int_equal(err_sys(&e, -ENOENT, "open '%s'", "/x"), -ENOENT);
	assert_int_equal(e.code, ERR_NOT_FOUND);
	assert_int_equal(e.sys, ENOENT);
	assert_string_equal(e.msg, "open '/x': no such file or directory");
}

TEST(an_outer_step_goes_in_front_and_keeps_code_and_hint)
{
	struct err e = { 0 };
	int r = err_sys(&e, -EACCES, "open '/x'");

	r = err_hint(&e, r, "allow it with '%s'", "chmod");
	assert_int_equal(err_wrap(&e, r, "mount '%s'", "data"), -EACCES);
	assert_string_equal(e.msg, "mount 'data': open '/x': permission denied");
	assert_string_equal(e.hint, "allow it with 'chmod'");
	assert_int_equal(e.code, ERR_DENIED);
	assert_int_equal(e.sys, EACCES);
}

TEST(an_outer_step_around_nothing_tells_the_errno)
{
	struct err e = { 0 };

	assert_int_equal(err_wrap(&e, -ENOMEM, "start"), -ENOMEM);
	assert_string_equal(e.msg, "start: out of memory");
	assert_int_equal(e.code, ERR_EXHAUSTED);
	assert_int_equal(e.sys, ENOMEM);
}

TEST(nobody_has_to_listen)
{
	assert_int_equal(err_set(NULL, ERR_INVALID, "x"), -EINVAL);
	assert_int_equal(err_sys(NULL, -ENOENT, "x"), -ENOENT);
	assert_int_equal(err_wrap(NULL, -ENOENT, "x"), -ENOENT);
	assert_int_equal(err_hint(NULL, -ENOENT, "x"), -ENOENT);
}

TEST(long_texts_are_cut_and_end)
{
	struct err e = { 0 };
	char big[1000];

	memset(big, 'a', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	(void)err_set(&e, ERR_INVALID, "%s", big);
	assert_int_equal(strlen(e.msg), ERR_MSG_MAX - 1);
	(void)err_sys(&e, -ENOENT, "%s", big);
	assert_int_equal(strlen(e.msg), ERR_MSG_MAX - 1);
	(void)err_wrap(&e, -ENOENT, "%s", big);
	assert_int_equal(strlen(e.msg), ERR_MSG_MAX - 1);
	(void)err_hint(&e, -ENOENT, "%s", big);
	assert_int_equal(strlen(e.hint), ERR_HINT_MAX - 1);
}

TEST(making_an_error_leaves_errno_alone)
{
	struct err e = { 0 };

	errno = 4711;
	(void)err_sys(&e, -ENOENT, "open '%s'", "/x");
	(void)err_wrap(&e, -ENOENT, "x");
	assert_int_equal(errno, 4711);
}

TEST(every_codes_errno_means_that_code)
{
	for (unsigned c = ERR_NONE + 1; c < ERR_NUM_CODES; c++)
		EXPECT_INT(err_code_name((enum err_code)c), err_code_of_errno(err_code_errno((enum err_code)c)), c);
}

TEST(numbers_from_elsewhere_have_a_meaning_too)
{
	assert_string_equal(err_code_name((enum err_code)999), "SYSTEM");
	assert_string_equal(err_code_name((enum err_code) - 1), "SYSTEM");
	assert_int_equal(err_code_errno((enum err_code)999), EIO);
	assert_int_equal(err_code_of_errno(0), ERR_SYSTEM);
	assert_int_equal(err_code_of_errno(-5), ERR_SYSTEM);
	assert_int_equal(err_code_of_errno(4000), ERR_SYSTEM);
	assert_string_equal(err_errno_text(4000), "unexpected failure");
}

/* --- api/errors.tsv --- */

enum { COL_CODE, COL_ERRNO, COL_EXIT, COL_GRPC, COL_HTTP, COL_MCP, COL_RETRYABLE, COL_MEANING, NUM_COLS };

static const char *const headings[] = { "code", "errno", "exit", "grpc", "http", "mcp", "retryable", "meaning" };
_Static_assert(ARRAY_SIZE(headings) == NUM_COLS, "headings[] misses a column");

/* Cut @line into its columns, in place. */
static void split(char *line, char *cols[NUM_COLS])
{
	size_t n = 0;

	line[strcspn(line, "\n")] = '\0';
	for (char *p = line; p; n++) {
		assert_true(n < NUM_COLS);
		cols[n] = strsep(&p, "\t");
		assert_true(cols[n][0] != '\0');
	}
	EXPECT_INT(line, n, NUM_COLS);
}

static bool is_one_of(const char *text, const char *const *list)
{
	while (*list && !str_eq(*list, text))
		list++;
	return *list;
}

/* What a row says of a face must be a value that this face has. */
static void check_faces(char *cols[NUM_COLS])
{
	static const char *const grpc[] = { "OK",
					    "INVALID_ARGUMENT",
					    "NOT_FOUND",
					    "FAILED_PRECONDITION",
					    "PERMISSION_DENIED",
					    "UNIMPLEMENTED",
					    "RESOURCE_EXHAUSTED",
					    "ALREADY_EXISTS",
					    "UNAVAILABLE",
					    "DEADLINE_EXCEEDED",
					    "INTERNAL",
					    NULL };
	static const char *const exits[] = { "0", "125", "126", "127", NULL };
	static const char *const mcp[] = { "-", "tool", "-32603", NULL };
	static const char *const yes_no[] = { "yes", "no", NULL };
	uint64_t http;

	assert_true(is_one_of(cols[COL_GRPC], grpc));
	assert_true(is_one_of(cols[COL_EXIT], exits));
	assert_true(is_one_of(cols[COL_MCP], mcp));
	assert_true(is_one_of(cols[COL_RETRYABLE], yes_no));
	assert_int_equal(str_to_u64(cols[COL_HTTP], &http), 0);
	assert_true(http == 200 || (http >= 400 && http < 600));
}

/* The code whose name is @name; fails if there is none. */
static unsigned code_of(const char *name)
{
	unsigned c = 0;

	while (c < ERR_NUM_CODES && !str_eq(err_code_name((enum err_code)c), name))
		c++;
	if (c == ERR_NUM_CODES)
		fail_msg("errors.tsv: no code '%s' in err.h", name);
	return c;
}

static void check_row(char *line, bool seen[ERR_NUM_CODES])
{
	char *cols[NUM_COLS];
	unsigned code;
	int sys;

	split(line, cols);
	code = code_of(cols[COL_CODE]);
	EXPECT_INT(cols[COL_CODE], seen[code], false);
	seen[code] = true;
	sys = err_code_errno((enum err_code)code);
	assert_string_equal(cols[COL_ERRNO], sys ? strerrorname_np(sys) : "0");
	check_faces(cols);
}

TEST(the_table_and_the_codes_are_the_same_set)
{
	bool seen[ERR_NUM_CODES] = { false }, headed = false;
	auto_free char *line = NULL;
	size_t size = 0;
	FILE *f = fopen(ERRORS_TSV, "re");

	assert_non_null(f);
	while (getline(&line, &size, f) > 0) {
		if (line[0] == '#')
			continue;
		if (headed) {
			check_row(line, seen);
			continue;
		}
		char *cols[NUM_COLS];

		split(line, cols);
		for (size_t i = 0; i < NUM_COLS; i++)
			assert_string_equal(cols[i], headings[i]);
		headed = true;
	}
	(void)fclose(f);
	for (unsigned c = 0; c < ERR_NUM_CODES; c++)
		EXPECT_INT(err_code_name((enum err_code)c), seen[c], true);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reason_carries_its_code_and_returns_its_errno),
		cmocka_unit_test(a_failed_call_tells_the_kernels_reason),
		cmocka_unit_test(an_outer_step_goes_in_front_and_keeps_code_and_hint),
		cmocka_unit_test(an_outer_step_around_nothing_tells_the_errno),
		cmocka_unit_test(nobody_has_to_listen),
		cmocka_unit_test(long_texts_are_cut_and_end),
		cmocka_unit_test(making_an_error_leaves_errno_alone),
		cmocka_unit_test(every_codes_errno_means_that_code),
		cmocka_unit_test(numbers_from_elsewhere_have_a_meaning_too),
		cmocka_unit_test(the_table_and_the_codes_are_the_same_set),
	};

	return RUN(tests);
}
