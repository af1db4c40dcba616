/* SPDX-License-Identifier: Apache-2.0 */
/* root.h - A sandbox's root directory: made of detached mounts, then entered */
#pragma once

#include "jail/plan.h"

#define ROOT_OWN_MAX 5 /* rows of own_mounts[] in root.c */

/**
 * struct root - Detached mounts that wait to be assembled
 * @overlay:   The root itself
 * @usr:       Overlay for /usr of the host image, else -EBADF
 * @furniture: tmpfs with dev, sys, and an empty file and directory for masks
 * @cpus:      Clone of the host's /sys/devices/system/cpu
 * @own:       File systems of the sandbox's own namespaces (proc, devpts, ...), in the order of own_mounts[]
 * @buried:    Mounts that only the overlays still need: their layers and the writable layer
 * @nodes:     Rootless: clones of the host's device nodes, by index in jail_devices[], else -EBADF
 * @volumes:   Binds, by index in the plan; -EBADF for a memory file system
 */
struct root {
	int overlay, usr, furniture, cpus;
	int own[ROOT_OWN_MAX];
	int buried[JAIL_LOWERS_MAX + 2];
	size_t num_buried, num_attached; /* made; and mounted somewhere */
	int nodes[JAIL_DEVICES_MAX];
	int volumes[JAIL_MOUNTS_MAX];
	size_t num_volumes;
};

void root_init(struct root *root);
void root_done(struct root *root);

/**
 * root_begin() - Make the mounts that need neither the child nor its ids: the writable layer in memory, the furniture
 *
 * Runs in the parent, before the child exists; rootless in the child. What was made before a failure stays in @ret for root_done().
 */
must_check int root_begin(const struct jail_plan *plan, struct root *ret, struct err *e);

/**
 * root_build() - Make every other mount that needs the host's paths or its root's rights
 * @plan:      What to build
 * @userns_fd: The sandbox's user namespace, for idmapped clones; -1 when rootless
 *
 * Runs where root_begin() did, after it; with JAIL_ATTACH_LAYERS in a mount namespace in which it may mount over /sys. Writes everything of @ret but `own`; what was made before a failure stays there.
 */
must_check int root_build(const struct jail_plan *plan, int userns_fd, struct root *ret, struct err *e);

/**
 * root_prepare() - Make the file systems that belong to the sandbox's own namespaces
 *
 * Runs in the child, as root of its user namespace, while the parent is still in root_build(): it writes @root->own only.
 */
must_check int root_prepare(const struct jail_plan *plan, struct root *root, struct err *e);

/**
 * root_enter() - Assemble the root in the current mount namespace and make it "/"
 *
 * Runs in the child after both others, before any program of the sandbox. Afterwards no path of the host resolves.
 */
must_check int root_enter(const struct jail_plan *plan, struct root *root, struct err *e);
