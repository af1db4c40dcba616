/* SPDX-License-Identifier: Apache-2.0 */
/* env_file.h - Environment variables as --env and --env-file name them */
#pragma once

#include "carrel.h"
#include "base/macros.h"

/* env_setter - Receives one "NAME=VALUE". Return: 0 or negative errno, which ends the reading. */
typedef int (*env_setter)(const char *text, void *data, struct carrel_error *e);

/**
 * env_take() - One variable: "NAME=VALUE", or "NAME" with the value that it has here
 *
 * A NAME that is not set here is left out, as docker does. Return: 0; -EINVAL for an empty name or one with control bytes; else as @set
 */
must_check int env_take(const char *text, env_setter set, void *data, struct carrel_error *e);

/**
 * env_file_read() - Every variable of a file in docker's format
 * @path: A regular file, pipe or device: whatever can be read to its end
 *
 * One variable a line as env_take() reads it; blanks before it, empty lines, lines that start with "#", a byte order mark and carriage returns
 * are skipped. A value is taken as it is: quotes are part of it.
 * Return: 0; -EINVAL with the number of the line; -EFBIG; else as @set
 */
must_check int env_file_read(const char *path, env_setter set, void *data, struct carrel_error *e);

/* env_file_parse() - The same from memory; @text is NUL-terminated and changed. @path is for messages. */
must_check int env_file_parse(const char *path, char *text, size_t len, env_setter set, void *data,
			      struct carrel_error *e);
