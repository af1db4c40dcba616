/* SPDX-License-Identifier: Apache-2.0 */
/* sys.h - System calls without a C library in between
 *
 * Theory of operation. The child that builds a sandbox shares memory with its parent (clone3 with CLONE_VM), which may be any
 * program with threads: libc wrappers would write the parent's errno, take its locks, or run its cancellation points. These
 * wrappers touch nothing but registers and return the kernel's negative errno as it is. They also give musl and glibc builds the
 * same calls, whatever each of them knows of the kernel's newer ones. */
#pragma once

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "base/macros.h"

/* Numbers that are the same on every architecture (asm-generic since 5.1), for headers that predate them. */
#ifndef __NR_clone3
#define __NR_clone3 435
#endif
#ifndef __NR_close_range
#define __NR_close_range 436
#endif
#ifndef __NR_openat2
#define __NR_openat2 437
#endif
#ifndef __NR_mount_setattr
#define __NR_mount_setattr 442
#endif
#ifndef __NR_landlock_create_ruleset
#define __NR_landlock_create_ruleset 444
#define __NR_landlock_add_rule 445
#define __NR_landlock_restrict_self 446
#endif

#if defined(__x86_64__)
static inline long sys_call6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}
#elif defined(__aarch64__)
static inline long sys_call6(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}
#else
#error "carrel knows the system call convention of x86-64 and arm64"
#endif

#define SYS_ARG(x) ((long)(x))
#define sys_call0(n) sys_call6(n, 0, 0, 0, 0, 0, 0)
#define sys_call1(n, a) sys_call6(n, SYS_ARG(a), 0, 0, 0, 0, 0)
#define sys_call2(n, a, b) sys_call6(n, SYS_ARG(a), SYS_ARG(b), 0, 0, 0, 0)
#define sys_call3(n, a, b, c) sys_call6(n, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), 0, 0, 0)
#define sys_call4(n, a, b, c, d) sys_call6(n, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), SYS_ARG(d), 0, 0)
#define sys_call5(n, a, b, c, d, e) \
	sys_call6(n, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), SYS_ARG(d), SYS_ARG(e), 0)

/* Files */
static inline int sys_openat(int dir, const char *path, int flags, mode_t mode)
{
	return (int)sys_call4(__NR_openat, dir, path, flags | O_CLOEXEC, mode);
}

static inline int sys_openat2(int dir, const char *path, const struct open_how *how)
{
	return (int)sys_call4(__NR_openat2, dir, path, how, sizeof(*how));
}

static inline int sys_close(int fd)
{
	return (int)sys_call1(__NR_close, fd);
}

static inline int sys_close_range(unsigned first, unsigned last, unsigned flags)
{
	return (int)sys_call3(__NR_close_range, first, last, flags);
}

static inline ssize_t sys_read(int fd, void *buf, size_t len)
{
	return sys_call3(__NR_read, fd, buf, len);
}

static inline ssize_t sys_write(int fd, const void *buf, size_t len)
{
	return sys_call3(__NR_write, fd, buf, len);
}

static inline int sys_mkdirat(int dir, const char *path, mode_t mode)
{
	return (int)sys_call3(__NR_mkdirat, dir, path, mode);
}

static inline int sys_mknodat(int dir, const char *path, mode_t mode, unsigned dev)
{
	return (int)sys_call4(__NR_mknodat, dir, path, mode, dev);
}

static inline int sys_symlinkat(const char *target, int dir, const char *path)
{
	return (int)sys_call3(__NR_symlinkat, target, dir, path);
}

static inline int sys_unlinkat(int dir, const char *path, int flags)
{
	return (int)sys_call3(__NR_unlinkat, dir, path, flags);
}

static inline int sys_fchdir(int fd)
{
	return (int)sys_call1(__NR_fchdir, fd);
}

static inline int sys_chdir(const char *path)
{
	return (int)sys_call1(__NR_chdir, path);
}

static inline int sys_dup3(int fd, int to, int flags)
{
	return (int)sys_call3(__NR_dup3, fd, to, flags);
}

static inline int sys_fcntl(int fd, int cmd, long arg)
{
	return (int)sys_call3(__NR_fcntl, fd, cmd, arg);
}

static inline int sys_ioctl(int fd, unsigned long cmd, long arg)
{
	return (int)sys_call3(__NR_ioctl, fd, cmd, arg);
}

/* Mounts */
static inline int sys_open_tree(int dir, const char *path, unsigned flags)
{
	return (int)sys_call3(__NR_open_tree, dir, path, flags | OPEN_TREE_CLOEXEC);
}

static inline int sys_move_mount(int from, const char *from_path, int to, const char *to_path, unsigned flags)
{
	return (int)sys_call5(__NR_move_mount, from, from_path, to, to_path, flags);
}

static inline int sys_mount_setattr(int dir, const char *path, unsigned flags, struct mount_attr *attr)
{
	return (int)sys_call5(__NR_mount_setattr, dir, path, flags, attr, sizeof(*attr));
}

static inline int sys_fsopen(const char *type)
{
	return (int)sys_call2(__NR_fsopen, type, FSOPEN_CLOEXEC);
}

static inline int sys_fsconfig(int fs, unsigned cmd, const char *key, const char *value, int aux)
{
	return (int)sys_call5(__NR_fsconfig, fs, cmd, key, value, aux);
}

static inline int sys_fsmount(int fs, unsigned attrs)
{
	return (int)sys_call3(__NR_fsmount, fs, FSMOUNT_CLOEXEC, attrs);
}

static inline int sys_mount(const char *src, const char *to, const char *type, unsigned long flags, const char *data)
{
	return (int)sys_call5(__NR_mount, src, to, type, flags, data);
}

static inline int sys_umount2(const char *path, int flags)
{
	return (int)sys_call2(__NR_umount2, path, flags);
}

static inline int sys_pivot_root(const char *new_root, const char *put_old)
{
	return (int)sys_call2(__NR_pivot_root, new_root, put_old);
}

/* Processes and privileges */
static inline long sys_clone3(struct clone_args *args)
{
	return sys_call2(__NR_clone3, args, sizeof(*args));
}

/**
 * sys_clone3_call() - clone3() whose child calls @fn(@arg) on the stack that @args names, and never returns
 *
 * With CLONE_VM the child must not come back into the parent's frame, which only assembly can promise.
 * Return: pid in the parent; negative errno
 */
#if defined(__x86_64__)
static inline long sys_clone3_call(struct clone_args *args, void (*fn)(void *), void *arg)
{
	register void (*r12)(void *) __asm__("r12") = fn;
	register void *r13 __asm__("r13") = arg;
	long ret;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %%r13, %%rdi\n\t"
			 "call *%%r12\n\t"
			 "hlt\n"
			 "1:"
			 : "=a"(ret)
			 : "a"(__NR_clone3), "D"(args), "S"(sizeof(*args)), "r"(r12), "r"(r13)
			 : "rcx", "r11", "memory");
	return ret;
}
#else
static inline long sys_clone3_call(struct clone_args *args, void (*fn)(void *), void *arg)
{
	register long x8 __asm__("x8") = __NR_clone3;
	register long x0 __asm__("x0") = (long)args;
	register long x1 __asm__("x1") = sizeof(*args);
	register void (*x19)(void *) __asm__("x19") = fn;
	register void *x20 __asm__("x20") = arg;

	__asm__ volatile("svc 0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, xzr\n\t"
			 "mov x0, x20\n\t"
			 "blr x19\n\t"
			 "brk 1\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x19), "r"(x20)
			 : "memory");
	return x0;
}
#endif

static inline int sys_unshare(unsigned long flags)
{
	return (int)sys_call1(__NR_unshare, flags);
}

static inline int sys_setns(int fd, int type)
{
	return (int)sys_call2(__NR_setns, fd, type);
}

static inline int sys_prctl(int op, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	return (int)sys_call5(__NR_prctl, op, a, b, c, d);
}

static inline int sys_setresuid(uid_t r, uid_t e, uid_t s)
{
	return (int)sys_call3(__NR_setresuid, r, e, s);
}

static inline int sys_setresgid(gid_t r, gid_t e, gid_t s)
{
	return (int)sys_call3(__NR_setresgid, r, e, s);
}

static inline int sys_setgroups(size_t n, const gid_t *groups)
{
	return (int)sys_call2(__NR_setgroups, n, groups);
}

/* setfsuid() and setfsgid() answer the previous id and never an error; asking again tells whether it took. */
static inline int sys_setfsuid(uid_t uid)
{
	(void)sys_call1(__NR_setfsuid, uid);
	return (uid_t)sys_call1(__NR_setfsuid, -1) == uid ? 0 : -EPERM;
}

static inline int sys_setfsgid(gid_t gid)
{
	(void)sys_call1(__NR_setfsgid, gid);
	return (gid_t)sys_call1(__NR_setfsgid, -1) == gid ? 0 : -EPERM;
}

static inline int sys_futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
	return (int)sys_call4(__NR_futex, word, op, value, timeout);
}

static inline int sys_execveat(int dir, const char *path, char *const argv[], char *const envp[], int flags)
{
	return (int)sys_call5(__NR_execveat, dir, path, argv, envp, flags);
}

static inline int sys_rt_sigprocmask(int how, const uint64_t *set, uint64_t *old)
{
	return (int)sys_call4(__NR_rt_sigprocmask, how, set, old, sizeof(uint64_t));
}

static inline int sys_pidfd_send_signal(int pidfd, int sig)
{
	return (int)sys_call4(__NR_pidfd_send_signal, pidfd, sig, 0, 0);
}

static inline int sys_sethostname(const char *name, size_t len)
{
	return (int)sys_call2(__NR_sethostname, name, len);
}

_Noreturn static inline void sys_exit(int status)
{
	for (;;)
		(void)sys_call1(__NR_exit_group, status);
}
