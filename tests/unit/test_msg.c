/* SPDX-License-Identifier: Apache-2.0 */
/* test_msg.c - Every message has one form of bytes, and everything else is refused
 *
 * Theory of operation. One sample of each body stands in samples[] with its bytes in hexadecimal: the layout of docs/WIRE.md, which never
 * changes; a failure there means that old and new processes no longer understand each other. The same samples are then cut and
 * lengthened. What a field may not hold stands in one table per type: bodies that encode well and must not decode. */
#include "wire/msg.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "test.h"

/* calloc() fails when this counts down to zero; negative: never (the program is linked with --wrap=calloc). */
static int calloc_fails_in = -1;
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	if (calloc_fails_in >= 0 && calloc_fails_in-- == 0)
		return NULL;
	return __real_calloc(n, size);
}

/* One signature for all types: encode, and decode-then-encode. */
struct codec {
	void (*put)(struct buf *out, const void *m);
	int (*again)(struct wire_in in, struct buf *out);
};

#define CODEC(noun, type)                                                                                              \
	static void put_##noun(struct buf *out, const void *m)                                                         \
	{                                                                                                              \
		msg_##noun##_put(out, m);                                                                              \
	}                                                                                                              \
	static int again_##noun(struct wire_in in, struct buf *out)                                                    \
	{                                                                                                              \
		struct type m;                                                                                         \
		int r = msg_##noun##_get(in, &m);                                                                      \
                                                                                                                       \
		if (r == 0)                                                                                            \
			msg_##noun##_put(out, &m);                                                                     \
		return r;                                                                                              \
	}                                                                                                              \
	static const struct codec noun##_codec = { put_##noun, again_##noun }

CODEC(config, msg_config);
CODEC(signal, msg_signal);
CODEC(resize, msg_resize);
CODEC(exec_ref, msg_exec_ref);
CODEC(welcome, msg_welcome);
CODEC(started, msg_started);
CODEC(exec, msg_exec);
CODEC(output, msg_output);
CODEC(ended, msg_ended);
CODEC(failed, err);

static void put_start(struct buf *out, const void *m)
{
	msg_start_put(out, m);
}

static int again_start(struct wire_in in, struct buf *out)
{
	auto_(msg_start_done) struct msg_start m = { 0 };
	int r = msg_start_get(in, &m);

	if (r == 0)
		msg_start_put(out, &m);
	else
		assert_true(!m.argv && !m.env);
	return r;
}

static const struct codec start_codec = { put_start, again_start };

/* Decode bytes from memory of exactly their length. */
static int decode(const struct codec *codec, const void *bytes, size_t len, struct buf *again)
{
	auto_free unsigned char *copy = malloc(len + !len);

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	return codec->again(WIRE_IN(copy, len), again);
}

static const char *argv_make[] = { "make", "-j2", NULL };
static const char *env_home[] = { "HOME=/root", NULL };
static const char *none[] = { NULL };

/* clang-format off */
static const struct sample {
	enum msg_type type;
	const struct codec *codec;
	const void *m;
	const char *hex; /* blanks between fields */
} samples[] = {
	{ MSG_CONFIG, &config_codec,
	  &(const struct msg_config){ .flags = CONFIG_DIE_WITH_OWNER | CONFIG_FD_TASKS1, .tasks_fds = 2, .id = "ab" },
	  "01200000 02000000 02000000616200" },
	{ MSG_START, &start_codec,
	  &(const struct msg_start){ .exec = 0x0102030405060708, .flags = START_PTY | START_OUT_SPOOL, .rows = 24, .cols = 80,
				     .timeout_ns = 1000, .output_max = 4096, .key = "k", .user = "", .cwd = "/w",
				     .num_rlimits = 1, .rlimits = { { 7, 1024, UINT64_MAX } }, .argv = argv_make,
				     .env = env_home },
	  "0807060504030201 48000000 1800 5000 e803000000000000 0010000000000000 010000006b00 0000000000 020000002f7700 "
	  "01000000 07000000 0004000000000000 ffffffffffffffff "
	  "02000000 040000006d616b6500 030000002d6a3200 01000000 0a000000484f4d453d2f726f6f7400" },
	{ MSG_SIGNAL, &signal_codec, &(const struct msg_signal){ 1, 9, SCOPE_TREE }, "0100000000000000 09000000 02000000" },
	{ MSG_RESIZE, &resize_codec, &(const struct msg_resize){ 2, 25, 132 }, "0200000000000000 1900 8400" },
	{ MSG_GO, &exec_ref_codec, &(const struct msg_exec_ref){ 3 }, "0300000000000000" },
	{ MSG_WELCOME, &welcome_codec, &(const struct msg_welcome){ 1, 7, 3 }, "01000000 07000000 03000000" },
	{ MSG_STARTED, &started_codec, &(const struct msg_started){ 4, 17 }, "0400000000000000 11000000" },
	{ MSG_OUTPUT, &output_codec, &(const struct msg_output){ 5, 2, 1, 258 },
	  "0500000000000000 02000000 01000000 0201000000000000" },
	{ MSG_ENDED, &ended_codec, &(const struct msg_ended){ 6, OUTCOME_EXITED, 255, 0, 1, 2, 3, 4, 5, 6, 7, 8 },
	  "0600000000000000 01000000 ff000000 00000000 0100000000000000 0200000000000000 0300000000000000 0400000000000000 "
	  "0500000000000000 0600000000000000 0700000000000000 08000000" },
	{ MSG_EXEC, &exec_codec,
	  &(const struct msg_exec){ START_HOLD, 9, "key", { .exec = 7, .outcome = OUTCOME_RUNNING, .out_bytes = 1 } },
	  "80000000 09000000 030000006b657900 0700000000000000 00000000 00000000 00000000 0000000000000000 0000000000000000 "
	  "0000000000000000 0000000000000000 0000000000000000 0100000000000000 0000000000000000 00000000" },
	{ MSG_FAILED, &failed_codec, &(const struct err){ ERR_NOT_FOUND, ENOENT, "m", "h", "" },
	  "02000000 02000000 010000006d00 010000006800 0000000000" },
};
/* clang-format on */

static unsigned hex_digit(char c)
{
	return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
}

static void from_hex(struct buf *out, const char *hex)
{
	for (; *hex; hex++) {
		unsigned char byte;

		if (*hex == ' ')
			continue;
		byte = (unsigned char)(hex_digit(hex[0]) << 4 | hex_digit(hex[1]));
		assert_int_equal(buf_add(out, &byte, 1), 0);
		hex++;
	}
}

TEST(layouts_never_change)
{
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		auto_buf struct buf got = BUF_INIT(MSG_BODY_MAX), want = BUF_INIT(MSG_BODY_MAX);

		samples[i].codec->put(&got, samples[i].m);
		from_hex(&want, samples[i].hex);
		EXPECT_INT(msg_name(samples[i].type), got.r, 0);
		EXPECT_INT(msg_name(samples[i].type), got.len, want.len);
		assert_memory_equal(got.p, want.p, want.len);
	}
}

TEST(every_body_comes_back_as_it_went)
{
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		auto_buf struct buf bytes = BUF_INIT(MSG_BODY_MAX), again = BUF_INIT(MSG_BODY_MAX);

		from_hex(&bytes, samples[i].hex);
		EXPECT_INT(msg_name(samples[i].type), decode(samples[i].codec, bytes.p, bytes.len, &again), 0);
		EXPECT_INT(msg_name(samples[i].type), again.len, bytes.len);
		assert_memory_equal(again.p, bytes.p, bytes.len);
	}
}

TEST(a_body_cut_anywhere_is_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		auto_buf struct buf bytes = BUF_INIT(MSG_BODY_MAX), again = BUF_INIT(MSG_BODY_MAX);

		from_hex(&bytes, samples[i].hex);
		for (size_t len = 0; len < bytes.len; len++)
			EXPECT_INT(msg_name(samples[i].type), decode(samples[i].codec, bytes.p, len, &again), -EPROTO);
	}
}

TEST(a_byte_too_many_is_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		auto_buf struct buf bytes = BUF_INIT(MSG_BODY_MAX), again = BUF_INIT(MSG_BODY_MAX);

		from_hex(&bytes, samples[i].hex);
		assert_int_equal(buf_add(&bytes, "", 1), 0);
		EXPECT_INT(msg_name(samples[i].type), decode(samples[i].codec, bytes.p, bytes.len, &again), -EPROTO);
	}
}

/* Texts of a given length, for limits. */
static const char *text_of(size_t len)
{
	static char text[MSG_ARG_MAX + 2];
	char *p = text + sizeof(text) - 1 - len;

	assert_true(len < sizeof(text));
	memset(text, '/', sizeof(text) - 1);
	return p;
}

struct verdict {
	const char *name;
	const void *m;
	int r;
};

static void judge(const struct codec *codec, const struct verdict *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		auto_buf struct buf bytes = BUF_INIT(MSG_BODY_MAX), again = BUF_INIT(MSG_BODY_MAX);

		codec->put(&bytes, rows[i].m);
		EXPECT_INT(rows[i].name, bytes.r, 0);
		EXPECT_INT(rows[i].name, decode(codec, bytes.p, bytes.len, &again), rows[i].r);
	}
}

#define JUDGE(noun, rows) judge(&noun##_codec, rows, ARRAY_SIZE(rows))

#define CONFIG(...)                                                                                                    \
	&(const struct msg_config)                                                                                     \
	{                                                                                                              \
		.id = "", __VA_ARGS__                                                                                  \
	}
#define ALL_SINGLE_FDS                                                                                                 \
	(CONFIG_FD_LISTEN | CONFIG_FD_JOURNAL | CONFIG_FD_CGROUP2 | CONFIG_FD_PIDS1 | CONFIG_FD_CPUACCT1 |             \
	 CONFIG_FD_LOCK)
#ifdef CARREL_TEST_SWITCHES
#define TEST_SWITCH_R 0
#else
#define TEST_SWITCH_R (-EPROTO)
#endif

TEST(config_holds_known_flags_and_as_many_descriptors_as_a_packet)
{
	const struct verdict rows[] = {
		{ "nothing", CONFIG(), 0 },
		{ "unknown bit 5", CONFIG(.flags = 1 << 5), -EPROTO },
		{ "unknown bit 31", CONFIG(.flags = 1u << 31), -EPROTO },
		{ "no seccomp", CONFIG(.flags = CONFIG_NO_SECCOMP), TEST_SWITCH_R },
		{ "no landlock", CONFIG(.flags = CONFIG_NO_LANDLOCK), TEST_SWITCH_R },
		{ "tasks without a number", CONFIG(.flags = CONFIG_FD_TASKS1), -EPROTO },
		{ "a number without tasks", CONFIG(.tasks_fds = 1), -EPROTO },
		{ "a packet full of tasks", CONFIG(.flags = CONFIG_FD_TASKS1, .tasks_fds = MSG_FDS_MAX), 0 },
		{ "one more", CONFIG(.flags = CONFIG_FD_TASKS1, .tasks_fds = MSG_FDS_MAX + 1), -EPROTO },
		{ "number that wraps", CONFIG(.flags = CONFIG_FD_TASKS1, .tasks_fds = UINT32_MAX), -EPROTO },
		{ "all together", CONFIG(.flags = ALL_SINGLE_FDS | CONFIG_FD_TASKS1, .tasks_fds = MSG_FDS_MAX - 6), 0 },
		{ "one more", CONFIG(.flags = ALL_SINGLE_FDS | CONFIG_FD_TASKS1, .tasks_fds = MSG_FDS_MAX - 5),
		  -EPROTO },
		{ "longest id", CONFIG(.id = text_of(64)), 0 },
		{ "longer id", CONFIG(.id = text_of(65)), -EPROTO },
	};

	JUDGE(config, rows);
}

#define START(...)                                                                                                     \
	&(const struct msg_start)                                                                                      \
	{                                                                                                              \
		.exec = 1, .key = "", .user = "", .cwd = "", .argv = argv_make, .env = none, __VA_ARGS__               \
	}

TEST(start_names_one_place_for_each_stream)
{
	static const struct {
		uint32_t flags;
		int r;
	} rows[] = {
		{ 0, 0 },
		{ START_STDIN_FD | START_OUT_FD | START_ERR_FD, 0 },
		{ START_STDIN_PIPE | START_OUT_SPOOL | START_ERR_SPOOL | START_HOLD, 0 },
		{ START_OUT_FD | START_ERR_SPOOL, 0 },
		{ START_PTY, 0 },
		{ START_PTY | START_OUT_SPOOL | START_HOLD, 0 },
		{ START_STDIN_FD | START_STDIN_PIPE, -EPROTO },
		{ START_OUT_FD | START_OUT_SPOOL, -EPROTO },
		{ START_ERR_FD | START_ERR_SPOOL, -EPROTO },
		{ START_PTY | START_STDIN_FD, -EPROTO },
		{ START_PTY | START_STDIN_PIPE, -EPROTO },
		{ START_PTY | START_OUT_FD, -EPROTO },
		{ START_PTY | START_ERR_FD, -EPROTO },
		{ START_PTY | START_ERR_SPOOL, -EPROTO },
		{ START_HOLD << 1, -EPROTO },
		{ UINT32_MAX, -EPROTO },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct verdict row = { "flags", START(.flags = rows[i].flags), rows[i].r };

		judge(&start_codec, &row, 1);
	}
}

TEST(start_keeps_to_its_limits)
{
	auto_free char *key = strdup(text_of(MSG_KEY_MAX + 1)), *user = strdup(text_of(MSG_USER_MAX + 1));
	auto_free char *cwd = strdup(text_of(MSG_PATH_MAX + 1)), *arg = strdup(text_of(MSG_ARG_MAX + 1));
	const char *arg_fits[] = { arg + 1, NULL }, *arg_long[] = { "x", arg, NULL };
	const struct verdict rows[] = {
		{ "exec 0", START(.exec = 0), -EPROTO },
		{ "largest exec", START(.exec = UINT64_MAX), 0 },
		{ "no program", START(.argv = none), -EPROTO },
		{ "longest key", START(.key = key + 1), 0 },
		{ "longer key", START(.key = key), -EPROTO },
		{ "longest user", START(.user = user + 1), 0 },
		{ "longer user", START(.user = user), -EPROTO },
		{ "longest cwd", START(.cwd = cwd + 1), 0 },
		{ "longer cwd", START(.cwd = cwd), -EPROTO },
		{ "relative cwd", START(.cwd = "tmp"), -EPROTO },
		{ "cwd that climbs", START(.cwd = ".."), -EPROTO },
		{ "longest argument", START(.argv = arg_fits), 0 },
		{ "longer argument", START(.argv = arg_long), -EPROTO },
		{ "longer variable", START(.env = arg_long), -EPROTO },
		{ "every limit", START(.num_rlimits = 16, .rlimits = { { 15, 0, 0 } }), 0 },
		{ "unknown resource", START(.num_rlimits = 1, .rlimits = { { 16, 0, 0 } }), -EPROTO },
		{ "unknown resource, last", START(.num_rlimits = 2, .rlimits = { { 1, 0, 0 }, { UINT32_MAX, 0, 0 } }),
		  -EPROTO },
		{ "soft over hard", START(.num_rlimits = 1, .rlimits = { { 7, 2, 1 } }), -EPROTO },
		{ "unlimited over hard", START(.num_rlimits = 1, .rlimits = { { 7, UINT64_MAX, 1 } }), -EPROTO },
		{ "unlimited", START(.num_rlimits = 1, .rlimits = { { 7, UINT64_MAX, UINT64_MAX } }), 0 },
	};

	JUDGE(start, rows);
}

TEST(start_with_too_many_limits_is_refused_on_both_sides)
{
	auto_buf struct buf out = BUF_INIT(MSG_BODY_MAX), again = BUF_INIT(MSG_BODY_MAX);

	msg_start_put(&out, START(.num_rlimits = MSG_RLIMITS_MAX + 1));
	assert_int_equal(out.r, -EINVAL);
	buf_done(&out);
	msg_start_put(&out, START(.num_rlimits = MSG_RLIMITS_MAX));
	assert_int_equal(out.p[47], MSG_RLIMITS_MAX); /* 32 bytes of numbers, three empty texts */
	out.p[47]++;
	assert_int_equal(decode(&start_codec, out.p, out.len, &again), -EPROTO);
}

TEST(start_takes_as_many_arguments_as_the_page_says)
{
	auto_buf struct buf out = BUF_INIT(MSG_BODY_MAX), again = BUF_INIT(MSG_BODY_MAX);
	auto_free const char **many = calloc(MSG_ARGS_MAX + 2, sizeof(*many));

	assert_non_null(many);
	for (size_t i = 0; i < MSG_ARGS_MAX; i++)
		many[i] = "";
	msg_start_put(&out, START(.argv = many));
	assert_int_equal(decode(&start_codec, out.p, out.len, &again), 0);
	buf_done(&out);
	many[MSG_ARGS_MAX] = "";
	msg_start_put(&out, START(.argv = many));
	assert_int_equal(decode(&start_codec, out.p, out.len, &again), -EPROTO);
}

TEST(start_without_memory_says_so_and_leaves_nothing)
{
	auto_buf struct buf out = BUF_INIT(MSG_BODY_MAX), again = BUF_INIT(MSG_BODY_MAX);

	msg_start_put(&out, START());
	for (int n = 0; n < 2; n++) {
		calloc_fails_in = n;
		assert_int_equal(decode(&start_codec, out.p, out.len, &again), -ENOMEM);
	}
	calloc_fails_in = -1;
	assert_int_equal(decode(&start_codec, out.p, out.len, &again), 0);
}

TEST(signal_is_a_signal_and_a_tree_is_only_killed)
{
	const struct verdict rows[] = {
		{ "signal 1", &(struct msg_signal){ 1, 1, SCOPE_LEADER }, 0 },
		{ "signal 64", &(struct msg_signal){ 1, 64, SCOPE_GROUP }, 0 },
		{ "kill", &(struct msg_signal){ 1, 9, SCOPE_TREE }, 0 },
		{ "exec 0", &(struct msg_signal){ 0, 9, SCOPE_TREE }, -EPROTO },
		{ "signal 0", &(struct msg_signal){ 1, 0, SCOPE_LEADER }, -EPROTO },
		{ "signal 65", &(struct msg_signal){ 1, 65, SCOPE_LEADER }, -EPROTO },
		{ "negative signal", &(struct msg_signal){ 1, UINT32_MAX, SCOPE_LEADER }, -EPROTO },
		{ "unknown scope", &(struct msg_signal){ 1, 9, SCOPE_NUM }, -EPROTO },
		{ "terminate a tree", &(struct msg_signal){ 1, 15, SCOPE_TREE }, -EPROTO },
	};

	JUDGE(signal, rows);
}

TEST(an_exec_has_a_number)
{
	const struct verdict ref[] = { { "0", &(struct msg_exec_ref){ 0 }, -EPROTO } };
	const struct verdict resize[] = { { "0", &(struct msg_resize){ 0, 1, 1 }, -EPROTO } };

	JUDGE(exec_ref, ref);
	JUDGE(resize, resize);
}

TEST(welcome_has_a_version)
{
	const struct verdict rows[] = {
		{ "version 0", &(struct msg_welcome){ 0, 0, 0 }, -EPROTO },
		{ "a later one", &(struct msg_welcome){ 2, 0, 0 }, 0 }, /* for the client to judge */
	};

	JUDGE(welcome, rows);
}

TEST(started_has_a_pid_that_a_kernel_can_have)
{
	const struct verdict rows[] = {
		{ "ended already", &(struct msg_started){ 1, 0 }, 0 },
		{ "largest", &(struct msg_started){ 1, 4194304 }, 0 },
		{ "larger", &(struct msg_started){ 1, 4194305 }, -EPROTO },
		{ "negative", &(struct msg_started){ 1, UINT32_MAX }, -EPROTO },
		{ "exec 0", &(struct msg_started){ 0, 1 }, -EPROTO },
	};

	JUDGE(started, rows);
}

TEST(output_is_of_one_of_two_streams)
{
	const struct verdict rows[] = {
		{ "stdout", &(struct msg_output){ 1, 1, 0, 0 }, 0 },
		{ "stderr", &(struct msg_output){ 1, 2, 1, UINT64_MAX }, 0 },
		{ "stdin", &(struct msg_output){ 1, 0, 0, 0 }, -EPROTO },
		{ "a third", &(struct msg_output){ 1, 3, 0, 0 }, -EPROTO },
		{ "half an end", &(struct msg_output){ 1, 1, 2, 0 }, -EPROTO },
		{ "exec 0", &(struct msg_output){ 0, 1, 0, 0 }, -EPROTO },
	};

	JUDGE(output, rows);
}

#define ENDED(...)                                                                                                     \
	&(const struct msg_ended)                                                                                      \
	{                                                                                                              \
		.exec = 1, .outcome = OUTCOME_EXITED, __VA_ARGS__                                                      \
	}

TEST(an_end_is_final_and_does_not_contradict_itself)
{
	const struct verdict rows[] = {
		{ "exited", ENDED(), 0 },
		{ "timed out", ENDED(.outcome = OUTCOME_TIMED_OUT, .sig = 9), 0 },
		{ "signalled", ENDED(.outcome = OUTCOME_SIGNALLED, .sig = 64), 0 },
		{ "at once", ENDED(.start_ns = 5, .end_ns = 5), 0 },
		{ "exec 0", ENDED(.exec = 0), -EPROTO },
		{ "still running", ENDED(.outcome = OUTCOME_RUNNING), -EPROTO },
		{ "unknown outcome", ENDED(.outcome = OUTCOME_NUM), -EPROTO },
		{ "status over a byte", ENDED(.code = 256), -EPROTO },
		{ "signal over the last", ENDED(.outcome = OUTCOME_SIGNALLED, .sig = 65), -EPROTO },
		{ "signalled by nothing", ENDED(.outcome = OUTCOME_SIGNALLED), -EPROTO },
		{ "exited by a signal", ENDED(.sig = 9), -EPROTO },
		{ "ended before it started", ENDED(.start_ns = 2, .end_ns = 1), -EPROTO },
	};

	JUDGE(ended, rows);
}

#define EXEC(...)                                                                                                      \
	&(const struct msg_exec)                                                                                       \
	{                                                                                                              \
		.key = "", .end = { .exec = 1 }, __VA_ARGS__                                                           \
	}

TEST(an_execs_state_is_judged_as_its_start_and_its_end_are)
{
	const struct verdict rows[] = {
		{ "running", EXEC(.end = { .exec = 1, .start_ns = 7 }), 0 },
		{ "ended", EXEC(.end = { .exec = 1, .outcome = OUTCOME_KILLED }), 0 },
		{ "contradictory flags", EXEC(.flags = START_PTY | START_ERR_FD), -EPROTO },
		{ "largest pid", EXEC(.pid = 4194304), 0 },
		{ "larger pid", EXEC(.pid = 4194305), -EPROTO },
		{ "exec 0", EXEC(.end = { .exec = 0 }), -EPROTO },
		{ "unknown outcome", EXEC(.end = { .exec = 1, .outcome = OUTCOME_NUM }), -EPROTO },
		{ "ended before it started", EXEC(.end = { .exec = 1, .outcome = OUTCOME_KILLED, .start_ns = 1 }),
		  -EPROTO },
		{ "longest key", EXEC(.key = text_of(MSG_KEY_MAX)), 0 },
		{ "longer key", EXEC(.key = text_of(MSG_KEY_MAX + 1)), -EPROTO },
	};

	JUDGE(exec, rows);
}

TEST(a_failure_has_a_kind_and_an_errno_of_the_kernel)
{
	const struct verdict rows[] = {
		{ "without errno", &(struct err){ .code = ERR_INVALID }, 0 },
		{ "last errno", &(struct err){ .code = ERR_SYSTEM, .sys = 4095 }, 0 },
		{ "no failure", &(struct err){ .code = ERR_NONE }, -EPROTO },
		{ "unknown kind", &(struct err){ .code = ERR_NUM_CODES }, -EPROTO },
		{ "errno over the last", &(struct err){ .code = ERR_SYSTEM, .sys = 4096 }, -EPROTO },
		{ "negative errno", &(struct err){ .code = ERR_SYSTEM, .sys = -1 }, -EPROTO },
	};

	JUDGE(failed, rows);
}

TEST(a_failures_texts_fit_their_fields)
{
	static const size_t max[3] = { ERR_MSG_MAX - 1, ERR_HINT_MAX - 1, ERR_TRAIL_MAX - 1 };

	for (size_t longer = 0; longer <= 3; longer++) { /* which of the three is a byte too long; the last time none */
		auto_buf struct buf out = BUF_INIT(MSG_BODY_MAX), again = BUF_INIT(MSG_BODY_MAX);

		wire_put_u32(&out, ERR_SYSTEM);
		wire_put_u32(&out, 0);
		for (size_t i = 0; i < 3; i++)
			wire_put_str(&out, text_of(max[i] + (i == longer)));
		assert_int_equal(decode(&failed_codec, out.p, out.len, &again), longer < 3 ? -EPROTO : 0);
	}
}

TEST(a_failures_texts_cannot_steer_a_terminal)
{
	static const struct {
		const char *sent, *got;
	} rows[] = {
		{ "run 'x'", "run 'x'" },
		{ "caf\xc3\xa9 \xe2\x82\xac", "caf\xc3\xa9 \xe2\x82\xac" },
		{ "\x1b]0;title\x07", "?]0;title?" },
		{ "line\nfeed\r\ttab\x7f", "line?feed??tab?" },
		{ "\xc2\x9b"
		  "31m",
		  "??31m" },                /* CSI as a character, U+009B */
		{ "\xc2\xa0", "\xc2\xa0" }, /* the first character behind those controls */
		{ "\x80 first, \xbf last", "? first, ? last" },
		{ "bad \xff \xc3\xa9", "bad ? ??" },
		{ "\x9b"
		  "31m",
		  "?31m" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_buf struct buf out = BUF_INIT(MSG_BODY_MAX);
		struct err sent = { .code = ERR_SYSTEM }, got;

		(void)snprintf(sent.msg, sizeof(sent.msg), "%s", rows[i].sent);
		(void)snprintf(sent.hint, sizeof(sent.hint), "%s", rows[i].sent);
		(void)snprintf(sent.trail, sizeof(sent.trail), "%s", rows[i].sent);
		msg_failed_put(&out, &sent);
		assert_int_equal(msg_failed_get(WIRE_IN((unsigned char *)out.p, out.len), &got), 0);
		assert_string_equal(got.msg, rows[i].got);
		assert_string_equal(got.hint, rows[i].got);
		assert_string_equal(got.trail, rows[i].got);
	}
}

TEST(the_largest_body_of_a_type_is_the_largest_that_decodes)
{
	struct err e = { .code = ERR_SYSTEM };
	const struct {
		enum msg_type type;
		const struct codec *codec;
		const void *m;
	} rows[] = {
		{ MSG_CONFIG, &config_codec, CONFIG(.id = text_of(64)) },
		{ MSG_EXEC, &exec_codec, EXEC(.key = text_of(MSG_KEY_MAX)) },
		{ MSG_FAILED, &failed_codec, &e },
		{ MSG_SIGNAL, &signal_codec, &(struct msg_signal){ 1, 9, SCOPE_TREE } },
		{ MSG_RESIZE, &resize_codec, &(struct msg_resize){ 1, 1, 1 } },
		{ MSG_GO, &exec_ref_codec, &(struct msg_exec_ref){ 1 } },
		{ MSG_STDIN_CLOSE, &exec_ref_codec, &(struct msg_exec_ref){ 1 } },
		{ MSG_ATTACH, &exec_ref_codec, &(struct msg_exec_ref){ 1 } },
		{ MSG_WELCOME, &welcome_codec, &(struct msg_welcome){ 1, 1, 1 } },
		{ MSG_STARTED, &started_codec, &(struct msg_started){ 1, 1 } },
		{ MSG_OUTPUT, &output_codec, &(struct msg_output){ 1, 1, 1, 1 } },
		{ MSG_ENDED, &ended_codec, ENDED() },
	};

	memset(e.msg, 'm', sizeof(e.msg) - 1);
	memset(e.hint, 'h', sizeof(e.hint) - 1);
	memset(e.trail, 't', sizeof(e.trail) - 1);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_buf struct buf out = BUF_INIT(MSG_BODY_MAX), again = BUF_INIT(MSG_BODY_MAX);

		rows[i].codec->put(&out, rows[i].m);
		EXPECT_INT(msg_name(rows[i].type), out.len, msg_max(rows[i].type));
		EXPECT_INT(msg_name(rows[i].type), decode(rows[i].codec, out.p, out.len, &again), 0);
	}
	assert_int_equal(msg_max(MSG_START), MSG_BODY_MAX);
	assert_int_equal(msg_max(MSG_HELLO), 0);
	assert_int_equal(msg_max(MSG_LIST), 0);
	assert_int_equal(msg_max(MSG_OK), 0);
}

TEST(only_the_types_of_the_page_have_names)
{
	static const unsigned types[] = { 0, 2, 4, 6, 8, 10, 12, 14, 16, 1, 3, 5, 7, 9, 33, 35 };
	size_t named = 0;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		assert_string_not_equal(msg_name(types[i]), "?");
	for (unsigned t = 0; t < 70000; t++)
		named += !str_eq(msg_name(t), "?");
	assert_int_equal(named, ARRAY_SIZE(types));
	assert_string_equal(msg_name(UINT32_MAX), "?");
	assert_int_equal(msg_max(11), 0);
	assert_int_equal(msg_max(MSG_ENDED + 1), 0);
	assert_int_equal(msg_max(UINT32_MAX), 0);
}

TEST(a_header_comes_back)
{
	static const unsigned char bytes[] = { 4, 0, 1, 0, 0x78, 0x56, 0x34, 0x12, 0, 0, 2, 0 };
	struct msg_header h = { .type = MSG_START, .flags = MSG_BODY_IN_FD, .serial = 0x12345678, .len = 0x20000 };
	unsigned char out[MSG_HEADER_SIZE + 1] = { [MSG_HEADER_SIZE] = '#' };

	msg_header_put(out, &h);
	assert_memory_equal(out, bytes, sizeof(bytes));
	assert_int_equal(out[MSG_HEADER_SIZE], '#');
	h = (struct msg_header){ 0 };
	assert_int_equal(msg_header_get(out, sizeof(out), &h), 0);
	assert_int_equal(h.type, MSG_START);
	assert_int_equal(h.flags, MSG_BODY_IN_FD);
	assert_int_equal(h.serial, 0x12345678);
	assert_int_equal(h.len, 0x20000);
}

TEST(a_header_is_refused_for_what_it_cannot_mean)
{
	static const struct {
		const char *name;
		struct msg_header h;
		int r;
	} rows[] = {
		{ "longest start", { MSG_START, 0, 1, MSG_BODY_MAX }, 0 },
		{ "longer start", { MSG_START, 0, 1, MSG_BODY_MAX + 1 }, -EPROTO },
		{ "four gigabytes", { MSG_START, 0, 1, UINT32_MAX }, -EPROTO },
		{ "body where none is", { MSG_OK, 0, 1, 1 }, -EPROTO },
		{ "unknown type", { 11, 0, 1, 0 }, -EPROTO },
		{ "type behind the last", { MSG_ENDED + 1, 0, 1, 0 }, -EPROTO },
		{ "last type there can be", { UINT16_MAX, 0, 1, 0 }, -EPROTO },
		{ "unknown flag", { MSG_START, 2, 1, 0 }, -EPROTO },
		{ "all flags", { MSG_START, UINT16_MAX, 1, 0 }, -EPROTO },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		unsigned char out[MSG_HEADER_SIZE];
		struct msg_header h;

		msg_header_put(out, &rows[i].h);
		EXPECT_INT(rows[i].name, msg_header_get(out, sizeof(out), &h), rows[i].r);
	}
}

TEST(a_short_header_is_refused)
{
	struct msg_header h;

	for (size_t len = 0; len < MSG_HEADER_SIZE; len++) {
		auto_free unsigned char *p = calloc(1, len + !len);

		assert_int_equal(msg_header_get(p, len, &h), -EPROTO);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(layouts_never_change),
		cmocka_unit_test(every_body_comes_back_as_it_went),
		cmocka_unit_test(a_body_cut_anywhere_is_refused),
		cmocka_unit_test(a_byte_too_many_is_refused),
		cmocka_unit_test(config_holds_known_flags_and_as_many_descriptors_as_a_packet),
		cmocka_unit_test(start_names_one_place_for_each_stream),
		cmocka_unit_test(start_keeps_to_its_limits),
		cmocka_unit_test(start_with_too_many_limits_is_refused_on_both_sides),
		cmocka_unit_test(start_takes_as_many_arguments_as_the_page_says),
		cmocka_unit_test(start_without_memory_says_so_and_leaves_nothing),
		cmocka_unit_test(signal_is_a_signal_and_a_tree_is_only_killed),
		cmocka_unit_test(an_exec_has_a_number),
		cmocka_unit_test(welcome_has_a_version),
		cmocka_unit_test(started_has_a_pid_that_a_kernel_can_have),
		cmocka_unit_test(output_is_of_one_of_two_streams),
		cmocka_unit_test(an_end_is_final_and_does_not_contradict_itself),
		cmocka_unit_test(an_execs_state_is_judged_as_its_start_and_its_end_are),
		cmocka_unit_test(a_failure_has_a_kind_and_an_errno_of_the_kernel),
		cmocka_unit_test(a_failures_texts_fit_their_fields),
		cmocka_unit_test(a_failures_texts_cannot_steer_a_terminal),
		cmocka_unit_test(the_largest_body_of_a_type_is_the_largest_that_decodes),
		cmocka_unit_test(only_the_types_of_the_page_have_names),
		cmocka_unit_test(a_header_comes_back),
		cmocka_unit_test(a_header_is_refused_for_what_it_cannot_mean),
		cmocka_unit_test(a_short_header_is_refused),
	};

	return RUN(tests);
}
