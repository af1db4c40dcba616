/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp_program.h - The system call filters, made at build time
 *
 * tools/gen-seccomp writes what is declared here from src/jail/seccomp.policy. docs/SECCOMP.md says how the parts fit. */
#pragma once

#include <assert.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "base/macros.h"
#include "base/sys.h"

/**
 * enum seccomp_program_id - Which filter
 *
 * Filters stack, and the strictest answer wins: init loads one of the `work` programs once, everything that it starts inherits it, and
 * the child of each exec adds SECCOMP_EXEC_GATE right before execve.
 */
enum seccomp_program_id {
	SECCOMP_WORK,		 /* the policy */
	SECCOMP_WORK_NESTED,	 /* the policy, with user namespaces and mounts for browsers and bubblewrap */
	SECCOMP_WORK_LOG,	 /* as SECCOMP_WORK, but what it would refuse is logged and done: sanitizer builds, never for use */
	SECCOMP_WORK_NESTED_LOG, /* the same for SECCOMP_WORK_NESTED */
	SECCOMP_EXEC_GATE,	 /* clone3 answers ENOSYS and the rest is allowed */
	SECCOMP_NUM_PROGRAMS,
};

/* struct seccomp_program - One filter, laid out as the kernel's struct sock_fprog, whose pointer is not const. */
struct seccomp_program {
	unsigned short len; /* instructions */
	const struct sock_filter *filter;
};

static_assert(sizeof(struct seccomp_program) == sizeof(struct sock_fprog), "seccomp() takes a struct sock_fprog");
static_assert(offsetof(struct seccomp_program, filter) == offsetof(struct sock_fprog, filter),
	      "seccomp() takes a struct sock_fprog");

/**
 * struct seccomp_rule - One system call of the policy, for people to read
 * @name:      System call
 * @verdict:   "allow", "nested", or the errno it answers: "EPERM", "ENOSYS", ...
 * @condition: "if ..." or "unless ...": when the verdict holds, else the call is allowed; NULL if always
 * @reason:    The attack that a denial answers; NULL where the verdict is "allow"
 * @number:    System call number on this architecture
 */
struct seccomp_rule {
	const char *name;
	const char *verdict;
	const char *condition;
	const char *reason;
	unsigned number;
};

extern const struct seccomp_program seccomp_programs[SECCOMP_NUM_PROGRAMS];
extern const struct seccomp_rule seccomp_rules[]; /* in the order of the policy */
extern const size_t seccomp_num_rules;

/**
 * seccomp_program_load() - Put one filter on the calling thread and all that it starts, for good
 *
 * The caller has set no_new_privs, or has CAP_SYS_ADMIN in its user namespace.
 * Return: 0; -EACCES without that privilege; -EINVAL if the kernel has no seccomp filters; -ENOMEM
 */
must_check static inline int seccomp_program_load(enum seccomp_program_id id)
{
	return (int)sys_call3(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &seccomp_programs[id]);
}
