/* SPDX-License-Identifier: Apache-2.0 */
/* lib_client.c - A program that uses every function of carrel.h: `lib_client CASE [ARG...]`
 *
 * Theory of operation. Built by test_library.py with nothing but what an installed library offers (pkg-config, carrel.h),
 * shared and static. Each case is one process, because several of them look at what the library does to its process:
 * descriptors, signals, children, memory. The cases are in lib_sandbox.c and lib_process.c; here are their words. */
#include "lib_client.h"

#include <sys/stat.h>
#include <time.h>

/* --- Words for tests -------------------------------------------------------------------------------------------------------- */

struct carrel_error err;

void check_at(const char *file, int line, bool good, const char *text)
{
	if (good)
		return;
	fprintf(stderr, "%s:%d: not so: %s (last error: %s; %s; %s)\n", file, line, text, err.message, err.remedy,
		err.detail);
	_exit(1);
}

long ok_at(const char *file, int line, long r, const char *text, const struct carrel_error *e)
{
	if (r >= 0)
		return r;
	fprintf(stderr, "%s:%d: %s: %s: %s; %s; %s\n", file, line, text, strerror((int)-r), e->message, e->remedy,
		e->detail);
	_exit(1);
}

void fails_at(const char *file, int line, long got, long want, int code, const char *word, const char *text)
{
	if (got == want && err.code == code && strstr(err.message, word) && !strchr(err.message, '\n'))
		return;
	fprintf(stderr, "%s:%d: %s: got %ld, code %d, '%s'; wanted %ld, code %d, '%s'\n", file, line, text, got,
		err.code, err.message, want, code, word);
	_exit(1);
}

double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

struct carrel_sandbox *start(const char *const *settings)
{
	struct carrel_spec *spec = carrel_spec_new();
	struct carrel_sandbox *sb = NULL;

	check(spec);
	for (; settings && *settings; settings++) {
		char key[32];
		size_t n = strcspn(*settings, "=");

		snprintf(key, sizeof(key), "%.*s", (int)n, *settings);
		ok(carrel_spec_set(spec, key, *settings + n + 1, &err));
	}
	ok(carrel_start(spec, &sb, &err));
	check(sb);
	carrel_spec_free(spec);
	return sb;
}

struct carrel_command *command(const char *line, const char *const *settings)
{
	struct carrel_command *c = carrel_command_new((const char *[]){ "sh", "-c", line, NULL });

	check(c);
	for (; settings && *settings; settings++) {
		char key[32];
		size_t n = strcspn(*settings, "=");

		snprintf(key, sizeof(key), "%.*s", (int)n, *settings);
		ok(carrel_command_set(c, key, *settings + n + 1, &err));
	}
	return c;
}

struct carrel_exec *exec_of(struct carrel_sandbox *sb, struct carrel_command *c)
{
	struct carrel_exec *x = NULL;

	ok(carrel_exec(sb, c, &x, &err));
	check(x);
	carrel_command_free(c);
	return x;
}

struct carrel_result wait_for(struct carrel_exec *x)
{
	struct carrel_result res;

	ok(carrel_exec_wait(x, WAIT_MS, &res, &err));
	return res;
}

const char *text_of(struct carrel_exec *x, int stream, uint64_t offset)
{
	static char text[1 << 16];
	size_t len = 0;
	ssize_t n;

	while ((n = ok(carrel_exec_read(x, stream, offset + len, text + len, sizeof(text) - 1 - len, WAIT_MS, &err))) >
	       0)
		len += (size_t)n;
	text[len] = '\0';
	return text;
}

void expect_text(struct carrel_exec *x, const char *want)
{
	const char *got = text_of(x, 1, 0);

	if (strcmp(got, want) == 0)
		return;
	fprintf(stderr, "output is '%s' instead of '%s'\n", got, want);
	_exit(1);
}

void expect_soon(struct carrel_exec *x, const char *want)
{
	char text[4096];
	double deadline = now_ms() + WAIT_MS;
	size_t len = 0;

	while (now_ms() < deadline) {
		ssize_t n = carrel_exec_read(x, 1, len, text + len, sizeof(text) - 1 - len, 1000, &err);

		check(n > 0 || n == -EAGAIN);
		len += n > 0 ? (size_t)n : 0;
		text[len] = '\0';
		if (strstr(text, want))
			return;
	}
	check(!"the output came");
}

void run_ok(struct carrel_sandbox *sb, const char *line)
{
	struct carrel_exec *x = EXEC(sb, line);
	struct carrel_result res = wait_for(x);

	check(res.outcome == CARREL_EXITED && res.exit_code == 0);
	carrel_exec_free(x);
}

size_t open_fds(void)
{
	char path[64];
	size_t n = 0;

	for (int fd = 0; fd < 4096; fd++) {
		struct stat st;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n += lstat(path, &st) == 0;
	}
	return n;
}

static const struct lib_case *const tables[] = { sandbox_cases, process_cases };

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "list";

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		for (const struct lib_case *c = tables[i]; c->name; c++) {
			if (strcmp(name, "list") == 0)
				puts(c->name);
			if (strcmp(name, c->name) != 0)
				continue;
			if (argc - 2 != c->num_args)
				return 2;
			c->run(argv + 2);
			return 0;
		}
	}
	return strcmp(name, "list") == 0 ? 0 : 2;
}
