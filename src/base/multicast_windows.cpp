// multicast.h by Winsock.
#include "base/multicast.h"

// This stands before windows.h, which has an older version.
#include <winsock2.h>
#include <ws2tcpip.h>
// After it, since they use its types.
#include <iphlpapi.h>
#include <mswsock.h>

#include <cstring>

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
bool set(SocketNumber socket, int level, int name, const Value& value) {
  return ::setsockopt(static_cast<SOCKET>(socket), level, name, reinterpret_cast<const char*>(&value),
                      sizeof value) == 0;
}

// The system gives these two by their numbers.
template <class Function>
Function* extension(SOCKET socket, GUID number) {
  Function* found = nullptr;
  DWORD bytes = 0;
  ::WSAIoctl(socket, SIO_GET_EXTENSION_FUNCTION_POINTER, &number, sizeof number, &found, sizeof found, &bytes,
             nullptr, nullptr);
  return found;
}

Unexpected socket_error(const char* what) {
  return fail(ErrorKind::kIo, "%s: error %d of Winsock.", what, ::WSAGetLastError());
}

}  // namespace

std::vector<NetworkInterface> interfaces_of(const std::string& host) {
  std::vector<NetworkInterface> out;
  start_sockets();
  const bool is_all = host.empty() || host == "0.0.0.0" || host == "::";
  in_addr wanted{};
  if (!is_all && ::inet_pton(AF_INET, host == "localhost" ? "127.0.0.1" : host.c_str(), &wanted) != 1)
    return out;
  ULONG bytes = 64 << 10;
  std::vector<uint8_t> room(bytes);
  auto* list = reinterpret_cast<IP_ADAPTER_ADDRESSES*>(room.data());
  if (::GetAdaptersAddresses(AF_INET, GAA_FLAG_SKIP_DNS_SERVER, nullptr, list, &bytes) != NO_ERROR)
    return out;
  for (const IP_ADAPTER_ADDRESSES* at = list; at; at = at->Next) {
    if (at->OperStatus != IfOperStatusUp) continue;
    for (const IP_ADAPTER_UNICAST_ADDRESS* own = at->FirstUnicastAddress; own; own = own->Next) {
      const auto* address = reinterpret_cast<const sockaddr_in*>(own->Address.lpSockaddr);
      if (address->sin_family != AF_INET) continue;
      const uint32_t ones = own->OnLinkPrefixLength == 0 ? 0 : UINT32_MAX << (32 - own->OnLinkPrefixLength);
      NetworkInterface one{.index = static_cast<int>(at->IfIndex),
                           .address = ipv4_of(address->sin_addr.s_addr),
                           .mask = htonl(ones)};
      if (!is_all) {
        if (!one.is_near(ipv4_of(wanted.s_addr))) continue;
        one.address = ipv4_of(wanted.s_addr);
      } else if (!host.empty() && at->IfType == IF_TYPE_SOFTWARE_LOOPBACK) {
        continue;
      }
      out.push_back(one);
    }
  }
  return out;
}

Result<MulticastSocket> MulticastSocket::open() {
  start_sockets();
  const SOCKET socket =
      ::WSASocketW(AF_INET, SOCK_DGRAM, IPPROTO_UDP, nullptr, 0, WSA_FLAG_NO_HANDLE_INHERIT);
  if (socket == INVALID_SOCKET) return socket_error("No UDP socket can be opened");
  MulticastSocket out(static_cast<SocketNumber>(socket));
  const DWORD on = 1;
  u_long does_not_wait = 1;
  if (!set(out.socket_, IPPROTO_IP, IP_PKTINFO, on) ||
      !set(out.socket_, IPPROTO_IP, IP_MULTICAST_TTL, kMdnsHops) ||
      !set(out.socket_, IPPROTO_IP, IP_TTL, kMdnsHops) || ::ioctlsocket(socket, FIONBIO, &does_not_wait) != 0)
    return socket_error("A UDP socket cannot be set up for multicast");
  return out;
}

// The system wants every socket to have a port before it receives.
Result<MulticastSocket> MulticastSocket::open_simple() {
  DP_TRY(MulticastSocket out, open());
  const sockaddr_in any = socket_address({}, 0);
  if (::bind(static_cast<SOCKET>(out.socket_), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0)
    return socket_error("A UDP socket gets no port");
  return out;
}

Result<MulticastSocket> MulticastSocket::open_member(const std::vector<NetworkInterface>& interfaces) {
  DP_TRY(MulticastSocket out, open());
  const DWORD on = 1;
  const sockaddr_in any = socket_address({}, kMdnsPort);
  if (!set(out.socket_, SOL_SOCKET, SO_REUSEADDR, on) ||
      ::bind(static_cast<SOCKET>(out.socket_), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0)
    return socket_error("UDP port 5353 is not free for multicast DNS");
  bool is_member = false;
  for (const NetworkInterface& one : interfaces) {
    ip_mreq request{};
    request.imr_multiaddr.s_addr = ipv4_number(kMdnsGroup);
    request.imr_interface.s_addr = ipv4_number(one.address);
    is_member = set(out.socket_, IPPROTO_IP, IP_ADD_MEMBERSHIP, request) || is_member;
  }
  if (!is_member) return fail(ErrorKind::kIo, "No network interface takes part in multicast DNS.");
  return out;
}

MulticastSocket::~MulticastSocket() {
  if (socket_ >= 0) ::closesocket(static_cast<SOCKET>(socket_));
}

void MulticastSocket::send_to_all(const NetworkInterface& by, const std::string& message) {
  send_to(by, kMdnsGroup, kMdnsPort, message);
}

void MulticastSocket::send_to(const NetworkInterface& by, const Ipv4& address, uint16_t port,
                              const std::string& message) {
  const auto send =
      extension<std::remove_pointer_t<LPFN_WSASENDMSG>>(static_cast<SOCKET>(socket_), WSAID_WSASENDMSG);
  if (!send) return;
  sockaddr_in to = socket_address(address, port);
  WSABUF bytes{.len = static_cast<ULONG>(message.size()), .buf = const_cast<char*>(message.data())};
  alignas(WSACMSGHDR) char control[WSA_CMSG_SPACE(sizeof(IN_PKTINFO))] = {};
  WSAMSG head{};
  head.name = reinterpret_cast<sockaddr*>(&to);
  head.namelen = sizeof to;
  head.lpBuffers = &bytes;
  head.dwBufferCount = 1;
  head.Control = {.len = sizeof control, .buf = control};
  WSACMSGHDR* field = WSA_CMSG_FIRSTHDR(&head);
  field->cmsg_level = IPPROTO_IP;
  field->cmsg_type = IP_PKTINFO;
  field->cmsg_len = WSA_CMSG_LEN(sizeof(IN_PKTINFO));
  IN_PKTINFO info{};
  info.ipi_ifindex = static_cast<ULONG>(by.index);
  info.ipi_addr.s_addr = ipv4_number(by.address);
  std::memcpy(WSA_CMSG_DATA(field), &info, sizeof info);
  DWORD sent = 0;
  send(static_cast<SOCKET>(socket_), &head, 0, &sent, nullptr, nullptr);
}

std::optional<Datagram> MulticastSocket::receive(int milliseconds, size_t most_bytes) {
  const auto receive =
      extension<std::remove_pointer_t<LPFN_WSARECVMSG>>(static_cast<SOCKET>(socket_), WSAID_WSARECVMSG);
  WSAPOLLFD ready{.fd = static_cast<SOCKET>(socket_), .events = POLLRDNORM, .revents = 0};
  if (!receive || ::WSAPoll(&ready, 1, milliseconds) <= 0) return {};
  Datagram out;
  out.bytes.resize(most_bytes);
  sockaddr_in from{};
  WSABUF bytes{.len = static_cast<ULONG>(most_bytes), .buf = reinterpret_cast<char*>(out.bytes.data())};
  alignas(WSACMSGHDR) char control[256] = {};
  WSAMSG head{};
  head.name = reinterpret_cast<sockaddr*>(&from);
  head.namelen = sizeof from;
  head.lpBuffers = &bytes;
  head.dwBufferCount = 1;
  head.Control = {.len = sizeof control, .buf = control};
  DWORD count = 0;
  if (receive(static_cast<SOCKET>(socket_), &head, &count, nullptr, nullptr) != 0) return {};
  out.bytes.resize(count);
  out.from = ipv4_of(from.sin_addr.s_addr);
  out.port = ntohs(from.sin_port);
  for (WSACMSGHDR* field = WSA_CMSG_FIRSTHDR(&head); field; field = WSA_CMSG_NXTHDR(&head, field)) {
    if (field->cmsg_level != IPPROTO_IP || field->cmsg_type != IP_PKTINFO) continue;
    IN_PKTINFO info{};
    std::memcpy(&info, WSA_CMSG_DATA(field), sizeof info);
    out.via = static_cast<int>(info.ipi_ifindex);
  }
  return out;
}

}  // namespace doppler
