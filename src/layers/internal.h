/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - What the files of this directory share */
#pragma once

#include <sys/types.h>

#include "base/err.h"

/* FNV-1a, 64 bits (RFC draft-eastlake-fnv). It names cache entries of our own store from stat data that no guest
 * chooses; nothing rests on it being hard to collide. */
#define HASH_INIT UINT64_C(0xcbf29ce484222325)
#define HASH_PRIME UINT64_C(0x100000001b3)

static inline uint64_t hash_bytes(uint64_t h, const void *p, size_t len)
{
	const unsigned char *b = p;

	for (size_t i = 0; i < len; i++)
		h = (h ^ b[i]) * HASH_PRIME;
	return h;
}

/* hash_word() - One step for eight bytes: a word at a time is enough for stat data, and it is on the fast path. */
static inline uint64_t hash_word(uint64_t h, uint64_t v)
{
	h = (h ^ v) * HASH_PRIME;
	return h ^ (h >> 32);
}

/* A key is 16 hexadecimal digits. */
#define KEY_SIZE 17 /* bytes with NUL */

/**
 * dir_make_open() - Open a directory of ours below another, making it if needed
 * @mode: Permission bits of a new one
 *
 * Return: descriptor; negative errno, -ENOTDIR also for a symbolic link
 */
must_check int dir_make_open(int parent, const char *name, mode_t mode);
