/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_str.c - Any text as a number, a size, a duration, a fraction; any bytes as UTF-8
 *
 * Theory of operation. Checked are the promises of base/str.h that hold for every text: the output is written on success and only then, it
 * is within the documented range, and what was printed reads back. */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#define UNTOUCHED UINT64_C(0x5a5a5a5a5a5a5a5a)

/* @max: largest value that the parser may answer */
static void try_number(int (*parse)(const char *, uint64_t *), const char *text, uint64_t max)
{
	uint64_t v = UNTOUCHED;
	int r = parse(text, &v);

	MUST(r == 0 || r == -EINVAL || r == -ERANGE);
	MUST(r == 0 ? v <= max : v == UNTOUCHED);
	MUST(r < 0 || (text[0] >= '0' && text[0] <= '9'));
}

static void try_milli(const char *text)
{
	uint32_t v = 77;
	int r = str_to_milli(text, &v);

	MUST(r == 0 || r == -EINVAL || r == -ERANGE);
	MUST(r == 0 || v == 77);
}

/* Every number that is printed as a size is read as a size, at most a tenth smaller. */
static void try_format(const char *text)
{
	uint64_t bytes, back;
	char buf[24];

	if (str_to_size(text, &bytes) < 0)
		return;
	MUST(str_format_size(bytes, buf, sizeof(buf)) == buf);
	MUST(str_to_size(buf, &back) == 0);
	MUST(back <= bytes && bytes - back <= bytes / 10);
}

/* A text and its first half agree with the whole: well-formed pieces make a well-formed whole. */
static void try_utf8(const uint8_t *data, size_t size)
{
	bool whole = str_is_utf8(data, size);
	bool halves = str_is_utf8(data, size / 2) && str_is_utf8(data + size / 2, size - size / 2);

	MUST(whole || !halves);
	for (size_t i = 0; i < size && whole; i++)
		MUST(data[i] != 0xc0 && data[i] != 0xc1 && data[i] < 0xf5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = malloc(size + 1);

	if (!text)
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	try_number(str_to_u64, text, UINT64_MAX);
	try_number(str_to_size, text, INT64_MAX);
	try_number(str_to_duration, text, UINT64_C(3650) * 86400 * NSEC_PER_SEC);
	try_milli(text);
	try_format(text);
	try_utf8(data, size);
	return 0;
}
