/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c - A file as a block device
 *
 * Theory of operation. Runs in the warden, as root of the host. The kernel names a free device (LOOP_CTL_GET_FREE)
 * without reserving it; LOOP_CONFIGURE then binds the file, its name and AUTOCLEAR in one step, and fails with EBUSY
 * if somebody else was faster. So we ask again. From that step on the device lives exactly as long as a descriptor or
 * a mount of it: there is no state in which a SIGKILL leaves one behind. LOOP_SET_FD with LOOP_SET_STATUS64 was
 * rejected for the gap between the two. */
#include "layers/loop.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/sys.h"

#define CONTROL "/dev/loop-control"
#define LOOP_MAJOR 7 /* kernel Documentation/admin-guide/devices.txt */

/* Lost races before we give up: with 200 starters at once each step is lost to a handful of others. */
#define TRIES 256

#define LOOP_PATH_MAX 24 /* "/dev/loop", seven digits (minor numbers have 20 bits), NUL */

static int open_control(struct err *e)
{
	int fd = sys_openat(AT_FDCWD, CONTROL, O_RDWR, 0), r;

	if (fd >= 0)
		return fd;
	if (fd == -ENOENT || fd == -ENXIO || fd == -ENODEV) {
		r = err_set(e, ERR_UNSUPPORTED, "make a loop device: there is no '%s'", CONTROL);
		return err_hint(e, r,
				"load the module: modprobe loop; in a container, lend it /dev/loop*; or use "
				"backing=tmpfs");
	}
	return err_hint(e, err_sys(e, fd, "open '%s'", CONTROL), "run as root, or use backing=tmpfs");
}

int loop_probe(struct err *e)
{
	auto_close int fd = open_control(e);

	return fd < 0 ? fd : 0;
}

static int is_loop(int device)
{
	struct stat st;

	if (fstat(device, &st) < 0)
		return -errno;
	return S_ISBLK(st.st_mode) && major(st.st_rdev) == LOOP_MAJOR ? 0 : -ENOTBLK;
}

/* One attempt. Return: descriptor; -EBUSY to try again; negative errno */
static int attach_once(int control, int file, const char *name, struct err *e)
{
	struct loop_config config = { .fd = (unsigned)file, .info = { .lo_flags = LO_FLAGS_AUTOCLEAR } };
	int n = ioctl(control, LOOP_CTL_GET_FREE), r;
	auto_close int device = -EBADF;
	char path[LOOP_PATH_MAX];

	if (n < 0)
		return err_sys(e, -errno, "find a free loop device");
	(void)snprintf(path, sizeof(path), "/dev/loop%d", n);
	device = sys_openat(AT_FDCWD, path, O_RDWR, 0);
	if (device == -ENOENT)
		return err_hint(e, err_sys(e, device, "open '%s'", path), "make it: mknod %s b 7 %d", path, n);
	if (device == -ENXIO) /* being freed; the next question names another */
		return -EBUSY;
	r = device < 0 ? device : is_loop(device);
	if (r < 0)
		return err_sys(e, r, "open '%s'", path);
	(void)snprintf((char *)config.info.lo_file_name, sizeof(config.info.lo_file_name), "%s", name);
	if (ioctl(device, LOOP_CONFIGURE, &config) == 0)
		return take_fd(device);
	r = -errno;
	if (r == -EBUSY)
		return r;
	if (r == -EINVAL || r == -ENOTTY)
		return err_hint(e, err_set(e, ERR_UNSUPPORTED, "configure '%s'", path),
				"needs Linux 5.8; use backing=tmpfs");
	return err_sys(e, r, "configure '%s'", path);
}

int loop_attach(int file, const char *name, struct err *e)
{
	auto_close int control = open_control(e);
	int r = control;

	if (r < 0)
		return r;
	for (int i = 0; i < TRIES; i++) {
		r = attach_once(control, file, name, e);
		if (r != -EBUSY)
			return r;
	}
	return err_sys(e, r, "take a loop device");
}
