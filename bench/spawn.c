/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.c - Start a command, wait for it, say how long it took; on request, over and over
 *
 * Theory of operation. run.py keeps one of these for each candidate and asks them in turn, so that candidates are interleaved run by run.
 * A run is timed here and not there because a fork or even a spawn out of a large interpreter costs more than what is measured; this
 * process stays small and uses posix_spawn. What a candidate needs of its surroundings (a mount hidden, a tmpfs somewhere, a chroot) is set
 * up once, in a mount namespace of our own, before the first run, and is in no figure.
 *
 * stdin takes lines "RUNS PAUSE_US". The answer is one line "run NANOSECONDS" for each run and "all NANOSECONDS" for the request, pauses
 * included. A command that does not exit with 0 ends the conversation: its stderr goes to ours, and the exit status is 1. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LANES_MAX 64       /* runs in flight; more than any row asks for */
#define ARGS_MAX 256       /* of the command */
#define ARG_MAX_BYTES 4096 /* of one argument with its token */
#define NS_PER_S 1000000000LL
#define NS_PER_US 1000LL

extern char **environ;

struct lane {
	pid_t pid; /* 0: free */
	int64_t start_ns;
};

struct bench {
	char **argv;
	const char *chroot_to;
	size_t lanes;
	int stderr_fd;
	uint64_t token; /* counts runs: "{}" in an argument becomes a name that no other run has */
	struct lane lane[LANES_MAX];
	char text[ARGS_MAX][ARG_MAX_BYTES];
	char *filled[ARGS_MAX + 1];
	posix_spawn_file_actions_t actions;
};

static void die(const char *what)
{
	fprintf(stderr, "spawn: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t) < 0)
		die("read the clock");
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* Copies @arg to @to with the first "{}" replaced. */
static char *fill(char to[ARG_MAX_BYTES], const char *arg, uint64_t token)
{
	const char *hole = strstr(arg, "{}");

	if (!hole)
		snprintf(to, ARG_MAX_BYTES, "%s", arg);
	else
		snprintf(to, ARG_MAX_BYTES, "%.*s%d-%" PRIu64 "%s", (int)(hole - arg), arg, (int)getpid(), token,
			 hole + 2);
	return to;
}

static void show_stderr(const struct bench *b)
{
	char text[2048];
	ssize_t n = pread(b->stderr_fd, text, sizeof(text), 0);

	if (n > 0)
		fprintf(stderr, "%.*s", (int)n, text);
}

static void lane_start(struct bench *b, struct lane *lane)
{
	int r;

	b->token++;
	for (size_t i = 0; b->argv[i]; i++)
		b->filled[i] = fill(b->text[i], b->argv[i], b->token);
	lane->start_ns = now_ns();
	r = posix_spawnp(&lane->pid, b->filled[0], &b->actions, NULL, b->filled, environ);
	if (r != 0) {
		errno = r;
		die(b->filled[0]);
	}
}

/* Waits for one run of any lane and frees the lane. */
static void lane_finish(struct bench *b)
{
	int status;
	pid_t pid = waitpid(-1, &status, 0);
	int64_t end_ns = now_ns();

	if (pid < 0)
		die("wait for a run");
	for (size_t i = 0; i < b->lanes; i++) {
		if (b->lane[i].pid != pid)
			continue;
		if (status != 0) {
			show_stderr(b);
			fprintf(stderr, "spawn: '%s' ended with wait status 0x%x\n", b->argv[0], (unsigned)status);
			exit(1);
		}
		printf("run %" PRId64 "\n", end_ns - b->lane[i].start_ns);
		b->lane[i].pid = 0;
		return;
	}
}

static void serve(struct bench *b, uint64_t runs, uint64_t pause_us)
{
	const struct timespec pause = { (time_t)(pause_us / 1000000), (long)(pause_us % 1000000) * NS_PER_US };
	int64_t start_ns = now_ns();
	uint64_t started = 0, busy = 0;

	while (started < runs || busy > 0) {
		for (size_t i = 0; i < b->lanes && started < runs; i++) {
			if (b->lane[i].pid != 0)
				continue;
			if (pause_us > 0)
				nanosleep(&pause, NULL);
			lane_start(b, &b->lane[i]);
			started++;
			busy++;
		}
		lane_finish(b);
		busy--;
	}
	printf("all %" PRId64 "\n", now_ns() - start_ns);
	fflush(stdout);
}

/* A mount namespace of our own, of which nothing comes back to the host */
static void own_mounts(void)
{
	static int done;

	if (done)
		return;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die("make a mount namespace");
	done = 1;
}

static void prepare(struct bench *b)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	b->stderr_fd = memfd_create("stderr", MFD_CLOEXEC);
	if (null_fd < 0 || b->stderr_fd < 0)
		die("open descriptors for the runs");
	if (b->chroot_to && (chroot(b->chroot_to) < 0 || chdir("/") < 0))
		die(b->chroot_to);
	posix_spawn_file_actions_init(&b->actions);
	posix_spawn_file_actions_adddup2(&b->actions, null_fd, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&b->actions, null_fd, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&b->actions, b->stderr_fd, STDERR_FILENO);
}

int main(int argc, char **argv)
{
	static struct bench bench = { .lanes = 1 };
	char line[64];
	int opt;

	while ((opt = getopt(argc, argv, "+u:t:r:j:")) != -1) {
		switch (opt) {
		case 'u': /* hide a mount */
			own_mounts();
			if (umount2(optarg, MNT_DETACH) < 0 && errno != EINVAL && errno != ENOENT)
				die(optarg);
			break;
		case 't': /* an empty tmpfs over a directory */
			own_mounts();
			if (mount("tmpfs", optarg, "tmpfs", 0, "mode=0755") < 0)
				die(optarg);
			break;
		case 'r':
			bench.chroot_to = optarg;
			break;
		case 'j':
			bench.lanes = strtoull(optarg, NULL, 10);
			break;
		default:
			return 2;
		}
	}
	bench.argv = argv + optind;
	if (optind >= argc || argc - optind > ARGS_MAX || bench.lanes < 1 || bench.lanes > LANES_MAX) {
		fprintf(stderr, "usage: spawn [-u HIDE] [-t TMPFS] [-r ROOT] [-j LANES] COMMAND [ARG...]\n");
		return 2;
	}
	prepare(&bench);
	while (fgets(line, sizeof(line), stdin)) {
		char *end;
		uint64_t runs = strtoull(line, &end, 10);

		serve(&bench, runs, strtoull(end, NULL, 10));
	}
	return 0;
}
