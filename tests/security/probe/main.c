/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - Run named attacks and print one line for each
 *
 * Theory of operation. Runs inside a sandbox, as its root or as a user. Each attack is a function in a table; each runs in a forked child with a
 * deadline, so one that is killed, hangs or gives up its rights does not take the others with it, and a hundred of them need one sandbox.
 *
 *   probe              every attack that is not BY_NAME
 *   probe NAME...      these; the exit status is the worst verdict
 *   probe --list       names and what each answers
 *
 * A line is "NAME VERDICT DETAIL". The payload is harmless everywhere: files are opened for writing and not written, calls get arguments that
 * the kernel refuses after its permission check, and what is sent to all processes is sent only when pid 1 is Carrel's. The suites also run
 * with layers taken out, on machines that somebody needs. */
#include "probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ATTACK_DEADLINE_S 10 /* seconds; each takes milliseconds */
#define DETAIL_MAX 200

static const struct attack *const tables[] = { call_attacks, file_attacks, init_attacks, network_attacks, nested_attacks, limit_attacks };
static char *detail; /* shared with the children */

static void say_list(const char *format, va_list ap)
{
	(void)vsnprintf(detail, DETAIL_MAX, format, ap);
	for (char *p = detail; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = ' ';
}

void say(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say_list(format, ap);
	va_end(ap);
}

#define VERDICT_FUNCTION(name_, verdict_)                   \
	enum verdict name_(const char *format, ...)         \
	{                                                   \
		va_list ap;                                 \
                                                            \
		va_start(ap, format);                       \
		say_list(format, ap);                       \
		va_end(ap);                                 \
		return verdict_;                            \
	}
VERDICT_FUNCTION(harmless, HARMLESS)
VERDICT_FUNCTION(succeeded, SUCCEEDED)
VERDICT_FUNCTION(untried, UNTRIED)

const char *fact(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

const char *errno_name(int error)
{
	static const char *const names[] = {
		[0] = "OK", [EPERM] = "EPERM", [ENOENT] = "ENOENT", [ESRCH] = "ESRCH", [EIO] = "EIO", [EBADF] = "EBADF", [ECHILD] = "ECHILD",
		[EAGAIN] = "EAGAIN", [ENOMEM] = "ENOMEM", [EACCES] = "EACCES", [EFAULT] = "EFAULT", [EBUSY] = "EBUSY",
		[EEXIST] = "EEXIST", [EXDEV] = "EXDEV", [ENODEV] = "ENODEV", [ENOTDIR] = "ENOTDIR", [EISDIR] = "EISDIR",
		[EINVAL] = "EINVAL", [ENFILE] = "ENFILE", [EMFILE] = "EMFILE", [ENOTTY] = "ENOTTY", [ETXTBSY] = "ETXTBSY",
		[ENOSPC] = "ENOSPC", [EROFS] = "EROFS", [ENOSYS] = "ENOSYS", [ELOOP] = "ELOOP", [ENXIO] = "ENXIO",
		[EAFNOSUPPORT] = "EAFNOSUPPORT", [ENETUNREACH] = "ENETUNREACH", [ECONNREFUSED] = "ECONNREFUSED",
		[ENOPROTOOPT] = "ENOPROTOOPT", [EPROTONOSUPPORT] = "EPROTONOSUPPORT", [EOPNOTSUPP] = "EOPNOTSUPP",
	};
	static char number[16];

	if (error >= 0 && (size_t)error < sizeof(names) / sizeof(names[0]) && names[error])
		return names[error];
	(void)snprintf(number, sizeof(number), "errno %d", error);
	return number;
}

long read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t n = 0;
	ssize_t r = 1;

	if (fd < 0)
		return -errno;
	while (n < size - 1 && r > 0) {
		r = read(fd, text + n, size - 1 - n);
		n += r > 0 ? (size_t)r : 0;
	}
	text[n] = '\0';
	r = r < 0 && n == 0 ? -errno : (ssize_t)n;
	(void)close(fd);
	return r;
}

bool is_init_ours(void)
{
	char comm[32];

	return read_text("/proc/1/comm", comm, sizeof(comm)) > 0 && strncmp(comm, "carrel-init", 11) == 0;
}

static enum verdict verdict_of(int status)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status) <= UNTRIED ? (enum verdict)WEXITSTATUS(status) : UNTRIED;
	if (WTERMSIG(status) == SIGSYS)
		return harmless("killed by SIGSYS");
	return untried("ended by signal %d", WTERMSIG(status));
}

enum verdict in_child(enum verdict (*f)(const void *), const void *arg)
{
	int status = 0;
	pid_t pid = fork();

	if (pid < 0)
		return untried("fork: %s", errno_name(errno));
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)alarm(ATTACK_DEADLINE_S);
		_exit(f(arg));
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return untried("wait: %s", errno_name(errno));
	return verdict_of(status);
}

static int writable_in(const char *dir, char first[256], int depth)
{
	DIR *d = depth < 12 ? opendir(dir) : NULL;
	struct dirent *entry;
	int n = 0;

	while (d && (entry = readdir(d))) {
		char path[512];
		int fd;

		if (entry->d_name[0] == '.' || snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) >= (int)sizeof(path))
			continue;
		if (entry->d_type == DT_DIR) {
			n += writable_in(path, first, depth + 1);
			continue;
		}
		fd = entry->d_type == DT_REG ? open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
		if (fd >= 0 && n++ == 0 && !*first)
			(void)snprintf(first, 256, "%.255s", path);
		if (fd >= 0)
			(void)close(fd);
	}
	if (d)
		(void)closedir(d);
	return n;
}

int walk_writable(const char *dir, char first[256])
{
	*first = '\0';
	return writable_in(dir, first, 0);
}

int become(unsigned uid)
{
	if (geteuid() != 0)
		return 0;
	return setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0 ? -errno : 0;
}

/* --- Running ----------------------------------------------------------------------------------------------------------------- */

static enum verdict run_forked(const void *arg)
{
	const struct attack *a = arg;

	return a->run();
}

static enum verdict run(const struct attack *a)
{
	static const char *const words[] = { "harmless", "succeeded", "untried" };
	enum verdict v;

	detail[0] = '\0';
	v = in_child(run_forked, a);
	(void)printf("%s %s %s\n", a->name, words[v], detail);
	(void)fflush(stdout);
	return v;
}

static const struct attack *find(const char *name)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct attack *a = tables[i]; a->name; a++)
			if (strcmp(a->name, name) == 0)
				return a;
	return NULL;
}

static int run_all(bool list)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct attack *a = tables[i]; a->name; a++)
			if (list)
				(void)printf("%s\t%s\t%s\n", a->name, a->flags & BY_NAME ? "by-name" : "always", a->answers);
			else if (!(a->flags & BY_NAME))
				(void)run(a);
	return 0;
}

/* What a copy of this program with setuid or file capabilities reports: its ids and its rights, as numbers. */
static int report_rights(void)
{
	char status[4096], *caps;

	caps = read_text("/proc/self/status", status, sizeof(status)) > 0 ? strstr(status, "CapEff:") : NULL;
	return geteuid() == 0 || !caps || strtoull(caps + 7, NULL, 16) ? SUCCEEDED : HARMLESS;
}

int main(int argc, char **argv)
{
	int worst = 0;

	if (argc == 2 && strcmp(argv[1], "--rights") == 0)
		return report_rights();
	detail = mmap(NULL, DETAIL_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (detail == MAP_FAILED)
		return UNTRIED;
	if (argc < 2 || strcmp(argv[1], "--list") == 0)
		return run_all(argc >= 2);
	for (int i = 1; i < argc; i++) {
		const struct attack *a = find(argv[i]);
		int v = a ? (int)run(a) : UNTRIED;

		if (!a)
			(void)printf("%s untried there is no such attack\n", argv[i]);
		worst = v > worst ? v : worst;
	}
	return worst;
}
