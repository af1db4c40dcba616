/* SPDX-License-Identifier: Apache-2.0 */
/* storage.h - What holds a sandbox's writable layer: chosen, made, removed */
#pragma once

#include "jail/plan.h"
#include "warden/spec.h"

struct carrel_sandbox;

/**
 * storage_choose() - Decide between memory, project quota and loop device, changing nothing
 * @spec: A backing named there is taken or is an error; `auto` always finds one
 * @plan: With its flags; receives the choice
 *
 * Return: 0; -EOPNOTSUPP with the remedy; other negative errno
 */
must_check int storage_choose(const struct carrel_spec *spec, struct jail_plan *plan, struct err *e);

/* storage_make() - Make what was chosen; a layer in memory is left to the jail. Undone by storage_remove(). */
must_check int storage_make(struct carrel_sandbox *sb, struct jail_plan *plan, struct err *e);

/* storage_remove() - Remove what the sandbox has in the store, once nothing of it runs. May be repeated. */
must_check int storage_remove(struct carrel_sandbox *sb, struct err *e);
