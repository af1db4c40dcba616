/* SPDX-License-Identifier: Apache-2.0 */
/* fd.c - Whole reads and writes, and small kernel files
 *
 * Theory of operation. Everything here also runs between clone and exec on shared memory, so it goes through base/sys.h and
 * neither reads nor writes errno. Kernel files (cgroupfs, /proc) take one write per value: a second write would be a second value. */
#include "base/fd.h"

#include <string.h>

#include "base/sys.h"

ssize_t fd_read_full(int fd, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = sys_read(fd, (char *)buf + done, len - done);

		if (n == -EINTR)
			continue;
		if (n < 0)
			return n;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int fd_write_full(int fd, const void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = sys_write(fd, (const char *)buf + done, len - done);

		if (n == -EINTR)
			continue;
		if (n < 0)
			return (int)n;
		if (n == 0) /* never for a file or a pipe; a driver that does it must not hold us for ever */
			return -EIO;
		done += (size_t)n;
	}
	return 0;
}

int fd_write_file_at(int dir, const char *path, const char *text)
{
	int fd = sys_openat(dir, path, O_WRONLY, 0);
	ssize_t n;

	if (fd < 0)
		return fd;
	do
		n = sys_write(fd, text, strlen(text));
	while (n == -EINTR);
	(void)sys_close(fd); /* nothing is buffered in a kernel file */
	return n < 0 ? (int)n : 0;
}

ssize_t fd_read_file_at(int dir, const char *path, char *buf, size_t size)
{
	int fd = sys_openat(dir, path, O_RDONLY, 0);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = fd_read_full(fd, buf, size);
	(void)sys_close(fd); /* opened for reading */
	if (n < 0)
		return n;
	if ((size_t)n == size)
		return -EFBIG;
	buf[n] = '\0';
	return n;
}

int fd_cloexec_from3(int fd)
{
	return sys_fcntl(fd, F_DUPFD_CLOEXEC, 3);
}
