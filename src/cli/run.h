/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - What the files of `carrel run` share */
#pragma once

#include "carrel.h"
#include "cli/options.h"

/** enum run_option - Options that the command line itself takes */
enum run_option {
	/* Switches: bits of struct run.switches */
	RUN_HELP,
	RUN_DRY_RUN,
	RUN_INTERACTIVE,
	RUN_JSON,
	RUN_QUIET,
	RUN_RECEIPT,
	RUN_RM,
	RUN_TTY,
	RUN_NUM_SWITCHES,
	/* With a value */
	RUN_ENV = RUN_NUM_SWITCHES,
	RUN_ENV_FILE,
	RUN_IMAGE,
	RUN_OUTPUT_LIMIT,
	RUN_USER,
	RUN_ROOTFS,
};

/**
 * struct run - One `carrel run`
 * @switches:  Bits of enum run_option
 * @program:   First word of the command, for messages; borrowed from argv
 * @image: As given with --image; NULL if it was not
 * @output_limit: As given; NULL if it was not
 * @spec, @command: Owned
 */
struct run {
	unsigned switches;
	const char *program;
	const char *image;
	const char *output_limit;
	struct carrel_spec *spec;
	struct carrel_command *command;
};

static inline bool run_has(const struct run *run, enum run_option id)
{
	return run->switches & 1u << id;
}

/* run_options[], run_groups[], run_notes - Table, headings and closing text of the help (run_options.c) */
extern const struct option run_options[];
extern const char *const run_groups[];
extern const char run_notes[];

/**
 * run_read() - Read the words behind `carrel run`
 * @run: Zeroed; filled as far as the words could be read, so that RUN_JSON is known when a failure is reported
 *
 * Return: 0; 1 if RUN_HELP was given; negative errno
 */
must_check int run_read(struct run *run, char *const argv[], struct carrel_error *e);
void run_done(struct run *run);
