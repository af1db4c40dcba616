/* SPDX-License-Identifier: Apache-2.0 */
/* test_cli_options.c - How command lines are read
 *
 * Theory of operation. Tables of words and of what they mean. Each mistake is one that people make, and is asked for its remedy. */
#include "cli/options.h"

#include <string.h>

#include "base/str.h"
#include "test.h"

static const struct option table[] = {
	{ .name = "memory", .letter = 'm', .arg = "SIZE", .help = "" },
	{ .name = "mount", .arg = "SPEC", .help = "" },
	{ .name = "volume", .letter = 'v', .arg = "SPEC", .flags = OPTION_REPEAT, .help = "" },
	{ .name = "interactive", .letter = 'i', .help = "" },
	{ .name = "tty", .letter = 't', .help = "" },
	{ .name = "secret", .flags = OPTION_HIDDEN, .help = "" },
	{ .name = NULL },
};

#define WORDS_MAX 8

struct reading {
	const char *words[WORDS_MAX];
	const char *uses; /* "name=value " for each option */
	int operand;
};

static void check_reading(const struct reading *want)
{
	char *words[WORDS_MAX + 1] = { NULL };
	char got[256] = "";
	struct option_use use;
	struct err e = { 0 };
	size_t n = 0;
	int r;

	while (n < WORDS_MAX && want->words[n]) {
		words[n] = strdup(want->words[n]);
		n++;
	}
	struct options o = OPTIONS_INIT(table, "run", words);

	while ((r = options_next(&o, &use, &e)) > 0) {
		size_t len = strlen(got);

		(void)snprintf(got + len, sizeof(got) - len, "%s=%s ", use.option->name, use.value);
	}
	assert_int_equal(r, 0);
	assert_string_equal(got, want->uses);
	assert_int_equal(o.next, want->operand);
	for (size_t i = 0; i < n; i++)
		free(words[i]);
}

TEST(every_spelling_is_read)
{
	static const struct reading cases[] = {
		{ { NULL }, "", 0 },
		{ { "--memory", "1g", "ls" }, "memory=1g ", 2 },
		{ { "--memory=1g", "ls" }, "memory=1g ", 1 },
		{ { "--memory=", "ls" }, "memory= ", 1 },
		{ { "--memory=a=b" }, "memory=a=b ", 1 },
		{ { "-m", "1g", "ls" }, "memory=1g ", 2 },
		{ { "-m1g", "ls" }, "memory=1g ", 1 },
		{ { "-it", "ls" }, "interactive=true tty=true ", 1 },
		{ { "-itm1g", "ls" }, "interactive=true tty=true memory=1g ", 1 },
		{ { "-itm", "1g", "ls" }, "interactive=true tty=true memory=1g ", 2 },
		{ { "--tty=false", "ls" }, "tty=false ", 1 },
		{ { "--tty=1", "ls" }, "tty=true ", 1 },
		{ { "--memory", "--", "ls" }, "memory=-- ", 2 }, /* as getopt has it: the next word, whatever it is */
		{ { "-v", "a:b", "-v", "c:d" }, "volume=a:b volume=c:d ", 4 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_reading(&cases[i]);
}

TEST(options_end_at_the_command)
{
	static const struct reading cases[] = {
		{ { "ls", "-it", "--memory" }, "", 0 },
		{ { "-i", "ls", "-t" }, "interactive=true ", 1 },
		{ { "--", "-i", "ls" }, "", 1 },
		{ { "-i", "--", "--", "ls" }, "interactive=true ", 2 },
		{ { "-", "-i" }, "", 0 },
		{ { "", "-i" }, "", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_reading(&cases[i]);
}

TEST(mistakes_say_what_to_write)
{
	static const struct {
		const char *words[3];
		const char *message; /* a part of it */
		const char *remedy;
	} cases[] = {
		{ { "--memroy", "1g" }, "'--memroy'", "--memory?" },
		{ { "--intractive" }, "'--intractive'", "--interactive?" },
		{ { "--memroy=1g" }, "'--memroy'", "--memory?" },
		{ { "--zzzzzzzz" }, "'--zzzzzzzz'", "--help" },
		{ { "--secre" }, "'--secre'", "--help" }, /* a hidden name is not proposed */
		{ { "--privileged" }, "'--privileged'", "no such mode" },
		{ { "-d" }, "'-d'", "foreground" },
		{ { "-ix" }, "'-x'", "--help" },
		{ { "--memory" }, "argument SIZE is missing", "--memory SIZE" },
		{ { "-m" }, "argument SIZE is missing", "--memory SIZE" },
		{ { "--tty=maybe" }, "'maybe'", "--tty=false" },
		{ { "--=x" }, "'--'", "--help" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *words[4] = { NULL };
		struct option_use use;
		struct err e = { 0 };
		int r;

		for (size_t k = 0; k < 3 && cases[i].words[k]; k++)
			words[k] = strdup(cases[i].words[k]);
		struct options o = OPTIONS_INIT(table, "run", words);

		while ((r = options_next(&o, &use, &e)) > 0)
			;
		assert_int_equal(r, -EINVAL);
		assert_int_equal(e.code, ERR_INVALID);
		assert_non_null(strstr(e.msg, cases[i].message));
		assert_non_null(strstr(e.hint, cases[i].remedy));
		for (size_t k = 0; words[k]; k++)
			free(words[k]);
	}
}

TEST(distance_counts_edits)
{
	static const struct {
		const char *a, *b;
		size_t want;
	} cases[] = {
		{ "", "", 0 },	     { "a", "", 1 },	     { "", "ab", 2 },
		{ "run", "run", 0 }, { "run", "rum", 1 },    { "memory", "memroy", 1 },
		{ "cpu", "cpus", 1 }, { "volume", "env", 6 },
		{ "0123456789012345678901234567890123", "x", SIZE_MAX },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(text_distance(cases[i].a, strlen(cases[i].a), cases[i].b, strlen(cases[i].b)),
				 cases[i].want);
}

TEST(a_name_of_any_length_is_refused)
{
	size_t len = MIB(1);
	char *word = malloc(len + 1);
	char *words[2] = { word, NULL };
	struct option_use use;
	struct err e = { 0 };

	assert_non_null(word);
	memset(word, '-', 2);
	memset(word + 2, 'm', len - 2);
	word[len] = '\0';
	struct options o = OPTIONS_INIT(table, "run", words);

	assert_int_equal(options_next(&o, &use, &e), -EINVAL);
	free(word);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_spelling_is_read),	cmocka_unit_test(options_end_at_the_command),
		cmocka_unit_test(mistakes_say_what_to_write),	cmocka_unit_test(distance_counts_edits),
		cmocka_unit_test(a_name_of_any_length_is_refused),
	};

	return RUN(tests);
}
