// The few calls on sockets that libevent does not have. A socket's number has libevent's type evutil_socket_t.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

struct sockaddr;

namespace doppler {

#ifdef _WIN32
using SocketNumber = intptr_t;
#else
using SocketNumber = int;
#endif

// To be called before any other: the system may need to prepare. False: there are no sockets.
bool start_sockets();
// "127.0.0.1", "::1"; "unknown" if it is no address of the Internet.
std::string address_text(const sockaddr* address, int length);
uint16_t port_of(SocketNumber socket);  // 0: it has none
void send_without_delay(SocketNumber socket);
// Reads and drops what has come, without waiting; the socket must not be one that waits.
void drain(SocketNumber socket);
// Sends what fits at once, and never ends the program.
void send_now(SocketNumber socket, std::string_view bytes);
// Nothing more is sent; the other side may still send.
void end_sending(SocketNumber socket);

}  // namespace doppler
