/* SPDX-License-Identifier: Apache-2.0 */
/* spec.c - Settings of a sandbox
 *
 * Theory of operation. Pure: no file is opened here, so a spec can be filled on one machine and checked by a test. What needs the host (does
 * the image exist, is the volume a symlink) is checked when the plan is made. Every limit has a default, because "unlimited" is what a
 * fork bomb wants. */
#include "warden/spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "carrel.h"

/* Defaults, as include/carrel.h documents them. Memory and processes: enough for a compiler run, little enough that a hundred idle
 * mistakes do not matter on a small host; the writable layer is in memory, and charged to it, unless a backing on disk is chosen. */
#define DEFAULT_MEMORY MIB(512)
#define DEFAULT_PIDS 512
#define DEFAULT_SHM MIB(64) /* docker's */
#define DEFAULT_TMP MIB(256)
#define DEFAULT_STORAGE GIB(1)
#define DEFAULT_INODES 262144
/* Below this the kernel cannot hold even a shell's page tables without killing it at once. */
#define MEMORY_MIN MIB(4)
#define PIDS_MAX 4194304 /* PID_MAX_LIMIT of 64-bit kernels (include/linux/threads.h) */
#define CPU_MILLI_MIN 10 /* cpu.max takes no quota under 1 ms of its 100 ms period */
#define CPU_MILLI_MAX 1024000
#define HOSTNAME_MAX 64 /* __NEW_UTS_LEN */

struct carrel_spec *carrel_spec_new(void)
{
	struct carrel_spec *spec = calloc(1, sizeof(*spec));

	if (!spec)
		return NULL;
	spec->image = strdup("host");
	if (!spec->image) {
		free(spec);
		return NULL;
	}
	spec->memory_bytes = DEFAULT_MEMORY;
	spec->pids = DEFAULT_PIDS;
	spec->shm_bytes = DEFAULT_SHM;
	spec->tmp_bytes = DEFAULT_TMP;
	spec->storage_bytes = DEFAULT_STORAGE;
	spec->storage_inodes = DEFAULT_INODES;
	spec->die_with_owner = 1;
	return spec;
}

void carrel_spec_free(struct carrel_spec *spec)
{
	if (!spec)
		return;
	for (size_t i = 0; i < spec->num_mounts; i++) {
		free(spec->mounts[i].source);
		free(spec->mounts[i].target);
	}
	free(spec->image);
	free(spec->hostname);
	free(spec);
}

/* Text that ends up in file names, terminals and logs: no control characters. */
static bool is_printable(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

static int set_image(void *object, const char *value, struct err *e)
{
	struct carrel_spec *spec = object;

	if (!*value || strlen(value) >= MSG_PATH_MAX || !is_printable(value))
		return err_set(e, ERR_INVALID, "set image to '%.64s': empty, too long, or with control characters", value);
	return setting_text(&spec->image, value);
}

static int set_hostname(void *object, const char *value, struct err *e)
{
	struct carrel_spec *spec = object;
	size_t n = strlen(value);
	int r;

	for (size_t i = 0; i < n; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.", value[i]))
			n = 0;
	if (n == 0 || n > HOSTNAME_MAX || value[0] == '-' || value[0] == '.') {
		r = err_set(e, ERR_INVALID, "set hostname to '%.64s': not a host name", value);
		return err_hint(e, r, "use letters, digits, '-' and '.', at most %d of them", HOSTNAME_MAX);
	}
	return setting_text(&spec->hostname, value);
}

/* --- Mounts ----------------------------------------------------------------------------------------------------------------- */

/* The target without its trailing slash, or an error. */
static int check_target(const char *target, char **ret, struct err *e)
{
	static const char *const reserved[] = { "/proc", "/sys", "/dev" };
	size_t n = strlen(target);
	int r;

	while (n > 1 && target[n - 1] == '/')
		n--;
	if (target[0] != '/' || n >= MSG_PATH_MAX || !is_printable(target)) {
		r = err_set(e, ERR_INVALID, "mount on '%.64s': not an absolute path inside the sandbox", target);
		return err_hint(e, r, "write it as SOURCE:/path/inside");
	}
	if (n == 1) {
		r = err_set(e, ERR_INVALID, "mount on '/': it is the image's place");
		return err_hint(e, r, "use --image DIRECTORY for another root");
	}
	for (size_t i = 0; i < n; i++) {
		size_t len = strcspn(target + i + 1, "/");

		if (len == 0 || (len == 1 && target[i + 1] == '.') || (len == 2 && str_starts(target + i + 1, "..")))
			return err_set(e, ERR_INVALID, "mount on '%.64s': '.', '..' or '//' in it", target);
		i += len;
	}
	for (size_t i = 0; i < ARRAY_SIZE(reserved); i++) {
		const char *rest = str_starts(target, reserved[i]);

		if (rest && (*rest == '\0' || *rest == '/')) {
			r = err_set(e, ERR_INVALID, "mount on '%.64s': %s belongs to the sandbox itself", target, reserved[i]);
			return err_hint(e, r, "see --device and --shm-size");
		}
	}
	*ret = strndup(target, n);
	return *ret ? 0 : -ENOMEM;
}

/* Consumes m->source; m->target is borrowed. */
static int add_mount(struct carrel_spec *spec, struct spec_mount *m, const char *target, struct err *e)
{
	auto_free char *source = m->source;
	int r;

	if (spec->num_mounts == JAIL_MOUNTS_MAX)
		return err_set(e, ERR_EXHAUSTED, "mount on '%.64s': more than %d mounts", target, JAIL_MOUNTS_MAX);
	if (m->kind == JAIL_BIND && (!source || !*source || !is_printable(source)))
		return err_set(e, ERR_INVALID, "mount on '%.64s': no source", target);
	if (m->kind == JAIL_BIND && source[0] != '/' && source[0] != '.') {
		r = err_set(e, ERR_INVALID, "mount '%.64s': neither an absolute path nor one that starts with '.'", source);
		return err_hint(e, r, "write ./%.64s for a directory here; there are no named volumes without a server", source);
	}
	r = check_target(target, &m->target, e);
	if (r < 0)
		return r;
	m->source = take_ptr(source);
	spec->mounts[spec->num_mounts++] = *m;
	return 0;
}

static int set_volume(void *object, const char *value, struct err *e)
{
	struct spec_mount m = { .kind = JAIL_BIND, .read_only = 1 };
	const char *colon = strchr(value, ':'), *options;
	auto_free char *target = NULL;
	int r;

	if (!colon) {
		r = err_set(e, ERR_INVALID, "mount volume '%.128s': no target", value);
		return err_hint(e, r, "write it as SOURCE:TARGET or SOURCE:TARGET:rw");
	}
	options = strchr(colon + 1, ':');
	if (options && !str_eq(options, ":ro") && !str_eq(options, ":rw"))
		return err_hint(e, err_set(e, ERR_INVALID, "mount volume '%.128s': option '%.16s'", value, options + 1),
				"the options are ro and rw");
	m.read_only = !options || str_eq(options, ":ro");
	target = options ? strndup(colon + 1, (size_t)(options - colon - 1)) : strdup(colon + 1);
	m.source = strndup(value, (size_t)(colon - value));
	if (!target || !m.source) {
		free(m.source);
		return -ENOMEM;
	}
	return add_mount(object, &m, target, e);
}

/* One "size=..." or "mode=..." of a tmpfs. */
static int set_tmpfs_option(struct spec_mount *m, const char *option, struct err *e)
{
	const char *v;

	v = str_starts(option, "size=");
	if (!v)
		v = str_starts(option, "tmpfs-size=");
	if (v)
		return setting_size("tmpfs size", v, KIB(4), &m->size_bytes, e);
	v = str_starts(option, "mode=");
	if (!v)
		v = str_starts(option, "tmpfs-mode=");
	if (v && *v && strlen(v) <= 4 && strspn(v, "01234567") == strlen(v)) {
		m->mode = 0;
		for (; *v; v++)
			m->mode = m->mode * 8 + (unsigned)(*v - '0');
		return 0;
	}
	if (str_eq(option, "rw") || str_eq(option, "nosuid") || str_eq(option, "nodev"))
		return 0; /* always so */
	return err_hint(e, err_set(e, ERR_INVALID, "mount tmpfs: option '%.64s'", option), "the options are size=SIZE and mode=OCTAL");
}

static int set_tmpfs(void *object, const char *value, struct err *e)
{
	struct carrel_spec *spec = object;
	struct spec_mount m = { .kind = JAIL_TMPFS, .mode = 01777, .size_bytes = spec->tmp_bytes };
	auto_free char *copy = strdup(value);
	char *options, *next = NULL;
	int r;

	if (!copy)
		return -ENOMEM;
	options = strchr(copy, ':');
	if (options)
		*options++ = '\0';
	for (; options; options = next) {
		next = strchr(options, ',');
		if (next)
			*next++ = '\0';
		r = set_tmpfs_option(&m, options, e);
		if (r < 0)
			return r;
	}
	return add_mount(spec, &m, copy, e);
}

/* docker's long form: type=bind,src=A,dst=B,ro */
static int set_mount(void *object, const char *value, struct err *e)
{
	struct carrel_spec *spec = object;
	struct spec_mount m = { .kind = JAIL_BIND, .read_only = 1, .mode = 01777, .size_bytes = spec->tmp_bytes };
	auto_free char *copy = strdup(value);
	const char *source = NULL, *target = "";
	char *next;

	if (!copy)
		return -ENOMEM;
	for (char *item = copy; item; item = next) {
		char *v;
		int r = 0;

		next = strchr(item, ',');
		if (next)
			*next++ = '\0';
		v = strchr(item, '=');
		if (str_eq(item, "type=bind") || str_eq(item, "ro") || str_eq(item, "readonly"))
			m.read_only = 1;
		else if (str_eq(item, "rw") || str_eq(item, "readonly=false") || str_eq(item, "ro=false"))
			m.read_only = 0;
		else if (str_eq(item, "type=tmpfs"))
			m.kind = JAIL_TMPFS;
		else if (str_starts(item, "src=") || str_starts(item, "source="))
			source = v + 1;
		else if (str_starts(item, "dst=") || str_starts(item, "target=") || str_starts(item, "destination="))
			target = v + 1;
		else
			r = set_tmpfs_option(&m, item, e);
		if (r < 0)
			return err_hint(e, r, "the keys are type, src, dst, ro, rw, tmpfs-size and tmpfs-mode");
	}
	if (source) {
		m.source = strdup(source);
		if (!m.source)
			return -ENOMEM;
	}
	return add_mount(spec, &m, target, e);
}

int spec_check(const struct carrel_spec *spec, struct err *e)
{
	for (size_t i = 0; i < spec->num_mounts; i++)
		for (size_t j = 0; j < i; j++)
			if (str_eq(spec->mounts[i].target, spec->mounts[j].target))
				return err_hint(e,
						err_set(e, ERR_INVALID, "mount on '%s': two mounts want this place",
							spec->mounts[i].target),
						"give each mount a target of its own");
	return 0;
}

/* --- Limits ----------------------------------------------------------------------------------------------------------------- */

static int set_memory(void *object, const char *value, struct err *e)
{
	struct carrel_spec *spec = object;
	int r = setting_size("memory", value, MEMORY_MIN, &spec->memory_bytes, e);

	if (r == 0)
		spec->explicit_mask |= EXPLICIT_MEMORY;
	return r;
}

static int set_cpus(void *object, const char *value, struct err *e)
{
	struct carrel_spec *spec = object;
	uint32_t milli;
	int r = str_to_milli(value, &milli);

	if (r < 0 || milli < CPU_MILLI_MIN || milli > CPU_MILLI_MAX)
		return err_hint(e, err_set(e, ERR_INVALID, "set cpus to '%.64s': not between 0.01 and 1024", value),
				"write a decimal such as 1.5");
	spec->cpu_milli = milli;
	spec->explicit_mask |= EXPLICIT_CPUS;
	return 0;
}

static int set_count(const char *key, const char *value, uint64_t max, uint64_t *ret, struct err *e)
{
	uint64_t v;

	if (str_to_u64(value, &v) < 0 || v == 0 || v > max)
		return err_hint(e, err_set(e, ERR_INVALID, "set %s to '%.64s': not a number", key, value),
				"write a number from 1 to %" PRIu64, max);
	*ret = v;
	return 0;
}

static int set_pids(void *object, const char *value, struct err *e)
{
	struct carrel_spec *spec = object;
	int r = set_count("pids-limit", value, PIDS_MAX, &spec->pids, e);

	if (r == 0)
		spec->explicit_mask |= EXPLICIT_PIDS;
	return r;
}

static int set_shm(void *object, const char *value, struct err *e)
{
	return setting_size("shm-size", value, KIB(4), &((struct carrel_spec *)object)->shm_bytes, e);
}

static int set_tmp(void *object, const char *value, struct err *e)
{
	return setting_size("tmp-size", value, KIB(4), &((struct carrel_spec *)object)->tmp_bytes, e);
}

static int set_storage(void *object, const char *value, struct err *e)
{
	static const char *const backings[] = {
		[STORAGE_AUTO] = "auto", [STORAGE_TMPFS] = "tmpfs", [STORAGE_LOOP] = "loop", [STORAGE_QUOTA] = "quota",
	};
	struct carrel_spec *spec = object;
	const char *v;
	unsigned word;
	int r;

	if ((v = str_starts(value, "size="))) {
		r = setting_size("storage size", v, MIB(1), &spec->storage_bytes, e);
		if (r == 0)
			spec->explicit_mask |= EXPLICIT_STORAGE;
		return r;
	}
	if ((v = str_starts(value, "inodes=")))
		return set_count("storage inodes", v, UINT32_MAX, &spec->storage_inodes, e);
	if ((v = str_starts(value, "backing="))) {
		r = setting_word("storage backing", v, backings, ARRAY_SIZE(backings), &word, e);
		if (r == 0)
			spec->backing = (enum storage_backing)word;
		return r;
	}
	r = err_set(e, ERR_INVALID, "set storage-opt to '%.64s': unknown", value);
	return err_hint(e, r, "write size=SIZE, inodes=N or backing=auto|tmpfs|loop|quota");
}

static int set_network(void *object, const char *value, struct err *e)
{
	static const char *const words[] = { "none", "host" };

	return setting_word("network", value, words, ARRAY_SIZE(words), &((struct carrel_spec *)object)->host_network, e);
}

static int set_device(void *object, const char *value, struct err *e)
{
	struct carrel_spec *spec = object;
	const char *name = str_starts(value, "/dev/");
	char all[128] = "";
	size_t len = 0;

	name = name ? name : value;
	for (size_t i = 0; i < jail_num_devices; i++) {
		if (str_eq(jail_devices[i].name, name)) {
			spec->devices |= UINT64_C(1) << i;
			return 0;
		}
		if (!jail_devices[i].always && len < sizeof(all))
			len += (size_t)snprintf(all + len, sizeof(all) - len, " %s", jail_devices[i].name);
	}
	return err_hint(e, err_set(e, ERR_INVALID, "lend device '%.64s': not on the list", value), "the list is:%s", all);
}

static int set_read_only(void *object, const char *value, struct err *e)
{
	return setting_flag("read-only", value, &((struct carrel_spec *)object)->read_only, e);
}

static int set_volume_uid(void *object, const char *value, struct err *e)
{
	uint64_t uid;

	if (str_to_u64(value, &uid) < 0 || uid >= JAIL_UID_COUNT)
		return err_hint(e, err_set(e, ERR_INVALID, "set volume-uid to '%.64s': not a number", value),
				"write a number from 0 to %d", JAIL_UID_COUNT - 1);
	((struct carrel_spec *)object)->volume_uid = (uint32_t)uid;
	return 0;
}

static int set_nested(void *object, const char *value, struct err *e)
{
	return setting_flag("nested-userns", value, &((struct carrel_spec *)object)->nested_userns, e);
}

static int set_die(void *object, const char *value, struct err *e)
{
	return setting_flag("die-with-owner", value, &((struct carrel_spec *)object)->die_with_owner, e);
}

static const struct setting spec_settings[] = {
	{ "image", set_image },
	{ "hostname", set_hostname },
	{ "volume", set_volume },
	{ "mount", set_mount },
	{ "volume-uid", set_volume_uid },
	{ "tmpfs", set_tmpfs },
	{ "memory", set_memory },
	{ "cpus", set_cpus },
	{ "pids-limit", set_pids },
	{ "shm-size", set_shm },
	{ "tmp-size", set_tmp },
	{ "storage-opt", set_storage },
	{ "network", set_network },
	{ "device", set_device },
	{ "read-only", set_read_only },
	{ "nested-userns", set_nested },
	{ "die-with-owner", set_die },
};

int spec_set(struct carrel_spec *spec, const char *key, const char *value, struct err *e)
{
	return setting_apply(spec_settings, ARRAY_SIZE(spec_settings), spec, key, value, e);
}
