/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - `carrel run`: one command in a sandbox of its own
 *
 * Theory of operation. A client of include/carrel.h and of nothing else. In order: read the words; look at our own streams, because
 * what they are goes inside; block the signals; start the sandbox; start the command (held, if a receipt is wanted or a
 * terminal must have its size first); wait; restore the terminal; destroy the sandbox; only then report. From the blocking of the
 * signals to the destroying there is no way out that skips the latter, and a SIGKILL meanwhile leaves it to the engine
 * (die-with-owner). A signal that comes while the sandbox starts waits for the start, which takes a millisecond, to end. Only
 * the first use of an archive takes longer, up to minutes: until it is unpacked a signal ends this process as SIGKILL would. */
#include <sys/stat.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/result.h"
#include "cli/run.h"
#include "cli/say.h"
#include "cli/session.h"
#include "cli/signals.h"

/* Collected output of each stream without --output-limit: what a program that reads the JSON can be expected to hold. */
#define JSON_OUTPUT_LIMIT "64m"

/* --- Before the start --- */

static int fail(struct carrel_error *e, enum err_code code, const char *message, const char *remedy)
{
	struct err why = { 0 };
	int r = err_set(&why, code, "%s", message);

	return error_from(e, err_hint(&why, r, "%s", remedy), &why);
}

/* A directory among the streams would be a way out of the sandbox: openat(0, "..") (CVE-2024-21626). */
static int check_streams(const struct run *run, struct carrel_error *e)
{
	static const char *const names[] = { "stdin", "stdout", "stderr" };
	int first = run_has(run, RUN_INTERACTIVE) ? STDIN_FILENO : STDOUT_FILENO;

	for (int fd = first; fd <= STDERR_FILENO; fd++) {
		struct err why = { 0 };
		struct stat st;
		int r;

		if (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		r = err_set(&why, ERR_INVALID, "pass on %s: it is a directory, which would lead out of the sandbox", names[fd]);
		return error_from(e, err_hint(&why, r, "redirect it to a file or to /dev/null"), &why);
	}
	return 0;
}

static int check_choices(const struct run *run, struct carrel_error *e)
{
	struct err why = { 0 };
	int r;

	if (!run_has(run, RUN_TTY))
		return 0;
	if (run_has(run, RUN_JSON))
		return fail(e, ERR_INVALID, "combine --tty with --json: a terminal's output cannot be collected",
			    "leave one of them out");
	if (run->output_limit)
		return fail(e, ERR_INVALID, "combine --tty with --output-limit: a terminal's output is not counted",
			    "leave one of them out");
	r = tty_check(&why);
	return r < 0 ? error_from(e, r, &why) : 0;
}

static enum session_output output_of(const struct run *run)
{
	if (run_has(run, RUN_TTY))
		return OUTPUT_TERMINAL;
	return run->output_limit && !run_has(run, RUN_JSON) ? OUTPUT_FOLLOW : OUTPUT_NONE;
}

/* The engine's view of what the switches mean for the command's streams */
static int set_streams(struct run *run, struct carrel_error *e)
{
	bool collect = run_has(run, RUN_JSON) || run->output_limit;
	bool tty = run_has(run, RUN_TTY);
	const char *settings[][2] = {
		{ "output", collect ? "spool" : "inherit" },
		{ "stdin", run_has(run, RUN_INTERACTIVE) && !tty ? "inherit" : NULL },
		{ "tty", tty ? "true" : NULL },
		{ "hold", tty || run_has(run, RUN_RECEIPT) ? "true" : NULL },
		{ "output-limit", run_has(run, RUN_JSON) && !run->output_limit ? JSON_OUTPUT_LIMIT : NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		int r = settings[i][1] ? carrel_command_set(run->command, settings[i][0], settings[i][1], e) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

static int print_plan(const struct run *run, struct carrel_error *e)
{
	auto_json struct json j = JSON_INIT(STDOUT_FILENO, JSON_BUFFER_MAX);
	auto_free char *text = NULL;
	int r = carrel_plan(run->spec, run->command, &text, e);

	if (r < 0)
		return r;
	if (!run_has(run, RUN_JSON))
		return say_all(STDOUT_FILENO, text, strlen(text));
	json_object(&j);
	json_key(&j, "plan");
	json_array(&j);
	for (char *line = text, *next; *line; line = next) {
		size_t len = strcspn(line, "\n");

		next = line + len + (line[len] == '\n');
		line[len] = '\0';
		json_text(&j, line);
	}
	json_end(&j, ']');
	json_end(&j, '}');
	return json_finish(&j);
}

/* --- The run --- */

struct running {
	struct session session;
	struct report report;
	int status; /* exit status of a failure: 125, unless it was the program that could not be executed */
};

/* Look at the held command, give its terminal a size, and let it go */
static int release(const struct run *run, struct running *now, struct carrel_error *e)
{
	struct session *s = &now->session;
	struct err why = { 0 };
	uint16_t rows, cols;
	int r;

	if (run_has(run, RUN_RECEIPT)) {
		r = carrel_receipt_read(s->exec, &now->report.receipt, e);
		if (r < 0)
			return r;
	}
	if (run_has(run, RUN_TTY)) {
		enum tty_mode mode = run_has(run, RUN_INTERACTIVE) ? TTY_INTERACTIVE : TTY_OUTPUT_ONLY;

		if (tty_size(&rows, &cols) == 0)
			(void)carrel_exec_resize(s->exec, rows, cols, NULL); /* a wrong size is no reason to end */
		r = tty_open(&s->tty, carrel_exec_terminal(s->exec), mode, &why);
		if (r < 0)
			return error_from(e, r, &why);
	}
	r = carrel_exec_go(s->exec, e);
	if (r < 0)
		now->status = error_status(e->code); /* a held command meets its program only now */
	return r;
}

static int block_signals(const struct run *run, struct running *now, struct carrel_error *e)
{
	if (now->session.signals >= 0)
		return 0;
	now->session.signals = signals_open(run_has(run, RUN_TTY) ? SIGNALS_TERMINAL : SIGNALS_PLAIN);
	if (now->session.signals >= 0)
		return 0;
	return fail(e, ERR_SYSTEM, "open a signalfd: the kernel refused", "raise the limit of open files (ulimit -n)");
}

/* An archive is a file; whatever else may be the image starts at once. */
static bool starts_slowly(const struct run *run)
{
	struct stat st;

	return run->image && stat(run->image, &st) == 0 && S_ISREG(st.st_mode);
}

static int run_command(const struct run *run, struct running *now, struct carrel_error *e)
{
	struct session *s = &now->session;
	int r;

	r = starts_slowly(run) ? 0 : block_signals(run, now, e);
	if (r == 0)
		r = carrel_start(run->spec, &s->sandbox, e);
	if (r == 0)
		r = block_signals(run, now, e);
	if (r < 0)
		return r;
	r = carrel_exec(s->sandbox, run->command, &s->exec, e);
	if (r < 0) {
		now->status = error_status(e->code);
		return r;
	}
	if (run_has(run, RUN_TTY) || run_has(run, RUN_RECEIPT)) {
		r = release(run, now, e);
		if (r < 0)
			return r;
	}
	return session_run(s, e);
}

/* After this nothing of the sandbox is left but its handles and the spools */
static void end_sandbox(const struct run *run, struct running *now)
{
	struct carrel_error e = { 0 };
	struct session *s = &now->session;

	tty_close(&s->tty);
	if (!s->sandbox)
		return;
	/* Without an answer the fields stay unknown. */
	if (run_has(run, RUN_JSON))
		(void)carrel_stats(s->sandbox, &now->report.stats, NULL);
	if (carrel_leave(s->sandbox, &e) < 0)
		say_failure(&e);
}

static int report_end(const struct run *run, struct running *now, struct carrel_error *e)
{
	struct report *report = &now->report;
	int r = 0;

	report->id = carrel_sandbox_id(now->session.sandbox);
	report->program = run->program;
	report->exec = now->session.exec;
	report->result = now->session.result;
	if (!run_has(run, RUN_QUIET))
		result_note(report);
	if (run_has(run, RUN_JSON)) {
		signals_default();
		r = result_json(report, e);
	} else if (report->receipt) {
		result_receipt(report->receipt);
	}
	return r;
}

static void free_all(struct running *now)
{
	carrel_receipt_free(now->report.receipt);
	carrel_exec_free(now->session.exec);
	carrel_sandbox_free(now->session.sandbox);
	close_p(&now->session.signals);
}

/* Return: exit status, or negative errno with @e and @now->status */
static int run_sandbox(const struct run *run, struct running *now, struct carrel_error *e)
{
	int r;

	now->session.output = output_of(run);
	r = run_command(run, now, e);
	end_sandbox(run, now);
	if (r > 0)
		signals_die(r);
	if (r == 0)
		r = report_end(run, now, e);
	return r < 0 ? r : result_status(&now->session.result);
}

static int run_all(struct run *run, struct running *now, struct carrel_error *e)
{
	int r;

	r = set_streams(run, e);
	if (r < 0)
		return r;
	if (run_has(run, RUN_DRY_RUN))
		return print_plan(run, e);
	r = check_choices(run, e);
	if (r == 0)
		r = check_streams(run, e);
	return r < 0 ? r : run_sandbox(run, now, e);
}

static int run_main(char *const argv[])
{
	struct running now = {
		.session = { .signals = -EBADF },
		.report = { .stats = { .memory_peak_bytes = UINT64_MAX } },
		.status = STATUS_CARREL_FAILED,
	};
	struct carrel_error e = { 0 };
	struct run run = { 0 };
	int r = run_read(&run, argv, &e);

	if (r > 0)
		return help_command(&command_run);
	if (r == 0)
		r = run_all(&run, &now, &e);
	if (r < 0) {
		signals_default();
		say_failure(&e);
		if (run_has(&run, RUN_JSON))
			result_json_failure(&e);
		r = now.status;
	}
	free_all(&now);
	run_done(&run);
	return r;
}

const struct command command_run = {
	.name = "run",
	.usage = " [OPTIONS] [--] COMMAND [ARG...]",
	.summary = "run a command in a sandbox of its own",
	.about = "Runs COMMAND in a new sandbox, waits for it, and removes the sandbox.\n",
	.options = run_options,
	.groups = run_groups,
	.notes = run_notes,
	.main = run_main,
};
