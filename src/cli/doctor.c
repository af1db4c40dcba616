/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c - `carrel doctor`: what this host lacks, and what dead sandboxes left on it
 *
 * Theory of operation. The engine looks; this file shows what it found, one finding as it comes, in a table or as JSON. A finding has
 * one of four states, derived in one place: "ok"; "note", which works but could be better (the engine gives a remedy all the
 * same); "missing", which something essential needs; "orphan". The last two make the exit status 1, so that a test suite can end with it. */
#include <string.h>

#include "base/str.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/result.h"
#include "cli/say.h"

#define WHAT_COLUMN 10	/* columns before the name of a finding: the longest state and two blanks */
#define FOUND_COLUMN 38 /* columns before its evidence */
/* Bytes of one finding; its texts come from the engine, which keeps them to one line each. */
#define FINDING_MAX_BYTES KIB(16)

enum doctor_option { DOCTOR_JSON, DOCTOR_SWEEP, DOCTOR_HELP };

static const struct option doctor_options[] = {
	{ .name = "json", .id = DOCTOR_JSON, .help = "print one JSON object" },
	{ .name = "sweep", .id = DOCTOR_SWEEP, .help = "first remove what dead sandboxes left" },
	{ .name = "help", .id = DOCTOR_HELP, .help = "show this text" },
	{ .name = NULL },
};

static const char *const doctor_groups[] = { "Options" };

enum finding_state { FINDING_OK, FINDING_NOTE, FINDING_MISSING, FINDING_ORPHAN, FINDING_NUM };

static const char *const state_names[FINDING_NUM] = { "ok", "note", "missing", "orphan" };

struct doctor {
	unsigned options; /* bits of enum doctor_option */
	struct json json;
	size_t counts[FINDING_NUM];
};

static bool has(const struct doctor *d, enum doctor_option id)
{
	return d->options & 1u << id;
}

static enum finding_state state_of(const struct carrel_finding *f)
{
	if (f->ok)
		return f->remedy[0] ? FINDING_NOTE : FINDING_OK;
	return str_starts(f->what, "orphan") ? FINDING_ORPHAN : FINDING_MISSING;
}

static void show_line(const struct carrel_finding *f, enum finding_state state)
{
	auto_buf struct buf b = BUF_INIT(FINDING_MAX_BYTES);

	(void)buf_printf(&b, "%-*s%-*s  %s\n", WHAT_COLUMN, state_names[state], FOUND_COLUMN - WHAT_COLUMN - 2, f->what,
			 f->found);
	if (f->remedy[0])
		(void)buf_printf(&b, "%*s-> %s\n", WHAT_COLUMN, "", f->remedy);
	say_buf(STDOUT_FILENO, &b);
}

static void show_json(struct json *j, const struct carrel_finding *f, enum finding_state state)
{
	json_object(j);
	json_key(j, "state");
	json_text(j, state_names[state]);
	json_key(j, "what");
	json_text(j, f->what);
	json_key(j, "found");
	json_text(j, f->found);
	json_key(j, "remedy");
	json_text(j, f->remedy[0] ? f->remedy : NULL);
	json_end(j, '}');
}

static void visit(const struct carrel_finding *f, void *data)
{
	struct doctor *d = data;
	enum finding_state state = state_of(f);

	d->counts[state]++;
	if (has(d, DOCTOR_JSON))
		show_json(&d->json, f, state);
	else
		show_line(f, state);
}

/* The last line of the table */
static void show_summary(const struct doctor *d)
{
	auto_buf struct buf b = BUF_INIT(FINDING_MAX_BYTES);

	if (d->counts[FINDING_MISSING] == 0 && d->counts[FINDING_ORPHAN] == 0)
		(void)buf_puts(&b, "carrel can run here, and nothing is left over.\n");
	if (d->counts[FINDING_MISSING] > 0)
		(void)buf_printf(&b, "%zu missing: carrel cannot do its work here until that is mended.\n",
				 d->counts[FINDING_MISSING]);
	if (d->counts[FINDING_ORPHAN] > 0)
		(void)buf_printf(&b, "%zu left over from dead sandboxes: 'carrel doctor --sweep' removes that.\n",
				 d->counts[FINDING_ORPHAN]);
	say_buf(STDOUT_FILENO, &b);
}

static int doctor_fail(const struct doctor *d, const struct carrel_error *e)
{
	say_failure(e);
	if (has(d, DOCTOR_JSON))
		result_json_failure(e);
	return STATUS_CARREL_FAILED;
}

static int read_options(struct doctor *d, char *const argv[], struct err *e)
{
	struct options o = OPTIONS_INIT(doctor_options, "doctor", argv);
	struct option_use use;
	int r;

	while ((r = options_next(&o, &use, e)) > 0)
		if (str_eq(use.value, "true"))
			d->options |= 1u << use.option->id;
	if (r == 0 && argv[o.next]) {
		r = err_set(e, ERR_INVALID, "read '%.64s': doctor takes options only", argv[o.next]);
		return err_hint(e, r, "carrel doctor --help lists them");
	}
	return r;
}

static int doctor_examine(struct doctor *d)
{
	struct carrel_error e = { 0 };
	int orphans;

	if (has(d, DOCTOR_JSON)) {
		json_object(&d->json);
		json_key(&d->json, "findings");
		json_array(&d->json);
	}
	orphans = carrel_doctor(has(d, DOCTOR_SWEEP) ? CARREL_DOCTOR_SWEEP : 0, visit, d, &e);
	if (orphans < 0)
		return doctor_fail(d, &e);
	if (!has(d, DOCTOR_JSON)) {
		show_summary(d);
	} else {
		json_end(&d->json, ']');
		json_key(&d->json, "missing");
		json_u64(&d->json, d->counts[FINDING_MISSING]);
		json_key(&d->json, "orphans");
		json_u64(&d->json, (uint64_t)orphans);
		json_end(&d->json, '}');
		if (json_finish(&d->json) < 0)
			return STATUS_CARREL_FAILED;
	}
	return orphans > 0 || d->counts[FINDING_MISSING] > 0;
}

static int doctor_main(char *const argv[])
{
	struct doctor d = { .json = JSON_INIT(STDOUT_FILENO, JSON_BUFFER_MAX) };
	struct carrel_error shown = { 0 };
	struct err e = { 0 };
	int r = read_options(&d, argv, &e);

	if (r < 0) {
		(void)error_from(&shown, r, &e);
		r = doctor_fail(&d, &shown);
	} else if (has(&d, DOCTOR_HELP)) {
		r = help_command(&command_doctor);
	} else {
		r = doctor_examine(&d);
	}
	json_done(&d.json);
	return r;
}

const struct command command_doctor = {
	.name = "doctor",
	.usage = " [--json] [--sweep]",
	.summary = "report what this host lacks and what was left over",
	.about = "Reports what carrel needs of this host, and what sandboxes that died left on it.\n"
		 "Exits 0 if nothing essential is missing and nothing is left over, else 1.\n",
	.options = doctor_options,
	.groups = doctor_groups,
	.main = doctor_main,
};
