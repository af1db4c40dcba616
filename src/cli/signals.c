/* SPDX-License-Identifier: Apache-2.0 */
/* signals.c - Signals to `carrel run` as something to poll for
 *
 * Theory of operation. Before the sandbox starts the signals are blocked, and from then on read from a signalfd between two other
 * events: no handler ever runs, so there is no moment at which one could come too early. Whoever sends SIGTERM or closes the terminal wants the
 * whole tree gone: the loop returns, the sandbox is destroyed, and this process ends by the same signal, which is what a shell
 * looks at to stop a script. SIGPIPE is among them (and not ignored: an ignored signal would stay ignored in what we start); a reader of our
 * output that goes away ends the run like any other pipeline. What is blocked here is inherited by the children, whose first act is to reset it. */
#include "cli/signals.h"

#include <signal.h>
#include <sys/signalfd.h>

static const int fatal[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE };
/* SIGTTOU is blocked so that the terminal can be restored from the background. */
static const int terminal[] = { SIGWINCH, SIGTSTP, SIGCONT, SIGTTOU };

bool signals_fatal(int sig)
{
	for (size_t i = 0; i < ARRAY_SIZE(fatal); i++)
		if (fatal[i] == sig)
			return true;
	return false;
}

static bool is_ignored(int sig)
{
	struct sigaction old;

	return sigaction(sig, NULL, &old) == 0 && old.sa_handler == SIG_IGN;
}

int signals_open(enum signals_for what)
{
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(fatal); i++)
		if (!is_ignored(fatal[i]))
			(void)sigaddset(&set, fatal[i]);
	for (size_t i = 0; what == SIGNALS_TERMINAL && i < ARRAY_SIZE(terminal); i++)
		(void)sigaddset(&set, terminal[i]);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	(void)sigprocmask(SIG_BLOCK, &set, NULL); /* fails for a bad first argument only */
	return fd;
}

int signals_next(int fd)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	return (int)info.ssi_signo;
}

void signals_default(void)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL); /* as above */
}

_Noreturn void signals_die(int sig)
{
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
	signals_default();
	_exit(128 + sig); /* a default that does not end a process: none of fatal[] has one */
}
