/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - The one function of a fuzz target; libFuzzer calls it, and so does replay.c */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* LLVMFuzzerTestOneInput() - Run the target on some bytes. It aborts if an invariant is broken. Return: 0. */
__attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* MUST() - An invariant of a target; unlike assert() it is never compiled out. */
#define MUST(cond)                                                                                                     \
	do {                                                                                                           \
		if (!(cond))                                                                                           \
			__builtin_trap();                                                                              \
	} while (0)
