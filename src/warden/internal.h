/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - What the files of the warden share */
#pragma once

#include "carrel.h"
#include "jail/spawn.h"
#include "warden/slot.h"
#include "warden/spec.h"
#include "wire/sock.h"

/** struct carrel_sandbox - A handle on one sandbox, ours or found */
struct carrel_sandbox {
	char id[17];
	unsigned owned;	  /* 1: it ends with this handle */
	unsigned removed; /* 1: nothing of it is left on the host */
	unsigned stored;  /* 1: it may have a layer in the store */
	struct slot slot;
	struct cgroup cg;
	struct jail_init init; /* pidfd -EBADF unless we started it */
	int control;	       /* socket to init; -EBADF once it is gone */
	int dir;	       /* its run directory; -EBADF for one that dies with its owner */
	int undertaker;	       /* pidfd, see undertaker.c; -EBADF if there is none */
	void *undertaker_block; /* its stack */
	int self;	       /* pidfd of this process, for the undertaker */
	uint32_t landlock;     /* ABI that init reported, 0 before its WELCOME */
	uint32_t serial;
	uint64_t last_exec;
	struct carrel_exec *execs; /* linked by their `next` */
};

/** struct carrel_exec - A handle on one exec */
struct carrel_exec {
	struct carrel_exec *next;
	struct carrel_sandbox *sandbox; /* NULL once that was freed */
	uint64_t number;
	pid_t pid;
	int spools[2];		 /* stdout, stderr; -EBADF if there is none */
	uint64_t spool_end[2];	 /* as the last MSG_OUTPUT said */
	unsigned spool_eof[2];	 /* 1: no byte will follow */
	int input;		 /* write end of its stdin, or -EBADF */
	int terminal;		 /* master of its pty, or -EBADF */
	unsigned ended;
	struct msg_ended end;
	uint64_t oom_kills; /* of the sandbox when it started */
	uint64_t pids_denied;
};

/* --- plan: from a spec to what will be done (prepare.c) --------------------------------------------------------------------- */

/**
 * plan_begin() - The part of a plan that follows from the request alone
 * @id:   Of the sandbox
 * @slot: Its ids; NULL for --dry-run
 */
void plan_begin(const struct carrel_spec *spec, const char *id, const struct slot *slot, struct jail_plan *ret);

/* plan_make() - The rest: look at the host for image, volumes, storage. The caller calls jail_plan_done(), also on failure. */
must_check int plan_make(const struct carrel_spec *spec, struct jail_plan *ret, struct err *e);

/* sandbox_start() - carrel_start() with our own kind of error. */
must_check int sandbox_start(const struct carrel_spec *spec, struct carrel_sandbox **ret, struct err *e);

/* --- init: asking it (client.c) --------------------------------------------------------------------------------------------- */

/**
 * client_call() - Send a request and wait for its answer; events that come in between are recorded
 * @ret: The answer, of type @want; msg_packet_done() is the caller's. NULL if its body does not matter
 *
 * Return: 0; what init answered; -ECONNREFUSED if it is gone; -ETIMEDOUT after CLIENT_DEADLINE_MS
 */
must_check int client_call(struct carrel_sandbox *sb, enum msg_type type, const struct buf *body, const int *fds,
			   size_t num_fds, enum msg_type want, struct msg_packet *ret, struct err *e);

/* client_deadline() - Keep a send to an init that does not read from waiting for ever; for a new control socket. */
must_check int client_deadline(struct carrel_sandbox *sb, struct err *e);

/* client_dispatch() - Record every event that has arrived, waiting up to @timeout_ms for the first. Return: number; negative errno. */
must_check int client_dispatch(struct carrel_sandbox *sb, int timeout_ms, struct err *e);

/* --- undertaker.c ----------------------------------------------------------------------------------------------------------- */

/**
 * undertaker_start() - Start the small process that will be init's parent, and that removes what is left if we are killed
 * @net: 1: it also makes a network namespace, in which init will be
 *
 * It is started first of all, since the namespace takes longest; what it must remove is told later (undertaker_names()).
 */
must_check int undertaker_start(struct carrel_sandbox *sb, unsigned net, struct err *e);

/* undertaker_names() - Tell it the sandbox's id; before there is anything to remove. */
void undertaker_names(struct carrel_sandbox *sb);

/* undertaker_layer() - Tell it that the sandbox has a writable layer in the store; before it is made. */
void undertaker_layer(struct carrel_sandbox *sb, const char *store);

/* undertaker_ready() - Wait until it can clone. Return: 0; why it cannot. */
must_check int undertaker_ready(struct carrel_sandbox *sb, struct err *e);

/* undertaker_clone() - sys_clone3_call() as its child. Return: pid; negative errno. */
long undertaker_clone(struct carrel_sandbox *sb, struct clone_args *args, void (*fn)(void *), void *arg);

/* undertaker_call() - Call a function as that task, which shares memory and descriptors with us. Return: its result; -ECHILD. */
int undertaker_call(struct carrel_sandbox *sb, int (*fn)(void *), void *arg);

/* undertaker_finish() - The last request: bring up loopback, let go of our descriptors. Returns at once. */
void undertaker_finish(struct carrel_sandbox *sb);

/* undertaker_net_up() - Wait until loopback is up. */
must_check int undertaker_net_up(struct carrel_sandbox *sb, struct err *e);

/* undertaker_leave() - End it without waiting, before our own exit. */
void undertaker_leave(struct carrel_sandbox *sb);

/* undertaker_end() - End it; nothing happens if there is none. */
void undertaker_end(struct carrel_sandbox *sb);

/* --- Others ----------------------------------------------------------------------------------------------------------------- */

/* unpack_archive() - Bring the archive of an image into the store, in a sandbox of its own (unpack.c). */
struct image;
must_check int unpack_archive(int store_fd, struct image *img, struct err *e);

/* error_out() - Copy our kind of error into the caller's. Return: @r. */
int error_out(int r, const struct err *e, struct carrel_error *ret);

/* init_image(), init_image_size - The init program, part of this library (generated by tools/embed.py). */
extern const unsigned char init_image[];
extern const size_t init_image_size;
