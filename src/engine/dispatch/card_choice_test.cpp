// The choice of a card, and the guess at what its cache has.
#include "engine/dispatch/card_choice.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/dispatch/card_prefixes.h"

namespace doppler::engine {
namespace {

constexpr uint32_t kPiece = CardPrefixes::kPieceTokens;

std::vector<uint32_t> pieces(uint32_t count, uint32_t first = 1) {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < count * kPiece; ++i) out.push_back(first + i % 91);
  return out;
}

CardState card(uint32_t places, uint32_t streams, int32_t priority = 0) {
  CardState out{.places = places};
  out.streams[static_cast<size_t>(priority)] = streams;
  return out;
}

std::optional<size_t> choose(const std::vector<CardState>& cards, uint32_t prompt,
                             std::vector<uint32_t> known, int32_t priority = 0) {
  return choose_card(cards, priority, prompt, known);
}

TEST(CardChoice, TheLeastLoadedCardGetsIt) {
  EXPECT_EQ(choose({card(4, 2), card(4, 1)}, 100, {0, 0}), 1u);
  EXPECT_EQ(choose({card(4, 1), card(4, 1)}, 100, {0, 0}), 0u);
}

TEST(CardChoice, ACachedBeginningDrawsItUnlessTheCardHasManyMoreStreams) {
  const uint32_t prompt = 3 * kTokensOfStream;
  EXPECT_EQ(choose({card(16, 0), card(16, 2)}, prompt, {0, prompt - 1}), 1u);
  EXPECT_EQ(choose({card(16, 0), card(16, 3)}, prompt, {0, prompt - 1}), 0u);
}

TEST(CardChoice, OnlyCardsWithAPlaceAreAsked) {
  EXPECT_EQ(choose({card(2, 2), card(2, 1)}, 5000, {4999, 0}), 1u);
  EXPECT_EQ(choose({card(2, 2), card(2, 2)}, 10, {0, 0}), std::nullopt);
  std::vector<CardState> one_lost = {card(2, 0), card(2, 1)};
  one_lost[0].is_lost = true;
  EXPECT_EQ(choose(one_lost, 10, {0, 0}), 1u);
}

TEST(CardChoice, StreamsOfALowerPriorityHaveNoPlaceBeforeIt) {
  EXPECT_EQ(choose({card(2, 2, 3), card(2, 2, 0)}, 10, {0, 0}, 3), 1u);
  EXPECT_EQ(choose({card(2, 2, 3), card(2, 2, 3)}, 10, {0, 0}, 3), std::nullopt);
}

TEST(CardPrefixes, AreKnownPieceByPiece) {
  const uint64_t tokens[] = {100 * kPiece, 100 * kPiece};
  CardPrefixes prefixes(tokens);
  const auto keys = prefixes.keys_of({}, pieces(4));
  ASSERT_EQ(keys.size(), 4u);
  prefixes.note(1, std::span(keys).first(3));
  EXPECT_EQ(prefixes.known_tokens(0, keys), 0u);
  EXPECT_EQ(prefixes.known_tokens(1, keys), 3 * kPiece);
  auto other = pieces(4);
  other[kPiece] = 7;  // the first token of the second piece
  EXPECT_EQ(prefixes.known_tokens(1, prefixes.keys_of({}, other)), kPiece);
  const uint32_t extras[] = {1};
  EXPECT_EQ(prefixes.known_tokens(1, prefixes.keys_of(extras, pieces(4))), 0u);
}

TEST(CardPrefixes, TheLeastRecentlyUsedLeaveFirstAndTextsLoseTheirEnds) {
  const uint64_t tokens[] = {4 * kPiece};
  CardPrefixes prefixes(tokens);
  const auto a = prefixes.keys_of({}, pieces(3)), b = prefixes.keys_of({}, pieces(2, 200));
  prefixes.note(0, a);
  prefixes.note(0, b);
  EXPECT_EQ(prefixes.known_tokens(0, a), 2 * kPiece);
  EXPECT_EQ(prefixes.known_tokens(0, b), 2 * kPiece);
  prefixes.note(0, a);
  EXPECT_EQ(prefixes.known_tokens(0, a), 3 * kPiece);
  EXPECT_EQ(prefixes.known_tokens(0, b), kPiece);
}

}  // namespace
}  // namespace doppler::engine
