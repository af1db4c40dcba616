/* SPDX-License-Identifier: Apache-2.0 */
/* test_seccomp.c - The kernel answers what the policy says, and would answer otherwise without it
 *
 * Theory of operation. tools/gen-seccomp has already compared each program with the policy in an interpreter; here the kernel runs them.
 * Each probe is a raw system call in a child of its own, once with a program loaded and once without. A probe that gets the same answer
 * both times proves nothing: which may do so is a list here, and any other makes its test fail. Arguments are chosen so that the
 * kernel refuses them too, which makes the unfiltered half harmless; and as root each child first leaves the machine's mount, UTS and
 * IPC namespaces, so that a mistake in an argument changes nothing but the child's own. */
#include "jail/seccomp_program.h"

#include <linux/netlink.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "test.h"

#define UNFILTERED SECCOMP_NUM_PROGRAMS
#define HIGH (INT64_C(0x5a5a5a5a) << 32) /* what a caller may leave in the half that the kernel does not read */

/* Where a child leaves its answers; anonymous shared memory of main(). */
static long *answers;
#define ANSWERS_MAX 8192 /* long */

struct call {
	const char *name;
	long arg[6];
};

static const struct seccomp_rule *rule_find(const char *name)
{
	for (size_t i = 0; i < seccomp_num_rules; i++) {
		if (!strcmp(seccomp_rules[i].name, name))
			return &seccomp_rules[i];
	}
	fail_msg("%s is not in the policy", name);
	abort(); /* not reached */
}

static int errno_of(const struct seccomp_rule *rule)
{
	static const struct { const char *name; int value; } errors[] = {
		{ "EPERM", EPERM },
		{ "nested", EPERM },
		{ "ENOSYS", ENOSYS },
		{ "EAFNOSUPPORT", EAFNOSUPPORT },
		{ "ENOPROTOOPT", ENOPROTOOPT },
		{ "allow", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		if (!strcmp(errors[i].name, rule->verdict))
			return errors[i].value;
	}
	fail_msg("%s: unknown verdict '%s'", rule->name, rule->verdict);
	return -1;
}

static void filter_load(unsigned program)
{
	if (program == UNFILTERED)
		return;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || seccomp_program_load(program))
		_exit(99);
}

/* Run @body in a child under @program. Return: its wait status. */
static int child_run(unsigned program, void (*body)(const void *), const void *arg)
{
	int status = -1;
	pid_t pid;

	memset(answers, 0, ANSWERS_MAX * sizeof(*answers));
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		(void)setsid(); /* vhangup() then has no terminal to hang up */
		if (!geteuid() && unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC))
			_exit(98);
		filter_load(program);
		body(arg);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 98); /* no namespaces of its own */
	assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 99); /* no filter */
	return status;
}

static void call_body(const void *p)
{
	const struct call *c = p;
	long number = (long)rule_find(c->name)->number;
	pid_t self = getpid();
	long r = sys_call6(number, c->arg[0], c->arg[1], c->arg[2], c->arg[3], c->arg[4], c->arg[5]);

	if (getpid() != self) /* the child of a clone, whose answer could come after that of the next call */
		_exit(0);
	answers[0] = r;
}

/* The kernel's answer to one call under @program. */
static long answer(unsigned program, const struct call *c)
{
	int status;

	(void)rule_find(c->name); /* fails here rather than in the child */
	status = child_run(program, call_body, c);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_msg("%s: the child ended with status %#x", c->name, (unsigned)status);
	return answers[0];
}

static bool listed(const char *const *list, const char *name)
{
	while (*list && strcmp(*list, name))
		list++;
	return *list;
}

/* Arguments at which no call does anything: mostly all ones, which is no descriptor, no pointer and no known flag. */
static struct call harmless(const char *name)
{
	static const struct call special[] = {
		{ "init_module", { -1, 0, -1 } }, /* an empty module */
		{ "modify_ldt", { 0, 0, 0 } },	  /* reads nothing; all ones answers ENOSYS itself */
		{ "msgget", { 0x7fffffff, 0 } },  /* a queue that is not there; all ones would make one */
	};

	for (size_t i = 0; i < ARRAY_SIZE(special); i++) {
		if (!strcmp(special[i].name, name))
			return special[i];
	}
	return (struct call){ name, { -1, -1, -1, -1, -1, -1 } };
}

/* Kernels may lack these, and then answer ENOSYS themselves. */
static const char *const maybe_absent[] = {
	"listns", "memfd_secret", "lookup_dcookie", "nfsservctl", "uselib", "ustat", "sysfs", "_sysctl", "create_module",
	"get_kernel_syms", "query_module", "getpmsg", "putpmsg", "afs_syscall", "tuxcall", "security", "vserver",
	"epoll_ctl_old", "epoll_wait_old", "set_thread_area", "get_thread_area", "statmount", "listmount",
	"lsm_get_self_attr", "lsm_set_self_attr", "lsm_list_modules", "keyctl", "add_key", "request_key", "modify_ldt",
	"process_mrelease", "set_mempolicy_home_node", "get_mempolicy", "set_mempolicy", "mbind", "migrate_pages", "move_pages",
	NULL,
};

TEST(every_denial_is_the_filters_own)
{
	unsigned proven = 0, same = 0;

	for (size_t i = 0; i < seccomp_num_rules; i++) {
		const struct seccomp_rule *r = &seccomp_rules[i];
		struct call c = harmless(r->name);
		int want = errno_of(r);
		long bare;

		if (r->condition || !want)
			continue;
		EXPECT_INT(r->name, answer(SECCOMP_WORK, &c), -want);
		bare = answer(UNFILTERED, &c);
		proven += bare != -want;
		same += bare == -want;
		if (bare == -want && !listed(maybe_absent, r->name) && !geteuid())
			fail_msg("%s answers %ld without a filter too", r->name, bare);
		if (bare == -want)
			print_message("   proves nothing here: %s (%ld without a filter)\n", r->name, bare);
	}
	print_message("   %u denials differ from the bare kernel's answer, %u do not\n", proven, same);
	assert_true(geteuid() || proven > same);
}

/* Independent of the policy's text: whoever allows one of these has to change this list as well. */
TEST(what_must_never_be_allowed_is_denied)
{
	static const char *const names[] = {
		"bpf", "perf_event_open", "io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd", "keyctl",
		"add_key", "request_key", "open_by_handle_at", "name_to_handle_at", "kexec_load", "kexec_file_load",
		"init_module", "finit_module", "delete_module", "swapon", "swapoff", "reboot", "acct", "quotactl", "quotactl_fd",
		"syslog", "vhangup", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "fanotify_init", "fanotify_mark",
		"statmount", "listmount", "lookup_dcookie", "memfd_secret", "vmsplice",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct call c = harmless(names[i]);
		long work = answer(SECCOMP_WORK, &c), nested = answer(SECCOMP_WORK_NESTED, &c);

		if (work != -EPERM && work != -ENOSYS)
			fail_msg("%s answers %ld", names[i], work);
		EXPECT_INT(names[i], nested, work);
	}
}

TEST(nesting_is_allowed_only_where_asked)
{
	static const char *const names[] = {
		"mount", "umount2", "pivot_root", "chroot", "setns", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount",
		"fspick", "mount_setattr", "sethostname", "setdomainname",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct call c = harmless(names[i]);

		EXPECT_INT(names[i], answer(SECCOMP_WORK, &c), -EPERM);
		EXPECT_INT(names[i], answer(SECCOMP_WORK_NESTED, &c), answer(UNFILTERED, &c));
		EXPECT_INT(names[i], answer(SECCOMP_WORK_LOG, &c), answer(UNFILTERED, &c));
	}
}

/* @want is 0 where the filter must leave the answer to the kernel. */
struct argument_case {
	struct call call;
	int want;
};

static void arguments_expect(const struct argument_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct call *c = &cases[i].call;
		long bare = answer(UNFILTERED, c), filtered = answer(SECCOMP_WORK, c);
		char row[96];

		(void)snprintf(row, sizeof(row), "%s(%#lx, %#lx, %#lx)", c->name, (unsigned long)c->arg[0],
			       (unsigned long)c->arg[1], (unsigned long)c->arg[2]);
		if (cases[i].want) {
			EXPECT_INT(row, filtered, -cases[i].want);
			if (bare == filtered && !geteuid())
				fail_msg("%s answers %ld without a filter too", row, bare);
		} else if (bare < 0 || filtered < 0) { /* a descriptor, an id or the last value may differ, an error may not */
			EXPECT_INT(row, filtered, bare);
		}
	}
}

TEST(terminals_and_namespaces_are_out_of_reach_of_ioctl)
{
	static const struct argument_case cases[] = {
		{ { "ioctl", { -1, TIOCSTI, 0 } }, EPERM },
		{ { "ioctl", { -1, HIGH | TIOCSTI, 0 } }, EPERM },
		{ { "ioctl", { 0, INT64_C(1) << 63 | TIOCSTI, 0 } }, EPERM },
		{ { "ioctl", { -1, TIOCLINUX, 0 } }, EPERM },
		{ { "ioctl", { -1, HIGH | TIOCLINUX, 0 } }, EPERM },
		{ { "ioctl", { -1, TIOCSETD, 0 } }, EPERM },
		{ { "ioctl", { -1, HIGH | TIOCSETD, 0 } }, EPERM },
		{ { "ioctl", { -1, 0xb701, 0 } }, EPERM },
		{ { "ioctl", { -1, 0xb704, 0 } }, EPERM },
		{ { "ioctl", { -1, HIGH | 0x8008b705, 0 } }, EPERM },
		{ { "ioctl", { -1, 0x8010b70b, 0 } }, EPERM },
		{ { "ioctl", { -1, TCGETS, 0 } }, 0 },
		{ { "ioctl", { -1, TIOCGETD, 0 } }, 0 },
		{ { "ioctl", { -1, TIOCGWINSZ, 0 } }, 0 },
		{ { "ioctl", { -1, TIOCSCTTY, 0 } }, 0 },
		{ { "ioctl", { -1, FIONREAD, 0 } }, 0 },
		{ { "ioctl", { -1, HIGH | TCGETS, 0 } }, 0 },
	};

	arguments_expect(cases, ARRAY_SIZE(cases));
}

TEST(personality_takes_five_values)
{
	static const struct argument_case cases[] = {
		{ { "personality", { 0 } }, 0 },
		{ { "personality", { HIGH } }, 0 },
		{ { "personality", { PER_LINUX32 } }, 0 },
		{ { "personality", { ADDR_NO_RANDOMIZE } }, 0 },
		{ { "personality", { PER_LINUX32 | ADDR_NO_RANDOMIZE } }, 0 },
		{ { "personality", { 0xffffffff } }, 0 },
		{ { "personality", { -1 } }, 0 },
		{ { "personality", { READ_IMPLIES_EXEC } }, EPERM },
		{ { "personality", { HIGH | READ_IMPLIES_EXEC } }, EPERM },
		{ { "personality", { READ_IMPLIES_EXEC | ADDR_NO_RANDOMIZE } }, EPERM },
		{ { "personality", { ADDR_COMPAT_LAYOUT } }, EPERM },
		{ { "personality", { MMAP_PAGE_ZERO } }, EPERM },
		{ { "personality", { UNAME26 } }, EPERM },
		{ { "personality", { PER_SVR4 } }, EPERM },
	};

	arguments_expect(cases, ARRAY_SIZE(cases));
}

TEST(namespaces_cannot_be_made)
{
	static const long news[] = { CLONE_NEWUSER, CLONE_NEWNS,     CLONE_NEWPID, CLONE_NEWNET,
				     CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP };
	static const struct argument_case allowed[] = {
		{ { "unshare", { 0 } }, 0 },
		{ { "unshare", { CLONE_FILES } }, 0 },
		{ { "unshare", { CLONE_FS | CLONE_SYSVSEM } }, 0 },
		{ { "clone", { SIGCHLD } }, 0 },
	};
	static const struct argument_case newtime[] = { { { "unshare", { CLONE_NEWTIME } }, EPERM } };

	for (size_t i = 0; i < ARRAY_SIZE(news); i++) {
		struct argument_case cases[] = {
			{ { "unshare", { news[i] } }, EPERM },
			{ { "unshare", { news[i] | CLONE_FILES } }, EPERM },
			{ { "unshare", { news[i] | HIGH } }, EPERM },
			{ { "clone", { news[i] | SIGCHLD } }, EPERM },
			{ { "clone", { news[i] | HIGH | SIGCHLD } }, EPERM },
		};
		const struct call c = { "unshare", { news[i] } };

		arguments_expect(cases, ARRAY_SIZE(cases));
		EXPECT_INT("nested unshare", answer(SECCOMP_WORK_NESTED, &c), answer(UNFILTERED, &c));
	}
	arguments_expect(newtime, ARRAY_SIZE(newtime));
	arguments_expect(allowed, ARRAY_SIZE(allowed));
}

TEST(socket_options_reach_no_other_protocol)
{
	static const struct argument_case cases[] = {
		{ { "setsockopt", { -1, SOL_TCP, TCP_ULP } }, ENOPROTOOPT },
		{ { "setsockopt", { -1, HIGH | SOL_TCP, HIGH | TCP_ULP } }, ENOPROTOOPT },
		{ { "setsockopt", { -1, SOL_IP, 64 } }, ENOPROTOOPT },
		{ { "setsockopt", { -1, SOL_IP, 96 } }, ENOPROTOOPT },
		{ { "setsockopt", { -1, SOL_IP, 128 } }, ENOPROTOOPT },
		{ { "setsockopt", { -1, SOL_IPV6, 64 } }, ENOPROTOOPT },
		{ { "setsockopt", { -1, SOL_TCP, TCP_NODELAY } }, 0 },
		{ { "setsockopt", { -1, SOL_SOCKET, TCP_ULP } }, 0 },
		{ { "setsockopt", { -1, SOL_IP, IP_TOS } }, 0 },
	};

	arguments_expect(cases, ARRAY_SIZE(cases));
}

/* --- Sockets ---------------------------------------------------------------------------------------------------------------- */

#define FAMILIES 46 /* AF_MAX of Linux 6.18 */
static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET };
static const int protocols[] = { 0, 1, 2, 4, 6, 12, 15, 16, 17, 33, 58, 132, 136, 255, 256, 262 };
static_assert(FAMILIES * ARRAY_SIZE(types) * ARRAY_SIZE(protocols) < ANSWERS_MAX, "answers do not fit");

static size_t socket_index(int family, size_t type, size_t protocol)
{
	return ((size_t)family * ARRAY_SIZE(types) + type) * ARRAY_SIZE(protocols) + protocol;
}

static void sockets_body(const void *high)
{
	for (int f = 0; f < FAMILIES; f++) {
		for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
			for (size_t p = 0; p < ARRAY_SIZE(protocols); p++) {
				long h = *(const long *)high;
				long fd = sys_call3(__NR_socket, h | f, h | types[t], h | protocols[p]);

				answers[socket_index(f, t, p)] = fd < 0 ? fd : 0;
				if (fd >= 0)
					(void)close((int)fd);
			}
		}
	}
}

static bool socket_expected(int family, int protocol)
{
	static const int inet[] = { 0, IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMPV6, IPPROTO_RAW };

	if (family == AF_UNIX)
		return true;
	if (family == AF_NETLINK)
		return protocol == NETLINK_ROUTE;
	for (size_t i = 0; i < ARRAY_SIZE(inet) && (family == AF_INET || family == AF_INET6); i++) {
		if (inet[i] == protocol)
			return true;
	}
	return false;
}

TEST(sockets_of_expected_families_only)
{
	static const long highs[] = { 0, HIGH };

	for (size_t h = 0; h < ARRAY_SIZE(highs); h++) {
		EXPECT_INT("sockets", child_run(SECCOMP_WORK, sockets_body, &highs[h]), 0);
		for (size_t i = 0; i < FAMILIES * ARRAY_SIZE(types) * ARRAY_SIZE(protocols); i++) {
			size_t p = i % ARRAY_SIZE(protocols), t = i / ARRAY_SIZE(protocols) % ARRAY_SIZE(types);
			int family = (int)(i / ARRAY_SIZE(protocols) / ARRAY_SIZE(types));
			char row[64];

			(void)snprintf(row, sizeof(row), "socket(%d, %d, %d)", family, types[t], protocols[p]);
			if (!socket_expected(family, protocols[p]))
				EXPECT_INT(row, answers[i], -EAFNOSUPPORT);
			else if (answers[i] == -EAFNOSUPPORT)
				fail_msg("%s is refused", row);
		}
	}
}

/* Only families that need no module are asked for without a filter: a test must not load one. */
TEST(sockets_that_are_refused_exist)
{
	static const struct argument_case refused[] = {
		{ { "socket", { AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT } }, EAFNOSUPPORT },
		{ { "socket", { HIGH | AF_NETLINK, SOCK_RAW, HIGH | NETLINK_KOBJECT_UEVENT } }, EAFNOSUPPORT },
		{ { "socket", { AF_UNIX | 0x100, SOCK_STREAM, 0 } }, 0 },
		{ { "socketpair", { AF_INET, SOCK_STREAM, 0, -1 } }, EAFNOSUPPORT },
		{ { "socketpair", { HIGH | AF_INET, SOCK_STREAM, 0, -1 } }, EAFNOSUPPORT },
	};
	static const struct argument_case allowed[] = {
		{ { "socket", { AF_UNIX, SOCK_STREAM, 0 } }, 0 },
		{ { "socket", { HIGH | AF_UNIX, SOCK_STREAM, 0 } }, 0 },
		{ { "socket", { AF_INET, SOCK_STREAM, 0 } }, 0 },
		{ { "socket", { AF_INET, SOCK_DGRAM, IPPROTO_UDP } }, 0 },
		{ { "socket", { AF_INET, SOCK_RAW, IPPROTO_ICMP } }, 0 },
		{ { "socket", { AF_NETLINK, SOCK_RAW, NETLINK_ROUTE } }, 0 },
		{ { "socketpair", { AF_UNIX, SOCK_STREAM, 0, -1 } }, 0 },
	};
	/* Built as modules on some kernels; looked at where /proc/net says that they are there. */
	static const struct argument_case packet = { { "socket", { AF_PACKET, SOCK_RAW, 0 } }, EAFNOSUPPORT };

	arguments_expect(refused, ARRAY_SIZE(refused));
	arguments_expect(allowed, ARRAY_SIZE(allowed));
	if (!access("/proc/net/packet", F_OK))
		arguments_expect(&packet, 1);
}

/* --- Other ways into the kernel --------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
static void int80_body(const void *arg __attribute__((unused)))
{
	long ret = 20; /* getpid of the 32-bit table */

	__asm__ volatile("int $0x80" : "+a"(ret) : : "r8", "r9", "r10", "r11", "memory");
	answers[0] = ret;
}

TEST(int80_runs_nothing)
{
	static const enum seccomp_program_id programs[] = { SECCOMP_WORK, SECCOMP_WORK_NESTED, SECCOMP_WORK_LOG,
							    SECCOMP_EXEC_GATE };

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		int status = child_run(programs[i], int80_body, NULL);

		assert_true(WIFSIGNALED(status));
		assert_int_equal(answers[0], 0);
		if (WTERMSIG(status) != SIGSYS) /* a kernel without the 32-bit table */
			assert_int_equal(WTERMSIG(status), SIGSEGV);
	}
	if (WIFSIGNALED(child_run(UNFILTERED, int80_body, NULL)))
		print_message("   proves nothing here: this kernel has no 32-bit calls\n");
	else
		assert_true(answers[0] > 0);
}

static void x32_body(const void *arg __attribute__((unused)))
{
	static const long numbers[] = { 39, 0, 59, 512, 520, 547 }; /* getpid, read, execve; x32's own: rt_sigaction, execve, last */

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		answers[i] = sys_call6(0x40000000 | numbers[i], -1, -1, -1, -1, -1, -1) == -ENOSYS;
}

TEST(x32_runs_nothing)
{
	EXPECT_INT("x32", child_run(SECCOMP_WORK, x32_body, NULL), 0);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(answers[i], 1);
	(void)child_run(UNFILTERED, x32_body, NULL);
	if (answers[0])
		print_message("   proves nothing here: this kernel has no x32 calls\n");
}
#endif

static void unknown_body(const void *arg __attribute__((unused)))
{
	for (long n = 471; n < 2048; n++) /* the first that Linux 6.18 does not have */
		answers[n] = sys_call6(n, -1, -1, -1, -1, -1, -1);
}

TEST(unknown_calls_look_like_an_older_kernel)
{
	EXPECT_INT("unknown", child_run(SECCOMP_WORK, unknown_body, NULL), 0);
	for (size_t n = 471; n < 2048; n++)
		assert_int_equal(answers[n], -ENOSYS);
}

/* --- What works ------------------------------------------------------------------------------------------------------------- */

TEST(clone3_is_hidden_by_the_gate_only)
{
	static const struct call c = { "clone3", { 0, 0 } };
	static const struct call other = { "ioctl", { -1, TIOCSTI } };

	EXPECT_INT("work", answer(SECCOMP_WORK, &c), -EINVAL);
	EXPECT_INT("gate", answer(SECCOMP_EXEC_GATE, &c), -ENOSYS);
	EXPECT_INT("gate, another call", answer(SECCOMP_EXEC_GATE, &other), answer(UNFILTERED, &other));
	assert_int_equal(seccomp_programs[SECCOMP_EXEC_GATE].len, 8); /* loaded for each exec: every instruction is paid there */
	assert_true(seccomp_programs[SECCOMP_WORK].len < 200);	     /* loaded for each sandbox */
}

static void *thread_body(void *p)
{
	*(long *)p = 1;
	return NULL;
}

static void gate_body(const void *arg __attribute__((unused)))
{
	char *const argv[] = { (char[]){ "sh" }, (char[]){ "-c" },
			       (char[]){ "test $(echo carrel | cat | wc -c) = 7 && (exit 0) & wait $!" }, NULL };
	pthread_t t;
	int status, ends[2];
	pid_t pid;
	char byte;

	if (seccomp_program_load(SECCOMP_EXEC_GATE)) /* as init's child does, under work */
		_exit(1);
	if (pthread_create(&t, NULL, thread_body, &answers[1]) || pthread_join(t, NULL))
		_exit(2);
	if (pipe(ends) || write(ends[1], "x", 1) != 1 || read(ends[0], &byte, 1) != 1)
		_exit(3);
	pid = fork();
	if (!pid) {
		(void)execv("/bin/sh", argv);
		_exit(4);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		_exit(5);
	answers[2] = sys_call2(__NR_clone3, 0, 0);
	answers[0] = 1;
}

TEST(programs_run_behind_both_filters)
{
	EXPECT_INT("exec", child_run(SECCOMP_WORK, gate_body, NULL), 0);
	assert_int_equal(answers[0], 1);
	assert_int_equal(answers[1], 1);
	assert_int_equal(answers[2], -ENOSYS);
	EXPECT_INT("nested exec", child_run(SECCOMP_WORK_NESTED, gate_body, NULL), 0);
	assert_int_equal(answers[0], 1);
}

/* Calls that programs make in odd corners; each must get the kernel's own answer. */
TEST(ordinary_calls_reach_the_kernel)
{
	static const char *const names[] = {
		"ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_open", "pidfd_send_signal", "close_range", "openat2",
		"statx", "rseq", "membarrier", "memfd_create", "landlock_create_ruleset", "mknodat", "fchownat", "setresuid",
		"copy_file_range", "inotify_add_watch", "timer_create", "mq_open", "shmget", "semget", "msgget", "seccomp", "prctl",
		"prlimit64", "sched_setaffinity", "capset", "futex_waitv", "cachestat", "fchmodat2", "getxattrat", "mseal",
		"epoll_pwait2", "fallocate", "sync_file_range", "io_setup", "pkey_alloc", "splice", "setxattr",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct call c = harmless(names[i]);
		long filtered = answer(SECCOMP_WORK, &c);

		EXPECT_INT(names[i], filtered, answer(UNFILTERED, &c));
	}
}

TEST(the_table_says_why)
{
	assert_true(seccomp_num_rules > 300);
	for (size_t i = 0; i < seccomp_num_rules; i++) {
		const struct seccomp_rule *r = &seccomp_rules[i];

		if (errno_of(r) && (!r->reason || !*r->reason))
			fail_msg("%s is denied without a reason", r->name);
		for (size_t k = 0; k < i; k++) {
			if (seccomp_rules[k].number == r->number)
				fail_msg("%s and %s have one number", r->name, seccomp_rules[k].name);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_says_why),
		cmocka_unit_test(every_denial_is_the_filters_own),
		cmocka_unit_test(what_must_never_be_allowed_is_denied),
		cmocka_unit_test(nesting_is_allowed_only_where_asked),
		cmocka_unit_test(terminals_and_namespaces_are_out_of_reach_of_ioctl),
		cmocka_unit_test(personality_takes_five_values),
		cmocka_unit_test(namespaces_cannot_be_made),
		cmocka_unit_test(socket_options_reach_no_other_protocol),
		cmocka_unit_test(sockets_of_expected_families_only),
		cmocka_unit_test(sockets_that_are_refused_exist),
#if defined(__x86_64__)
		cmocka_unit_test(int80_runs_nothing),
		cmocka_unit_test(x32_runs_nothing),
#endif
		cmocka_unit_test(unknown_calls_look_like_an_older_kernel),
		cmocka_unit_test(clone3_is_hidden_by_the_gate_only),
		cmocka_unit_test(programs_run_behind_both_filters),
		cmocka_unit_test(ordinary_calls_reach_the_kernel),
	};

	answers = mmap(NULL, ANSWERS_MAX * sizeof(*answers), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (answers == MAP_FAILED)
		return 1;
	return RUN(tests);
}
