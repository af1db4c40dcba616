/* SPDX-License-Identifier: Apache-2.0 */
/**
 * carrel.h - Sandboxes for programs that other programs (or models) wrote
 *
 * libcarrel starts isolated Linux machines ("sandboxes") and runs commands ("execs") in them, without a daemon. `carrel run` is a client
 * of this header and uses nothing else; examples/embed.c is a complete program.
 *
 * Ownership: `_new`, `_start`, `_connect` and `_exec` return objects that the caller frees with the matching `_free`; every `_free` accepts
 * NULL. Texts given to a function are copied; texts returned as `const char *` live as long as their object.
 *
 * Threads: the library has no global state and installs no signal handler. One object may be used by one thread at a time; different
 * objects by different threads at once. It starts processes with clone3(CLONE_VM): its cost does not depend on the caller's size.
 *
 * Errors: fallible functions return 0 (or a count) or a negative errno and fill a struct carrel_error if one is given.
 *
 * Stability: until 1.0 this header may change between minor versions; afterwards only additions are made.
 */
#ifndef CARREL_H
#define CARREL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CARREL_VERSION "0.1.0"

#if defined(__GNUC__)
#define CARREL_API __attribute__((visibility("default")))
#else
#define CARREL_API
#endif

/* --- Errors ----------------------------------------------------------------------------------------------------------------- */

/** enum carrel_error_code - Kind of failure; api/errors.tsv maps each to errno, exit status and the remote faces. */
enum carrel_error_code {
	CARREL_ERROR_NONE,
	CARREL_ERROR_INVALID,	     /* malformed or contradictory request */
	CARREL_ERROR_NOT_FOUND,	     /* a named thing is not there */
	CARREL_ERROR_NOT_EXECUTABLE, /* the program cannot be executed */
	CARREL_ERROR_DENIED,	     /* the caller may not do this */
	CARREL_ERROR_UNSUPPORTED,    /* this kernel or host lacks what is needed */
	CARREL_ERROR_EXHAUSTED,	     /* a limit or pool is used up */
	CARREL_ERROR_CONFLICT,	     /* same key with other content, or wrong state */
	CARREL_ERROR_UNAVAILABLE,    /* the sandbox is gone or does not answer */
	CARREL_ERROR_DEADLINE,	     /* a wait reached its deadline */
	CARREL_ERROR_PROTOCOL,	     /* bytes that the protocol does not allow */
	CARREL_ERROR_SYSTEM,	     /* a system call failed for another reason */
};

/**
 * struct carrel_error - One failure, owned by the caller, of fixed size
 * @code:    enum carrel_error_code
 * @sys:     errno of the call that failed, or 0
 * @message: The attempt and the object, one line
 * @remedy:  What the reader can do about it, one line, may be empty
 * @detail:  Nested steps with host paths, for logs, may be empty
 */
struct carrel_error {
	int code;
	int sys;
	char message[256];
	char remedy[192];
	char detail[320];
};

/* --- What to start ---------------------------------------------------------------------------------------------------------- */

/**
 * struct carrel_spec - What a sandbox is: image, mounts, limits, network
 *
 * Settings are key and value, both texts, named as the options of `carrel run`:
 *
 *  key             value                          default       meaning
 *  image           host | directory | archive.tar host          root file system; "host" is a view of this machine's /usr
 *  hostname        RFC 1123 label(s), 1-64 bytes  the id        host name inside
 *  volume          SRC:DST[:ro|rw]                none          bind mount of a directory or file; repeatable; ro unless rw
 *  mount           type=bind|tmpfs,src=,dst=,...  none          the same in docker's long form; repeatable
 *  volume-uid      0-65535                        0             uid inside to which the files of volumes belong: theirs are the
 *                                                               files of the volume's owner outside, nobody else's can be written
 *  tmpfs           DST[:size=SIZE,mode=OCTAL]     none          empty memory file system; repeatable
 *  memory          SIZE, at least 4m              512m          memory of all processes and of the memory file systems
 *  cpus            decimal, at least 0.01         unlimited     CPUs' worth of time per 100 ms
 *  pids-limit      1-4194304                      512           processes and threads
 *  shm-size        SIZE                           64m           size of /dev/shm
 *  tmp-size        SIZE                           256m          size of /tmp
 *  storage-opt     size=SIZE                      1g            bytes of the writable layer
 *  storage-opt     inodes=N                       262144        files and directories of the writable layer
 *  storage-opt     backing=tmpfs|loop|quota|auto  auto          what holds the writable layer
 *  network         none | host                    none          "host" shares the host's network: no isolation at all there
 *  device          name from the allow-list       none          e.g. fuse, kvm; repeatable (`carrel run --help` lists them)
 *  read-only       true | false                   false         the root cannot be written
 *  nested-userns   true | false                   false         processes may make user namespaces (browsers, bubblewrap)
 *  die-with-owner  true | false                   true          the sandbox ends when the process that started it does
 *
 * backing=auto is memory, unless a size was set that is more than the memory limit: then a project quota where the store's file system has it
 * (ext4 or xfs mounted with prjquota), else a loop device, else memory all the same. A layer in memory counts as memory of the sandbox.
 * Quota and loop need root (and mkfs.ext4 for loop); asked for by name where they cannot be had, they are an error.
 *
 * SIZE is bytes with an optional suffix k, m, g or t (powers of 1024).
 */
struct carrel_spec;

/* carrel_spec_new() - A spec with every default. Return: NULL without memory. */
CARREL_API struct carrel_spec *carrel_spec_new(void);
CARREL_API void carrel_spec_free(struct carrel_spec *spec);

/**
 * carrel_spec_set() - Change one setting
 * @spec:  Unchanged on failure
 * @key:   See struct carrel_spec
 * @value: Text
 * @e:     May be NULL
 *
 * Return: 0; -EINVAL for an unknown key (the message names the nearest) or a value that the key does not take; -ENOMEM
 */
CARREL_API int carrel_spec_set(struct carrel_spec *spec, const char *key, const char *value, struct carrel_error *e);

/**
 * struct carrel_command - What to run: arguments, environment, limits of one exec
 *
 *  key           value                    default              meaning
 *  user          name|uid[:group|gid]     root                 looked up in the sandbox's own /etc/passwd
 *  workdir       absolute path            user's home, else /  must exist
 *  env           NAME=VALUE               PATH, HOME, TERM     repeatable; a later one wins
 *  timeout       duration (90, 1.5s, 2m)  none                 wall clock until the whole tree is killed
 *  output-limit  SIZE                     none                 bytes of stdout and of stderr until the whole tree is killed
 *  ulimit        NAME=SOFT[:HARD]         nofile=1024:524288   cpu, fsize, nofile, nproc, core, stack, as, memlock, ...
 *  stdin         null | inherit | pipe    null                 pipe: written with carrel_exec_write()
 *  output        inherit | spool | null   spool                inherit: the caller's own stdout and stderr, not copied
 *  tty           true | false             false                a pseudo-terminal; its output is one stream
 *  key           1-128 bytes              none                 idempotency: the same key is the same exec
 *  hold          true | false             false                stop before the program is executed, until carrel_exec_go()
 */
struct carrel_command;

/* carrel_command_new() - A command. @argv: NULL-terminated, at least one item, copied. Return: NULL without memory. */
CARREL_API struct carrel_command *carrel_command_new(const char *const *argv);
CARREL_API void carrel_command_free(struct carrel_command *command);

/* carrel_command_set() - Change one setting. Return: as carrel_spec_set(). */
CARREL_API int carrel_command_set(struct carrel_command *command, const char *key, const char *value,
				  struct carrel_error *e);

/**
 * carrel_plan() - Say what starting would do, without doing it
 * @spec:    Checked as carrel_start() checks it
 * @command: May be NULL
 * @ret:     Receives a text that the caller frees with free(): namespaces, mounts, limits, filters, one fact a line
 *
 * Return: 0; negative errno as carrel_start()
 */
CARREL_API int carrel_plan(const struct carrel_spec *spec, const struct carrel_command *command, char **ret,
			   struct carrel_error *e);

/* --- Sandboxes -------------------------------------------------------------------------------------------------------------- */

struct carrel_sandbox;

/**
 * carrel_start() - Start a sandbox
 * @spec: Borrowed for the call
 * @ret:  The running sandbox
 *
 * On failure nothing is left. Return: 0; negative errno
 */
CARREL_API int carrel_start(const struct carrel_spec *spec, struct carrel_sandbox **ret, struct carrel_error *e);

/**
 * carrel_connect() - Find a sandbox that another process started with die-with-owner=false
 * @id: As carrel_sandbox_id() of that process
 *
 * Return: 0; -ENOENT if there is none; -ECONNREFUSED if its init is gone
 */
CARREL_API int carrel_connect(const char *id, struct carrel_sandbox **ret, struct carrel_error *e);

/* carrel_sandbox_id() - Sixteen characters of [0-9a-z], in the name of everything that the sandbox owns on the host. */
CARREL_API const char *carrel_sandbox_id(const struct carrel_sandbox *sandbox);

/* carrel_sandbox_free() - Give up the handle. With die-with-owner=true the sandbox ends (as carrel_destroy()); else it goes on. */
CARREL_API void carrel_sandbox_free(struct carrel_sandbox *sandbox);

/**
 * carrel_destroy() - Kill everything in the sandbox and remove what it owned on the host
 *
 * The handle stays valid for carrel_sandbox_free(). May be repeated. Return: 0; negative errno if something could not be removed
 */
CARREL_API int carrel_destroy(struct carrel_sandbox *sandbox, struct carrel_error *e);

/**
 * carrel_leave() - As carrel_destroy(), for a process that is about to exit
 *
 * Returns when nothing with the sandbox's name is left on the host and its processes are killed, without waiting for the kernel to take its
 * namespaces apart (half a millisecond). If a background process, a layer on disk or a run directory must go first, it waits all the same.
 * Return: as carrel_destroy()
 */
CARREL_API int carrel_leave(struct carrel_sandbox *sandbox, struct carrel_error *e);

/** struct carrel_stats - Resources of a sandbox now; a value that this host cannot tell is UINT64_MAX */
struct carrel_stats {
	uint64_t memory_bytes;	      /* charged now */
	uint64_t memory_peak_bytes;   /* largest charge so far */
	uint64_t memory_limit_bytes;  /* in force */
	uint64_t oom_kills;	      /* processes killed for memory */
	uint64_t cpu_us;	      /* CPU time so far */
	uint64_t pids;		      /* processes and threads now */
	uint64_t pids_limit;	      /* in force */
	uint64_t pids_denied;	      /* forks refused by the limit */
};

CARREL_API int carrel_stats(struct carrel_sandbox *sandbox, struct carrel_stats *ret, struct carrel_error *e);

/* --- Execs ------------------------------------------------------------------------------------------------------------------ */

struct carrel_exec;

enum carrel_outcome {
	CARREL_RUNNING,
	CARREL_EXITED,
	CARREL_SIGNALLED,
	CARREL_TIMED_OUT,
	CARREL_OUT_OF_MEMORY,
	CARREL_OUTPUT_LIMIT,
	CARREL_KILLED,
	CARREL_FAILED,
};

/* carrel_outcome_name() - "exited", "signalled", "timed_out", "out_of_memory", "output_limit", "killed", "failed", "running". */
CARREL_API const char *carrel_outcome_name(enum carrel_outcome outcome);

/** struct carrel_result - How an exec ended */
struct carrel_result {
	enum carrel_outcome outcome;
	int exit_code;		  /* 0-255 if exited, else -1 */
	int signal;		  /* the signal if signalled, else 0 */
	uint64_t wall_ns;
	uint64_t user_us, system_us; /* CPU time of the exec's whole tree */
	uint64_t peak_bytes;	  /* largest resident set of one of its processes */
	uint64_t stdout_bytes, stderr_bytes; /* of the spools */
	uint32_t left_running;	  /* processes of it that were still alive when its leader ended */
	const char *limit;	  /* the limit that bit: "memory", "pids", "timeout", "output", ...; NULL if none. Static. */
};

/**
 * carrel_exec() - Run a command in the sandbox
 * @command: Borrowed for the call
 * @ret:     The exec, running
 *
 * Return: 0; -ENOENT if the program is not there; -ENOEXEC if it cannot be executed; other negative errno
 */
CARREL_API int carrel_exec(struct carrel_sandbox *sandbox, const struct carrel_command *command,
			   struct carrel_exec **ret, struct carrel_error *e);

/* carrel_exec_find() - An exec by its number, e.g. after carrel_connect(). Return: 0; -ENOENT. */
CARREL_API int carrel_exec_find(struct carrel_sandbox *sandbox, uint64_t number, struct carrel_exec **ret,
				struct carrel_error *e);

CARREL_API uint64_t carrel_exec_number(const struct carrel_exec *exec);

/* carrel_exec_pid() - Its process id inside the sandbox. */
CARREL_API pid_t carrel_exec_pid(const struct carrel_exec *exec);

/* carrel_exec_free() - Give up the handle; the exec goes on. */
CARREL_API void carrel_exec_free(struct carrel_exec *exec);

/* carrel_exec_go() - Let a held exec run. */
CARREL_API int carrel_exec_go(struct carrel_exec *exec, struct carrel_error *e);

/**
 * carrel_exec_wait() - Wait for the one terminal event
 * @timeout_ms: -1 for ever; 0 only looks at what carrel_sandbox_dispatch() has taken
 *
 * Return: 0; -ETIMEDOUT; -ECONNREFUSED if the sandbox died with the exec unfinished
 */
CARREL_API int carrel_exec_wait(struct carrel_exec *exec, int timeout_ms, struct carrel_result *ret,
				struct carrel_error *e);

/**
 * carrel_exec_read() - Read output from an absolute offset
 * @stream:     1 stdout (or the terminal), 2 stderr
 * @offset:     Bytes from the start of the stream; any offset may be read again
 * @timeout_ms: How long to wait for a first byte: -1 for ever; 0 only looks at what carrel_sandbox_dispatch() has taken
 *
 * Only for output=spool; also after the sandbox was destroyed. Return: bytes read; 0 at the end of the stream; -EAGAIN if none came in time; other negative errno
 */
CARREL_API ssize_t carrel_exec_read(struct carrel_exec *exec, int stream, uint64_t offset, void *buf, size_t len,
				    int timeout_ms, struct carrel_error *e);

/* carrel_exec_write() - Write to its stdin (stdin=pipe) or terminal (tty). Return: bytes written; -EPIPE if it is closed. */
CARREL_API ssize_t carrel_exec_write(struct carrel_exec *exec, const void *buf, size_t len, struct carrel_error *e);
CARREL_API int carrel_exec_close_stdin(struct carrel_exec *exec, struct carrel_error *e);
CARREL_API int carrel_exec_resize(struct carrel_exec *exec, uint16_t rows, uint16_t cols, struct carrel_error *e);

/* carrel_exec_terminal() - Descriptor of the pty's master (tty with output=inherit), owned by the exec; -1 if there is none. */
CARREL_API int carrel_exec_terminal(const struct carrel_exec *exec);

/* carrel_exec_signal() - Signal the process that was started. */
CARREL_API int carrel_exec_signal(struct carrel_exec *exec, int signal, struct carrel_error *e);

/* carrel_exec_kill() - Kill everything that the exec started, at once. */
CARREL_API int carrel_exec_kill(struct carrel_exec *exec, struct carrel_error *e);

/**
 * carrel_sandbox_fd() - A descriptor that polls readable when something happened; for event loops
 *
 * On readable call carrel_sandbox_dispatch(), then look at the execs with a timeout of 0. Owned by the sandbox.
 */
CARREL_API int carrel_sandbox_fd(const struct carrel_sandbox *sandbox);
CARREL_API int carrel_sandbox_dispatch(struct carrel_sandbox *sandbox, struct carrel_error *e);

/* --- Seeing ----------------------------------------------------------------------------------------------------------------- */

/**
 * enum carrel_layer_state - Whether one layer of isolation is in force
 */
enum carrel_layer_state {
	CARREL_LAYER_ON,
	CARREL_LAYER_PARTIAL,
	CARREL_LAYER_MISSING,
};

/** struct carrel_layer - One line of a receipt */
struct carrel_layer {
	const char *name;	       /* "user namespace", "seccomp", ... */
	enum carrel_layer_state state;
	const char *evidence;	       /* what the kernel said, e.g. "Seccomp: 2, 2 filters" */
	const char *why;	       /* reason if partial or missing, else "" */
};

struct carrel_receipt;

/**
 * carrel_receipt_read() - Read from the kernel what isolates a live exec (best while it is held)
 *
 * Every line comes from /proc and the cgroup files of the process inside, not from the configuration.
 */
CARREL_API int carrel_receipt_read(struct carrel_exec *exec, struct carrel_receipt **ret, struct carrel_error *e);
CARREL_API void carrel_receipt_free(struct carrel_receipt *receipt);
CARREL_API size_t carrel_receipt_count(const struct carrel_receipt *receipt);
CARREL_API const struct carrel_layer *carrel_receipt_layer(const struct carrel_receipt *receipt, size_t index);

/** struct carrel_finding - One line of the doctor's report */
struct carrel_finding {
	int ok;		      /* 1 fine, or with a remedy something that could be better; 0 lacking, or orphaned ("orphan ...") */
	const char *what;     /* "cgroup v2", "orphan cgroup", ... */
	const char *found;    /* evidence */
	const char *remedy;   /* "" if fine */
};

enum carrel_doctor_flags {
	CARREL_DOCTOR_SWEEP = 1 << 0, /* remove what dead sandboxes left */
};

/**
 * carrel_doctor() - Report what the host lacks and what is orphaned
 * @visit: Called for each finding; texts are valid for that call
 *
 * Return: number of orphans that are left; negative errno
 */
CARREL_API int carrel_doctor(unsigned flags, void (*visit)(const struct carrel_finding *finding, void *data),
			     void *data, struct carrel_error *e);

#ifdef __cplusplus
}
#endif
#endif
