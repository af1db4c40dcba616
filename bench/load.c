/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - Neighbours for a measurement: many idle processes, or one that writes
 *
 * Theory of operation. `load idle N` holds N processes that wait; `load write FILE BYTES_PER_SECOND FILE_BYTES` overwrites one file of fixed size
 * at a steady rate, so that there are always dirty pages and a disk at work, yet never more than FILE_BYTES of space. Both say "ready" and
 * stay until stdin ends. They cannot be left behind: the end of run.py closes stdin, and children die with us (PR_SET_PDEATHSIG). */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES_MAX 30000 /* the usual pid_max is 32768 */
#define CHUNK_BYTES 262144  /* one write */
#define TICKS_PER_SECOND 50 /* writes come in bursts of 20 ms */

static void die(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void say_ready(void)
{
	puts("ready");
	fflush(stdout);
}

static int idle(uint64_t count)
{
	static pid_t child[PROCESSES_MAX];
	char byte;
	uint64_t n;

	for (n = 0; n < count && n < PROCESSES_MAX; n++) {
		child[n] = fork();
		if (child[n] < 0)
			break;
		if (child[n] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
			for (;;)
				pause();
		}
	}
	if (n == count)
		say_ready();
	else
		fprintf(stderr, "load: only %" PRIu64 " processes could be made: %s\n", n, strerror(errno));
	while (n == count && read(STDIN_FILENO, &byte, 1) > 0)
		continue;
	for (uint64_t i = 0; i < n; i++)
		(void)kill(child[i], SIGKILL); /* ours and not yet reaped, so it is there */
	for (uint64_t i = 0; i < n; i++)
		(void)waitpid(child[i], NULL, 0);
	return n == count ? 0 : 1;
}

static int write_steadily(const char *path, uint64_t bytes_per_s, uint64_t file_bytes)
{
	static char chunk[CHUNK_BYTES];
	struct pollfd end = { .fd = STDIN_FILENO, .events = POLLIN };
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	uint64_t at = 0;

	if (fd < 0)
		die(path);
	memset(chunk, 'w', sizeof(chunk));
	say_ready();
	while (poll(&end, 1, 1000 / TICKS_PER_SECOND) == 0) {
		for (uint64_t left = bytes_per_s / TICKS_PER_SECOND; left >= CHUNK_BYTES; left -= CHUNK_BYTES) {
			if (pwrite(fd, chunk, sizeof(chunk), (off_t)at) < 0)
				die(path);
			at = (at + CHUNK_BYTES) % (file_bytes - file_bytes % CHUNK_BYTES);
		}
	}
	(void)unlink(path); /* run.py removes the directory in any case */
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "idle") == 0)
		return idle(strtoull(argv[2], NULL, 10));
	if (argc == 5 && strcmp(argv[1], "write") == 0 && strtoull(argv[4], NULL, 10) >= CHUNK_BYTES)
		return write_steadily(argv[2], strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
	fprintf(stderr, "usage: load idle N | load write FILE BYTES_PER_SECOND FILE_BYTES\n");
	return 2;
}
