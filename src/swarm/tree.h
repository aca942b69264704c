// A file as pieces of 1 MiB with a Merkle tree over the pieces. Only the root has to come from a trusted source. A peer
// that sends a piece also sends hashes that lead from it to the root, so pieces may come from anybody in any order.
//
// The tree is that of RFC 6962 (section 2.1) with SHA-256:
//   leaf = H(0 | piece)    node = H(1 | left | right)    a node without a right neighbour moves up unchanged
// The root also names the size, which fixes the shape:    root = H(2 | bytes, 64-bit little-endian | top)
// Hashes travel in runs of 1,024 pieces (1 GiB of the file): the leaves of a run, then the neighbours on the way up.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"

namespace doppler::swarm {

inline constexpr uint64_t kPieceBytes = 1ull << 20;
inline constexpr uint64_t kRunPieces = 1024;
inline constexpr uint64_t kMostFileBytes = 1ull << 42;  // 4 TiB: 128 MiB of leaves

uint64_t piece_count(uint64_t bytes);  // at least 1: an empty file has one empty piece
uint64_t run_count(uint64_t bytes);
uint64_t piece_size(uint64_t bytes, uint64_t piece);
Sha256 leaf_of(std::span<const uint8_t> piece);

// The tree of a file whose pieces are all known. It makes proofs.
class PieceTree {
 public:
  // leaves: one for each piece. Errors: another count; a file larger than kMostFileBytes.
  static Result<PieceTree> make(uint64_t bytes, std::vector<Sha256> leaves);

  uint64_t bytes() const { return bytes_; }
  const Sha256& root() const { return root_; }
  std::span<const Sha256> leaves() const { return leaves_; }
  // The message for one run, run < run_count(bytes()).
  std::string proof(uint64_t run) const;

 private:
  uint64_t bytes_ = 0;
  std::vector<Sha256> leaves_;
  std::vector<Sha256> runs_;  // the node over each run
  Sha256 root_{};
};

// The hashes of a file whose root is known. It takes proofs from strangers, and then judges pieces. It takes 32 bytes
// for each piece of the known runs.
class PieceHashes {
 public:
  // bytes <= kMostFileBytes.
  PieceHashes(uint64_t bytes, const Sha256& root);

  uint64_t bytes() const { return bytes_; }
  const Sha256& root() const { return root_; }
  // The size of every right message for this run.
  uint64_t proof_bytes(uint64_t run) const;
  // False: the message does not lead to the root, and the object keeps nothing of it.
  bool take_proof(uint64_t run, std::span<const uint8_t> message);
  bool knows(uint64_t piece) const { return !proofs_[piece / kRunPieces].empty(); }
  // The message that was taken, for other peers. Empty: none was taken yet.
  const std::string& proof(uint64_t run) const { return proofs_[run]; }
  // knows(piece) must hold.
  bool is_right(uint64_t piece, std::span<const uint8_t> content) const;

 private:
  uint64_t bytes_;
  Sha256 root_;
  std::vector<std::string> proofs_;
};

}  // namespace doppler::swarm
