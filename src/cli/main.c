/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - The table of commands and the way to them
 *
 * Theory of operation. A small static program: what it does before a command's own work is one poll() and a walk over a table of
 * a few rows, because `carrel run` is timed as a whole process. No locale, no stdio, no threads, no environment but what a command asks for.
 * First of all the descriptors 0, 1 and 2 are made to exist: otherwise the first file that anyone opens would be the command's stdout. */
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/say.h"

const struct command *const commands[] = {
	&command_run, &command_doctor, &command_version, &command_help, NULL,
};

const struct command *command_find(const char *name)
{
	for (size_t i = 0; commands[i]; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

int command_unknown(const char *name)
{
	struct carrel_error e = { .code = CARREL_ERROR_INVALID };
	const char *nearest = NULL;
	size_t best = 3; /* edits: two mistakes in a word this short are a typing error */

	for (size_t i = 0; commands[i]; i++) {
		size_t d = text_distance(name, strlen(name), commands[i]->name, strlen(commands[i]->name));

		if (d < best) {
			best = d;
			nearest = commands[i]->name;
		}
	}
	(void)snprintf(e.message, sizeof(e.message), "find command '%.64s': there is none of that name", name);
	if (nearest)
		(void)snprintf(e.remedy, sizeof(e.remedy), "did you mean 'carrel %s'?", nearest);
	else
		(void)snprintf(e.remedy, sizeof(e.remedy), "a program is started with 'carrel run -- PROGRAM'");
	say_failure(&e);
	return STATUS_CARREL_FAILED;
}

/* Descriptors 0, 1 and 2 exist afterwards. Return: 0; -1 if /dev/null cannot be opened, and there is nowhere to say so. */
static int open_standard_streams(void)
{
	struct pollfd std[3] = { { .fd = 0 }, { .fd = 1 }, { .fd = 2 } };

	if (poll(std, ARRAY_SIZE(std), 0) <= 0)
		return 0; /* POLLERR and POLLNVAL alone are asked for: the usual answer is none */
	for (size_t i = 0; i < ARRAY_SIZE(std); i++) {
		/* The lowest free number is taken, which is this one: the smaller ones exist by now. Not close-on-exec, as a
		 * standard stream has to be. */
		if (std[i].revents & POLLNVAL && open("/dev/null", O_RDWR) < 0)
			return -1;
	}
	return 0;
}

static bool asks(const char *word, const char *letter, const char *name)
{
	return strcmp(word, letter) == 0 || strcmp(word, name) == 0;
}

int main(int argc, char *argv[])
{
	const struct command *c;

	if (open_standard_streams() < 0)
		return STATUS_CARREL_FAILED;
	if (argc < 2 || asks(argv[1], "-h", "--help"))
		return help_overview();
	c = asks(argv[1], "-V", "--version") ? &command_version : command_find(argv[1]);
	if (!c)
		return command_unknown(argv[1]);
	return c->main(argv + 2);
}
