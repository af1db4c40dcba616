/* SPDX-License-Identifier: Apache-2.0 */
/* idle.c - Hold a number of idle sandboxes, so that what one takes can be read from /proc
 *
 * Theory of operation. Says "empty" before the first sandbox exists, starts them when a line arrives on stdin, says "ready", and destroys them
 * at the next line or at end of file. It is a subreaper, so that every process of a sandbox, however it came to be, is found below it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include <carrel.h>

#define SANDBOXES_MAX 4096

static void check(int r, const char *what, const struct carrel_error *e)
{
	if (r >= 0)
		return;
	fprintf(stderr, "idle: %s: %s (%s) %s\n", what, e->message, strerror(-r), e->detail);
	exit(1);
}

int main(int argc, char **argv)
{
	static struct carrel_sandbox *sandbox[SANDBOXES_MAX];
	struct carrel_error e = { 0 };
	struct carrel_spec *spec = carrel_spec_new();
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 50;
	char line[16];

	if (!spec || count > SANDBOXES_MAX || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return 2;
	puts("empty");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 0;
	for (uint64_t i = 0; i < count; i++)
		check(carrel_start(spec, &sandbox[i], &e), "start a sandbox", &e);
	puts("ready");
	fflush(stdout);
	(void)fgets(line, sizeof(line), stdin); /* a line or the end of file: both mean go */
	for (uint64_t i = 0; i < count; i++) {
		check(carrel_destroy(sandbox[i], &e), "destroy a sandbox", &e);
		carrel_sandbox_free(sandbox[i]);
	}
	carrel_spec_free(spec);
	return 0;
}
