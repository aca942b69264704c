// The tree: roots against values made by hand, proofs of every run, refusals. Each row is a size.
#include "swarm/tree.h"

#include <gtest/gtest.h>

namespace doppler::swarm {
namespace {

std::vector<Sha256> leaves_of(uint64_t bytes) {
  std::vector<Sha256> leaves(piece_count(bytes));
  for (size_t i = 0; i < leaves.size(); ++i) leaves[i] = leaf_of(text_bytes(std::to_string(i)));
  return leaves;
}

std::span<const uint8_t> as_bytes(const std::string& message) { return text_bytes(message); }

// Three pieces: H(2 | size | H(1 | H(1 | a | b) | c)), put together byte by byte.
TEST(Tree, TheRootIsThatOfTheDefinition) {
  const uint64_t bytes = 2 * kPieceBytes + 5;
  const auto leaves = leaves_of(bytes);
  const auto text = [](const Sha256& hash) { return std::string(hash.begin(), hash.end()); };
  const Sha256 left = sha256(text_bytes("\1" + text(leaves[0]) + text(leaves[1])));
  const Sha256 top = sha256(text_bytes("\1" + text(left) + text(leaves[2])));
  const std::string size{5, 0, 0x20, 0, 0, 0, 0, 0};
  EXPECT_EQ(PieceTree::make(bytes, leaves)->root(), sha256(text_bytes("\2" + size + text(top))));
  EXPECT_EQ(leaf_of(text_bytes("abc")), sha256(text_bytes(std::string("\0abc", 4))));
}

TEST(Tree, ProofsOfEveryRunLeadToTheRoot) {
  for (const uint64_t pieces :
       {1ull, 2ull, 3ull, 1023ull, 1024ull, 1025ull, 2048ull, 2049ull, 5000ull, 7 * 1024ull}) {
    const uint64_t bytes = pieces * kPieceBytes - 7;
    const auto tree = PieceTree::make(bytes, leaves_of(bytes));
    ASSERT_TRUE(tree);
    PieceHashes hashes(bytes, tree->root());
    for (uint64_t run = run_count(bytes); run-- > 0;) {
      const std::string proof = tree->proof(run);
      EXPECT_EQ(proof.size(), hashes.proof_bytes(run));
      EXPECT_FALSE(hashes.knows(run * kRunPieces));
      EXPECT_TRUE(hashes.take_proof(run, as_bytes(proof))) << pieces << " pieces, run " << run;
      EXPECT_TRUE(hashes.knows(run * kRunPieces));
      EXPECT_EQ(hashes.proof(run), proof);
    }
  }
}

TEST(Tree, AWrongProofIsRefusedAndLeavesNothing) {
  const uint64_t bytes = 2500 * kPieceBytes;
  const auto tree = PieceTree::make(bytes, leaves_of(bytes));
  PieceHashes hashes(bytes, tree->root());
  const std::string right = tree->proof(1);
  for (size_t at = 0; at < right.size(); at += right.size() / 50) {
    std::string wrong = right;
    wrong[at] = static_cast<char>(wrong[at] ^ 1);
    EXPECT_FALSE(hashes.take_proof(1, as_bytes(wrong))) << at;
  }
  EXPECT_FALSE(hashes.take_proof(0, as_bytes(right)));
  EXPECT_FALSE(hashes.take_proof(3, as_bytes(right)));
  EXPECT_FALSE(hashes.take_proof(1, as_bytes(right + right.substr(0, 32))));
  EXPECT_FALSE(hashes.take_proof(1, as_bytes(right.substr(32))));
  EXPECT_FALSE(hashes.take_proof(1, {}));
  EXPECT_FALSE(hashes.knows(1024));
  // The same leaves in a file of another size have another root.
  PieceHashes shorter(bytes - 1, tree->root());
  EXPECT_FALSE(shorter.take_proof(1, as_bytes(right)));
}

TEST(Tree, APieceIsJudgedByItsBytesAndItsPlace) {
  const std::string first(kPieceBytes, 'a'), last = "end";
  const uint64_t bytes = first.size() + last.size();
  const auto tree = PieceTree::make(bytes, {leaf_of(text_bytes(first)), leaf_of(text_bytes(last))});
  PieceHashes hashes(bytes, tree->root());
  ASSERT_TRUE(hashes.take_proof(0, as_bytes(tree->proof(0))));
  EXPECT_TRUE(hashes.is_right(1, text_bytes(last)));
  EXPECT_TRUE(hashes.is_right(0, text_bytes(first)));
  EXPECT_FALSE(hashes.is_right(0, text_bytes(last)));
  EXPECT_FALSE(hashes.is_right(1, text_bytes("eNd")));
  EXPECT_FALSE(hashes.is_right(1, text_bytes("end.")));
  EXPECT_FALSE(hashes.is_right(1, {}));
}

TEST(Tree, AnEmptyFileHasARootToo) {
  const auto tree = PieceTree::make(0, {leaf_of({})});
  ASSERT_TRUE(tree);
  PieceHashes hashes(0, tree->root());
  EXPECT_TRUE(hashes.take_proof(0, as_bytes(tree->proof(0))));
  EXPECT_TRUE(hashes.is_right(0, {}));
  EXPECT_FALSE(PieceTree::make(1, {}));
  EXPECT_FALSE(PieceTree::make(kMostFileBytes + 1, {}));
}

}  // namespace
}  // namespace doppler::swarm
