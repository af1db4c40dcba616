/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h - Limits and accounts of one sandbox, on cgroup v1 and v2 alike */
#pragma once

#include "base/err.h"

/** enum cgroup_version - Which hierarchy this host gives us */
enum cgroup_version {
	CGROUP_NONE, /* none that we may write to: limits are missing, and the receipt says so */
	CGROUP_V1,   /* one hierarchy for each controller */
	CGROUP_V2,   /* the unified one */
};

/** enum cgroup_ctl - Controllers that Carrel uses */
enum cgroup_ctl {
	CTL_MEMORY,
	CTL_PIDS,
	CTL_CPU,
	CTL_CPUACCT, /* v1 only; v2 accounts for CPU time by itself */
	CTL_NUM,
};

/* cgroup_ctl_name() - "memory", ... */
const char *cgroup_ctl_name(enum cgroup_ctl ctl);

/** struct cgroup_limits - 0 means no limit */
struct cgroup_limits {
	uint64_t memory_bytes;
	uint64_t pids;
	uint32_t cpu_milli; /* thousandths of a CPU */
};

/** enum cgroup_value - What can be read back; the kernel's files are in a table in cgroup.c */
enum cgroup_value {
	CGV_MEMORY,
	CGV_MEMORY_PEAK,
	CGV_MEMORY_LIMIT,
	CGV_OOM_KILLS,
	CGV_CPU_US,
	CGV_PIDS,
	CGV_PIDS_LIMIT,
	CGV_PIDS_PEAK,
	CGV_PIDS_DENIED,
	CGV_NUM,
};

/**
 * struct cgroup - The groups of one sandbox
 * @version: What the host has
 * @id:      Name of the sandbox's directory below `carrel` in each hierarchy
 * @dirs:    v1: the sandbox's group in each hierarchy; v2: `work` at CTL_MEMORY (the only one). -EBADF where there is none
 * @init:    v2: group of init, beside `work`
 * @have:    Bits of the controllers whose limits are in force
 *
 * v1: CARREL/<id> holds the work; init stays where its starter is, so that it is never squeezed with the work.
 * v2: CARREL/<id>/work and CARREL/<id>/init; groups of single execs are below `work` in both.
 */
struct cgroup {
	enum cgroup_version version;
	char id[17];
	int dirs[CTL_NUM];
	int init;
	unsigned have;
};

/* cgroup_init() - An empty object, safe for every other call. */
void cgroup_init(struct cgroup *cg);

/* cgroup_done() - Close the descriptors; the groups stay. */
void cgroup_done(struct cgroup *cg);

/* cgroup_detect() - What the host has, by the types of the file systems at /sys/fs/cgroup. Syscalls: statfs */
enum cgroup_version cgroup_detect(void);

/**
 * cgroup_create() - Make a sandbox's groups and set its limits
 * @id:     The sandbox
 * @limits: To enforce on its work
 * @owner:  Uid (and gid) outside of the sandbox's root, who may make groups for execs below
 *
 * A controller that the host lacks is left out of cg->have; it is the caller who knows whether that is an error.
 * Return: 0; negative errno, nothing is left
 */
must_check int cgroup_create(struct cgroup *cg, const char *id, const struct cgroup_limits *limits, uint32_t owner,
			     struct err *e);

/* cgroup_open() - The groups of a sandbox that exists already. Return: 0; -ENOENT. */
must_check int cgroup_open(struct cgroup *cg, const char *id, struct err *e);

/**
 * cgroup_delegate() - A descriptor that init may use to make groups for execs
 * @ctl: v1: CTL_PIDS or CTL_CPUACCT; v2: CTL_MEMORY
 *
 * It is the root of a detached mount: ".." leads nowhere. Return: descriptor; negative errno
 */
must_check int cgroup_delegate(const struct cgroup *cg, enum cgroup_ctl ctl, struct err *e);

/* cgroup_tasks() - v1: descriptor of the `tasks` file, into which a process writes "0" to join. Return: descriptor; negative errno. */
must_check int cgroup_tasks(const struct cgroup *cg, enum cgroup_ctl ctl);

/* cgroup_read() - One account. Return: 0; -ENODATA if this host does not have it. */
must_check int cgroup_read(const struct cgroup *cg, enum cgroup_value value, uint64_t *ret);

/**
 * cgroup_destroy() - Kill what is left inside and remove the groups
 *
 * May be repeated; groups that are gone are fine. Return: 0; -EBUSY if processes stayed for a second; other negative errno
 */
must_check int cgroup_destroy(struct cgroup *cg, struct err *e);

/**
 * cgroup_remove() - Kill what is left in the groups of a sandbox and remove them, known by its id alone
 *
 * Touches no heap: the undertaker calls it on memory that a dead process left. Return: as cgroup_destroy()
 */
must_check int cgroup_remove(enum cgroup_version version, const char *id);

/* cgroup_remove_empty() - Remove those groups of a sandbox that hold nothing; kill nobody, wait for nobody. Return: 0 if all are gone. */
must_check int cgroup_remove_empty(enum cgroup_version version, const char *id);

/**
 * cgroup_list() - Visit the id of every sandbox that has a group
 * @visit: Returns negative to stop
 *
 * Return: 0; what @visit returned
 */
must_check int cgroup_list(int (*visit)(const char *id, void *data), void *data);
