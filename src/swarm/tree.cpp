#include "swarm/tree.h"

#include <algorithm>
#include <cstring>

namespace doppler::swarm {
namespace {

constexpr size_t kHashBytes = sizeof(Sha256);
constexpr uint8_t kLeafMark = 0, kNodeMark = 1, kRootMark = 2;

Sha256 node_of(const Sha256& left, const Sha256& right) {
  Sha256Hasher hasher;
  hasher.update({&kNodeMark, 1});
  hasher.update(left);
  hasher.update(right);
  return hasher.finish();
}

Sha256 root_of(uint64_t bytes, const Sha256& top) {
  uint8_t size[8];
  for (int i = 0; i < 8; ++i) size[i] = static_cast<uint8_t>(bytes >> (8 * i));
  Sha256Hasher hasher;
  hasher.update({&kRootMark, 1});
  hasher.update(size);
  hasher.update(top);
  return hasher.finish();
}

std::vector<Sha256> level_above(std::span<const Sha256> level) {
  std::vector<Sha256> above;
  above.reserve((level.size() + 1) / 2);
  for (size_t i = 0; i + 1 < level.size(); i += 2) above.push_back(node_of(level[i], level[i + 1]));
  if (level.size() % 2 == 1) above.push_back(level.back());
  return above;
}

Sha256 top_of(std::span<const Sha256> level) {
  std::vector<Sha256> above(level.begin(), level.end());
  while (above.size() > 1) above = level_above(above);
  return above[0];
}

// Calls `take` for each neighbour on the way to the top, from node `at` of a level with `count` nodes. is_left: it is
// the left neighbour.
template <class Take>
void climb(uint64_t at, uint64_t count, Take take) {
  for (; count > 1; at /= 2, count = (count + 1) / 2) {
    if ((at ^ 1) < count) take(/*is_left=*/at % 2 == 1);
  }
}

uint64_t pieces_of_run(uint64_t bytes, uint64_t run) {
  return std::min(kRunPieces, piece_count(bytes) - run * kRunPieces);
}

}  // namespace

uint64_t piece_count(uint64_t bytes) {
  return std::max<uint64_t>(1, (bytes + kPieceBytes - 1) / kPieceBytes);
}

uint64_t run_count(uint64_t bytes) { return (piece_count(bytes) + kRunPieces - 1) / kRunPieces; }

uint64_t piece_size(uint64_t bytes, uint64_t piece) {
  return std::min(kPieceBytes, bytes - piece * kPieceBytes);
}

Sha256 leaf_of(std::span<const uint8_t> piece) {
  Sha256Hasher hasher;
  hasher.update({&kLeafMark, 1});
  hasher.update(piece);
  return hasher.finish();
}

Result<PieceTree> PieceTree::make(uint64_t bytes, std::vector<Sha256> leaves) {
  if (bytes > kMostFileBytes) {
    return fail(ErrorKind::kInvalidInput, "A file of %llu bytes is too large to be shared; at most are %llu.",
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(kMostFileBytes));
  }
  if (leaves.size() != piece_count(bytes)) {
    return fail(ErrorKind::kInvalidInput, "A file of %llu bytes has %llu pieces, but %zu hashes were given.",
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(piece_count(bytes)),
                leaves.size());
  }
  PieceTree tree;
  tree.bytes_ = bytes;
  tree.leaves_ = std::move(leaves);
  for (uint64_t run = 0; run < run_count(bytes); ++run) {
    tree.runs_.push_back(
        top_of(std::span(tree.leaves_).subspan(run * kRunPieces, pieces_of_run(bytes, run))));
  }
  tree.root_ = root_of(bytes, top_of(tree.runs_));
  return tree;
}

std::string PieceTree::proof(uint64_t run) const {
  const auto leaves = std::span(leaves_).subspan(run * kRunPieces, pieces_of_run(bytes_, run));
  std::string message(reinterpret_cast<const char*>(leaves.data()), leaves.size_bytes());
  uint64_t at = run;
  for (std::vector<Sha256> level = runs_; level.size() > 1; at /= 2, level = level_above(level)) {
    if ((at ^ 1) >= level.size()) continue;
    message.append(reinterpret_cast<const char*>(level[at ^ 1].data()), kHashBytes);
  }
  return message;
}

PieceHashes::PieceHashes(uint64_t bytes, const Sha256& root)
    : bytes_(bytes), root_(root), proofs_(run_count(bytes)) {}

uint64_t PieceHashes::proof_bytes(uint64_t run) const {
  uint64_t hashes = pieces_of_run(bytes_, run);
  climb(run, proofs_.size(), [&](bool) { ++hashes; });
  return hashes * kHashBytes;
}

bool PieceHashes::take_proof(uint64_t run, std::span<const uint8_t> message) {
  if (run >= proofs_.size() || message.size() != proof_bytes(run)) return false;
  std::vector<Sha256> hashes(message.size() / kHashBytes);
  std::memcpy(hashes.data(), message.data(), message.size());
  const uint64_t leaves = pieces_of_run(bytes_, run);
  Sha256 top = top_of(std::span(hashes).first(leaves));
  size_t next = leaves;
  climb(run, proofs_.size(), [&](bool is_left) {
    const Sha256& neighbour = hashes[next++];
    top = is_left ? node_of(neighbour, top) : node_of(top, neighbour);
  });
  if (root_of(bytes_, top) != root_) return false;
  proofs_[run].assign(reinterpret_cast<const char*>(message.data()), message.size());
  return true;
}

bool PieceHashes::is_right(uint64_t piece, std::span<const uint8_t> content) const {
  if (content.size() != piece_size(bytes_, piece)) return false;
  const Sha256 leaf = leaf_of(content);
  return std::memcmp(proofs_[piece / kRunPieces].data() + (piece % kRunPieces) * kHashBytes, leaf.data(),
                     kHashBytes) == 0;
}

}  // namespace doppler::swarm
