// The choice of the next piece: how peers divide the pieces, and spare the first machine.
#include "swarm/piece_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace doppler::swarm {
namespace {

constexpr uint64_t kPieces = 24;

PieceSet set_of(std::initializer_list<uint64_t> pieces) {
  PieceSet set(kPieces);
  for (const uint64_t piece : pieces) set.add(piece);
  return set;
}
const PieceSet kAll(kPieces, true), kNone(kPieces);
const auto kEverything = [](uint64_t) { return true; };

std::set<uint64_t> choices(PieceChoice& choice, const PieceChoice::From& from) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 200; ++i) {
    if (const auto piece = choice.next(from, kEverything)) seen.insert(*piece);
  }
  return seen;
}

TEST(PieceChoice, PeersThatKnowEachOtherDivideThePieces) {
  std::vector<std::set<uint64_t>> firsts;
  for (uint64_t self = 1; self <= 6; ++self) {
    PieceChoice choice(kPieces, self, false);
    std::vector<PieceChoice::Fetching> others;
    for (uint64_t other = 1; other <= 6; ++other) {
      if (other != self) others.push_back({.peer = other, .has = kNone, .coming = {}});
    }
    choice.learn(others, 1);
    firsts.push_back(choices(choice, {.has = kAll}));
  }
  std::multiset<uint64_t> all;
  for (const auto& first : firsts) all.insert(first.begin(), first.end());
  EXPECT_EQ(all.size(), kPieces);
  EXPECT_EQ(std::set<uint64_t>(all.begin(), all.end()).size(), kPieces) << "each piece is one peer's";
}

TEST(PieceChoice, TheFirstMachineIsSparedWhatOthersHaveOrFetch) {
  PieceChoice choice(kPieces, 1, false);
  PieceSet has(kPieces);
  for (uint64_t piece = 0; piece < 20; ++piece) has.add(piece);
  const PieceChoice::Fetching others[] = {{.peer = 2, .has = has, .coming = {20, 21}}};
  choice.learn(others, 1);
  for (const uint64_t piece : choices(choice, {.has = kAll})) EXPECT_GE(piece, 22u);
  const auto is_open = [](uint64_t piece) { return piece < 22; };
  EXPECT_FALSE(choice.next({.has = kAll}, is_open));
  const auto from_silent = choice.next({.has = kAll, .is_worth_more = true}, is_open);
  ASSERT_TRUE(from_silent);
  EXPECT_GE(*from_silent, 20u) << "what is only under way before what others have";
  EXPECT_LT(*choice.next({.has = has}, is_open), 20u) << "the other peer gives what it has";
  EXPECT_FALSE(choice.next({.has = kAll, .is_source = true}, kEverything))
      << "a peer has all, so the source is not needed";
}

TEST(PieceChoice, TheRarestComesFirstAndInOrderTheFirst) {
  const PieceSet one = set_of({3, 7, 9}), two = set_of({3, 7}), three = set_of({7});
  const PieceChoice::Fetching others[] = {{.peer = 2, .has = one, .coming = {}},
                                          {.peer = 3, .has = two, .coming = {}},
                                          {.peer = 4, .has = three, .coming = {}}};
  PieceChoice rarest(kPieces, 1, false), in_order(kPieces, 1, true);
  rarest.learn(others, 0);
  in_order.learn(others, 0);
  EXPECT_EQ(rarest.next({.has = one}, kEverything), 9u);
  EXPECT_EQ(rarest.next({.has = two}, kEverything), 3u);
  EXPECT_EQ(in_order.next({.has = one}, kEverything), 3u);
  EXPECT_EQ(in_order.next({.has = one}, [](uint64_t piece) { return piece != 3; }), 7u);
  EXPECT_FALSE(in_order.next({.has = kNone}, kEverything));
}

}  // namespace
}  // namespace doppler::swarm
