/* SPDX-License-Identifier: Apache-2.0 */
/* msg.h - The messages between an init and whoever drives it (docs/WIRE.md)
 *
 * One message is one packet of an AF_UNIX SOCK_SEQPACKET socket: a header of 12 bytes and a body. Requests are even, what init
 * sends is odd. A body over MSG_INLINE_MAX travels in a sealed memfd, which is then the first descriptor of the packet.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "wire/wire.h"

/* Version of this page. An init says its own in WELCOME; within one major version only additions are allowed. */
#define MSG_VERSION 1

/* Bytes of a body inside the packet. Below the default socket buffer (net.core.wmem_default, 212,992), so that one packet always fits. */
#define MSG_INLINE_MAX KIB(64)
/* Bytes of any body. The kernel takes at most 6 MiB of arguments and environment (three quarters of _STK_LIM, fs/exec.c); the
 * rest of START is small. It stops a client from making init map gigabytes. */
#define MSG_BODY_MAX MIB(8)
/* Descriptors in one packet: a body and the largest use, CONFIG's listener, journal and cgroup directories. */
#define MSG_FDS_MAX 8

#define MSG_ARGS_MAX 262144	/* items of argv or env: more cannot fit the kernel's 6 MiB with their pointers */
#define MSG_ARG_MAX KIB(128)	/* bytes of one item: MAX_ARG_STRLEN of the kernel (include/uapi/linux/binfmts.h) */
#define MSG_PATH_MAX 4096	/* bytes: PATH_MAX */
#define MSG_KEY_MAX 128		/* bytes of an idempotency key */
#define MSG_USER_MAX 256	/* bytes of "user[:group]" */
#define MSG_RLIMITS_MAX 16	/* RLIM_NLIMITS */

/** enum msg_type - What a packet is. The direction is in the parity; the fields are in the struct of the same name below. */
enum msg_type {
	MSG_CONFIG = 0,	  /* first packet on the control socket; descriptors as struct msg_config says */
	MSG_HELLO = 2,	  /* first packet of a later connection */
	MSG_START = 4,	  /* run a command; descriptors: see enum msg_start_flags */
	MSG_GO = 6,	  /* let an exec that was started with START_HOLD run */
	MSG_SIGNAL = 8,	  /* signal the command's leader, its group, or kill its whole tree */
	MSG_RESIZE = 10,  /* new size of an exec's pty */
	MSG_STDIN_CLOSE = 12, /* init drops its copy of the write end: end of file once the client's is closed too */
	MSG_ATTACH = 14,  /* subscribe to an exec; answered with EXEC, then events follow */
	MSG_LIST = 16,	  /* every exec that init knows, one EXEC each, then OK */

	MSG_WELCOME = 1,  /* answers CONFIG and HELLO */
	MSG_OK = 3,	  /* the request with this serial was done */
	MSG_FAILED = 5,	  /* the request with this serial was not done; carries a struct err */
	MSG_STARTED = 7,  /* the command was executed, or is held before it; answers START */
	MSG_EXEC = 9,	  /* state of one exec; descriptors: its stdin write end or pty master, if open */
	MSG_OUTPUT = 33,  /* event: a spool has grown to an offset (coalesced; the bytes are in the spool) */
	MSG_ENDED = 35,	  /* event: the one terminal event of an exec */
};

struct msg_header {
	uint16_t type;	 /* enum msg_type */
	uint16_t flags;	 /* enum msg_flags */
	uint32_t serial; /* chosen by the client, repeated in the answer; 0 in events */
	uint32_t len;	 /* bytes of the body */
};
#define MSG_HEADER_SIZE 12

enum msg_flags {
	MSG_BODY_IN_FD = 1 << 0, /* the body is in the first descriptor, a memfd sealed against writing and resizing */
};

/** enum msg_config_flags - How a sandbox's init behaves */
enum msg_config_flags {
	CONFIG_DIE_WITH_OWNER = 1 << 0, /* the end of the control socket is the end of the sandbox */
	CONFIG_NESTED_USERNS = 1 << 1,	/* load the seccomp policy that allows namespaces and mounts in them */
	CONFIG_NO_SECCOMP = 1 << 2,	/* tests only: refused unless built with -Dtest_switches=true */
	CONFIG_NO_LANDLOCK = 1 << 3,	/* tests only: likewise */
	CONFIG_SCOPE_ABSTRACT = 1 << 4, /* Landlock: no abstract socket from outside (host network) */
	CONFIG_FD_LISTEN = 1 << 8,	/* the next descriptor: listening socket of later clients */
	CONFIG_FD_JOURNAL = 1 << 9,	/* the next descriptor: append-only journal */
	CONFIG_FD_CGROUP2 = 1 << 10,	/* the next descriptor: detached mount of `work` in the unified hierarchy */
	CONFIG_FD_PIDS1 = 1 << 11,	/* the next descriptor: detached mount of `work` in the v1 pids hierarchy */
	CONFIG_FD_CPUACCT1 = 1 << 12,	/* the next descriptor: likewise, v1 cpuacct */
	CONFIG_FD_TASKS1 = 1 << 13,	/* the next descriptors, `tasks` files of `work` in v1 hierarchies without exec groups; */
					/* their number is msg_config.tasks_fds */
	CONFIG_FD_LOCK = 1 << 14,	/* the next descriptor: only held open: while it is, the sandbox's uid range is taken */
};

struct msg_config {
	uint32_t flags;	    /* enum msg_config_flags */
	uint32_t tasks_fds; /* descriptors that belong to CONFIG_FD_TASKS1 */
	const char *id;	    /* the sandbox's id, for messages */
};

/** enum msg_start_flags - Where an exec's streams are */
enum msg_start_flags {
	START_STDIN_FD = 1 << 0,   /* next descriptor is its stdin; otherwise /dev/null */
	START_OUT_FD = 1 << 1,	   /* next descriptor is its stdout, used as it is; init sees no byte */
	START_ERR_FD = 1 << 2,	   /* next descriptor is its stderr, likewise */
	START_OUT_SPOOL = 1 << 3,  /* next descriptor is a file that init fills with its stdout (or its pty's output) */
	START_ERR_SPOOL = 1 << 4,  /* next descriptor is a file that init fills with its stderr */
	START_STDIN_PIPE = 1 << 5, /* init makes a pipe and keeps the write end; ATTACH hands out duplicates */
	START_PTY = 1 << 6,	   /* stdin, stdout and stderr are a pty of init's; with START_OUT_SPOOL init pumps it, */
				   /* without it the client reads the master that comes with STARTED */
	START_HOLD = 1 << 7,	   /* stop before execve() until GO, with every restriction in force */
};

struct msg_rlimit {
	uint32_t resource;   /* RLIMIT_* */
	uint64_t soft, hard; /* UINT64_MAX: unlimited */
};

struct msg_start {
	uint64_t exec;		/* id, chosen by the client, not 0, unique within the sandbox */
	uint32_t flags;		/* enum msg_start_flags */
	uint16_t rows, cols;	/* of the pty */
	uint64_t timeout_ns;	/* wall clock until the tree is killed; 0: none */
	uint64_t output_max;	/* bytes of each spool; beyond it the tree is killed. 0: none */
	const char *key;	/* idempotency key, "" for none */
	const char *user;	/* "name|uid[:group|gid]", "" for root */
	const char *cwd;	/* absolute, "" for the user's home or / */
	uint32_t num_rlimits;
	struct msg_rlimit rlimits[MSG_RLIMITS_MAX];
	const char **argv;	/* at least one item; freed by msg_start_done() */
	const char **env;	/* may be empty; freed by msg_start_done() */
};

struct msg_signal {
	uint64_t exec;
	uint32_t sig;	/* 1 to 64 */
	uint32_t scope; /* enum msg_scope */
};

enum msg_scope {
	SCOPE_LEADER, /* the process that was started */
	SCOPE_GROUP,  /* its process group */
	SCOPE_TREE,   /* everything it started, wherever that is now; sig must be SIGKILL */
	SCOPE_NUM,
};

struct msg_resize {
	uint64_t exec;
	uint16_t rows, cols;
};

struct msg_exec_ref {
	uint64_t exec;
}; /* GO, STDIN_CLOSE, ATTACH, and the body of LIST is empty */

struct msg_welcome {
	uint32_t version;     /* MSG_VERSION of this init */
	uint32_t landlock;    /* ABI in force for execs, 0 if none */
	uint32_t num_execs;   /* known, running or ended */
};

struct msg_started {
	uint64_t exec;
	uint32_t pid; /* in the sandbox's pid namespace; 0 if the exec had ended before this answer (a repeated key) */
};

/** enum msg_outcome - How an exec ended. Order is part of the wire. */
enum msg_outcome {
	OUTCOME_RUNNING,
	OUTCOME_EXITED,
	OUTCOME_SIGNALLED,
	OUTCOME_TIMED_OUT,
	OUTCOME_OUTPUT_LIMIT,
	OUTCOME_KILLED,	 /* by a SIGNAL request with SCOPE_TREE */
	OUTCOME_FAILED,	 /* execve() or a step before it failed; reported as FAILED to START */
	OUTCOME_NUM,
};

struct msg_ended {
	uint64_t exec;
	uint32_t outcome;	  /* enum msg_outcome */
	uint32_t code;		  /* exit status, if exited */
	uint32_t sig;		  /* signal, if signalled */
	uint64_t start_ns, end_ns; /* CLOCK_BOOTTIME */
	uint64_t user_us, system_us; /* CPU time of the tree (cgroup), else of what was waited for */
	uint64_t peak_bytes;	  /* largest resident set of one process of it */
	uint64_t out_bytes, err_bytes; /* end offsets of the spools */
	uint32_t left;		  /* processes of its tree still alive when its leader ended */
};

/* EXEC: the state of one exec; the fields of ENDED are zero while it runs. */
struct msg_exec {
	uint32_t flags; /* of START */
	uint32_t pid;
	const char *key;
	struct msg_ended end; /* end.outcome is OUTCOME_RUNNING while it runs; out_bytes and err_bytes are current */
};

struct msg_output {
	uint64_t exec;
	uint32_t stream; /* 1 stdout or pty, 2 stderr */
	uint32_t eof;	 /* 1: every writer has closed it */
	uint64_t end;	 /* bytes in the spool */
};

/* msg_name() - "START", for logs; "?" for a number that is none. */
const char *msg_name(unsigned type);

/* msg_max() - Largest body of a type, 0 if the type does not exist. A reader refuses a longer one before it looks inside. */
size_t msg_max(unsigned type);

void msg_header_put(unsigned char out[MSG_HEADER_SIZE], const struct msg_header *h);

/**
 * msg_header_get() - Read and check a header
 * Return: 0; -EPROTO if the type is unknown, a flag is unknown, or the length exceeds msg_max()
 */
must_check int msg_header_get(const unsigned char *p, size_t len, struct msg_header *ret);

/*
 * Bodies. _put appends to a buf (its sticky failure applies). _get reads a whole body; texts are borrowed from it, and fields are checked
 * against the limits above. Return: 0; -EPROTO if malformed; -ENOMEM.
 */
void msg_config_put(struct buf *out, const struct msg_config *m);
must_check int msg_config_get(struct wire_in in, struct msg_config *ret);
void msg_start_put(struct buf *out, const struct msg_start *m);
must_check int msg_start_get(struct wire_in in, struct msg_start *ret);
void msg_start_done(struct msg_start *m);
void msg_signal_put(struct buf *out, const struct msg_signal *m);
must_check int msg_signal_get(struct wire_in in, struct msg_signal *ret);
void msg_resize_put(struct buf *out, const struct msg_resize *m);
must_check int msg_resize_get(struct wire_in in, struct msg_resize *ret);
void msg_exec_ref_put(struct buf *out, const struct msg_exec_ref *m);
must_check int msg_exec_ref_get(struct wire_in in, struct msg_exec_ref *ret);
void msg_welcome_put(struct buf *out, const struct msg_welcome *m);
must_check int msg_welcome_get(struct wire_in in, struct msg_welcome *ret);
void msg_started_put(struct buf *out, const struct msg_started *m);
must_check int msg_started_get(struct wire_in in, struct msg_started *ret);
void msg_exec_put(struct buf *out, const struct msg_exec *m);
must_check int msg_exec_get(struct wire_in in, struct msg_exec *ret);
void msg_output_put(struct buf *out, const struct msg_output *m);
must_check int msg_output_get(struct wire_in in, struct msg_output *ret);
void msg_ended_put(struct buf *out, const struct msg_ended *m);
must_check int msg_ended_get(struct wire_in in, struct msg_ended *ret);
void msg_failed_put(struct buf *out, const struct err *m);
must_check int msg_failed_get(struct wire_in in, struct err *ret);
