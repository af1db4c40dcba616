/* SPDX-License-Identifier: Apache-2.0 */
/* lib_client.h - Words for the cases of lib_client: check, start, run, expect
 *
 * The first thing that is not as it must be ends the program with 1 and a line that says where. */
#pragma once

#include <carrel.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define WAIT_MS 20000 /* far above what anything here takes, below the patience of the suite */

/* For cases without arguments */
#define UNUSED __attribute__((unused))

/** struct lib_case - `lib_client NAME [ARG...]` */
struct lib_case {
	const char *name;
	void (*run)(char **args);
	int num_args;
};

extern const struct lib_case sandbox_cases[], process_cases[]; /* ended by one without a name */

extern struct carrel_error err; /* of the last call; cases with threads have their own */

#define check(cond) check_at(__FILE__, __LINE__, !!(cond), #cond)
#define ok(call) ok_at(__FILE__, __LINE__, (long)(call), #call, &err)
#define ok_with(call, e) ok_at(__FILE__, __LINE__, (long)(call), #call, e)

/* A failure with the result, the kind and a word that a reader needs. */
#define fails(call, r, code, word) fails_at(__FILE__, __LINE__, (long)(call), r, code, word, #call)

void check_at(const char *file, int line, bool good, const char *text);
long ok_at(const char *file, int line, long r, const char *text, const struct carrel_error *e);
void fails_at(const char *file, int line, long got, long want, int code, const char *word, const char *text);

double now_ms(void);

/* Settings are "key=value" texts. */
#define START(...) start((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })
#define COMMAND(line, ...) command(line, (const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })
#define EXEC(sb, line, ...) exec_of(sb, COMMAND(line __VA_OPT__(, ) __VA_ARGS__))

struct carrel_sandbox *start(const char *const *settings);
struct carrel_command *command(const char *line, const char *const *settings);

/* exec_of() - Consumes @c. */
struct carrel_exec *exec_of(struct carrel_sandbox *sb, struct carrel_command *c);

struct carrel_result wait_for(struct carrel_exec *x);

/* run_ok() - Run a line of shell that must succeed. */
void run_ok(struct carrel_sandbox *sb, const char *line);

/* text_of() - All of a stream from @offset on, as a text that the next call overwrites. */
const char *text_of(struct carrel_exec *x, int stream, uint64_t offset);

/* expect_text() - All of its stdout is this. expect_soon() - It comes to hold this. */
void expect_text(struct carrel_exec *x, const char *want);
void expect_soon(struct carrel_exec *x, const char *want);

/* open_fds() - Descriptors that this process has. */
size_t open_fds(void);
