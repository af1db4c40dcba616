/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - Where things live on the host
 *
 * Theory of operation. Runs in the caller, as the user who asked. Two directories: the store survives a reboot
 * (images, layers), the run directory does not (sockets, spools). Who may write into one of them decides what
 * sandboxes are made of, or may command them, so each is opened without following a link and must belong to this user
 * with no write permission for others. Both are made with mode 0700, the store also as root: image trees hold setuid
 * files and whatever secrets their makers left in them, and no other process needs the path (mounts are made from
 * descriptors). The directories above are made like `mkdir -p` does, mode 0755 less umask for system paths and 0700
 * for those of a user, as the XDG base directory specification asks.
 *
 * /tmp/carrel-UID is the last resort and the reason for the ownership check: anybody can make that name first. */
#include "layers/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/**
 * struct place - How a directory is found
 * @what:     Word for messages
 * @env:      Variable that names the directory itself
 * @system:   Path for root
 * @base_env: Variable that names the directory above, for users
 * @home_sub: Below $HOME when @base_env is not set; NULL for /tmp/carrel-UID
 */
struct place {
	const char *what;
	const char *env;
	const char *system;
	const char *base_env;
	const char *home_sub;
};

static const struct place store_place = { "store", "CARREL_STORE", "/var/lib/carrel", "XDG_DATA_HOME", ".local/share" };
static const struct place run_place = { "run directory", "CARREL_RUN_DIR", "/run/carrel", "XDG_RUNTIME_DIR", NULL };

/* env_path() - An absolute path from the environment. Return: NULL if unset, empty or (XDG says: ignore) relative */
static const char *env_path(const char *name)
{
	const char *v = getenv(name);

	return v && v[0] == '/' ? v : NULL;
}

static int place_path(const struct place *p, char *path, size_t size, struct err *e)
{
	const char *own = getenv(p->env), *base = env_path(p->base_env), *home = env_path("HOME");
	int n;

	if (own && own[0] && own[0] != '/')
		return err_hint(e, err_set(e, ERR_INVALID, "$%s is '%s', which is not an absolute path", p->env, own),
				"set it to a path that begins with a slash, or unset it");
	if (own && own[0])
		n = snprintf(path, size, "%s", own);
	else if (geteuid() == 0)
		n = snprintf(path, size, "%s", p->system);
	else if (base)
		n = snprintf(path, size, "%s/carrel", base);
	else if (p->home_sub && home)
		n = snprintf(path, size, "%s/%s/carrel", home, p->home_sub);
	else if (!p->home_sub)
		n = snprintf(path, size, "/tmp/carrel-%u", (unsigned)geteuid());
	else
		return err_hint(e,
				err_set(e, ERR_INVALID, "find the %s: neither $%s nor $HOME is set", p->what, p->env),
				"set $%s to a directory of yours", p->env);
	if (n < 0 || (size_t)n >= size)
		return err_set(e, ERR_INVALID, "find the %s: its path is too long", p->what);
	return 0;
}

/* make_parents() - mkdir -p for all but the last component; @path is changed and restored. */
static int make_parents(char *path, mode_t mode)
{
	for (char *s = strchr(path + 1, '/'); s; s = strchr(s + 1, '/')) {
		int r;

		*s = '\0';
		r = mkdir(path, mode) < 0 && errno != EEXIST ? -errno : 0;
		*s = '/';
		/* A read-only directory on the way is fine if the next one exists. */
		if (r < 0 && r != -EROFS && r != -EACCES)
			return r;
	}
	return 0;
}

static int place_check(const struct place *p, int fd, const char *path, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, -errno, "look at the %s '%s'", p->what, path);
	if (st.st_uid != geteuid())
		return err_hint(e,
				err_set(e, ERR_DENIED, "use the %s '%s': user %u owns it", p->what, path,
					(unsigned)st.st_uid),
				"set $%s to a directory of your own", p->env);
	if (st.st_mode & 022)
		return err_hint(e,
				err_set(e, ERR_DENIED, "use the %s '%s': others may write to it (mode %04o)", p->what,
					path, (unsigned)st.st_mode & 07777),
				"chmod go-w '%s'", path);
	return 0;
}

static int place_open(const struct place *p, enum store_flags flags, struct err *e)
{
	const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	char path[STORE_PATH_MAX];
	auto_close int fd = -EBADF;
	size_t len;
	int r;

	r = place_path(p, path, sizeof(path), e);
	if (r < 0)
		return r;
	for (len = strlen(path); len > 1 && path[len - 1] == '/'; len--)
		path[len - 1] = '\0'; /* "dir/" would follow a link */

	fd = open(path, how);
	if (fd < 0 && errno == ENOENT && (flags & STORE_CREATE)) {
		r = make_parents(path, geteuid() == 0 ? 0755 : 0700);
		if (r == 0 && mkdir(path, 0700) < 0 && errno != EEXIST)
			r = -errno;
		if (r < 0)
			return err_hint(e, err_sys(e, r, "make the %s '%s'", p->what, path),
					"set $%s to a directory that you can write to", p->env);
		fd = open(path, how);
	}
	if (fd < 0)
		return err_hint(e, err_sys(e, -errno, "open the %s '%s'", p->what, path),
				"set $%s to a directory of yours", p->env);
	r = place_check(p, fd, path, e);
	return r < 0 ? r : take_fd(fd);
}

int store_path(char *path, size_t size, struct err *e)
{
	return place_path(&store_place, path, size, e);
}

int store_open(enum store_flags flags, struct err *e)
{
	return place_open(&store_place, flags, e);
}

int rundir_path(char *path, size_t size, struct err *e)
{
	return place_path(&run_place, path, size, e);
}

int rundir_open(enum store_flags flags, struct err *e)
{
	return place_open(&run_place, flags, e);
}
