/* SPDX-License-Identifier: Apache-2.0 */
/* landlock.c - No device nodes, and no abstract sockets of others, for each exec
 *
 * Theory of operation. Runs in the child of an exec, never in init: a domain is inherited for good, and one that names a directory of a root that
 * is swapped later would be blind. What is handled is the making of character and block devices, and no rule grants it anywhere.
 *
 * The trap: every domain that handles any file access also refuses to move and link files from one directory to another (EXDEV), handled or not,
 * unless a rule above both grants LANDLOCK_ACCESS_FS_REFER. That would break `mv`, git and every package manager, so REFER is handled and
 * granted below "/". It exists since ABI 2; ABI 1 cannot be used. Of a process that lives through a root swap nothing more than this
 * is lost, and a swap waits until init is alone.
 *
 * Landlock forbids mount() to its processes, so sandboxes with nested user namespaces go without. A domain per exec also means that a debugger
 * in one exec cannot attach to a process of another; within one exec it can.
 *
 * Source: kernel Documentation/userspace-api/landlock.rst; include/uapi/linux/landlock.h, whose numbers are here because Debian 12's header ends
 * at ABI 2. */
#include "base/sys.h"
#include "init/internal.h"

#define LANDLOCK_VERSION_FLAG (1U << 0)       /* LANDLOCK_CREATE_RULESET_VERSION */
#define LANDLOCK_PATH_BENEATH 1               /* LANDLOCK_RULE_PATH_BENEATH */
#define LANDLOCK_MAKE_CHAR (UINT64_C(1) << 6) /* LANDLOCK_ACCESS_FS_MAKE_CHAR */
#define LANDLOCK_MAKE_BLOCK (UINT64_C(1) << 11)
#define LANDLOCK_REFER (UINT64_C(1) << 13)
#define LANDLOCK_SCOPE_ABSTRACT (UINT64_C(1) << 0) /* LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET */
#define LANDLOCK_ABI_REFER 2
#define LANDLOCK_ABI_SCOPE 6

struct landlock_ruleset {
	uint64_t fs, net, scoped;
};

struct landlock_path {
	uint64_t allowed;
	int32_t parent;
} __attribute__((packed));

static bool landlock_is_off(uint32_t config_flags)
{
#ifdef CARREL_TEST_SWITCHES
	if (config_flags & CONFIG_NO_LANDLOCK)
		return true;
#endif
	return config_flags & CONFIG_NESTED_USERNS;
}

uint32_t landlock_abi(uint32_t config_flags)
{
	int abi;

	if (landlock_is_off(config_flags))
		return 0;
	abi = (int)sys_call3(__NR_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION_FLAG);
	return abi >= LANDLOCK_ABI_REFER ? (uint32_t)abi : 0;
}

static int landlock_grant_refer(int ruleset)
{
	auto_close int root = sys_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
	struct landlock_path path = { .allowed = LANDLOCK_REFER, .parent = root };

	if (root < 0)
		return root;
	return (int)sys_call4(__NR_landlock_add_rule, ruleset, LANDLOCK_PATH_BENEATH, &path, 0);
}

int landlock_enter(uint32_t abi, uint32_t config_flags, struct err *e)
{
	struct landlock_ruleset attr = { .fs = LANDLOCK_MAKE_CHAR | LANDLOCK_MAKE_BLOCK | LANDLOCK_REFER };
	size_t size = sizeof(
		attr.fs); /* what ABI 2 knows; a larger struct is taken if the rest is zero, but only by newer kernels */
	auto_close int ruleset = -EBADF;
	int r;

	if (abi == 0)
		return 0;
	if (abi >= LANDLOCK_ABI_SCOPE && config_flags & CONFIG_SCOPE_ABSTRACT) {
		attr.scoped = LANDLOCK_SCOPE_ABSTRACT;
		size = sizeof(attr);
	}
	ruleset = (int)sys_call3(__NR_landlock_create_ruleset, &attr, size, 0);
	if (ruleset < 0)
		return err_sys(e, ruleset, "confine a command: make a Landlock ruleset");
	r = landlock_grant_refer(ruleset);
	if (r < 0)
		return err_sys(e, r, "confine a command: let Landlock allow moving files");
	r = (int)sys_call2(__NR_landlock_restrict_self, ruleset, 0);
	return r < 0 ? err_sys(e, r, "confine a command: enter the Landlock domain") : 0;
}
