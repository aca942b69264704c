#include "swarm/peer_answer.h"

namespace doppler::swarm {

Result<bool> PeerAnswer::on_head(const store::ResponseHead& head) {
  status_ = head.status;
  if (!has_content()) return false;
  if (!range_) return true;
  const std::string* field = head.find("content-range");
  const auto got = field ? store::parse_content_range(*field) : std::nullopt;
  if (!got || got->range != range_ || got->total != total_) {
    return fail(ErrorKind::kInvalidInput, "it answers with another range");
  }
  content_.reserve(most_bytes_);
  return true;
}

Result<void> PeerAnswer::on_body(std::span<const uint8_t> bytes) {
  if (bytes.size() > most_bytes_ - content_.size()) {
    return fail(ErrorKind::kInvalidInput, "it sends more bytes than it was asked for");
  }
  content_.insert(content_.end(), bytes.begin(), bytes.end());
  return {};
}

}  // namespace doppler::swarm
