/* SPDX-License-Identifier: Apache-2.0 */
/* confine.c - What init and everything inside may no longer do
 *
 * Theory of operation. Runs once, after CONFIG and before the first exec: no_new_privs, then not dumpable (nobody inside may trace init or open
 * its descriptors through /proc, whatever their capabilities in the sandbox's namespace), then the seccomp policy. Filters cannot be taken off and are
 * inherited, so a child that fails half way can only be more confined than meant. What execs alone get (Landlock; the gate that answers
 * clone3 with ENOSYS, which init itself needs for CLONE_INTO_CGROUP) is added in the child. */
#include <sys/prctl.h>

#include "base/sys.h"
#include "init/internal.h"
#include "jail/seccomp_program.h"

static bool confine_seccomp_is_off(uint32_t config_flags)
{
#ifdef CARREL_TEST_SWITCHES
	return config_flags & CONFIG_NO_SECCOMP;
#else
	(void)config_flags; /* msg_config_get() refuses the flag in such a build */
	return false;
#endif
}

static enum seccomp_program_id confine_program(uint32_t config_flags)
{
#ifdef CARREL_SECCOMP_LOG
	return config_flags & CONFIG_NESTED_USERNS ? SECCOMP_WORK_NESTED_LOG : SECCOMP_WORK_LOG;
#else
	return config_flags & CONFIG_NESTED_USERNS ? SECCOMP_WORK_NESTED : SECCOMP_WORK;
#endif
}

int confine_init(uint32_t config_flags, struct err *e)
{
	int r = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);

	if (r < 0)
		return err_sys(e, r, "confine init: no_new_privs");
	r = sys_prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (r < 0)
		return err_sys(e, r, "confine init: not dumpable");
	if (confine_seccomp_is_off(config_flags))
		return 0;
	r = seccomp_program_load(confine_program(config_flags));
	return r < 0 ? err_sys(e, r, "confine init: load the seccomp policy") : 0;
}

int confine_exec(const struct init *in, struct err *e)
{
	int r = landlock_enter(in->landlock, in->flags, e);

	if (r < 0 || confine_seccomp_is_off(in->flags))
		return r;
	r = seccomp_program_load(SECCOMP_EXEC_GATE);
	return r < 0 ? err_sys(e, r, "confine a command: load its seccomp gate") : 0;
}
