/* SPDX-License-Identifier: Apache-2.0 */
/* test_cli_json.c - The JSON writer and the check of UTF-8 in parts
 *
 * Theory of operation. What depends on parts is cut at every place; str_is_utf8() is the oracle. */
#include "cli/json.h"

#include <string.h>
#include <sys/mman.h>

#include "base/str.h"
#include "test.h"

TEST(nesting_puts_commas_where_they_belong)
{
	auto_json struct json j = JSON_INIT(-EBADF, JSON_BUFFER_MAX);

	json_object(&j);
	json_key(&j, "a");
	json_u64(&j, UINT64_MAX);
	json_key(&j, "b");
	json_array(&j);
	json_null(&j);
	json_bool(&j, 1);
	json_object(&j);
	json_end(&j, '}');
	json_array(&j);
	json_end(&j, ']');
	json_end(&j, ']');
	json_key(&j, "c");
	json_thousandths(&j, 1005);
	json_key(&j, "d");
	json_text(&j, NULL);
	json_end(&j, '}');
	assert_int_equal(json_finish(&j), 0);
	assert_string_equal(buf_text(&j.buf),
			    "{\"a\":18446744073709551615,\"b\":[null,true,{},[]],\"c\":1.005,\"d\":null}\n");
}

TEST(texts_are_escaped)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "", "\"\"\n" },
		{ "a\"b\\c/", "\"a\\\"b\\\\c/\"\n" },
		{ "\b\f\n\r\t\x01\x1f\x7f", "\"\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\"\n" },
		{ "\xc3\xa4\xf0\x9f\x98\x80", "\"\xc3\xa4\xf0\x9f\x98\x80\"\n" },
		{ "a\xff\xc3\xa4", "\"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"\n" }, /* not UTF-8 as a whole */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_json struct json j = JSON_INIT(-EBADF, JSON_BUFFER_MAX);

		json_text(&j, cases[i].text);
		assert_int_equal(json_finish(&j), 0);
		assert_string_equal(buf_text(&j.buf), cases[i].want);
	}
}

/* RFC 4648 section 10, in every way to cut them in two */
TEST(base64_does_not_depend_on_the_parts)
{
	static const char *const cases[][2] = {
		{ "", "\"\"\n" },	     { "f", "\"Zg==\"\n" },	  { "fo", "\"Zm8=\"\n" },
		{ "foo", "\"Zm9v\"\n" },     { "foob", "\"Zm9vYg==\"\n" }, { "fooba", "\"Zm9vYmE=\"\n" },
		{ "foobar", "\"Zm9vYmFy\"\n" }, { "\xff\xfe\xfd", "\"//79\"\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t len = strlen(cases[i][0]);

		for (size_t cut = 0; cut <= len; cut++) {
			auto_json struct json j = JSON_INIT(-EBADF, JSON_BUFFER_MAX);

			json_string_begin(&j);
			json_base64_part(&j, cases[i][0], cut);
			json_base64_part(&j, cases[i][0] + cut, len - cut);
			json_base64_end(&j);
			assert_int_equal(json_finish(&j), 0);
			assert_string_equal(buf_text(&j.buf), cases[i][1]);
		}
	}
}

TEST(a_long_text_takes_little_memory)
{
	int fd = memfd_create("json", MFD_CLOEXEC);
	auto_json struct json j = JSON_INIT(fd, JSON_BUFFER_MAX);
	static const char zeros[4096];

	assert_true(fd >= 0);
	json_string_begin(&j);
	for (size_t i = 0; i < 256; i++)
		json_string_part(&j, zeros, sizeof(zeros));
	json_string_end(&j);
	assert_int_equal(json_finish(&j), 0);
	assert_true(j.buf.cap <= JSON_BUFFER_MAX + 1);
	assert_int_equal(lseek(fd, 0, SEEK_END), 256 * 4096 * 6 + 3); /* \u0000 each, quotes, newline */
	(void)close(fd);
}

TEST(a_full_buffer_is_an_error)
{
	auto_json struct json j = JSON_INIT(-EBADF, 16);

	json_text(&j, "longer than sixteen bytes");
	assert_int_equal(json_finish(&j), -EMSGSIZE);
}

static bool check_in_parts(const char *p, size_t len, size_t part)
{
	struct utf8_check c = { 0 };

	for (size_t at = 0; at < len; at += part)
		utf8_check_part(&c, p + at, MIN(part, len - at));
	return utf8_check_ok(&c);
}

TEST(utf8_does_not_depend_on_the_parts)
{
	static const char *const cases[] = {
		"", "plain", "\xc3\xa4", "a\xe2\x82\xac!", "\xf0\x9f\x98\x80\xf0\x9f\x98\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98",
		"\x80", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "a\xc3(", "\xe2\x28\xa1", "\xf0\x9f\x98z", "\xc3\xc3\xa4",
		"\xe2\x82\xac\x80", "\xf0\x80\x80\x80", "\xf8\x88\x80\x80\x80",
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t len = strlen(cases[i]);

		for (size_t part = 1; part <= len + 1; part++)
			assert_int_equal(check_in_parts(cases[i], len, part), str_is_utf8(cases[i], len));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nesting_puts_commas_where_they_belong), cmocka_unit_test(texts_are_escaped),
		cmocka_unit_test(base64_does_not_depend_on_the_parts),	 cmocka_unit_test(a_long_text_takes_little_memory),
		cmocka_unit_test(a_full_buffer_is_an_error),		 cmocka_unit_test(utf8_does_not_depend_on_the_parts),
	};

	return RUN(tests);
}
