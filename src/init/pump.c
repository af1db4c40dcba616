/* SPDX-License-Identifier: Apache-2.0 */
/* pump.c - Output on its way from a pipe or pty into a spool
 *
 * Theory of operation. A spool is a regular file outside the sandbox's tree and limits; readers take bytes from it by offset and init tells
 * them how far it has grown. Bytes are written at init's own offset, whatever the file's offset is (a client shares that). splice()
 * moves a pipe's pages without a detour through init, whose memory stays small; where it is refused (a pty, a spool opened with O_APPEND) a
 * small buffer does.
 *
 * A stream is read only in turns of PUMP_TURN, so that one flood does not hold up the others, and never with waiting: a process may open its
 * own pipe for reading through /proc/self/fd and take the bytes that epoll has announced.
 *
 * A spool never holds more than the exec's output_max. It is over the limit when a byte more has come, not when it is full: exactly
 * output_max bytes are fine. A spool that cannot be written (a full disk) is the same thing: the tree is killed, since going on would
 * lose output silently. */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "base/sys.h"
#include "init/internal.h"

#define PUMP_TURN MIB(1)    /* bytes of one stream before others get their turn */
#define PUMP_CHUNK KIB(256) /* bytes of one splice(); a pipe holds 64 KiB unless its user made it larger */
#define PUMP_BUFFER KIB(4)  /* bytes of the detour; a pty hands out at most 4095 at once */

/* What one step found. Negative errnos of the spool are failures of writing. */
enum { STEP_EOF = 0, STEP_EMPTY = -1, STEP_FULL = -2 };

int stream_open(struct init *in, struct exec *x, unsigned index, int fd, int spool)
{
	struct stream *s = &x->live->streams[index];
	int flags;

	s->spool = spool;
	s->used = true;
	if (fd < 0)
		return fd;
	flags = fcntl(fd, F_GETFL);
	s->by_copy = flags >= 0 && (flags & O_ACCMODE) == O_RDWR; /* the master of a pty */
	return source_open(in, &s->src, SOURCE_STREAM, fd, EPOLLIN, s);
}

void stream_close(struct init *in, struct stream *s)
{
	source_close(in, &s->src);
	close_p(&s->spool);
	s->spool = -EBADF;
}

static bool errno_is_spool(int r)
{
	return r == -ENOSPC || r == -EDQUOT || r == -EFBIG || r == -EIO || r == -ENOMEM;
}

/* Return: bytes moved, or a STEP_ value. */
static ssize_t step_copy(struct stream *s, size_t want)
{
	char chunk[PUMP_BUFFER];
	ssize_t n = sys_read(s->src.fd, chunk, MIN(want, sizeof(chunk)));

	if (n == -EAGAIN || n == -EINTR)
		return STEP_EMPTY;
	if (n <= 0)
		return STEP_EOF; /* a pty answers EIO when its last user has closed it */
	for (size_t done = 0; done < (size_t)n;) {
		ssize_t w = pwrite(s->spool, chunk + done, (size_t)n - done, (off_t)(s->end + done));

		if (w <= 0) {
			s->end += done;
			return STEP_FULL;
		}
		done += (size_t)w;
	}
	s->end += (uint64_t)n;
	return n;
}

static ssize_t step_splice(struct stream *s, size_t want)
{
	loff_t at = (loff_t)s->end;
	ssize_t n = splice(s->src.fd, NULL, s->spool, &at, want, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

	if (n > 0)
		s->end += (uint64_t)n;
	if (n >= 0)
		return n; /* 0 is STEP_EOF */
	if (errno == EAGAIN || errno == EINTR)
		return STEP_EMPTY;
	if (errno_is_spool(-errno))
		return STEP_FULL;
	s->by_copy = true; /* from now on, and reading must not wait */
	if (fcntl(s->src.fd, F_SETFL, O_NONBLOCK) < 0)
		return STEP_FULL;
	return step_copy(s, want);
}

/* Is there a byte that the spool may not take? */
static ssize_t step_over(const struct stream *s)
{
	char byte;
	int there = 0;

	if (ioctl(s->src.fd, FIONREAD, &there) == 0 && there > 0)
		return STEP_FULL;
	if (!s->by_copy && fcntl(s->src.fd, F_SETFL, O_NONBLOCK) < 0)
		return STEP_FULL;
	switch (sys_read(s->src.fd, &byte, 1)) {
	case -EAGAIN:
	case -EINTR:
		return STEP_EMPTY;
	case 1:
		return STEP_FULL;
	default:
		return STEP_EOF;
	}
}

static ssize_t stream_step(struct stream *s, uint64_t want)
{
	uint64_t max = s->exec->live->output_max;
	uint64_t room = max == 0 ? UINT64_MAX : max - s->end;

	if (room == 0)
		return step_over(s);
	want = MIN(want, room);
	return s->by_copy ? step_copy(s, want) : step_splice(s, MIN(want, PUMP_CHUNK));
}

/* Move at most @budget bytes. Everything that follows from what was found happens here; may free the live part of the exec. */
static void stream_move(struct init *in, struct stream *s, uint64_t budget)
{
	struct exec *x = s->exec;
	uint64_t from = s->end;
	ssize_t n = STEP_EMPTY;
	bool closed;

	while (s->end - from < budget) {
		n = stream_step(s, budget - (s->end - from));
		if (n <= 0)
			break;
	}
	closed = n == STEP_EOF || n == STEP_FULL;
	if (closed)
		stream_close(in, s);
	if (closed || s->end != from)
		client_notify(in, x, s->number == 1 ? PENDING_OUT : PENDING_ERR);
	if (n == STEP_FULL)
		exec_kill(in, x, OUTCOME_OUTPUT_LIMIT);
	else if (closed)
		exec_settle(in, x);
}

void stream_pump(struct init *in, struct stream *s)
{
	struct exec *x = s->exec;

	if (x->live->report.fd >= 0) /* whatever a command writes, it has been started before: say that first */
		exec_reported(in, x);
	stream_move(in, s, PUMP_TURN);
}

/* What is there now has a size: background processes that write on cannot keep an exec from ending. */
void stream_drain(struct init *in, struct stream *s)
{
	int there = 0;

	if (s->src.fd < 0)
		return;
	if (s->by_copy || ioctl(s->src.fd, FIONREAD, &there) < 0)
		there = (int)KIB(
			64); /* a pty's buffer; FIONREAD does not see what its line discipline has not taken yet */
	stream_move(in, s, (uint64_t)there + 1); /* and one more, to see the end of file */
}
