/* SPDX-License-Identifier: Apache-2.0 */
/* inject.c - Run a program under ptrace; make its Nth system call fail, or kill somebody right before it
 *
 *     inject REPORT SECONDS trace COMMAND...
 *     inject REPORT SECONDS fail ROLE:N:ERRNO COMMAND...
 *     inject REPORT SECONDS kill ROLE:N:TARGETS COMMAND...
 *
 * With INJECT_UID in the environment COMMAND runs as that user and group.
 *
 * Theory of operation. Every process that COMMAND makes is traced from its first instruction on, and has a role, one letter:
 *
 *     P  the program itself
 *     U  what P clones on its own memory without a mount namespace: the undertaker, and who holds the map of a volume's ids
 *     J  what P or U clones with a mount namespace: the jail's child, until it executes init
 *     I  init, from that execve() on
 *     H  any other child of P until its execve(): a helper
 *     C  a child of init until its execve(): a command being started
 *     X  everything else: the commands
 *
 * System calls are counted for each role apart: tasks run side by side, so only their own order is the same in every run. A call that fails
 * is not executed (getpid() is, in its place: seccomp lets that pass everywhere), except close() and munmap(), which
 * Linux carries out whatever they return. Some calls are never made to fail; `never` says why.
 *
 * We end when nobody whom we trace is left, which proves that no process is; or after SECONDS, counted from the fault, with a list of those who
 * are left ("hung"). Orphans come to us (subreaper), so that a zombie would be seen, too. The report has one fact a line. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TASKS_MAX 4096 /* a fork bomb is not what this is for */
#define PATH_SIZE 256

enum action { ACTION_TRACE, ACTION_FAIL, ACTION_KILL };

struct task {
	pid_t pid;
	pid_t parent;	   /* who cloned it */
	char role;	   /* 0: its parent has not been heard yet */
	bool waiting;	   /* it stopped before it had a role */
	uint64_t flags;	   /* of the clone it is in */
	unsigned count;	   /* system calls so far */
	bool fail_at_exit; /* this call's result is replaced */
};

static struct {
	enum action action;
	char role;
	unsigned n;
	int error;
	const char *targets;
	bool hit;
	struct timespec hit_at;
} fault;

static struct task tasks[TASKS_MAX];
static size_t num_tasks;
static FILE *report;
static unsigned deadline_s;
static volatile sig_atomic_t time_is_up;

/* Calls whose failure no program can meet, or that cannot fail the way they are called. */
static const struct {
	long nr;
	const char *why;
} never[] = {
	{ SYS_exit, "does not return" },
	{ SYS_exit_group, "does not return" },
	{ SYS_rt_sigreturn, "does not return" },
	{ SYS_execve, "of the program or the command: not Carrel's" },
	{ SYS_arch_prctl, "the C library's start-up, which dies without it" },
	{ SYS_set_tid_address, "cannot fail" },
	{ SYS_rt_sigprocmask, "cannot fail with valid pointers" },
	{ SYS_rt_sigaction, "cannot fail for a signal that may be changed" },
	{ SYS_getpid, "cannot fail" },
	{ SYS_geteuid, "cannot fail" },
	{ SYS_getegid, "cannot fail" },
	{ SYS_getuid, "cannot fail" },
	{ SYS_umask, "cannot fail" },
	{ SYS_clock_gettime, "cannot fail for a clock that exists" },
	{ SYS_pidfd_send_signal, "SIGKILL to a child that was not reaped cannot fail" },
	{ SYS_restart_syscall, "the kernel's own" },
};

static _Noreturn void die(const char *what)
{
	(void)fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
	exit(99);
}

static const char *never_why(long nr, const uint64_t *args)
{
	int op = (int)args[1] & FUTEX_CMD_MASK;

	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		if (never[i].nr == nr)
			return never[i].why;
	if (nr == SYS_futex && op == FUTEX_WAKE)
		return "cannot fail for a word that is mapped";
	if (nr == SYS_wait4 && args[2] & WNOHANG)
		return "cannot fail but for want of children";
	if (nr == SYS_prlimit64 && args[2] == 0)
		return "cannot fail with valid pointers";
	if (nr == SYS_prctl && (args[0] == PR_SET_PDEATHSIG || args[0] == PR_GET_DUMPABLE || args[0] == PR_SET_NAME))
		return "cannot fail for values that exist";
	return NULL;
}

/* Linux does what these ask for also when they return an error. */
static bool is_done_anyway(long nr)
{
	return nr == SYS_close || nr == SYS_munmap;
}

/* --- Tasks --- */

static struct task *task_find(pid_t pid)
{
	for (size_t i = 0; i < num_tasks; i++)
		if (tasks[i].pid == pid)
			return &tasks[i];
	return NULL;
}

static struct task *task_add(pid_t pid)
{
	struct task *t = task_find(pid);

	if (t)
		return t;
	if (num_tasks == TASKS_MAX) {
		errno = E2BIG;
		die("count processes");
	}
	t = &tasks[num_tasks++];
	*t = (struct task){ .pid = pid };
	return t;
}

static void task_remove(struct task *t)
{
	*t = tasks[--num_tasks];
}

static char role_of_child(const struct task *parent)
{
	switch (parent->role) {
	case 'P':
	case 'U':
		if (parent->flags & CLONE_NEWNS)
			return 'J';
		return parent->flags & CLONE_VM && !(parent->flags & CLONE_VFORK) ? 'U' : 'H';
	case 'I':
		return 'C';
	case 'H':
		return 'H';
	default:
		return 'X';
	}
}

static void copy_from(pid_t pid, uint64_t address, void *to, size_t size)
{
	struct iovec local = { to, size }, remote = { (void *)(uintptr_t)address, size };

	memset(to, 0, size);
	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) < 0 && size > 64) /* near the end of a mapping */
		copy_from(pid, address, to, 64);
}

/* --- One system call --- */

/* Directories that are made are where leftovers have names. */
static void note_mkdir(const struct task *t, const struct __ptrace_syscall_info *info)
{
	char path[PATH_SIZE];
	uint64_t at;

	if (info->entry.nr == SYS_mkdirat)
		at = info->entry.args[1];
	else if (info->entry.nr == SYS_mkdir)
		at = info->entry.args[0];
	else
		return;
	copy_from(t->pid, at, path, sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	if (strchr("PUJH", t->role))
		(void)fprintf(report, "mkdir %s\n", path);
}

static void note_clone(struct task *t, const struct __ptrace_syscall_info *info)
{
	if (info->entry.nr == SYS_clone3)
		copy_from(t->pid, info->entry.args[0], &t->flags, sizeof(t->flags));
	else if (info->entry.nr == SYS_clone)
		t->flags = info->entry.args[0];
	else if (info->entry.nr == SYS_vfork)
		t->flags = CLONE_VM | CLONE_VFORK;
	else if (info->entry.nr == SYS_fork)
		t->flags = 0;
}

static void start_deadline(void)
{
	const struct itimerval once = { .it_value = { .tv_sec = deadline_s } };

	(void)setitimer(ITIMER_REAL, &once, NULL);
	(void)clock_gettime(CLOCK_MONOTONIC, &fault.hit_at);
}

static void kill_targets(void)
{
	for (const char *role = fault.targets; *role; role++) {
		for (size_t i = 0; i < num_tasks; i++) {
			if (tasks[i].role != *role)
				continue;
			(void)fprintf(report, "killed %c %d\n", *role, (int)tasks[i].pid);
			(void)kill(tasks[i].pid, SIGKILL);
		}
	}
}

static void make_fail(struct task *t, long nr)
{
	struct user_regs_struct regs;

	t->fail_at_exit = true;
	if (is_done_anyway(nr))
		return;
	if (ptrace(PTRACE_GETREGS, t->pid, NULL, &regs) < 0)
		return; /* it died */
	regs.orig_rax = SYS_getpid;
	(void)ptrace(PTRACE_SETREGS, t->pid, NULL, &regs);
}

static void enter_call(struct task *t, const struct __ptrace_syscall_info *info)
{
	const uint64_t *args = (const uint64_t *)info->entry.args;
	long nr = (long)info->entry.nr;
	const char *why;

	t->count++;
	note_clone(t, info);
	note_mkdir(t, info);
	if (fault.action == ACTION_TRACE) {
		why = never_why(nr, args);
		(void)fprintf(report, "call %c %u %ld %s\n", t->role, t->count, nr, why ? why : "-");
		return;
	}
	if (fault.hit || t->role != fault.role || t->count != fault.n)
		return;
	fault.hit = true;
	why = fault.action == ACTION_FAIL ? never_why(nr, args) : NULL;
	(void)fprintf(report, "hit %c %u %ld %s\n", t->role, t->count, nr, why ? why : "-");
	start_deadline();
	if (fault.action == ACTION_KILL)
		kill_targets();
	else if (!why)
		make_fail(t, nr);
}

static void leave_call(struct task *t)
{
	struct user_regs_struct regs;

	if (!t->fail_at_exit)
		return;
	t->fail_at_exit = false;
	if (ptrace(PTRACE_GETREGS, t->pid, NULL, &regs) < 0)
		return;
	regs.rax = (uint64_t)-fault.error;
	(void)ptrace(PTRACE_SETREGS, t->pid, NULL, &regs);
}

static void at_call(struct task *t)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, t->pid, sizeof(info), &info) < 0)
		return; /* it died */
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
		enter_call(t, &info);
	else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
		leave_call(t);
}

/* --- Stops --- */

static void go_on(pid_t pid, int sig)
{
	(void)ptrace(PTRACE_SYSCALL, pid, NULL, sig); /* it may have died */
}

static void at_clone(struct task *t)
{
	unsigned long pid = 0;
	struct task *child;

	if (ptrace(PTRACE_GETEVENTMSG, t->pid, NULL, &pid) < 0)
		return;
	child = task_add((pid_t)pid);
	child->parent = t->pid;
	child->role = role_of_child(t);
	(void)fprintf(report, "task %c %d\n", child->role, (int)child->pid);
	if (child->waiting) {
		child->waiting = false;
		go_on(child->pid, 0);
	}
}

static void at_exec(struct task *t)
{
	if (t->role == 'J')
		t->role = 'I';
	else if (t->role == 'C' || t->role == 'H')
		t->role = 'X';
	t->count = 0;
	if (t->role == 'P')
		(void)fprintf(report, "exec\n");
}

static void at_stop(struct task *t, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;

	if (event == PTRACE_EVENT_STOP) {
		if (sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU) {
			(void)ptrace(PTRACE_LISTEN, t->pid, NULL, NULL);
			return;
		}
		if (!t->role) {
			t->waiting = true; /* until at_clone() of its parent */
			return;
		}
		sig = 0;
	} else if (event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK) {
		at_clone(t);
		sig = 0;
	} else if (event == PTRACE_EVENT_EXEC) {
		at_exec(t);
		sig = 0;
	} else if (sig == (SIGTRAP | 0x80)) {
		at_call(t);
		sig = 0;
	}
	go_on(t->pid, sig);
}

static void report_hung(void)
{
	for (size_t i = 0; i < num_tasks; i++) {
		char path[64], text[256] = "?";
		FILE *f;

		(void)snprintf(path, sizeof(path), "/proc/%d/syscall", (int)tasks[i].pid);
		f = fopen(path, "re");
		if (f) {
			if (!fgets(text, sizeof(text), f))
				text[0] = '\0';
			text[strcspn(text, "\n")] = '\0';
			(void)fclose(f);
		}
		(void)fprintf(report, "hung %c %d in %s\n", tasks[i].role ? tasks[i].role : '?', (int)tasks[i].pid, text);
	}
	for (size_t i = 0; i < num_tasks; i++)
		(void)kill(tasks[i].pid, SIGKILL);
}

static void on_alarm(int sig)
{
	(void)sig;
	time_is_up = 1;
}

static void watch(pid_t program)
{
	bool reported = false;
	int status;

	for (;;) {
		pid_t pid = waitpid(-1, &status, __WALL);
		struct task *t;

		if (time_is_up && !reported) {
			reported = true;
			report_hung();
		}
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			return; /* ECHILD: nobody is left */
		t = task_add(pid);
		if (WIFSTOPPED(status)) {
			at_stop(t, status);
			continue;
		}
		if (pid == program)
			(void)fprintf(report, "ended %d\n", status);
		task_remove(t);
	}
}

static void become(const char *user)
{
	unsigned id = (unsigned)strtoul(user, NULL, 10);

	if (setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
		die("change the user");
}

static pid_t launch(char *const argv[])
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			     PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	const char *user = getenv("INJECT_UID");
	pid_t pid = fork();
	int status;

	if (pid < 0)
		die("fork");
	if (pid == 0) {
		if (user)
			become(user);
		(void)raise(SIGSTOP);
		(void)execv(argv[0], argv);
		die(argv[0]);
	}
	if (waitpid(pid, &status, WUNTRACED) < 0 || ptrace(PTRACE_SEIZE, pid, NULL, options) < 0)
		die("trace");
	task_add(pid)->role = 'P';
	(void)kill(pid, SIGCONT);
	return pid;
}

static void read_fault(char *words)
{
	char *role = strtok(words, ":"), *n = strtok(NULL, ":"), *what = strtok(NULL, ":");

	if (!role || !n || !what) {
		errno = EINVAL;
		die("read ROLE:N:ERRNO or ROLE:N:TARGETS");
	}
	fault.role = role[0];
	fault.n = (unsigned)strtoul(n, NULL, 10);
	fault.error = (int)strtol(what, NULL, 10);
	fault.targets = what;
}

int main(int argc, char *argv[])
{
	struct sigaction alarm_action = { .sa_handler = on_alarm };
	struct timespec now;
	pid_t program;

	if (argc < 5) {
		(void)fprintf(stderr, "usage: inject REPORT SECONDS trace|fail|kill [ROLE:N:WHAT] COMMAND...\n");
		return 99;
	}
	report = fopen(argv[1], "we");
	if (!report)
		die(argv[1]);
	deadline_s = (unsigned)strtoul(argv[2], NULL, 10);
	fault.action = strcmp(argv[3], "fail") == 0 ? ACTION_FAIL : strcmp(argv[3], "kill") == 0 ? ACTION_KILL : ACTION_TRACE;
	argv += 4;
	if (fault.action != ACTION_TRACE)
		read_fault(*argv++);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	(void)sigaction(SIGALRM, &alarm_action, NULL);
	start_deadline(); /* also for what comes before the fault */
	program = launch(argv);
	watch(program);
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	(void)fprintf(report, "gone %" PRId64 "\n",
		      (int64_t)(now.tv_sec - fault.hit_at.tv_sec) * 1000 + (now.tv_nsec - fault.hit_at.tv_nsec) / 1000000);
	return fclose(report) == 0 ? 0 : 99;
}
