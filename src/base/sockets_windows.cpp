// sockets.h by Winsock.
#include "base/sockets.h"

// This stands before windows.h, which has an older version.
#include <winsock2.h>
#include <ws2tcpip.h>

namespace doppler {

bool start_sockets() {
  static const bool started = [] {
    WSADATA told{};
    return ::WSAStartup(MAKEWORD(2, 2), &told) == 0;
  }();
  return started;
}

std::string address_text(const sockaddr* address, int length) {
  char host[NI_MAXHOST];
  return ::getnameinfo(address, length, host, sizeof host, nullptr, 0, NI_NUMERICHOST) == 0 ? host
                                                                                            : "unknown";
}

uint16_t port_of(SocketNumber socket) {
  sockaddr_storage address{};
  int length = sizeof address;
  if (::getsockname(static_cast<SOCKET>(socket), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

void send_without_delay(SocketNumber socket) {
  const DWORD on = 1;
  ::setsockopt(static_cast<SOCKET>(socket), IPPROTO_TCP, TCP_NODELAY, reinterpret_cast<const char*>(&on),
               sizeof on);
}

void drain(SocketNumber socket) {
  char dropped[256];
  while (::recv(static_cast<SOCKET>(socket), dropped, sizeof dropped, 0) > 0) {
  }
}

void send_now(SocketNumber socket, std::string_view bytes) {
  ::send(static_cast<SOCKET>(socket), bytes.data(), static_cast<int>(bytes.size()), 0);
}

void end_sending(SocketNumber socket) { ::shutdown(static_cast<SOCKET>(socket), SD_SEND); }

}  // namespace doppler
