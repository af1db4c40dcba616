/* SPDX-License-Identifier: Apache-2.0 */
/* init_box.h - Drive the real init over its control socket, as PID 1 of bare namespaces without a sandbox around it
 *
 * Theory of operation. Each test gets an init of its own in new pid, mount and (as root) user namespaces over the host's own root file system.
 * Every wait has a deadline of BOX_WAIT_MS, and a packet that is not what the test expects ends the test with both names. When the test is
 * over the init is killed and the kernel ends everything in its namespace. */
#pragma once

#include <sys/types.h>

#include "wire/sock.h"

#define BOX_WAIT_MS 20000

/** struct box - One init */
struct box {
	pid_t pid;
	int sock;          /* control socket */
	int listen_client; /* a connected later client, or -EBADF */
	uint32_t serial;
	uint32_t flags; /* CONFIG flags to start with; set before box_open() */
	int fds[MSG_FDS_MAX];
	size_t num_fds;
	uint32_t tasks_fds;
	const char *covered; /* path that is covered by another one inside, or NULL */
	const char *cover;
	char listen_path[64];
	bool shared_users; /* no user namespace */
};

/** struct seen - What a client was told about one exec */
struct seen {
	struct msg_started started;
	struct err failed; /* code ERR_NONE unless START failed */
	struct msg_ended ended;
	int fd; /* that came with STARTED */
	uint64_t ends[2];
	bool eof[2];
	unsigned num_ended;
};

void box_open(struct box *b);
void box_close(struct box *b);
/* box_connect() - A later client, greeted. Return: its socket. */
int box_connect(struct box *b);

void packet_send(int sock, enum msg_type type, uint32_t serial, struct buf *body, const int *fds, size_t num_fds);
/* packet_expect() - The next packet, which must be a @type. The caller frees it. */
struct msg_packet packet_expect(int sock, enum msg_type type);
/* packet_next() - The next packet of any type. Return: false at end of file. */
bool packet_next(int sock, struct msg_packet *ret);

/* start_send() - Send START and nothing more. */
void start_send(struct box *b, const struct msg_start *m, const int *fds, size_t num_fds);
/* start_wait() - Read packets until START is answered, and its exec has ended if @to_end. */
void start_wait(int sock, uint64_t exec, bool to_end, struct seen *s);
/* run() - Start @m with two spools and wait for its end. @out, @err: receive descriptors of the spools, or are NULL. */
void run(struct box *b, struct msg_start *m, struct seen *s, int *out, int *err);
/* request() - Send a request about one exec and expect the answer to be @want. */
void request(int sock, enum msg_type type, struct buf *body, enum msg_type want);
void request_ref(int sock, enum msg_type type, uint64_t exec, enum msg_type want);
/* spool_text() - Whole content; static memory of 64 KiB. */
const char *spool_text(int fd);
int spool_new(void);
