/* SPDX-License-Identifier: Apache-2.0 */
/* name.h - Names of archive entries, checked before anything is done with them */
#pragma once

#include "base/err.h"

#define NAME_PATH_MAX 4096     /* bytes with NUL: PATH_MAX of Linux */
#define NAME_COMPONENT_MAX 255 /* bytes: NAME_MAX of every file system that can hold an image */
#define NAME_SHOWN_SIZE 96     /* bytes with NUL of a name in a message */

/**
 * name_normalise() - Bring an entry's name into the one form that the rest of this program accepts
 * @name:      As the archive has it
 * @depth_max: Components allowed
 * @out:       NAME_PATH_MAX bytes: components separated by single slashes, none "." or ".."; "" is the root itself
 * @e:         Reason, with the name
 *
 * "./a//b/" becomes "a/b". Nothing is repaired that could be meant in two ways.
 * Return: 0; -EINVAL for an absolute name, for "..", for one that is too long or too deep
 */
must_check int name_normalise(const char *name, uint32_t depth_max, char *out, struct err *e);

/**
 * name_show() - An entry's name as text for a person: shortened, everything but printable ASCII escaped
 * @out: NAME_SHOWN_SIZE bytes
 *
 * Return: @out
 */
const char *name_show(const char *name, char *out);
