/* SPDX-License-Identifier: Apache-2.0 */
/* sock.c - One packet in, one packet out, with its descriptors
 *
 * Theory of operation. The only file of the wire that does I/O. Runs in init and in libcarrel, on both ends of a SOCK_SEQPACKET
 * socket, so that the kernel keeps packets apart, a packet arrives whole or not at all, and descriptors arrive with the packet that
 * they belong to.
 *
 * Receiving takes whatever the kernel delivers into a packet first and judges it second: recvmsg() installs descriptors whatever
 * else is wrong, and one that is forgotten would be an attacker's way to fill our table. From then on every failure path is
 * msg_packet_done(), which closes them.
 *
 * A large body comes as a memfd. It is mapped, not read, so that the sender's memory is used and not init's, which has a small
 * cgroup. That is safe only because of the seals: without F_SEAL_SHRINK the sender could truncate the file under the mapping
 * (SIGBUS), without F_SEAL_WRITE it could change bytes that were checked. The seals are asked for before anything else touches the
 * descriptor, since only memory files have them: on a file of a hung network mount any other call might block. hugetlbfs has
 * seals too but may fail a page fault with SIGBUS, hence the look at the file system's type.
 *
 * One form per meaning: a body up to MSG_INLINE_MAX is never in a memfd, a larger one always. */
#include "wire/sock.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/fd.h"

/* No byte and no size may change any more, and the list of seals neither. */
#define BODY_SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

/* Room for one SCM_RIGHTS message of MSG_FDS_MAX descriptors; the kernel drops what does not fit and sets MSG_CTRUNC. */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * MSG_FDS_MAX)];
};

void msg_packet_done(struct msg_packet *p)
{
	for (size_t i = 0; i < p->num_fds; i++)
		close_p(&p->fds[i]);
	if (p->mapped > 0)
		(void)munmap(p->storage, p->mapped); /* a range that mmap() gave us */
	else
		free(p->storage);
	*p = (struct msg_packet){ 0 };
}

/* musl's CMSG_NXTHDR compares a size with a pointer difference, which clang reports where the macro is used. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"

/* Move every descriptor of @h into @p; false if there were more than a packet may have. */
static bool packet_take_fds(struct msg_packet *p, struct msghdr *h)
{
	bool ok = true;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
			auto_close int fd = -EBADF;

			memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
			if (p->num_fds < MSG_FDS_MAX)
				p->fds[p->num_fds++] = take_fd(fd);
			else
				ok = false;
		}
	}
	return ok;
}

#pragma GCC diagnostic pop

/* Map the body that the first descriptor holds, and drop that descriptor. */
static int packet_map_body(struct msg_packet *p)
{
	auto_close int fd = -EBADF;
	struct statfs fs;
	struct stat st;
	void *map;
	int seals;

	if (p->num_fds == 0)
		return -EPROTO;
	fd = p->fds[0];
	memmove(&p->fds[0], &p->fds[1], --p->num_fds * sizeof(p->fds[0]));
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & BODY_SEALS) != BODY_SEALS)
		return -EPROTO;
	if (fstat(fd, &st) < 0 || st.st_size != (off_t)p->h.len)
		return -EPROTO;
	if (fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
		return -EPROTO;
	/* Private: before Linux 6.7 a write-sealed file cannot be mapped shared, not even for reading. */
	map = mmap(NULL, p->h.len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return errno == ENOMEM ? -ENOBUFS : -EPROTO;
	free(p->storage);
	p->storage = map;
	p->mapped = p->h.len;
	p->body = WIRE_IN(p->storage, p->h.len);
	return 0;
}

/* Check what arrived against its own header and find its body. */
static int packet_open(struct msg_packet *p, size_t len)
{
	int r = msg_header_get(p->storage, len, &p->h);

	if (r < 0)
		return r;
	if (!(p->h.flags & MSG_BODY_IN_FD) != (p->h.len <= MSG_INLINE_MAX))
		return -EPROTO;
	if (p->h.flags & MSG_BODY_IN_FD)
		return len == MSG_HEADER_SIZE ? packet_map_body(p) : -EPROTO;
	if (len - MSG_HEADER_SIZE != p->h.len)
		return -EPROTO;
	p->body = WIRE_IN(p->storage + MSG_HEADER_SIZE, p->h.len);
	return 0;
}

/* Bytes of the packet that is next; 0 at the end. Return: negative errno. */
static ssize_t packet_length(int sock, int flags)
{
	ssize_t n;

	do
		n = recv(sock, NULL, 0, flags | MSG_PEEK | MSG_TRUNC);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET)); /* see msg_recv() */
	return n < 0 ? -errno : n;
}

int msg_recv(int sock, int flags, struct msg_packet *ret)
{
	auto_(msg_packet_done) struct msg_packet p = { 0 };
	union control control = { 0 };
	struct iovec iov;
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control };
	ssize_t n;
	int r;

	*ret = (struct msg_packet){ 0 };
	n = packet_length(sock, flags);
	if (n < 0)
		return (int)n;
	/* No more than that: memory for the largest packet would be mapped and unmapped each time. */
	iov.iov_len = MIN((size_t)n + 1, MSG_HEADER_SIZE + MSG_INLINE_MAX);
	iov.iov_base = p.storage = malloc(iov.iov_len);
	if (!p.storage)
		return -ENOMEM;
	/* A peer that closed with our packets unread leaves ECONNRESET, once, in front of those that it had sent: these count. */
	do {
		h.msg_controllen = sizeof(control);
		n = recvmsg(sock, &h, flags | MSG_CMSG_CLOEXEC);
	} while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0)
		return -errno;
	if (!packet_take_fds(&p, &h) || h.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EPROTO;
	if (n == 0) /* an empty packet looks the same as the end, and is treated so */
		return p.num_fds > 0 ? -EPROTO : 0;
	r = packet_open(&p, (size_t)n);
	if (r < 0)
		return r;
	*ret = p;
	p = (struct msg_packet){ 0 };
	return 1;
}

/* A sealed memfd that holds @body. Return: descriptor or negative errno. */
static int body_seal(const struct buf *body)
{
	auto_close int fd = memfd_create("carrel-message", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return -errno;
	r = fd_write_full(fd, body->p, body->len);
	if (r < 0)
		return r;
	if (fcntl(fd, F_ADD_SEALS, BODY_SEALS) < 0)
		return -errno;
	return take_fd(fd);
}

static void control_put(struct msghdr *h, union control *control, const int *fds, size_t num_fds)
{
	struct cmsghdr *c = &control->align;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = (socklen_t)CMSG_LEN(num_fds * sizeof(int));
	memcpy(CMSG_DATA(c), fds, num_fds * sizeof(int));
	h->msg_control = control;
	h->msg_controllen = (socklen_t)CMSG_SPACE(num_fds * sizeof(int));
}

int msg_send(int sock, enum msg_type type, uint32_t serial, const struct buf *body, const int *fds, size_t num_fds,
	     int flags)
{
	struct msg_header head = { .type = (uint16_t)type, .serial = serial };
	unsigned char head_bytes[MSG_HEADER_SIZE];
	struct iovec iov[2] = { { head_bytes, sizeof(head_bytes) } };
	struct msghdr h = { .msg_iov = iov, .msg_iovlen = 1 };
	union control control = { 0 };
	auto_close int memfd = -EBADF;
	int all[MSG_FDS_MAX];
	size_t num_all = 0;
	size_t len = body ? body->len : 0;

	if (body && body->r < 0)
		return body->r;
	if (len > msg_max(type))
		return -EMSGSIZE;
	if (len > MSG_INLINE_MAX) {
		memfd = body_seal(body);
		if (memfd < 0)
			return memfd;
		head.flags = MSG_BODY_IN_FD;
		all[num_all++] = memfd;
	} else if (len > 0) {
		iov[1] = (struct iovec){ body->p, len };
		h.msg_iovlen = 2;
	}
	if (num_fds > MSG_FDS_MAX - num_all)
		return -EINVAL;
	if (num_fds > 0)
		memcpy(all + num_all, fds, num_fds * sizeof(*fds));
	num_all += num_fds;
	if (num_all > 0)
		control_put(&h, &control, all, num_all);
	head.len = (uint32_t)len;
	msg_header_put(head_bytes, &head);
	while (sendmsg(sock, &h, flags | MSG_NOSIGNAL) < 0) {
		if (errno != EINTR)
			return errno == ECONNRESET ? -EPIPE : -errno;
	}
	return 0;
}
