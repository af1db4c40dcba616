/* SPDX-License-Identifier: Apache-2.0 */
/* run_options.c - The options of `carrel run`: the table, and what each row does
 *
 * Theory of operation. One row per option holds its spelling, who takes it, and its line of help. Names and meanings are docker's and
 * podman's where those have them. Values are judged by the engine alone (carrel_spec_set, carrel_command_set), so that a program
 * that uses the library meets the same rules. The words are walked three times, which costs less than storing them: switches and the start
 * of the command; then --env-file; then the rest. So a variable of --env wins over one of a file, wherever they stand, as docker has it. */
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/env_file.h"
#include "cli/run.h"
#include "cli/say.h"

/* Bytes of a value with its prefix ("fsize=" and a number): longer ones are no limits. */
#define PREFIXED_MAX 128
/* Bytes of "--rootfs DIR" as an image: PATH_MAX and "./" */
#define ROOTFS_MAX (4096 + 2)

enum run_group { GROUP_MADE_OF, GROUP_COMMAND, GROUP_LIMITS, GROUP_SHOWN };

const char *const run_groups[] = {
	[GROUP_MADE_OF] = "The sandbox",
	[GROUP_COMMAND] = "The command",
	[GROUP_LIMITS] = "Limits",
	[GROUP_SHOWN] = "What is shown",
};

#define SPEC(key_) .sink = SINK_SPEC, .key = (key_)
#define COMMAND(key_) .sink = SINK_COMMAND, .key = (key_)
#define ULIMIT(name_) .sink = SINK_COMMAND, .key = "ulimit", .prefix = name_ "="
#define CLI(id_) .sink = SINK_CLI, .id = (id_)
#define MADE_OF .group = GROUP_MADE_OF
#define OF_COMMAND .group = GROUP_COMMAND
#define LIMIT .group = GROUP_LIMITS
#define SHOWN .group = GROUP_SHOWN
#define REPEAT .flags = OPTION_REPEAT

const struct option run_options[] = {
	{ "image", MADE_OF, .arg = "NAME|DIR|TAR", CLI(RUN_IMAGE), .help = "root file system (default: host)" },
	{ "rootfs", MADE_OF, .arg = "DIR", CLI(RUN_ROOTFS), .help = "the same, always a directory" },
	{ "hostname", MADE_OF, .letter = 'h', .arg = "NAME", SPEC("hostname"), .help = "host name (default: the sandbox's id)" },
	{ "volume", MADE_OF, .letter = 'v', REPEAT, .arg = "SRC:DST[:ro|rw]", SPEC("volume"),
	  .help = "show a file or directory inside (default: ro)" },
	{ "mount", MADE_OF, REPEAT, .arg = "type=TYPE,...", SPEC("mount"), .help = "the same in long form: bind or tmpfs" },
	{ "tmpfs", MADE_OF, REPEAT, .arg = "DST[:size=SIZE]", SPEC("tmpfs"), .help = "an empty directory in memory" },
	{ "device", MADE_OF, REPEAT, .arg = "NAME", SPEC("device"), .help = "a device: fuse, kvm or net/tun" },
	{ "network", MADE_OF, .arg = "none|host", SPEC("network"), .help = "\"host\" is this machine's (default: none)" },
	{ "net", MADE_OF, .arg = "none|host", SPEC("network"), .flags = OPTION_HIDDEN, .help = "docker's other name" },
	{ "nested-userns", MADE_OF, SPEC("nested-userns"), .help = "let programs make user namespaces of their own" },
	{ "read-only", MADE_OF, SPEC("read-only"), .help = "the root file system cannot be written" },
	{ "rm", MADE_OF, CLI(RUN_RM), .help = "accepted: a sandbox never outlives its run" },

	{ "workdir", OF_COMMAND, .letter = 'w', .arg = "DIR", COMMAND("workdir"), .help = "where it starts (default: the user's home)" },
	{ "env", OF_COMMAND, .letter = 'e', REPEAT, .arg = "NAME[=VALUE]", CLI(RUN_ENV), .help = "set a variable, or pass on one of yours" },
	{ "env-file", OF_COMMAND, REPEAT, .arg = "FILE", CLI(RUN_ENV_FILE), .help = "set variables from the lines of a file" },
	{ "user", OF_COMMAND, .letter = 'u', .arg = "USER[:GROUP]", CLI(RUN_USER), .help = "name or number inside (default: root)" },
	{ "interactive", OF_COMMAND, .letter = 'i', CLI(RUN_INTERACTIVE), .help = "pass stdin on (default: it is /dev/null)" },
	{ "tty", OF_COMMAND, .letter = 't', CLI(RUN_TTY), .help = "give it a terminal; with -i, yours controls it" },

	{ "timeout", LIMIT, .arg = "DURATION", COMMAND("timeout"), .help = "wall clock, e.g. 90, 1.5s, 2m (default: none)" },
	{ "memory", LIMIT, .letter = 'm', .arg = "SIZE", SPEC("memory"), .help = "memory of everything inside (default: 512m)" },
	{ "cpus", LIMIT, .arg = "N", SPEC("cpus"), .help = "processors' worth of time, e.g. 1.5 (default: all)" },
	{ "pids-limit", LIMIT, .arg = "N", SPEC("pids-limit"), .help = "processes and threads (default: 512)" },
	{ "storage-opt", LIMIT, REPEAT, .arg = "size=SIZE", SPEC("storage-opt"), .help = "what can be written to the root (default: 1g)" },
	{ "shm-size", LIMIT, .arg = "SIZE", SPEC("shm-size"), .help = "/dev/shm (default: 64m)" },
	{ "tmp-size", LIMIT, .arg = "SIZE", SPEC("tmp-size"), .help = "/tmp (default: 256m)" },
	{ "cpu-seconds", LIMIT, .arg = "N", ULIMIT("cpu"), .flags = OPTION_GRACE, .help = "CPU time of each process (default: none)" },
	{ "file-size", LIMIT, .arg = "SIZE", ULIMIT("fsize"), .flags = OPTION_SIZE, .help = "each file that is written (default: none)" },
	{ "open-files", LIMIT, .arg = "N", ULIMIT("nofile"), .help = "open files of each process (default: 1024)" },
	{ "ulimit", LIMIT, REPEAT, .arg = "NAME=SOFT[:HARD]", COMMAND("ulimit"), .help = "any limit of setrlimit(2), e.g. core=0" },
	{ "output-limit", LIMIT, .arg = "SIZE", CLI(RUN_OUTPUT_LIMIT), .help = "stdout and stderr, each (default: none)" },

	{ "json", SHOWN, CLI(RUN_JSON), .help = "one JSON object with the result and the output" },
	{ "receipt", SHOWN, CLI(RUN_RECEIPT), .help = "what isolated it, as read from the kernel" },
	{ "dry-run", SHOWN, CLI(RUN_DRY_RUN), .help = "print the plan and start nothing" },
	{ "quiet", SHOWN, .letter = 'q', CLI(RUN_QUIET), .help = "no line on stderr about a limit that was met" },
	{ "help", SHOWN, CLI(RUN_HELP), .help = "show this text" },
	{ .name = NULL },
};

const char run_notes[] =
	"SIZE is bytes, or has a suffix k, m, g or t (powers of 1024).\n"
	"--storage-opt also takes inodes=N (262144) and backing=auto|quota|loop|tmpfs.\n"
	"Output is passed through untouched; with --json it is collected instead, up to\n"
	"64m of each stream unless --output-limit says otherwise.\n"
	"\n"
	"Exit status: the command's own; 128+N if signal N ended it (137 also if it ran\n"
	"out of memory or over --output-limit); 124 after --timeout; 125 if carrel itself\n"
	"failed; 126 if the program cannot be executed; 127 if it is not there.\n"
	"\n"
	"Examples:\n"
	"  carrel run -- python3 -c 'print(6 * 7)'\n"
	"  carrel run -v .:/work:rw -w /work --timeout 10m -- make -j4\n"
	"  carrel run -it -e LANG -- bash\n"
	"  carrel run --json -m 256m --output-limit 1m -- ./untrusted\n";

/* What a walk over the words is for */
enum run_phase {
	PHASE_SWITCHES,
	PHASE_ENV_FILES,
	PHASE_VALUES,
};

static int set_variable(const char *text, void *data, struct carrel_error *e)
{
	return carrel_command_set(data, "env", text, e);
}

static int set_rootfs(struct run *run, const char *dir, struct carrel_error *e)
{
	auto_buf struct buf path = BUF_INIT(ROOTFS_MAX);
	struct err why = { 0 };
	int r;

	/* Without a slash it could be the name of an image: "host" */
	r = buf_printf(&path, "%s%s", strchr(dir, '/') ? "" : "./", dir);
	if (r < 0)
		return error_from(e, err_sys(&why, -ENAMETOOLONG, "read --rootfs '%.64s...'", dir), &why);
	return carrel_spec_set(run->spec, "image", path.p, e);
}

/* Volumes belong to the user that the command runs as, if it is named by number; a name means nothing before there is a sandbox. */
static int set_user(struct run *run, const char *user, struct carrel_error *e)
{
	char number[16];
	size_t n = strspn(user, "0123456789");
	int r = 0;

	if (n > 0 && n < sizeof(number) && (user[n] == '\0' || user[n] == ':')) {
		memcpy(number, user, n);
		number[n] = '\0';
		r = carrel_spec_set(run->spec, "volume-uid", number, e);
	}
	return r < 0 ? r : carrel_command_set(run->command, "user", user, e);
}

static int take_cli(struct run *run, const struct option_use *use, enum run_phase phase, struct carrel_error *e)
{
	if (use->option->id == RUN_ENV_FILE)
		return phase == PHASE_ENV_FILES ? env_file_read(use->value, set_variable, run->command, e) : 0;
	if (phase != PHASE_VALUES)
		return 0;
	switch (use->option->id) {
	case RUN_ENV:
		return env_take(use->value, set_variable, run->command, e);
	case RUN_IMAGE:
		run->image = use->value;
		return carrel_spec_set(run->spec, "image", use->value, e);
	case RUN_OUTPUT_LIMIT:
		run->output_limit = use->value;
		return carrel_command_set(run->command, "output-limit", use->value, e);
	case RUN_USER:
		return set_user(run, use->value, e);
	case RUN_ROOTFS:
		return set_rootfs(run, use->value, e);
	default:
		return 0;
	}
}

/* @value with the row's prefix, in the form that the key takes */
static int prefixed(const struct option *t, const char *value, char *out, size_t size, struct carrel_error *e)
{
	struct err why = { 0 };
	uint64_t v = 0;
	int n, r = 0;

	if (t->flags & OPTION_SIZE)
		r = str_to_size(value, &v);
	else if (t->flags & OPTION_GRACE)
		r = str_to_u64(value, &v);
	if (t->flags & OPTION_SIZE)
		n = snprintf(out, size, "%s%" PRIu64, t->prefix, v);
	else if (t->flags & OPTION_GRACE)
		n = snprintf(out, size, "%s%" PRIu64 ":%" PRIu64, t->prefix, v, v < UINT64_MAX ? v + 1 : v);
	else
		n = snprintf(out, size, "%s%s", t->prefix, value);
	if (r == 0 && n > 0 && (size_t)n < size)
		return 0;
	r = err_set(&why, ERR_INVALID, "read --%s '%.64s': not a %s", t->name, value, t->flags & OPTION_SIZE ? "size" : "number");
	return error_from(e, err_hint(&why, r, "write --%s %s", t->name, t->flags & OPTION_SIZE ? "100m, or a number of bytes" : "100"),
			  &why);
}

static int take_value(struct run *run, const struct option_use *use, struct carrel_error *e)
{
	const struct option *t = use->option;
	const char *value = use->value;
	char text[PREFIXED_MAX];
	int r;

	if (t->prefix) {
		r = prefixed(t, value, text, sizeof(text), e);
		if (r < 0)
			return r;
		value = text;
	}
	return t->sink == SINK_SPEC ? carrel_spec_set(run->spec, t->key, value, e) :
				      carrel_command_set(run->command, t->key, value, e);
}

static void take_switch(struct run *run, const struct option_use *use)
{
	if (use->option->sink != SINK_CLI || use->option->id >= RUN_NUM_SWITCHES)
		return;
	if (str_eq(use->value, "true"))
		run->switches |= 1u << use->option->id;
	else
		run->switches &= ~(1u << use->option->id);
}

static int walk(struct run *run, char *const argv[], enum run_phase phase, int *ret_operand, struct carrel_error *e)
{
	struct options o = OPTIONS_INIT(run_options, "run", argv);
	struct option_use use;
	struct err why = { 0 };
	int r;

	while ((r = options_next(&o, &use, &why)) > 0) {
		if (phase == PHASE_SWITCHES)
			take_switch(run, &use);
		else if (use.option->sink == SINK_CLI)
			r = take_cli(run, &use, phase, e);
		else if (phase == PHASE_VALUES)
			r = take_value(run, &use, e);
		if (r < 0)
			return r;
	}
	*ret_operand = o.next;
	return r < 0 ? error_from(e, r, &why) : 0;
}

/* A program asked for JSON even if the word before it was wrong. "--json" of the command itself is no harm: the failure is told twice. */
static void find_json(struct run *run, char *const argv[])
{
	for (size_t i = 0; argv[i] && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0)
			run->switches |= 1u << RUN_JSON;
}

static int missing_command(struct carrel_error *e)
{
	struct err why = { 0 };
	int r = err_set(&why, ERR_INVALID, "read the command: there is none behind the options");

	return error_from(e, err_hint(&why, r, "put the program and its arguments behind '--': carrel run -- ls -l"), &why);
}

static int no_memory(struct carrel_error *e)
{
	struct err why = { 0 };

	return error_from(e, err_sys(&why, -ENOMEM, "read the command line"), &why);
}

int run_read(struct run *run, char *const argv[], struct carrel_error *e)
{
	int operand = 0;
	int r;

	r = walk(run, argv, PHASE_SWITCHES, &operand, e);
	if (r < 0) {
		find_json(run, argv);
		return r;
	}
	if (run_has(run, RUN_HELP))
		return 1;
	if (!argv[operand] || argv[operand][0] == '\0')
		return missing_command(e);
	run->program = argv[operand];
	run->spec = carrel_spec_new();
	run->command = carrel_command_new((const char *const *)argv + operand);
	if (!run->spec || !run->command)
		return no_memory(e);
	/* The terminal inside behaves like ours, so it has its name; --env may still say otherwise. */
	r = run_has(run, RUN_TTY) ? env_take("TERM", set_variable, run->command, e) : 0;
	if (r == 0)
		r = walk(run, argv, PHASE_ENV_FILES, &operand, e);
	return r < 0 ? r : walk(run, argv, PHASE_VALUES, &operand, e);
}

void run_done(struct run *run)
{
	carrel_command_free(run->command);
	carrel_spec_free(run->spec);
	run->command = NULL;
	run->spec = NULL;
}
