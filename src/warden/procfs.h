/* SPDX-License-Identifier: Apache-2.0 */
/* procfs.h - What /proc says of a process, read without trusting what the process wrote there */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* /proc/PID/status: about 1.5 KiB plus masks of CPUs, which have 9 bytes for each 32 CPUs. */
#define PROCFS_STATUS_MAX 8192
/* /proc/PID/mountinfo: some 150 bytes a line; a sandbox has about 30 mounts and may add JAIL_MOUNTS_MAX volumes with long paths. */
#define PROCFS_MOUNTS_MAX MIB(1)

/* procfs_open() - The directory of a process; it never comes to mean another one. Return: descriptor; -ESRCH; other negative errno. */
must_check int procfs_open(pid_t pid);

/* procfs_read() - Append a file of any length to @out. Return: 0; negative errno, -EMSGSIZE beyond the buffer's maximum. */
must_check int procfs_read(int dir, const char *file, struct buf *out);

/* procfs_link() - Where a link points ("ns/pid", "exe"), as a text. Return: 0; negative errno. */
must_check int procfs_link(int dir, const char *file, char *ret, size_t size);

/**
 * procfs_field() - The value of one line "Key:  value" of a status file
 * @text: Lines
 * @key:  With its colon
 * @ret:  Receives the value, tabs and repeated blanks made one blank; cut if it does not fit
 *
 * Return: 0; -ENODATA if there is no such line
 */
must_check int procfs_field(const char *text, const char *key, char *ret, size_t size);

/* procfs_squeeze() - Copy the first line of @text, blanks at its ends removed, those in between made one. Return: @ret. */
char *procfs_squeeze(const char *text, char *ret, size_t size);

/* procfs_namespaced_pid() - The last number of "NSpid:", which is the pid in the innermost namespace. Return: pid; negative errno. */
must_check int procfs_namespaced_pid(const char *status);

/** struct procfs_mount - One line of mountinfo; the texts live as long as the buffer they were cut from */
struct procfs_mount {
	const char *target;  /* as the process sees it; the kernel's octal escapes stay */
	const char *options; /* of the mount: "ro,nosuid,idmapped" */
	const char *type;
};

/**
 * procfs_mount_next() - Cut the next line off a mountinfo text
 * @at: Rest of the text, changed; starts at the first byte
 *
 * Return: 1; 0 at the end. Lines that do not have the kernel's form are skipped.
 */
int procfs_mount_next(char **at, struct procfs_mount *ret);

/* procfs_option() - True if @options, words between commas, has @word. */
bool procfs_option(const char *options, const char *word);

/**
 * procfs_cgroup() - The path of a process in one hierarchy
 * @text:       /proc/PID/cgroup
 * @controller: "memory", ...; NULL for the unified hierarchy
 *
 * Return: 0; -ENODATA if there is no such hierarchy
 */
must_check int procfs_cgroup(const char *text, const char *controller, char *ret, size_t size);

/**
 * procfs_each() - Visit every process that we can see
 * @visit: With the open directory of the process, which procfs_each() closes; returns non-zero to stop
 *
 * Return: 0; what @visit returned; negative errno
 */
must_check int procfs_each(int (*visit)(pid_t pid, int dir, void *data), void *data);
