// Weights of the layer after the last one, by TensorId and number of the layer, from every format: the weights on the
// GPU are those of the folder's tensors.
#include <gtest/gtest.h>

#include <cstring>

#include "formats/convert/convert_native.h"
#include "formats/file_set_native.h"
#include "formats/rdrr/test_models.h"
#include "kernels/testing/kernel_harness.h"
#include "model/weight_loader.h"

namespace doppler::model {
namespace {

using formats::must;
using kernels::testing::device;

// Small enough for every case's vocabulary.
constexpr const char* kTokenizer = R"({"pre_tokenizer": {"type": "ByteLevel"},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}})";

template <class T>
T wait(Task<T> task) {
  return gpu::run_to_completion(device(), std::move(task));
}

std::unique_ptr<formats::Checkpoint> open(const std::string& path) {
  return must(formats::run_now(formats::open_checkpoint(must(formats::open_file_set(path)))));
}

// Rows of matrices, one after another, in f32; norms as the maths has them.
using Floats = std::vector<float>;

Floats in(const formats::Checkpoint& model, const std::string& name) {
  const auto bytes = must(formats::run_now(model.read_tensor(*model.find(name))));
  Floats out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

// Rows [first, first + count) of every run of `step` rows of k values.
Floats rows_of(const Floats& all, uint64_t k, uint64_t step, uint64_t first, uint64_t count) {
  Floats out;
  for (uint64_t at = first; at * k < all.size(); at += step) {
    const auto begin = all.begin() + static_cast<ptrdiff_t>(at * k);
    out.insert(out.end(), begin, begin + static_cast<ptrdiff_t>(count * k));
  }
  return out;
}

// The folder's weights of the layer, as one would read them by hand.
std::vector<Floats> wanted(const formats::Checkpoint& hf, const formats::ModelConfig& c) {
  const Floats q = in(hf, "mtp.layers.0.self_attn.q_proj.weight");
  Floats projection = rows_of(q, c.hidden_dim, 2 * c.head_dim, 0, c.head_dim);
  for (const Floats& more :
       {rows_of(q, c.hidden_dim, 2 * c.head_dim, c.head_dim, c.head_dim),
        in(hf, "mtp.layers.0.self_attn.k_proj.weight"), in(hf, "mtp.layers.0.self_attn.v_proj.weight")}) {
    projection.insert(projection.end(), more.begin(), more.end());
  }
  std::vector<Floats> out = {projection, in(hf, "mtp.fc.weight")};
  if (c.moe.n_experts != 0) out.push_back(in(hf, "mtp.layers.0.mlp.experts.down_proj.weight"));
  for (const char* norm : {"mtp.pre_fc_norm_embedding.weight", "mtp.pre_fc_norm_hidden.weight",
                           "mtp.layers.0.input_layernorm.weight", "mtp.norm.weight"}) {
    Floats values = in(hf, norm);
    for (float& value : values) value += 1;
    out.push_back(std::move(values));
  }
  return out;
}

std::vector<Floats> loaded(const formats::Checkpoint& model, const std::vector<Floats>& sizes) {
  const formats::ModelConfig c = must(formats::read_config(model));
  const uint32_t next = c.n_layers;
  gpu::PlanBuilder plan(device().caps());
  WeightLoader loader(device(), plan, model, {.exact = true, .tiles = false}, {});
  using enum TensorId;
  const TensorId kQkv[] = {kQ, kAttentionGate, kK, kV};
  EXPECT_EQ(must(wait(loader.projection(formats::stored_tensors(c, kQkv, next)))).parts.size(), 1u);
  must(wait(loader.projection({formats::stored_tensor(c, kNextProjection, next)})));
  if (c.moe.n_experts != 0) {
    must(wait(loader.experts({formats::stored_tensor(c, kExpertDown, next)}, {.n_used = c.moe.n_used})));
  }
  for (const TensorId id : {kNextEmbeddingNorm, kNextHiddenNorm, kAttentionNorm, kNextNorm}) {
    must(wait(loader.norm(formats::stored_tensor(c, id, next))));
  }
  EXPECT_TRUE(wait(loader.stream().prepare()));
  EXPECT_TRUE(wait(loader.stream().run()));
  std::vector<Floats> out;
  const auto buffers = loader.take_buffers();
  EXPECT_EQ(buffers.size(), sizes.size());
  for (size_t i = 0; i < std::min(sizes.size(), buffers.size()); ++i) {
    const auto bytes = must(wait(device().read_buffer({buffers[i].id(), 0, sizes[i].size() * 4})));
    std::memcpy(out.emplace_back(sizes[i].size()).data(), bytes.data(), bytes.size());
  }
  return out;
}

class NextLayerWeights : public testing::TestWithParam<const char*> {};

TEST_P(NextLayerWeights, AreThoseOfTheFolderInEveryFormat) {
  const formats::TemporaryFolder home;
  const std::string folder = home / "hf";
  std::filesystem::copy(std::string(FAMILIES_NEXT_DIR "/") + GetParam(), folder);
  std::ofstream(folder + "/tokenizer.json") << kTokenizer;
  const auto hf = open(folder);
  const std::vector<Floats> want = wanted(*hf, must(formats::read_config(*hf)));
  for (const char* name : {"model.gguf", "rdrr"}) {
    formats::ConvertOptions options{.to = std::string_view(name) == "rdrr" ? formats::OutputKind::kRdrr
                                                                           : formats::OutputKind::kGguf};
    options.name = "model";
    must(formats::convert_model(*hf, home / name, options));
  }
  for (const char* name : {"hf", "model.gguf", "rdrr"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(loaded(*open(home / name), want), want);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, NextLayerWeights,
                         testing::Values("qwen3_5_mtp", "qwen3_next_mtp", "qwen3_5_moe_mtp"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace doppler::model
