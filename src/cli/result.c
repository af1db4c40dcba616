/* SPDX-License-Identifier: Apache-2.0 */
/* result.c - How a run ended: exit status, line, JSON, receipt
 *
 * Theory of operation. Everything here runs after the sandbox is gone: whoever reads the end of our output can rely on that. Outcomes
 * and the names of limits are closed sets, each in one table. Collected output is read from its spool twice, once to learn whether all of it is
 * UTF-8 and once to write it, because the answer must stand before the first byte and the output may be larger than memory. */
#include "cli/result.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "cli/say.h"

#define READ_BYTES 16384	     /* one read of a spool */
#define RECEIPT_MAX_BYTES KIB(64)    /* about thirty lines */
#define RECEIPT_NAME_COLUMNS 26
#define NS_PER_MICRO 1000

/** struct limit - A limit that can bite, as the engine names it */
struct limit {
	const char *name;
	const char *reached; /* what happened, for a person */
	const char *option;  /* what raises it */
};

static const struct limit limits[] = {
	{ "memory", "ran out of memory", "--memory" },
	{ "pids", "reached its limit of processes", "--pids-limit" },
	{ "timeout", "timed out", "--timeout" },
	{ "output", "wrote more than the output limit", "--output-limit" },
	{ "cpu", "used up its CPU time", "--cpu-seconds" },
	{ "fsize", "wrote past the largest file size", "--file-size" },
	{ "storage", "filled the writable layer", "--storage-opt size=SIZE" },
	{ "inodes", "used up the files of the writable layer", "--storage-opt inodes=N" },
};

static const char *const layer_states[] = {
	[CARREL_LAYER_ON] = "on",
	[CARREL_LAYER_PARTIAL] = "partial",
	[CARREL_LAYER_MISSING] = "missing",
};

static const struct limit *find_limit(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(limits); i++)
		if (strcmp(limits[i].name, name) == 0)
			return &limits[i];
	return NULL;
}

int result_status(const struct carrel_result *result)
{
	switch (result->outcome) {
	case CARREL_EXITED:
		return result->exit_code;
	case CARREL_SIGNALLED:
		return STATUS_SIGNAL_BASE + result->signal;
	case CARREL_TIMED_OUT:
		return STATUS_TIMED_OUT;
	case CARREL_OUT_OF_MEMORY:
	case CARREL_OUTPUT_LIMIT:
	case CARREL_KILLED:
		return STATUS_SIGNAL_BASE + 9; /* the tree got SIGKILL */
	case CARREL_RUNNING:
	case CARREL_FAILED:
	default:
		return STATUS_CARREL_FAILED;
	}
}

/* The limit that ended or spoiled the run; the outcome itself names it where the engine does not */
static const char *limit_name(const struct carrel_result *r)
{
	if (r->limit)
		return r->limit;
	if (r->outcome == CARREL_TIMED_OUT)
		return "timeout";
	if (r->outcome == CARREL_OUT_OF_MEMORY)
		return "memory";
	return r->outcome == CARREL_OUTPUT_LIMIT ? "output" : NULL;
}

void result_note(const struct report *report)
{
	const struct carrel_result *r = &report->result;
	const char *name = limit_name(r);
	const struct limit *limit = find_limit(name);

	if (result_status(r) == 0)
		return;
	if (r->outcome == CARREL_TIMED_OUT)
		say_note("run '%.160s': timed out after %" PRIu64 ".%" PRIu64 " s, everything it started was killed; raise --timeout",
			 report->program, r->wall_ns / NSEC_PER_SEC, r->wall_ns / (NSEC_PER_SEC / 10) % 10);
	else if (limit)
		say_note("run '%.160s': %s; raise %s", report->program, limit->reached, limit->option);
	else if (name)
		say_note("run '%.160s': reached its limit '%s'; raise it with --ulimit %s=N", report->program, name, name);
	else if (r->outcome == CARREL_KILLED)
		say_note("run '%.160s': killed from outside; look for who ended it", report->program);
	else if (r->outcome == CARREL_FAILED)
		say_note("run '%.160s': ended without a result; carrel doctor may know why", report->program);
}

void result_receipt(const struct carrel_receipt *receipt)
{
	auto_buf struct buf b = BUF_INIT(RECEIPT_MAX_BYTES);

	for (size_t i = 0; i < carrel_receipt_count(receipt); i++) {
		const struct carrel_layer *l = carrel_receipt_layer(receipt, i);

		(void)buf_printf(&b, "%-8s%-*s  %s", layer_states[l->state], RECEIPT_NAME_COLUMNS, l->name, l->evidence);
		if (l->why[0])
			(void)buf_printf(&b, "%s%s", l->evidence[0] ? "; " : "", l->why);
		(void)buf_puts(&b, "\n");
	}
	say_buf(STDERR_FILENO, &b);
}

static void json_receipt(struct json *j, const struct carrel_receipt *receipt)
{
	json_array(j);
	for (size_t i = 0; i < carrel_receipt_count(receipt); i++) {
		const struct carrel_layer *l = carrel_receipt_layer(receipt, i);

		json_object(j);
		json_key(j, "layer");
		json_text(j, l->name);
		json_key(j, "state");
		json_text(j, layer_states[l->state]);
		json_key(j, "evidence");
		json_text(j, l->evidence);
		json_key(j, "why");
		json_text(j, l->why[0] ? l->why : NULL);
		json_end(j, '}');
	}
	json_end(j, ']');
}

/* Every part of a spool to one of two takers. Return: 0; negative errno */
static int each_part(struct carrel_exec *exec, int stream, uint64_t end, struct utf8_check *check, struct json *text,
		     struct json *base64, struct carrel_error *e)
{
	char part[READ_BYTES];
	uint64_t at = 0;

	while (at < end) {
		size_t want = (size_t)MIN(end - at, (uint64_t)sizeof(part));
		ssize_t n = carrel_exec_read(exec, stream, at, part, want, 0, e);

		if (n <= 0)
			return n < 0 && n != -EAGAIN ? (int)n : -EIO; /* shorter than its own end */
		at += (uint64_t)n;
		if (check)
			utf8_check_part(check, part, (size_t)n);
		if (text)
			json_string_part(text, part, (size_t)n);
		if (base64)
			json_base64_part(base64, part, (size_t)n);
	}
	return 0;
}

static int json_stream(struct json *j, const struct report *report, int stream, uint64_t end, struct carrel_error *e)
{
	struct utf8_check check = { 0 };
	int r = each_part(report->exec, stream, end, &check, NULL, NULL, e);
	bool utf8 = utf8_check_ok(&check);

	json_object(j);
	json_key(j, utf8 ? "text" : "base64");
	json_string_begin(j);
	if (r == 0)
		r = each_part(report->exec, stream, end, NULL, utf8 ? j : NULL, utf8 ? NULL : j, e);
	if (utf8)
		json_string_end(j);
	else
		json_base64_end(j);
	json_end(j, '}');
	return r;
}

static void json_u64_or_null(struct json *j, uint64_t value, bool known)
{
	if (known)
		json_u64(j, value);
	else
		json_null(j);
}

static void json_numbers(struct json *j, const struct report *report)
{
	const struct carrel_result *r = &report->result;
	bool exited = r->outcome == CARREL_EXITED, signalled = r->outcome == CARREL_SIGNALLED;
	/* The group's own count covers all processes and memory file systems; without it, the largest process is what is known. */
	uint64_t peak = report->stats.memory_peak_bytes != UINT64_MAX ? report->stats.memory_peak_bytes : r->peak_bytes;

	json_key(j, "exit_code");
	json_u64_or_null(j, exited ? (uint64_t)r->exit_code : 0, exited);
	json_key(j, "signal");
	json_text(j, signalled ? signal_name(r->signal) : NULL);
	json_key(j, "signal_number");
	json_u64_or_null(j, (uint64_t)r->signal, signalled);
	json_key(j, "limit");
	json_text(j, limit_name(r));
	json_key(j, "wall_ms");
	json_thousandths(j, r->wall_ns / NS_PER_MICRO);
	json_key(j, "cpu_ms");
	json_object(j);
	json_key(j, "user");
	json_thousandths(j, r->user_us);
	json_key(j, "system");
	json_thousandths(j, r->system_us);
	json_end(j, '}');
	json_key(j, "peak_memory_bytes");
	json_u64(j, peak);
	json_key(j, "left_running");
	json_u64(j, r->left_running);
	json_key(j, "stdout_bytes");
	json_u64(j, r->stdout_bytes);
	json_key(j, "stderr_bytes");
	json_u64(j, r->stderr_bytes);
}

int result_json(const struct report *report, struct carrel_error *e)
{
	auto_json struct json j = JSON_INIT(STDOUT_FILENO, JSON_BUFFER_MAX);
	int r, write_r;

	json_object(&j);
	json_key(&j, "id");
	json_text(&j, report->id);
	json_key(&j, "outcome");
	json_text(&j, carrel_outcome_name(report->result.outcome));
	json_numbers(&j, report);
	json_key(&j, "stdout");
	r = json_stream(&j, report, 1, report->result.stdout_bytes, e);
	if (r == 0) {
		json_key(&j, "stderr");
		r = json_stream(&j, report, 2, report->result.stderr_bytes, e);
	}
	if (r == 0 && report->receipt) {
		json_key(&j, "receipt");
		json_receipt(&j, report->receipt);
	}
	if (r < 0)
		return r; /* what is written already is no document, and the exit status says so */
	json_end(&j, '}');
	write_r = json_finish(&j);
	return write_r;
}

static void json_error(struct json *j, const struct carrel_error *e)
{
	json_object(j);
	json_key(j, "code");
	json_text(j, error_name(e->code));
	json_key(j, "message");
	json_text(j, e->message);
	json_key(j, "remedy");
	json_text(j, e->remedy[0] ? e->remedy : NULL);
	if (e->detail[0]) {
		json_key(j, "detail");
		json_text(j, e->detail);
	}
	json_end(j, '}');
}

void result_json_failure(const struct carrel_error *failure)
{
	auto_json struct json j = JSON_INIT(STDOUT_FILENO, JSON_BUFFER_MAX);

	json_object(&j);
	json_key(&j, "outcome");
	json_text(&j, carrel_outcome_name(CARREL_FAILED));
	json_key(&j, "error");
	json_error(&j, failure);
	json_end(&j, '}');
	if (json_finish(&j) < 0)
		return;
}
