/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - Between fork() and execve(): a child of init becomes a command
 *
 * Theory of operation. A copy of init in a process of its own, still root of the sandbox. Whatever needs a path of the sandbox happens here,
 * where waiting for ever costs one exec and its time-out. The order:
 *
 *  1. own session, own cgroups         first, so that all that follows is billed and can be killed as this exec
 *  2. terminal or stdio at 0 to 2      then nothing but the report pipe (3) and the go pipe (4) stays open: a held child must not
 *                                      keep other execs' pipes open
 *  3. limits, then "/"                 no inherited directory can be outside of the root
 *  4. user and groups                  root keeps the capabilities of the bounding set, others have none from here on
 *  5. the working directory            as that user; the kernel says "(unreachable)" for one outside of the root (CVE-2024-21626)
 *  6. signals, Landlock, seccomp gate
 *  7. HELD and waiting for a byte      with every restriction in force, so that a receipt can be read from /proc
 *  8. execve() along PATH
 *
 * A failure is one struct report on the pipe. Success is the pipe's end of file, since its descriptor is close-on-exec. ENOEXEC does not fall back
 * to a shell: what a file without a known format means is not for us to guess. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/sys.h"
#include "init/internal.h"

#define CHILD_REPORT 3
#define CHILD_GO 4
#define CHILD_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" /* what docker gives */
#define CHILD_TERM "xterm"
#define CHILD_EXIT 127 /* nobody sees it: a report came first */
/* Bytes of a script's first line that name its interpreter: BINPRM_BUF_SIZE (include/uapi/linux/binfmts.h). */
#define SCRIPT_LINE_MAX 256

/* --- 1, 2: session, groups, descriptors -------------------------------------------------------------------------------------- */

/* The slave of the exec's pty becomes its terminal. By TIOCGPTPEER, so that no name under /dev/pts is trusted. */
static int child_terminal(const struct child *c, struct err *e)
{
	int slave = sys_ioctl(c->master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	int r = slave;

	if (r >= 0)
		r = sys_ioctl(slave, TIOCSCTTY, 0);
	for (int fd = 0; fd <= STDERR_FILENO && r >= 0; fd++)
		r = sys_dup3(slave, fd, 0);
	return r < 0 ? err_sys(e, r, "start: give the command its terminal") : 0;
}

static int child_stdio(const struct child *c, struct err *e)
{
	if (c->master >= 0)
		return child_terminal(c, e);
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		int r = c->stdio[fd] >= 0 ? sys_dup3(c->stdio[fd], fd, 0) : 0;

		if (r < 0)
			return err_sys(e, r, "start: give the command its stream %d", fd);
	}
	return 0;
}

/* Move the two pipes to their fixed places and close everything else. The sources are above them: 3 is init's control socket. */
static int child_descriptors(struct child *c, struct err *e)
{
	int last = CHILD_REPORT;
	int r = sys_dup3(c->report, CHILD_REPORT, O_CLOEXEC);

	if (r >= 0) {
		c->report = CHILD_REPORT;
		if (c->go >= 0 && c->go != CHILD_GO)
			r = sys_dup3(c->go, CHILD_GO, O_CLOEXEC);
		if (c->go >= 0)
			last = c->go = CHILD_GO;
	}
	if (r >= 0)
		r = sys_close_range((unsigned)last + 1, ~0U, 0);
	return r < 0 ? err_sys(e, r, "start: close init's descriptors") : 0;
}

/* --- 3: limits --------------------------------------------------------------------------------------------------------------- */

static const char *const limit_names[] = {
	[RLIMIT_CPU] = "cpu",           [RLIMIT_FSIZE] = "fsize",
	[RLIMIT_DATA] = "data",         [RLIMIT_STACK] = "stack",
	[RLIMIT_CORE] = "core",         [RLIMIT_RSS] = "rss",
	[RLIMIT_NPROC] = "nproc",       [RLIMIT_NOFILE] = "nofile",
	[RLIMIT_MEMLOCK] = "memlock",   [RLIMIT_AS] = "as",
	[RLIMIT_LOCKS] = "locks",       [RLIMIT_SIGPENDING] = "sigpending",
	[RLIMIT_MSGQUEUE] = "msgqueue", [RLIMIT_NICE] = "nice",
	[RLIMIT_RTPRIO] = "rtprio",     [15 /* RLIMIT_RTTIME */] = "rttime",
};
_Static_assert(ARRAY_SIZE(limit_names) == MSG_RLIMITS_MAX, "limit_names[] misses a resource");

/* The kernel's own form (RLIM64_INFINITY is UINT64_MAX, as on the wire); libc's differs between libraries. */
struct limit64 {
	uint64_t soft, hard;
};

static int child_limit(uint32_t resource, uint64_t soft, uint64_t hard, struct err *e)
{
	struct limit64 want = { soft, hard }, now = { 0, 0 };
	int r = (int)sys_call4(__NR_prlimit64, 0, resource, &want, NULL);

	if (r >= 0)
		return 0;
	(void)sys_call4(__NR_prlimit64, 0, resource, NULL, &now); /* for the hint only */
	r = err_sys(e, r, "set ulimit %s to %llu:%llu", limit_names[resource], (unsigned long long)soft,
		    (unsigned long long)hard);
	return err_hint(e, r, "at most %llu is allowed here", (unsigned long long)now.hard);
}

static int child_limits(const struct child *c, struct err *e)
{
	/* Init raised its own; commands start with what it was given. */
	int r = child_limit(RLIMIT_NOFILE, c->in->nofile_soft, c->in->nofile_hard, e);

	for (uint32_t i = 0; i < c->start->num_rlimits && r == 0; i++)
		r = child_limit(c->start->rlimits[i].resource, c->start->rlimits[i].soft, c->start->rlimits[i].hard, e);
	return r;
}

/* --- 4, 5: user, working directory ------------------------------------------------------------------------------------------- */

static const char *env_find(const char *const *env, const char *name)
{
	const char *value = NULL;

	for (; *env; env++) {
		const char *rest = str_starts(*env, name);

		if (rest && *rest == '=')
			value = rest + 1; /* a later one wins */
	}
	return value;
}

/* Root with everything given needs no look at /etc/passwd, which is most execs. */
static int child_find_user(const struct child *c, struct user *u, struct err *e)
{
	const struct msg_start *m = c->start;

	if (m->user[0] == '\0' && m->cwd[0] != '\0' && env_find(m->env, "HOME")) {
		*u = (struct user){ .home = "/" };
		return 0;
	}
	return user_find(m->user, u, e);
}

/*
 * Give the command's own streams to its user, or "echo > /dev/stdout" fails: it opens the pipe or terminal again, by name. Descriptors that
 * a client handed in are not ours to change.
 */
static void child_own_stdio(const struct child *c, const struct user *u)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (c->master >= 0 || c->own[fd])
			(void)!fchown(fd, u->uid, (gid_t)-1); /* without it the streams themselves still work */
	if (c->master >= 0)
		(void)fchmod(0, 0620); /* as grantpt(3); likewise */
}

/* True if this user namespace forbids setgroups(), as one does that an ordinary user made with a single id. */
static bool groups_are_denied(void)
{
	char text[16];

	return fd_read_file_at(AT_FDCWD, "/proc/self/setgroups", text, sizeof(text)) > 0 && str_starts(text, "deny");
}

static int child_become(const struct child *c, const struct user *u, struct err *e)
{
	int r;

	if (u->uid != 0)
		child_own_stdio(c, u);
	r = sys_setgroups(u->num_groups, u->groups);
	if (r == -EPERM && groups_are_denied())
		r = 0; /* there is no group to take or to leave */
	if (r >= 0)
		r = sys_setresgid(u->gid, u->gid, u->gid);
	if (r >= 0)
		r = sys_setresuid(u->uid, u->uid, u->uid);
	if (r >= 0)
		return 0;
	if (r == -EINVAL) {
		r = err_set(e, ERR_INVALID, "run as user %u, group %u: the sandbox does not have these ids", u->uid,
			    u->gid);
		return err_hint(e, r, "/proc/self/uid_map in the sandbox shows which ids it has");
	}
	return err_sys(e, r, "run as user %u, group %u", u->uid, u->gid);
}

/* The kernel writes "(unreachable)" before a directory that is not below the root: one that a leaked descriptor led to. */
static int child_check_cwd(const char *cwd, struct err *e)
{
	char path[MSG_PATH_MAX + 16];
	long n = sys_call2(__NR_getcwd, path, sizeof(path));

	if (n < 0)
		return err_sys(e, (int)n, "start in directory '%s'", cwd);
	if (path[0] != '/')
		return err_set(e, ERR_DENIED, "start in directory '%s': it is outside of the sandbox", cwd);
	return 0;
}

static int child_chdir(const struct child *c, const struct user *u, struct err *e)
{
	const char *cwd = c->start->cwd;
	int r;

	if (cwd[0] == '\0') {
		if (sys_chdir(u->home) < 0)
			return 0; /* a home that is not there: "/", where we are */
		return child_check_cwd(u->home, e);
	}
	r = sys_chdir(cwd);
	if (r == -ENOENT || r == -ENOTDIR) { /* NOT_FOUND would mean the program */
		r = err_set(e, ERR_INVALID, "start in directory '%s': %s", cwd, err_errno_text(-r));
		return err_hint(e, r, "make it first, or give another --workdir");
	}
	if (r < 0)
		return err_sys(e, r, "start in directory '%s'", cwd);
	return child_check_cwd(cwd, e);
}

/* --- 6, 7: signals, restrictions, hold --------------------------------------------------------------------------------------- */

static void child_signals(void)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	uint64_t none = 0;

	(void)sigaction(SIGPIPE, &dfl, NULL); /* what main() ignored; valid signals: cannot fail */
	(void)sigaction(SIGXFSZ, &dfl, NULL);
	(void)sys_rt_sigprocmask(SIG_SETMASK, &none, NULL); /* a valid set: cannot fail */
}

static void child_hold(const struct child *c)
{
	uint32_t held = REPORT_HELD;
	char byte;
	ssize_t n;

	if (fd_write_full(c->report, &held, sizeof(held)) < 0)
		sys_exit(CHILD_EXIT);
	do
		n = sys_read(c->go, &byte, 1);
	while (n == -EINTR);
	if (n != 1)
		sys_exit(CHILD_EXIT); /* init is gone */
}

/* --- 8: execve() ------------------------------------------------------------------------------------------------------------- */

/* The program of a "#!" line, or NULL if @path has none. */
static const char *script_interpreter(const char *path, char line[SCRIPT_LINE_MAX])
{
	auto_close int fd = sys_openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	ssize_t n = fd >= 0 ? sys_read(fd, line, SCRIPT_LINE_MAX - 1) : -1;
	char *p = line + 2;

	if (n < 3 || line[0] != '#' || line[1] != '!')
		return NULL;
	line[n] = '\0';
	p += strspn(p, " \t");
	p[strcspn(p, " \t\r\n")] = '\0';
	return p;
}

/* ENOENT with a file that is there: something that the file needs is missing. */
static int exec_needs(const char *path, const char *name, struct err *e)
{
	char line[SCRIPT_LINE_MAX];
	const char *interpreter = script_interpreter(path, line);
	int r;

	if (interpreter)
		r = err_set(e, ERR_NOT_EXECUTABLE, "run '%s': its first line asks for '%s', which is not there", name,
			    interpreter);
	else
		r = err_set(e, ERR_NOT_EXECUTABLE,
			    "run '%s': the file is there, but the loader that it was linked for is not", name);
	return err_hint(e, r, "install the missing program in the sandbox's root file system");
}

static int exec_failed(int r, const char *path, const char *name, struct err *e)
{
	struct stat st;

	switch (-r) {
	case ENOENT:
	case ENOTDIR:
		if (stat(path, &st) == 0)
			return exec_needs(path, name, e);
		err_sys(e, r, "run '%s'", name);
		return err_hint(e, r, "paths are those inside of the sandbox");
	case EACCES:
		r = err_set(e, ERR_NOT_EXECUTABLE, "run '%s': %s", name,
			    stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? "is a directory" : "permission denied");
		return err_hint(
			e, r, "it needs to be a file that its user may execute (chmod +x), on a mount without noexec");
	case ENOEXEC:
		r = err_set(e, ERR_NOT_EXECUTABLE, "run '%s': %s", name, err_errno_text(ENOEXEC));
		return err_hint(e, r, "a script needs a first line such as #!/bin/sh");
	case E2BIG:
		err_sys(e, r, "run '%s'", name);
		return err_hint(e, r,
				"pass less by arguments and environment, or raise --ulimit stack; a file or stdin has "
				"no limit");
	default:
		return err_sys(e, r, "run '%s'", name);
	}
}

static int exec_path(const char *path, const struct msg_start *m, char *const *env)
{
	return (int)sys_call3(__NR_execve, path, m->argv, env);
}

/* Try each directory of @dirs. Like execvp(3), but an unknown format ends the search. */
static int exec_search(const struct msg_start *m, char *const *env, const char *dirs, struct err *e)
{
	const char *name = m->argv[0];
	char path[MSG_PATH_MAX], denied[MSG_PATH_MAX] = "";
	int r;

	for (const char *at = dirs; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
		size_t len = strcspn(at, ":");
		int n = snprintf(path, sizeof(path), "%.*s%s%s", (int)MIN(len, sizeof(path)), at, len > 0 ? "/" : "",
				 name);

		if (n < 0 || (size_t)n >= sizeof(path))
			continue;
		r = exec_path(path, m, env);
		if (r == -EACCES && !denied[0])
			memcpy(denied, path, (size_t)n + 1);
		else if (r == -ENOENT && faccessat(AT_FDCWD, path, F_OK, 0) == 0)
			return exec_failed(r, path, name, e);
		else if (r != -EACCES && r != -ENOENT && r != -ENOTDIR && r != -ENAMETOOLONG && r != -ELOOP)
			return exec_failed(r, path, name, e);
	}
	if (denied[0])
		return exec_failed(-EACCES, denied, name, e);
	r = err_set(e, ERR_NOT_FOUND, "run '%s': no such program in PATH (%.128s)", name, dirs);
	return err_hint(e, r, "check the name, or install it in the sandbox's root file system");
}

/* PATH, HOME and, for a terminal, TERM are added when the client gave none. */
static int child_env(const struct child *c, const struct user *u, char ***ret, struct err *e)
{
	const char *const *env = c->start->env;
	static char path[] = "PATH=" CHILD_PATH, term[] = "TERM=" CHILD_TERM;
	char *home;
	char **v;
	size_t n = 0;

	while (env[n])
		n++;
	v = calloc(n + 4, sizeof(*v));
	home = malloc(sizeof("HOME=") + strlen(u->home));
	if (!v || !home)
		return err_sys(e, -ENOMEM, "start: make the environment");
	memcpy(v, env, n * sizeof(*v));
	memcpy(home, "HOME=", 5);
	memcpy(home + 5, u->home, strlen(u->home) + 1);
	if (!env_find(env, "PATH"))
		v[n++] = path;
	if (!env_find(env, "HOME"))
		v[n++] = home;
	if (c->master >= 0 && !env_find(env, "TERM"))
		v[n++] = term;
	*ret = v; /* freed by execve() or exit */
	return 0;
}

static int child_exec(const struct child *c, char *const *env, struct err *e)
{
	const struct msg_start *m = c->start;
	const char *dirs = env_find((const char *const *)env, "PATH");
	int r;

	if (m->argv[0][0] == '\0') {
		r = err_set(e, ERR_NOT_FOUND, "run '': the name of the program is empty");
		return err_hint(e, r, "give a program after the options");
	}
	if (!strchr(m->argv[0], '/'))
		return exec_search(m, env, dirs, e);
	r = exec_path(m->argv[0], m, env);
	return exec_failed(r, m->argv[0], m->argv[0], e);
}

static int child_steps(struct child *c, struct err *e)
{
	struct user u;
	char **env = NULL;
	int r = 0;

	(void)sys_call0(__NR_setsid); /* cannot fail: a new child leads no group */
	if (c->grouped || c->in->num_tasks1 > 0)
		r = group_enter(c->in, c->start->exec, e);
	if (r == 0)
		r = child_stdio(c, e);
	if (r == 0)
		r = child_descriptors(c, e);
	if (r == 0)
		r = child_limits(c, e);
	if (r == 0 && sys_chdir("/") < 0)
		r = err_set(e, ERR_SYSTEM, "start: enter '/'");
	if (r == 0)
		r = child_find_user(c, &u, e);
	if (r == 0)
		r = child_become(c, &u, e);
	if (r == 0)
		r = child_chdir(c, &u, e);
	if (r == 0)
		r = child_env(c, &u, &env, e);
	if (r < 0)
		return r;
	child_signals();
	r = confine_exec(c->in, e);
	if (r < 0)
		return r;
	if (c->go >= 0)
		child_hold(c);
	return child_exec(c, env, e);
}

void child_run(const struct child *c)
{
	struct child mine = *c;
	struct report rep = { .kind = REPORT_FAILED };

	(void)child_steps(&mine, &rep.e);             /* returns only when it failed */
	(void)!write(mine.report, &rep, sizeof(rep)); /* nobody else to tell */
	sys_exit(CHILD_EXIT);
}
