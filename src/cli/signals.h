/* SPDX-License-Identifier: Apache-2.0 */
/* signals.h - Signals to `carrel run` as something to poll for */
#pragma once

#include "base/macros.h"

enum signals_for {
	SIGNALS_PLAIN,	  /* those that end the run */
	SIGNALS_TERMINAL, /* and those of a terminal: resize, stop, continue */
};

/**
 * signals_open() - Block the signals and get a descriptor that polls readable when one came
 *
 * A signal that is ignored here (nohup, a background job) stays ignored. Return: descriptor; negative errno
 */
must_check int signals_open(enum signals_for what);

/* signals_next() - The next signal. Return: its number; 0 if there is none. */
must_check int signals_next(int fd);

/* signals_fatal() - True if @sig ends the run. */
bool signals_fatal(int sig);

/* signals_default() - Let every signal do again what it does to a plain program. For when nothing is left to clean up. */
void signals_default(void);

/* signals_die() - End this process by @sig, as whoever sent it expects. */
_Noreturn void signals_die(int sig);
