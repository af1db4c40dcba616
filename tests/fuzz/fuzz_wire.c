/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_wire.c - Any bytes as a packet: every decoder refuses them or understands them completely
 *
 * Theory of operation. The input is a packet: a header and a body. Every decoder gets the body, whatever the header says, so that one corpus
 * serves all of them. The invariant: what a decoder accepts, the encoder turns back into the same bytes, so no byte was ignored and no
 * message has two forms. FAILED is the exception, because its texts are cleaned while they are read; there a second pass changes nothing. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "wire/msg.h"

/* Decode, encode, compare. */
#define ROUND_TRIP(noun, in)                                                                                           \
	do {                                                                                                           \
		auto_buf struct buf out_ = BUF_INIT(MSG_BODY_MAX);                                                     \
		struct msg_##noun m_;                                                                                  \
		if (msg_##noun##_get((in), &m_) == 0) {                                                                \
			msg_##noun##_put(&out_, &m_);                                                                  \
			must_be_same(&out_, (in));                                                                     \
		}                                                                                                      \
	} while (0)

static void must_be_same(const struct buf *out, struct wire_in in)
{
	MUST(out->r == 0);
	MUST(out->len == in.left);
	MUST(memcmp(out->p, in.p, in.left) == 0);
}

static void try_header(const uint8_t *data, size_t size)
{
	unsigned char again[MSG_HEADER_SIZE];
	struct msg_header h;

	if (msg_header_get(data, size, &h) < 0)
		return;
	MUST(size >= MSG_HEADER_SIZE);
	MUST(h.len <= msg_max(h.type) && msg_max(h.type) <= MSG_BODY_MAX);
	MUST(strcmp(msg_name(h.type), "?") != 0);
	msg_header_put(again, &h);
	MUST(memcmp(again, data, sizeof(again)) == 0);
}

static void try_start(struct wire_in in)
{
	auto_buf struct buf out = BUF_INIT(MSG_BODY_MAX);
	auto_(msg_start_done) struct msg_start m = { 0 };

	if (msg_start_get(in, &m) < 0)
		return;
	MUST(m.exec != 0 && m.argv && m.argv[0] && m.env);
	MUST(m.num_rlimits <= MSG_RLIMITS_MAX);
	msg_start_put(&out, &m);
	must_be_same(&out, in);
}

static void try_failed(struct wire_in in)
{
	auto_buf struct buf out = BUF_INIT(MSG_BODY_MAX);
	struct err e, again;

	if (msg_failed_get(in, &e) < 0)
		return;
	msg_failed_put(&out, &e);
	MUST(out.r == 0 && out.len == in.left);
	MUST(msg_failed_get(WIRE_IN((unsigned char *)out.p, out.len), &again) == 0);
	MUST(again.code == e.code && again.sys == e.sys);
	MUST(strcmp(again.msg, e.msg) == 0 && strcmp(again.hint, e.hint) == 0 && strcmp(again.trail, e.trail) == 0);
	for (const char *p = e.msg; *p; p++)
		MUST((unsigned char)*p >= 0x20 && *p != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_in in;

	try_header(data, size);
	if (size < MSG_HEADER_SIZE)
		return 0;
	in = WIRE_IN(data + MSG_HEADER_SIZE, size - MSG_HEADER_SIZE);
	try_start(in);
	try_failed(in);
	ROUND_TRIP(config, in);
	ROUND_TRIP(signal, in);
	ROUND_TRIP(resize, in);
	ROUND_TRIP(exec_ref, in);
	ROUND_TRIP(welcome, in);
	ROUND_TRIP(started, in);
	ROUND_TRIP(exec, in);
	ROUND_TRIP(output, in);
	ROUND_TRIP(ended, in);
	return 0;
}
