/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c - A further exec in a live sandbox beside a plain posix_spawn, timed in one process
 *
 * Theory of operation. One sandbox with the defaults is started through include/carrel.h, as any program would. On request the same program is
 * run in it and outside of it, one pair after the other, which of the two first by chance, so that both meet the same caches and the
 * same neighbours. An exec counts from carrel_exec() until carrel_exec_wait() has its result.
 *
 * stdin takes lines "PAIRS PAUSE_US"; the answer is lines "carrel NANOSECONDS" and "spawn NANOSECONDS", then "all NANOSECONDS". The pause
 * stands before each half of a pair. */
#include <errno.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <carrel.h>

#define NS_PER_S 1000000000LL
#define NS_PER_US 1000LL

extern char **environ;

static const char *const program[] = { "/bin/true", NULL };

static int64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void check(int r, const char *what, const struct carrel_error *e)
{
	if (r >= 0)
		return;
	fprintf(stderr, "exec: %s: %s (%s) %s\n", what, e->message, strerror(-r), e->detail);
	exit(1);
}

static void run_inside(struct carrel_sandbox *sandbox, const struct carrel_command *command)
{
	struct carrel_error e = { 0 };
	struct carrel_exec *exec = NULL;
	struct carrel_result result;
	int64_t start_ns = now_ns();

	check(carrel_exec(sandbox, command, &exec, &e), "run in the sandbox", &e);
	check(carrel_exec_wait(exec, -1, &result, &e), "wait for the exec", &e);
	printf("carrel %" PRId64 "\n", now_ns() - start_ns);
	carrel_exec_free(exec);
	if (result.outcome != CARREL_EXITED || result.exit_code != 0) {
		fprintf(stderr, "exec: the program %s with %d\n", carrel_outcome_name(result.outcome),
			result.exit_code);
		exit(1);
	}
}

static void run_outside(void)
{
	int64_t start_ns = now_ns();
	pid_t pid;
	int status;

	/* posix_spawn() takes an argv of plain pointers and leaves the strings alone. */
	if (posix_spawn(&pid, program[0], NULL, NULL, (char *const *)(uintptr_t)program, environ) != 0 ||
	    waitpid(pid, &status, 0) < 0 || status != 0) {
		fprintf(stderr, "exec: spawn of '%s' failed\n", program[0]);
		exit(1);
	}
	printf("spawn %" PRId64 "\n", now_ns() - start_ns);
}

static void serve(struct carrel_sandbox *sandbox, const struct carrel_command *command, uint64_t pairs,
		  uint64_t pause_us)
{
	const struct timespec pause = { (time_t)(pause_us / 1000000), (long)(pause_us % 1000000) * NS_PER_US };
	int64_t start_ns = now_ns();

	for (uint64_t i = 0; i < 2 * pairs; i++) {
		static int inside_first;

		if (i % 2 == 0)
			inside_first = (int)(random() & 1);
		if (pause_us > 0)
			nanosleep(&pause, NULL);
		if ((i % 2 == 0) == inside_first)
			run_inside(sandbox, command);
		else
			run_outside();
	}
	printf("all %" PRId64 "\n", now_ns() - start_ns);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct carrel_error e = { 0 };
	struct carrel_spec *spec = carrel_spec_new();
	struct carrel_command *command = carrel_command_new(program);
	struct carrel_sandbox *sandbox = NULL;
	char line[64];

	srandom(argc > 1 ? (unsigned)strtoull(argv[1], NULL, 10) : 1);
	if (!spec || !command)
		return 1;
	check(carrel_command_set(command, "output", "null", &e), "set output", &e);
	check(carrel_start(spec, &sandbox, &e), "start a sandbox", &e);
	while (fgets(line, sizeof(line), stdin)) {
		char *end;
		uint64_t pairs = strtoull(line, &end, 10);

		serve(sandbox, command, pairs, strtoull(end, NULL, 10));
	}
	check(carrel_destroy(sandbox, &e), "destroy the sandbox", &e);
	carrel_sandbox_free(sandbox);
	carrel_command_free(command);
	carrel_spec_free(spec);
	return 0;
}
