/* SPDX-License-Identifier: Apache-2.0 */
/* name.c - Names of archive entries, checked before anything is done with them
 *
 * Theory of operation. Pure functions on hostile text. Tar programs differ in what they make of "/etc/passwd" and
 * "a/../b": some strip, some refuse, some follow. An image that needs such names is broken or an attack, so it is
 * refused, with the name in the message. */
#include "unpack/name.h"

#include <stdio.h>
#include <string.h>

int name_normalise(const char *name, uint32_t depth_max, char *out, struct err *e)
{
	char shown[NAME_SHOWN_SIZE];
	uint32_t depth = 0;
	size_t len = 0;

	if (name[0] == '/')
		return err_hint(e, err_set(e, ERR_INVALID, "entry '%s': its name is absolute", name_show(name, shown)),
				"make the archive from inside its root: tar -C ROOT -cf image.tar .");
	for (const char *s = name; *s;) {
		size_t n = strcspn(s, "/");

		if (n == 2 && memcmp(s, "..", 2) == 0)
			return err_set(e, ERR_INVALID, "entry '%s': its name has '..'", name_show(name, shown));
		if (n > NAME_COMPONENT_MAX || len + n + 2 > NAME_PATH_MAX)
			return err_set(e, ERR_INVALID, "entry '%s': its name is too long", name_show(name, shown));
		if (n > 0 && !(n == 1 && s[0] == '.')) {
			if (++depth > depth_max)
				return err_set(e, ERR_INVALID, "entry '%s': more than %u directories deep",
					       name_show(name, shown), depth_max);
			if (len)
				out[len++] = '/';
			memcpy(out + len, s, n);
			len += n;
		}
		s += n;
		s += *s == '/';
	}
	out[len] = '\0';
	return 0;
}

const char *name_show(const char *name, char *out)
{
	size_t len = 0;

	for (const unsigned char *s = (const unsigned char *)name; *s; s++) {
		if (len + 8 > NAME_SHOWN_SIZE) { /* the longest escape, three dots, NUL */
			len += (size_t)snprintf(out + len, NAME_SHOWN_SIZE - len, "...");
			break;
		}
		if (*s >= ' ' && *s < 0x7f && *s != '\\' && *s != '\'')
			out[len++] = (char)*s;
		else
			len += (size_t)snprintf(out + len, NAME_SHOWN_SIZE - len, "\\x%02x", *s);
	}
	out[len] = '\0';
	return out;
}
