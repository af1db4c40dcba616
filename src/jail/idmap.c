/* SPDX-License-Identifier: Apache-2.0 */
/* idmap.c - Which id inside is which id outside
 *
 * Theory of operation. Runs in the parent. A sandbox's range is 65,536 ids that nobody else on the host has, so its root is nobody outside.
 * Layers and volumes stay on disk with plain ids (0, 1000) and are shifted by idmapped mounts. Such a mount takes its map from a user
 * namespace; for layers that is the sandbox's own, for volumes it is one made for the purpose, whose only process ends at once. */
#include "jail/idmap.h"

#include <inttypes.h>
#include <linux/wait.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/sys.h"

#define PROC_PATH_MAX 40 /* "/proc/4194304/setgroups" and room */
#define MAP_LINE_MAX 40  /* three numbers of ten digits */

static int write_map(pid_t pid, const char *file, uint32_t inside, uint32_t outside, uint32_t count)
{
	char path[PROC_PATH_MAX], line[MAP_LINE_MAX];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	(void)snprintf(line, sizeof(line), "%" PRIu32 " %" PRIu32 " %" PRIu32 "\n", inside, outside, count);
	return fd_write_file_at(AT_FDCWD, path, line);
}

int idmap_write(pid_t pid, uint32_t uid_base, uint32_t gid_base, uint32_t count, struct err *e)
{
	char path[PROC_PATH_MAX];
	int r;

	if (count == 1) { /* an ordinary user must give up setgroups(), or it could leave a group that a file denies */
		(void)snprintf(path, sizeof(path), "/proc/%d/setgroups", (int)pid);
		r = fd_write_file_at(AT_FDCWD, path, "deny");
		if (r < 0)
			return err_sys(e, r, "give up setgroups in the new user namespace");
	}
	r = write_map(pid, "uid_map", 0, uid_base, count);
	if (r == 0)
		r = write_map(pid, "gid_map", 0, gid_base, count);
	return r < 0 ? err_sys(e, r, "map %" PRIu32 " ids from %" PRIu32, count, uid_base) : 0;
}

int idmap_open(pid_t pid, struct err *e)
{
	char path[PROC_PATH_MAX];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	fd = sys_openat(AT_FDCWD, path, O_RDONLY, 0);
	return fd < 0 ? err_sys(e, fd, "open the user namespace of process %d", (int)pid) : fd;
}

/* Two writes and an open are microseconds; a second is for a machine that swaps. */
#define HOLD_DEADLINE_S 1

/* The only process of a namespace that exists to be a map, for the microseconds until somebody has it open. It shares our memory and touches
 * none of it. An owner that is killed meanwhile takes it along, or died before it could ask for that: then its time ends. */
static void hold_namespace(void *arg)
{
	const struct timespec deadline = { .tv_sec = HOLD_DEADLINE_S };

	(void)arg;
	(void)sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* cannot fail for a signal that exists */
	(void)sys_call5(__NR_ppoll, NULL, 0, &deadline, NULL, 0);
	sys_exit(0);
}

int idmap_for_owner(int fd, uint32_t to_id, struct err *e)
{
	_Alignas(16) char stack[1024]; /* hold_namespace() needs one frame */
	int pidfd = -EBADF, userns, r;
	struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_VM | CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.stack = (uint64_t)(uintptr_t)stack,
		.stack_size = sizeof(stack),
	};
	struct stat st;
	pid_t pid;

	r = (int)sys_call4(__NR_newfstatat, fd, "", &st, AT_EMPTY_PATH);
	if (r < 0)
		return err_sys(e, r, "look at the owner of a volume");
	pid = (pid_t)sys_clone3_call(&args, hold_namespace, NULL);
	if (pid < 0)
		return err_sys(e, (int)pid, "make a user namespace for a volume");
	r = write_map(pid, "uid_map", st.st_uid, to_id, 1);
	if (r == 0)
		r = write_map(pid, "gid_map", st.st_gid, to_id, 1);
	userns = r < 0 ? err_sys(e, r, "map the owner of a volume") : idmap_open(pid, e);
	(void)sys_pidfd_send_signal(pidfd, SIGKILL); /* it cannot have ended */
	(void)sys_call5(__NR_waitid, P_PIDFD, pidfd, 0, WEXITED | __WALL, 0);
	(void)sys_close(pidfd);
	return userns;
}
