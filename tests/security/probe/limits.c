/* SPDX-License-Identifier: Apache-2.0 */
/* limits.c - Taking more than the share: processes, memory, space, limits themselves
 *
 * Theory of operation. Each takes up to a bound that the test names, well below what would hurt a machine without limits, and says how far
 * it came. They end with the sandbox, so each wants one of its own. */
#include "probe.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long bound(const char *name)
{
	return fact(name) ? strtoul(fact(name), NULL, 10) : 0;
}

/* PROBE_FORKS processes that exist at one time. Ended by their parent's end. */
static enum verdict many_processes(void)
{
	unsigned long want = bound("PROBE_FORKS"), n = 0;
	int error = 0;

	while (n < want && !error) {
		pid_t pid = fork();

		if (pid == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			(void)pause();
			_exit(0);
		}
		error = pid < 0 ? errno : 0;
		n += pid > 0;
	}
	return n == want ? succeeded("%lu processes", n) : harmless("%lu processes, then %s", n, errno_name(error));
}

/* Touches PROBE_BYTES of memory. Where a limit holds, nobody is left to say so. */
static enum verdict much_memory(void)
{
	size_t want = bound("PROBE_BYTES");
	char *p = mmap(NULL, want, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return harmless("mmap: %s", errno_name(errno));
	for (size_t i = 0; i < want; i += 4096)
		p[i] = 1;
	return succeeded("%zu bytes", want);
}

/* PROBE_DIR and PROBE_BYTES: one file */
static enum verdict much_space(void)
{
	static char block[65536];
	unsigned long want = bound("PROBE_BYTES"), n = 0;
	char path[512];
	int fd;

	if (!fact("PROBE_DIR"))
		return untried("no PROBE_DIR");
	(void)snprintf(path, sizeof(path), "%s/probe-fill", fact("PROBE_DIR"));
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return untried("open %s: %s", path, errno_name(errno));
	memset(block, 'x', sizeof(block));
	while (n < want) {
		ssize_t r = write(fd, block, sizeof(block));

		if (r < 0)
			break;
		n += (unsigned long)r;
	}
	(void)unlink(path);
	return n >= want ? succeeded("%lu bytes", n) : harmless("%lu bytes, then %s", n, errno_name(errno));
}

/* PROBE_DIR and PROBE_FILES: empty files */
static enum verdict many_files(void)
{
	unsigned long want = bound("PROBE_FILES"), n = 0;
	char path[512];

	for (; n < want; n++) {
		int fd;

		(void)snprintf(path, sizeof(path), "%s/probe-%lu", fact("PROBE_DIR") ? fact("PROBE_DIR") : "/var/tmp", n);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			return harmless("%lu files, then %s", n, errno_name(errno));
		(void)close(fd);
	}
	return succeeded("%lu files", n);
}

static enum verdict raise_hard_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return untried("getrlimit");
	limit.rlim_max++;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? succeeded("open files: %lu", (unsigned long)limit.rlim_max) :
						       harmless("%s", errno_name(errno));
}

#define ROW(name_, answers_) { #name_, name_, BY_NAME, answers_ }
const struct attack limit_attacks[] = {
	ROW(many_processes, "fork bombs"),
	ROW(much_memory, "memory hogs"),
	ROW(much_space, "disk fill"),
	ROW(many_files, "inode fill"),
	{ "raise_hard_limit", raise_hard_limit, 0, "limits that are not limits" },
	{ NULL, NULL, 0, NULL },
};
