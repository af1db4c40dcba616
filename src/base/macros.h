/* SPDX-License-Identifier: Apache-2.0 */
/* macros.h - Ownership, attributes and arithmetic that every other file uses */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define must_check __attribute__((warn_unused_result))
#define printf_like(fmt, args) __attribute__((format(printf, fmt, args)))

/* ignored() - A result that is dropped on purpose, with its reason beside it; gcc does not take (void) for must_check. */
#define ignored(call)                                                                              \
	do {                                                                                       \
		__auto_type ignored_ = (call);                                                     \
		(void)ignored_;                                                                    \
	} while (0)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)
#define NSEC_PER_SEC UINT64_C(1000000000)
#define NSEC_PER_MSEC UINT64_C(1000000)

/* auto_(f) - Call `f(&variable)` when the variable leaves its scope. The variable needs an initialiser. */
#define auto_(f) __attribute__((cleanup(f)))

static inline void free_p(void *p)
{
	free(*(void **)p);
}

/* close() is never retried: on Linux the descriptor is gone whatever close() answers. */
static inline void close_p(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

#define auto_free auto_(free_p)
#define auto_close auto_(close_p)

/* take_ptr(), take_fd() - Hand over: the value is returned and the variable no longer owns it. */
#define take_ptr(p)                                                                                \
	({                                                                                         \
		__auto_type take_ = (p);                                                           \
		(p) = NULL;                                                                        \
		take_;                                                                             \
	})
#define take_fd(fd)                                                                                \
	({                                                                                         \
		int take_ = (fd);                                                                  \
		(fd) = -EBADF;                                                                     \
		take_;                                                                             \
	})
