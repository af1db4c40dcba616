/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.h - Unpack a tar that somebody else made */
#pragma once

#include "base/err.h"
#include "unpack/sink.h"

/**
 * struct unpack_limits - What an archive may cost; see unpack_limits_default
 * @bytes_max:   Sum of the sizes of its files, holes included
 * @entries_max: Entries, implied directories included
 * @depth_max:   Directories in one name
 */
struct unpack_limits {
	uint64_t bytes_max;
	uint64_t entries_max;
	uint32_t depth_max;
};

extern const struct unpack_limits unpack_limits_default;

/**
 * struct unpack_result - What was done
 * @entries:         Files, directories, links that were made
 * @bytes:           Sum of the sizes of files
 * @skipped_devices: Block and character devices, which no sandbox may bring
 * @skipped_others:  Sockets and what tar has no word for
 * @dropped_xattrs:  Attributes that are not kept
 * @setid_files:     Files with a set-id bit, which is kept
 */
struct unpack_result {
	uint64_t entries, bytes, skipped_devices, skipped_others, dropped_xattrs, setid_files;
};

/* unpack_note_fn - Told about each entry that is skipped; @what is one word, @name is fit to be shown. */
typedef void unpack_note_fn(const char *what, const char *name);

/**
 * unpack_stream() - Unpack a tar below a directory
 * @in:     The archive: plain, gzip, bzip2, xz or zstd; read to its end or the first problem
 * @root:   Empty directory that nobody else writes to
 * @limits: What it may cost
 * @owners: What becomes of owners
 * @note:   May be NULL
 *
 * On failure @root holds what was written so far; the caller removes it.
 * Return: 0; -EINVAL for an archive that is refused; -ENOSPC beyond a limit; other negative errno
 */
must_check int unpack_stream(int in, int root, const struct unpack_limits *limits, enum sink_owners owners,
			     unpack_note_fn *note, struct unpack_result *ret, struct err *e);
