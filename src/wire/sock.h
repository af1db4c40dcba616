/* SPDX-License-Identifier: Apache-2.0 */
/* sock.h - One packet in, one packet out, with its descriptors */
#pragma once

#include "wire/msg.h"

/**
 * struct msg_packet - A received packet
 * @h:       Header, checked
 * @body:    Reader over the body
 * @fds:     Descriptors, O_CLOEXEC, without the one that carried the body
 * @num_fds: How many
 * @storage: Private
 *
 * msg_packet_done() closes the descriptors that were not taken (take_fd()) and frees the body.
 */
struct msg_packet {
	struct msg_header h;
	struct wire_in body;
	int fds[MSG_FDS_MAX];
	size_t num_fds;
	unsigned char *storage;
	size_t mapped; /* bytes of a mapped body, else 0 */
};

/* msg_packet_done() - Release what was not taken. Accepts a zeroed packet. */
void msg_packet_done(struct msg_packet *p);

/**
 * msg_recv() - Receive one packet
 * @sock:  SOCK_SEQPACKET socket; whether it waits is the socket's own mode or @flags (MSG_DONTWAIT)
 * @ret:   Zeroed on entry by this call
 *
 * Descriptors beyond MSG_FDS_MAX, a truncated packet, a bad header, an unsealed body: -EPROTO, everything closed. The same when this
 * process's descriptor table is full, since the kernel then drops descriptors: a packet is lost either way.
 * Return: 1 for a packet; 0 at end of file; -EAGAIN, -ENOMEM: nothing was received, try again; -EPROTO; -ENOBUFS: a packet was
 * received and there is no memory to map its body; other negative errno
 */
must_check int msg_recv(int sock, int flags, struct msg_packet *ret);

/**
 * msg_send() - Send one packet
 * @sock:    SOCK_SEQPACKET socket
 * @type:    enum msg_type
 * @serial:  Of the request, 0 for an event
 * @body:    May be NULL; its sticky failure is returned. Over MSG_INLINE_MAX it goes into a sealed memfd
 * @fds:     Borrowed; duplicated by the kernel
 * @num_fds: At most MSG_FDS_MAX, less one if the body needs a memfd
 * @flags:   MSG_DONTWAIT or 0
 *
 * Return: 0; -EAGAIN if the peer does not read (with MSG_DONTWAIT); -EPIPE if it is gone; -EMSGSIZE if the body is over msg_max();
 * -EINVAL for too many descriptors; other negative errno
 */
must_check int msg_send(int sock, enum msg_type type, uint32_t serial, const struct buf *body, const int *fds,
			size_t num_fds, int flags);
