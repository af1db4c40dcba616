/* SPDX-License-Identifier: Apache-2.0 */
/* banned.h - Calls that are wrong often enough to be a compile error (given to every file by -include) */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* glibc makes these macros when it checks buffers under clang, which does not poison a macro. */
#undef sprintf
#undef vsprintf

/* Each has a bounded or checked replacement: buf_printf(), snprintf(), str_to_u64(), gmtime_r(). */
#pragma GCC poison strcpy strcat sprintf vsprintf strtok gmtime localtime atoi atol strtol mktemp tmpnam
