/* SPDX-License-Identifier: Apache-2.0 */
/* test.h - What every unit test needs: cmocka's many headers in their order, and names that read as sentences */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* TEST() - One behaviour; the name says it. */
#define TEST(name) static void name(void **state __attribute__((unused)))

/* RUN() - Run a group of tests from main(). */
#define RUN(tests) cmocka_run_group_tests(tests, NULL, NULL)

/* EXPECT_INT() - Equality that names the row of a table when it fails. */
#define EXPECT_INT(row, got, want)                                                                                     \
	do {                                                                                                           \
		long long got_ = (long long)(got), want_ = (long long)(want);                                          \
		if (got_ != want_)                                                                                     \
			fail_msg("%s: %s is %lld, not %lld", (row), #got, got_, want_);                                \
	} while (0)
