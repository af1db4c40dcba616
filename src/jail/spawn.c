/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.c - Make a sandbox: namespaces, root, privileges, and its init in it
 *
 * Theory of operation. Three tasks share one memory and one descriptor table (clone3 with CLONE_VM | CLONE_FILES): the caller ("parent" below),
 * a helper of its own that makes the network namespace and clones the child, so that the caller's wait() never meets our init (see
 * warden/undertaker.c), and the child. Parent and child take turns:
 *
 *   parent                                    child (all new namespaces)
 *   begin the root's mounts (root_begin)
 *   what the caller still has to do (before)
 *   clone3, by the helper ------------------> waits
 *   write the id maps
 *   TURN_MAPPED ----------------------------> become root inside, make /proc and the like (root_prepare)
 *   build the root's mounts (root_build)      waits
 *   TURN_BUILT -----------------------------> enter the root (root_enter), drop capabilities,
 *   what else there is to do (meanwhile)      arrange descriptors 0-3, execute init
 *   waits for the child's memory to go
 *
 * The kernel clears `tid` and wakes us when the child has let go of our memory, by execve() or by exiting; `failed` tells which. Sharing
 * memory costs 43 us where fork() costs 150, and 20 ms in a program of 512 MiB. In return the child must not touch what the parent's
 * other threads might hold: no heap, no locks, no errno. Signals are blocked around the clone, and CLONE_CLEAR_SIGHAND keeps the caller's
 * handlers from ever running in the child.
 *
 * An ordinary user has no rights but inside the new user namespace: there the child brings up the network and builds the mounts. */
#include "jail/spawn.h"

#include <linux/capability.h>
#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#include "base/sys.h"
#include "jail/caps.h"
#include "jail/idmap.h"
#include "jail/net.h"
#include "jail/root.h"

/* The child's deepest call chain holds one path and one option text (about 12 KiB); four times that. */
#define CHILD_STACK_SIZE KIB(64)

/* The parent's part takes milliseconds; on a machine that swaps, seconds. */
#define TURN_DEADLINE_S 30

/** enum turn - How far the parent is; the child waits for each in turn */
enum turn {
	TURN_CLONED,
	TURN_MAPPED, /* the id maps are written */
	TURN_BUILT,  /* the mounts are made */
	TURN_NEVER,  /* the parent failed: the child leaves */
};

/** struct spawn - What both tasks see */
struct spawn {
	const struct jail_plan *plan;
	struct root root;
	int exe, control, parent, userns;
	uint64_t inits_caps; /* what init keeps for itself, see clone_child() */
	uint32_t turn; /* enum turn; atomic */
	uint32_t tid;	       /* cleared by the kernel when the child has left our memory */
	int failed;	       /* negative errno of the child, valid once tid is 0 */
	struct err *e;	       /* the child's story; the parent reads it when tid is 0 */
};

/* Descriptors 0 to 2 are /dev/null, 3 is the control socket, nothing else survives. The table is shared with the parent until here. */
static int arrange_descriptors(struct spawn *s, int *exe)
{
	int null, control, r;

	r = sys_unshare(CLONE_FILES);
	if (r < 0)
		return r;
	null = sys_openat(AT_FDCWD, "/dev/null", O_RDWR, 0);
	if (null < 0)
		return null;
	/* Out of the way of 0 to 4 first: any of them may be one of these. */
	null = sys_fcntl(null, F_DUPFD_CLOEXEC, 16);
	control = sys_fcntl(s->control, F_DUPFD_CLOEXEC, 16);
	*exe = sys_fcntl(s->exe, F_DUPFD_CLOEXEC, 16);
	if (null < 0 || control < 0 || *exe < 0)
		return -EMFILE;
	for (int fd = 0; fd < 3; fd++) {
		r = sys_dup3(null, fd, 0);
		if (r < 0)
			return r;
	}
	r = sys_dup3(control, 3, 0);
	if (r < 0)
		return r;
	r = sys_dup3(*exe, 4, O_CLOEXEC);
	if (r < 0)
		return r;
	*exe = 4;
	return jail_without(s->plan, PART_CLOSE_FDS) ? 0 : sys_close_range(5, ~0u, 0);
}

static int become_root(struct err *e)
{
	int r = sys_setresgid(0, 0, 0);

	if (r == 0)
		r = sys_setresuid(0, 0, 0);
	if (r == 0)
		r = sys_setgroups(0, NULL) == -EPERM ? 0 : r; /* rootless with one id: setgroups is given up */
	return r < 0 ? err_sys(e, r, "become root of the new user namespace") : 0;
}

/*
 * Until init watches its control socket, the end of the task that made us must be ours. The signal is lost if that task is gone before it is
 * asked for, and getppid() is 0 in a new pid namespace: so look at its pidfd afterwards.
 */
static int die_with_parent(const struct spawn *s)
{
	const struct timespec at_once = { 0, 0 };
	struct pollfd fd = { .fd = s->parent, .events = POLLIN };
	int r = sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);

	if (sys_call4(__NR_ppoll, &fd, 1, &at_once, NULL) == 1)
		sys_exit(1);
	return r;
}

/* Each wait has an end, also if the parent is stopped for good. */
static void wait_for_turn(struct spawn *s, uint32_t turn)
{
	const struct timespec deadline = { .tv_sec = TURN_DEADLINE_S };
	uint32_t now;

	while ((now = __atomic_load_n(&s->turn, __ATOMIC_ACQUIRE)) < turn)
		if (sys_futex(&s->turn, FUTEX_WAIT_PRIVATE, now, &deadline) == -ETIMEDOUT)
			sys_exit(1);
	if (now == TURN_NEVER)
		sys_exit(1);
}

static int child_setup(struct spawn *s)
{
	const struct jail_plan *plan = s->plan;
	int r;

	wait_for_turn(s, TURN_MAPPED);
	(void)sys_call1(__NR_umask, 022); /* this task's own; whatever the caller's was, targets inside get usual modes */
	r = become_root(s->e);
	if (r == 0)
		r = die_with_parent(s); /* changing ids cleared it */
	if (r == 0 && !jail_without(plan, PART_UTSNS))
		r = sys_sethostname(plan->hostname, strlen(plan->hostname));
	if (r < 0)
		return r;
	if (plan->flags & JAIL_ROOTLESS && !(plan->flags & JAIL_HOST_NETWORK))
		r = net_lo_up(s->e);
	if (r == 0)
		r = root_prepare(plan, &s->root, s->e);
	if (r == 0 && plan->flags & JAIL_ROOTLESS)
		r = root_begin(plan, &s->root, s->e);
	if (r == 0 && plan->flags & JAIL_ROOTLESS)
		r = root_build(plan, -1, &s->root, s->e);
	wait_for_turn(s, TURN_BUILT);
	if (r == 0)
		r = root_enter(plan, &s->root, s->e);
	if (r == 0 && !jail_without(plan, PART_CAPS))
		r = caps_drop(s->inits_caps, s->e);
	return r;
}

static void child_main(void *arg)
{
	static const char *const argv[] = { "carrel-init", NULL };
	static const char *const envp[] = { NULL };
	struct spawn *s = arg;
	uint64_t none = 0;
	int exe, r;

	r = die_with_parent(s);
	if (r == 0)
		r = child_setup(s);
	if (r == 0) {
		r = arrange_descriptors(s, &exe);
		if (r < 0)
			(void)err_sys(s->e, r, "arrange the descriptors of init");
	}
	if (r == 0) {
		(void)sys_rt_sigprocmask(SIG_SETMASK, &none, NULL); /* cannot fail with a valid pointer */
		(void)sys_prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);	     /* likewise; it would survive execve() */
		r = sys_execveat(exe, "", (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)envp, AT_EMPTY_PATH);
		(void)err_sys(s->e, r, "execute init");
	}
	s->failed = r;
	sys_exit(1);
}

static void pass_turn(struct spawn *s, enum turn turn)
{
	__atomic_store_n(&s->turn, turn, __ATOMIC_RELEASE);
	(void)sys_futex(&s->turn, FUTEX_WAKE_PRIVATE, 1, NULL);
}

static void wait_for_child(struct spawn *s)
{
	for (;;) {
		uint32_t tid = __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE);

		if (tid == 0)
			return;
		(void)sys_futex(&s->tid, FUTEX_WAIT, tid, NULL); /* not private: the kernel wakes it as shared */
	}
}

static uint64_t namespaces(const struct jail_plan *plan)
{
	uint64_t flags = 0;

	if (!jail_without(plan, PART_USERNS))
		flags |= CLONE_NEWUSER;
	if (!jail_without(plan, PART_PIDNS))
		flags |= CLONE_NEWPID;
	if (!jail_without(plan, PART_IPCNS))
		flags |= CLONE_NEWIPC;
	if (!jail_without(plan, PART_UTSNS))
		flags |= CLONE_NEWUTS;
	if (!jail_without(plan, PART_CGROUPNS))
		flags |= CLONE_NEWCGROUP;
	if (plan->flags & JAIL_ROOTLESS && !(plan->flags & JAIL_HOST_NETWORK) && !jail_without(plan, PART_NETNS))
		flags |= CLONE_NEWNET; /* root's was made before, see net.h */
	return flags | CLONE_NEWNS;
}

static pid_t clone_child(struct spawn *s, const struct cgroup *cg, const struct jail_hooks *hooks, void *stack, int *ret_pidfd)
{
	struct clone_args args = {
		.flags = namespaces(s->plan) | CLONE_VM | CLONE_FILES | CLONE_PIDFD | CLONE_CLEAR_SIGHAND |
			 CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		.child_tid = (uint64_t)(uintptr_t)&s->tid,
		.exit_signal = SIGCHLD, /* whatever is said here: execve() makes it so */
		.stack = (uint64_t)(uintptr_t)stack,
		.stack_size = CHILD_STACK_SIZE,
	};

	if (cg->version == CGROUP_V2) {
		/* Where the hierarchy is mounted with nsdelegate, as systemd does, nobody goes from a group outside of the own namespace to another:
		 * an init in a namespace that begins at its own group could start nothing in `work`. So each exec gets a namespace that begins
		 * at its group, and init keeps the one capability that takes. */
		args.flags = (args.flags & ~(uint64_t)CLONE_NEWCGROUP) | CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cg->init;
		if (!jail_without(s->plan, PART_CGROUPNS))
			s->inits_caps = UINT64_C(1) << CAP_SYS_ADMIN;
	}
	s->tid = UINT32_MAX; /* until the child has written its own */
	return (pid_t)hooks->clone(hooks->data, &args, child_main, s);
}

/** struct build - root_build() in another task */
struct build {
	struct spawn *s;
	struct err *e;
};

/* In a mount namespace of its own, which goes when the overlays have taken what they need of it. */
static int build_elsewhere(void *arg)
{
	struct build *b = arg;
	auto_close int own = sys_openat(AT_FDCWD, "/proc/thread-self/ns/mnt", O_RDONLY, 0);
	int r = own < 0 ? own : sys_unshare(CLONE_NEWNS);

	if (r == 0)
		r = sys_mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL);
	if (r < 0)
		return err_sys(b->e, r, "make a mount namespace for the layers");
	r = root_build(b->s->plan, b->s->userns, &b->s->root, b->e);
	if (sys_setns(own, CLONE_NEWNS) < 0 && r == 0)
		r = err_set(b->e, ERR_SYSTEM, "leave the mount namespace of the layers");
	return r;
}

static int build(struct spawn *s, const struct jail_hooks *hooks, struct err *e)
{
	struct build b = { s, e };

	if (s->plan->flags & JAIL_ATTACH_LAYERS)
		return hooks->call(hooks->data, build_elsewhere, &b);
	return root_build(s->plan, s->userns, &s->root, e);
}

/* The parent's part beside the child. */
static int parent_setup(struct spawn *s, pid_t pid, const struct jail_hooks *hooks, struct err *e)
{
	const struct jail_plan *plan = s->plan;
	int r;

	if (!jail_without(plan, PART_USERNS)) {
		r = idmap_write(pid, plan->uid_base, plan->gid_base, plan->uid_count, e);
		if (r < 0)
			return r;
	}
	pass_turn(s, TURN_MAPPED);
	if (plan->flags & JAIL_ROOTLESS)
		return 0;
	s->userns = jail_without(plan, PART_USERNS) ? -EBADF : idmap_open(pid, e);
	if (s->userns < 0 && s->userns != -EBADF)
		return s->userns;
	r = build(s, hooks, e);
	close_p(&s->userns);
	return r;
}

static int run_both(struct spawn *s, const struct cgroup *cg, const struct jail_hooks *hooks, void *stack,
		    struct jail_init *ret, struct err *e)
{
	int r = s->plan->flags & JAIL_ROOTLESS ? 0 : root_begin(s->plan, &s->root, e);

	if (r == 0)
		r = hooks->before(hooks->data, e);
	if (r < 0)
		return r;
	s->parent = hooks->parent(hooks->data);
	ret->pid = clone_child(s, cg, hooks, stack, &ret->pidfd);
	if (ret->pid < 0)
		return err_sys(e, ret->pid, "make the namespaces of a sandbox");
	r = parent_setup(s, ret->pid, hooks, e);
	pass_turn(s, r < 0 ? TURN_NEVER : TURN_BUILT);
	if (r == 0)
		r = hooks->meanwhile(hooks->data, e);
	wait_for_child(s);
	if (r == 0 && s->failed < 0) {
		*e = *s->e;
		r = s->failed;
	}
	if (r < 0)
		jail_kill(ret);
	return r;
}

int jail_spawn(const struct jail_plan *plan, const struct cgroup *cg, const struct jail_hooks *hooks, int exe, int control,
	       struct jail_init *ret, struct err *e)
{
	struct err parents = { .code = ERR_NONE }, childs = { .code = ERR_NONE };
	struct spawn s = { .plan = plan, .exe = exe, .control = control, .e = &childs };
	uint64_t all = ~UINT64_C(0), old;
	int dumpable, r;
	void *stack;

	root_init(&s.root);
	*ret = (struct jail_init){ .pid = -1, .pidfd = -EBADF };
	stack = mmap(NULL, CHILD_STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		return err_sys(e, -ENOMEM, "map the stack of a sandbox's first process");
	/* The child's change of ids makes the memory that we share undumpable; that is the caller's to decide. */
	dumpable = sys_prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	(void)sys_rt_sigprocmask(SIG_SETMASK, &all, &old); /* cannot fail with valid pointers */
	r = run_both(&s, cg, hooks, stack, ret, &parents);
	if (dumpable == 1)
		(void)sys_prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	(void)sys_rt_sigprocmask(SIG_SETMASK, &old, NULL);
	(void)munmap(stack, CHILD_STACK_SIZE); /* the child has left it */
	root_done(&s.root);
	if (r < 0 && e)
		*e = parents;
	return r;
}

void jail_kill(struct jail_init *init)
{
	struct pollfd fd = { .fd = init->pidfd, .events = POLLIN };

	if (init->pidfd < 0)
		return;
	(void)sys_pidfd_send_signal(init->pidfd, SIGKILL); /* it may have ended */
	(void)poll(&fd, 1, JAIL_KILL_MS);		   /* its parent reaps it */
	(void)sys_close(init->pidfd);
	init->pidfd = -EBADF;
	init->pid = -1;
}
