/* SPDX-License-Identifier: Apache-2.0 */
/* slot.c - A number that one live sandbox has
 *
 * Theory of operation. One file, `slots`, in the run directory, of which nothing is ever read or written: byte N is locked while slot N is taken.
 * Both the process that started the sandbox and its init hold the same open file description, so a slot is free exactly when both are
 * gone, with no cleaning up. The sandbox's id begins with its slot, so from the name of a leftover follows which lock to ask. A pid
 * file was rejected: pids are reused, and a crash leaves the file; a table of names was, because a write to a file on disk starts a
 * journal transaction (400 us). A search starts at a random slot, so that thousands of sandboxes do not all try the first ones. */
#include "warden/slot.h"

#include <fcntl.h>
#include <string.h>
#include <sys/random.h>

#include "base/sys.h"

#define SLOT_DIGITS 3 /* 32^3 names for 4,094 slots */

static const char digits[] = "0123456789abcdefghijkmnopqrstuvw"; /* no l, which people read as 1 */
_Static_assert(sizeof(digits) == 32 + 1, "an id is written in base 32");

static int slots_open(int rundir)
{
	return sys_openat(rundir, "slots", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
}

static int lock(int fd, unsigned index, int type)
{
	struct flock l = { .l_type = (short)type, .l_whence = SEEK_SET, .l_start = index, .l_len = 1 };

	return fcntl(fd, F_OFD_SETLK, &l) < 0 ? -errno : 0;
}

static void write_id(char id[SLOT_ID_SIZE + 1], unsigned index, const unsigned char *random)
{
	for (size_t i = 0; i < SLOT_DIGITS; i++)
		id[i] = digits[index >> 5 * (SLOT_DIGITS - 1 - i) & 31];
	for (size_t i = SLOT_DIGITS; i < SLOT_ID_SIZE; i++)
		id[i] = digits[random[i] & 31];
	id[SLOT_ID_SIZE] = '\0';
}

/* The slot that an id names, or -1. */
static int read_id(const char *id)
{
	int index = 0;

	if (strlen(id) != SLOT_ID_SIZE || strspn(id, digits) != SLOT_ID_SIZE)
		return -1;
	for (size_t i = 0; i < SLOT_DIGITS; i++)
		index = index << 5 | (int)(strchr(digits, id[i]) - digits);
	return index < SLOT_COUNT ? index : -1;
}

int slot_take(int rundir, char id[SLOT_ID_SIZE + 1], struct slot *ret, struct err *e)
{
	auto_close int fd = slots_open(rundir);
	unsigned char random[SLOT_ID_SIZE];
	unsigned start;
	int r;

	if (fd < 0)
		return err_sys(e, fd, "open the table of sandboxes");
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return err_set(e, ERR_SYSTEM, "draw a random name");
	start = (unsigned)(random[0] << 8 | random[1]); /* not part of the name */
	for (unsigned i = 0; i < SLOT_COUNT; i++) {
		unsigned index = (start + i) % SLOT_COUNT;

		r = lock(fd, index, F_WRLCK);
		if (r == -EAGAIN || r == -EACCES)
			continue;
		if (r < 0)
			return err_sys(e, r, "take a range of uids");
		write_id(id, index, random);
		*ret = (struct slot){ .fd = take_fd(fd), .index = index };
		return 0;
	}
	r = err_set(e, ERR_EXHAUSTED, "take a range of uids: all %d are in use", SLOT_COUNT);
	return err_hint(e, r, "remove sandboxes, or see 'carrel doctor'");
}

void slot_release(struct slot *slot)
{
	if (slot->fd < 0)
		return;
	ignored(lock(slot->fd, slot->index, F_UNLCK)); /* closing does it too, once init is gone */
	(void)close(slot->fd);
	slot->fd = -EBADF;
}

enum slot_life slot_find(int rundir, const char *id)
{
	auto_close int fd = sys_openat(rundir, "slots", O_RDWR | O_NOFOLLOW, 0);
	int index = read_id(id);
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = index, .l_len = 1 };

	if (index < 0)
		return SLOT_UNKNOWN;
	if (fd < 0)
		return fd == -ENOENT ? SLOT_DEAD : SLOT_ALIVE;
	if (fcntl(fd, F_OFD_GETLK, &l) < 0)
		return SLOT_ALIVE;
	return l.l_type == F_UNLCK ? SLOT_DEAD : SLOT_ALIVE;
}
