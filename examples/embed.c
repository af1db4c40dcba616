/* SPDX-License-Identifier: Apache-2.0 */
/* embed.c - Run two commands in one sandbox, from a program of your own
 *
 * Build it with:  cc embed.c $(pkg-config --cflags --libs carrel) -o embed
 *
 * The first command writes a file and prints as it goes; the second finds the file. Between them the program shows what isolates the
 * sandbox and what it has used. Every function that can fail says why in a struct carrel_error, which main() prints. */
#include <carrel.h>
#include <inttypes.h>
#include <stdio.h>

/* A sandbox with 256 MiB of memory, 64 processes and no network (the default), that ends with this program. */
static struct carrel_sandbox *start(struct carrel_error *e)
{
	struct carrel_spec *spec = carrel_spec_new();
	struct carrel_sandbox *sandbox = NULL;

	if (spec && carrel_spec_set(spec, "memory", "256m", e) == 0 &&
	    carrel_spec_set(spec, "pids-limit", "64", e) == 0)
		(void)carrel_start(spec, &sandbox, e);
	carrel_spec_free(spec);
	return sandbox;
}

/* Runs a line of shell. It is held, so that there is a moment to look at it before its program begins. */
static struct carrel_exec *run(struct carrel_sandbox *sandbox, const char *line, struct carrel_error *e)
{
	struct carrel_command *command = carrel_command_new((const char *[]){ "sh", "-c", line, NULL });
	struct carrel_exec *exec = NULL;

	if (command && carrel_command_set(command, "hold", "true", e) == 0 &&
	    carrel_command_set(command, "timeout", "10s", e) == 0)
		(void)carrel_exec(sandbox, command, &exec, e);
	carrel_command_free(command);
	return exec;
}

/* Output is kept and has absolute offsets: whoever loses count or connection reads again from where it was. */
static int stream(struct carrel_exec *exec, struct carrel_error *e)
{
	uint64_t offset = 0;
	char buf[4096];
	ssize_t n;

	while ((n = carrel_exec_read(exec, 1, offset, buf, sizeof(buf), -1, e)) > 0) {
		fwrite(buf, 1, (size_t)n, stdout);
		fflush(stdout);
		offset += (uint64_t)n;
	}
	return (int)n;
}

static int show_receipt(struct carrel_exec *exec, struct carrel_error *e)
{
	static const char *const states[] = { "on", "partial", "missing" };
	struct carrel_receipt *receipt;

	if (carrel_receipt_read(exec, &receipt, e) < 0)
		return -1;
	for (size_t i = 0; i < carrel_receipt_count(receipt); i++) {
		const struct carrel_layer *layer = carrel_receipt_layer(receipt, i);

		printf("  %-8s %-20s %s\n", states[layer->state], layer->name,
		       layer->why[0] ? layer->why : layer->evidence);
	}
	carrel_receipt_free(receipt);
	return 0;
}

static int finish(struct carrel_exec *exec, struct carrel_error *e)
{
	struct carrel_result result;

	if (carrel_exec_go(exec, e) < 0 || stream(exec, e) < 0 || carrel_exec_wait(exec, -1, &result, e) < 0)
		return -1;
	printf("  -> %s, exit code %d, %.1f ms\n", carrel_outcome_name(result.outcome), result.exit_code,
	       (double)result.wall_ns / 1e6);
	return 0;
}

static int work(struct carrel_sandbox *sandbox, struct carrel_error *e)
{
	struct carrel_exec *first, *second = NULL;
	struct carrel_stats stats;
	int r = -1;

	first = run(sandbox, "for i in 1 2 3; do echo step $i | tee -a log; sleep 0.1; done", e);
	if (!first || show_receipt(first, e) < 0 || finish(first, e) < 0)
		goto out;
	if (carrel_stats(sandbox, &stats, e) < 0)
		goto out;
	printf("  %" PRIu64 " KiB of memory now, %" PRIu64 " ms of CPU so far\n", stats.memory_bytes / 1024,
	       stats.cpu_us / 1000);
	second = run(sandbox, "echo the log has $(wc -l < log) lines", e);
	if (second)
		r = finish(second, e);
out:
	carrel_exec_free(first);
	carrel_exec_free(second);
	return r;
}

int main(void)
{
	struct carrel_error e = { .message = "out of memory" }; /* what is left to say where nothing else was said */
	struct carrel_sandbox *sandbox = start(&e);
	int failed;

	if (sandbox)
		printf("sandbox %s\n", carrel_sandbox_id(sandbox));
	failed = !sandbox || work(sandbox, &e) < 0 || carrel_destroy(sandbox, &e) < 0;
	if (failed)
		fprintf(stderr, "embed: %s%s%s\n", e.message, e.remedy[0] ? "; " : "", e.remedy);
	carrel_sandbox_free(sandbox);
	return failed;
}
