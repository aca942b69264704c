// This machine's offers to peers, and its answers to their requests. Several threads may add and answer. Each file is
// held open, so that it may be renamed meanwhile. Only files that were added here are offered, and no message lists all
// files.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

#include "store/http_headers.h"
#include "store/http_listener.h"
#include "store/model_store.h"
#include "swarm/messages.h"
#include "swarm/tree.h"

namespace doppler::swarm {

// One file, whole or still arriving. Thread-safe.
class SharedFile {
 public:
  SharedFile(store::File file, PieceTree tree);                      // whole
  SharedFile(store::File file, uint64_t bytes, const Sha256& root);  // arriving: empty so far

  Offer offer() const;  // without the number of the peer
  std::optional<std::string> proof(uint64_t run) const;
  // Empty: the range is not all there.
  std::optional<store::FilePart> part(const store::ByteRange& range) const;
  uint64_t bytes() const { return bytes_; }

  // For an arriving file: the piece is being fetched, or is not any more.
  void set_coming(uint64_t piece, bool is_coming);
  // The piece is in the file and right.
  void add_piece(uint64_t piece);
  void add_proof(uint64_t run, std::string message);

 private:
  mutable std::mutex mutex_;
  store::File file_;
  uint64_t bytes_;
  Sha256 root_;
  std::optional<PieceTree> tree_;
  std::unordered_map<uint64_t, std::string> proofs_;  // of an arriving file
  PieceSet pieces_;
  std::set<uint64_t> coming_;
};

class Share {
 public:
  Share();
  uint64_t number() const { return number_; }  // the number in its offers (Offer::peer)
  void add_file(const Sha256& sha256, std::shared_ptr<SharedFile> file);
  void remove_file(const Sha256& sha256);
  void add_card(const Card& card);
  // Answers one request, for store::HttpListener.
  store::Reply answer(const store::RequestHead& head) const;
  uint64_t bytes_sent() const;  // the bytes of files in all answers
  uint64_t requests() const { return requests_; }

 private:
  std::shared_ptr<SharedFile> find(const Sha256& key) const;
  const uint64_t number_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<SharedFile>> files_;  // by sha256_hex() of the key
  std::unordered_map<std::string, std::string> cards_;
  mutable uint64_t bytes_sent_ = 0;
  mutable std::atomic<uint64_t> requests_ = 0;
};

struct ShareProgress {
  std::string file;
  uint64_t done = 0, total = 0;
};
// Adds all files of a stored model and its card. It reads each file once, and keeps the hashes in the folder `cache`
// for the next time, unless that is empty. Returns the card's identity. Error: a file differs from the record.
Result<Sha256> share_model(Share& share, const store::StoredModel& model, const std::string& cache,
                           const std::function<void(const ShareProgress&)>& on_progress);

}  // namespace doppler::swarm
