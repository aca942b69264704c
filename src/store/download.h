// One file from one address to the disk: several ranges side by side, each noted in a journal, the whole hashed on the
// way. Until it is complete it has another name, so that no reader can load a half:
//   <path>.part      the bytes so far, with holes        <path>.journal   which bytes are there (journal.h)
// The caller renames the one and removes the other, when all files of a model are there (store_writer.h).
#pragma once

#include <functional>
#include <string>

#include "base/sha256.h"
#include "store/piece_source.h"
#include "store/remote.h"

namespace doppler::store {

struct DownloadJob {
  std::string url;                // empty: only the peers have it; then bytes and sha256 are needed
  std::string path;               // of the complete file
  std::optional<uint64_t> bytes;  // expected; empty: whatever the server says
  std::optional<Sha256> sha256;   // expected
};

struct DownloadOptions {
  uint32_t connections = 4;
  PieceSource* peers = nullptr;  // asked first, if the hash of the file is known
  std::function<void(uint64_t done, uint64_t total)> on_progress;  // total 0: not known
  std::function<void(const std::string& line)> on_notice;          // what the user should know
};

struct Downloaded {
  uint64_t bytes = 0;
  Sha256 sha256{};
  bool is_verified = false;     // against a hash that was expected
  uint64_t resumed_bytes = 0;   // were there from an earlier run
  uint64_t received_bytes = 0;  // from the address
  uint64_t peer_bytes = 0;
};

// Leaves <path>.part complete. A complete file is hashed again and not fetched again. Errors keep what has
// arrived, except a wrong hash: then the file is fetched once more, and after that thrown away.
// ErrorKind::kCancelled: options().stop of the web was set.
Result<Downloaded> download(Web& web, const DownloadJob& job, const DownloadOptions& options);

// The sentence if `bytes` more do not fit on the disk of this folder.
Result<void> check_space(const std::string& folder, uint64_t bytes, const std::string& what);

}  // namespace doppler::store
