// The messages of multicast DNS (RFC 6762, RFC 6763) about `_doppler._tcp`: a question, and the answer of a machine
// that shares. They have an address, a port and the protocol's version, and no names of models and no keys. A stranger
// may send any message, so every function refuses what it does not understand.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/multicast.h"

namespace doppler::swarm {

inline constexpr size_t kMostMdnsBytes = 9000;  // RFC 6762, section 17

// A machine that shares.
struct MdnsService {
  uint64_t number = 0;  // as in its offers; its names contain it
  uint16_t port = 0;
  Ipv4 address{};
  bool operator==(const MdnsService&) const = default;
};

std::string mdns_question();

// A question to us. Empty: the message is no question, or it is about other services.
struct MdnsAsked {
  uint16_t id = 0;
  bool is_ours = false;       // the service's list, or one of this service's own names
  bool knows_us = false;      // the list of known answers has this service already
  std::string question = {};  // the questions as they came, for a reply to a simple resolver
  uint16_t questions = 0;
};
std::optional<MdnsAsked> parse_mdns_question(std::span<const uint8_t> message, const MdnsService& self);

// is_simple: the reply goes to a resolver that asked from another port than 5353. It repeats the question and has a
// short life.
std::string mdns_answer(const MdnsService& self, const MdnsAsked& asked, bool is_simple);

// Returns services with a port. It leaves the address empty, since only the sender's address counts.
std::vector<MdnsService> parse_mdns_answer(std::span<const uint8_t> message);

}  // namespace doppler::swarm
