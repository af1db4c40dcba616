/* SPDX-License-Identifier: Apache-2.0 */
/* reap.c - Collect dead children: those that init started and every orphan of the sandbox
 *
 * Theory of operation. A PID 1 inherits every process whose parent died. Thousands may die at once, so a round is bounded and the loop comes
 * back for the rest between other events. A pid cannot be reused before it is collected here, which is what makes kill() by number safe
 * everywhere else in init. */
#include <sys/resource.h>
#include <sys/wait.h>

#include "init/internal.h"

/* Children per round: about 1 ms of work (3 us each), so that a storm of them delays nobody noticeably. */
#define REAP_ROUND 256

static uint64_t timeval_us(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

static struct exec *exec_of_leader(const struct init *in, pid_t pid)
{
	for (struct exec *x = in->execs_last; x; x = x->prev)
		if (x->pid == pid && x->live && x->state != EXEC_ENDED && x->state != EXEC_ENDING)
			return x;
	return NULL;
}

static void reap_round(struct init *in, bool *ret_orphans)
{
	for (unsigned i = 0; i < REAP_ROUND; i++) {
		struct rusage ru;
		int status;
		pid_t pid = wait4(-1, &status, WNOHANG, &ru);
		struct exec *x;

		if (pid <= 0)
			return;
		x = exec_of_leader(in, pid);
		if (x)
			exec_reaped(in, x, status, timeval_us(ru.ru_utime), timeval_us(ru.ru_stime), KIB(ru.ru_maxrss));
		else
			*ret_orphans = true;
	}
	in->reap_more = true;
}

void reap(struct init *in)
{
	bool orphans = false;

	in->reap_more = false;
	reap_round(in, &orphans);
	if (orphans)
		exec_settle_all(in);
}
