// The pool of blocks and its tiers: references, prefixes, the order of reuse, copy on write, the host's cache.
#include "engine/scheduler/block_pool.h"

#include <gtest/gtest.h>

#include "engine/scheduler/block_tiers.h"
#include "engine/scheduler/test_sequence_runner.h"

namespace doppler::engine {
namespace {

using Blocks = std::vector<uint32_t>;

constexpr PrefixSecret kSecret = {.low = 0x0706050403020100ull, .high = 0x0F0E0D0C0B0A0908ull};

std::vector<uint32_t> counting(uint32_t from, uint32_t count) {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < count; ++i) out.push_back(from + i);
  return out;
}

void expect_sound(const BlockPool& pool) {
  const Result<void> sound = pool.check();
  EXPECT_TRUE(sound) << sound.error().message();
}

// Takes a block for each key and publishes it.
Blocks publish_all(BlockPool& pool, std::span<const PrefixKey> keys) {
  Blocks blocks;
  for (const PrefixKey& key : keys) {
    blocks.push_back(pool.take()->block);
    pool.publish(blocks.back(), key);
  }
  return blocks;
}

void release_all(BlockPool& pool, const Blocks& blocks) {
  for (size_t i = blocks.size(); i-- > 0;) pool.release(blocks[i]);
}

// The secret is that of the vectors of the reference implementation; `openssl mac -macopt size:16 SIPHASH` gives the
// same.
TEST(PrefixKey, IsSipHash128) {
  const struct {
    uint32_t words;
    PrefixKey key;
  } vectors[] = {
      {0, {0xE6A825BA047F81A3ull, 0x930255C71472F66Dull}},
      {1, {0xAF8F9C2DC16481F8ull, 0x7955CD7B7C6E0F7Dull}},
      {2, {0x61F55862BAA9623Bull, 0xB49714F364E2830Full}},
      {3, {0x58F35E9066B226D6ull, 0x25C13285F64D6382ull}},
  };
  const uint32_t words[] = {0x03020100, 0x07060504, 0x0B0A0908};
  for (const auto& vector : vectors)
    EXPECT_EQ(siphash_128(kSecret, std::span(words).first(vector.words)), vector.key) << vector.words;
}

TEST(PrefixKey, DependsOnAllThatKeysAndValuesDependOn) {
  const BlockPool pool(1, 2, kSecret), other_secret(1, 2, {.low = 1});
  const std::vector<uint32_t> tokens = {1, 2, 3, 4, 5};
  const auto keys = pool.keys_of(tokens, {});
  ASSERT_EQ(keys.size(), 2u) << "full blocks only";
  const std::vector<uint32_t> other_first = {9, 2, 3, 4}, other_last = {1, 2, 3, 9}, extras = {0};
  EXPECT_NE(pool.keys_of(other_first, {})[1], keys[1]);
  EXPECT_EQ(pool.keys_of(other_last, {})[0], keys[0]);
  EXPECT_NE(pool.keys_of(other_last, {})[1], keys[1]);
  EXPECT_NE(pool.keys_of(tokens, extras)[0], keys[0]);
  EXPECT_NE(other_secret.keys_of(tokens, {})[0], keys[0]);
  EXPECT_EQ(pool.key_of(keys[0], std::span(tokens).subspan(2, 2)), keys[1]);
  EXPECT_EQ(pool.key_of(pool.root_key({}), std::span(tokens).first(2)), keys[0]);
}

TEST(BlockPool, GivesEachBlockOnceAndTakesItBack) {
  BlockPool pool(3, 4, kSecret);
  EXPECT_EQ(pool.take()->block, 0u);
  EXPECT_EQ(pool.take()->block, 1u);
  EXPECT_EQ(pool.take()->block, 2u);
  EXPECT_FALSE(pool.take());
  pool.share(1);
  pool.release(1);
  EXPECT_FALSE(pool.take()) << "still held once";
  pool.release(1);
  EXPECT_EQ(pool.free_count(), 1u);
  EXPECT_EQ(pool.take()->block, 1u);
  expect_sound(pool);
}

TEST(BlockPool, FindsTheLongestPublishedPrefix) {
  BlockPool pool(8, 4, kSecret);
  const auto keys = pool.keys_of(counting(0, 14), {});
  const Blocks blocks = publish_all(pool, keys);
  EXPECT_EQ(pool.find_prefix(keys), blocks) << "also while they are held";
  EXPECT_EQ(pool.references(blocks[0]), 2u);
  release_all(pool, blocks);
  release_all(pool, blocks);
  EXPECT_EQ(pool.free_count(), 8u);
  std::vector<uint32_t> text = counting(0, 14);
  text[9] = 99;  // the third block differs
  EXPECT_EQ(pool.find_prefix(pool.keys_of(text, {})), (Blocks{blocks[0], blocks[1]}));
  EXPECT_EQ(pool.free_count(), 6u);
  text[0] = 99;
  EXPECT_TRUE(pool.find_prefix(pool.keys_of(text, {})).empty());
  expect_sound(pool);
}

TEST(BlockPool, ReusesTheLeastRecentlyUsedPrefixAndItsEndFirst) {
  BlockPool pool(4, 1, kSecret);
  const auto old = pool.keys_of(counting(0, 2), {}), young = pool.keys_of(counting(10, 2), {});
  const Blocks old_blocks = publish_all(pool, old), young_blocks = publish_all(pool, young);
  release_all(pool, old_blocks);
  release_all(pool, young_blocks);
  release_all(pool, pool.find_prefix(old));  // used again: now the other is older
  for (const PrefixKey& expected : {young[1], young[0], old[1], old[0]}) {
    const auto taken = pool.take();
    ASSERT_TRUE(taken && taken->evicted);
    EXPECT_EQ(*taken->evicted, expected);
    expect_sound(pool);
  }
  EXPECT_TRUE(pool.find_prefix(old).empty());
}

TEST(BlockPool, TakesEmptyBlocksBeforeCachedOnes) {
  BlockPool pool(2, 1, kSecret);
  const auto keys = pool.keys_of(counting(0, 1), {});
  release_all(pool, publish_all(pool, keys));
  EXPECT_FALSE(pool.take()->evicted);
  EXPECT_EQ(pool.find_prefix(keys).size(), 1u);
}

TEST(BlockPool, TheSecondBlockOfAPrefixStaysUnpublished) {
  BlockPool pool(3, 1, kSecret);
  const auto keys = pool.keys_of(counting(0, 1), {});
  const Blocks first = publish_all(pool, keys), second = publish_all(pool, keys);
  EXPECT_FALSE(pool.published(second[0]));
  release_all(pool, second);
  EXPECT_EQ(pool.find_prefix(keys), first);
  expect_sound(pool);
}

TEST(BlockPool, WritesOnlyToBlocksOfOneHolder) {
  const auto tokens = counting(0, 1);
  {  // its own and not published: no copy
    BlockPool pool(2, 1, kSecret);
    const uint32_t own = pool.take()->block;
    const auto writable = pool.make_writable(own);
    EXPECT_TRUE(writable && writable->block == own && !writable->copy);
  }
  {  // shared: a copy, and the others keep theirs
    BlockPool pool(2, 1, kSecret);
    const uint32_t shared = pool.take()->block;
    pool.share(shared);
    const auto writable = pool.make_writable(shared);
    ASSERT_TRUE(writable);
    EXPECT_NE(writable->block, shared);
    EXPECT_TRUE(writable->copy);
    EXPECT_EQ(pool.references(shared), 1u);
    expect_sound(pool);
  }
  {  // published: a copy, and the prefix stays findable
    BlockPool pool(2, 1, kSecret);
    const auto keys = pool.keys_of(tokens, {});
    const Blocks blocks = publish_all(pool, keys);
    const auto writable = pool.make_writable(blocks[0]);
    EXPECT_TRUE(writable && writable->block != blocks[0] && writable->copy);
    EXPECT_EQ(pool.find_prefix(keys), blocks);
    expect_sound(pool);
  }
  {  // published, and the only one that is free then: the prefix is given up
    BlockPool pool(1, 1, kSecret);
    const auto keys = pool.keys_of(tokens, {});
    const Blocks blocks = publish_all(pool, keys);
    const auto writable = pool.make_writable(blocks[0]);
    EXPECT_TRUE(writable && writable->block == blocks[0] && !writable->copy && writable->evicted == keys[0]);
    EXPECT_TRUE(pool.find_prefix(keys).empty());
    expect_sound(pool);
  }
  {  // shared, and no block is free: the caller keeps its block
    BlockPool pool(1, 1, kSecret);
    const uint32_t shared = pool.take()->block;
    pool.share(shared);
    EXPECT_FALSE(pool.make_writable(shared));
    EXPECT_EQ(pool.references(shared), 2u);
    expect_sound(pool);
  }
}

TEST(BlockPool, CheckFindsABlockGivenBackTwice) {
  BlockPool pool(2, 1, kSecret);
  const uint32_t block = pool.take()->block;
  pool.release(block);
  expect_sound(pool);
  pool.release(block);
  EXPECT_FALSE(pool.check());
}

TEST(HostCache, KeepsTheRecentlyUsedWithinItsBudget) {
  const PrefixKey a{1, 0}, b{2, 0}, c{3, 0}, big{4, 0};
  HostCache cache(10);
  cache.put(a, std::vector<uint8_t>(4, 1));
  cache.put(b, std::vector<uint8_t>(4, 2));
  ASSERT_TRUE(cache.find(a));
  cache.put(c, std::vector<uint8_t>(4, 3));  // b was used longest ago
  EXPECT_TRUE(cache.contains(a));
  EXPECT_FALSE(cache.contains(b));
  EXPECT_EQ(cache.find(c)->front(), 3);
  EXPECT_EQ(cache.used_bytes(), 8u);
  cache.put(big, std::vector<uint8_t>(11, 4));
  EXPECT_FALSE(cache.contains(big));
  EXPECT_EQ(cache.used_bytes(), 8u) << "what can never fit displaces nothing";
  cache.put(a, std::vector<uint8_t>(4, 9));
  EXPECT_EQ(cache.find(a)->front(), 1) << "equal keys are equal content";
}

TEST(BlockTiers, WhatLeavesThePoolComesBackFromTheHost) {
  for (const uint64_t budget : {0u, 1u << 20}) {
    testing::TestSequenceRunner runner({.block_len = 2, .blocks = 2});
    BlockTiers tiers(runner, kSecret, budget);
    const auto keys = tiers.pool().keys_of(counting(0, 4), {});
    release_all(tiers.pool(), publish_all(tiers.pool(), keys));
    const Blocks held = {*tiers.take(), *tiers.take()};
    EXPECT_EQ(runner.reads, budget > 0 ? 2u : 0u);
    ASSERT_TRUE(tiers.settle());
    EXPECT_EQ(tiers.in_host(keys), 0u) << "the device has not answered yet";
    runner.arrive();
    ASSERT_TRUE(tiers.settle());
    EXPECT_EQ(tiers.in_host(keys), budget > 0 ? 2u : 0u);
    release_all(tiers.pool(), held);
    if (budget == 0) continue;
    ASSERT_TRUE(tiers.restore(keys[0]));
    EXPECT_EQ(tiers.pool().find_prefix(keys).size(), 1u);
    EXPECT_EQ(runner.writes, 1u);
    ASSERT_TRUE(tiers.settle());
    expect_sound(tiers.pool());
  }
}

TEST(BlockTiers, ACopySavesThePrefixItDisplaces) {
  testing::TestSequenceRunner runner({.block_len = 2, .blocks = 2});
  BlockTiers tiers(runner, kSecret, 1 << 20);
  const auto displaced = tiers.pool().keys_of(counting(10, 2), {}),
             kept = tiers.pool().keys_of(counting(0, 2), {});
  release_all(tiers.pool(), publish_all(tiers.pool(), displaced));
  const Blocks blocks = publish_all(tiers.pool(), kept);
  const auto own = tiers.make_writable(blocks[0]);
  ASSERT_TRUE(own);
  EXPECT_NE(*own, blocks[0]);
  EXPECT_EQ(runner.copies, 1u);
  runner.arrive();
  ASSERT_TRUE(tiers.settle());
  EXPECT_EQ(tiers.in_host(displaced), 1u);
  EXPECT_EQ(tiers.pool().find_prefix(kept), blocks);
  const auto none = tiers.take();
  EXPECT_FALSE(none) << "both are held now";
}

}  // namespace
}  // namespace doppler::engine
