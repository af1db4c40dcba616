/* SPDX-License-Identifier: Apache-2.0 */
/* result.h - How a run ended: exit status, line, JSON, receipt */
#pragma once

#include "carrel.h"
#include "cli/json.h"

/**
 * struct report - What is known of a run at its end
 * @id:      Of the sandbox
 * @program: First word of the command
 * @exec:    For reading the spools; NULL if the output was not collected
 * @stats:   Of the sandbox just before it was destroyed; every field UINT64_MAX if it was not asked
 * @receipt: May be NULL
 */
struct report {
	const char *id;
	const char *program;
	struct carrel_exec *exec;
	struct carrel_result result;
	struct carrel_stats stats;
	struct carrel_receipt *receipt;
};

/* result_status() - Exit status of `carrel run`. */
int result_status(const struct carrel_result *result);

/* result_note() - The line on stderr about a limit that bit or a tree that was killed; silent for an ordinary end. */
void result_note(const struct report *report);

/* result_receipt() - The receipt as a table on stderr. */
void result_receipt(const struct carrel_receipt *receipt);

/* result_json() - The whole result as one JSON object on stdout. Return: 0; negative errno. */
must_check int result_json(const struct report *report, struct carrel_error *e);

/* result_json_failure() - A failure of Carrel's own as one JSON object on stdout; it is on stderr as well, so that it cannot be lost. */
void result_json_failure(const struct carrel_error *failure);
