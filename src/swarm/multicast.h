// UDP sockets for multicast DNS over IPv4: the interfaces, and questions and answers that leave by an interface.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "swarm/mdns_message.h"

namespace doppler::swarm {

struct Interface {
  int index = 0;
  Ipv4 address{};
  uint32_t mask = 0;  // in network order
  bool is_near(const Ipv4& other) const;
};
// Those that are up. host: an address to listen at; "0.0.0.0" and "::" mean all but the loopback, another one only its
// own interface with this address. Empty: all, the loopback too.
std::vector<Interface> interfaces_of(const std::string& host);

struct Datagram {
  std::vector<uint8_t> bytes;
  Ipv4 from{};
  uint16_t port = 0;
  int interface = 0;
};

class MulticastSocket {
 public:
  // For answers: port 5353, beside other programs, as a member of the group on these interfaces.
  static Result<MulticastSocket> open_member(const std::vector<Interface>& interfaces);
  // For questions: any port.
  static Result<MulticastSocket> open_simple();
  MulticastSocket(MulticastSocket&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  MulticastSocket& operator=(MulticastSocket&&) = delete;
  ~MulticastSocket();

  // Errors of sending are none: the next question comes soon.
  void send_to_all(const Interface& by, const std::string& message);
  void send_to(const Interface& by, const Ipv4& address, uint16_t port, const std::string& message);
  // Nothing: no datagram came within this time.
  std::optional<Datagram> receive(int milliseconds);

 private:
  explicit MulticastSocket(int socket) : socket_(socket) {}
  static Result<MulticastSocket> open();
  int socket_;
};

std::string ipv4_text(const Ipv4& address);

}  // namespace doppler::swarm
