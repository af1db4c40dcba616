/* SPDX-License-Identifier: Apache-2.0 */
/* quota.c - Limits of bytes and inodes on a directory tree, by project quota of ext4 and xfs
 *
 * Theory of operation. Runs in the warden, as root of the host. A directory is given a project id and the flag that
 * what is made below it has the same (FS_XFLAG_PROJINHERIT); the file system counts blocks and inodes of each id and
 * refuses to pass a hard limit, ext4 with EDQUOT, xfs with ENOSPC. What runs inside cannot leave: changing either
 * needs the host's user namespace, and a rename or link across projects is EXDEV. Overlayfs writes without
 * CAP_SYS_RESOURCE (ovl_fill_super() lowers it), so that the exemption of root does not reach inside.
 *
 * One interface for both file systems: the kernel answers the XFS calls (Q_X...) for ext4 as well, and only they tell
 * accounting from enforcement. ext4 with the `quota` feature counts always, but enforces only when mounted with
 * prjquota; who asks with Q_GETINFO cannot see the difference. quotactl_fd() (5.14) takes the directory itself;
 * quotactl() with the name of a block device was rejected, since that name is not known in a container, and may be
 * another's tomorrow. */
#include "layers/quota.h"

#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include "base/sys.h"

#ifndef __NR_quotactl_fd
#define __NR_quotactl_fd 443
#endif

/* linux/magic.h; ext2 and ext3 have the number of ext4 and no projects. */
#define MAGIC_EXT4 0xEF53
#define MAGIC_XFS 0x58465342

#define BASIC_BLOCK 512 /* bytes; unit of struct fs_disk_quota (linux/dqblk_xfs.h, "BBs") */

static int quota_call(int dir, unsigned cmd, uint32_t project, void *arg)
{
	return (int)sys_call4(__NR_quotactl_fd, dir, QCMD(cmd, PRJQUOTA), project, arg);
}

/* @flags are of struct fs_quota_statv: what the file system does count, and does not enforce. */
static int not_enforced(long magic, unsigned flags, struct err *e)
{
	const char *what = flags & FS_QUOTA_PDQ_ACCT ? "counts projects but does not limit them"
						     : "is mounted without project quota";
	int r = err_set(e, ERR_UNSUPPORTED, "limit the writable layer by quota: the store's %s %s",
			magic == MAGIC_XFS ? "xfs" : "ext4", what);

	if (magic == MAGIC_XFS)
		return err_hint(e, r, "mount it with -o prjquota (not as a remount), or use backing=loop");
	if (flags & FS_QUOTA_PDQ_ACCT)
		return err_hint(e, r, "mount it with -o prjquota, or use backing=loop");
	return err_hint(e, r,
			"unmounted: tune2fs -O project,quota -Q prjquota DEVICE; mount with -o prjquota; or use "
			"backing=loop");
}

int quota_probe(int dir, struct err *e)
{
	struct fs_quota_statv st = { .qs_version = FS_QSTATV_VERSION1 };
	struct statfs fs;
	int r;

	if (fstatfs(dir, &fs) < 0)
		return err_sys(e, -errno, "look at the file system of the store");
	if (fs.f_type != MAGIC_XFS && fs.f_type != MAGIC_EXT4) {
		r = err_set(e, ERR_UNSUPPORTED,
			    "limit the writable layer by quota: the store is neither on ext4 nor on xfs");
		return err_hint(e, r,
				"use backing=loop or backing=tmpfs, or set CARREL_STORE to a directory on ext4 or xfs");
	}
	r = quota_call(dir, Q_XGETQSTATV, 0, &st);
	if (r == -ENOSYS) {
		r = err_set(e, ERR_UNSUPPORTED, "limit the writable layer by quota: this kernel has none for %s",
			    fs.f_type == MAGIC_XFS ? "xfs" : "ext4");
		return err_hint(e, r,
				"needs Linux 5.14 with CONFIG_QUOTA, CONFIG_QFMT_V2, CONFIG_XFS_QUOTA; or use "
				"backing=loop");
	}
	if (r == -EPERM)
		return err_hint(e, err_sys(e, r, "look at the quotas of the store"),
				"run as root, or use backing=tmpfs");
	if (r < 0 || !(st.qs_flags & FS_QUOTA_PDQ_ENFD))
		return not_enforced(fs.f_type, r < 0 ? 0 : st.qs_flags, e);
	return 0;
}

int quota_limit(int dir, uint32_t project, uint64_t bytes, uint64_t inodes, struct err *e)
{
	struct fs_disk_quota q = {
		.d_version = FS_DQUOT_VERSION,
		.d_flags = FS_PROJ_QUOTA,
		.d_fieldmask = FS_DQ_BHARD | FS_DQ_BSOFT | FS_DQ_IHARD | FS_DQ_ISOFT,
		.d_id = project,
		.d_blk_hardlimit = bytes / BASIC_BLOCK,
		.d_ino_hardlimit = inodes,
	};
	int r = quota_call(dir, Q_XSETQLIM, project, &q);

	return r < 0 ? err_sys(e, r, "set the limits of project %u", project) : 0;
}

int quota_inodes(int dir, uint32_t project, uint64_t *ret, struct err *e)
{
	struct fs_disk_quota q = { .d_version = FS_DQUOT_VERSION };
	int r = quota_call(dir, Q_XGETQUOTA, project, &q);

	if (r == -ENOENT || r == -ESRCH) { /* never used */
		*ret = 0;
		return 0;
	}
	if (r < 0)
		return err_sys(e, r, "read the use of project %u", project);
	*ret = q.d_icount;
	return 0;
}

int quota_assign(int dir, uint32_t project, struct err *e)
{
	struct fsxattr attr;
	int r;

	if (ioctl(dir, FS_IOC_FSGETXATTR, &attr) < 0)
		return err_sys(e, -errno, "read the project of a directory");
	attr.fsx_projid = project;
	attr.fsx_xflags |= FS_XFLAG_PROJINHERIT;
	if (ioctl(dir, FS_IOC_FSSETXATTR, &attr) == 0)
		return 0;
	r = -errno;
	return err_sys(e, r == -ENOTTY ? -EOPNOTSUPP : r, "give a directory to project %u", project);
}

int quota_project(int dir, uint32_t *ret)
{
	struct fsxattr attr;

	if (ioctl(dir, FS_IOC_FSGETXATTR, &attr) < 0)
		return -errno;
	*ret = attr.fsx_xflags & FS_XFLAG_PROJINHERIT ? attr.fsx_projid : 0;
	return 0;
}
