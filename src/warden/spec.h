/* SPDX-License-Identifier: Apache-2.0 */
/* spec.h - What a caller asked for: settings of a sandbox and of a command, parsed and checked */
#pragma once

#include <sys/resource.h>

#include "base/err.h"
#include "jail/plan.h"
#include "wire/msg.h"

/** enum storage_backing - What holds the writable layer */
enum storage_backing {
	STORAGE_AUTO,
	STORAGE_TMPFS,
	STORAGE_LOOP,
	STORAGE_QUOTA,
};

/** enum spec_explicit - Limits that the caller named, so that a host that cannot enforce them is an error and not a line of the receipt */
enum spec_explicit {
	EXPLICIT_MEMORY = 1 << 0,
	EXPLICIT_PIDS = 1 << 1,
	EXPLICIT_CPUS = 1 << 2,
	EXPLICIT_STORAGE = 1 << 3, /* the size: see storage.c */
};

/** struct spec_mount - A volume or memory file system, not yet looked at */
struct spec_mount {
	enum jail_mount_kind kind;
	char *source, *target; /* owned */
	int source_fd;	       /* 0: open @source; else a descriptor that the caller keeps */
	unsigned map_all;      /* 1: every id of the sandbox's range as on disk (our own store), not only the owner's */
	unsigned read_only, mode;
	uint64_t size_bytes;
};

struct carrel_spec {
	char *image, *hostname; /* owned; hostname NULL: the id */
	struct spec_mount mounts[JAIL_MOUNTS_MAX];
	size_t num_mounts;
	uint64_t memory_bytes, pids, shm_bytes, tmp_bytes, storage_bytes, storage_inodes;
	uint32_t cpu_milli; /* 0: unlimited */
	uint32_t volume_uid; /* inside; as whom volumes belong */
	enum storage_backing backing;
	uint64_t devices;	/* bits of jail_devices[] */
	unsigned explicit_mask; /* enum spec_explicit */
	unsigned host_network, read_only, nested_userns, die_with_owner; /* 0 or 1 */
};

/** enum command_stdin, enum command_output - Where a command's streams go */
enum command_stdin {
	STDIN_NULL,
	STDIN_INHERIT,
	STDIN_PIPE,
};

enum command_output {
	OUTPUT_SPOOL,
	OUTPUT_INHERIT,
	OUTPUT_NULL,
};

struct carrel_command {
	char **argv, **env; /* owned, NULL-terminated */
	size_t num_env;
	char *user, *workdir, *key; /* owned, may be NULL */
	uint64_t timeout_ns, output_max;
	struct msg_rlimit rlimits[MSG_RLIMITS_MAX];
	size_t num_rlimits;
	enum command_stdin in;
	int stdin_fd; /* descriptor that STDIN_INHERIT passes: 0, or one of our own */
	enum command_output out;
	unsigned tty, hold; /* 0 or 1 */
};

/* spec_set(), command_set() - carrel_spec_set() and carrel_command_set() with our own kind of error. */
must_check int spec_set(struct carrel_spec *spec, const char *key, const char *value, struct err *e);
must_check int command_set(struct carrel_command *command, const char *key, const char *value, struct err *e);

/* spec_check() - What one setting alone cannot know: mounts over each other. */
must_check int spec_check(const struct carrel_spec *spec, struct err *e);

/**
 * struct setting - One key of a spec or a command
 * @set: Parses @value into @object; on failure @object is unchanged
 */
struct setting {
	const char *key;
	int (*set)(void *object, const char *value, struct err *e);
};

/* setting_apply() - Find @key in a table and set it; an unknown key is an error that names the nearest. */
must_check int setting_apply(const struct setting *table, size_t rows, void *object, const char *key, const char *value,
			     struct err *e);

/* Parsers that both tables share. Each names @key and @value in its error. */
must_check int setting_flag(const char *key, const char *value, unsigned *ret, struct err *e);
must_check int setting_size(const char *key, const char *value, uint64_t min, uint64_t *ret, struct err *e);
must_check int setting_word(const char *key, const char *value, const char *const *words, size_t n, unsigned *ret,
			    struct err *e);
must_check int setting_text(char **slot, const char *value);
