/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - Run a fuzz target without a fuzzer: its corpus, then a fixed set of mutations of it
 *
 * Theory of operation. Usage: replay CORPUS_DIRECTORY ROUNDS. The mutations are a function of the corpus alone (names sorted, generator seeded
 * with a constant), so a failure in CI is the same failure at the desk. A crash prints the seed and the number of the round; stopping a
 * debugger in run_exact() at that round shows the input. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/macros.h"
#include "base/str.h"
#include "fuzz.h"

#define INPUT_MAX KIB(256) /* bytes: four inline bodies */
#define SEEDS_MAX 4096     /* files of a corpus */

struct input {
	uint8_t *p;
	size_t len;
};

static struct input seeds[SEEDS_MAX];
static size_t num_seeds;
static char *names[SEEDS_MAX];

static volatile sig_atomic_t current_round = -1; /* -1: the corpus itself */
static const char *volatile current_name = "?";

static void on_crash(int sig)
{
	char text[300];
	int n = snprintf(text, sizeof(text), "replay: signal %d in round %d on seed '%s'\n", sig, (int)current_round,
			 current_name);

	if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0)
		_exit(2);
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
}

/* xorshift64*: small, and the same everywhere. */
static uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

static size_t random_below(uint64_t *state, size_t n)
{
	return n ? (size_t)(random_next(state) % n) : 0;
}

/* Values at which lengths, numbers and flags tend to break. */
static const uint32_t edges[] = { 0,   1,   2,   4,    5,     15,    16,         17,         64,         65,        127,
				  128, 255, 256, 4095, 65535, 65536, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff };

static void mutate_once(uint8_t *p, size_t *len, uint64_t *rng)
{
	size_t at = random_below(rng, *len);
	size_t run = 1 + random_below(rng, 8);
	const struct input *other = &seeds[random_below(rng, num_seeds)];

	switch (random_below(rng, 6)) {
	case 0: /* flip a bit */
		if (*len)
			p[at] ^= (uint8_t)(1u << random_below(rng, 8));
		break;
	case 1: /* any byte */
		if (*len)
			p[at] = (uint8_t)random_next(rng);
		break;
	case 2: /* an edge, as u32 */
		if (*len >= 4)
			memcpy(p + MIN(at, *len - 4), &edges[random_below(rng, ARRAY_SIZE(edges))], 4);
		break;
	case 3: /* cut some bytes out */
		run = MIN(run, *len - at);
		memmove(p + at, p + at + run, *len - at - run);
		*len -= run;
		break;
	case 4: /* double some bytes */
		run = MIN(run, MIN(*len - at, INPUT_MAX - *len));
		memmove(p + at + run, p + at, *len - at);
		*len += run;
		break;
	default: /* go on as another seed does */
		if (at < other->len) {
			memcpy(p + at, other->p + at, other->len - at);
			*len = other->len;
		}
	}
}

/* The target gets memory of exactly the input's length, so that a look beyond it is seen. */
static void run_exact(const uint8_t *p, size_t len)
{
	auto_free uint8_t *copy = malloc(len + !len);

	if (!copy)
		exit(2);
	memcpy(copy, p, len);
	(void)LLVMFuzzerTestOneInput(copy, len);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void load(const char *dir_path)
{
	DIR *dir = opendir(dir_path);
	struct dirent *d;

	if (!dir)
		return;
	while ((d = readdir(dir)) && num_seeds < SEEDS_MAX)
		if (d->d_name[0] != '.' && (names[num_seeds] = strdup(d->d_name)))
			num_seeds++;
	qsort(names, num_seeds, sizeof(names[0]), by_name);
	for (size_t i = 0; i < num_seeds; i++) {
		auto_close int fd = openat(dirfd(dir), names[i], O_RDONLY | O_CLOEXEC);
		ssize_t n;

		seeds[i].p = calloc(1, INPUT_MAX);
		n = seeds[i].p ? fd_read_full(fd, seeds[i].p, INPUT_MAX) : -ENOMEM;
		if (n < 0) {
			fprintf(stderr, "replay: read '%s'\n", names[i]);
			exit(2);
		}
		seeds[i].len = (size_t)n;
	}
	(void)closedir(dir); /* opened for reading */
}

static void replay(uint64_t rounds)
{
	static uint8_t input[INPUT_MAX];
	uint64_t rng = UINT64_C(0x9e3779b97f4a7c15); /* any odd constant */

	for (size_t i = 0; i < num_seeds; i++) {
		current_name = names[i];
		run_exact(seeds[i].p, seeds[i].len);
	}
	for (uint64_t round = 0; round < rounds; round++) {
		size_t i = random_below(&rng, num_seeds);
		size_t len = seeds[i].len;

		current_round = (sig_atomic_t)round;
		current_name = names[i];
		memcpy(input, seeds[i].p, len);
		for (size_t n = 1 + random_below(&rng, 4); n > 0; n--)
			mutate_once(input, &len, &rng);
		run_exact(input, len);
	}
}

int main(int argc, char **argv)
{
	static const int fatal[] = { SIGABRT, SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGFPE };
	uint64_t rounds;

	if (argc != 3 || str_to_u64(argv[2], &rounds) < 0) {
		fprintf(stderr, "usage: replay CORPUS_DIRECTORY ROUNDS\n");
		return 2;
	}
	for (size_t i = 0; i < ARRAY_SIZE(fatal); i++)
		(void)signal(fatal[i], on_crash);
	load(argv[1]);
	if (num_seeds == 0) {
		fprintf(stderr, "replay: no corpus in '%s'\n", argv[1]);
		return 2;
	}
	replay(rounds);
	printf("%zu seeds and %" PRIu64 " mutations\n", num_seeds, rounds);
	for (size_t i = 0; i < num_seeds; i++) {
		free(seeds[i].p);
		free(names[i]);
	}
	return 0;
}
