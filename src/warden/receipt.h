/* SPDX-License-Identifier: Apache-2.0 */
/* receipt.h - What the files of the receipt share: the process that is looked at, and one line about it */
#pragma once

#include "warden/internal.h"
#include "warden/procfs.h"

#define EVIDENCE_MAX 192 /* bytes with NUL: what fits beside a name on two lines of a terminal */
#define RECEIPT_FILE_MAX KIB(64) /* bytes of /proc files other than mountinfo */

/** struct line - One layer as it was found; @name NULL: nothing to tell */
struct line {
	const char *name;
	enum carrel_layer_state state;
	char evidence[EVIDENCE_MAX], why[EVIDENCE_MAX];
};

/** struct subject - The process, and what most layers need of it */
struct subject {
	const struct carrel_sandbox *sb;
	int proc, init; /* directories below /proc */
	int root;	/* the sandbox's, O_PATH */
	char status[PROCFS_STATUS_MAX];
	char cgroups[4096];
	struct buf mountinfo;
	struct procfs_mount *mounts; /* cut from mountinfo */
	size_t num_mounts;
};

/** struct layer_kind - How one layer is read; @file is the reader's own parameter */
struct layer_kind {
	const char *name;
	void (*read)(const struct subject *s, const struct layer_kind *kind, struct line *l);
	const char *file;
};

/* In the order of the receipt (receipt_layers.c). */
extern const struct layer_kind layer_kinds[];
extern const size_t num_layer_kinds;

/* line_say() - Add to the evidence; what is too long is cut. */
void line_say(struct line *l, const char *fmt, ...) printf_like(2, 3);

/* line_lacks() - The layer is partial or missing, and why. */
void line_lacks(struct line *l, enum carrel_layer_state state, const char *fmt, ...) printf_like(3, 4);

/* line_unreadable() - The layer is missing, because the kernel does not tell. @r: negative errno. */
void line_unreadable(struct line *l, const char *what, int r);

/* line_leave_out() - A layer that nobody asked for and that is off is no news. */
void line_leave_out(struct line *l);

/* line_read_file() - Append a file of /proc/PID; a failure is told in @l. */
must_check int line_read_file(int dir, const char *file, struct buf *out, struct line *l);

/* Limits and what counts them (receipt_limits.c). */
void layer_memory(const struct subject *s, const struct layer_kind *kind, struct line *l);
void layer_pids(const struct subject *s, const struct layer_kind *kind, struct line *l);
void layer_cpu(const struct subject *s, const struct layer_kind *kind, struct line *l);
void layer_storage(const struct subject *s, const struct layer_kind *kind, struct line *l);
void layer_rlimits(const struct subject *s, const struct layer_kind *kind, struct line *l);
void layer_devices(const struct subject *s, const struct layer_kind *kind, struct line *l);
