// sockets.h by POSIX calls.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/sockets.h"

namespace doppler {

bool start_sockets() { return true; }

std::string address_text(const sockaddr* address, int length) {
  char host[NI_MAXHOST];
  return ::getnameinfo(address, static_cast<socklen_t>(length), host, sizeof host, nullptr, 0,
                       NI_NUMERICHOST) == 0
             ? host
             : "unknown";
}

uint16_t port_of(SocketNumber socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

void send_without_delay(SocketNumber socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void drain(SocketNumber socket) {
  char dropped[256];
  while (::recv(socket, dropped, sizeof dropped, 0) > 0) {
  }
}

void send_now(SocketNumber socket, std::string_view bytes) {
#ifdef __APPLE__
  constexpr int kFlags = 0;  // ignore_closed_pipes() holds for the server
#else
  constexpr int kFlags = MSG_NOSIGNAL;
#endif
  [[maybe_unused]] const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), kFlags);
}

void end_sending(SocketNumber socket) { ::shutdown(socket, SHUT_WR); }

}  // namespace doppler
