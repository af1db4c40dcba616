/* SPDX-License-Identifier: Apache-2.0 */
/* mkfs.c - An ext4 file system in a file
 *
 * Theory of operation. Runs in the warden. mkfs.ext4 is a program of the host (e2fsprogs), started as the other
 * helpers of the engine are: with clone3(CLONE_VM) and no exit signal, so that a caller with its own children and
 * handlers notices nothing (posix_spawn() would send it a SIGCHLD, and a caller that ignores those would take the
 * result away). The child gets the file as descriptor 3, a memfd for what it says, an empty environment, and dies
 * with us.
 *
 * The file system lives as long as one sandbox, which decides its features: no journal (a crash ends it), no resize
 * room, checksums so that unused inode tables need not be written, a minimum of 5 ms for any size (measured, 1.1 GiB
 * and 20 GiB sparse). libext2fs was rejected: it would be the only large library in a static program whose start is
 * counted in microseconds. */
#include "layers/mkfs.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/wait.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/fd.h"
#include "base/sys.h"

/* It writes a few hundred KiB. A store on a disk that is busy with something else takes seconds. */
#define MKFS_DEADLINE_MS 60000

#define STACK_SIZE KIB(32) /* the child calls no library */

/* Where distributions install it; root's PATH may lack all of them. */
static const char *const programs[] = { "/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4", "/usr/bin/mkfs.ext4",
					"/usr/local/sbin/mkfs.ext4" };

#define FEATURES                                                                                                       \
	"none,extent,64bit,flex_bg,sparse_super,filetype,dir_index,dir_nlink,large_file,huge_file,extra_isize,"        \
	"ext_attr,metadata_csum"
#define EXTENDED "lazy_itable_init=1,nodiscard,root_owner=0:0"
#define FILE_INSIDE "/proc/self/fd/3" /* where the child has the file */

/** struct mkfs - What the child needs; on memory that both share until it executes */
struct mkfs {
	const char *const *argv;
	int file, out;
	int failed; /* negative errno of the child */
};

static const char *find_program(struct err *e)
{
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		if (sys_call4(__NR_faccessat, AT_FDCWD, programs[i], X_OK, 0) == 0)
			return programs[i];
	r = err_set(e, ERR_UNSUPPORTED, "make a file system for the writable layer: mkfs.ext4 is not installed");
	(void)err_hint(e, r, "apt install e2fsprogs, or use backing=tmpfs");
	return NULL;
}

int mkfs_probe(struct err *e)
{
	return find_program(e) ? 0 : -EOPNOTSUPP;
}

static void child_main(void *arg)
{
	/* Its configuration would add features behind our back. */
	static const char *const envp[] = { "MKE2FS_CONFIG=/dev/null", "LC_ALL=C", NULL };
	struct mkfs *m = arg;
	uint64_t none = 0;
	int null, file, out, r = -EMFILE;

	(void)sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* cannot fail for a signal that exists */
	null = sys_fcntl(sys_openat(AT_FDCWD, "/dev/null", O_RDWR, 0), F_DUPFD_CLOEXEC, 16);
	out = sys_fcntl(m->out, F_DUPFD_CLOEXEC, 16); /* out of the way of 0 to 3 */
	file = sys_fcntl(m->file, F_DUPFD_CLOEXEC, 16);
	if (null >= 0 && out >= 0 && file >= 0 && sys_dup3(null, 0, 0) == 0 && sys_dup3(null, 1, 0) == 1 &&
	    sys_dup3(out, 2, 0) == 2 && sys_dup3(file, 3, 0) == 3) {
		(void)sys_close_range(4, ~0u, 0);
		(void)sys_rt_sigprocmask(SIG_SETMASK, &none, NULL); /* cannot fail with a valid pointer */
		r = (int)sys_call3(__NR_execve, m->argv[0], m->argv, envp);
	}
	m->failed = r;
	sys_exit(1);
}

/* CLONE_VFORK: we go on when the child has executed, or has not. */
static int start(struct mkfs *m, int *ret_pidfd, struct err *e)
{
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		.stack_size = STACK_SIZE,
	};
	uint64_t all = ~UINT64_C(0), old;
	void *stack;
	long r;

	stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		return err_sys(e, -ENOMEM, "map the stack of mkfs.ext4");
	args.stack = (uint64_t)(uintptr_t)stack;
	(void)sys_rt_sigprocmask(SIG_SETMASK, &all, &old); /* cannot fail with valid pointers */
	r = sys_clone3_call(&args, child_main, m);
	(void)sys_rt_sigprocmask(SIG_SETMASK, &old, NULL);
	(void)munmap(stack, STACK_SIZE);
	return r < 0 ? err_sys(e, (int)r, "start mkfs.ext4") : 0;
}

/* Return: its exit status, 256 and more for a signal; -ETIMEDOUT */
static int wait_for(int pidfd)
{
	struct pollfd fd = { .fd = pidfd, .events = POLLIN };
	siginfo_t info = { 0 };
	int r, status;

	do
		r = poll(&fd, 1, MKFS_DEADLINE_MS); /* a signal starts the wait anew, which a caller can bear */
	while (r < 0 && errno == EINTR);
	if (r == 0)
		(void)sys_pidfd_send_signal(pidfd, SIGKILL); /* it may end at this moment */
	do
		status = (int)sys_call5(__NR_waitid, P_PIDFD, pidfd, &info, WEXITED | __WALL, 0);
	while (status == -EINTR);
	if (r == 0)
		return -ETIMEDOUT;
	if (status < 0)
		return status;
	return info.si_code == CLD_EXITED ? info.si_status : 256 + info.si_status;
}

/* The first line of what it said, for the message; it likes to begin with an empty one. */
static int failed(int out, int status, struct err *e)
{
	char words[128] = "";
	ssize_t n = pread(out, words, sizeof(words) - 1, 0);
	const char *line;

	if (status == -ETIMEDOUT)
		return err_hint(e, err_set(e, ERR_DEADLINE, "make a file system for the writable layer"),
				"is the disk of the store stuck?");
	if (status < 0)
		return err_sys(e, status, "wait for mkfs.ext4");
	words[n > 0 ? n : 0] = '\0';
	line = words + strspn(words, "\n");
	(void)err_set(e, ERR_SYSTEM, "make a file system for the writable layer: mkfs.ext4 ended with %d: %.*s", status,
		      (int)strcspn(line, "\n"), line);
	return -EIO;
}

int mkfs_ext4(int file, uint64_t inodes, struct err *e)
{
	const char *program = find_program(e);
	char count[24];
	const char *const argv[] = { program, "-qF", "-b",     "4096", "-I",	 "256",	      "-m", "0",
				     "-N",    count, "-O",     FEATURES, "-E", EXTENDED, FILE_INSIDE, NULL };
	auto_close int out = -EBADF, pidfd = -EBADF;
	struct mkfs m = { .argv = argv, .file = file };
	int r;

	if (!program)
		return -EOPNOTSUPP;
	(void)snprintf(count, sizeof(count), "%" PRIu64, inodes);
	out = m.out = memfd_create("carrel-mkfs", MFD_CLOEXEC);
	if (out < 0)
		return err_sys(e, -errno, "make a file for the words of mkfs.ext4");
	r = start(&m, &pidfd, e);
	if (r < 0)
		return r;
	r = wait_for(pidfd);
	if (m.failed)
		return err_sys(e, m.failed, "execute '%s'", program);
	return r == 0 ? 0 : failed(out, r, e);
}
