/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c - An append-only record of execs that outlives init
 *
 * Theory of operation. A record is a u32 length and the body of an EXEC message, appended in one write() when an exec has started and again
 * when it has ended; the last one of an id counts. The file is on the host, and its reader, who comes when this init is dead, must expect a torn
 * last record. A record that init itself could write only in part (a full disk) would hide those behind it, so nothing is written
 * after it: then execs without an end read as lost, which is what is known about them. */
#include "base/fd.h"
#include "init/internal.h"

/* A text of MSG_KEY_MAX bytes and 24 numbers. */
#define JOURNAL_RECORD_MAX 512 /* bytes */

void journal_exec(struct init *in, const struct exec *x)
{
	auto_buf struct buf body = BUF_INIT(JOURNAL_RECORD_MAX);
	auto_buf struct buf record = BUF_INIT(JOURNAL_RECORD_MAX);

	if (in->journal < 0)
		return;
	request_put_exec(x, &body);
	wire_put_u32(&record, (uint32_t)body.len);
	(void)buf_add(&record, body.p, body.len); /* sticky in record.r */
	if (body.r == 0 && record.r == 0 && write(in->journal, record.p, record.len) == (ssize_t)record.len)
		return;
	(void)close(take_fd(in->journal)); /* see close_p() */
}
