// The receiver of one request of a download: checks that the answer is the requested range, writes it to its place and
// notes it in the journal. Without a journal it takes the whole file from the beginning.
#pragma once

#include "store/files.h"
#include "store/journal.h"
#include "store/remote.h"

namespace doppler::store {

class PieceTransfer : public Receiver {
 public:
  struct Target {
    File& file;
    Journal* journal;  // null: the server has no ranges
    size_t piece;
    const Remote& remote;
    uint64_t& received;  // counted up
    Retries& retries;    // told of progress
  };
  explicit PieceTransfer(Target target);

  Request request(std::string bearer) const;
  Result<bool> on_head(const ResponseHead& head) override;
  Result<void> on_body(std::span<const uint8_t> bytes) override;

  size_t piece() const { return target_.piece; }
  uint64_t position() const { return position_; }
  int status() const { return status_; }
  // The reason of a failure: the exchange failed, the status is bad, or the end came before the last byte.
  std::optional<Failure> outcome(std::optional<Failure> of_exchange) const;

 private:
  Result<bool> check_part(const ResponseHead& head) const;
  Result<bool> check_whole(const ResponseHead& head) const;

  Target target_;
  uint64_t position_;  // in the file, of the next byte
  uint64_t end_;       // one past the last byte wanted; UINT64_MAX: not known
  int status_ = 0;
  std::optional<Failure> bad_status_;
};

}  // namespace doppler::store
