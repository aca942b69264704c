// Tests the sentences about a model that does not fit a device.
#include <gtest/gtest.h>

#include "formats/synth/synthetic_model.h"
#include "formats/test_helpers.h"
#include "model/load_estimate.h"
#include "model/recurrent_states.h"
#include "model/split_plan.h"

namespace doppler::model {
namespace {

TEST(MemoryEstimate, WhatCannotBeHeldOrBoundIsRefusedWithTheContextThatFits) {
  constexpr uint64_t kMiB = 1 << 20;
  gpu::Caps caps;
  caps.adapter = "card";
  caps.memory_bytes = 1024 * kMiB;
  caps.max_binding_bytes = caps.max_buffer_bytes = 128 * kMiB;
  const auto message = [&](uint64_t weights, uint32_t ctx_len) {  // 1 layer, 1 KiB a position and side
    const uint64_t side = ctx_len * 1024ull;
    const MemoryEstimate plan{.weight_bytes = weights, .cache_bytes = 2 * side, .cache_buffer_bytes = side};
    const auto checked = check_memory(plan, caps, ctx_len);
    return checked ? std::string() : checked.error().message();
  };
  EXPECT_EQ(message(kMiB, 1024), "");
  EXPECT_EQ(message(kMiB, 131072), "");
  EXPECT_EQ(message(kMiB, 131073 + 1023),
            "A context of 132096 tokens makes each layer's cache two buffers of 129.0 MiB, but card binds at "
            "most 128.0 MiB; "
            "131072 tokens would fit (--ctx).");
  EXPECT_EQ(message(kMiB, 1 << 20),
            "The model needs 2.00 GiB (weights 1.00 MiB, cache for 1048576 tokens 2.00 GiB, scratch 0 B), "
            "but card has 1.00 "
            "GiB. A context of 131072 tokens would fit (--ctx).");
  EXPECT_EQ(message(2048 * kMiB, 1024),
            "The model needs 2.00 GiB (weights 2.00 GiB, cache for 1024 tokens 2.00 MiB, scratch 0 B), but "
            "card has 1.00 GiB. "
            "A smaller or more strongly quantised model is needed.");
  MemoryEstimate plan{.weight_bytes = 2048 * kMiB};
  plan.smaller = {{"q8_0", 1500 * kMiB}, {"q4_k", 900 * kMiB}, {"q2_k", 500 * kMiB}};
  EXPECT_EQ(check_memory(plan, caps, 1024).error().message(),
            "The model needs 2.00 GiB (weights 2.00 GiB, cache for 1024 tokens 0 B, scratch 0 B), but card "
            "has 1.00 GiB. Quantised to q4_k it would need 900.0 MiB (doppler convert --quantize q4_k).");
}

TEST(LoadEstimate, AChunkHasAsManyRowsAsTheDeviceBinds) {
  formats::ModelConfig config;  // Gemma 2 27B: 512 rows of gates and ups are 144 MiB
  config.ctx_len = 8192;
  config.n_layers = 1;
  config.n_heads = 32;
  config.n_kv_heads = 16;
  config.head_dim = 128;
  config.ffn_dim = 36864;
  const auto chunk = [&](uint64_t binding, uint32_t asked, uint32_t sequences) {
    gpu::Caps caps;
    caps.max_binding_bytes = binding << 20;
    RunnerOptions options{.chunk = asked, .max_sequences = sequences};
    fill_defaults(options, config, caps);
    return options.chunk;
  };
  EXPECT_EQ(chunk(2048, 0, 0), kDefaultChunk);
  EXPECT_EQ(chunk(144, 0, 0), kDefaultChunk);
  EXPECT_EQ(chunk(128, 0, 0), 256u);
  EXPECT_EQ(chunk(144, 0, 8), 256u);
  EXPECT_EQ(chunk(1, 0, 0), kLeastChunk);
  EXPECT_EQ(chunk(128, 512, 0), 512u);  // asked for: recording says what is too large
}

TEST(LoadEstimate, LearnedPositionsEndTheContext) {
  formats::ModelConfig config;
  config.ctx_len = 512;
  const auto filled = [&](uint32_t ctx_len) {
    RunnerOptions options{.ctx_len = ctx_len};
    fill_defaults(options, config, {});
    return options.ctx_len;
  };
  EXPECT_EQ(filled(513), 513u);  // a model that rotates is only warned of
  config.n_token_types = 2;
  EXPECT_EQ(filled(511), 511u);
  EXPECT_EQ(filled(513), 512u);
}

TEST(MemoryEstimate, RingsHoldTheWindowAndAChunk) {
  formats::ModelConfig config;
  EXPECT_EQ(ring_positions(config, 32768, 512), 0u);
  config.sliding_window = 512;
  EXPECT_EQ(ring_positions(config, 32768, 512), 1024u);
  EXPECT_EQ(ring_positions(config, 1025, 512), 1024u);
  EXPECT_EQ(ring_positions(config, 1024, 512), 0u);  // the context is no longer
  config.sliding_window = 128;
  EXPECT_EQ(ring_positions(config, 32768, 512), 640u);
}

std::unique_ptr<formats::Checkpoint> open(const char* shape) {
  return formats::must(formats::run_now(formats::open_checkpoint(
      formats::synthetic_file_set(formats::must(formats::SyntheticModel::make(shape))))));
}

// Checkpoints of states, at most an eighth, and the pool share the memory that the weights leave.
TEST(LoadEstimate, CheckpointsOfStatesLeaveRoomForThePool) {
  const auto checkpoint = open("qwen3.5-0.8b:q4_k_m");
  const formats::ModelConfig config = formats::must(formats::read_config(*checkpoint));
  const uint64_t of_one = state_bytes(config);
  ASSERT_GT(of_one, uint64_t{10} << 20);
  const auto checkpoints = [&](uint64_t memory) {
    gpu::Caps caps;
    caps.memory_bytes = memory;
    caps.max_binding_bytes = caps.max_buffer_bytes = uint64_t{2} << 30;
    RunnerOptions options{.ctx_len = 4096, .chunk = 512, .max_sequences = 4};
    EXPECT_TRUE(fill_pool(options, config, *checkpoint, caps));
    EXPECT_GT(options.pool_tokens, 0u);
    return options.checkpoints;
  };
  EXPECT_EQ(checkpoints(0), 4u);
  EXPECT_EQ(checkpoints(uint64_t{64} << 30), 8u);
  gpu::Caps caps;
  RunnerOptions options{.ctx_len = 4096, .chunk = 512, .max_sequences = 4, .block_len = kDefaultBlockLen};
  const uint64_t taken =
      estimate_of(options, config, *checkpoint, caps, {.ctx_len = kDefaultBlockLen}).total();
  EXPECT_EQ(checkpoints(taken + 8 * 3 * of_one), 3u);
  EXPECT_EQ(checkpoints(taken + 8 * 3 * of_one - 1), 2u);
}

// Room for adapters comes before the pool, which takes what is left of the memory.
TEST(LoadEstimate, ThePoolLeavesRoomForAdapters) {
  const auto checkpoint = open("qwen3.5-0.8b:q4_k_m");
  const formats::ModelConfig config = formats::must(formats::read_config(*checkpoint));
  gpu::Caps caps;
  caps.memory_bytes = uint64_t{1} << 30;
  caps.max_binding_bytes = caps.max_buffer_bytes = uint64_t{2} << 30;
  const auto pool = [&](uint32_t slots) {
    RunnerOptions options{.ctx_len = 65536, .chunk = 512, .max_sequences = 4};
    options.adapters = {.slots = slots, .rank = 16, .everywhere = true, .first = {}};
    EXPECT_TRUE(fill_pool(options, config, *checkpoint, caps));
    return options.pool_tokens;
  };
  EXPECT_LT(pool(2), pool(0));
  EXPECT_GT(pool(2), 0u);
}

// 141 GB of weights on two cards of 80 GB: the shares add up to the whole, and each fits its card.
TEST(SplitPlan, AModelThatNoCardHoldsFitsTwo) {
  const auto checkpoint = open("llama-3.1-70b:f16");
  const formats::ModelConfig config = formats::must(formats::read_config(*checkpoint));
  gpu::Caps card;
  card.adapter = "card";
  card.memory_bytes = uint64_t{80} << 30;
  card.max_buffer_bytes = card.max_binding_bytes = uint64_t{4} << 30;
  const gpu::Caps* const both[] = {&card, &card};
  const RunnerOptions options{.ctx_len = 8192, .chunk = 512};
  const MemoryEstimate whole = estimate_of(options, config, *checkpoint, card, {.ctx_len = 8192});
  ASSERT_FALSE(check_memory(whole, card, 8192));
  const SplitPlan plan = formats::must(plan_split(*checkpoint, options, both));
  ASSERT_TRUE(plan.fits) << plan.fits.error().message();
  ASSERT_EQ(plan.shares.size(), 2u);
  const MemoryEstimate &first = plan.shares[0].memory, &second = plan.shares[1].memory;
  EXPECT_EQ(plan.shares[0].layers.end, plan.shares[1].layers.first);
  EXPECT_EQ(plan.shares[1].layers.end, config.n_layers);
  EXPECT_EQ(first.weight_bytes + second.weight_bytes, whole.weight_bytes);
  EXPECT_EQ(first.cache_bytes + second.cache_bytes, whole.cache_bytes);
  EXPECT_NEAR(static_cast<double>(first.total()), static_cast<double>(second.total()),
              0.03 * static_cast<double>(whole.total()));

  // Several sequences share the smallest pool, which leaves a tenth of each card.
  gpu::Caps fuller = card;
  fuller.memory_bytes = uint64_t{76} << 30;
  const gpu::Caps* const unequal[] = {&card, &fuller};
  RunnerOptions many{.ctx_len = 4096, .chunk = 512, .max_sequences = 32};
  const SplitPlan shared = formats::must(plan_split(*checkpoint, many, unequal));
  ASSERT_TRUE(shared.fits) << shared.fits.error().message();
  EXPECT_GT(shared.options.pool_tokens, 4096u);
  EXPECT_LT(shared.options.pool_tokens, 32 * 4096u);
  EXPECT_LE(shared.shares[1].memory.total(), fuller.memory_bytes);
}

TEST(SplitPlan, WhatDoesNotFitSaysWhichDevice) {
  const auto checkpoint = open("llama-3.1-8b:f16");
  gpu::Caps card;
  card.adapter = "card";
  card.memory_bytes = uint64_t{6} << 30;
  card.max_buffer_bytes = card.max_binding_bytes = uint64_t{4} << 30;
  const gpu::Caps* const both[] = {&card, &card};
  const SplitPlan plan = formats::must(plan_split(*checkpoint, {.ctx_len = 4096, .chunk = 512}, both));
  ASSERT_FALSE(plan.fits);
  EXPECT_NE(plan.fits.error().message().find("on device 1 of 2"), std::string::npos);
}

TEST(LoadEstimate, APoolOfMoreTokensThanAreCountedIsRefusedByItsNumber) {
  const auto checkpoint = open("llama-tiny:q8_0");
  const formats::ModelConfig config = formats::must(formats::read_config(*checkpoint));
  RunnerOptions options{
      .ctx_len = 64, .chunk = 64, .max_sequences = 2, .block_len = 16, .pool_tokens = UINT32_MAX};
  const auto filled = fill_pool(options, config, *checkpoint, {});
  ASSERT_FALSE(filled);
  EXPECT_EQ(
      filled.error().message(),
      "A cache of 4294967295 tokens was asked for; allowed is up to 4294967280, in whole blocks of 16.");
}

// In E2B's shape the table is almost half of the weights: without room for it, it stays on the host.
TEST(LoadEstimate, EmbeddingsOfEachLayerStayOnTheHostWhereTheDeviceHasNoRoom) {
  const auto checkpoint = open("gemma-4-e2b:q4_k_m");
  gpu::Caps caps;
  caps.max_binding_bytes = caps.max_buffer_bytes = uint64_t{2} << 30;
  const LoadEstimate all = formats::must(estimate_load(*checkpoint, {}, caps));
  EXPECT_FALSE(all.layer_table_on_host);
  EXPECT_GT(all.memory.layer_table_bytes * 5, all.memory.weight_bytes * 2);
  caps.memory_bytes = all.memory.total();
  EXPECT_FALSE(formats::must(estimate_load(*checkpoint, {}, caps)).layer_table_on_host);
  caps.memory_bytes -= 1;
  const LoadEstimate part = formats::must(estimate_load(*checkpoint, {}, caps));
  EXPECT_TRUE(part.layer_table_on_host);
  EXPECT_LT(part.memory.layer_table_bytes, uint64_t{8} << 20);  // 512 rows
  EXPECT_EQ(all.memory.weight_bytes - all.memory.layer_table_bytes,
            part.memory.weight_bytes - part.memory.layer_table_bytes);
  const auto refused = estimate_load(*open("llama-tiny"), {.layer_table_on_host = true}, caps);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().sentence().find("the model has none"), std::string::npos);
}

// A shorter context saves none of 600 MiB of rings.
TEST(MemoryEstimate, WhatRingsTakeDoesNotGrowWithTheContext) {
  constexpr uint64_t kMiB = 1 << 20;
  gpu::Caps caps;
  caps.adapter = "card";
  caps.memory_bytes = 1024 * kMiB;
  caps.max_binding_bytes = caps.max_buffer_bytes = 1024 * kMiB;
  const MemoryEstimate plan{.weight_bytes = 100 * kMiB,
                            .cache_bytes = 1400 * kMiB,
                            .ring_bytes = 600 * kMiB,
                            .cache_buffer_bytes = 400 * kMiB};
  const std::string told = check_memory(plan, caps, 819200).error().message();  // 1 KiB a position
  EXPECT_NE(told.find("A context of 331776 tokens would fit (--ctx)."), std::string::npos) << told;
}

}  // namespace
}  // namespace doppler::model
