/* SPDX-License-Identifier: Apache-2.0 */
/* slot.h - A number that one live sandbox has: its range of uids, its name, and the proof that it lives */
#pragma once

#include "base/err.h"

/* Ranges of 65,536 ids from 0x70000000 up to 0x7ffdffff: between systemd's container ranges and its foreign range (systemd,
 * docs/UIDS-GIDS.md), below 2^31, where programs that use signed ids begin to fail. */
#define SLOT_UID_BASE UINT32_C(0x70000000)
#define SLOT_COUNT 4094

/* Characters of a sandbox's id: three of the slot and thirteen random ones (65 bits), of [0-9a-w] without l. */
#define SLOT_ID_SIZE 16

/**
 * struct slot - A taken slot
 * @fd:    Open file description that holds the lock of byte @index; init holds a duplicate
 * @index: 0 to SLOT_COUNT - 1
 */
struct slot {
	int fd;
	unsigned index;
};

/**
 * slot_take() - Take a free slot, and name the sandbox that has it
 * @rundir: From rundir_open()
 * @id:     Receives SLOT_ID_SIZE characters and a NUL; two sandboxes never have the same
 *
 * The lock belongs to the open file description (F_OFD_SETLK): it is gone when the last process that holds it is, however that died.
 * Return: 0; -ENOSPC if every slot is taken; other negative errno
 * Syscalls: getrandom openat fcntl
 */
must_check int slot_take(int rundir, char id[SLOT_ID_SIZE + 1], struct slot *ret, struct err *e);

/* slot_release() - Give the slot back at once, even if init's duplicate still exists. */
void slot_release(struct slot *slot);

static inline uint32_t slot_uid_base(const struct slot *slot)
{
	return SLOT_UID_BASE + slot->index * UINT32_C(65536);
}

/** enum slot_life - What the lock of an id's slot says */
enum slot_life {
	SLOT_UNKNOWN, /* no sandbox can have this name */
	SLOT_ALIVE,   /* the slot is taken: by this sandbox, or by a later one that drew the same number */
	SLOT_DEAD,    /* nobody holds it: owner and init are gone, and what has this name is a leftover */
};

/* slot_find() - Whether the sandbox with this id can be alive. In doubt it is. */
enum slot_life slot_find(int rundir, const char *id);
