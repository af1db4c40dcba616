/* SPDX-License-Identifier: Apache-2.0 */
/* procfs.c - What /proc says of a process
 *
 * Theory of operation. Runs in the caller's process. A process is held by its directory below /proc: once it has ended, every read fails with
 * ESRCH, whoever gets its number next. Texts come from the kernel, which escapes newlines in names and blanks in paths; a process can choose
 * its name and its mounts' paths, but not the shape of a line. No path of a sandbox is followed here: what is opened is below /proc itself. */
#include "warden/procfs.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/sys.h"

#define READ_CHUNK 4096

int procfs_open(pid_t pid)
{
	char path[24];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = sys_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	return fd == -ENOENT ? -ESRCH : fd;
}

int procfs_read(int dir, const char *file, struct buf *out)
{
	auto_close int fd = sys_openat(dir, file, O_RDONLY, 0);
	char chunk[READ_CHUNK];
	ssize_t n;
	int r = 0;

	if (fd < 0)
		return fd;
	while (r == 0 && (n = fd_read_full(fd, chunk, sizeof(chunk))) != 0)
		r = n < 0 ? (int)n : buf_add(out, chunk, (size_t)n);
	return r;
}

int procfs_link(int dir, const char *file, char *ret, size_t size)
{
	ssize_t n = readlinkat(dir, file, ret, size - 1);

	if (n < 0)
		return -errno;
	ret[n] = '\0';
	return 0;
}

char *procfs_squeeze(const char *text, char *ret, size_t size)
{
	size_t len = 0;

	for (text += strspn(text, " \t"); *text && *text != '\n' && len + 1 < size; text++) {
		if (*text != ' ' && *text != '\t')
			ret[len++] = *text;
		else if (text[strspn(text, " \t")] && text[strspn(text, " \t")] != '\n' && ret[len - 1] != ' ')
			ret[len++] = ' ';
	}
	ret[len] = '\0';
	return ret;
}

int procfs_field(const char *text, const char *key, char *ret, size_t size)
{
	for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *value = str_starts(line, key);

		if (value) {
			(void)procfs_squeeze(value, ret, size);
			return 0;
		}
	}
	return -ENODATA;
}

int procfs_namespaced_pid(const char *status)
{
	char value[400]; /* 32 levels of namespaces (MAX_PID_NS_LEVEL), eleven bytes each */
	const char *last;
	uint64_t pid;
	int r = procfs_field(status, "NSpid:", value, sizeof(value));

	if (r < 0)
		return r;
	last = strrchr(value, ' ');
	r = str_to_u64(last ? last + 1 : value, &pid);
	return r < 0 || pid > INT32_MAX ? -EINVAL : (int)pid;
}

/* Cut one word off; the rest begins behind the blank. Return: NULL at the end. */
static char *cut_word(char **at)
{
	char *word = *at, *end;

	if (!*word)
		return NULL;
	end = strchrnul(word, ' ');
	*at = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

/* "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw": proc(5). The fields before "-" vary in number. */
static bool parse_mount(char *line, struct procfs_mount *ret)
{
	char *word = NULL;

	for (int i = 0; i < 5; i++)
		word = cut_word(&line);
	ret->target = word;
	ret->options = cut_word(&line);
	do
		word = cut_word(&line);
	while (word && !str_eq(word, "-"));
	ret->type = word ? cut_word(&line) : NULL;
	return ret->target && ret->options && ret->type;
}

int procfs_mount_next(char **at, struct procfs_mount *ret)
{
	while (*at && **at) {
		char *line = *at, *end = strchrnul(line, '\n');

		*at = *end ? end + 1 : end;
		*end = '\0';
		if (parse_mount(line, ret))
			return 1;
	}
	return 0;
}

bool procfs_option(const char *options, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = options; *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == len && strncmp(at, word, len) == 0)
			return true;
	return false;
}

/* "4:memory:/carrel/x", "1:cpu,cpuacct:/carrel/x", "0::/carrel/x" */
int procfs_cgroup(const char *text, const char *controller, char *ret, size_t size)
{
	for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
		char list[256];

		if (!path)
			continue;
		(void)snprintf(list, sizeof(list), "%.*s", (int)(path - names - 1), names + 1);
		if (controller ? procfs_option(list, controller) : !list[0]) {
			(void)procfs_squeeze(path + 1, ret, size);
			return 0;
		}
	}
	return -ENODATA;
}

int procfs_each(int (*visit)(pid_t pid, int dir, void *data), void *data)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int r = 0;

	if (!proc)
		return -errno;
	while (r == 0 && (entry = readdir(proc))) {
		auto_close int dir = -EBADF;
		uint64_t pid;

		if (str_to_u64(entry->d_name, &pid) < 0 || pid > INT32_MAX)
			continue;
		dir = procfs_open((pid_t)pid);
		if (dir >= 0) /* else it has ended meanwhile */
			r = visit((pid_t)pid, dir, data);
	}
	(void)closedir(proc);
	return r;
}
