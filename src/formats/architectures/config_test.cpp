// Architecture numbers out of GGUF metadata that no golden model has: yarn's optional keys, and values that
// no model can have, each refused with a sentence.
#include "formats/architectures/config.h"

#include <cmath>
#include <functional>

#include "formats/architectures/rope_frequencies.h"
#include "formats/architectures/tensor_names.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/test_helpers.h"

namespace doppler::formats {
namespace {

using Keys = std::map<std::string, uint32_t>;

// A llama of 2 layers with `counts` in place of the usual numbers and whatever `more` adds.
Result<ModelConfig> read(const Keys& counts, const std::function<void(GgufHeader&)>& more = {}) {
  GgufHeader header;
  header.add_string("general.architecture", "llama");
  Keys all = {{"block_count", 2},     {"embedding_length", 8},     {"feed_forward_length", 16},
              {"context_length", 64}, {"attention.head_count", 2}, {"attention.head_count_kv", 1}};
  for (const auto& [key, value] : counts) all[key] = value;
  for (const auto& [key, value] : all) header.add_u32("llama." + key, value);
  if (more) more(header);
  header.add_tensor("token_embd.weight", DType::kF32, {4, 8});
  MemorySink sink;
  GgufWriter writer(std::move(header), sink);
  EXPECT_TRUE(writer.begin());
  EXPECT_TRUE(writer.write(std::vector<uint8_t>(4 * 8 * 4)));
  EXPECT_TRUE(writer.finish());
  uint64_t bytes_read = 0;
  auto checkpoint = must(run_now(open_checkpoint(std::make_unique<MemoryFileSet>(
      MemoryFileSet::Files{{"model.gguf", sink.bytes()}}, "model.gguf", &bytes_read))));
  return read_config(*checkpoint);
}

TEST(GgufConfig, YarnKeys) {
  const auto config = read({}, [](GgufHeader& header) {
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
      {{{"expert_count", 8}}, "Key \"llama.expert_used_count\" is missing."},
      {{{"ssm.state_size", 128}}, "Key \"llama.ssm.state_size\" (128) is not supported."},
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

}  // namespace
}  // namespace doppler::formats
