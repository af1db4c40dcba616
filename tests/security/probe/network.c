/* SPDX-License-Identifier: Apache-2.0 */
/* network.c - The host's network and its sockets, and socket families nobody needs
 *
 * Theory of operation. The test listens on the host: a TCP port of its loopback, an abstract name as stream and as datagram, a name in its file
 * system. A family counts as open when anything but EAFNOSUPPORT comes back: EPERM says that its code was asked. */
#include "probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define FAMILIES_MAX 64 /* AF_MAX is 46 in Linux 6.18 */

static enum verdict try_connect(const char *address, int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	(void)inet_pton(AF_INET, address, &to.sin_addr);
	if (fd < 0)
		return untried("socket: %s", errno_name(errno));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return succeeded("%s port %d answers", address, port);
	if (errno == EINPROGRESS) {
		struct sockaddr_in peer;
		socklen_t size = sizeof(peer);

		(void)usleep(50000);
		if (getpeername(fd, (struct sockaddr *)&peer, &size) == 0 || strcmp(address, "127.0.0.1") != 0)
			return succeeded("%s port %d: a packet left", address, port);
		return harmless("refused");
	}
	return harmless("%s: %s", address, errno_name(errno));
}

static enum verdict host_loopback(void)
{
	return fact("PROBE_TCP") ? try_connect("127.0.0.1", atoi(fact("PROBE_TCP"))) : untried("no PROBE_TCP");
}

static enum verdict outside(void)
{
	static const char *const addresses[] = { "169.254.169.254", "192.0.2.1", "10.0.0.1" };
	enum verdict v = HARMLESS;

	for (size_t i = 0; i < COUNT(addresses) && v == HARMLESS; i++)
		v = try_connect(addresses[i], 80);
	return v;
}

static enum verdict interfaces(void)
{
	struct if_nameindex *list = if_nameindex();

	for (struct if_nameindex *i = list; i && i->if_index; i++)
		if (strcmp(i->if_name, "lo") != 0)
			return succeeded("interface %s", i->if_name);
	return list ? harmless("lo alone") : untried("if_nameindex: %s", errno_name(errno));
}

static enum verdict routes(void)
{
	char text[4096], *second;
	long n = read_text("/proc/net/route", text, sizeof(text));

	if (n <= 0)
		return harmless("no table");
	second = strchr(text, '\n');
	return second && second[1] ? succeeded("a route: %.60s", second + 1) : harmless("none");
}

static enum verdict try_abstract(int type)
{
	const char *name = fact("PROBE_ABSTRACT");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	if (!name || fd < 0)
		return untried("no PROBE_ABSTRACT or no socket");
	size += (socklen_t)snprintf(to.sun_path + 1, sizeof(to.sun_path) - 1, "%s-%d", name, type);
	if (connect(fd, (struct sockaddr *)&to, size) == 0)
		return succeeded("connected to @%s", to.sun_path + 1);
	if (type == SOCK_DGRAM && sendto(fd, "x", 1, 0, (struct sockaddr *)&to, size) == 1)
		return succeeded("sent to @%s", to.sun_path + 1);
	return harmless("@%s: %s", to.sun_path + 1, errno_name(errno));
}

static enum verdict abstract_stream(void) { return try_abstract(SOCK_STREAM); }
static enum verdict abstract_datagram(void) { return try_abstract(SOCK_DGRAM); }

/* --- Families ---------------------------------------------------------------------------------------------------------------- */

static enum verdict try_socket(int family, int type, int protocol)
{
	int fd = socket(family, type | SOCK_CLOEXEC, protocol);

	if (fd < 0 && errno == EAFNOSUPPORT)
		return harmless("socket(%d, %d, %d): EAFNOSUPPORT", family, type, protocol);
	return succeeded("socket(%d, %d, %d): %s", family, type, protocol, fd < 0 ? errno_name(errno) : "a socket");
}

static enum verdict af_alg(void) { return try_socket(38, SOCK_SEQPACKET, 0); }
static enum verdict af_vsock(void) { return try_socket(40, SOCK_STREAM, 0); }
static enum verdict af_packet(void) { return try_socket(17, SOCK_RAW, htons(3)); }
static enum verdict sctp(void) { return try_socket(AF_INET, SOCK_STREAM, 132); }
static enum verdict mptcp(void) { return try_socket(AF_INET, SOCK_STREAM, 262); }
static enum verdict dccp(void) { return try_socket(AF_INET, 6, 33); }

static enum verdict netlink_families(void)
{
	enum verdict v = HARMLESS;

	for (int protocol = 1; protocol < 32 && v == HARMLESS; protocol++)
		v = try_socket(AF_NETLINK, SOCK_RAW, protocol);
	return v;
}

static enum verdict socket_families(void)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET };
	enum verdict v = HARMLESS;

	for (int family = 0; family < FAMILIES_MAX; family++) {
		if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK)
			continue;
		for (size_t i = 0; i < COUNT(types) && v == HARMLESS; i++)
			v = try_socket(family, types[i], 0);
	}
	return v;
}

/* The high half of an argument is not read by the kernel, so hiding the family there must not help. */
static enum verdict families_with_high_bits(void)
{
	long r = syscall(__NR_socket, 40L | (1L << 32), (long)SOCK_STREAM, 0L);

	return r < 0 && errno == EAFNOSUPPORT ? harmless("EAFNOSUPPORT") : succeeded("%ld %s", r, errno_name(errno));
}

static enum verdict kernel_tls(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (setsockopt(fd, IPPROTO_TCP, 31 /* TCP_ULP */, "tls", 4) < 0 && errno == ENOPROTOOPT)
		return harmless("TCP_ULP: ENOPROTOOPT");
	return succeeded("TCP_ULP: %s", errno_name(errno));
}

static enum verdict packet_filter_tables(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (setsockopt(fd, IPPROTO_IP, 64 /* IPT_SO_SET_REPLACE */, NULL, 0) < 0 && errno == ENOPROTOOPT)
		return harmless("IPT_SO_SET_REPLACE: ENOPROTOOPT");
	return succeeded("IPT_SO_SET_REPLACE: %s", errno_name(errno));
}

/* --- Rights over the own network namespace, each of which opens kernel code ---------------------------------------------------- */

static enum verdict raw_socket(void)
{
	int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);

	return fd >= 0 ? succeeded("a raw socket") : harmless("%s", errno_name(errno));
}

static enum verdict make_interface(void)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg info;
		char attributes[64];
	} request = { .head = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)), .nlmsg_type = RTM_NEWLINK,
				.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		      .info = { .ifi_index = 1, .ifi_change = IFF_UP, .ifi_flags = IFF_UP } }; /* lo up, which it is */
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[256];
	} answer = { .error = { .error = 0 } };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0 || send(fd, &request, request.head.nlmsg_len, 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < 0)
		return untried("netlink: %s", errno_name(errno));
	return answer.error.error == 0 ? succeeded("lo can be configured") : harmless("%s", errno_name(-answer.error.error));
}

#define ROW(name_, answers_) { #name_, name_, 0, answers_ }
const struct attack network_attacks[] = {
	ROW(host_loopback, "the host's services"),
	ROW(outside, "metadata services, the local network"),
	ROW(interfaces, "the host's network"),
	ROW(routes, "the host's network"),
	ROW(abstract_stream, "abstract unix sockets"),
	ROW(abstract_datagram, "abstract unix sockets"),
	ROW(af_alg, "CVE-2026-31431"),
	ROW(af_vsock, "CVE-2021-26708, the hypervisor"),
	ROW(af_packet, "CVE-2017-7308, CVE-2020-14386"),
	ROW(sctp, "large protocol code"),
	ROW(dccp, "CVE-2017-6074"),
	ROW(mptcp, "large protocol code"),
	ROW(netlink_families, "CVE-2024-1086"),
	ROW(socket_families, "CVE-2021-43267"),
	ROW(families_with_high_bits, "as socket_families"),
	ROW(kernel_tls, "CVE-2023-0461"),
	ROW(packet_filter_tables, "CVE-2021-22555"),
	ROW(raw_socket, "forged packets"),
	ROW(make_interface, "traffic control, netfilter"),
	{ NULL, NULL, 0, NULL },
};
