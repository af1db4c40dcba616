/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - The first packet: what this sandbox's init shall do and with which descriptors
 *
 * Theory of operation. Waiting for CONFIG is the only time that init blocks: nothing of the sandbox runs yet, and if the warden dies the
 * socket ends and so does init. The order inside matters: descriptors first, then confinement, then the answer, so that WELCOME means
 * that every later exec inherits the policy. A CONFIG that cannot be done is answered with FAILED and init exits: there is no half way. */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "init/internal.h"

/* The next descriptor of @p if @flag is set, in the order that msg.h gives; -EBADF otherwise. */
static int config_fd(const struct msg_config *m, struct msg_packet *p, size_t *at, uint32_t flag)
{
	int fd;

	if (!(m->flags & flag))
		return -EBADF;
	fd = p->fds[*at];
	p->fds[(*at)++] = -EBADF;
	return fd;
}

static int config_listen(struct init *in, int fd)
{
	int flags;

	if (fd < 0)
		return 0;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
		(void)close(fd); /* see close_p() */
		return -errno;
	}
	return source_open(in, &in->listen, SOURCE_LISTEN, fd, EPOLLIN, NULL);
}

static int config_apply(struct init *in, const struct msg_config *m, struct msg_packet *p, struct err *e)
{
	uint32_t single = m->flags & (CONFIG_FD_LISTEN | CONFIG_FD_JOURNAL | CONFIG_FD_CGROUP2 | CONFIG_FD_PIDS1 |
				      CONFIG_FD_CPUACCT1 | CONFIG_FD_LOCK);
	size_t wanted = (size_t)__builtin_popcount(single) + m->tasks_fds;
	size_t at = 0;
	int r;

	if (p->num_fds != wanted)
		return err_set(e, ERR_PROTOCOL, "configure init: %zu descriptors came, %zu were announced", p->num_fds,
			       wanted);
	in->flags = m->flags;
	r = config_listen(in, config_fd(m, p, &at, CONFIG_FD_LISTEN));
	if (r < 0)
		return err_sys(e, r, "configure init: listen for clients");
	in->journal = config_fd(m, p, &at, CONFIG_FD_JOURNAL);
	in->cgroup2 = config_fd(m, p, &at, CONFIG_FD_CGROUP2);
	in->pids1 = config_fd(m, p, &at, CONFIG_FD_PIDS1);
	in->cpuacct1 = config_fd(m, p, &at, CONFIG_FD_CPUACCT1);
	for (in->num_tasks1 = 0; in->num_tasks1 < m->tasks_fds; in->num_tasks1++)
		in->tasks1[in->num_tasks1] = config_fd(m, p, &at, CONFIG_FD_TASKS1);
	in->lock = config_fd(m, p, &at, CONFIG_FD_LOCK);
	in->landlock = landlock_abi(m->flags);
	return confine_init(m->flags, e);
}

static int config_read(struct init *in, struct msg_packet *p, struct err *e)
{
	struct msg_config m;
	int r;

	if (p->h.type != MSG_CONFIG)
		return err_set(e, ERR_PROTOCOL, "configure init: %s came before CONFIG", msg_name(p->h.type));
	r = msg_config_get(p->body, &m);
	if (r < 0)
		return err_set(e, ERR_PROTOCOL, "configure init: malformed CONFIG");
	return config_apply(in, &m, p, e);
}

int config_receive(struct init *in, int sock)
{
	auto_(msg_packet_done) struct msg_packet p = { 0 };
	auto_buf struct buf body = BUF_INIT(MSG_INLINE_MAX);
	struct msg_welcome welcome = { .version = MSG_VERSION };
	struct client *owner = NULL;
	struct err e = { 0 };
	int r;

	if (fcntl(sock, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	r = msg_recv(sock, 0, &p);
	if (r <= 0)
		return r < 0 ? r : -ECONNREFUSED;
	r = config_read(in, &p, &e);
	if (r < 0) {
		msg_failed_put(&body, &e);
		(void)!msg_send(sock, MSG_FAILED, p.h.serial, &body, NULL, 0, MSG_DONTWAIT); /* init ends either way */
		return r;
	}
	r = client_new(in, sock, &owner);
	if (r < 0)
		return r;
	owner->owner = true;
	owner->greeted = true;
	welcome.landlock = in->landlock;
	msg_welcome_put(&body, &welcome);
	client_answer(in, owner, MSG_WELCOME, p.h.serial, &body, NULL);
	return 0;
}
