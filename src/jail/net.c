/* SPDX-License-Identifier: Apache-2.0 */
/* net.c - A network namespace that holds a loopback interface and nothing else
 *
 * Theory of operation. Making a network namespace is the dearest step of a start (300 us of 600 for all seven), so another task makes it
 * while the caller does the rest, and clones the sandbox into it. A veth was rejected: deleting one takes 15 ms, and every packet that leaves is one more thing to
 * filter. What a sandbox may reach beyond loopback goes through egress, connection by connection. */
#include "jail/net.h"

#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/sys.h"

int net_lo_up(struct err *e)
{
	struct ifreq req = { .ifr_name = "lo" };
	int s, r;

	s = (int)sys_call3(__NR_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s < 0)
		return err_sys(e, s, "open a socket in the new network namespace");
	req.ifr_flags = IFF_UP | IFF_RUNNING;
	r = (int)sys_call3(__NR_ioctl, s, SIOCSIFFLAGS, &req);
	(void)sys_close(s);
	return r < 0 ? err_sys(e, r, "bring up the loopback interface") : 0;
}

int net_make_here(struct err *e)
{
	int r = sys_unshare(CLONE_NEWNET);

	return r < 0 ? err_sys(e, r, "make a network namespace") : 0;
}

int net_furnish(struct err *e)
{
	int r = net_lo_up(e);

	if (r < 0)
		return r;
	r = fd_write_file_at(AT_FDCWD, "/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
	return r < 0 ? err_sys(e, r, "open the low ports of a network namespace") : 0;
}
