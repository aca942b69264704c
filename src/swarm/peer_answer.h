// Receives one answer of a peer. It keeps at most as many bytes as a right answer has. An error means that the peer
// does not follow the protocol.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "store/http_client.h"

namespace doppler::swarm {

using Clock = std::chrono::steady_clock;

class PeerAnswer : public store::Receiver {
 public:
  // range: the wanted range, of a file of `total` bytes. Empty: the whole text.
  PeerAnswer(uint64_t most_bytes, std::optional<store::ByteRange> range, uint64_t total)
      : most_bytes_(most_bytes), range_(range), total_(total) {}

  Result<bool> on_head(const store::ResponseHead& head) override;
  Result<void> on_body(std::span<const uint8_t> bytes) override;

  // False: the peer answered with a refusal, such as 404.
  bool has_content() const { return status_ == (range_ ? 206 : 200); }
  int status() const { return status_; }
  std::span<const uint8_t> content() const { return content_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(content_.data()), content_.size()}; }

 private:
  uint64_t most_bytes_;
  std::optional<store::ByteRange> range_;
  uint64_t total_;
  int status_ = 0;
  std::vector<uint8_t> content_;
};

}  // namespace doppler::swarm
