/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - What the files of init share: the loop's sources, clients, execs and their streams
 *
 * Ownership: struct init owns every client and every exec. An exec owns its subscriptions and its `live` part, which exists while a
 * process, a stream or a group of it does. Everything is freed by the owner's _free(), which takes it off every list first.
 */
#pragma once

#include <limits.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/macros.h"
#include "wire/msg.h"
#include "wire/sock.h"

/* Connections besides the control socket. More are accepted and closed, so that none waits for ever in the backlog. */
#define CLIENTS_MAX 64
/* Answers that one client may have coming, queued or deferred. Over it init stops reading that client's requests. */
#define CLIENT_ANSWERS_MAX 64
/* Time for a new connection to say HELLO, so that silent ones cannot hold every place. */
#define CLIENT_HELLO_NS (5 * NSEC_PER_SEC)
/* Ended execs that are remembered, about 250 bytes each; the oldest are forgotten first. */
#define EXECS_ENDED_MAX 1024
/* Execs with a process, an open stream or a group. Each needs EXEC_FDS descriptors, so the table's size may lower it (exec_limit()). */
#define EXECS_LIVE_MAX 1024
/* Most descriptors that init keeps for one live exec: report, go, input, and two streams with their spools. */
#define EXEC_FDS 7

/** enum source_kind - What a descriptor in the loop is; the owner's type follows from it */
enum source_kind {
	SOURCE_SIGNAL, /* signalfd: a child changed state */
	SOURCE_TIMER,  /* the earliest deadline has come */
	SOURCE_LISTEN, /* a client connects */
	SOURCE_CLIENT, /* owner: struct client */
	SOURCE_REPORT, /* owner: struct exec; its child says how far it came */
	SOURCE_STREAM, /* owner: struct stream */
	SOURCE_NUM,
};

/**
 * struct source - One descriptor in the loop
 *
 * Closed only by source_close(): closing alone would leave it in epoll for as long as a forked child or a client holds a duplicate,
 * and its events would name freed memory.
 */
struct source {
	enum source_kind kind;
	int fd; /* -EBADF while closed */
	uint32_t events;
	void *owner;
};

/** struct stream - Output on its way into a spool */
struct stream {
	struct source src; /* read end of a pipe, or a pty's master */
	struct exec *exec;
	int spool;       /* regular file, written at `end`; -EBADF if there is none */
	uint64_t end;    /* bytes in the spool */
	uint32_t number; /* 1 or 2, as in struct msg_output */
	bool used;       /* the exec has this stream */
	bool by_copy;    /* splice() does not work here: a pty, or a spool that refuses it */
};

/**
 * enum exec_state - Where an exec is
 *
 * STARTING  a child exists, execve() has not been reported; START is unanswered; `live` is set
 * HELD      as STARTING, but START was answered and the child waits for GO
 * RUNNING   execve() happened; the leader has not been reaped
 * ENDING    the leader was reaped; its tree is being killed and ENDED waits for that; nothing but kill passes may happen
 * ENDED     `end` is final and was announced; `live` is set while streams or a group are left
 * FAILED    START was answered with FAILED; the exec is invisible and goes away when its child is reaped
 */
enum exec_state { EXEC_STARTING, EXEC_HELD, EXEC_RUNNING, EXEC_ENDING, EXEC_ENDED, EXEC_FAILED, EXEC_NUM_STATES };

/** struct waiter - An answer that a client will get when an exec's child has reported */
struct waiter {
	struct waiter *next;
	struct client *client;
	uint32_t serial;
	enum msg_type request; /* MSG_START or MSG_GO */
};

/** enum pending - Events that a subscriber has not been sent yet. Sets of bits, so a slow client costs no memory. */
enum pending {
	PENDING_OUT = 1 << 0,
	PENDING_ERR = 1 << 1,
	PENDING_ENDED = 1 << 2,
};

struct sub {
	struct sub *next; /* exec::subs */
	struct client *client;
	uint32_t pending; /* enum pending */
};

/** struct live - The part of an exec that costs descriptors and goes away first */
struct live {
	struct source report;     /* pipe from the child; its end of file says that execve() happened */
	int go;                   /* write end; a byte lets a held child go on */
	int input;                /* write end of stdin, or the master of a pty that is not pumped */
	struct stream streams[2]; /* stdout or pty, stderr */
	struct waiter *waiters;
	uint64_t output_max;
	uint64_t deadline_ns;   /* 0: none */
	enum msg_outcome cause; /* why the tree is being killed; OUTCOME_RUNNING if it is not */
	bool draining;          /* exec_reaped() is at it: a kill waits until it is done */
	bool killing;           /* passes go on until the tree is empty */
	unsigned passes;
	uint64_t kill_next_ns;
	uint64_t kill_until_ns; /* ENDED does not wait longer for the tree */
	bool grouped;           /* cgroups of this exec exist */
	uint64_t group_next_ns; /* next attempt to remove them */
};

struct exec {
	struct exec *next, *prev; /* init::execs, oldest first */
	uint64_t id, seq;
	enum exec_state state;
	uint32_t flags;
	pid_t pid;
	uint64_t digest; /* of the request, without its id */
	char *key;       /* NULL if none */
	struct sub *subs;
	struct live *live;
	struct msg_ended end;
};

/** struct reply - An answer that did not fit into the socket yet */
struct reply {
	struct reply *next;
	enum msg_type type;
	uint32_t serial;
	uint64_t fd_of; /* exec whose input goes with it, looked up when it is sent; 0: none */
	struct buf body;
};

struct client {
	struct source src;
	bool owner;           /* the control socket */
	bool greeted;         /* CONFIG or HELLO has come */
	bool broken;          /* to be closed at the end of this turn of the loop */
	uint64_t deadline_ns; /* of HELLO */
	struct reply *replies, **replies_end;
	unsigned num_answers; /* replies and waiters */
	bool listing;
	uint32_t list_serial;
	uint64_t list_seq; /* last exec that was listed */
};

/** struct init - Everything; one on main()'s stack, handed to every function */
struct init {
	uint32_t flags; /* enum msg_config_flags */
	int epoll;
	struct source signals, timer, listen;
	uint64_t armed_ns;  /* when the timer will fire; 0: not armed */
	uint64_t listen_ns; /* listening pauses until then, after accept() failed; 0: it does not */
	bool reap_more;     /* the last round of reaping was cut short */
	bool sweep;         /* a client is broken */
	int journal;
	int cgroup2, pids1, cpuacct1; /* directories of `work` */
	int tasks1[MSG_FDS_MAX];
	uint32_t num_tasks1;
	int lock;
	int proc; /* /proc and /dev/pts, opened before anything untrusted could cover them */
	int pts;
	uint32_t landlock;                       /* ABI, 0 if execs go without */
	uint64_t nofile_soft, nofile_hard;       /* limits that execs start with; init's own are raised */
	struct client *clients[1 + CLIENTS_MAX]; /* [0] is the control socket's */
	struct exec *execs, *execs_last;
	uint64_t seq;
	unsigned num_live, max_live, num_ended;
	bool strays; /* without groups: an exec ended and left processes */
};

/* --- main.c ------------------------------------------------------------------------------------------------------------------ */

/* source_open() - Put @fd into the loop. Consumes it, also on failure. */
must_check int source_open(struct init *in, struct source *s, enum source_kind kind, int fd, uint32_t events,
			   void *owner);
/* source_set() - Change what is waited for. */
void source_set(struct init *in, struct source *s, uint32_t events);
/* source_close() - Take it out of the loop and close it. Accepts a closed one. */
void source_close(struct init *in, struct source *s);
/* init_wake_at() - Have the timer fire at @ns (CLOCK_BOOTTIME) or earlier; 0 is ignored. */
void init_wake_at(struct init *in, uint64_t ns);

/* --- config.c ---------------------------------------------------------------------------------------------------------------- */

/* config_receive() - Wait for CONFIG on @sock, do what it says, confine init, answer WELCOME or FAILED. */
must_check int config_receive(struct init *in, int sock);

/* --- confine.c, landlock.c --------------------------------------------------------------------------------------------------- */

/* confine_init() - no_new_privs, not dumpable, and the seccomp policy that everything inside inherits. */
must_check int confine_init(uint32_t config_flags, struct err *e);
/* confine_exec() - In the child, right before execve(): what only execs get. */
must_check int confine_exec(const struct init *in, struct err *e);
/* landlock_abi() - ABI of this kernel that is good enough, 0 if none. */
uint32_t landlock_abi(uint32_t config_flags);
/* landlock_enter() - Restrict the calling process. */
must_check int landlock_enter(uint32_t abi, uint32_t config_flags, struct err *e);

/* --- client.c ---------------------------------------------------------------------------------------------------------------- */

/* client_new() - Serve @sock. Consumes it, also on failure. */
must_check int client_new(struct init *in, int sock, struct client **ret);
void client_accept(struct init *in);
void client_readable(struct init *in, struct client *c, uint32_t events);
/* client_sweep() - Free the broken ones; end the sandbox if the control socket is among them and that is asked for. */
void client_sweep(struct init *in);
/* client_tick() - Act on deadlines. Return: the next one, 0 if there is none. */
uint64_t client_tick(struct init *in, uint64_t now);
/* client_answer() - Send or queue one answer. @with: exec whose input descriptor goes along, or NULL. */
void client_answer(struct init *in, struct client *c, enum msg_type type, uint32_t serial, const struct buf *body,
		   const struct exec *with);
void client_fail(struct init *in, struct client *c, uint32_t serial, int r, const struct err *e);
/* client_notify() - Tell every subscriber of @x, now or when it can take it; with 0, only drop those that have nothing to come. */
void client_notify(struct init *in, struct exec *x, uint32_t pending);
/* client_subscribe() - Send the events of @x to @c from now on. Return: 0; -ENOMEM */
must_check int client_subscribe(struct exec *x, struct client *c);
/* client_forget() - Drop the subscriptions of an exec that goes away; who has not been told yet is closed, since it does not read. */
void client_forget(struct init *in, struct exec *x);
void client_break(struct init *in, struct client *c);

/* --- request.c --------------------------------------------------------------------------------------------------------------- */

/**
 * request_handle() - Do what a packet asks and answer it, now or later
 * Return: 0; -EPROTO if the client must be closed
 */
must_check int request_handle(struct init *in, struct client *c, struct msg_packet *p);
void request_put_exec(const struct exec *x, struct buf *out);

/* --- exec.c ------------------------------------------------------------------------------------------------------------------ */

/* exec_limit() - How many live execs the descriptor table has room for; raises its soft limit. */
void exec_limit(struct init *in);
struct exec *exec_find(const struct init *in, uint64_t id);
struct exec *exec_find_key(const struct init *in, const char *key);
/* exec_start() - Start a command. START is answered later, to the waiter that this makes. */
must_check int exec_start(struct init *in, struct client *c, uint32_t serial, struct msg_packet *p,
			  const struct msg_start *m, uint64_t digest, struct err *e);
/* exec_wait_for() - Answer @c when the child of @x has reported. */
must_check int exec_wait_for(struct exec *x, struct client *c, uint32_t serial, enum msg_type request);
/* exec_answer_started() - STARTED, with the descriptor that goes with it. */
void exec_answer_started(struct init *in, struct client *c, uint32_t serial, const struct exec *x);
/* exec_reported() - Read what the child has to say. */
void exec_reported(struct init *in, struct exec *x);
/* exec_reaped() - The leader is gone. */
void exec_reaped(struct init *in, struct exec *x, int status, uint64_t user_us, uint64_t system_us, uint64_t peak);
/* exec_kill() - Kill the tree of @x; @cause becomes its outcome if it has none yet. */
void exec_kill(struct init *in, struct exec *x, enum msg_outcome cause);
/* exec_settle() - Give up what an ended exec no longer needs. May free @x. */
void exec_settle(struct init *in, struct exec *x);
/* exec_settle_all() - Orphans were reaped: groups may have become empty. */
void exec_settle_all(struct init *in);
/* exec_tick() - Act on deadlines. Return: the next one, 0 if there is none. */
uint64_t exec_tick(struct init *in, uint64_t now);
/* exec_input() - The descriptor that feeds @x, -EBADF if none is open. Borrowed. */
int exec_input(const struct exec *x);
/* exec_client_gone() - Drop waiters and subscriptions of a client. */
void exec_client_gone(struct init *in, const struct client *c);

/* --- child.c, user.c --------------------------------------------------------------------------------------------------------- */

/** enum report_kind - How far a child came; what it writes to its report pipe */
enum report_kind { REPORT_HELD = 1, REPORT_FAILED };

struct report {
	uint32_t kind; /* enum report_kind */
	struct err e;  /* only with REPORT_FAILED */
};
_Static_assert(sizeof(struct report) <= PIPE_BUF, "a report is written and read in one piece");

/** struct child - What the child needs to know; descriptors are borrowed from init */
struct child {
	const struct init *in;
	const struct msg_start *start;
	int stdio[3]; /* -EBADF: leave /dev/null */
	bool own[3];  /* a pipe that init made: the exec's user may open it again by name */
	int master;   /* pty, or -EBADF */
	int report;   /* write end */
	int go;       /* read end, or -EBADF */
	bool grouped;
};

_Noreturn void child_run(const struct child *c);

/** struct user - Who an exec runs as */
struct user {
	uid_t uid;
	gid_t gid;
	gid_t groups[64]; /* supplementary; more are ignored, as old kernels' NGROUPS would */
	size_t num_groups;
	char home[MSG_PATH_MAX];
};

/**
 * user_find() - Resolve "name|uid[:group|gid]" by the sandbox's own files
 * @spec: "" is root
 * Return: 0; -ENOENT for a name that is not there; -EINVAL
 */
must_check int user_find(const char *spec, struct user *ret, struct err *e);

/* --- group.c, tree.c --------------------------------------------------------------------------------------------------------- */

must_check int group_make(struct init *in, uint64_t id, struct err *e);
/* group_spawn() - fork(), into the group where the kernel can do that. Return: pid, 0 in the child, negative errno. */
pid_t group_spawn(const struct init *in, uint64_t id, bool grouped);
/* group_enter() - In the child: what group_spawn() could not do. */
must_check int group_enter(const struct init *in, uint64_t id, struct err *e);
/* group_usage() - CPU time of an exec's group. Return: 0; -ENODATA if there is none. */
must_check int group_usage(const struct init *in, uint64_t id, uint64_t *ret_user_us, uint64_t *ret_system_us);
/* group_remove() - Return: 0 if nothing is left of it; -EBUSY while processes are. */
must_check int group_remove(const struct init *in, uint64_t id);

bool tree_has_groups(const struct init *in);
/* tree_kill() - One pass over an exec's processes with SIGKILL. Return: how many there were, 0 if none is left. */
uint32_t tree_kill(const struct init *in, const struct exec *x);
/* tree_count() - Processes of an exec's tree, without its leader if that was reaped. */
uint32_t tree_count(const struct init *in, const struct exec *x);

/* --- pump.c ------------------------------------------------------------------------------------------------------------------ */

/* stream_open() - Pump @fd into @spool. Consumes both, also on failure. */
must_check int stream_open(struct init *in, struct exec *x, unsigned index, int fd, int spool);
/* stream_close() - End of file, or nobody wants more. */
void stream_close(struct init *in, struct stream *s);
/* stream_pump() - Move what is there, at most one turn's worth, and tell the subscribers. */
void stream_pump(struct init *in, struct stream *s);
/* stream_drain() - The leader is gone: move what lies in the pipe now. */
void stream_drain(struct init *in, struct stream *s);

/* --- reap.c ------------------------------------------------------------------------------------------------------------------ */

/* reap() - Collect dead children, at most one turn's worth. */
void reap(struct init *in);

/* --- journal.c --------------------------------------------------------------------------------------------------------------- */

/* journal_exec() - Append the state of one exec. */
void journal_exec(struct init *in, const struct exec *x);
