/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.c - From a spec to a plan: look at the host, open what will be mounted
 *
 * Theory of operation. Runs in the caller's process, before anything is made. Whatever the plan needs of the host is opened here, once, and
 * handed on as descriptors: a volume that is replaced by a symlink after this point is not the one that is mounted. Errors of the request
 * surface here, so that a bad one costs no namespace. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/sys.h"
#include "layers/image.h"
#include "layers/store.h"
#include "warden/internal.h"
#include "warden/storage.h"

/* A symlink as the last component is refused and not followed: who names a volume must mean the directory that gets it. */
static int open_source(const struct spec_mount *m, struct err *e)
{
	auto_close int fd = -EBADF;
	struct stat st;
	int r;

	if (m->source_fd > 0) {
		fd = fd_cloexec_from3(m->source_fd);
		return fd < 0 ? err_sys(e, fd, "mount on '%s'", m->target) : take_fd(fd);
	}
	fd = sys_openat(AT_FDCWD, m->source, O_PATH | O_NOFOLLOW, 0);
	if (fd < 0) {
		r = err_sys(e, fd, "mount '%s' on '%s'", m->source, m->target);
		return r == -ENOENT ? err_hint(e, r, "make it first; Carrel does not create sources") : r;
	}
	if (fstat(fd, &st) < 0)
		return err_sys(e, -errno, "look at '%s'", m->source);
	if (S_ISLNK(st.st_mode)) {
		r = err_set(e, ERR_INVALID, "mount '%s' on '%s': it is a symbolic link", m->source, m->target);
		return err_hint(e, r, "name what it points to (realpath '%.100s')", m->source);
	}
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode) && !S_ISSOCK(st.st_mode)) {
		r = err_set(e, ERR_INVALID, "mount '%s' on '%s': neither a directory, a file nor a socket", m->source, m->target);
		return err_hint(e, r, "devices are lent with --device");
	}
	return take_fd(fd);
}

static size_t depth(const char *path)
{
	size_t n = 0;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

/* Outer mounts first, so that a mount below another is not covered by it. Insertion keeps the order of equals. */
static void insert_by_depth(struct jail_plan *plan, struct jail_mount m)
{
	size_t i = plan->num_mounts++;

	for (; i > 0 && depth(plan->mounts[i - 1].target) > depth(m.target); i--)
		plan->mounts[i] = plan->mounts[i - 1];
	plan->mounts[i] = m;
}

static int plan_mounts(const struct carrel_spec *spec, struct jail_plan *plan, struct err *e)
{
	for (size_t i = 0; i < spec->num_mounts; i++) {
		const struct spec_mount *from = &spec->mounts[i];
		struct jail_mount m = {
			.kind = from->kind,
			.source_fd = -EBADF,
			.read_only = from->read_only,
			.map_all = from->map_all,
			.mode = from->mode,
			.size_bytes = from->size_bytes,
		};

		if (m.kind == JAIL_BIND) {
			m.source_fd = open_source(from, e);
			if (m.source_fd < 0)
				return m.source_fd;
			m.source = strdup(from->source ? from->source : "");
		}
		m.target = strdup(from->target);
		insert_by_depth(plan, m); /* the plan frees it, also half-made */
		if (!m.target || (m.kind == JAIL_BIND && !m.source))
			return -ENOMEM;
	}
	return 0;
}

static int plan_image(const struct carrel_spec *spec, struct jail_plan *plan, struct err *e)
{
	auto_close int store = store_open(STORE_CREATE, e);
	auto_(image_done) struct image img = IMAGE_INIT;
	int r;

	if (store < 0)
		return store;
	r = image_resolve(spec->image, store, &img, e);
	if (r == 0 && img.needs_unpack)
		r = unpack_archive(store, &img, e);
	if (r < 0)
		return r;
	plan->image = spec->image;
	plan->lowers[plan->num_lowers++] = take_fd(img.fd);
	if (img.kind != IMAGE_HOST)
		return 0;
	plan->usr_fd = sys_openat(AT_FDCWD, "/usr", O_PATH | O_DIRECTORY, 0);
	return plan->usr_fd < 0 ? err_sys(e, plan->usr_fd, "open the host's /usr") : 0;
}

#ifdef CARREL_TEST_SWITCHES
/* CARREL_TEST_WITHOUT=seccomp,masks takes layers out, so that a test can show that another one fails then. */
static unsigned test_without(void)
{
	const char *words = getenv("CARREL_TEST_WITHOUT");
	unsigned mask = 0;

	while (words && *words) {
		size_t n = strcspn(words, ",");

		for (unsigned i = 0; i < PART_NUM; i++)
			if (strlen(jail_part_name(i)) == n && strncmp(words, jail_part_name(i), n) == 0)
				mask |= 1u << i;
		words += n + (words[n] == ',');
	}
	return mask;
}
#endif

/* What an older kernel needs to be done in another way (see enum jail_flags). */
static unsigned kernel_flags(void)
{
	struct utsname u;
	uint64_t major, minor;
	char *dot, *end;

	if (uname(&u) < 0 || !(dot = strchr(u.release, '.')))
		return 0;
	*dot++ = '\0';
	end = dot + strspn(dot, "0123456789");
	*end = '\0';
	if (str_to_u64(u.release, &major) < 0 || str_to_u64(dot, &minor) < 0)
		return 0;
#ifdef CARREL_TEST_SWITCHES
	if (getenv("CARREL_TEST_OLD_KERNEL")) /* the way of 6.1 on a newer one */
		return JAIL_ATTACH_LAYERS | JAIL_LOWERDIR_LIST;
#endif
	return (major < 6 || (major == 6 && minor < 15) ? JAIL_ATTACH_LAYERS : 0) |
	       (major < 6 || (major == 6 && minor < 7) ? JAIL_LOWERDIR_LIST : 0);
}

void plan_begin(const struct carrel_spec *spec, const char *id, const struct slot *slot, struct jail_plan *ret)
{
	uid_t uid = geteuid();

	jail_plan_init(ret);
	(void)snprintf(ret->id, sizeof(ret->id), "%s", id);
	(void)snprintf(ret->hostname, sizeof(ret->hostname), "%s", spec->hostname ? spec->hostname : id);
	ret->flags = (uid ? JAIL_ROOTLESS : 0) | (spec->host_network ? JAIL_HOST_NETWORK : 0) |
		     (spec->nested_userns ? JAIL_NESTED_USERNS : 0) | (spec->read_only ? JAIL_READ_ONLY_ROOT : 0) | kernel_flags();
#ifdef CARREL_TEST_SWITCHES
	ret->without = test_without();
#endif
	ret->uid_base = uid ? uid : slot ? slot_uid_base(slot) : SLOT_UID_BASE;
	ret->gid_base = uid ? getegid() : ret->uid_base;
	ret->uid_count = uid ? 1 : JAIL_UID_COUNT;
	ret->run_uid = spec->volume_uid;
	ret->upper_bytes = spec->storage_bytes;
	ret->upper_inodes = spec->storage_inodes;
	ret->tmp_bytes = spec->tmp_bytes;
	ret->shm_bytes = spec->shm_bytes;
	ret->devices = spec->devices;
}

int plan_make(const struct carrel_spec *spec, struct jail_plan *ret, struct err *e)
{
	int r = spec_check(spec, e);

	if (r < 0)
		return r;
	r = storage_choose(spec, ret, e);
	if (r == 0)
		r = plan_image(spec, ret, e);
	return r < 0 ? r : plan_mounts(spec, ret, e);
}

int carrel_plan(const struct carrel_spec *spec, const struct carrel_command *command, char **ret, struct carrel_error *ret_e)
{
	struct err e = { .code = ERR_NONE };
	auto_buf struct buf out = BUF_INIT(MIB(1));
	struct jail_plan plan;
	char size[24];
	int r;

	plan_begin(spec, "0000000000000000", NULL, &plan);
	r = plan_make(spec, &plan, &e);
	if (r == 0)
		jail_plan_print(&plan, &out);
	jail_plan_done(&plan);
	if (r < 0)
		return error_out(r, &e, ret_e);
	(void)buf_printf(&out, "limit: memory %s\n", str_format_size(spec->memory_bytes, size, sizeof(size)));
	(void)buf_printf(&out, "limit: pids %" PRIu64 "\n", spec->pids);
	if (spec->cpu_milli)
		(void)buf_printf(&out, "limit: cpus %u.%03u\n", spec->cpu_milli / 1000, spec->cpu_milli % 1000);
	for (size_t i = 0; command && i < command->num_rlimits; i++)
		(void)buf_printf(&out, "limit: resource %" PRIu32 " %" PRIu64 ":%" PRIu64 "\n", command->rlimits[i].resource,
				 command->rlimits[i].soft, command->rlimits[i].hard);
	if (command && command->timeout_ns)
		(void)buf_printf(&out, "limit: time %" PRIu64 " ms\n", command->timeout_ns / NSEC_PER_MSEC);
	(void)buf_puts(&out, "privileges: no_new_privs, seccomp allow-list, Landlock where the kernel has it\n");
	if (out.r < 0)
		return error_out(out.r, &e, ret_e);
	*ret = take_ptr(out.p);
	return 0;
}
