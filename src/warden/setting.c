/* SPDX-License-Identifier: Apache-2.0 */
/* setting.c - Keys and values: one table, one error for what is not in it
 *
 * Theory of operation. Specs and commands are set by text, so that the command line, a configuration file and a remote request share one
 * parser, one set of limits and one wording of each error. Runs in the caller's process on input that nobody has checked yet. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "warden/spec.h"

/* Longest key that is compared; those of the tables have at most 14 bytes. */
#define KEY_MAX 32

/* Edit distance of two short words (one row of the Wagner-Fischer table at a time). */
static size_t distance(const char *a, const char *b)
{
	size_t row[KEY_MAX + 1], n = strlen(b);

	if (n > KEY_MAX)
		return KEY_MAX;
	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t cost = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			row[j] = MIN(cost, MIN(row[j], row[j - 1]) + 1);
		}
	}
	return row[n];
}

/* The key that @key most looks like. */
static const char *nearest(const struct setting *table, size_t rows, const char *key)
{
	size_t best = 0, best_distance = SIZE_MAX;

	for (size_t i = 0; i < rows; i++) {
		size_t d = strlen(key) <= KEY_MAX ? distance(key, table[i].key) : KEY_MAX;

		if (d < best_distance) {
			best = i;
			best_distance = d;
		}
	}
	return table[best].key;
}

int setting_apply(const struct setting *table, size_t rows, void *object, const char *key, const char *value, struct err *e)
{
	for (size_t i = 0; i < rows; i++)
		if (str_eq(table[i].key, key))
			return table[i].set(object, value, e);
	return err_hint(e, err_set(e, ERR_INVALID, "set '%.64s': no such setting", key), "the nearest is '%s'",
			nearest(table, rows, key));
}

int setting_flag(const char *key, const char *value, unsigned *ret, struct err *e)
{
	if (!str_eq(value, "true") && !str_eq(value, "false"))
		return err_set(e, ERR_INVALID, "set %s to '%.64s': neither true nor false", key, value);
	*ret = str_eq(value, "true");
	return 0;
}

int setting_size(const char *key, const char *value, uint64_t min, uint64_t *ret, struct err *e)
{
	char text[24];
	uint64_t v;
	int r = str_to_size(value, &v);

	if (r < 0) {
		r = err_set(e, ERR_INVALID, "set %s to '%.64s': %s", key, value, r == -ERANGE ? "too large" : "not a size");
		return err_hint(e, r, "write bytes with k, m or g behind them, e.g. 512m");
	}
	if (v < min) {
		r = err_set(e, ERR_INVALID, "set %s to '%.64s': too small", key, value);
		return err_hint(e, r, "the least is %s", str_format_size(min, text, sizeof(text)));
	}
	*ret = v;
	return 0;
}

int setting_word(const char *key, const char *value, const char *const *words, size_t n, unsigned *ret, struct err *e)
{
	char all[128] = "";
	size_t len = 0;
	int r;

	for (size_t i = 0; i < n; i++) {
		if (str_eq(words[i], value)) {
			*ret = (unsigned)i;
			return 0;
		}
		if (len < sizeof(all))
			len += (size_t)snprintf(all + len, sizeof(all) - len, "%s%s", i ? ", " : "", words[i]);
	}
	r = err_set(e, ERR_INVALID, "set %s to '%.64s': no such choice", key, value);
	return err_hint(e, r, "choose one of: %s", all);
}

int setting_text(char **slot, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	free(*slot);
	*slot = copy;
	return 0;
}
