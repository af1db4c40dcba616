/* SPDX-License-Identifier: Apache-2.0 */
/* probe.h - Attacks on a sandbox, tried from inside it */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** enum verdict - How an attack ended; also the exit status of a probe that ran one */
enum verdict {
	HARMLESS,  /* it failed, as it should */
	SUCCEEDED, /* it worked: a hole */
	UNTRIED,   /* it could not be tried here, which says nothing */
};

/** enum attack_flags - When an attack takes part in a run without names */
enum attack_flags {
	BY_NAME = 1 << 0, /* only when named: it ends the sandbox, wants options, or takes a resource away from the others */
};

/** struct attack - One attempt. It runs in a process of its own, so it may do to itself what it likes. */
struct attack {
	const char *name;
	enum verdict (*run)(void);
	unsigned flags; /* enum attack_flags */
	const char *answers; /* the break that it repeats */
};

extern const struct attack call_attacks[], file_attacks[], init_attacks[], network_attacks[], nested_attacks[], limit_attacks[];

/* say() - What the verdict rests on: the last call wins. */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);

/* harmless(), succeeded(), untried() - A verdict with its reason. */
__attribute__((format(printf, 1, 2))) enum verdict harmless(const char *format, ...);
__attribute__((format(printf, 1, 2))) enum verdict succeeded(const char *format, ...);
__attribute__((format(printf, 1, 2))) enum verdict untried(const char *format, ...);

/* fact() - What the test told about the host, by environment; NULL if it did not. */
const char *fact(const char *name);

/* errno_name() - "EPERM"; a number for those that no attack here meets. */
const char *errno_name(int error);

/* read_text() - Up to @size - 1 bytes of a file. Return: their number, negative errno. */
long read_text(const char *path, char *text, size_t size);

/* in_child() - Run @f in a forked process. Return: its verdict; SIGSYS counts as harmless, other signals as untried. */
enum verdict in_child(enum verdict (*f)(const void *), const void *arg);

/* is_init_ours() - Pid 1 is Carrel's init: signals may be sent without hitting the machine. */
bool is_init_ours(void);

/* walk_writable() - Count files below @dir that open for writing; nothing is written. Names the first in @first. */
int walk_writable(const char *dir, char first[256]);

/* become() - From root to an ordinary user without any capability; nothing if already one. */
int become(unsigned uid);
