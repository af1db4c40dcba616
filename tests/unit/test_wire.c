/* SPDX-License-Identifier: Apache-2.0 */
/* test_wire.c - Fields come back as they were put, and a reader believes nothing
 *
 * Theory of operation. Hostile bytes are copied to memory of exactly their length before they are read, so that ASan and MSan report a
 * look beyond them. */
#include "wire/wire.h"

#include <errno.h>
#include <string.h>

#include "test.h"

/* calloc() fails while this is set (the program is linked with --wrap=calloc). */
static bool no_memory;
static size_t largest_calloc; /* bytes */
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	largest_calloc = MAX(largest_calloc, n * size);
	return no_memory ? NULL : __real_calloc(n, size);
}

/* BYTES() - Bytes and their number, without the NUL that C appends. */
#define BYTES(s) (s), sizeof(s) - 1

static unsigned char *exact(const void *p, size_t len)
{
	unsigned char *copy = malloc(len + !len);

	assert_non_null(copy);
	memcpy(copy, p, len);
	return copy;
}

TEST(integers_are_little_endian)
{
	auto_buf struct buf b = BUF_INIT(100);

	wire_put_u8(&b, 0x01);
	wire_put_u16(&b, 0x0302);
	wire_put_u32(&b, 0x07060504);
	wire_put_u64(&b, UINT64_C(0x0f0e0d0c0b0a0908));
	assert_int_equal(b.r, 0);
	assert_int_equal(b.len, 15);
	for (size_t i = 0; i < b.len; i++)
		assert_int_equal(b.p[i], i + 1);
}

TEST(every_field_comes_back)
{
	static const char *const list[] = { "a", "", "three", NULL };
	auto_buf struct buf b = BUF_INIT(200);
	auto_free const char **v = NULL;
	struct wire_in in;

	wire_put_u8(&b, UINT8_MAX);
	wire_put_u16(&b, UINT16_MAX - 1);
	wire_put_u32(&b, UINT32_MAX - 2);
	wire_put_u64(&b, UINT64_MAX - 3);
	wire_put_str(&b, "text \xff\n");
	wire_put_strv(&b, list);
	assert_int_equal(b.r, 0);
	in = WIRE_IN((unsigned char *)b.p, b.len);
	assert_int_equal(wire_u8(&in), UINT8_MAX);
	assert_int_equal(wire_u16(&in), UINT16_MAX - 1);
	assert_int_equal(wire_u32(&in), UINT32_MAX - 2);
	assert_true(wire_u64(&in) == UINT64_MAX - 3);
	assert_string_equal(wire_str(&in, 7), "text \xff\n");
	v = wire_strv(&in, 3, 5);
	assert_non_null(v);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(v[i], list[i]);
	assert_null(v[3]);
	assert_true(wire_done(&in));
}

TEST(a_short_integer_is_zero_and_bad_for_good)
{
	static const unsigned char bytes[7] = { 1, 1, 1, 1, 1, 1, 1 };
	auto_free unsigned char *p = exact(bytes, sizeof(bytes));
	struct wire_in in = WIRE_IN(p, sizeof(bytes));

	assert_true(wire_u64(&in) == 0);
	assert_true(in.bad);
	assert_int_equal(wire_u8(&in), 0); /* although a byte is there */
	assert_string_equal(wire_str(&in, 10), "");
	assert_null(wire_strv(&in, 10, 10));
	assert_false(wire_done(&in));
}

TEST(bytes_left_over_are_not_done)
{
	auto_free unsigned char *p = exact("ab", 2);
	struct wire_in in = WIRE_IN(p, 2);

	assert_int_equal(wire_u8(&in), 'a');
	assert_false(wire_done(&in));
	assert_int_equal(wire_u8(&in), 'b');
	assert_true(wire_done(&in));
}

TEST(no_bytes_at_all_are_done_until_something_is_asked_for)
{
	struct wire_in in = WIRE_IN(NULL, 0);

	assert_true(wire_done(&in));
	assert_int_equal(wire_u8(&in), 0);
	assert_false(wire_done(&in));
}

TEST(a_text_is_its_length_its_bytes_and_one_nul)
{
	/* clang-format off */
	static const struct {
		const char *name, *bytes;
		size_t len, max;
		const char *want; /* NULL: refused */
	} cases[] = {
		{ "empty", BYTES("\0\0\0\0\0"), 0, "" },
		{ "as long as it may be", BYTES("\3\0\0\0abc\0"), 3, "abc" },
		{ "longer than it may be", BYTES("\3\0\0\0abc\0"), 2, NULL },
		{ "NUL inside", BYTES("\3\0\0\0a\0c\0"), 10, NULL },
		{ "NUL first", BYTES("\1\0\0\0\0\0"), 10, NULL },
		{ "no NUL behind", BYTES("\3\0\0\0abcd"), 10, NULL },
		{ "NUL beyond the bytes", BYTES("\3\0\0\0abc"), 10, NULL },
		{ "bytes missing", BYTES("\3\0\0\0ab"), 10, NULL },
		{ "length alone", BYTES("\0\0\0\0"), 10, NULL },
		{ "length cut off", BYTES("\3\0\0"), 10, NULL },
		{ "length that would wrap", BYTES("\xff\xff\xff\xff" "abc\0"), SIZE_MAX, NULL },
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_free unsigned char *p = exact(cases[i].bytes, cases[i].len);
		struct wire_in in = WIRE_IN(p, cases[i].len);
		const char *got = wire_str(&in, cases[i].max);

		EXPECT_INT(cases[i].name, wire_done(&in), cases[i].want != NULL);
		assert_string_equal(got, cases[i].want ? cases[i].want : "");
	}
}

TEST(a_list_is_as_long_as_it_says_and_may)
{
	/* clang-format off */
	static const struct {
		const char *name, *bytes;
		size_t len, max_items, max_each;
		bool ok;
	} cases[] = {
		{ "empty", BYTES("\0\0\0\0"), 0, 0, true },
		{ "one", BYTES("\1\0\0\0" "\1\0\0\0a\0"), 1, 1, true },
		{ "an item too many", BYTES("\2\0\0\0" "\0\0\0\0\0" "\0\0\0\0\0"), 1, 9, false },
		{ "an item too long", BYTES("\1\0\0\0" "\2\0\0\0ab\0"), 1, 1, false },
		{ "fewer items than said", BYTES("\2\0\0\0" "\0\0\0\0\0"), 9, 9, false },
		{ "broken item", BYTES("\1\0\0\0" "\1\0\0\0\0\0"), 9, 9, false },
		{ "four thousand million items", BYTES("\xff\xff\xff\xff" "\0\0\0\0\0"), SIZE_MAX, 9, false },
		{ "number cut off", BYTES("\1\0"), 9, 9, false },
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_free unsigned char *p = exact(cases[i].bytes, cases[i].len);
		struct wire_in in = WIRE_IN(p, cases[i].len);
		auto_free const char **v = wire_strv(&in, cases[i].max_items, cases[i].max_each);

		EXPECT_INT(cases[i].name, v != NULL, cases[i].ok);
		EXPECT_INT(cases[i].name, wire_done(&in), cases[i].ok);
	}
}

TEST(the_array_of_a_list_is_bounded_by_its_message)
{
	unsigned char bytes[104] = { 21, 0 }; /* says 21 items, has bytes for 20 */
	struct wire_in in = WIRE_IN(bytes, sizeof(bytes));

	largest_calloc = 0;
	assert_null(wire_strv(&in, SIZE_MAX, SIZE_MAX));
	assert_int_equal(largest_calloc, 0);
}

TEST(want_of_memory_is_not_the_peers_fault)
{
	struct wire_in in = WIRE_IN((const unsigned char *)"\0\0\0\0", 4);

	no_memory = true;
	assert_null(wire_strv(&in, 1, 1));
	no_memory = false;
	assert_true(in.oom);
	assert_false(wire_done(&in));
}

TEST(a_missing_list_is_written_as_an_empty_one)
{
	auto_buf struct buf b = BUF_INIT(100);

	wire_put_strv(&b, NULL);
	assert_int_equal(b.len, 4);
	assert_memory_equal(b.p, "\0\0\0\0", 4);
}

TEST(a_writer_stops_at_the_buffers_maximum)
{
	auto_buf struct buf b = BUF_INIT(6);

	wire_put_u32(&b, 1);
	wire_put_u32(&b, 2);
	wire_put_u8(&b, 3);
	assert_int_equal(b.r, -EMSGSIZE);
	assert_int_equal(b.len, 4);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_are_little_endian),
		cmocka_unit_test(every_field_comes_back),
		cmocka_unit_test(a_short_integer_is_zero_and_bad_for_good),
		cmocka_unit_test(bytes_left_over_are_not_done),
		cmocka_unit_test(no_bytes_at_all_are_done_until_something_is_asked_for),
		cmocka_unit_test(a_text_is_its_length_its_bytes_and_one_nul),
		cmocka_unit_test(a_list_is_as_long_as_it_says_and_may),
		cmocka_unit_test(the_array_of_a_list_is_bounded_by_its_message),
		cmocka_unit_test(want_of_memory_is_not_the_peers_fault),
		cmocka_unit_test(a_missing_list_is_written_as_an_empty_one),
		cmocka_unit_test(a_writer_stops_at_the_buffers_maximum),
	};

	return RUN(tests);
}
