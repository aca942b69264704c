// UDP sockets for multicast DNS over IPv4: the interfaces, and questions and answers that leave by one interface.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/sockets.h"

namespace doppler {

using Ipv4 = std::array<uint8_t, 4>;

struct NetworkInterface {
  int index = 0;
  Ipv4 address{};
  uint32_t mask = 0;  // in network order
  bool is_near(const Ipv4& other) const;
};
// Lists interfaces that are up. host: an address to listen at. "0.0.0.0" and "::" mean all but the loopback; any other
// address means its interface. Empty: all interfaces, the loopback too.
std::vector<NetworkInterface> interfaces_of(const std::string& host);

struct Datagram {
  std::vector<uint8_t> bytes;
  Ipv4 from{};
  uint16_t port = 0;
  int via = 0;  // NetworkInterface::index
};

class MulticastSocket {
 public:
  // Opens a socket for answers: port 5353 beside other programs, as a member of the group on these interfaces.
  static Result<MulticastSocket> open_member(const std::vector<NetworkInterface>& interfaces);
  // Opens a socket for questions, at any port.
  static Result<MulticastSocket> open_simple();
  MulticastSocket(MulticastSocket&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  MulticastSocket& operator=(MulticastSocket&&) = delete;
  ~MulticastSocket();

  // It ignores errors, since the next question comes soon.
  void send_to_all(const NetworkInterface& by, const std::string& message);
  void send_to(const NetworkInterface& by, const Ipv4& address, uint16_t port, const std::string& message);
  // No value: no datagram of at most that size came within this time.
  std::optional<Datagram> receive(int milliseconds, size_t most_bytes);

 private:
  explicit MulticastSocket(SocketNumber socket) : socket_(socket) {}
  static Result<MulticastSocket> open();
  SocketNumber socket_;
};

std::string ipv4_text(const Ipv4& address);
// The four bytes as one number in network order, as systems have it.
uint32_t ipv4_number(const Ipv4& address);
Ipv4 ipv4_of(uint32_t number);

// The numbers of multicast DNS (RFC 6762).
inline constexpr uint16_t kMdnsPort = 5353;
inline constexpr Ipv4 kMdnsGroup = {224, 0, 0, 251};
inline constexpr int kMdnsHops = 255;

}  // namespace doppler
