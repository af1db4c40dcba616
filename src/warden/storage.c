/* SPDX-License-Identifier: Apache-2.0 */
/* storage.c - What holds a sandbox's writable layer: chosen, made, removed
 *
 * Theory of operation. Runs in the process that uses the library. `auto` means: memory, which costs nothing to make
 * and leaves nothing, unless the caller asked for a size that the memory limit cannot hold. Then a project quota,
 * where the store's file system has it; else a loop device; else memory all the same, which the plan and the receipt
 * say. The default size does not count as asked for: a sandbox that is started for one command must not pay for a
 * file system (6 ms) that it will not fill. An ordinary user has memory only: both others need rights of the host's
 * root.
 *
 * Whatever lands in the store has the sandbox's id as its name, from after the slot is taken until before it is given
 * back: see sweep.c. */
#include "warden/storage.h"

#include <stdio.h>

#include "layers/store.h"
#include "layers/upper.h"
#include "warden/internal.h"

_Static_assert(SLOT_COUNT <= UPPER_SLOTS, "two slots would share a project");

static int choose_named(const struct carrel_spec *spec, struct jail_plan *plan, struct err *e)
{
	enum upper_kind kind = spec->backing == STORAGE_QUOTA ? UPPER_QUOTA : UPPER_LOOP;
	auto_close int store = -EBADF;
	int r;

	if (plan->flags & JAIL_ROOTLESS) {
		r = err_set(e, ERR_UNSUPPORTED, "put the writable layer on a %s: only root can", upper_kind_name(kind));
		return err_hint(e, r, "run as root, or use --storage-opt backing=tmpfs");
	}
	store = store_open(STORE_CREATE, e);
	if (store < 0)
		return store;
	plan->upper_kind = kind;
	return upper_probe(store, kind, e);
}

static int choose_auto(const struct carrel_spec *spec, struct jail_plan *plan, struct err *e)
{
	auto_close int store = -EBADF;

	if (!(spec->explicit_mask & EXPLICIT_STORAGE) || spec->storage_bytes <= spec->memory_bytes ||
	    plan->flags & JAIL_ROOTLESS)
		return 0;
	store = store_open(STORE_CREATE, e);
	if (store < 0)
		return store;
	if (upper_probe(store, UPPER_QUOTA, NULL) == 0)
		plan->upper_kind = UPPER_QUOTA;
	else if (upper_probe(store, UPPER_LOOP, NULL) == 0)
		plan->upper_kind = UPPER_LOOP;
	return 0;
}

int storage_choose(const struct carrel_spec *spec, struct jail_plan *plan, struct err *e)
{
	int r = 0;

	plan->upper_kind = UPPER_TMPFS;
	if (spec->backing == STORAGE_AUTO)
		r = choose_auto(spec, plan, e);
	else if (spec->backing != STORAGE_TMPFS)
		r = choose_named(spec, plan, e);
	plan->upper_text = upper_kind_name((enum upper_kind)plan->upper_kind);
	if (r == 0 && plan->upper_kind == UPPER_TMPFS && spec->storage_bytes > spec->memory_bytes)
		plan->upper_text = "memory, whose own limit is less";
	return r;
}

int storage_make(struct carrel_sandbox *sb, struct jail_plan *plan, struct err *e)
{
	struct upper_want want = { sb->id, sb->slot.index, plan->upper_bytes, plan->upper_inodes };
	auto_close int store = -EBADF;
	char path[STORE_PATH_MAX];
	int r;

	if (plan->upper_kind == UPPER_TMPFS)
		return 0;
	store = store_open(STORE_EXISTING, e);
	r = store < 0 ? store : store_path(path, sizeof(path), e);
	if (r < 0)
		return r;
	sb->stored = 1;
	if (plan->upper_kind == UPPER_QUOTA) /* a loop has no name in the store */
		undertaker_layer(sb, path);
	r = plan->upper_fd = upper_make(store, (enum upper_kind)plan->upper_kind, &want, e);
	return MIN(r, 0);
}

/* A sandbox that another process started may have one or not. */
int storage_remove(struct carrel_sandbox *sb, struct err *e)
{
	auto_close int store = -EBADF;
	int r;

	if (!sb->stored && sb->dir < 0)
		return 0;
	store = store_open(STORE_EXISTING, e);
	if (store < 0)
		return store == -ENOENT ? 0 : store;
	r = upper_remove(store, sb->id, e);
	if (r == 0)
		sb->stored = 0;
	return r;
}
