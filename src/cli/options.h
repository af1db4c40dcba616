/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - Command lines read against a const table */
#pragma once

#include "base/err.h"
#include "base/macros.h"

/** enum option_sink - Who takes an option's value */
enum option_sink {
	SINK_CLI,     /* the command line itself: struct option.id says what it is */
	SINK_SPEC,    /* carrel_spec_set(key) */
	SINK_COMMAND, /* carrel_command_set(key) */
};

enum option_flags {
	OPTION_REPEAT = 1 << 0, /* each use adds; otherwise the last one wins, as docker has it */
	OPTION_HIDDEN = 1 << 1, /* another spelling, not in the help */
	OPTION_SIZE = 1 << 2,	/* SIZE in, plain bytes out: for keys that take numbers only */
	OPTION_GRACE = 1 << 3,	/* N in, "N:N+1" out: a hard limit behind the soft one, so that the soft one's signal tells why */
};

/**
 * struct option - One row: how an option is spelled, who takes it, and what the help says
 * @name:   Long name without dashes; NULL ends the table
 * @letter: Short name, 0 for none
 * @flags:  enum option_flags
 * @sink:   enum option_sink
 * @id:     For SINK_CLI, what it is to its command
 * @group:  Index of the heading in the help
 * @arg:    Name of its argument in the help; NULL for a switch
 * @key:    For the other sinks, the key that it sets
 * @prefix: Put before the value, e.g. "cpu=" for a ulimit; NULL for none
 * @help:   One line, at most OPTION_HELP_MAX bytes, so that the help fits a terminal of 80 columns
 */
struct option {
	const char *name;
	char letter;
	uint8_t flags;
	uint8_t sink;
	uint8_t id;
	uint8_t group;
	const char *arg;
	const char *key;
	const char *prefix;
	const char *help;
};

#define OPTION_HELP_COLUMN 30 /* columns before a help line */
#define OPTION_HELP_MAX 50    /* columns: 80 of a terminal less OPTION_HELP_COLUMN */

/**
 * struct options - A walk over a command line
 * @table:   Known options
 * @command: Name for messages, e.g. "run"
 * @argv:    NULL-terminated, without the program's and the command's name
 * @next:    Index of the next word; once options_next() returned 0, of the first operand
 * @letters: Rest of a word of short switches ("t" of "-it"), else NULL
 */
struct options {
	const struct option *table;
	const char *command;
	char *const *argv;
	int next;
	const char *letters;
};

#define OPTIONS_INIT(options_table, command_name, words)                                                               \
	((struct options){ .table = (options_table), .command = (command_name), .argv = (words) })

/** struct option_use - One option as it was given */
struct option_use {
	const struct option *option;
	const char *value; /* the argument; "true" or "false" for a switch. Borrowed from argv or static */
};

/**
 * options_next() - The next option
 * @o:   Walk
 * @ret: The option and its value
 * @e:   Reason on failure, with the nearest name for an unknown option
 *
 * Takes --name value, --name=value, -n value, -nvalue, -ab for two switches, and --switch=true|false. "--" and the first
 * operand end the walk: what follows belongs to the command that is being run.
 * Return: 1 with an option; 0 at the end; -EINVAL
 */
must_check int options_next(struct options *o, struct option_use *ret, struct err *e);

/* options_nearest() - The long name that a mistyped one probably means, or NULL. */
const char *options_nearest(const struct option *table, const char *name, size_t len);

/* text_distance() - Edit distance (insert, delete, replace, swap neighbours) of two short texts; SIZE_MAX beyond 32 bytes. */
size_t text_distance(const char *a, size_t a_len, const char *b, size_t b_len);
