/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - One clock for deadlines and durations */
#pragma once

#include <time.h>

#include "base/macros.h"

/* clock_ns() - CLOCK_BOOTTIME in nanoseconds: monotonic, and it goes on while the machine sleeps, as deadlines must. */
static inline uint64_t clock_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_BOOTTIME, &t); /* cannot fail: the clock exists since 2.6.39 */
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}
