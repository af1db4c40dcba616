/* SPDX-License-Identifier: Apache-2.0 */
/* test_buf.c - A buffer never exceeds its maximum and never forgets its first failure */
#include "base/buf.h"

#include <errno.h>
#include <string.h>
#include <wchar.h>

#include "test.h"

/* realloc() fails while this is set (the program is linked with --wrap=realloc). */
static bool no_memory;
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *__wrap_realloc(void *p, size_t size)
{
	return no_memory ? NULL : __real_realloc(p, size);
}

/* What holds of every buffer after every call. */
static void check(const struct buf *b)
{
	assert_true(b->len <= b->max);
	assert_true(b->p ? b->len < b->cap : b->len == 0 && b->cap == 0);
	assert_int_equal(buf_text(b)[b->len], '\0');
}

TEST(an_empty_buffer_is_an_empty_text)
{
	auto_buf struct buf b = BUF_INIT(10);

	check(&b);
	assert_string_equal(buf_text(&b), "");
	assert_int_equal(buf_add(&b, NULL, 0), 0);
	assert_string_equal(buf_text(&b), "");
}

TEST(pieces_of_any_kind_follow_each_other)
{
	auto_buf struct buf b = BUF_INIT(100);

	assert_int_equal(buf_puts(&b, "one "), 0);
	assert_int_equal(buf_printf(&b, "%d %s ", 2, "two"), 0);
	assert_int_equal(buf_add(&b, "a\0b", 3), 0);
	check(&b);
	assert_int_equal(b.len, 13);
	assert_memory_equal(b.p, "one 2 two a\0b", 14);
}

TEST(the_maximum_is_reached_exactly_and_not_passed)
{
	static const size_t limits[] = { 0, 1, 255, 256, 257, 4096, 100000 };

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		auto_buf struct buf b = BUF_INIT(limits[i]);

		for (size_t n = 0; n < limits[i]; n++)
			assert_int_equal(buf_add(&b, "x", 1), 0);
		check(&b);
		assert_int_equal(b.len, limits[i]);
		assert_int_equal(buf_add(&b, "x", 1), -EMSGSIZE);
		check(&b);
		assert_int_equal(b.len, limits[i]);
	}
}

TEST(a_length_that_would_wrap_is_too_long)
{
	auto_buf struct buf b = BUF_INIT(1000);

	assert_int_equal(buf_puts(&b, "abc"), 0);
	assert_int_equal(buf_add(&b, "x", SIZE_MAX), -EMSGSIZE);
	check(&b);
}

TEST(a_piece_that_does_not_fit_is_not_cut)
{
	auto_buf struct buf b = BUF_INIT(5);

	assert_int_equal(buf_puts(&b, "abc"), 0);
	assert_int_equal(buf_printf(&b, "%s", "def"), -EMSGSIZE);
	assert_string_equal(buf_text(&b), "abc");
}

TEST(a_format_may_give_nothing_and_may_fail)
{
	auto_buf struct buf b = BUF_INIT(100);

	assert_int_equal(buf_printf(&b, "%s", ""), 0);
	assert_int_equal(buf_printf(&b, "%lc", (wint_t)0x110000), -EINVAL); /* no character in any locale */
	assert_int_equal(buf_puts(&b, "x"), -EINVAL);
}

TEST(the_first_failure_sticks)
{
	auto_buf struct buf b = BUF_INIT(5);

	assert_int_equal(buf_puts(&b, "too long"), -EMSGSIZE);
	assert_int_equal(buf_puts(&b, "x"), -EMSGSIZE);
	assert_int_equal(buf_printf(&b, "x"), -EMSGSIZE);
	assert_int_equal(buf_add(&b, NULL, 0), -EMSGSIZE);
	assert_int_equal(b.r, -EMSGSIZE);
	assert_string_equal(buf_text(&b), "");
}

TEST(done_makes_it_usable_again_with_the_same_maximum)
{
	struct buf b = BUF_INIT(5);

	assert_int_equal(buf_puts(&b, "too long"), -EMSGSIZE);
	buf_done(&b);
	assert_int_equal(buf_puts(&b, "12345"), 0);
	assert_int_equal(buf_puts(&b, "6"), -EMSGSIZE);
	buf_done(&b);
	buf_done(&b);
	check(&b);
}

TEST(without_memory_the_old_bytes_stay)
{
	auto_buf struct buf b = BUF_INIT(100000);
	char big[1000] = { 0 };

	assert_int_equal(buf_puts(&b, "kept"), 0);
	no_memory = true;
	assert_int_equal(buf_add(&b, big, sizeof(big)), -ENOMEM);
	assert_int_equal(buf_puts(&b, "x"), -ENOMEM);
	no_memory = false;
	assert_int_equal(buf_puts(&b, "x"), -ENOMEM);
	check(&b);
	assert_string_equal(buf_text(&b), "kept");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_buffer_is_an_empty_text),
		cmocka_unit_test(pieces_of_any_kind_follow_each_other),
		cmocka_unit_test(the_maximum_is_reached_exactly_and_not_passed),
		cmocka_unit_test(a_length_that_would_wrap_is_too_long),
		cmocka_unit_test(a_piece_that_does_not_fit_is_not_cut),
		cmocka_unit_test(a_format_may_give_nothing_and_may_fail),
		cmocka_unit_test(the_first_failure_sticks),
		cmocka_unit_test(done_makes_it_usable_again_with_the_same_maximum),
		cmocka_unit_test(without_memory_the_old_bytes_stay),
	};

	return RUN(tests);
}
