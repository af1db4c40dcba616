/* SPDX-License-Identifier: Apache-2.0 */
/* lasting.c - A sandbox that would outlive us: started, used, found again, destroyed
 *
 * For inject.c: small and static, so that nearly all of its system calls are those of libcarrel. Ends as `carrel run` does: 125 and one line
 * that begins with "carrel: " for any failure; and whatever was started is destroyed. */
#include <stdio.h>

#include "carrel.h"

static int failed(const struct carrel_error *e)
{
	(void)fprintf(stderr, "carrel: %s\n", e->message);
	return 125;
}

static int use(struct carrel_sandbox *sandbox, struct carrel_error *e)
{
	static const char *const argv[] = { "/bin/true", NULL };
	struct carrel_command *command = carrel_command_new(argv);
	struct carrel_exec *exec = NULL;
	struct carrel_result result;
	int r;

	if (!command) {
		(void)snprintf(e->message, sizeof(e->message), "out of memory");
		return -1;
	}
	r = carrel_exec(sandbox, command, &exec, e);
	if (r == 0)
		r = carrel_exec_wait(exec, 20000, &result, e);
	carrel_exec_free(exec);
	carrel_command_free(command);
	return r;
}

/* As another process would find it. */
static int find(const struct carrel_sandbox *sandbox, struct carrel_error *e)
{
	struct carrel_sandbox *again;
	int r = carrel_connect(carrel_sandbox_id(sandbox), &again, e);

	if (r < 0)
		return r;
	r = use(again, e);
	carrel_sandbox_free(again);
	return r;
}

int main(void)
{
	struct carrel_error e = { .message = "out of memory" };
	struct carrel_spec *spec = carrel_spec_new();
	struct carrel_sandbox *sandbox;
	int r, status = 0;

	if (!spec || carrel_spec_set(spec, "die-with-owner", "false", &e) < 0)
		return failed(&e);
	r = carrel_start(spec, &sandbox, &e);
	carrel_spec_free(spec);
	if (r < 0)
		return failed(&e);
	if (use(sandbox, &e) < 0 || find(sandbox, &e) < 0)
		status = failed(&e);
	/* Twice: the first may be what fails, and a caller that is told so may try again. */
	if (carrel_destroy(sandbox, &e) < 0 && carrel_destroy(sandbox, &e) < 0)
		status = failed(&e);
	carrel_sandbox_free(sandbox);
	return status;
}
