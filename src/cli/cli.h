/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - The commands of `carrel` */
#pragma once

#include "cli/options.h"

/**
 * struct command - One command
 * @name:    Word behind `carrel`
 * @usage:   What follows the name, with a blank before it, e.g. " [OPTIONS] [--] COMMAND [ARG...]"
 * @summary: One line for `carrel help`
 * @about:   Paragraph at the top of its help, lines of at most 80 columns
 * @options: Table, ended by an empty row
 * @groups:  Headings of its help, indexed by option.group
 * @notes:   Text below the options, may be NULL
 * @main:    Runs it with the words behind its name. Return: exit status
 */
struct command {
	const char *name;
	const char *usage;
	const char *summary;
	const char *about;
	const struct option *options;
	const char *const *groups;
	const char *notes;
	int (*main)(char *const argv[]);
};

extern const struct command command_run;
extern const struct command command_doctor;
extern const struct command command_version;
extern const struct command command_help;

/* commands[] - Every command in the order of `carrel help`, ended by NULL. */
extern const struct command *const commands[];

/* command_find() - By name; NULL if there is none. */
const struct command *command_find(const char *name);

/* command_unknown() - Say that there is no such command, and which one is near. Return: exit status. */
int command_unknown(const char *name);

/* help_command() - Print the help of one command on stdout. Return: exit status. */
int help_command(const struct command *c);

/* help_overview() - Print what `carrel help` prints. Return: exit status. */
int help_overview(void);
