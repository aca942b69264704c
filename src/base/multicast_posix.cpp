// multicast.h by POSIX calls.
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/multicast.h"

namespace doppler {
namespace {

sockaddr_in socket_address(const Ipv4& address, uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  out.sin_addr.s_addr = ipv4_number(address);
  return out;
}

template <class Value>
bool set(int socket, int level, int name, const Value& value) {
  return ::setsockopt(socket, level, name, &value, sizeof value) == 0;
}

}  // namespace

std::vector<NetworkInterface> interfaces_of(const std::string& host) {
  std::vector<NetworkInterface> out;
  const bool is_all = host.empty() || host == "0.0.0.0" || host == "::";
  in_addr wanted{};
  if (!is_all && ::inet_pton(AF_INET, host == "localhost" ? "127.0.0.1" : host.c_str(), &wanted) != 1)
    return out;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return out;
  for (const ifaddrs* at = list; at; at = at->ifa_next) {
    if (!at->ifa_addr || !at->ifa_netmask || at->ifa_addr->sa_family != AF_INET || !(at->ifa_flags & IFF_UP))
      continue;
    NetworkInterface one{
        .index = static_cast<int>(::if_nametoindex(at->ifa_name)),
        .address = ipv4_of(reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr.s_addr),
        .mask = reinterpret_cast<const sockaddr_in*>(at->ifa_netmask)->sin_addr.s_addr,
    };
    if (!is_all) {
      if (!one.is_near(ipv4_of(wanted.s_addr))) continue;
      one.address = ipv4_of(wanted.s_addr);
    } else if (!host.empty() && (at->ifa_flags & IFF_LOOPBACK)) {
      continue;
    }
    out.push_back(one);
  }
  ::freeifaddrs(list);
  return out;
}

Result<MulticastSocket> MulticastSocket::open() {
#ifdef __APPLE__
  const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
  if (socket >= 0) ::fcntl(socket, F_SETFD, FD_CLOEXEC);
#else
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
#endif
  if (socket < 0) return fail(ErrorKind::kIo, "No UDP socket can be opened: %s.", std::strerror(errno));
  MulticastSocket out(socket);
  const int on = 1;
  if (!set(socket, IPPROTO_IP, IP_PKTINFO, on) || !set(socket, IPPROTO_IP, IP_MULTICAST_TTL, kMdnsHops) ||
      !set(socket, IPPROTO_IP, IP_TTL, kMdnsHops)) {
    return fail(ErrorKind::kIo, "A UDP socket cannot be set up for multicast: %s.", std::strerror(errno));
  }
  return out;
}

Result<MulticastSocket> MulticastSocket::open_simple() { return open(); }

Result<MulticastSocket> MulticastSocket::open_member(const std::vector<NetworkInterface>& interfaces) {
  DP_TRY(MulticastSocket out, open());
  const int on = 1;
  const sockaddr_in any = socket_address({}, kMdnsPort);
  if (!set(out.socket_, SOL_SOCKET, SO_REUSEADDR, on) ||
      ::bind(out.socket_, reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) {
    return fail(ErrorKind::kIo, "UDP port %u is not free for multicast DNS: %s.", kMdnsPort,
                std::strerror(errno));
  }
  bool is_member = false;
  for (const NetworkInterface& one : interfaces) {
    ip_mreqn request{};
    request.imr_multiaddr.s_addr = ipv4_number(kMdnsGroup);
    request.imr_address.s_addr = ipv4_number(one.address);
    request.imr_ifindex = one.index;
    is_member = set(out.socket_, IPPROTO_IP, IP_ADD_MEMBERSHIP, request) || errno == EADDRINUSE || is_member;
  }
  if (!is_member) return fail(ErrorKind::kIo, "No network interface takes part in multicast DNS.");
  return out;
}

MulticastSocket::~MulticastSocket() {
  if (socket_ >= 0) ::close(socket_);
}

void MulticastSocket::send_to_all(const NetworkInterface& by, const std::string& message) {
  send_to(by, kMdnsGroup, kMdnsPort, message);
}

void MulticastSocket::send_to(const NetworkInterface& by, const Ipv4& address, uint16_t port,
                              const std::string& message) {
  sockaddr_in to = socket_address(address, port);
  iovec bytes{.iov_base = const_cast<char*>(message.data()), .iov_len = message.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(in_pktinfo))] = {};
  msghdr head{};
  head.msg_name = &to;
  head.msg_namelen = sizeof to;
  head.msg_iov = &bytes;
  head.msg_iovlen = 1;
  head.msg_control = control;
  head.msg_controllen = sizeof control;
  cmsghdr* field = CMSG_FIRSTHDR(&head);
  field->cmsg_level = IPPROTO_IP;
  field->cmsg_type = IP_PKTINFO;
  field->cmsg_len = CMSG_LEN(sizeof(in_pktinfo));
  in_pktinfo info{};
  info.ipi_ifindex = by.index;
  info.ipi_spec_dst.s_addr = ipv4_number(by.address);
  std::memcpy(CMSG_DATA(field), &info, sizeof info);
#ifdef __APPLE__
  constexpr int kFlags = MSG_DONTWAIT;
#else
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
#endif
  (void)::sendmsg(socket_, &head, kFlags);
}

std::optional<Datagram> MulticastSocket::receive(int milliseconds, size_t most_bytes) {
  pollfd ready{.fd = socket_, .events = POLLIN, .revents = 0};
  if (::poll(&ready, 1, milliseconds) <= 0) return {};
  Datagram out;
  out.bytes.resize(most_bytes);
  sockaddr_in from{};
  iovec bytes{.iov_base = out.bytes.data(), .iov_len = out.bytes.size()};
  alignas(cmsghdr) char control[256] = {};
  msghdr head{};
  head.msg_name = &from;
  head.msg_namelen = sizeof from;
  head.msg_iov = &bytes;
  head.msg_iovlen = 1;
  head.msg_control = control;
  head.msg_controllen = sizeof control;
  const ssize_t count = ::recvmsg(socket_, &head, MSG_DONTWAIT);
  if (count < 0 || (head.msg_flags & MSG_TRUNC) != 0) return {};
  out.bytes.resize(static_cast<size_t>(count));
  out.from = ipv4_of(from.sin_addr.s_addr);
  out.port = ntohs(from.sin_port);
  for (cmsghdr* field = CMSG_FIRSTHDR(&head); field; field = CMSG_NXTHDR(&head, field)) {
    if (field->cmsg_level != IPPROTO_IP || field->cmsg_type != IP_PKTINFO) continue;
    in_pktinfo info{};
    std::memcpy(&info, CMSG_DATA(field), sizeof info);
    out.via = info.ipi_ifindex;
  }
  return out;
}

}  // namespace doppler
