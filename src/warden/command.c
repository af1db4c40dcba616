/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - Settings of one exec
 *
 * Theory of operation. Pure, as spec.c is. Names of users and directories are not looked up here: they are the sandbox's own, and
 * whatever reads its files runs inside it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "carrel.h"
#include "warden/spec.h"

/* Open files: what interactive logins get, with a hard limit that servers may raise themselves to (systemd's default). */
#define DEFAULT_NOFILE_SOFT 1024
#define DEFAULT_NOFILE_HARD 524288

/* Environment variables of one exec. Each is compared with all before it; at this number that still takes milliseconds. */
#define ENV_MAX 8192

static const struct {
	const char *name;
	uint32_t resource;
	unsigned is_size; /* 1: takes a suffix; core and stack are written as sizes too */
} rlimit_names[] = {
	{ "as", RLIMIT_AS, 1 },
	{ "core", RLIMIT_CORE, 1 },
	{ "cpu", RLIMIT_CPU, 0 },
	{ "data", RLIMIT_DATA, 1 },
	{ "fsize", RLIMIT_FSIZE, 1 },
	{ "locks", RLIMIT_LOCKS, 0 },
	{ "memlock", RLIMIT_MEMLOCK, 1 },
	{ "msgqueue", RLIMIT_MSGQUEUE, 1 },
	{ "nice", RLIMIT_NICE, 0 },
	{ "nofile", RLIMIT_NOFILE, 0 },
	{ "nproc", RLIMIT_NPROC, 0 },
	{ "rss", RLIMIT_RSS, 1 },
	{ "rtprio", RLIMIT_RTPRIO, 0 },
	{ "rttime", RLIMIT_RTTIME, 0 },
	{ "sigpending", RLIMIT_SIGPENDING, 0 },
	{ "stack", RLIMIT_STACK, 1 },
};

static void strv_free(char **v)
{
	for (size_t i = 0; v && v[i]; i++)
		free(v[i]);
	free(v);
}

static char **strv_copy(const char *const *v)
{
	size_t n = 0;
	char **copy;

	while (v[n])
		n++;
	copy = calloc(n + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++) {
		copy[i] = strdup(v[i]);
		if (!copy[i]) {
			strv_free(copy);
			return NULL;
		}
	}
	return copy;
}

static void set_rlimit(struct carrel_command *c, uint32_t resource, uint64_t soft, uint64_t hard)
{
	size_t i = 0;

	while (i < c->num_rlimits && c->rlimits[i].resource != resource)
		i++;
	c->rlimits[i] = (struct msg_rlimit){ resource, soft, hard };
	c->num_rlimits = MAX(c->num_rlimits, i + 1);
}

/* Nobody inside may raise a hard limit above the caller's own. */
static void default_nofile(struct carrel_command *c)
{
	struct rlimit own = { .rlim_max = DEFAULT_NOFILE_HARD };
	uint64_t hard;

	(void)getrlimit(RLIMIT_NOFILE, &own); /* cannot fail for a limit that exists */
	hard = MIN((uint64_t)own.rlim_max, (uint64_t)DEFAULT_NOFILE_HARD);
	set_rlimit(c, RLIMIT_NOFILE, MIN(hard, (uint64_t)DEFAULT_NOFILE_SOFT), hard);
}

struct carrel_command *carrel_command_new(const char *const *argv)
{
	struct carrel_command *c;

	if (!argv || !argv[0])
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->argv = strv_copy(argv);
	if (!c->argv) {
		free(c);
		return NULL;
	}
	default_nofile(c);
	set_rlimit(c, RLIMIT_CORE, 0, UINT64_MAX); /* core files go where the host's core_pattern says: not by default */
	return c;
}

void carrel_command_free(struct carrel_command *c)
{
	if (!c)
		return;
	strv_free(c->argv);
	strv_free(c->env);
	free(c->user);
	free(c->workdir);
	free(c->key);
	free(c);
}

static int set_user(void *object, const char *value, struct err *e)
{
	struct carrel_command *c = object;

	if (!*value || strlen(value) >= MSG_USER_MAX || strpbrk(value, "\n\r\t /"))
		return err_hint(e, err_set(e, ERR_INVALID, "set user to '%.64s': not a user", value),
				"write a name or a number, with :GROUP behind it if needed");
	return setting_text(&c->user, value);
}

static int set_workdir(void *object, const char *value, struct err *e)
{
	struct carrel_command *c = object;

	if (value[0] != '/' || strlen(value) >= MSG_PATH_MAX)
		return err_hint(e, err_set(e, ERR_INVALID, "set workdir to '%.64s': not an absolute path", value),
				"write it from / on, as seen inside the sandbox");
	return setting_text(&c->workdir, value);
}

static int set_env(void *object, const char *value, struct err *e)
{
	struct carrel_command *c = object;
	const char *equals = strchr(value, '=');
	size_t name_len, i = 0;
	char *copy, **env;

	if (!equals || equals == value)
		return err_hint(e, err_set(e, ERR_INVALID, "set environment variable '%.64s': no name or no '='", value),
				"write NAME=VALUE");
	if (c->num_env == ENV_MAX)
		return err_hint(e, err_set(e, ERR_EXHAUSTED, "set environment variable '%.64s': more than %d of them", value, ENV_MAX),
				"pass large data in a file");
	name_len = (size_t)(equals - value) + 1;
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	for (i = 0; i < c->num_env; i++) { /* a later one wins */
		if (strncmp(c->env[i], value, name_len) == 0) {
			free(c->env[i]);
			c->env[i] = copy;
			return 0;
		}
	}
	if ((c->num_env & (c->num_env + 1)) == 0) { /* grow at 0, 1, 3, 7, ...: room for the next and a NULL */
		env = realloc(c->env, (2 * (c->num_env + 1) + 1) * sizeof(*env));
		if (!env) {
			free(copy);
			return -ENOMEM;
		}
		c->env = env;
	}
	c->env[c->num_env++] = copy;
	c->env[c->num_env] = NULL;
	return 0;
}

static int set_timeout(void *object, const char *value, struct err *e)
{
	struct carrel_command *c = object;
	uint64_t ns;

	if (str_to_duration(value, &ns) < 0 || ns == 0)
		return err_hint(e, err_set(e, ERR_INVALID, "set timeout to '%.64s': not a duration", value),
				"write seconds, or 500ms, 1.5s, 2m, 1h30m");
	c->timeout_ns = ns;
	return 0;
}

static int set_output_limit(void *object, const char *value, struct err *e)
{
	return setting_size("output-limit", value, 1, &((struct carrel_command *)object)->output_max, e);
}

static int parse_rlimit(const char *text, unsigned is_size, uint64_t *ret)
{
	if (str_eq(text, "unlimited") || str_eq(text, "-1")) {
		*ret = UINT64_MAX;
		return 0;
	}
	return is_size ? str_to_size(text, ret) : str_to_u64(text, ret);
}

static int set_ulimit(void *object, const char *value, struct err *e)
{
	struct carrel_command *c = object;
	auto_free char *name = strdup(value);
	char *soft_text, *hard_text;
	uint64_t soft, hard;
	size_t i = 0;

	if (!name)
		return -ENOMEM;
	soft_text = strchr(name, '=');
	if (!soft_text)
		return err_hint(e, err_set(e, ERR_INVALID, "set ulimit '%.64s': no '='", value), "write NAME=SOFT or NAME=SOFT:HARD");
	*soft_text++ = '\0';
	while (i < ARRAY_SIZE(rlimit_names) && !str_eq(rlimit_names[i].name, name))
		i++;
	if (i == ARRAY_SIZE(rlimit_names))
		return err_hint(e, err_set(e, ERR_INVALID, "set ulimit '%.64s': no such limit", name),
				"e.g. nofile, nproc, cpu, fsize, core, stack");
	hard_text = strchr(soft_text, ':');
	if (hard_text)
		*hard_text++ = '\0';
	if (parse_rlimit(soft_text, rlimit_names[i].is_size, &soft) < 0 ||
	    parse_rlimit(hard_text ? hard_text : soft_text, rlimit_names[i].is_size, &hard) < 0 || soft > hard)
		return err_hint(e, err_set(e, ERR_INVALID, "set ulimit '%.64s': not a limit", value),
				"write numbers or 'unlimited', the soft one not above the hard one");
	/* At the soft limit comes SIGXCPU, which names the limit; at the hard one SIGKILL, which does not. */
	if (rlimit_names[i].resource == RLIMIT_CPU && !hard_text && soft < UINT64_MAX)
		hard = soft + 1;
	set_rlimit(c, rlimit_names[i].resource, soft, hard);
	return 0;
}

static int set_stdin(void *object, const char *value, struct err *e)
{
	static const char *const words[] = { [STDIN_NULL] = "null", [STDIN_INHERIT] = "inherit", [STDIN_PIPE] = "pipe" };
	unsigned word;
	int r = setting_word("stdin", value, words, ARRAY_SIZE(words), &word, e);

	if (r == 0)
		((struct carrel_command *)object)->in = (enum command_stdin)word;
	return r;
}

static int set_output(void *object, const char *value, struct err *e)
{
	static const char *const words[] = { [OUTPUT_SPOOL] = "spool", [OUTPUT_INHERIT] = "inherit", [OUTPUT_NULL] = "null" };
	unsigned word;
	int r = setting_word("output", value, words, ARRAY_SIZE(words), &word, e);

	if (r == 0)
		((struct carrel_command *)object)->out = (enum command_output)word;
	return r;
}

static int set_tty(void *object, const char *value, struct err *e)
{
	return setting_flag("tty", value, &((struct carrel_command *)object)->tty, e);
}

static int set_hold(void *object, const char *value, struct err *e)
{
	return setting_flag("hold", value, &((struct carrel_command *)object)->hold, e);
}

static int set_key(void *object, const char *value, struct err *e)
{
	if (!*value || strlen(value) > MSG_KEY_MAX)
		return err_hint(e, err_set(e, ERR_INVALID, "set key to '%.64s': not 1 to %d bytes", value, MSG_KEY_MAX),
				"a UUID is a good key");
	return setting_text(&((struct carrel_command *)object)->key, value);
}

static const struct setting command_settings[] = {
	{ "user", set_user },	  { "workdir", set_workdir }, { "env", set_env },	{ "timeout", set_timeout },
	{ "ulimit", set_ulimit }, { "stdin", set_stdin },     { "output", set_output }, { "output-limit", set_output_limit },
	{ "tty", set_tty },	  { "hold", set_hold },	      { "key", set_key },
};

int command_set(struct carrel_command *command, const char *key, const char *value, struct err *e)
{
	return setting_apply(command_settings, ARRAY_SIZE(command_settings), command, key, value, e);
}
