/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - What a sandbox will be made of, as data
 *
 * Theory of operation. Three readers share one plan: --dry-run prints it, unit tests assert it, jail_spawn() executes it. What is the same for
 * every sandbox (devices, masks, capabilities) are const tables; what differs is in struct jail_plan. Each row of a table names the attack
 * that it answers, because a row whose reason nobody remembers is the one that gets removed. */
#include "jail/plan.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "jail/caps.h"

const struct jail_device jail_devices[] = {
	{ "null", 1, 3, 1, "every shell redirection" },
	{ "zero", 1, 5, 1, "empty memory for programs that map it" },
	{ "full", 1, 7, 1, "test suites that want ENOSPC" },
	{ "random", 1, 8, 1, "key generation" },
	{ "urandom", 1, 9, 1, "key generation without getrandom()" },
	{ "tty", 5, 0, 1, "the process's own controlling terminal" },
	{ "fuse", 10, 229, 0, "user-space file systems; the kernel's FUSE parser becomes reachable" },
	{ "kvm", 10, 232, 0, "virtual machines inside; the kernel's KVM becomes reachable" },
	{ "net/tun", 10, 200, 0, "tunnels in the sandbox's own network namespace" },
};
const size_t jail_num_devices = ARRAY_SIZE(jail_devices);
_Static_assert(ARRAY_SIZE(jail_devices) <= JAIL_DEVICES_MAX, "struct root has too few nodes");

/* The ids of a user namespace already keep most of these from a sandbox's root; the masks hold when that layer fails. */
const struct jail_mask jail_masks[] = {
	{ "/proc/kcore", MASK_HIDE_FILE, "kernel memory: reads secrets of every process of the machine" },
	{ "/proc/keys", MASK_HIDE_FILE, "names kernel keys, a start for keyring attacks (CVE-2016-0728)" },
	{ "/proc/timer_list", MASK_HIDE_FILE, "kernel addresses and host processes' timers (CVE-2017-5967)" },
	{ "/proc/sched_debug", MASK_HIDE_FILE, "names and timing of every process of the host" },
	{ "/proc/interrupts", MASK_HIDE_FILE, "interrupt counts: keystroke timing of the host (runc advisory GHSA-6fw5-f8r9-fgfm)" },
	{ "/proc/sysrq-trigger", MASK_HIDE_FILE, "reboots or crashes the machine" },
	{ "/proc/kpagecount", MASK_HIDE_FILE, "physical page use, a help for rowhammer" },
	{ "/proc/acpi", MASK_HIDE_DIR, "sleep and hardware switches (CVE-2018-10892)" },
	{ "/proc/scsi", MASK_HIDE_DIR, "removes disks of the host (CVE-2017-16539)" },
	{ "/proc/asound", MASK_HIDE_DIR, "what the host plays, a covert channel between sandboxes" },
	{ "/proc/bus", MASK_HIDE_DIR, "PCI configuration space of the host" },
	{ "/proc/fs", MASK_HIDE_DIR, "file system controls and statistics of the host" },
	{ "/proc/irq", MASK_HIDE_DIR, "interrupt routing of the host" },
	{ "/proc/sys", MASK_READ_ONLY, "core_pattern, binfmt_misc, modprobe: programs that the host's root runs (CVE-2022-0492's kin, CVE-2025-31133)" },
};
const size_t jail_num_masks = ARRAY_SIZE(jail_masks);

static const char *const part_names[] = {
	[PART_USERNS] = "userns",	[PART_PIDNS] = "pidns",		   [PART_NETNS] = "netns",
	[PART_IPCNS] = "ipcns",		[PART_UTSNS] = "utsns",		   [PART_CGROUPNS] = "cgroupns",
	[PART_MASKS] = "masks",		[PART_DEV] = "dev",		   [PART_PIVOT] = "pivot",
	[PART_CAPS] = "caps",		[PART_SECCOMP] = "seccomp",	   [PART_LANDLOCK] = "landlock",
	[PART_NNP] = "nnp",		[PART_CLOSE_FDS] = "close_fds",	   [PART_SEALED_INIT] = "sealed_init",
	[PART_CGROUP] = "cgroup",	[PART_RO_VOLUMES] = "ro_volumes",
};
_Static_assert(ARRAY_SIZE(part_names) == PART_NUM, "part_names[] misses a part");

const char *jail_part_name(enum jail_part part)
{
	return (unsigned)part < PART_NUM ? part_names[part] : "?";
}

void jail_plan_init(struct jail_plan *plan)
{
	*plan = (struct jail_plan){ .usr_fd = -EBADF, .upper_fd = -EBADF, .upper_text = "memory", .uid_count = JAIL_UID_COUNT };
}

void jail_plan_done(struct jail_plan *plan)
{
	for (size_t i = 0; i < plan->num_lowers; i++)
		close_p(&plan->lowers[i]);
	for (size_t i = 0; i < plan->num_mounts; i++) {
		close_p(&plan->mounts[i].source_fd);
		free(plan->mounts[i].source);
		free(plan->mounts[i].target);
	}
	close_p(&plan->usr_fd);
	close_p(&plan->upper_fd);
	jail_plan_init(plan);
}

static void print_namespaces(const struct jail_plan *plan, struct buf *out)
{
	(void)buf_printf(out, "namespaces: user pid mount ipc uts cgroup%s\n",
			 plan->flags & JAIL_HOST_NETWORK ? "" : " network");
	(void)buf_printf(out, "ids: 0-%" PRIu32 " inside are %" PRIu32 "-%" PRIu32 " on the host\n", plan->uid_count - 1,
			 plan->uid_base, plan->uid_base + plan->uid_count - 1);
	(void)buf_printf(out, "hostname: %s\n", plan->hostname);
	(void)buf_printf(out, "network: %s\n",
			 plan->flags & JAIL_HOST_NETWORK ? "the host's own, not isolated" : "loopback only");
}

static void print_mounts(const struct jail_plan *plan, struct buf *out)
{
	char a[24], b[24];

	(void)buf_printf(out, "mount: / overlay of '%s', writable layer: %s", plan->image, plan->upper_text);
	(void)buf_printf(out, ", %s, %" PRIu64 " inodes%s\n", str_format_size(plan->upper_bytes, a, sizeof(a)),
			 plan->upper_inodes, plan->flags & JAIL_READ_ONLY_ROOT ? ", read-only" : "");
	if (plan->usr_fd >= 0)
		(void)buf_puts(out, "mount: /usr overlay of the host's /usr\n");
	(void)buf_puts(out, "mount: /proc proc nosuid,nodev,noexec\n");
	(void)buf_puts(out, "mount: /sys tmpfs with /sys/devices/system/cpu, read-only\n");
	(void)buf_puts(out, "mount: /dev tmpfs nosuid,noexec, read-only\n");
	(void)buf_puts(out, "mount: /dev/pts devpts nosuid,noexec\n");
	(void)buf_puts(out, "mount: /dev/mqueue mqueue nosuid,nodev,noexec\n");
	(void)buf_printf(out, "mount: /dev/shm tmpfs nosuid,nodev size=%s\nmount: /tmp tmpfs nosuid,nodev size=%s\n",
			 str_format_size(plan->shm_bytes, a, sizeof(a)), str_format_size(plan->tmp_bytes, b, sizeof(b)));
	(void)buf_puts(out, "mount: /etc/hostname and /etc/hosts name the sandbox, read-only\n");
	for (size_t i = 0; i < plan->num_mounts; i++) {
		const struct jail_mount *m = &plan->mounts[i];

		if (m->kind == JAIL_BIND)
			(void)buf_printf(out, "mount: %s bind of '%s' nosuid,nodev%s\n", m->target, m->source,
					 m->read_only ? ",ro" : "");
		else
			(void)buf_printf(out, "mount: %s tmpfs nosuid,nodev size=%s,mode=%o\n", m->target,
					 str_format_size(m->size_bytes, a, sizeof(a)), m->mode);
	}
}

void jail_plan_print(const struct jail_plan *plan, struct buf *out)
{
	static const char *const how[] = { [MASK_HIDE_FILE] = "hidden", [MASK_HIDE_DIR] = "hidden", [MASK_READ_ONLY] = "read-only" };

	print_namespaces(plan, out);
	print_mounts(plan, out);
	for (size_t i = 0; i < jail_num_masks; i++)
		(void)buf_printf(out, "mask: %s %s: %s\n", jail_masks[i].path, how[jail_masks[i].how], jail_masks[i].why);
	(void)buf_puts(out, "devices:");
	for (size_t i = 0; i < jail_num_devices; i++)
		if (jail_devices[i].always || plan->devices & UINT64_C(1) << i)
			(void)buf_printf(out, " %s", jail_devices[i].name);
	(void)buf_puts(out, "\ncapabilities of root inside:");
	caps_print(out);
	(void)buf_puts(out, "\n");
}
