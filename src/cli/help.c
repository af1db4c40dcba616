/* SPDX-License-Identifier: Apache-2.0 */
/* help.c - `carrel help` and `carrel version`, written from the tables that the parser reads
 *
 * Theory of operation. An option's row holds its spelling and its line of help, so the two cannot disagree. Everything fits 80 columns: the
 * names of options end before OPTION_HELP_COLUMN or get a line of their own, and a test walks all tables for lines that are too long. */
#include <string.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/say.h"

/* Bytes of one help text; that of `run` has about six thousand. */
#define HELP_MAX_BYTES KIB(32)

static const struct option help_options[] = {
	{ .name = "help", .help = "show this text" },
	{ .name = NULL },
};

static const char *const help_groups[] = { "Options" };

static int print(struct buf *b)
{
	int r = b->r;

	if (r == 0)
		r = say_all(STDOUT_FILENO, b->p, b->len);
	return r < 0 ? STATUS_CARREL_FAILED : EXIT_SUCCESS;
}

static void add_option(struct buf *b, const struct option *t)
{
	char names[64];
	int n = 0;

	if (t->letter)
		n = snprintf(names, sizeof(names), "  -%c, ", t->letter);
	else
		n = snprintf(names, sizeof(names), "      ");
	n += snprintf(names + n, sizeof(names) - (size_t)n, "--%s%s%s", t->name, t->arg ? " " : "", t->arg ? t->arg : "");
	if (n > OPTION_HELP_COLUMN - 2)
		(void)buf_printf(b, "%s\n%*s%s\n", names, OPTION_HELP_COLUMN, "", t->help);
	else
		(void)buf_printf(b, "%-*s%s\n", OPTION_HELP_COLUMN, names, t->help);
}

static void add_options(struct buf *b, const struct command *c)
{
	int group = -1;

	for (const struct option *t = c->options; t->name; t++) {
		if (t->flags & OPTION_HIDDEN)
			continue;
		if (t->group != group) {
			group = t->group;
			(void)buf_printf(b, "\n%s:\n", c->groups[group]);
		}
		add_option(b, t);
	}
}

int help_command(const struct command *c)
{
	auto_buf struct buf b = BUF_INIT(HELP_MAX_BYTES);

	(void)buf_printf(&b, "usage: carrel %s%s\n\n%s", c->name, c->usage, c->about);
	add_options(&b, c);
	if (c->notes)
		(void)buf_printf(&b, "\n%s", c->notes);
	return print(&b);
}

int help_overview(void)
{
	auto_buf struct buf b = BUF_INIT(HELP_MAX_BYTES);

	(void)buf_puts(&b, "usage: carrel COMMAND [...]\n\n"
			   "Runs programs in sandboxes: each gets a machine of its own, with limits, without\n"
			   "network, and with nothing of this one but a read-only view of its programs.\n\n"
			   "Commands:\n");
	for (size_t i = 0; commands[i]; i++)
		(void)buf_printf(&b, "  %-10s%s\n", commands[i]->name, commands[i]->summary);
	(void)buf_puts(&b, "\nTry:\n"
			   "  carrel run -- python3 -c 'print(6 * 7)'\n"
			   "  carrel run -it -m 1g --timeout 10m -v .:/work:rw -w /work -- bash\n"
			   "  carrel run --receipt -- true\n\n"
			   "'carrel help COMMAND' explains one of them; so does carrel(1).\n");
	return print(&b);
}

/* Options and operand of the two small commands. Return: 0 to go on; 1 if the help was asked for; -1 after a printed failure */
static int read_words(const struct command *c, char *const argv[], const char **ret_operand)
{
	struct options o = OPTIONS_INIT(c->options, c->name, argv);
	struct carrel_error shown = { 0 };
	struct option_use use;
	struct err e = { 0 };
	int r = options_next(&o, &use, &e);

	if (r == 0) {
		*ret_operand = argv[o.next];
		if (!argv[o.next] || !argv[o.next + 1])
			return 0;
		r = err_set(&e, ERR_INVALID, "read '%.64s': %s takes one word at most", argv[o.next + 1], c->name);
	}
	if (r < 0) {
		(void)error_from(&shown, r, &e);
		say_failure(&shown);
		return -1;
	}
	return 1;
}

static int help_main(char *const argv[])
{
	const struct command *c;
	const char *name = NULL;
	int r = read_words(&command_help, argv, &name);

	if (r < 0)
		return STATUS_CARREL_FAILED;
	if (r > 0)
		return help_command(&command_help);
	if (!name)
		return help_overview();
	c = command_find(name);
	return c ? help_command(c) : command_unknown(name);
}

static int version_main(char *const argv[])
{
	auto_buf struct buf b = BUF_INIT(HELP_MAX_BYTES);
	const char *operand = NULL;
	int r = read_words(&command_version, argv, &operand);

	if (r < 0)
		return STATUS_CARREL_FAILED;
	if (r > 0)
		return help_command(&command_version);
	(void)buf_puts(&b, "carrel " CARREL_VERSION "\n");
	return print(&b);
}

const struct command command_help = {
	.name = "help",
	.usage = " [COMMAND]",
	.summary = "explain a command",
	.about = "Explains a command and all of its options.\n",
	.options = help_options,
	.groups = help_groups,
	.main = help_main,
};

const struct command command_version = {
	.name = "version",
	.usage = "",
	.summary = "print the version",
	.about = "Prints the version of carrel.\n",
	.options = help_options,
	.groups = help_groups,
	.main = version_main,
};
