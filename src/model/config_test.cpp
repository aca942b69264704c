// Architecture numbers out of GGUF metadata that no golden model has: yarn's optional keys, and values that
// no model can have, each refused with a sentence.
#include "model/config.h"

#include <cmath>
#include <functional>

#include "formats/gguf/gguf_writer.h"
#include "formats/test_helpers.h"
#include "model/memory_plan.h"
#include "model/rope_frequencies.h"
#include "model/tensor_names.h"

namespace doppler::model {
namespace {

using Keys = std::map<std::string, uint32_t>;

// A llama of 2 layers with `counts` in place of the usual numbers and whatever `more` adds.
Result<ModelConfig> read(const Keys& counts, const std::function<void(formats::GgufHeader&)>& more = {}) {
  formats::GgufHeader header;
  header.add_string("general.architecture", "llama");
  Keys all = {{"block_count", 2},     {"embedding_length", 8},     {"feed_forward_length", 16},
              {"context_length", 64}, {"attention.head_count", 2}, {"attention.head_count_kv", 1}};
  for (const auto& [key, value] : counts) all[key] = value;
  for (const auto& [key, value] : all) header.add_u32("llama." + key, value);
  if (more) more(header);
  header.add_tensor("token_embd.weight", DType::kF32, {4, 8});
  formats::MemorySink sink;
  formats::GgufWriter writer(std::move(header), sink);
  EXPECT_TRUE(writer.begin());
  EXPECT_TRUE(writer.write(std::vector<uint8_t>(4 * 8 * 4)));
  EXPECT_TRUE(writer.finish());
  uint64_t bytes_read = 0;
  auto checkpoint =
      formats::must(formats::run_now(formats::open_checkpoint(std::make_unique<formats::MemoryFileSet>(
          formats::MemoryFileSet::Files{{"model.gguf", sink.bytes()}}, "model.gguf", &bytes_read))));
  return read_config(*checkpoint);
}

TEST(GgufConfig, YarnKeys) {
  const auto config = read({}, [](formats::GgufHeader& header) {
    header.add_string("llama.rope.scaling.type", "yarn");
    header.add_f32("llama.rope.scaling.factor", 4);
    header.add_f32("llama.rope.scaling.attn_factor", 0.5f);
    header.add_f32("llama.rope.scaling.yarn_beta_fast", 16);
    header.add_f32("llama.rope.scaling.yarn_beta_slow", 2);
  });
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->rope.original_ctx_len, 64);  // not given: what the model was trained for
  EXPECT_EQ(config->rope.beta_fast, 16);
  EXPECT_EQ(config->rope.beta_slow, 2);
  const auto frequencies = rope_frequencies(config->rope, 64, 64, {});
  ASSERT_TRUE(frequencies);
  EXPECT_NEAR(frequencies->attention_factor, 0.5 * (0.1 * std::log(4.0) + 1), 1e-6);
}

TEST(GgufConfig, NumbersThatNoModelHasAreRefused) {
  const std::pair<Keys, const char*> cases[] = {
      {{{"block_count", 0}}, "The layer count is 0; allowed is 1 to 1024."},
      {{{"block_count", 4000000000u}}, "The layer count is 4000000000; allowed is 1 to 1024."},
      {{{"attention.head_count", 0}}, "The head count is 0; allowed is 1 to 1024."},
      {{{"attention.head_count_kv", 0}}, "The kv head count is 0; allowed is 1 to 1024."},
      {{{"attention.head_count", 3}, {"attention.head_count_kv", 2}},
       "The head count (3) is not a multiple of the kv head count (2)."},
      {{{"rope.dimension_count", 6}},
       "The rotary dimension is 6; allowed is an even number from 2 up to the head dimension (4)."},
      {{{"rope.dimension_count", 0}},
       "The rotary dimension is 0; allowed is an even number from 2 up to the head dimension (4)."},
      {{{"rope.dimension_count", 3}},
       "The rotary dimension is 3; allowed is an even number from 2 up to the head dimension (4)."},
      {{{"expert_count", 8}},
       "Architecture \"llama\" with 8 experts is not supported yet; dense models are."},
  };
  for (const auto& [counts, sentence] : cases) {
    const auto config = read(counts);
    ASSERT_FALSE(config) << sentence;
    EXPECT_EQ(config.error().message(), sentence);
  }
}

TEST(TensorNames, SayWhichLayerTheyBelongTo) {
  EXPECT_EQ(layer_of_tensor("blk.17.attn_q.weight"), 17u);
  EXPECT_EQ(layer_of_tensor("model.layers.0.mlp.up_proj.weight"), 0u);
  EXPECT_EQ(layer_of_tensor("language_model.model.layers.5.norm.weight"), 5u);
  for (const char* name :
       {"output.weight", "blk.weight", "blk.x.y", "blk.3", "ablk.3.y", "blk.99999999999.y", ""}) {
    EXPECT_EQ(layer_of_tensor(name), std::nullopt) << name;
  }
}

TEST(MemoryPlan, WhatCannotBeHeldOrBoundIsRefusedWithTheContextThatFits) {
  constexpr uint64_t kMiB = 1 << 20;
  gpu::Caps caps;
  caps.adapter = "card";
  caps.memory_bytes = 1024 * kMiB;
  caps.max_binding_bytes = caps.max_buffer_bytes = 128 * kMiB;
  const auto message = [&](uint64_t weights, uint32_t ctx_len) {  // 1 layer, 1 KiB a position and side
    const uint64_t side = ctx_len * 1024ull;
    const MemoryPlan plan{.weight_bytes = weights, .cache_bytes = 2 * side, .cache_buffer_bytes = side};
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
  MemoryPlan plan{.weight_bytes = 2048 * kMiB};
  plan.smaller = {{"q8_0", 1500 * kMiB}, {"q4_k", 900 * kMiB}, {"q2_k", 500 * kMiB}};
  EXPECT_EQ(check_memory(plan, caps, 1024).error().message(),
            "The model needs 2.00 GiB (weights 2.00 GiB, cache for 1024 tokens 0 B, scratch 0 B), but card "
            "has 1.00 GiB. Quantised to q4_k it would need 900.0 MiB (doppler convert --quantize q4_k).");
}

}  // namespace
}  // namespace doppler::model
