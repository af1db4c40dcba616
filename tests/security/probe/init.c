/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - Attacks on pid 1: reading it, tracing it, stopping it, starving it
 *
 * Theory of operation. Init holds the control socket and decides what happened; who owns it owns the result. All of this aims at pid 1,
 * whatever that is: without a namespace of its own it would be the machine's, so nothing here sends a signal or sets a limit unless
 * is_init_ours(). */
#include "probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define UNLESS_OURS                                                \
	do {                                                       \
		if (!is_init_ours())                               \
			return succeeded("pid 1 is not ours");     \
	} while (0)

static enum verdict ptrace_attach(void)
{
	UNLESS_OURS;
	if (ptrace(PTRACE_ATTACH, 1, NULL, NULL) < 0)
		return harmless("PTRACE_ATTACH: %s", errno_name(errno));
	(void)waitpid(1, NULL, __WALL); /* else it stays stopped, and who would end the sandbox? */
	(void)ptrace(PTRACE_DETACH, 1, NULL, NULL);
	return succeeded("attached to init");
}

static enum verdict ptrace_seize(void)
{
	UNLESS_OURS;
	if (ptrace(PTRACE_SEIZE, 1, NULL, NULL) < 0)
		return harmless("PTRACE_SEIZE: %s", errno_name(errno));
	return succeeded("seized init"); /* and let go by our end */
}

/* An address that init, a program at a fixed place, has mapped: its header. */
static enum verdict init_memory(void)
{
	char byte[4];
	struct iovec mine = { byte, sizeof(byte) }, its = { (void *)0x400000, sizeof(byte) };
	int fd = open("/proc/1/mem", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		fd = open("/proc/1/mem", O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return succeeded("/proc/1/mem opens");
	if (process_vm_readv(1, &mine, 1, &its, 1, 0) > 0)
		return succeeded("process_vm_readv works");
	if (errno != EPERM)
		return succeeded("process_vm_readv got as far as the address: %s", errno_name(errno));
	return process_vm_writev(1, &mine, 1, &its, 1, 0) > 0 ? succeeded("process_vm_writev works") : harmless("%s", errno_name(errno));
}

/* Numbers of descriptors may show, what they lead to must not. */
static bool leads_somewhere(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	char path[320], text[16];
	bool found = false;

	while (d && !found && (entry = readdir(d))) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		found = entry->d_name[0] != '.' && (readlink(path, text, sizeof(text)) > 0 || open(path, O_RDONLY | O_CLOEXEC) >= 0);
	}
	if (d)
		(void)closedir(d);
	return found;
}

static enum verdict init_files(void)
{
	static const char *const files[] = { "environ", "maps", "smaps", "auxv", "syscall", "stack", "io", "pagemap", "wchan", "personality" };
	static const char *const links[] = { "exe", "cwd", "root", "ns/mnt", "ns/user", "ns/net" };
	static const char *const dirs[] = { "fd", "fdinfo", "map_files" };
	char path[64], text[256];

	for (size_t i = 0; i < COUNT(files); i++) {
		(void)snprintf(path, sizeof(path), "/proc/1/%s", files[i]);
		if (read_text(path, text, sizeof(text)) > 0 && strcmp(text, "0") != 0)
			return succeeded("%s can be read", path);
	}
	for (size_t i = 0; i < COUNT(links); i++) {
		(void)snprintf(path, sizeof(path), "/proc/1/%s", links[i]);
		if (readlink(path, text, sizeof(text)) > 0 || open(path, O_RDONLY | O_CLOEXEC) >= 0)
			return succeeded("%s can be followed", path);
	}
	for (size_t i = 0; i < COUNT(dirs); i++) {
		(void)snprintf(path, sizeof(path), "/proc/1/%s", dirs[i]);
		if (leads_somewhere(path))
			return succeeded("%s leads somewhere", path);
	}
	return harmless("last: %s", errno_name(errno));
}

/* runc's CVE-2019-5736: the program that starts us, opened through /proc and overwritten */
static enum verdict init_program(void)
{
	static const int modes[] = { O_RDONLY, O_WRONLY, O_RDWR, O_PATH };
	int writable = 0;

	for (size_t i = 0; i < COUNT(modes); i++)
		if (open("/proc/1/exe", modes[i] | O_CLOEXEC) >= 0)
			return succeeded("/proc/1/exe opens");
	for (int pid = 1; pid < 64; pid++) {
		char path[32], name[256];
		ssize_t n;

		(void)snprintf(path, sizeof(path), "/proc/%d/exe", pid);
		n = readlink(path, name, sizeof(name) - 1);
		name[n > 0 ? n : 0] = '\0';
		writable += strstr(name, "carrel") && open(path, O_WRONLY | O_CLOEXEC) >= 0;
	}
	return writable ? succeeded("a program of Carrel opens for writing") : harmless("/proc/1/exe: %s", errno_name(errno));
}

static enum verdict init_descriptors(void)
{
	int pidfd = (int)syscall(434 /* pidfd_open */, 1L, 0L);

	if (pidfd < 0)
		return untried("pidfd_open: %s", errno_name(errno));
	for (long fd = 0; fd < 16; fd++)
		if (syscall(438 /* pidfd_getfd */, (long)pidfd, fd, 0L) >= 0 || errno == EBADF)
			return succeeded("descriptor %ld of init can be taken", fd);
	return harmless("pidfd_getfd: %s", errno_name(errno));
}

static char init_state(void)
{
	char text[512], *close;

	close = read_text("/proc/1/stat", text, sizeof(text)) > 0 ? strrchr(text, ')') : NULL;
	return close ? close[2] : '?';
}

/* Every signal, by every call that sends one. Reaching the end says that it lives; that it still works is for the test to see. */
static enum verdict signals_to_init(void)
{
	int pidfd = (int)syscall(434, 1L, 0L);

	UNLESS_OURS;
	for (int sig = 1; sig <= 64; sig++) {
		siginfo_t info = { .si_signo = sig, .si_code = SI_QUEUE };

		(void)kill(1, sig);
		(void)syscall(__NR_tgkill, 1L, 1L, (long)sig);
		(void)syscall(__NR_rt_sigqueueinfo, 1L, (long)sig, &info);
		(void)syscall(424 /* pidfd_send_signal */, (long)pidfd, (long)sig, NULL, 0L);
	}
	for (int i = 0; i < 20 && init_state() != 'T'; i++)
		(void)usleep(1000);
	return strchr("TtZX", init_state()) ? succeeded("init is in state %c", init_state()) : harmless("init is in state %c", init_state());
}

/* Its limits, set to what they are: with RLIMIT_CPU at 1 s the kernel itself kills init; with RLIMIT_NOFILE at 0 it is deaf. */
static enum verdict init_limits(void)
{
	static const int resources[] = { RLIMIT_CPU, RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_FSIZE };

	UNLESS_OURS;
	for (size_t i = 0; i < COUNT(resources); i++) {
		struct rlimit limit;

		if (prlimit(1, resources[i], NULL, &limit) == 0 && prlimit(1, resources[i], &limit, NULL) == 0)
			return succeeded("limit %d of init can be set", resources[i]);
	}
	return harmless("prlimit: %s", errno_name(errno));
}

/* Its share of the processors, set to what it is */
static enum verdict init_scheduling(void)
{
	struct sched_param param = { 0 };
	cpu_set_t cpus;

	UNLESS_OURS;
	if (setpriority(PRIO_PROCESS, 1, getpriority(PRIO_PROCESS, 1)) == 0)
		return succeeded("nice value of init can be set");
	if (sched_setscheduler(1, SCHED_OTHER, &param) == 0)
		return succeeded("scheduler of init can be set");
	if (sched_getaffinity(1, sizeof(cpus), &cpus) == 0 && sched_setaffinity(1, sizeof(cpus), &cpus) == 0)
		return succeeded("processors of init can be set");
	return harmless("%s", errno_name(errno));
}

static enum verdict init_oom_score(void)
{
	int fd;

	UNLESS_OURS;
	fd = open("/proc/1/oom_score_adj", O_WRONLY | O_CLOEXEC);
	return fd >= 0 ? succeeded("opens for writing") : harmless("%s", errno_name(errno));
}

/* Everything in sight. Init and the sender are left out by the kernel, the rest of the sandbox goes. */
static enum verdict kill_everything(void)
{
	UNLESS_OURS;
	(void)kill(-1, SIGKILL);
	(void)usleep(20000);
	return strchr("TtZX", init_state()) ? succeeded("init is in state %c", init_state()) : harmless("init is in state %c", init_state());
}

/* Deaf to everything that can be ignored, for ever: the test's time-out has to end it. */
static enum verdict signals_then_sleep(void)
{
	enum verdict v = signals_to_init();

	(void)alarm(0);
	for (int sig = 1; sig <= 64; sig++)
		(void)signal(sig, SIG_IGN);
	for (;;)
		(void)sleep(60);
	return v;
}

#define ROW(name_, answers_) { #name_, name_, 0, answers_ }
const struct attack init_attacks[] = {
	ROW(ptrace_attach, "ptrace of init"),
	ROW(ptrace_seize, "ptrace of init"),
	ROW(init_memory, "ptrace of init"),
	ROW(init_files, "ptrace of init"),
	ROW(init_program, "CVE-2019-5736"),
	ROW(init_descriptors, "CVE-2024-21626"),
	ROW(signals_to_init, "signals to init"),
	ROW(init_limits, "signals to init"),
	ROW(init_scheduling, "signals to init"),
	ROW(init_oom_score, "signals to init"),
	{ "kill_everything", kill_everything, BY_NAME, "signals to init" },
	{ "signals_then_sleep", signals_then_sleep, BY_NAME, "signals to init" },
	{ NULL, NULL, 0, NULL },
};
