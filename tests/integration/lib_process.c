/* SPDX-License-Identifier: Apache-2.0 */
/* lib_process.c - Cases of lib_client about processes: what the library does to the one it is in, and finding a sandbox from another
 *
 * Theory of operation. See lib_client.c; one process for each case. */
#include "lib_client.h"

#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static size_t lines_of(const char *path)
{
	FILE *f = fopen(path, "r");
	size_t n = 0;
	int c;

	check(f);
	while ((c = fgetc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

/* A field of /proc/self/status in its own unit. */
static long status_field(const char *name)
{
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");
	long v = -1;

	check(f);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0)
			v = strtol(line + strlen(name) + 1, NULL, 0);
	fclose(f);
	return v;
}

/* --- The library in its process --------------------------------------------------------------------------------------------- */

struct footprint {
	mode_t mask;
	char cwd[256];
	sigset_t blocked;
	struct sigaction actions[65];
	struct rlimit limits[RLIM_NLIMITS];
	long caps, tasks, seccomp, no_new_privs;
	char uids[128];
	size_t fds;
};

static void take_footprint(struct footprint *f)
{
	char line[256];
	FILE *status = fopen("/proc/self/status", "r");

	memset(f, 0, sizeof(*f));
	f->mask = umask(0);
	umask(f->mask);
	check(getcwd(f->cwd, sizeof(f->cwd)));
	pthread_sigmask(SIG_SETMASK, NULL, &f->blocked);
	for (int i = 1; i < 65; i++)
		if (i != 32 && i != 33) /* the C library's own */
			check(sigaction(i, NULL, &f->actions[i]) == 0);
	for (int i = 0; i < RLIM_NLIMITS; i++)
		check(getrlimit(i, &f->limits[i]) == 0);
	while (fgets(line, sizeof(line), status))
		if (strncmp(line, "Uid:", 4) == 0 || strncmp(line, "Gid:", 4) == 0)
			strncat(f->uids, line, sizeof(f->uids) - strlen(f->uids) - 1);
	fclose(status);
	f->caps = status_field("CapEff:");
	f->tasks = status_field("Threads:");
	f->seccomp = status_field("Seccomp:");
	f->no_new_privs = status_field("NoNewPrivs:");
	f->fds = open_fds();
}

static void same_footprint(const struct footprint *a, const struct footprint *b)
{
	check(a->mask == b->mask && strcmp(a->cwd, b->cwd) == 0);
	check(memcmp(&a->blocked, &b->blocked, sizeof(a->blocked)) == 0);
	for (int i = 1; i < 65; i++) /* masks are wider than what the kernel fills in */
		check(a->actions[i].sa_handler == b->actions[i].sa_handler &&
		      a->actions[i].sa_flags == b->actions[i].sa_flags);
	check(memcmp(a->limits, b->limits, sizeof(a->limits)) == 0);
	check(strcmp(a->uids, b->uids) == 0 && a->caps == b->caps && a->seccomp == b->seccomp &&
	      a->no_new_privs == b->no_new_privs);
	check(a->tasks == b->tasks);
	check(a->fds == b->fds);
}

/* Not a bit of the process is other than before: mask, directory, signals, limits, ids, capabilities, threads, descriptors, children. */
static void the_process_is_as_before(char **args UNUSED)
{
	struct footprint before, during, after;
	struct carrel_sandbox *sb;

	umask(027);
	check(chdir("/usr") == 0);
	signal(SIGUSR2, SIG_IGN);
	carrel_sandbox_free(START()); /* first uses: the C library opens what it needs */
	take_footprint(&before);
	sb = START("hostname=during");
	run_ok(sb, "true");
	check(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	take_footprint(&during);
	during.fds = before.fds;
	same_footprint(&before, &during);
	ok(carrel_destroy(sb, &err));
	carrel_sandbox_free(sb);
	take_footprint(&after);
	same_footprint(&before, &after);
}

static atomic_bool stop_threads;
static atomic_ulong turns, children_seen, strangers;

static void *busy(void *arg)
{
	volatile unsigned long v = 0;

	(void)arg;
	while (!atomic_load(&stop_threads)) {
		char *p = malloc(4096 + (v++ & 0xfff)); /* the heap's locks are held often */

		p[0] = 'x';
		free(p);
		atomic_fetch_add(&turns, 1);
	}
	return NULL;
}

static void on_child(int sig)
{
	(void)sig;
	atomic_fetch_add(&children_seen, 1);
}

/* A server's own loop: it makes children and waits for any. What the library starts must not appear in it. */
static void *reaper(void *arg)
{
	unsigned *made = arg;

	while (!atomic_load(&stop_threads)) {
		pid_t pid = fork(), got;
		int status;

		if (pid == 0)
			_exit(42);
		check(pid > 0);
		(*made)++;
		do
			got = wait(&status);
		while (got < 0 && errno == EINTR);
		if (got != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 42)
			atomic_fetch_add(&strangers, 1);
		usleep(2000);
	}
	return NULL;
}

static void *sandboxes(void *arg)
{
	struct carrel_error e = { .code = 0 };
	int id = *(int *)arg;

	for (int round = 0; round < 8; round++) {
		struct carrel_spec *spec = carrel_spec_new();
		struct carrel_command *c = carrel_command_new(
			(const char *[]){ "sh", "-c", "cat; echo $ID > /id; sleep 0.05; cat /id; exit $ID", NULL });
		struct carrel_sandbox *sb;
		struct carrel_exec *x;
		struct carrel_result res;
		char text[32], want[32];

		snprintf(text, sizeof(text), "ID=%d", 100 * (id + 1) + round);
		snprintf(want, sizeof(want), "%d\n", 100 * (id + 1) + round);
		ok_with(carrel_command_set(c, "env", text, &e), &e);
		ok_with(carrel_start(spec, &sb, &e), &e);
		ok_with(carrel_exec(sb, c, &x, &e), &e);
		ok_with(carrel_exec_wait(x, WAIT_MS, &res, &e), &e);
		check(res.outcome == CARREL_EXITED && res.exit_code == ((100 * (id + 1) + round) & 255));
		memset(text, 0, sizeof(text));
		ok_with(carrel_exec_read(x, 1, 0, text, sizeof(text) - 1, WAIT_MS, &e), &e);
		check(strcmp(text, want) == 0);
		carrel_exec_free(x);
		ok_with(carrel_destroy(sb, &e), &e);
		carrel_sandbox_free(sb);
		carrel_command_free(c);
		carrel_spec_free(spec);
	}
	return NULL;
}

static void beside_threads_and_a_wait_loop(char **args UNUSED)
{
	struct sigaction act = { .sa_handler =
					 on_child }; /* without SA_RESTART: calls of the library are interrupted */
	pthread_t busy_threads[8], reap_thread, users[2];
	int ids[2] = { 0, 1 };
	unsigned made = 0;

	sigaction(SIGCHLD, &act, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(busy_threads); i++)
		check(pthread_create(&busy_threads[i], NULL, busy, NULL) == 0);
	check(pthread_create(&reap_thread, NULL, reaper, &made) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(users); i++)
		check(pthread_create(&users[i], NULL, sandboxes, &ids[i]) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(users); i++)
		pthread_join(users[i], NULL);
	atomic_store(&stop_threads, true);
	for (size_t i = 0; i < ARRAY_SIZE(busy_threads); i++)
		pthread_join(busy_threads[i], NULL);
	pthread_join(reap_thread, NULL);
	check(made > 5 && atomic_load(&turns) > 1000);
	check(atomic_load(&strangers) == 0);
	check(atomic_load(&children_seen) <= made); /* one for each of our own, or fewer where two came at once */
	check(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static void *start_and_end(void *arg)
{
	*(struct carrel_sandbox **)arg = START();
	return NULL;
}

/* A sandbox belongs to the process: the thread of a pool that happened to start it may end. */
static void a_thread_starts_and_ends(char **args UNUSED)
{
	struct carrel_sandbox *sb = NULL;
	pthread_t thread;

	check(pthread_create(&thread, NULL, start_and_end, &sb) == 0);
	pthread_join(thread, NULL);
	usleep(50000);
	run_ok(sb, "true");
	carrel_sandbox_free(sb);
}

/* SIGCHLD ignored: children vanish without being waited for. */
static void where_sigchld_is_ignored(char **args UNUSED)
{
	struct carrel_sandbox *sb;

	signal(SIGCHLD, SIG_IGN);
	sb = START();
	run_ok(sb, "true & wait");
	ok(carrel_destroy(sb, &err));
	carrel_sandbox_free(sb);
}

#define ROUNDS 31

static double shortest(const double *times)
{
	double best = times[0];

	for (size_t i = 1; i < ROUNDS; i++)
		best = times[i] < best ? times[i] : best;
	return best;
}

/* Times of starting a sandbox and, apart from it, of a fork(), which leaves cold caches behind: the shortest, which other programs of a
 * busy machine do not lengthen. */
static void measure(double *start_ms, double *fork_ms)
{
	double starts[ROUNDS], forks[ROUNDS];

	for (size_t i = 0; i < ROUNDS; i++) {
		double t = now_ms();
		struct carrel_sandbox *sb = START();

		starts[i] = now_ms() - t;
		ok(carrel_destroy(sb, &err));
		carrel_sandbox_free(sb);
	}
	for (size_t i = 0; i < ROUNDS; i++) {
		double t = now_ms();
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		forks[i] = now_ms() - t;
		waitpid(pid, NULL, 0);
	}
	*start_ms = shortest(starts);
	*fork_ms = shortest(forks);
}

/* A start copies nothing of a caller of 512 MiB, where fork() copies its page tables. */
static void a_large_caller(char **args UNUSED)
{
	double start_small, start_big, fork_small, fork_big;
	const size_t size = (size_t)512 << 20;
	char *p;

	measure(&start_small, &fork_small);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(p != MAP_FAILED);
	(void)madvise(p, size, MADV_NOHUGEPAGE); /* huge ones would make fork() cheap, too */
	for (size_t i = 0; i < size; i += 4096)
		p[i] = 1;
	check(status_field("VmRSS:") > 500 * 1024);
	measure(&start_big, &fork_big);
	printf("start: %.2f ms, with 512 MiB %.2f ms; fork: %.2f ms, with 512 MiB %.2f ms\n", start_small, start_big,
	       fork_small, fork_big);
	check(fork_big - fork_small > 1); /* else this machine shows nothing */
	check(start_big - start_small < (fork_big - fork_small) / 4);
}

static void nothing_is_lost_over(int count)
{
	struct mallinfo2 heap_before = { 0 }, heap_after;
	size_t fds_before = 0, maps_before = 0, fds, maps;
	long rss_before = 0, rss;

	for (int i = -10; i < count; i++) {
		struct carrel_sandbox *sb;
		struct carrel_exec *x;

		if (i == 0) {
			fds_before = open_fds();
			maps_before = lines_of("/proc/self/maps");
			rss_before = status_field("VmRSS:");
			heap_before = mallinfo2();
		}
		sb = START();
		x = EXEC(sb, "exit 3", i % 2 ? "stdin=pipe" : "tty=true");
		check(wait_for(x).exit_code == 3);
		carrel_exec_free(x);
		carrel_sandbox_free(sb);
	}
	heap_after = mallinfo2();
	fds = open_fds();
	maps = lines_of("/proc/self/maps");
	rss = status_field("VmRSS:");
	printf("%d starts: descriptors %zu to %zu, mappings %zu to %zu, heap %zu to %zu bytes, resident %ld to %ld "
	       "KiB\n",
	       count, fds_before, fds, maps_before, maps, heap_before.uordblks, heap_after.uordblks, rss_before, rss);
	check(fds == fds_before);
	check(maps == maps_before);
	check(heap_after.uordblks <= heap_before.uordblks + 1024);
	check(rss <= rss_before + 1024);
}

static void nothing_is_lost_over_200(char **args UNUSED)
{
	nothing_is_lost_over(200);
}

static void nothing_is_lost_over_2000(char **args UNUSED)
{
	nothing_is_lost_over(2000);
}

/* Execs of one sandbox: what a handle held is given back with it. */
static void execs_are_given_back(char **args UNUSED)
{
	struct carrel_sandbox *sb = START();
	size_t fds = 0;

	for (int i = -5; i < 100; i++) {
		if (i == 0)
			fds = open_fds();
		run_ok(sb, "true");
	}
	check(open_fds() == fds);
	carrel_sandbox_free(sb);
}

static void count_finding(const struct carrel_finding *finding, void *data)
{
	check(finding->what[0] && finding->found && finding->remedy);
	check(finding->ok == 1 || finding->ok == 0);
	++*(int *)data;
}

static void the_doctor_reports(char **args UNUSED)
{
	int count = 0;

	ok(carrel_doctor(0, count_finding, &count, &err));
	check(count > 8);
}

/* A child of the caller that never executes has copies of every descriptor; its end must not end the sandbox. */
static void a_forked_child_takes_nothing_along(char **args UNUSED)
{
	struct carrel_sandbox *sb = START();
	struct carrel_exec *x = EXEC(sb, "echo up; read line; echo $line", "stdin=pipe");
	pid_t pid;

	expect_soon(x, "up");
	pid = fork();
	if (pid == 0)
		_exit(0);
	check(waitpid(pid, NULL, 0) == pid);
	check(carrel_exec_write(x, "on\n", 3, &err) == 3);
	expect_text(x, "up\non\n");
	carrel_exec_free(x);
	carrel_sandbox_free(sb);
}

/* --- Two processes ---------------------------------------------------------------------------------------------------------- */

/* Starts what the next process finds, says where, and waits for its death. */
static void owner(char **args UNUSED)
{
	struct carrel_sandbox *sb = START("die-with-owner=false");
	struct carrel_exec *done = EXEC(sb, "echo finished; echo bad >&2; exit 9");
	struct carrel_exec *running =
		EXEC(sb, "i=0; while [ $i -lt 20 ]; do echo line $i; i=$((i+1)); sleep 0.1; done; read x; echo got $x",
		     "stdin=pipe", "key=job-1");

	check(wait_for(done).exit_code == 9);
	expect_soon(running, "line 3");
	printf("%s %" PRIu64 " %" PRIu64 "\n", carrel_sandbox_id(sb), carrel_exec_number(done),
	       carrel_exec_number(running));
	fflush(stdout);
	for (;;)
		pause();
}

/* The same with die-with-owner=true; nothing may be left. */
static void dying_owner(char **args UNUSED)
{
	struct carrel_sandbox *sb = START();
	struct carrel_exec *x =
		EXEC(sb, "setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' & echo up; sleep 600");

	expect_soon(x, "up");
	printf("%s\n", carrel_sandbox_id(sb));
	fflush(stdout);
	for (;;)
		pause();
}

static void connect_and_finish(char **args)
{
	uint64_t done_number = strtoull(args[1], NULL, 10), running_number = strtoull(args[2], NULL, 10);
	const char *id = args[0];
	struct carrel_sandbox *sb = NULL;
	struct carrel_exec *done, *running, *again, *fresh;
	struct carrel_command *same, *other;
	struct carrel_receipt *receipt;
	struct carrel_stats stats;

	ok(carrel_connect(id, &sb, &err));
	check(strcmp(carrel_sandbox_id(sb), id) == 0);
	ok(carrel_exec_find(sb, done_number, &done, &err));
	check(wait_for(done).exit_code == 9);
	expect_text(done, "finished\n");
	check(strcmp(text_of(done, 2, 0), "bad\n") == 0 && strcmp(text_of(done, 1, 4), "shed\n") == 0);
	ok(carrel_exec_find(sb, running_number, &running, &err));
	check(carrel_exec_pid(running) > 1);
	check(carrel_exec_wait(running, 0, &(struct carrel_result){ 0 }, &err) == -ETIMEDOUT);
	ok(carrel_receipt_read(running, &receipt, &err));
	check(carrel_receipt_count(receipt) > 10);
	carrel_receipt_free(receipt);
	expect_soon(running, "line 19\n");
	same = COMMAND("i=0; while [ $i -lt 20 ]; do echo line $i; i=$((i+1)); sleep 0.1; done; read x; echo got $x",
		       "stdin=pipe", "key=job-1");
	ok(carrel_exec(sb, same, &again, &err)); /* a retry by somebody who never got the answer */
	check(carrel_exec_number(again) == running_number);
	other = COMMAND("echo other", "stdin=pipe", "key=job-1");
	fails(carrel_exec(sb, other, &fresh, &err), -EEXIST, CARREL_ERROR_CONFLICT, "job-1");
	check(carrel_exec_write(running, "words\n", 6, &err) == 6);
	check(wait_for(running).exit_code == 0);
	check(wait_for(again).exit_code == 0);
	check(strcmp(text_of(running, 1, 7 * 3), "line 3\n") > 0 && strstr(text_of(running, 1, 0), "got words\n"));
	fresh = EXEC(sb, "echo fresh; exit 1");
	check(carrel_exec_number(fresh) != done_number && carrel_exec_number(fresh) != running_number);
	check(wait_for(fresh).exit_code == 1);
	ok(carrel_stats(sb, &stats, &err));
	check(stats.memory_limit_bytes == 512u << 20 && stats.pids_limit == 512);
	carrel_exec_free(done);
	carrel_exec_free(running);
	carrel_exec_free(again);
	carrel_exec_free(fresh);
	carrel_command_free(same);
	carrel_command_free(other);
	ok(carrel_destroy(sb, &err));
	carrel_sandbox_free(sb);
	check(carrel_connect(id, &sb, &err) == -ENOENT);
}

/* Look in and leave: the sandbox goes on. */
static void connect_and_leave(char **args)
{
	struct carrel_sandbox *sb = NULL;

	ok(carrel_connect(args[0], &sb, &err));
	run_ok(sb, "true");
	carrel_sandbox_free(sb);
}

/* Its init is gone: connecting says so, and the doctor takes what is left. */
static void connect_to_the_dead(char **args)
{
	struct carrel_sandbox *sb = NULL;

	fails(carrel_connect(args[0], &sb, &err), -ECONNREFUSED, CARREL_ERROR_UNAVAILABLE, args[0]);
	check(sb == NULL);
}

/* --- Images ----------------------------------------------------------------------------------------------------------------- */

/* An archive needs the unpacker, which is found where it was installed or where $CARREL_LIBEXEC says. */
static void image(char **args)
{
	char setting[4096];
	struct carrel_sandbox *sb;

	snprintf(setting, sizeof(setting), "image=%s", args[0]);
	sb = START(setting);
	carrel_sandbox_free(sb);
}

const struct lib_case process_cases[] = {
	{ "the_process_is_as_before", the_process_is_as_before, 0 },
	{ "beside_threads_and_a_wait_loop", beside_threads_and_a_wait_loop, 0 },
	{ "a_thread_starts_and_ends", a_thread_starts_and_ends, 0 },
	{ "where_sigchld_is_ignored", where_sigchld_is_ignored, 0 },
	{ "a_large_caller", a_large_caller, 0 },
	{ "nothing_is_lost_over_200", nothing_is_lost_over_200, 0 },
	{ "nothing_is_lost_over_2000", nothing_is_lost_over_2000, 0 },
	{ "execs_are_given_back", execs_are_given_back, 0 },
	{ "the_doctor_reports", the_doctor_reports, 0 },
	{ "a_forked_child_takes_nothing_along", a_forked_child_takes_nothing_along, 0 },
	{ "owner", owner, 0 },
	{ "dying_owner", dying_owner, 0 },
	{ "connect_and_finish", connect_and_finish, 3 },
	{ "connect_and_leave", connect_and_leave, 1 },
	{ "connect_to_the_dead", connect_to_the_dead, 1 },
	{ "image", image, 1 },
	{ NULL, NULL, 0 },
};
