/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - What a sandbox will be made of, as data: printed by --dry-run, asserted by tests, executed by jail_spawn() */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* Uids and gids of one sandbox: all that 16 bits hold, as distributions expect (65534 is nobody). */
#define JAIL_UID_COUNT 65536
/* Image layers of one root. Chains are compacted at this length (design.md section 5); an overlay takes at most 500. */
#define JAIL_LOWERS_MAX 64
/* Volumes and memory file systems that a caller adds. Each costs about 50 us to mount; docker users rarely pass ten. */
#define JAIL_MOUNTS_MAX 64

/** enum jail_flags - What kind of sandbox */
enum jail_flags {
	JAIL_ROOTLESS = 1 << 0,	      /* made by an ordinary user: everything happens inside the new user namespace */
	JAIL_HOST_NETWORK = 1 << 1,   /* keep the caller's network namespace */
	JAIL_NESTED_USERNS = 1 << 2,  /* processes may make user namespaces of their own */
	JAIL_READ_ONLY_ROOT = 1 << 3, /* no writes to the root, /tmp and volumes apart */
	JAIL_ATTACH_LAYERS = 1 << 4,  /* before Linux 6.15 an overlay takes only layers that are mounted where its maker is */
	JAIL_LOWERDIR_LIST = 1 << 5,  /* before Linux 6.7 the layers of an overlay are named in one text */
};

/** enum jail_part - Parts of the isolation that a test build can take out, one at a time (jail_plan.without) */
enum jail_part {
	PART_USERNS,	 /* own user namespace (its absence implies no idmap) */
	PART_PIDNS,
	PART_NETNS,
	PART_IPCNS,
	PART_UTSNS,
	PART_CGROUPNS,
	PART_MASKS,	 /* masked and read-only paths of /proc */
	PART_DEV,	 /* minimal /dev instead of the host's */
	PART_PIVOT,	 /* old root detached */
	PART_CAPS,	 /* capability bounding set */
	PART_SECCOMP,
	PART_LANDLOCK,
	PART_NNP,	 /* no_new_privs, and nosuid on the root */
	PART_CLOSE_FDS,	 /* descriptors of the caller closed before the init */
	PART_SEALED_INIT, /* init's memfd unreadable, so that nothing inside may trace it */
	PART_CGROUP,	 /* resource limits by cgroup */
	PART_RO_VOLUMES, /* volumes are read-only unless asked otherwise */
	PART_NUM,
};

/* jail_part_name() - "userns", "seccomp", ...: the words of CARREL_TEST_WITHOUT. */
const char *jail_part_name(enum jail_part part);

enum jail_mount_kind {
	JAIL_BIND,
	JAIL_TMPFS,
};

/** struct jail_mount - One mount that the caller asked for */
struct jail_mount {
	enum jail_mount_kind kind;
	int source_fd;	     /* bind: O_PATH descriptor, checked not to be a symlink; owned */
	char *source;	     /* bind: for messages; owned */
	char *target;	     /* absolute and normal inside the sandbox; owned */
	unsigned read_only;  /* 1 or 0 */
	unsigned map_all;    /* bind: 1: ids 0-65535 inside are those on disk; 0: only the owner's, as the sandbox's user */
	unsigned mode;	     /* tmpfs: of its root */
	uint64_t size_bytes; /* tmpfs */
};

/** struct jail_device - A device node that may be asked for by name (the allow-list) */
struct jail_device {
	const char *name;      /* below /dev */
	unsigned major, minor; /* kernel Documentation/admin-guide/devices.txt */
	unsigned always;       /* 1: every sandbox has it */
	const char *why;       /* what it gives and what it risks */
};

#define JAIL_DEVICES_MAX 16 /* rows of jail_devices[], checked where it is defined */
extern const struct jail_device jail_devices[];
extern const size_t jail_num_devices;

/** struct jail_mask - A path below /proc that a sandbox must not read or write, and the attack that it answers */
struct jail_mask {
	const char *path;
	enum { MASK_HIDE_FILE, MASK_HIDE_DIR, MASK_READ_ONLY } how;
	const char *why;
};

extern const struct jail_mask jail_masks[];
extern const size_t jail_num_masks;

/**
 * struct jail_plan - Everything that jail_spawn() will do
 *
 * Filled by the warden, read by everybody else. Descriptors named here are owned by the plan.
 */
struct jail_plan {
	char id[17];
	char hostname[65];
	unsigned flags;	  /* enum jail_flags */
	unsigned without; /* 1 << enum jail_part; always 0 unless built with test_switches */
	uint32_t uid_base; /* first id of the range on the host; the caller's own uid when there is only one */
	uint32_t gid_base;
	uint32_t uid_count; /* JAIL_UID_COUNT, or 1 */
	uint32_t run_uid;   /* id inside that owns volumes of the sandbox's user */

	int lowers[JAIL_LOWERS_MAX]; /* directories, topmost first */
	size_t num_lowers;
	const char *image;	 /* for messages */
	int usr_fd;		 /* host image: the host's /usr, else -EBADF */
	int upper_fd;		 /* detached mount with `upper` and `work` on disk (layers/upper.h), else -EBADF: a tmpfs is made */
	unsigned upper_kind;	 /* enum upper_kind of layers/upper.h: the warden's choice */
	const char *upper_text;	 /* the same for people */
	uint64_t upper_bytes;
	uint64_t upper_inodes;
	uint64_t tmp_bytes, shm_bytes;
	uint64_t devices; /* bits of jail_devices[] beyond those that are always there */
	struct jail_mount mounts[JAIL_MOUNTS_MAX];
	size_t num_mounts;
};

/* jail_plan_init() - An empty plan without descriptors. */
void jail_plan_init(struct jail_plan *plan);

/* jail_plan_done() - Close and free what the plan owns. */
void jail_plan_done(struct jail_plan *plan);

/* jail_plan_print() - The namespaces, mounts, masks, devices and capabilities as text, one fact a line. Failure sticks in @out. */
void jail_plan_print(const struct jail_plan *plan, struct buf *out);

/* jail_without() - True if a test build takes this part out. */
static inline bool jail_without(const struct jail_plan *plan, enum jail_part part)
{
#ifdef CARREL_TEST_SWITCHES
	return plan->without & 1u << part;
#else
	(void)plan;
	(void)part;
	return false;
#endif
}
