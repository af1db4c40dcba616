/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - From the start of a command to its end: events, signals, and bytes in between */
#pragma once

#include "carrel.h"
#include "base/macros.h"
#include "cli/tty.h"

/** enum session_output - Who moves the command's output */
enum session_output {
	OUTPUT_NONE,	 /* nobody here: it has our stdout and stderr, or it is read after the end */
	OUTPUT_FOLLOW,	 /* from the spools to our stdout and stderr as it comes */
	OUTPUT_TERMINAL, /* from its terminal to ours */
};

/* One stream that is followed */
struct follow {
	uint64_t offset;
	int done; /* the command has ended, and everything it wrote here was read */
	struct pump pump;
};

/**
 * struct session - One exec being waited for
 * @sandbox, @exec: Borrowed
 * @signals: Descriptor of signals_open()
 * @output:  Who moves the output
 * @ended:   1 once @result is valid
 * @follow:  For OUTPUT_FOLLOW: stdout and stderr
 * @tty:     For OUTPUT_TERMINAL; opened and closed by the caller
 */
struct session {
	struct carrel_sandbox *sandbox;
	struct carrel_exec *exec;
	int signals;
	enum session_output output;
	int ended;
	struct carrel_result result;
	struct follow follow[2];
	struct tty tty;
};

/**
 * session_run() - Until the command has ended and its output is written
 * Return: 0 with @s->result; a signal number if this process shall end by that signal; negative errno
 */
must_check int session_run(struct session *s, struct carrel_error *e);
