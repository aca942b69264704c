// Conversions against the engine: a Hugging Face checkpoint as GGUF, as RDRR, and fused, gives the logits that the
// folder itself gives; and the ways from one format to another meet in the same bytes.
#include <algorithm>
#include <filesystem>

#include "formats/architectures/architecture.h"
#include "formats/convert/convert_native.h"
#include "formats/rdrr/test_models.h"
#include "formats/test_helpers.h"
#include "golden_helpers.h"
#include "model/device_model.h"

namespace doppler {
namespace {

using formats::must;

// Small enough for every case's vocabulary.
constexpr const char* kTokenizer = R"({"added_tokens": [{"id": 0, "content": "<unk>", "special": true}],
  "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}, "pre_tokenizer": null,
  "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": true,
            "vocab": {"<unk>": 0, "▁": 1, "a": 2, "b": 3, "ab": 4}, "merges": [["a", "b"]]}})";

class Converted : public testing::TestWithParam<const char*> {
 protected:
  // The case's folder with a tokenizer, which GGUF cannot be without.
  void SetUp() override {
    const std::filesystem::path from = std::string(GOLDEN_DIR "/") + GetParam();
    std::filesystem::create_directory(home_ / "hf");
    for (const auto& entry : std::filesystem::directory_iterator(from)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_directory() || name == "refs.safetensors" || name == "config.v5.json") continue;
      std::filesystem::copy(entry.path(), home_ / ("hf/" + name));
    }
    std::ofstream(home_ / "hf/tokenizer.json") << kTokenizer;
  }

  std::string convert(const char* from, const char* to, formats::ConvertOptions options = {}) const {
    options.to =
        std::string_view(to).ends_with(".gguf") ? formats::OutputKind::kGguf : formats::OutputKind::kRdrr;
    if (std::string_view(from) == "hf") options.name = "model";
    options.shard_bytes = 1 << 16;  // most models take several
    const auto done = formats::convert_model(*open(from), home_ / to, options);
    return done ? "" : done.error().sentence();
  }
  std::unique_ptr<formats::Checkpoint> open(const char* path) const {
    return open_golden(must(formats::open_file_set(home_ / path)));
  }
  std::vector<uint8_t> bytes(const char* path) const { return formats::read_file(home_ / path); }

  std::vector<float> logits(const char* path) const {
    const auto refs = read_references(std::string(GOLDEN_DIR "/") + GetParam());
    model::RunnerOptions options{
        .policy = must(kernels::make_policy("exact")), .ctx_len = 64, .chunk = 64, .all_logits = true};
    options.cache_format = kernels::CacheFormat::kF32;
    const auto checkpoint = open(path);
    auto runner = gpu::run_to_completion(
        device(), model::DeviceModel::load(device(), *checkpoint, std::move(options), {}));
    EXPECT_TRUE(runner) << runner.error().message();
    if (!runner) return {};
    return must(gpu::run_to_completion(device(), (*runner)->logits(0, refs.get<uint32_t>("prompt_b"))))
        .logits;
  }

  formats::TemporaryFolder home_;
};

class ToGguf : public Converted {};

TEST_P(ToGguf, GivesTheSameLogitsAndAllWaysTheSameBytes) {
  ASSERT_EQ(convert("hf", "direct.gguf"), "");
  ASSERT_EQ(convert("hf", "folder"), "");
  ASSERT_EQ(convert("folder", "indirect.gguf"), "");
  EXPECT_TRUE(bytes("direct.gguf") == bytes("indirect.gguf"));
  ASSERT_EQ(convert("direct.gguf", "again"), "");
  ASSERT_EQ(convert("again", "again.gguf"), "");
  EXPECT_TRUE(bytes("direct.gguf") == bytes("again.gguf"));

  const std::vector<float> wanted = logits("hf");
  EXPECT_TRUE(logits("folder") == wanted);
  const std::vector<float> got = logits("direct.gguf");
  // Only where rows of q and k, or columns, change places are sums made in another order.
  const formats::ModelConfig config = must(formats::read_config(*open("hf")));
  const formats::Architecture& row = formats::architecture_of(config);
  const bool is_same_order =
      row.huggingface.pairing.value == row.gguf.pairing.value && row.family != "qwen3_5";
  // GGUF has theta and what frequencies are divided by as f32.
  const formats::RopeConfig& rope = config.rope;
  const bool is_exact = is_same_order && rope.theta == static_cast<double>(static_cast<float>(rope.theta)) &&
                        rope.scaling != formats::RopeScaling::kLlama3 &&
                        rope.scaling != formats::RopeScaling::kLongRope;
  EXPECT_LT(relative_l2(got, wanted), is_exact ? 1e-12 : 1e-5);
  record_shown(config.family, {.format = "rdrr"});
  record_shown(config.family, {.format = "gguf", .worst = relative_l2(got, wanted)});
}

class Fused : public Converted {};

TEST_P(Fused, GivesTheSameLogits) {
  formats::ConvertOptions options;
  ASSERT_EQ(convert("hf", "plain", options), "");
  options.fuse_qkv = options.fuse_gate_up = true;
  ASSERT_EQ(convert("hf", "fused", options), "");
  const auto fused = open("fused");
  EXPECT_TRUE(std::ranges::any_of(fused->tensors(),
                                  [](const auto& t) { return (t.name.find("qkv") != std::string::npos); }));
  EXPECT_TRUE(std::ranges::none_of(fused->tensors(), [](const auto& t) {
    return (t.name.find("up_proj.w") != std::string::npos) && !(t.name.find("gate") != std::string::npos);
  }));
  EXPECT_TRUE(logits("fused") == logits("plain"));
  EXPECT_TRUE(logits("plain") == logits("hf"));
  if (convert("hf", "direct.gguf") != "") return;  // some cases only are for GGUF
  ASSERT_EQ(convert("direct.gguf", "fused_gguf", options), "");
  EXPECT_TRUE(logits("fused_gguf") == logits("direct.gguf"));
}

std::string case_name(const testing::TestParamInfo<const char*>& test) {
  std::string name = test.param;
  std::ranges::replace(name, '/', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ToGguf,
    testing::Values("families_llama/llama", "families_llama/llama/bf16", "families_llama/llama/f16",
                    "families_llama/llama3", "families_llama/llama_headdim", "families_llama/llama_odd",
                    "families_llama/llama_sharded", "families_llama/mistral", "families_llama/llama_bias",
                    "families_generated/h130_d6_yarn_f16_small", "families_generated/h42_d2_v7",
                    "families_gemma3/gemma3", "families_gemma3/gemma3/bf16", "families_gemma3/gemma3_hd256",
                    "families_gemma3/gemma3_vlm", "families_gemma4/gemma4", "families_gemma4/gemma4_moe",
                    "families_gemma4/gemma3n", "families_qwen3/qwen3", "families_qwen3/qwen3_yarn",
                    "families_dense/phi3", "families_dense/phi3_longrope", "families_dense/granite",
                    "families_dense/smollm3", "families_dense/olmo3", "families_dense/glm4",
                    "families_dense/seed_oss", "families_dense/ministral3", "families_dense/apertus",
                    "families_dense/exaone4", "families_dense/hunyuan_v1_dense", "families_moe/mixtral",
                    "families_moe/qwen2_moe", "families_moe/gpt_oss", "families_moe/gpt_oss_mxfp4",
                    "families_moe/ernie4_5_moe", "families_moe2/glm4_moe", "families_mla/deepseek_v2",
                    "families_mla/mistral4", "families_recurrent/lfm2", "families_recurrent/qwen3_5",
                    "families_hybrid/qwen3_next", "families_next/qwen3_5_mtp", "families_next/qwen3_next_mtp",
                    "families_mamba/granitemoehybrid", "families_mamba/granitemoehybrid_dense",
                    "families_mamba/granitemoehybrid_hdense", "families_nemotron/nemotron_h",
                    "families_nemotron/nemotron_h_latent"),
    case_name);
INSTANTIATE_TEST_SUITE_P(Cases, Fused,
                         testing::Values("families_llama/llama", "families_llama/llama_bias",
                                         "families_llama/llama_odd", "families_generated/h72_d20_7_7_biases",
                                         "families_gemma3/gemma3"),
                         case_name);

}  // namespace
}  // namespace doppler
