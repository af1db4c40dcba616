/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.c - The life of a sandbox: start, find again, destroy
 *
 * Theory of operation. Runs in the process that uses the library. Order of a start, each step undone by carrel_destroy() from any point:
 *
 *  1. the undertaker, which begins to make the network namespace: the longest step goes on beside all others;
 *  2. a slot: range of uids, name and proof of life. Before it nothing on the host has the sandbox's name, after it everything does;
 *  3. the plan: what the request needs of the host is opened;
 *  4. jail_spawn(): namespaces, root, init; right before the clone, cgroups with their limits; beside the child, CONFIG is queued, so
 *     that init finds it when it begins.
 *
 * A sandbox that dies with its owner has no file on the host: its writable layer, spools and sockets are anonymous, and the kernel removes
 * them. What the kernel does not remove, cgroups, is left to the undertaker if we are killed. One that outlives its owner has a directory in
 * the run directory: `sock`, `journal`, spools, and `init` (pid and start time). */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/sys.h"
#include "layers/store.h"
#include "layers/tree.h"
#include "warden/internal.h"
#include "warden/storage.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* since 6.3; needed where vm.memfd_noexec is set */
#endif
#define SOCKET_BACKLOG 16 /* clients that wait while init serves another; each waits microseconds */

/* Init's program in a file that nobody can write to, and that nobody inside can read: the kernel then lets nobody inside trace it or open
 * its /proc files, whatever their capabilities (would_dump() in fs/exec.c). */
static int make_exe(const struct jail_plan *plan, struct err *e)
{
	auto_close int fd = memfd_create("carrel-init", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	int r;

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("carrel-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return err_sys(e, -errno, "make a file for init");
	r = fd_write_full(fd, init_image, init_image_size);
	if (r < 0)
		return err_sys(e, r, "write the program of init");
	if (fchmod(fd, jail_without(plan, PART_SEALED_INIT) ? 0555 : 0111) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return err_sys(e, -errno, "seal the program of init");
	return take_fd(fd);
}

/** struct config - CONFIG under construction: descriptors in the order of their flags */
struct config {
	struct msg_config m;
	int fds[MSG_FDS_MAX];
	size_t num_fds;
};

static void config_done(struct config *c)
{
	for (size_t i = 0; i < c->num_fds; i++)
		close_p(&c->fds[i]);
}

/* Consumes @fd. */
static int config_fd(struct config *c, unsigned flag, int fd)
{
	if (fd < 0)
		return fd == -ENODATA ? 0 : fd;
	c->m.flags |= flag;
	c->fds[c->num_fds++] = fd;
	return 0;
}

static int listen_at(int dir, struct err *e)
{
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	/* The descriptor's own name keeps the path short, whatever the run directory is called. */
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/sock", dir);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, SOCKET_BACKLOG) < 0)
		return err_sys(e, -errno, "listen for clients of a sandbox");
	return take_fd(fd);
}

static int config_served(struct carrel_sandbox *sb, struct config *c, struct err *e)
{
	int r, fd;

	fd = listen_at(sb->dir, e);
	r = config_fd(c, CONFIG_FD_LISTEN, fd);
	if (r < 0)
		return r;
	fd = sys_openat(sb->dir, "journal", O_WRONLY | O_CREAT | O_APPEND | O_EXCL, 0600);
	r = config_fd(c, CONFIG_FD_JOURNAL, fd);
	return r < 0 ? err_sys(e, r, "make the journal of sandbox '%s'", sb->id) : 0;
}

static int config_cgroups(struct carrel_sandbox *sb, struct config *c, struct err *e)
{
	static const enum cgroup_ctl others[] = { CTL_MEMORY, CTL_CPU, CTL_CPUACCT };
	bool split_cpu = !sb->owned; /* CPU time for each exec costs a group; one that dies with us has one exec as a rule */
	int r = 0;

	if (sb->cg.version == CGROUP_V2)
		return config_fd(c, CONFIG_FD_CGROUP2, cgroup_delegate(&sb->cg, CTL_MEMORY, e));
	if (sb->cg.version != CGROUP_V1)
		return 0;
	r = config_fd(c, CONFIG_FD_PIDS1, cgroup_delegate(&sb->cg, CTL_PIDS, e));
	if (r == 0 && split_cpu)
		r = config_fd(c, CONFIG_FD_CPUACCT1, cgroup_delegate(&sb->cg, CTL_CPUACCT, e));
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(others); i++) {
		size_t before = c->num_fds;

		if (others[i] == CTL_CPUACCT && split_cpu)
			continue;
		r = config_fd(c, CONFIG_FD_TASKS1, cgroup_tasks(&sb->cg, others[i]));
		c->m.tasks_fds += (uint32_t)(c->num_fds - before);
	}
	return r;
}

static int send_config(struct carrel_sandbox *sb, const struct jail_plan *plan, struct err *e)
{
	auto_buf struct buf body = BUF_INIT(MSG_INLINE_MAX);
	auto_(config_done) struct config c = { .m = { .id = sb->id } };
	int r = 0;

	c.m.flags = (sb->owned ? CONFIG_DIE_WITH_OWNER : 0) | (plan->flags & JAIL_NESTED_USERNS ? CONFIG_NESTED_USERNS : 0) |
		    (plan->flags & JAIL_HOST_NETWORK ? CONFIG_SCOPE_ABSTRACT : 0) |
		    (jail_without(plan, PART_SECCOMP) ? CONFIG_NO_SECCOMP : 0) |
		    (jail_without(plan, PART_LANDLOCK) ? CONFIG_NO_LANDLOCK : 0);
	if (!sb->owned)
		r = config_served(sb, &c, e);
	if (r == 0)
		r = config_cgroups(sb, &c, e);
	if (r == 0)
		r = config_fd(&c, CONFIG_FD_LOCK, fd_cloexec_from3(sb->slot.fd));
	if (r < 0)
		return r;
	msg_config_put(&body, &c.m);
	r = msg_send(sb->control, MSG_CONFIG, ++sb->serial, &body, c.fds, c.num_fds, MSG_DONTWAIT);
	return r < 0 ? err_sys(e, r, "configure the init of sandbox '%s'", sb->id) : 0;
}

/* A limit that was asked for by name and cannot be enforced is an error; a default that cannot is a line of the receipt. */
static int check_limits(const struct carrel_spec *spec, const struct cgroup *cg, struct err *e)
{
	static const struct {
		enum spec_explicit asked;
		enum cgroup_ctl ctl;
	} need[] = { { EXPLICIT_MEMORY, CTL_MEMORY }, { EXPLICIT_PIDS, CTL_PIDS }, { EXPLICIT_CPUS, CTL_CPU } };

	for (size_t i = 0; i < ARRAY_SIZE(need); i++) {
		if (!(spec->explicit_mask & need[i].asked) || cg->have & 1u << need[i].ctl)
			continue;
		return err_hint(e,
				err_set(e, ERR_UNSUPPORTED, "limit %s: no cgroup controller for it that this user may use",
					cgroup_ctl_name(need[i].ctl)),
				"run as root or with a delegated cgroup (see 'carrel doctor'), or leave the limit out");
	}
	return 0;
}

/* An ordinary user's network namespace is made with its user namespace, in jail_spawn(). */
static bool makes_net(const struct jail_plan *plan)
{
	return !(plan->flags & (JAIL_ROOTLESS | JAIL_HOST_NETWORK)) && !jail_without(plan, PART_NETNS);
}

static int make_cgroups(struct carrel_sandbox *sb, const struct carrel_spec *spec, const struct jail_plan *plan, struct err *e)
{
	struct cgroup_limits limits = { spec->memory_bytes, spec->pids, spec->cpu_milli };
	int r;

	if (jail_without(plan, PART_CGROUP))
		return 0;
	r = cgroup_create(&sb->cg, sb->id, &limits, plan->uid_base, e);
	return r < 0 ? r : check_limits(spec, &sb->cg, e);
}

/* pid and start time of init (field 22 of /proc/PID/stat): together they name one process for ever. */
static int init_identity(pid_t pid, char *text, size_t size)
{
	char path[40], stat[1024], *field;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	n = fd_read_file_at(AT_FDCWD, path, stat, sizeof(stat));
	if (n < 0)
		return (int)n;
	field = strrchr(stat, ')'); /* the name before it may hold anything */
	for (int i = 0; field && i < 20; i++)
		field = strchr(field + 1, ' ');
	if (!field)
		return -EINVAL;
	field[1 + strcspn(field + 1, " ")] = '\0';
	(void)snprintf(text, size, "%d %s\n", (int)pid, field + 1);
	return 0;
}

static int record_init(struct carrel_sandbox *sb, struct err *e)
{
	auto_close int fd = sys_openat(sb->dir, "init", O_WRONLY | O_CREAT | O_EXCL, 0600);
	char text[64];
	int r = init_identity(sb->init.pid, text, sizeof(text));

	if (r == 0)
		r = fd < 0 ? fd : fd_write_full(fd, text, strlen(text));
	return r < 0 ? err_sys(e, r, "record the init of sandbox '%s'", sb->id) : 0;
}

static int make_dir(struct carrel_sandbox *sb, int rundir, struct err *e)
{
	int r = sys_mkdirat(rundir, sb->id, 0700);

	if (r == 0) {
		r = sb->dir = sys_openat(rundir, sb->id, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		if (r < 0) /* without a descriptor nobody would know that it is there */
			(void)sys_unlinkat(rundir, sb->id, AT_REMOVEDIR);
	}
	return r < 0 ? err_sys(e, r, "make the run directory of sandbox '%s'", sb->id) : 0;
}

/** struct starting - A start in progress, for the hooks */
struct starting {
	struct carrel_sandbox *sb;
	const struct carrel_spec *spec;
	struct jail_plan plan;
};

/* v2's clone needs the groups; and there is time, since the network namespace is not ready yet. */
static int hook_before(void *data, struct err *e)
{
	struct starting *s = data;
	int r = make_cgroups(s->sb, s->spec, &s->plan, e);

	return r < 0 ? r : undertaker_ready(s->sb, e);
}

static long hook_clone(void *data, struct clone_args *args, void (*fn)(void *), void *arg)
{
	return undertaker_clone(((struct starting *)data)->sb, args, fn, arg);
}

static int hook_call(void *data, int (*fn)(void *), void *arg)
{
	return undertaker_call(((struct starting *)data)->sb, fn, arg);
}

static int hook_parent(void *data)
{
	return ((struct starting *)data)->sb->undertaker;
}

/* What only init needs: while the child assembles its root. */
static int hook_meanwhile(void *data, struct err *e)
{
	struct starting *s = data;
	int r;

	undertaker_finish(s->sb);
	r = send_config(s->sb, &s->plan, e);

	return r < 0 ? r : undertaker_net_up(s->sb, e);
}

static int spawn(struct starting *s, struct err *e)
{
	const struct jail_hooks hooks = { hook_before, hook_clone, hook_call, hook_parent, hook_meanwhile, s };
	struct carrel_sandbox *sb = s->sb;
	auto_close int exe = make_exe(&s->plan, e), inner = -EBADF;
	int pair[2], r;

	if (exe < 0)
		return exe;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, -errno, "make a control socket");
	sb->control = pair[0];
	inner = pair[1];
	r = client_deadline(sb, e);
	if (r == 0)
		r = jail_spawn(&s->plan, &sb->cg, &hooks, exe, inner, &sb->init, e);
	if (r == 0 && !sb->owned)
		r = record_init(sb, e);
	return r;
}

static struct carrel_sandbox *sandbox_new(void)
{
	struct carrel_sandbox *sb = calloc(1, sizeof(*sb));

	if (!sb)
		return NULL;
	sb->slot.fd = sb->control = sb->dir = sb->undertaker = sb->self = sb->init.pidfd = -EBADF;
	cgroup_init(&sb->cg);
	return sb;
}

static int start_steps(struct starting *s, struct err *e)
{
	auto_close int rundir = rundir_open(STORE_CREATE, e);
	struct carrel_sandbox *sb = s->sb;
	int r;

	if (rundir < 0)
		return rundir;
	r = slot_take(rundir, sb->id, &sb->slot, e);
	if (r < 0)
		return r;
	undertaker_names(sb); /* before there is anything to remove */
	plan_begin(s->spec, sb->id, &sb->slot, &s->plan);
	r = plan_make(s->spec, &s->plan, e);
	if (r == 0)
		r = storage_make(sb, &s->plan, e);
	if (r == 0 && !sb->owned)
		r = make_dir(sb, rundir, e);
	if (r == 0)
		r = spawn(s, e);
	if (r == 0 && !sb->owned)
		undertaker_end(sb); /* it must not bury a sandbox that is meant to outlive us */
	return r;
}

/* The flags of a plan follow from the request and the user, so they are known before anything else is. */
static int start(struct starting *s, struct err *e)
{
	struct jail_plan early;
	int r;

	plan_begin(s->spec, "", NULL, &early);
	r = undertaker_start(s->sb, makes_net(&early), e);
	return r < 0 ? r : start_steps(s, e);
}

int sandbox_start(const struct carrel_spec *spec, struct carrel_sandbox **ret, struct err *e)
{
	struct starting s = { .sb = sandbox_new(), .spec = spec };
	int r;

	if (!s.sb)
		return -ENOMEM;
	s.sb->owned = spec->die_with_owner;
	jail_plan_init(&s.plan);
	r = start(&s, e);
	jail_plan_done(&s.plan);
	if (r < 0) {
		s.sb->owned = 1; /* whatever was made goes */
		carrel_sandbox_free(s.sb);
		return r;
	}
	*ret = s.sb;
	return 0;
}

int carrel_start(const struct carrel_spec *spec, struct carrel_sandbox **ret, struct carrel_error *ret_e)
{
	struct err e = { .code = ERR_NONE };

	return error_out(sandbox_start(spec, ret, &e), &e, ret_e);
}

/* --- Finding one again ------------------------------------------------------------------------------------------------------ */

/* A pidfd of the init that `init` names, if that process is still the same. */
static int open_init(struct carrel_sandbox *sb)
{
	char recorded[64], now[64];
	uint64_t pid;
	int r;

	r = (int)fd_read_file_at(sb->dir, "init", recorded, sizeof(recorded));
	if (r < 0)
		return r;
	(void)snprintf(now, sizeof(now), "%.*s", (int)strcspn(recorded, " "), recorded);
	r = str_to_u64(now, &pid);
	if (r < 0 || pid < 2 || pid > INT32_MAX)
		return -EINVAL;
	sb->init.pidfd = (int)sys_call2(__NR_pidfd_open, pid, 0);
	if (sb->init.pidfd < 0)
		return sb->init.pidfd;
	sb->init.pid = (pid_t)pid;
	r = init_identity(sb->init.pid, now, sizeof(now)); /* after pidfd_open(): what we hold is what we compare */
	if (r < 0 || strcmp(now, recorded) != 0) {
		(void)close(sb->init.pidfd);
		sb->init.pidfd = -EBADF;
		return -ESRCH;
	}
	return 0;
}

static int connect_to(struct carrel_sandbox *sb, struct err *e)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int r;

	sb->control = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sb->control < 0)
		return err_sys(e, -errno, "make a socket");
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/sock", sb->dir);
	if (connect(sb->control, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return err_sys(e, -errno, "connect to sandbox '%s'", sb->id);
	r = client_deadline(sb, e);
	if (r < 0)
		return r;
	r = open_init(sb);
	if (r < 0)
		return err_sys(e, r, "find the init of sandbox '%s'", sb->id);
	return client_call(sb, MSG_HELLO, NULL, NULL, 0, MSG_WELCOME, NULL, e);
}

static int connect_steps(struct carrel_sandbox *sb, const char *id, struct err *e)
{
	auto_close int rundir = rundir_open(STORE_EXISTING, e);
	int r;

	if (rundir < 0)
		return rundir;
	if (slot_find(rundir, id) == SLOT_UNKNOWN)
		return err_set(e, ERR_INVALID, "connect to sandbox '%.64s': not an id", id);
	memcpy(sb->id, id, sizeof(sb->id));
	sb->dir = sys_openat(rundir, id, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (sb->dir < 0)
		return err_sys(e, sb->dir, "connect to sandbox '%s'", id);
	r = connect_to(sb, e);
	if (r == 0)
		ignored(cgroup_open(&sb->cg, id, NULL)); /* without groups there are no accounts, which stats says */
	return r;
}

int carrel_connect(const char *id, struct carrel_sandbox **ret, struct carrel_error *ret_e)
{
	struct carrel_sandbox *sb = sandbox_new();
	struct err e = { .code = ERR_NONE };
	int r;

	if (!sb)
		return -ENOMEM;
	r = connect_steps(sb, id, &e);
	if (r < 0) {
		carrel_sandbox_free(sb);
		return error_out(r, &e, ret_e);
	}
	*ret = sb;
	return 0;
}

/* --- End -------------------------------------------------------------------------------------------------------------------- */

static int remove_dir(struct carrel_sandbox *sb, struct err *e)
{
	auto_close int rundir = -EBADF;
	int r;

	if (sb->dir < 0)
		return 0;
	rundir = rundir_open(STORE_EXISTING, e);
	if (rundir < 0)
		return rundir;
	r = tree_remove_at(rundir, sb->id, e);
	return r == -ENOENT ? 0 : r;
}

/* Kill init. Its end takes the kernel half a millisecond of unmounting; meanwhile the groups go. Return: 0 if all are gone. */
static int begin_end(struct carrel_sandbox *sb)
{
	ignored(client_dispatch(sb, 0, NULL)); /* what ended before stays known */
	if (sb->init.pidfd >= 0)
		(void)sys_pidfd_send_signal(sb->init.pidfd, SIGKILL); /* it may have ended */
	close_p(&sb->control);
	sb->control = -EBADF;
	return cgroup_remove_empty(sb->cg.version, sb->id);
}

static int sandbox_destroy(struct carrel_sandbox *sb, struct err *e)
{
	int r;

	if (sb->removed)
		return 0;
	ignored(begin_end(sb)); /* what is left of the groups is removed below */
	jail_kill(&sb->init);
	r = cgroup_destroy(&sb->cg, e);
	if (r == 0)
		r = storage_remove(sb, e);
	if (r == 0)
		r = remove_dir(sb, e);
	if (r < 0)
		return r;
	slot_release(&sb->slot);
	undertaker_end(sb);
	sb->removed = 1;
	return 0;
}

int carrel_leave(struct carrel_sandbox *sandbox, struct carrel_error *e)
{
	if (sandbox->removed || sandbox->stored || sandbox->dir >= 0 || begin_end(sandbox) < 0)
		return carrel_destroy(sandbox, e);
	undertaker_leave(sandbox);
	sandbox->removed = 1;
	return 0;
}

int carrel_destroy(struct carrel_sandbox *sandbox, struct carrel_error *ret_e)
{
	struct err e = { .code = ERR_NONE };

	return error_out(sandbox_destroy(sandbox, &e), &e, ret_e);
}

void carrel_sandbox_free(struct carrel_sandbox *sb)
{
	if (!sb)
		return;
	if (sb->owned)
		ignored(sandbox_destroy(sb, NULL)); /* what stays is found by the doctor */
	for (struct carrel_exec *x = sb->execs; x; x = x->next)
		x->sandbox = NULL;
	cgroup_done(&sb->cg);
	close_p(&sb->slot.fd);
	close_p(&sb->control);
	close_p(&sb->dir);
	close_p(&sb->init.pidfd);
		close_p(&sb->self);
	free(sb);
}

const char *carrel_sandbox_id(const struct carrel_sandbox *sandbox)
{
	return sandbox->id;
}

int carrel_sandbox_fd(const struct carrel_sandbox *sandbox)
{
	return sandbox->control;
}

int carrel_sandbox_dispatch(struct carrel_sandbox *sandbox, struct carrel_error *ret_e)
{
	struct err e = { .code = ERR_NONE };
	int r = client_dispatch(sandbox, 0, &e);

	return error_out(r > 0 ? 0 : r, &e, ret_e);
}

int carrel_stats(struct carrel_sandbox *sandbox, struct carrel_stats *ret, struct carrel_error *e)
{
	const struct {
		enum cgroup_value value;
		uint64_t *to;
	} all[] = {
		{ CGV_MEMORY, &ret->memory_bytes },	    { CGV_MEMORY_PEAK, &ret->memory_peak_bytes },
		{ CGV_MEMORY_LIMIT, &ret->memory_limit_bytes }, { CGV_OOM_KILLS, &ret->oom_kills },
		{ CGV_CPU_US, &ret->cpu_us },		    { CGV_PIDS, &ret->pids },
		{ CGV_PIDS_LIMIT, &ret->pids_limit },	    { CGV_PIDS_DENIED, &ret->pids_denied },
	};

	(void)e; /* nothing fails: what this host does not count is UINT64_MAX */
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (cgroup_read(&sandbox->cg, all[i].value, all[i].to) < 0)
			*all[i].to = UINT64_MAX;
	return 0;
}
