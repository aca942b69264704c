// The progress of each piece of a download, in a small file beside the download, so that a later run goes on at the
// byte, also after kill -9. Bytes are written to the file before they are noted here, so every noted byte exists.
//
// On disk: a JSON object of one line, filled up with spaces to kJournalHead bytes, then for each piece how many
// of its bytes are written, as 64-bit little-endian numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "store/files.h"

namespace doppler::store {

inline constexpr uint64_t kJournalHead = 4096;
inline constexpr uint64_t kPieceBytes = 8ull << 20;  // usually; one range request each
inline constexpr uint64_t kLeastPieceBytes = 1 << 20;
inline constexpr uint64_t kMostFileBytes = 1ull << 46;  // 64 TiB: the table then has 32 MiB

struct JournalKey {
  uint64_t bytes = 0;
  std::string validator;         // of the server's file (remote.h); empty: it has none
  std::optional<Sha256> sha256;  // expected
  // A journal with larger pieces is cut into pieces of this size. One with smaller pieces keeps these. The size is
  // kPieceBytes divided by a power of two, and at least kLeastPieceBytes.
  uint64_t piece_bytes = kPieceBytes;
};

class Journal {
 public:
  // Opens or makes `path`. An earlier run's notes are kept if they are about the same file: same size, and the same
  // expected hash or validator. Without a hash, notes do not outlive a restart of the machine: the disk may then lack
  // bytes that were never flushed, and no check would notice. changed() says that notes were thrown away.
  static Result<Journal> open(const std::string& path, const JournalKey& key);

  bool changed() const { return changed_; }
  size_t pieces() const { return done_.size(); }
  uint64_t begin(size_t piece) const { return piece * key_.piece_bytes; }
  uint64_t size(size_t piece) const;
  uint64_t piece_bytes() const { return key_.piece_bytes; }
  uint64_t done(size_t piece) const { return done_[piece]; }
  uint64_t total_done() const;
  // Bytes from the beginning of the file without a gap.
  uint64_t contiguous() const;

  Result<void> note(size_t piece, uint64_t done);
  Result<void> reset();  // notes that no byte is there

 private:
  Journal(File file, JournalKey key) : file_(std::move(file)), key_(std::move(key)) {}
  Result<void> write(std::vector<uint64_t> done);
  Result<void> cut(const std::vector<uint64_t>& done, uint64_t piece_bytes);
  File file_;
  JournalKey key_;
  std::vector<uint64_t> done_;
  bool changed_ = false;
};

// For `list`: bytes noted in a journal, whatever file it is of; empty if it is none.
std::optional<uint64_t> journalled_bytes(const std::string& path);

}  // namespace doppler::store
