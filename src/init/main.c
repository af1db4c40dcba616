/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - PID 1 of a sandbox: start-up and the loop
 *
 * Theory of operation. One process, one thread, one epoll. Runs as root of the sandbox's user namespace, in its root, with what capabilities
 * the warden left; the control socket is descriptor 3, and 0 to 2 are /dev/null. Everything that may take time happens in forked
 * children: whatever touches a path of the sandbox can meet a FIFO, a hung mount or a file of 10 GB, and init must not wait for any of them.
 *
 * The loop takes one event at a time. A second one in the same batch could name an object that the first one freed; a further
 * epoll_wait() costs 0.2 us and removes the question. Kinds of sources are a closed set, dispatched by one switch.
 *
 * Time is one timerfd on CLOCK_BOOTTIME, armed for the earliest deadline of anything; when it fires, everything that has deadlines is
 * asked. Setting the wall clock moves none of them.
 *
 * Signals: SIGCHLD is blocked and read from a signalfd. All others keep their default disposition and are not blocked, which for a PID 1
 * means that the kernel drops what comes from inside the namespace instead of queueing it. SIGPIPE and SIGXFSZ, which init's own writes
 * could raise where it is not PID 1 (tests), are ignored; children set them back.
 *
 * Init never exits by itself, with one exception: the control socket ends and CONFIG_DIE_WITH_OWNER was set. The kernel then kills
 * the whole namespace. */
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "init/internal.h"

#define CONTROL_FD 3 /* fixed between warden and init */

int source_open(struct init *in, struct source *s, enum source_kind kind, int fd, uint32_t events, void *owner)
{
	struct epoll_event ev = { .events = events, .data.ptr = s };

	*s = (struct source){ .kind = kind, .fd = fd, .events = events, .owner = owner };
	if (epoll_ctl(in->epoll, EPOLL_CTL_ADD, fd, &ev) == 0)
		return 0;
	s->fd = -EBADF;
	(void)close(fd); /* see close_p() */
	return -errno;
}

void source_set(struct init *in, struct source *s, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = s };

	if (s->fd < 0 || s->events == events)
		return;
	if (epoll_ctl(in->epoll, EPOLL_CTL_MOD, s->fd, &ev) == 0)
		s->events =
			events; /* a failure (-ENOMEM) leaves the old set, which is asked to change again next time */
}

void source_close(struct init *in, struct source *s)
{
	if (s->fd < 0)
		return;
	(void)epoll_ctl(in->epoll, EPOLL_CTL_DEL, s->fd, NULL); /* it is there: source_open() put it there */
	(void)close(take_fd(s->fd));                            /* see close_p() */
}

void init_wake_at(struct init *in, uint64_t ns)
{
	struct itimerspec when = { .it_value = { .tv_sec = (time_t)(ns / NSEC_PER_SEC),
						 .tv_nsec = (long)(ns % NSEC_PER_SEC) } };

	if (ns == 0 || (in->armed_ns != 0 && in->armed_ns <= ns))
		return;
	if (timerfd_settime(in->timer.fd, TFD_TIMER_ABSTIME, &when, NULL) == 0)
		in->armed_ns = ns;
}

static void timer_fired(struct init *in)
{
	uint64_t now = clock_ns();
	uint64_t count;

	(void)!read(in->timer.fd, &count, sizeof(count)); /* how often is of no interest: every deadline is looked at */
	in->armed_ns = 0;
	if (in->listen_ns != 0 && in->listen_ns <= now) {
		in->listen_ns = 0;
		source_set(in, &in->listen, EPOLLIN);
	}
	init_wake_at(in, in->listen_ns);
	init_wake_at(in, client_tick(in, now));
	init_wake_at(in, exec_tick(in, now));
}

static void child_changed(struct init *in)
{
	struct signalfd_siginfo info;

	(void)!read(in->signals.fd, &info, sizeof(info)); /* which child it was is asked of wait4(): signals coalesce */
	reap(in);
}

static void dispatch(struct init *in, struct source *s, uint32_t events)
{
	switch (s->kind) {
	case SOURCE_SIGNAL:
		child_changed(in);
		break;
	case SOURCE_TIMER:
		timer_fired(in);
		break;
	case SOURCE_LISTEN:
		client_accept(in);
		break;
	case SOURCE_CLIENT:
		client_readable(in, s->owner, events);
		break;
	case SOURCE_REPORT:
		exec_reported(in, s->owner);
		break;
	case SOURCE_STREAM:
		stream_pump(in, s->owner);
		break;
	case SOURCE_NUM:
		break;
	}
}

static void loop(struct init *in)
{
	for (;;) {
		struct epoll_event ev;
		int n = epoll_wait(in->epoll, &ev, 1, in->reap_more ? 0 : -1);

		if (n == 1)
			dispatch(in, ev.data.ptr, ev.events);
		if (in->reap_more)
			reap(in);
		if (in->sweep)
			client_sweep(in);
	}
}

/* 0, 1 and 2 must be open, or a pipe could land there and be taken for an exec's stdio. */
static void stdio_ensure(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		(void)close(fd); /* see close_p() */
}

static int signals_init(struct init *in)
{
	const uint64_t dfl[4] = { (uint64_t)(uintptr_t)SIG_DFL }; /* the kernel's struct sigaction: handler, flags, restorer, mask */
	struct sigaction ign = { .sa_handler = SIG_IGN };
	sigset_t set;
	int fd;

	/* What the starter ignored, its commands must not: past libc, which keeps three signals to itself. Refused for KILL and STOP. */
	for (int sig = 1; sig < NSIG; sig++)
		(void)sys_call4(__NR_rt_sigaction, sig, dfl, NULL, sizeof(uint64_t));
	(void)sigaction(SIGPIPE, &ign, NULL);     /* valid signals: cannot fail */
	(void)sigaction(SIGXFSZ, &ign, NULL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	return source_open(in, &in->signals, SOURCE_SIGNAL, fd, EPOLLIN, NULL);
}

static int loop_init(struct init *in)
{
	int fd;
	int r;

	in->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (in->epoll < 0)
		return -errno;
	r = signals_init(in);
	if (r < 0)
		return r;
	fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	return source_open(in, &in->timer, SOURCE_TIMER, fd, EPOLLIN, NULL);
}

int main(void)
{
	struct init in = {
		.listen = { .fd = -EBADF },
		.journal = -EBADF,
		.cgroup2 = -EBADF,
		.pids1 = -EBADF,
		.cpuacct1 = -EBADF,
		.lock = -EBADF,
	};

	stdio_ensure();
	(void)umask(022);
	(void)prctl(
		PR_SET_NAME,
		"carrel-init"); /* a valid pointer: cannot fail. Executed from a memfd, it would be named by a number */
	in.proc = sys_openat(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY, 0);
	in.pts = sys_openat(AT_FDCWD, "/dev/pts", O_PATH | O_DIRECTORY, 0);
	exec_limit(&in);
	if (loop_init(&in) < 0 || config_receive(&in, CONTROL_FD) < 0)
		return EXIT_FAILURE;
	loop(&in);
}
