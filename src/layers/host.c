/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - The `host` image: a root around the host's /usr
 *
 * Theory of operation. Runs in the caller, before anything is cloned. The first command on a fresh machine must work
 * without a download, so the host itself is an image: its /usr, which holds programs and no secrets, under a root
 * that is made here. The host's /etc is different: it mixes what programs need to run (where libraries, certificates
 * and the time zone are) with what no guest may see (password hashes, host keys, tokens in pip.conf or fstab). So
 * /etc is made anew, from an allow-list: three tables say which directories, which texts and which copies there are,
 * each copy with the reason. What is not in a table does not exist inside.
 *
 * A layer is made once for each generation, which is a hash of the stat data of the files that change when the host
 * changes. The list is short, since it is looked at on each start: the package database stands for every file that
 * packages install, and what administrators edit by hand is named one by one. The tables are part of the hash, so
 * another version of Carrel makes its own.
 *
 * Made out of sight and renamed into place (scratch.c); of two builders the first one wins. */
#include "layers/host.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "layers/copy.h"
#include "layers/internal.h"
#include "layers/scratch.h"

/* Limits of a layer: fifty times what a Debian 12 with a desktop has, and still harmless for a disk. */
#define FILE_MAX MIB(8)   /* bytes of one copied file */
#define TOTAL_MAX MIB(64) /* bytes of all */
#define ENTRIES_MAX 20000 /* files, directories, links */

#define AGENT_ID 1000 /* uid and gid of `agent`, the ordinary user of an image that names none */

/* Links into /usr that the host has. Without them no program finds its loader. */
static const char *const root_links[] = { "bin", "sbin", "lib", "lib64", "lib32", "libx32" };

/* The skeleton; a directory stands before what is in it. */
static const struct {
	const char *path;
	mode_t mode;
} root_dirs[] = {
	{ "dev", 0755 },     { "etc", 0755 },        { "etc/dpkg", 0755 }, { "etc/pki", 0755 },   { "etc/ssl", 0755 },
	{ "home", 0755 },    { "home/agent", 0755 }, { "media", 0755 },    { "mnt", 0755 },       { "opt", 0755 },
	{ "proc", 0755 },    { "root", 0700 },       { "run", 0755 },      { "srv", 0755 },       { "sys", 0755 },
	{ "tmp", 01777 },    { "usr", 0755 },        { "var", 0755 },      { "var/cache", 0755 }, { "var/lib", 0755 },
	{ "var/log", 0755 }, { "var/tmp", 01777 },
};

/* Files and links that are the same on every host. */
static const struct {
	const char *path;
	const char *text;
} root_texts[] = {
	{ "etc/passwd", "root:x:0:0:root:/root:/bin/bash\n"
			"daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
			"bin:x:2:2:bin:/bin:/usr/sbin/nologin\n"
			"agent:x:1000:1000:agent:/home/agent:/bin/bash\n"
			"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
	/* tty: devpts is mounted with gid=5. mail, staff: they own directories of Debian's /usr and /var. */
	{ "etc/group", "root:x:0:\n"
		       "daemon:x:1:\n"
		       "bin:x:2:\n"
		       "tty:x:5:\n"
		       "mail:x:8:\n"
		       "staff:x:50:\n"
		       "users:x:100:\n"
		       "agent:x:1000:\n"
		       "nogroup:x:65534:\n" },
	{ "etc/hosts", "127.0.0.1\tlocalhost\n"
		       "::1\tlocalhost ip6-localhost ip6-loopback\n" },
	{ "etc/hostname", "localhost\n" },
	/* Without a nameserver line glibc asks 127.0.0.1, where nobody listens: names fail at once, without a wait. */
	{ "etc/resolv.conf", "# This sandbox has no network.\n" },
	{ "etc/nsswitch.conf", "passwd: files\n"
			       "group: files\n"
			       "shadow: files\n"
			       "hosts: files dns\n"
			       "networks: files\n"
			       "protocols: files\n"
			       "services: files\n"
			       "ethers: files\n"
			       "rpc: files\n" },
	{ "etc/host.conf", "multi on\n" },
	/* The host's own id would tell sandboxes of one host from those of another. */
	{ "etc/machine-id", "" },
};

static const struct {
	const char *path;
	const char *target;
} root_aliases[] = {
	{ "etc/mtab", "../proc/self/mounts" },
};

/* Below /etc, copied if others may read it; a `*` matches within one name. */
static const struct {
	const char *path;
	const char *why;
} etc_copied[] = {
	{ "ImageMagick-*", "its delegates and its policy, without which it converts nothing" },
	{ "alternatives", "/usr/bin has links into it: cc, awk, editor, java" },
	{ "bash.bashrc", "interactive bash" },
	{ "ca-certificates", "what /etc/ssl/certs is made from" },
	{ "ca-certificates.conf", "update-ca-certificates" },
	{ "debian_version", "scripts that ask which distribution this is" },
	{ "dpkg/origins", "dpkg-vendor, which every Debian package build asks" },
	{ "dpkg/shlibs.default", "dpkg-shlibdeps" },
	{ "dpkg/shlibs.override", "dpkg-shlibdeps" },
	{ "fonts", "fontconfig: text in plots and headless browsers" },
	{ "gai.conf", "order of addresses in getaddrinfo" },
	{ "inputrc", "keys of readline" },
	{ "java-*", "/usr/lib/jvm has links into it; no JVM starts without its security files" },
	{ "ld-musl-*", "library path of programs linked with musl" },
	{ "ld.so.cache", "finds libraries outside /usr/lib; every dynamic start reads it" },
	{ "ld.so.conf", "ldconfig inside" },
	{ "ld.so.conf.d", "ldconfig inside" },
	{ "locale.alias", "/usr/share/locale has a link to it" },
	{ "localtime", "the time zone; a link into /usr/share/zoneinfo" },
	{ "login.defs", "useradd, su, and programs that ask for UID_MIN" },
	{ "magic", "file(1)" },
	{ "magic.mime", "file(1)" },
	{ "mime.types", "python's mimetypes, web servers" },
	{ "netconfig", "libtirpc" },
	{ "networks", "getnetbyname" },
	{ "os-release", "a link to /usr/lib/os-release" },
	{ "perl", "perl's include path begins with it" },
	{ "pki/ca-trust", "certificates on the Fedora family" },
	{ "pki/tls/cert.pem", "certificates on the Fedora family" },
	{ "pki/tls/certs", "certificates on the Fedora family" },
	{ "profile", "login shells" },
	{ "protocols", "getprotobyname" },
	{ "python*", "/usr/lib/python3.* has links into it (sitecustomize), and debian_config" },
	{ "rpc", "getrpcbyname" },
	{ "services", "getservbyname" },
	{ "shells", "chsh, tmux" },
	{ "skel", "useradd" },
	{ "ssl/certs", "certificate authorities; without them no TLS client trusts anybody" },
	{ "ssl/openssl.cnf", "openssl; /usr/lib/ssl has a link to it" },
	{ "terminfo", "descriptions of terminals that the administrator added" },
	{ "timezone", "programs that want the name of the zone" },
	{ "xattr.conf", "libattr: which attributes cp -a copies" },
	{ "xml", "catalogs of libxml2 and docbook" },
};

/* What makes a new generation. */
static const char *const watched[] = {
	/* Every file that a package installs, here and in /usr, by the database that records it */
	"/var/lib/dpkg/status",
	"/var/lib/rpm",
	"/var/lib/pacman/local",
	/* The merge of /usr */
	"/bin",
	"/lib",
	"/lib64",
	/* What administrators change, or tools on their behalf */
	"/etc/alternatives",
	"/etc/bash.bashrc",
	"/etc/ld.so.cache",
	"/etc/ld.so.conf.d",
	"/etc/localtime",
	"/etc/login.defs",
	"/etc/profile",
	"/etc/services",
	"/etc/ssl/certs",
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/ssl/openssl.cnf",
	"/etc/timezone",
	"/usr/lib/os-release",
};

static uint64_t hash_text(uint64_t h, const char *s)
{
	return hash_bytes(h, s, strlen(s) + 1);
}

static uint64_t hash_tables(uint64_t h)
{
	for (size_t i = 0; i < ARRAY_SIZE(root_dirs); i++)
		h = hash_word(hash_text(h, root_dirs[i].path), root_dirs[i].mode);
	for (size_t i = 0; i < ARRAY_SIZE(root_texts); i++)
		h = hash_text(hash_text(h, root_texts[i].path), root_texts[i].text);
	for (size_t i = 0; i < ARRAY_SIZE(etc_copied); i++)
		h = hash_text(h, etc_copied[i].path);
	return h;
}

static uint64_t host_generation(void)
{
	uint64_t h = hash_tables(HASH_INIT);

	for (size_t i = 0; i < ARRAY_SIZE(watched); i++) {
		struct stat st;

		if (fstatat(AT_FDCWD, watched[i], &st, AT_SYMLINK_NOFOLLOW) < 0) {
			h = hash_word(h, (uint64_t)errno);
			continue;
		}
		h = hash_word(h, (uint64_t)st.st_ino);
		h = hash_word(h, (uint64_t)st.st_size);
		h = hash_word(h, (uint64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec);
	}
	return h;
}

/* make_links() - bin, lib and so on, as the host has them */
static int make_links(int root, struct err *e)
{
	char from[16], target[64];
	ssize_t n;

	for (size_t i = 0; i < ARRAY_SIZE(root_links); i++) {
		const char *name = root_links[i], *rest;

		(void)snprintf(from, sizeof(from), "/%s", name);
		n = readlink(from, target, sizeof(target) - 1);
		if (n < 0 && errno == ENOENT)
			continue;
		target[MAX(n, 0)] = '\0';
		rest = target[0] == '/' ? target + 1 : target;
		if (!str_starts(rest, "usr/"))
			return err_hint(
				e,
				err_set(e, ERR_UNSUPPORTED, "make the host image: '%s' is not a link into /usr", from),
				"give a root file system with --image, or merge /usr (Debian: apt install usrmerge)");
		if (symlinkat(target, root, name) < 0)
			return err_sys(e, -errno, "make the link '%s'", name);
	}
	return 0;
}

static int make_dirs(int root, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(root_dirs); i++)
		/* chmod as well: mkdir is subject to umask, which a library must not change */
		if (mkdirat(root, root_dirs[i].path, 0700) < 0 ||
		    fchmodat(root, root_dirs[i].path, root_dirs[i].mode, 0) < 0)
			return err_sys(e, -errno, "make the directory '%s'", root_dirs[i].path);

	/* Only root can give files away. Without it there is one id inside, or the warden does it in the namespace. */
	if (geteuid() == 0 && fchownat(root, "home/agent", AGENT_ID, AGENT_ID, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, -errno, "give 'home/agent' to uid %d", AGENT_ID);
	return 0;
}

static int make_texts(int root, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(root_texts); i++) {
		auto_close int fd = -EBADF;
		int r = 0;

		fd = openat(root, root_texts[i].path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 || fchmod(fd, 0644) < 0)
			r = -errno;
		if (r == 0)
			r = fd_write_full(fd, root_texts[i].text, strlen(root_texts[i].text));
		if (r < 0)
			return err_sys(e, r, "write '%s'", root_texts[i].path);
	}
	for (size_t i = 0; i < ARRAY_SIZE(root_aliases); i++)
		if (symlinkat(root_aliases[i].target, root, root_aliases[i].path) < 0)
			return err_sys(e, -errno, "make the link '%s'", root_aliases[i].path);
	return 0;
}

/* copy_matching() - Copy the entries of /etc whose name matches a pattern */
static int copy_matching(int from, int to, const char *pattern, struct copy_budget *budget, struct err *e)
{
	struct dirent *d;
	int fd, r = 0;
	DIR *dir;

	fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		r = -errno;
		close_p(&fd);
		return err_sys(e, r, "read the directory '/etc'");
	}
	while (r == 0 && (d = readdir(dir)))
		if (fnmatch(pattern, d->d_name, FNM_PERIOD) == 0)
			r = copy_public_at(from, to, d->d_name, budget, e);
	(void)closedir(dir);
	return r;
}

static int make_copies(int root, struct err *e)
{
	struct copy_budget budget = { .file_max_bytes = FILE_MAX, .bytes = TOTAL_MAX, .entries = ENTRIES_MAX };
	auto_close int from = -EBADF, to = -EBADF;
	int r = 0;

	from = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (from < 0)
		return err_sys(e, -errno, "open '/etc'");
	to = openat(root, "etc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to < 0)
		return err_sys(e, -errno, "open 'etc' of the new layer");
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(etc_copied); i++)
		r = strchr(etc_copied[i].path, '*') ? copy_matching(from, to, etc_copied[i].path, &budget, e)
						    : copy_public_at(from, to, etc_copied[i].path, &budget, e);
	return r;
}

static int build_root(int dir, struct err *e)
{
	auto_close int root = -EBADF;
	int r;

	root = dir_make_open(dir, "root", 0755);
	if (root < 0)
		return err_sys(e, root, "make the root of a layer");
	if (fchmod(root, 0755) < 0)
		return err_sys(e, -errno, "set the mode of a layer");
	r = make_links(root, e);
	if (r == 0)
		r = make_dirs(root, e);
	if (r == 0)
		r = make_texts(root, e);
	return r == 0 ? make_copies(root, e) : r;
}

static int host_build(int store_fd, const char *key, struct err *e)
{
	struct scratch s = SCRATCH_INIT;
	auto_close int dir = -EBADF;
	int r;

	dir = dir_make_open(store_fd, "host", 0700);
	if (dir < 0)
		return err_sys(e, dir, "open 'host' in the store");
	r = scratch_make(dir, &s, e);
	if (r < 0)
		return r;
	r = build_root(s.fd, e);
	if (r == 0)
		r = scratch_publish(&s, key, e);
	scratch_drop(&s);
	return r < 0 ? r : 0;
}

int host_layer_open(int store_fd, struct host_layer *ret, struct err *e)
{
	struct host_layer h = { .generation = host_generation() };
	char key[KEY_SIZE];
	int r;

	(void)snprintf(key, sizeof(key), "%016llx", (unsigned long long)h.generation);
	(void)snprintf(h.path, sizeof(h.path), "host/%s/root", key);
	h.fd = openat(store_fd, h.path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (h.fd < 0 && errno == ENOENT) {
		r = host_build(store_fd, key, e);
		if (r < 0)
			return err_wrap(e, r, "make the host image");
		h.fd = openat(store_fd, h.path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	if (h.fd < 0)
		return err_sys(e, -errno, "open the host image '%s' in the store", h.path);
	*ret = h;
	return 0;
}

/* is_stale() - True for a generation that is neither current nor in use */
static bool is_stale(const char *name, uint64_t current, const uint64_t *in_use, size_t count)
{
	char key[KEY_SIZE];

	if (strlen(name) != KEY_SIZE - 1 || strspn(name, "0123456789abcdef") != KEY_SIZE - 1)
		return false;
	(void)snprintf(key, sizeof(key), "%016llx", (unsigned long long)current);
	for (size_t i = 0; strcmp(name, key) != 0; i++) {
		if (i == count)
			return true;
		(void)snprintf(key, sizeof(key), "%016llx", (unsigned long long)in_use[i]);
	}
	return false;
}

int host_collect(int store_fd, const uint64_t *in_use, size_t count, struct err *e)
{
	const uint64_t current = host_generation();
	auto_close int parent = -EBADF;
	struct dirent *d;
	int fd, r, n = 0;
	DIR *dir;

	parent = openat(store_fd, "host", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (parent < 0)
		return errno == ENOENT ? 0 : err_sys(e, -errno, "open 'host' in the store");
	r = scratch_collect(parent, e);
	if (r < 0)
		return r;
	n = r;
	fd = fd_cloexec_from3(parent);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		close_p(&fd);
		return err_sys(e, -ENOMEM, "read 'host' in the store");
	}
	for (r = 0; r == 0 && (d = readdir(dir));) {
		if (!is_stale(d->d_name, current, in_use, count))
			continue;
		r = scratch_retire(parent, d->d_name, e);
		n += r == 0;
	}
	(void)closedir(dir);
	return r < 0 ? r : n;
}
