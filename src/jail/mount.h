/* SPDX-License-Identifier: Apache-2.0 */
/* mount.h - Mounts by descriptor: made detached, attached once */
#pragma once

#include "base/err.h"

/** struct mount_option - One key of a file system's configuration; @value NULL for a flag */
struct mount_option {
	const char *key;
	const char *value;
};

/**
 * mount_new() - Make a detached mount of a new file system
 * @type:    "tmpfs", "proc", "devpts", "mqueue", "overlay"
 * @options: Ends with a NULL key
 * @attrs:   MOUNT_ATTR_*
 * @e:       Reason on failure, with the kernel's own words where the file system logged some
 *
 * Nothing on the host sees it; closing the descriptor unmounts it.
 * Return: descriptor; negative errno
 * Syscalls: fsopen fsconfig fsmount read close
 */
must_check int mount_new(const char *type, const struct mount_option *options, unsigned attrs, struct err *e);

/**
 * mount_tmpfs() - Make a detached tmpfs
 * @bytes, @inodes: Its size; 0 inodes is the kernel's default
 * @mode:           Of its root
 * @attrs:          MOUNT_ATTR_*
 */
must_check int mount_tmpfs(uint64_t bytes, uint64_t inodes, unsigned mode, unsigned attrs, struct err *e);

/**
 * mount_clone() - Make a detached copy of an existing mount or of a subtree of it
 * @dir:       Directory descriptor
 * @path:      Below it, "" for @dir itself
 * @userns_fd: Map ids as this user namespace does, -1 to leave them
 * @attrs:     MOUNT_ATTR_* to set besides
 * @e:         Reason on failure
 *
 * Submounts are not copied: what is mounted below a volume or an image stays outside.
 * Return: descriptor; -EINVAL if the file system cannot be idmapped; other negative errno
 * Syscalls: open_tree mount_setattr close
 */
must_check int mount_clone(int dir, const char *path, int userns_fd, unsigned attrs, struct err *e);

/** enum mount_target - What to make if the target does not exist */
enum mount_target {
	TARGET_MUST_EXIST,
	TARGET_DIR,
	TARGET_FILE,
};

/**
 * mount_attach() - Put a detached mount at a path of the sandbox
 * @root:   Descriptor of the sandbox's root
 * @target: Relative to it; resolved with RESOLVE_IN_ROOT, so that a symlink of the image cannot lead out
 * @mount:  Detached mount
 * @create: What to make, parents included, if the target does not exist
 *
 * Return: 0; -ENOENT; -ELOOP for magic links; other negative errno
 * Syscalls: openat2 move_mount mkdirat openat close
 */
must_check int mount_attach(int root, const char *target, int mount, enum mount_target create, struct err *e);

/* mount_target_open() - The O_PATH descriptor of a target, resolved as mount_attach() does. Return: descriptor; negative errno. */
must_check int mount_target_open(int root, const char *target);

/* mount_attach_at() - Put a detached mount on an open target; @name is for the error. */
must_check int mount_attach_at(int at, const char *name, int mount, struct err *e);

/** enum overlay_flags - What kind of overlay */
enum overlay_flags {
	OVERLAY_ROOTLESS = 1 << 0, /* in the current user namespace (userxattr); else with trusted xattrs and redirected renames */
	OVERLAY_LIST = 1 << 2,	   /* name the lower layers in one text, for kernels before 6.7; it holds a dozen */
	OVERLAY_VOLATILE = 1 << 1, /* sync nothing: unmounting would sync the whole file system of the writable layer */
};

/**
 * mount_overlay() - Make a detached overlay
 * @lowers:     Directories, topmost first; idmapped clones where ids are shifted
 * @num_lowers: At least 1
 * @upper:      Directory that holds @upper_name and @work_name
 * @flags:      enum overlay_flags
 *
 * Return: descriptor; negative errno
 */
must_check int mount_overlay(const int *lowers, size_t num_lowers, int upper, const char *upper_name,
			     const char *work_name, unsigned flags, unsigned attrs, struct err *e);
