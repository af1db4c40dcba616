/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - Command lines read against a const table
 *
 * Theory of operation. Pure: it reads argv and a table and does nothing else, so that the caller may walk the same words twice
 * (`run` does: settings of the command line itself first, then those of the engine). It allocates nothing: a word in argv is its own
 * storage. getopt_long() was not taken: it reorders words or stops at them depending on the environment, keeps its state in
 * globals, prints its own messages, and knows neither the nearest name nor a switch's "=false". */
#include "cli/options.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* Bytes of a name that are compared: the longest option has 14. It bounds the matrix below. */
#define NAME_MAX_BYTES 32
/* Bytes of a user's word in a message: the message as a whole is one terminal line. */
#define WORD_SHOWN 64

/**
 * struct foreign - What docker and podman have and Carrel has not, with the reason
 */
struct foreign {
	const char *name;
	char letter;
	const char *remedy;
};

static const struct foreign foreign[] = {
	{ "detach", 'd', "carrel runs in the foreground; put '&' behind the command" },
	{ "publish", 'p', "a sandbox has no network of its own to publish; use --network host" },
	{ "privileged", 0, "there is no such mode; --device and --nested-userns open single things" },
	{ "cap-add", 0, "capabilities are never added; root inside already has those that are harmless" },
	{ "cap-drop", 0, "every dangerous capability is dropped already; leave it out" },
	{ "security-opt", 0, "every layer is always on; leave it out" },
	{ "entrypoint", 0, "give the program as the COMMAND" },
	{ "name", 0, "sandboxes have an id of their own; leave it out" },
};

size_t text_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t d[NAME_MAX_BYTES + 1][NAME_MAX_BYTES + 1];

	if (a_len > NAME_MAX_BYTES || b_len > NAME_MAX_BYTES)
		return SIZE_MAX;
	for (size_t i = 0; i <= a_len; i++)
		d[i][0] = i;
	for (size_t j = 0; j <= b_len; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		for (size_t j = 1; j <= b_len; j++) {
			size_t best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			best = MIN(best, d[i - 1][j] + 1);
			best = MIN(best, d[i][j - 1] + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = MIN(best, d[i - 2][j - 2] + 1);
			d[i][j] = best;
		}
	}
	return d[a_len][b_len];
}

const char *options_nearest(const struct option *table, const char *name, size_t len)
{
	/* One mistake in three letters is a typing error; more is another word. */
	size_t best = len / 3 + 2;
	const char *nearest = NULL;

	for (const struct option *t = table; t->name; t++) {
		size_t d = text_distance(name, len, t->name, strlen(t->name));

		if (!(t->flags & OPTION_HIDDEN) && d < best) {
			best = d;
			nearest = t->name;
		}
	}
	return nearest;
}

static bool is_name(const struct option *t, const char *name, size_t len)
{
	return strncmp(t->name, name, len) == 0 && t->name[len] == '\0';
}

static const struct option *find_long(const struct option *table, const char *name, size_t len)
{
	for (const struct option *t = table; t->name; t++)
		if (is_name(t, name, len))
			return t;
	return NULL;
}

static const struct option *find_letter(const struct option *table, char letter)
{
	for (const struct option *t = table; t->name; t++)
		if (letter && t->letter == letter)
			return t;
	return NULL;
}

static const char *foreign_remedy(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		if (strncmp(foreign[i].name, name, len) == 0 && foreign[i].name[len] == '\0')
			return foreign[i].remedy;
	return NULL;
}

static int unknown_long(const struct options *o, const char *name, size_t len, struct err *e)
{
	const char *nearest = options_nearest(o->table, name, len);
	const char *remedy = foreign_remedy(name, len);
	int r;

	r = err_set(e, ERR_INVALID, "read option '--%.*s': %s has no such option", (int)MIN(len, (size_t)WORD_SHOWN),
		    name, o->command);
	if (remedy)
		return err_hint(e, r, "%s", remedy);
	if (nearest)
		return err_hint(e, r, "did you mean --%s? (carrel %s --help lists all)", nearest, o->command);
	return err_hint(e, r, "carrel %s --help lists all options", o->command);
}

static int unknown_letter(const struct options *o, const char *letters, struct err *e)
{
	int r = err_set(e, ERR_INVALID, "read option '-%.1s': %s has no such option", letters, o->command);

	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		if (foreign[i].letter == letters[0])
			return err_hint(e, r, "%s", foreign[i].remedy);
	return err_hint(e, r, "carrel %s --help lists all options", o->command);
}

static int missing_argument(const struct options *o, const struct option *t, struct err *e)
{
	int r = err_set(e, ERR_INVALID, "read option '--%s': its argument %s is missing", t->name, t->arg);

	return err_hint(e, r, "write --%s %s (carrel %s --help explains it)", t->name, t->arg, o->command);
}

/* --switch=VALUE, as docker takes it */
static int switch_value(const struct option *t, const char *text, const char **ret, struct err *e)
{
	int r;

	if (str_eq(text, "true") || str_eq(text, "1")) {
		*ret = "true";
		return 0;
	}
	if (str_eq(text, "false") || str_eq(text, "0")) {
		*ret = "false";
		return 0;
	}
	r = err_set(e, ERR_INVALID, "read option '--%s': '%.*s' is neither true nor false", t->name, WORD_SHOWN, text);
	return err_hint(e, r, "write --%s alone, or --%s=false", t->name, t->name);
}

static int next_long(struct options *o, const char *word, struct option_use *ret, struct err *e)
{
	const char *name = word + 2;
	const char *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	const struct option *t = find_long(o->table, name, len);
	const char *value = equals ? equals + 1 : NULL;
	int r;

	if (!t)
		return unknown_long(o, name, len, e);
	if (!t->arg && value) {
		r = switch_value(t, value, &value, e);
		if (r < 0)
			return r;
	} else if (!t->arg) {
		value = "true";
	} else if (!value) {
		value = o->argv[o->next];
		if (!value)
			return missing_argument(o, t, e);
		o->next++;
	}
	*ret = (struct option_use){ .option = t, .value = value };
	return 1;
}

static int next_letter(struct options *o, struct option_use *ret, struct err *e)
{
	const struct option *t = find_letter(o->table, o->letters[0]);
	const char *value = "true";

	if (!t)
		return unknown_letter(o, o->letters, e);
	o->letters = o->letters[1] ? o->letters + 1 : NULL;
	if (t->arg) {
		value = o->letters ? o->letters : o->argv[o->next];
		if (!value)
			return missing_argument(o, t, e);
		if (!o->letters)
			o->next++;
		o->letters = NULL;
	}
	*ret = (struct option_use){ .option = t, .value = value };
	return 1;
}

int options_next(struct options *o, struct option_use *ret, struct err *e)
{
	const char *word;

	if (o->letters)
		return next_letter(o, ret, e);
	word = o->argv[o->next];
	/* "-" alone is an operand, as everywhere */
	if (!word || word[0] != '-' || word[1] == '\0')
		return 0;
	o->next++;
	if (word[1] != '-') {
		o->letters = word + 1;
		return next_letter(o, ret, e);
	}
	if (word[2] == '\0')
		return 0;
	return next_long(o, word, ret, e);
}
