/* SPDX-License-Identifier: Apache-2.0 */
/* msg.c - The bodies of the messages between an init and its clients, and what makes each of them valid
 *
 * Theory of operation. Pure: no I/O, no clock, no state. Runs in init, where the bytes come from whoever may open the control
 * socket, and in libcarrel, where they come from a process inside a sandbox; neither side trusts the other, so both decode with
 * the same code.
 *
 * A type is one row of msg_types[]: its name and the largest body it can have. The largest body is the sum of its fields, so a
 * header alone is enough to refuse a packet before its body is mapped.
 *
 * Every decoder has one shape: read all fields in order (the reader is sticky and answers zeroes once it failed), then check once.
 * What is checked is everything that this page can know without the world: ranges, sets of flags, flags that contradict each other.
 * A value that passed needs no second look by its user, except for what it refers to (does that exec exist?). Structs are filled
 * only on success.
 *
 * Layouts never change: an addition is a new type or a new flag, since a decoder refuses a body with bytes left over. Copying
 * structs as they lie in memory was rejected: padding would leak, and the two sides are built against different C libraries. */
#include "wire/msg.h"

#include <signal.h>
#include <string.h>

#include "base/str.h"

#define MSG_ID_MAX 64        /* bytes of a sandbox's id: four times the length that libcarrel makes */
#define MSG_PID_MAX 4194304  /* PID_MAX_LIMIT of the kernel (include/linux/threads.h) */
#define MSG_ERRNO_MAX 4095   /* MAX_ERRNO of the kernel (include/linux/err.h) */
#define MSG_SIG_MAX 64       /* _NSIG of the kernel on x86-64 and arm64 */
#define MSG_RESOURCES_NUM 16 /* RLIM_NLIMITS of the kernel (include/uapi/asm-generic/resource.h) */

/* Largest body of each type in bytes: u16 is 2, u32 is 4, u64 is 8, a text is its length, its bytes and a NUL. */
#define TEXT(max) (4 + (max) + 1)
enum {
	BODY_EMPTY = 0,
	BODY_EXEC_REF = 8,
	BODY_CONFIG = 4 + 4 + TEXT(MSG_ID_MAX),
	BODY_SIGNAL = 8 + 4 + 4,
	BODY_RESIZE = 8 + 2 + 2,
	BODY_WELCOME = 4 + 4 + 4,
	BODY_FAILED = 4 + 4 + TEXT(ERR_MSG_MAX - 1) + TEXT(ERR_HINT_MAX - 1) + TEXT(ERR_TRAIL_MAX - 1),
	BODY_STARTED = 8 + 4,
	BODY_OUTPUT = 8 + 4 + 4 + 8,
	BODY_ENDED = 8 + 3 * 4 + 7 * 8 + 4,
	BODY_EXEC = 4 + 4 + TEXT(MSG_KEY_MAX) + BODY_ENDED,
};

static const struct {
	const char *name;
	size_t max; /* bytes */
} msg_types[] = {
	[MSG_CONFIG] = { "CONFIG", BODY_CONFIG },
	[MSG_HELLO] = { "HELLO", BODY_EMPTY },
	[MSG_START] = { "START", MSG_BODY_MAX },
	[MSG_GO] = { "GO", BODY_EXEC_REF },
	[MSG_SIGNAL] = { "SIGNAL", BODY_SIGNAL },
	[MSG_RESIZE] = { "RESIZE", BODY_RESIZE },
	[MSG_STDIN_CLOSE] = { "STDIN_CLOSE", BODY_EXEC_REF },
	[MSG_ATTACH] = { "ATTACH", BODY_EXEC_REF },
	[MSG_LIST] = { "LIST", BODY_EMPTY },

	[MSG_WELCOME] = { "WELCOME", BODY_WELCOME },
	[MSG_OK] = { "OK", BODY_EMPTY },
	[MSG_FAILED] = { "FAILED", BODY_FAILED },
	[MSG_STARTED] = { "STARTED", BODY_STARTED },
	[MSG_EXEC] = { "EXEC", BODY_EXEC },
	[MSG_OUTPUT] = { "OUTPUT", BODY_OUTPUT },
	[MSG_ENDED] = { "ENDED", BODY_ENDED },
};
_Static_assert(ARRAY_SIZE(msg_types) == MSG_ENDED + 1, "msg_types[] ends before or behind the last type");
_Static_assert(BODY_EXEC <= MSG_INLINE_MAX && BODY_FAILED <= MSG_INLINE_MAX, "only START may need a memfd");
_Static_assert(MSG_RLIMITS_MAX == MSG_RESOURCES_NUM, "a START holds one limit of each resource");

/* Flags that each mean one descriptor of CONFIG; CONFIG_FD_TASKS1 means as many as its field says. */
#define CONFIG_FDS                                                                                                     \
	(CONFIG_FD_LISTEN | CONFIG_FD_JOURNAL | CONFIG_FD_CGROUP2 | CONFIG_FD_PIDS1 | CONFIG_FD_CPUACCT1 |             \
	 CONFIG_FD_LOCK)
/* Switches that take a layer of isolation out exist only in builds for tests; elsewhere they are unknown bits. */
#ifdef CARREL_TEST_SWITCHES
#define CONFIG_TEST_FLAGS (CONFIG_NO_SECCOMP | CONFIG_NO_LANDLOCK)
#else
#define CONFIG_TEST_FLAGS 0
#endif
#define CONFIG_KNOWN                                                                                                   \
	(CONFIG_DIE_WITH_OWNER | CONFIG_NESTED_USERNS | CONFIG_SCOPE_ABSTRACT | CONFIG_TEST_FLAGS | CONFIG_FDS |       \
	 CONFIG_FD_TASKS1)

#define START_KNOWN                                                                                                    \
	(START_STDIN_FD | START_OUT_FD | START_ERR_FD | START_OUT_SPOOL | START_ERR_SPOOL | START_STDIN_PIPE |         \
	 START_PTY | START_HOLD)

/* Pairs of flags that name two places for one stream. */
static const uint32_t start_contradictions[] = {
	START_STDIN_FD | START_STDIN_PIPE, START_OUT_FD | START_OUT_SPOOL, START_ERR_FD | START_ERR_SPOOL,
	START_PTY | START_STDIN_FD,        START_PTY | START_STDIN_PIPE,   START_PTY | START_OUT_FD,
	START_PTY | START_ERR_FD,          START_PTY | START_ERR_SPOOL,
};

const char *msg_name(unsigned type)
{
	return type < ARRAY_SIZE(msg_types) && msg_types[type].name ? msg_types[type].name : "?";
}

size_t msg_max(unsigned type)
{
	return type < ARRAY_SIZE(msg_types) ? msg_types[type].max : 0;
}

static void le_put(unsigned char *p, uint32_t v, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++, v >>= 8)
		p[i] = (unsigned char)v;
}

void msg_header_put(unsigned char out[MSG_HEADER_SIZE], const struct msg_header *h)
{
	le_put(out, h->type, 2);
	le_put(out + 2, h->flags, 2);
	le_put(out + 4, h->serial, 4);
	le_put(out + 8, h->len, 4);
}

int msg_header_get(const unsigned char *p, size_t len, struct msg_header *ret)
{
	struct wire_in in = WIRE_IN(p, MIN(len, (size_t)MSG_HEADER_SIZE));
	struct msg_header h;

	h.type = wire_u16(&in);
	h.flags = wire_u16(&in);
	h.serial = wire_u32(&in);
	h.len = wire_u32(&in);
	if (!wire_done(&in) || h.type >= ARRAY_SIZE(msg_types) || !msg_types[h.type].name)
		return -EPROTO;
	if (h.flags & ~MSG_BODY_IN_FD || h.len > msg_types[h.type].max)
		return -EPROTO;
	*ret = h;
	return 0;
}

/* A body that did not decode: short of memory is our own trouble, anything else is the peer's. */
static int body_bad(const struct wire_in *in)
{
	return in->oom ? -ENOMEM : -EPROTO;
}

void msg_config_put(struct buf *out, const struct msg_config *m)
{
	wire_put_u32(out, m->flags);
	wire_put_u32(out, m->tasks_fds);
	wire_put_str(out, m->id);
}

static bool config_is_valid(const struct msg_config *m)
{
	unsigned fds = (unsigned)__builtin_popcount(m->flags & CONFIG_FDS);

	if (m->flags & ~(uint32_t)CONFIG_KNOWN)
		return false;
	if (!(m->flags & CONFIG_FD_TASKS1) != !m->tasks_fds)
		return false;
	return m->tasks_fds <= MSG_FDS_MAX - fds;
}

int msg_config_get(struct wire_in in, struct msg_config *ret)
{
	struct msg_config m;

	m.flags = wire_u32(&in);
	m.tasks_fds = wire_u32(&in);
	m.id = wire_str(&in, MSG_ID_MAX);
	if (!wire_done(&in) || !config_is_valid(&m))
		return body_bad(&in);
	*ret = m;
	return 0;
}

static bool start_flags_are_valid(uint32_t flags)
{
	if (flags & ~(uint32_t)START_KNOWN)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(start_contradictions); i++)
		if ((flags & start_contradictions[i]) == start_contradictions[i])
			return false;
	return true;
}

void msg_start_put(struct buf *out, const struct msg_start *m)
{
	if (m->num_rlimits > MSG_RLIMITS_MAX) {
		out->r = out->r < 0 ? out->r : -EINVAL;
		return;
	}
	wire_put_u64(out, m->exec);
	wire_put_u32(out, m->flags);
	wire_put_u16(out, m->rows);
	wire_put_u16(out, m->cols);
	wire_put_u64(out, m->timeout_ns);
	wire_put_u64(out, m->output_max);
	wire_put_str(out, m->key);
	wire_put_str(out, m->user);
	wire_put_str(out, m->cwd);
	wire_put_u32(out, m->num_rlimits);
	for (size_t i = 0; i < m->num_rlimits; i++) {
		wire_put_u32(out, m->rlimits[i].resource);
		wire_put_u64(out, m->rlimits[i].soft);
		wire_put_u64(out, m->rlimits[i].hard);
	}
	wire_put_strv(out, m->argv);
	wire_put_strv(out, m->env);
}

/* The list of limits; a resource that no kernel has, or a soft limit over the hard one, makes the reader bad. */
static void rlimits_get(struct wire_in *in, struct msg_start *m)
{
	m->num_rlimits = wire_u32(in);
	if (m->num_rlimits > MSG_RLIMITS_MAX) {
		in->bad = true;
		return;
	}
	for (size_t i = 0; i < m->num_rlimits; i++) {
		struct msg_rlimit *l = &m->rlimits[i];

		l->resource = wire_u32(in);
		l->soft = wire_u64(in);
		l->hard = wire_u64(in);
		if (l->resource >= MSG_RESOURCES_NUM || l->soft > l->hard)
			in->bad = true;
	}
}

static bool start_is_valid(const struct msg_start *m)
{
	if (!m->exec || !start_flags_are_valid(m->flags) || !m->argv[0])
		return false;
	return m->cwd[0] == '\0' || m->cwd[0] == '/';
}

int msg_start_get(struct wire_in in, struct msg_start *ret)
{
	auto_(msg_start_done) struct msg_start m = { .exec = wire_u64(&in) };

	m.flags = wire_u32(&in);
	m.rows = wire_u16(&in);
	m.cols = wire_u16(&in);
	m.timeout_ns = wire_u64(&in);
	m.output_max = wire_u64(&in);
	m.key = wire_str(&in, MSG_KEY_MAX);
	m.user = wire_str(&in, MSG_USER_MAX);
	m.cwd = wire_str(&in, MSG_PATH_MAX);
	rlimits_get(&in, &m);
	m.argv = wire_strv(&in, MSG_ARGS_MAX, MSG_ARG_MAX);
	m.env = wire_strv(&in, MSG_ARGS_MAX, MSG_ARG_MAX);
	if (!wire_done(&in) || !start_is_valid(&m))
		return body_bad(&in);
	*ret = m;
	m.argv = m.env = NULL;
	return 0;
}

void msg_start_done(struct msg_start *m)
{
	free(m->argv);
	free(m->env);
	m->argv = m->env = NULL;
}

void msg_signal_put(struct buf *out, const struct msg_signal *m)
{
	wire_put_u64(out, m->exec);
	wire_put_u32(out, m->sig);
	wire_put_u32(out, m->scope);
}

int msg_signal_get(struct wire_in in, struct msg_signal *ret)
{
	struct msg_signal m;

	m.exec = wire_u64(&in);
	m.sig = wire_u32(&in);
	m.scope = wire_u32(&in);
	if (!wire_done(&in) || !m.exec || m.sig < 1 || m.sig > MSG_SIG_MAX || m.scope >= SCOPE_NUM)
		return body_bad(&in);
	if (m.scope == SCOPE_TREE && m.sig != SIGKILL)
		return -EPROTO;
	*ret = m;
	return 0;
}

void msg_resize_put(struct buf *out, const struct msg_resize *m)
{
	wire_put_u64(out, m->exec);
	wire_put_u16(out, m->rows);
	wire_put_u16(out, m->cols);
}

int msg_resize_get(struct wire_in in, struct msg_resize *ret)
{
	struct msg_resize m;

	m.exec = wire_u64(&in);
	m.rows = wire_u16(&in);
	m.cols = wire_u16(&in);
	if (!wire_done(&in) || !m.exec)
		return body_bad(&in);
	*ret = m;
	return 0;
}

void msg_exec_ref_put(struct buf *out, const struct msg_exec_ref *m)
{
	wire_put_u64(out, m->exec);
}

int msg_exec_ref_get(struct wire_in in, struct msg_exec_ref *ret)
{
	struct msg_exec_ref m;

	m.exec = wire_u64(&in);
	if (!wire_done(&in) || !m.exec)
		return body_bad(&in);
	*ret = m;
	return 0;
}

void msg_welcome_put(struct buf *out, const struct msg_welcome *m)
{
	wire_put_u32(out, m->version);
	wire_put_u32(out, m->landlock);
	wire_put_u32(out, m->num_execs);
}

int msg_welcome_get(struct wire_in in, struct msg_welcome *ret)
{
	struct msg_welcome m;

	m.version = wire_u32(&in);
	m.landlock = wire_u32(&in);
	m.num_execs = wire_u32(&in);
	if (!wire_done(&in) || !m.version)
		return body_bad(&in);
	*ret = m;
	return 0;
}

void msg_started_put(struct buf *out, const struct msg_started *m)
{
	wire_put_u64(out, m->exec);
	wire_put_u32(out, m->pid);
}

int msg_started_get(struct wire_in in, struct msg_started *ret)
{
	struct msg_started m;

	m.exec = wire_u64(&in);
	m.pid = wire_u32(&in);
	if (!wire_done(&in) || !m.exec || m.pid > MSG_PID_MAX)
		return body_bad(&in);
	*ret = m;
	return 0;
}

void msg_output_put(struct buf *out, const struct msg_output *m)
{
	wire_put_u64(out, m->exec);
	wire_put_u32(out, m->stream);
	wire_put_u32(out, m->eof);
	wire_put_u64(out, m->end);
}

int msg_output_get(struct wire_in in, struct msg_output *ret)
{
	struct msg_output m;

	m.exec = wire_u64(&in);
	m.stream = wire_u32(&in);
	m.eof = wire_u32(&in);
	m.end = wire_u64(&in);
	if (!wire_done(&in) || !m.exec || m.stream < 1 || m.stream > 2 || m.eof > 1)
		return body_bad(&in);
	*ret = m;
	return 0;
}

void msg_ended_put(struct buf *out, const struct msg_ended *m)
{
	wire_put_u64(out, m->exec);
	wire_put_u32(out, m->outcome);
	wire_put_u32(out, m->code);
	wire_put_u32(out, m->sig);
	wire_put_u64(out, m->start_ns);
	wire_put_u64(out, m->end_ns);
	wire_put_u64(out, m->user_us);
	wire_put_u64(out, m->system_us);
	wire_put_u64(out, m->peak_bytes);
	wire_put_u64(out, m->out_bytes);
	wire_put_u64(out, m->err_bytes);
	wire_put_u32(out, m->left);
}

static void ended_read(struct wire_in *in, struct msg_ended *m)
{
	m->exec = wire_u64(in);
	m->outcome = wire_u32(in);
	m->code = wire_u32(in);
	m->sig = wire_u32(in);
	m->start_ns = wire_u64(in);
	m->end_ns = wire_u64(in);
	m->user_us = wire_u64(in);
	m->system_us = wire_u64(in);
	m->peak_bytes = wire_u64(in);
	m->out_bytes = wire_u64(in);
	m->err_bytes = wire_u64(in);
	m->left = wire_u32(in);
}

/* Readers subtract the times and index by the outcome: what would make them wrap is refused here, once for all of them. */
static bool ended_is_valid(const struct msg_ended *m)
{
	if (!m->exec || m->outcome >= OUTCOME_NUM || m->code > 255 || m->sig > MSG_SIG_MAX)
		return false;
	if ((m->outcome == OUTCOME_SIGNALLED && !m->sig) || (m->outcome == OUTCOME_EXITED && m->sig))
		return false;
	return m->outcome == OUTCOME_RUNNING || m->start_ns <= m->end_ns;
}

int msg_ended_get(struct wire_in in, struct msg_ended *ret)
{
	struct msg_ended m;

	ended_read(&in, &m);
	if (!wire_done(&in) || !ended_is_valid(&m) || m.outcome == OUTCOME_RUNNING)
		return body_bad(&in);
	*ret = m;
	return 0;
}

void msg_exec_put(struct buf *out, const struct msg_exec *m)
{
	wire_put_u32(out, m->flags);
	wire_put_u32(out, m->pid);
	wire_put_str(out, m->key);
	msg_ended_put(out, &m->end);
}

int msg_exec_get(struct wire_in in, struct msg_exec *ret)
{
	struct msg_exec m;

	m.flags = wire_u32(&in);
	m.pid = wire_u32(&in);
	m.key = wire_str(&in, MSG_KEY_MAX);
	ended_read(&in, &m.end);
	if (!wire_done(&in) || !start_flags_are_valid(m.flags) || m.pid > MSG_PID_MAX || !ended_is_valid(&m.end))
		return body_bad(&in);
	*ret = m;
	return 0;
}

void msg_failed_put(struct buf *out, const struct err *m)
{
	wire_put_u32(out, m->code);
	wire_put_u32(out, (uint32_t)m->sys);
	wire_put_str(out, m->msg);
	wire_put_str(out, m->hint);
	wire_put_str(out, m->trail);
}

/*
 * Copy a text that people will see on a terminal. It may quote names that are any bytes, so it is not refused, but nothing that
 * could steer the terminal survives: no control character, be it a byte or the UTF-8 form of U+0080 to U+009F, no broken UTF-8.
 */
static void text_copy(char *to, const char *from)
{
	size_t n = strlen(from);
	bool utf8 = str_is_utf8(from, n);

	memcpy(to, from, n + 1);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)to[i];

		if (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8))
			to[i] = '?';
		else if (c == 0xc2 && (unsigned char)to[i + 1] < 0xa0)
			to[i] = to[i + 1] = '?';
	}
}

int msg_failed_get(struct wire_in in, struct err *ret)
{
	uint32_t code = wire_u32(&in);
	uint32_t sys = wire_u32(&in);
	const char *msg = wire_str(&in, sizeof(ret->msg) - 1);
	const char *hint = wire_str(&in, sizeof(ret->hint) - 1);
	const char *trail = wire_str(&in, sizeof(ret->trail) - 1);

	if (!wire_done(&in) || code == ERR_NONE || code >= ERR_NUM_CODES || sys > MSG_ERRNO_MAX)
		return body_bad(&in);
	ret->code = (enum err_code)code;
	ret->sys = (int)sys;
	text_copy(ret->msg, msg);
	text_copy(ret->hint, hint);
	text_copy(ret->trail, trail);
	return 0;
}
