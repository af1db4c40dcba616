/* SPDX-License-Identifier: Apache-2.0 */
/* user.c - Who an exec runs as, by the sandbox's own /etc/passwd and /etc/group
 *
 * Theory of operation. Runs in the child of an exec, as root of the sandbox, before it gives that up. The two files belong to the sandbox
 * and may be anything: a FIFO, a device, 10 GB of zeroes, a file on a mount that hangs. They are opened without waiting, must be regular and
 * small, and are read into memory of the child; if reading hangs all the same, it is the child that hangs, and its time-out kills it.
 *
 * NSS is not asked: its modules are code of the sandbox. Lines that do not have the fields of passwd(5) and group(5) are skipped. As
 * docker does, a number needs no entry (its group is 0 then), and supplementary groups are taken when no group was asked for. */
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/sys.h"
#include "init/internal.h"

#define USER_FILE_MAX MIB(1) /* bytes of /etc/passwd or /etc/group: 20,000 users */
#define USER_FIELDS_MAX 7    /* passwd(5) */

/* Read a small regular file whole, with a NUL behind. Return: text that the caller frees, or NULL with *ret_r set. */
static char *user_file(const char *path, int *ret_r)
{
	auto_close int fd = sys_openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	struct stat st;
	char *text;
	ssize_t n;

	*ret_r = fd;
	if (fd < 0)
		return NULL;
	*ret_r = -EINVAL;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	*ret_r = -EFBIG;
	if (st.st_size > (off_t)USER_FILE_MAX)
		return NULL;
	*ret_r = -ENOMEM;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return NULL;
	n = fd_read_full(fd, text, (size_t)st.st_size);
	if (n < 0) {
		free(text);
		*ret_r = (int)n;
		return NULL;
	}
	text[n] = '\0';
	return text;
}

/* Cut the next line off *@at into fields. Return: their number, 0 at the end of the text. */
static size_t user_line(char **at, char *fields[USER_FIELDS_MAX])
{
	char *line = *at;
	char *end = strchr(line, '\n');
	size_t num = 0;

	if (*line == '\0')
		return 0;
	*at = end ? end + 1 : line + strlen(line);
	if (end)
		*end = '\0';
	while (line && num < USER_FIELDS_MAX) {
		char *colon = strchr(line, ':');

		fields[num++] = line;
		line = colon ? colon + 1 : NULL;
		if (colon)
			*colon = '\0';
	}
	return num;
}

/* Return: 0; -EINVAL if @s is not a number that can be an id ((uid_t)-1 means "leave it" to the kernel). */
static int user_id(const char *s, uint32_t *ret)
{
	uint64_t v;

	if (str_to_u64(s, &v) < 0 || v >= UINT32_MAX)
		return -EINVAL;
	*ret = (uint32_t)v;
	return 0;
}

static int user_passwd(const char *who, bool numeric, struct user *u, char *name, size_t name_size, struct err *e)
{
	int r;
	auto_free char *text = user_file("/etc/passwd", &r);
	char *f[USER_FIELDS_MAX];
	char *at = text;
	size_t n;

	if (!text && !numeric)
		return err_sys(e, r, "run as user '%s': read /etc/passwd of the sandbox", who);
	while (text && (n = user_line(&at, f)) > 0) {
		uint32_t uid, gid;

		if (n < USER_FIELDS_MAX || user_id(f[2], &uid) < 0 || user_id(f[3], &gid) < 0)
			continue;
		if (numeric ? uid != u->uid : strcmp(f[0], who) != 0)
			continue;
		u->uid = uid;
		u->gid = gid;
		if (strlen(f[5]) < sizeof(u->home))
			memcpy(u->home, f[5], strlen(f[5]) + 1);
		if (strlen(f[0]) < name_size)
			memcpy(name, f[0], strlen(f[0]) + 1);
		return 0;
	}
	if (numeric)
		return 0;
	r = err_set(e, ERR_INVALID, "run as user '%s': /etc/passwd of the sandbox has no such user", who);
	return err_hint(e, r, "name a user of the sandbox, or give a number");
}

static bool list_has(char *list, const char *name)
{
	size_t len = strlen(name);

	for (char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (strncmp(at, name, len) == 0 && (at[len] == ',' || at[len] == '\0'))
			return true;
	return false;
}

/* The groups whose member list names @name. A file that cannot be read has none. */
static void user_supplementary(const char *name, struct user *u)
{
	int r;
	auto_free char *text = user_file("/etc/group", &r);
	char *f[USER_FIELDS_MAX];
	char *at = text;
	size_t n;

	if (!name[0])
		return;
	while (text && u->num_groups < ARRAY_SIZE(u->groups) && (n = user_line(&at, f)) > 0)
		if (n >= 4 && list_has(f[3], name) && user_id(f[2], &u->groups[u->num_groups]) == 0)
			u->num_groups++;
}

static int user_group(const char *group, struct user *u, struct err *e)
{
	auto_free char *text = NULL;
	char *f[USER_FIELDS_MAX];
	char *at;
	size_t n;
	int r;

	if (user_id(group, &u->gid) == 0)
		return 0;
	text = user_file("/etc/group", &r);
	if (!text)
		return err_sys(e, r, "run as group '%s': read /etc/group of the sandbox", group);
	at = text;
	while ((n = user_line(&at, f)) > 0)
		if (n >= 3 && strcmp(f[0], group) == 0 && user_id(f[2], &u->gid) == 0)
			return 0;
	r = err_set(e, ERR_INVALID, "run as group '%s': /etc/group of the sandbox has no such group", group);
	return err_hint(e, r, "name a group of the sandbox, or give a number");
}

int user_find(const char *spec, struct user *ret, struct err *e)
{
	const char *colon = strchr(spec, ':');
	size_t len = colon ? (size_t)(colon - spec) : strlen(spec);
	char who[MSG_USER_MAX + 1], name[MSG_USER_MAX + 1] = "";
	bool numeric;
	int r;

	*ret = (struct user){ .home = "/" };
	if (len > MSG_USER_MAX || (len == 0 && colon) || (colon && !colon[1])) {
		r = err_set(e, ERR_INVALID, "run as user '%s': a part is empty", spec);
		return err_hint(e, r, "write USER, UID, USER:GROUP or UID:GID");
	}
	memcpy(who, spec, len);
	who[len] = '\0';
	if (len == 0)
		memcpy(who, "0", 2);
	numeric = user_id(who, &ret->uid) == 0;
	r = user_passwd(who, numeric, ret, name, sizeof(name), e);
	if (r < 0)
		return r;
	if (colon)
		return user_group(colon + 1, ret, e);
	if (len > 0)
		user_supplementary(name, ret);
	return 0;
}
