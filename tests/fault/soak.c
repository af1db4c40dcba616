/* SPDX-License-Identifier: Apache-2.0 */
/* soak.c - Start, use and destroy sandboxes in one process, again and again
 *
 *     soak ROUNDS        one after another
 *     soak ROUNDS LIVE   with so many alive at once
 *
 * Prints descriptors, mappings and resident memory of this process after the first rounds, when every lazy thing has been made, and at the end,
 * as "before FDS MAPS KIB" and "after FDS MAPS KIB". Ends with 1 at the first failure, said on stderr. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "carrel.h"

#define WARM_UP 20
#define LIVE_MAX 512

static void fail(const char *what, const struct carrel_error *e)
{
	(void)fprintf(stderr, "soak: %s: %s (%s)\n", what, e->message, e->detail);
	exit(1);
}

static unsigned count_dir(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		(void)closedir(dir);
	return n;
}

static void measure(const char *when)
{
	unsigned long size = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f || fscanf(f, "%lu %lu", &size, &resident) != 2)
		exit(1);
	(void)fclose(f);
	(void)printf("%s %u %u %lu\n", when, count_dir("/proc/self/fd"), count_dir("/proc/self/map_files"),
		     resident * (unsigned long)sysconf(_SC_PAGESIZE) / 1024);
}

static struct carrel_sandbox *start(struct carrel_spec *spec)
{
	struct carrel_sandbox *sandbox;
	struct carrel_error e;

	if (carrel_start(spec, &sandbox, &e) < 0)
		fail("start", &e);
	return sandbox;
}

/* A command whose output comes back whole. */
static void use(struct carrel_sandbox *sandbox)
{
	static const char *const argv[] = { "/bin/echo", "hello", NULL };
	struct carrel_command *command = carrel_command_new(argv);
	struct carrel_result result;
	struct carrel_exec *exec;
	struct carrel_error e;
	char text[16];
	ssize_t n;

	if (!command || carrel_exec(sandbox, command, &exec, &e) < 0)
		fail("exec", &e);
	if (carrel_exec_wait(exec, 30000, &result, &e) < 0)
		fail("wait", &e);
	n = carrel_exec_read(exec, 1, 0, text, sizeof(text), 30000, &e);
	if (n < 0)
		fail("read", &e);
	if (result.outcome != CARREL_EXITED || result.exit_code != 0 || n != 6 || memcmp(text, "hello\n", 6) != 0) {
		(void)fprintf(stderr, "soak: outcome %d, exit code %d, %zd bytes\n", (int)result.outcome, result.exit_code, n);
		exit(1);
	}
	carrel_exec_free(exec);
	carrel_command_free(command);
}

static void end(struct carrel_sandbox *sandbox)
{
	struct carrel_error e;

	if (carrel_destroy(sandbox, &e) < 0)
		fail("destroy", &e);
	carrel_sandbox_free(sandbox);
}

static void round_of(struct carrel_spec *spec, unsigned live)
{
	struct carrel_sandbox *all[LIVE_MAX];

	for (unsigned i = 0; i < live; i++)
		all[i] = start(spec);
	for (unsigned i = 0; i < live; i++)
		use(all[i]);
	for (unsigned i = 0; i < live; i++)
		end(all[i]);
}

int main(int argc, char *argv[])
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	unsigned live = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
	struct carrel_spec *spec = carrel_spec_new();

	if (!rounds || !live || live > LIVE_MAX || !spec)
		return 2;
	for (unsigned i = 0; i < (live > 1 ? 1 : WARM_UP); i++)
		round_of(spec, live);
	measure("before");
	for (unsigned i = 0; i < rounds; i++)
		round_of(spec, live);
	measure("after");
	carrel_spec_free(spec);
	return 0;
}
