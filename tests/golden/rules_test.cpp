// Each rule of lowering, on against off: the same tokens, and the same keys and values that they left in the cache. A
// row a rule at least; a rule without one is an error. A setup is a model and what makes a CPU device choose the
// kernels of GPUs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "engine/embed.h"
#include "formats/adapters/fit_adapter.h"
#include "formats/convert/convert_native.h"
#include "formats/rdrr/test_models.h"
#include "formats/synth/synthetic_adapter.h"
#include "formats/synth/synthetic_model.h"
#include "formats/test_helpers.h"
#include "golden_helpers.h"
#include "kernels/tuning.h"
#include "lowering/rule.h"
#include "model/device_model.h"
#include "one_answer.h"

namespace doppler {
namespace {

using formats::must;

constexpr uint32_t kChunk = 5;
const std::vector<uint32_t> kPrompt = {1, 17, 30, 42, 5, 9, 7, 11};  // more than a chunk

// f32 arithmetic whose sums are made in another order.
constexpr double kF32Bound = 1e-5;
// 8 bits: where the last bit of a sum tips a code over, a value moves by a 127th of the greatest of its block of 32.
constexpr double kQ8Bound = 1e-2;

std::unique_ptr<formats::Checkpoint> open_folder(const std::string& folder) {
  return open_golden(must(formats::open_file_set(folder)));
}
std::unique_ptr<formats::Checkpoint> llama() { return open_folder(GOLDEN_DIR "/families_llama/llama"); }
std::unique_ptr<formats::Checkpoint> llama_bf16() {
  return open_folder(GOLDEN_DIR "/families_llama/llama/bf16");
}
std::unique_ptr<formats::Checkpoint> gemma3() { return open_folder(GOLDEN_DIR "/families_gemma3/gemma3"); }
std::unique_ptr<formats::Checkpoint> olmo2() { return open_folder(GOLDEN_DIR "/families_dense/olmo2"); }
std::unique_ptr<formats::Checkpoint> in_q8_0(const formats::Checkpoint& model, const std::string& name) {
  static const formats::TemporaryFolder home;
  const std::filesystem::path made = home / name;
  if (!std::filesystem::exists(made)) {
    formats::ConvertOptions options;
    options.to = formats::OutputKind::kRdrr;
    options.quantize = "q8_0";
    options.name = name;
    must(formats::convert_model(model, made, options));
  }
  return open_folder(made);
}
std::unique_ptr<formats::Checkpoint> gemma3_q8() { return in_q8_0(*gemma3(), "gemma3_q8"); }
std::unique_ptr<formats::Checkpoint> qwen3_5() {
  return open_folder(GOLDEN_DIR "/families_recurrent/qwen3_5");
}
std::unique_ptr<formats::Checkpoint> qwen3_5_q8() { return in_q8_0(*qwen3_5(), "qwen3_5_q8"); }
// Gemma 4 with embeddings of each layer that are as wide as a tile.
std::unique_ptr<formats::Checkpoint> gemma4_q8() {
  static const formats::TemporaryFolder home;
  const std::filesystem::path made = home / "config.json";
  const std::vector<uint8_t> bytes = formats::read_file(GOLDEN_DIR "/families_gemma4/gemma4/config.json");
  std::string config(bytes.begin(), bytes.end());
  const std::string key = "\"hidden_size_per_layer_input\": ";
  config.replace(config.find(key), key.size() + 2, key + "32");
  std::ofstream(made) << config;
  return open_golden(
      formats::synthetic_file_set(must(formats::SyntheticModel::make(made.string() + ":q8_0"))));
}
std::unique_ptr<formats::Checkpoint> mixtral_bf16() {
  return open_folder(GOLDEN_DIR "/families_moe/mixtral/bf16");
}
// Quantised as files are: of some layers v has more bits than q and k.
std::unique_ptr<formats::Checkpoint> tiny_q4_k_m() {
  return open_golden(formats::synthetic_file_set(must(formats::SyntheticModel::make("llama-tiny:q4_k_m"))));
}
std::unique_ptr<formats::Checkpoint> storyteller() {
  return open_folder(DOPPLER_SOURCE_DIR "/models/storyteller.gguf");
}

struct Setup {
  std::unique_ptr<formats::Checkpoint> (*open)();
  const char* lane;
  std::map<std::string, std::string> forced = {};
  const char* attention = "";  // the variant of attention_decode that tuning names
  uint32_t ctx_len = 64;
  uint32_t tokens = 16;  // before one is nearly as good as another, where sums are made in another order
  uint32_t chunk = kChunk;
  bool on_matrix_units = false;
  uint32_t adapter_rank = 0;  // of an adapter of all matrices; 0: none
};

const Setup kExact = {llama, "exact"};
const Setup kExactGemma = {gemma3, "exact"};
const Setup kTiles = {llama_bf16, "dp4a", {{"matvec.tile_bf16", "matvec.tile_bf16.tile"}}};
const Setup kTilesAndSplits = {
    llama_bf16, "dp4a", {{"matvec.tile_bf16", "matvec.tile_bf16.tile"}}, "attention_decode.rope.few_splits"};
const Setup kRotatingAttention = {llama, "exact", {}, "attention_decode.rope.split"};
const Setup kNormsOfRows = {olmo2, "exact", {}, "attention_decode.rope.split"};
const Setup kQ8Tiles = {
    tiny_q4_k_m,
    "dp4a",
    {{"matvec.tile_q4", "matvec.tile_q4.dp4a.tile"}, {"matvec.tile_q6", "matvec.tile_q6.dp4a.tile"}}};
const Setup kQ8TilesGemma = {gemma3_q8, "dp4a", {{"matvec.tile_q8", "matvec.tile_q8.dp4a.tile"}}, "", 64, 9};
const Setup kQ8 = {tiny_q4_k_m, "dp4a"};
const Setup kExperts = {mixtral_bf16, "dp4a", {{"expert_matvec.tile_bf16", "expert_matvec.tile_bf16.tile"}}};
const Setup kGatedAttention = {qwen3_5, "exact", {}, "attention_decode.rope.split"};
const Setup kQ8TilesLayerInputs = {gemma4_q8, "dp4a", {{"matvec.tile_q8", "matvec.tile_q8.dp4a.tile"}}};
const Setup kQ8TilesQwen = {qwen3_5_q8, "dp4a", {{"matvec.tile_q8", "matvec.tile_q8.dp4a.tile"}}};
// Chunks of so many rows that their products are made on the matrix units, which split the columns.
const Setup kOnMatrixUnits = {storyteller, "fast", {}, "", 256, 16, 12, true};
const Setup kAdapters = {.open = llama, .lane = "exact", .adapter_rank = 6};
const Setup kAdaptersInTiles = {.open = llama_bf16,
                                .lane = "dp4a",
                                .forced = {{"matvec.tile_bf16", "matvec.tile_bf16.tile"}},
                                .adapter_rank = 6};
const Setup kTogether = {storyteller, "persistent", {}, "", 256};

struct Row {
  const char* rule;
  const Setup* setup;
  const char* plan;     // in which the rule must have been applied
  double bound;         // on keys and values, relative L2
  const char* of = "";  // what tells a rule's rows apart
};

const Row kRows[] = {
    {"persistent_layers", &kTogether, "decode.short.greedy", kQ8Bound},
    {"step_tail", &kTiles, "decode.greedy", kF32Bound},
    {"tile_argmax", &kTiles, "decode.greedy", kF32Bound},
    {"gated_epilogue", &kExact, "decode.greedy", kF32Bound},
    {"gated_adapters", &kAdapters, "decode.greedy", kF32Bound},
    {"residual_epilogue", &kAdapters, "decode.greedy", kF32Bound, "_adapters"},
    {"deferred_rms_norm", &kAdaptersInTiles, "decode.greedy", kF32Bound, "_adapters"},
    {"gated_experts", &kExperts, "decode.greedy", kF32Bound},
    {"expert_sum_norm", &kExperts, "decode.greedy", kF32Bound},
    {"delta_step", &kQ8TilesQwen, "decode.greedy", kQ8Bound},
    {"multiply_epilogue", &kQ8TilesLayerInputs, "decode.greedy", kQ8Bound},
    {"deferred_rms_norm", &kTiles, "decode.greedy", kF32Bound},
    {"split_sums", &kOnMatrixUnits, "prefill.greedy", kQ8Bound},
    {"residual_epilogue", &kExact, "decode.greedy", kF32Bound},
    {"paired_products", &kQ8Tiles, "decode.greedy", kQ8Bound},
    {"add_rms_norm_prologue", &kQ8TilesGemma, "decode.greedy", kQ8Bound},
    {"add_rms_norm", &kExactGemma, "decode.greedy", kF32Bound},
    {"dead_values", &kExact, "prefill", kF32Bound},
    {"gated_attention", &kGatedAttention, "decode.greedy", kF32Bound},
    {"split_k_reduction", &kTilesAndSplits, "decode.greedy", kF32Bound},
    {"fused_rope", &kRotatingAttention, "decode.greedy", kF32Bound},
    {"fused_rope", &kNormsOfRows, "decode.greedy", kF32Bound, "_norms_of_rows"},
    {"producer_forms", &kQ8, "decode.greedy", kQ8Bound},
    {"stacked_products", &kExact, "decode.greedy", kF32Bound},
};

struct Generated {
  std::string error;  // "" or a sentence
  std::vector<int32_t> tokens;
  std::vector<float> cache;  // keys and values of the prompt and all tokens but the last
  std::vector<lowering::PlanReport> reports;

  uint32_t applied(std::string_view rule, std::string_view plan) const {
    const auto report = std::ranges::find(reports, plan, &lowering::PlanReport::plan);
    EXPECT_NE(report, reports.end()) << plan;
    if (report == reports.end()) return 0;
    const auto use = report->rules.find(rule);
    return use == report->rules.end() ? 0 : use->second.applied;
  }
};

model::RunnerOptions runner_options(const Setup& setup) {
  model::RunnerOptions options{
      .policy = must(kernels::make_policy(setup.lane)), .ctx_len = setup.ctx_len, .chunk = setup.chunk};
  options.cache_format = kernels::CacheFormat::kF32;
  options.policy.forced = setup.forced;
  if (*setup.attention) {
    options.policy.allow(kernels::Lane::kSubgroups);
    const auto tuning = std::make_shared<kernels::TuningTable>();
    // Splits of 16 keys, so that the second one has some while the tokens are chosen.
    for (const std::string heads : {"4", "2"}) {
      tuning->choices[{"attention_decode", heads + " heads on 2, head_dim 32, f32 cache of 64"}] = {
          .variant = setup.attention, .constants = {{"keys_per_split", 16}}};
    }
    options.policy.tuning = tuning;
  }
  return options;
}

Generated generate(const Setup& setup, const std::string& rule_off) {
  Generated out;
  const auto checkpoint = setup.open();
  model::RunnerOptions options = runner_options(setup);
  if (!rule_off.empty()) {
    EXPECT_TRUE(options.rules.set(rule_off + "=off"));
  }
  if (setup.adapter_rank != 0) {
    constexpr float kScale = 10;  // made-up adapters are weak
    const formats::ModelConfig config = must(formats::read_config(*checkpoint));
    const formats::Adapter adapter = formats::synthetic_adapter(config, setup.adapter_rank);
    options.adapters = {.slots = 1,
                        .first = {{std::make_shared<const formats::FittedAdapter>(
                                       must(formats::fit_adapter(adapter, config))),
                                   kScale}}};
  }
  auto loaded = gpu::run_to_completion(
      device(), model::DeviceModel::load(device(), *checkpoint, std::move(options), {}));
  if (!loaded) return {.error = loaded.error().message()};
  model::DeviceModel& runner = **loaded;
  out.reports = runner.reports();
  GenerateOptions asked;
  asked.sampling.temperature = 0;
  asked.max_tokens = setup.tokens;
  asked.batch = 4;
  out.tokens = one_answer(runner, kPrompt, asked).tokens;
  const auto bytes = must(gpu::run_to_completion(
      device(), runner.runner()->save(static_cast<uint32_t>(kPrompt.size()) + setup.tokens - 1)));
  out.cache.resize(bytes.size() / sizeof(float));
  std::memcpy(out.cache.data(), bytes.data(), bytes.size());
  return out;
}

// The answer with all rules on, made once a setup.
const Generated& with_all_rules(const Row& row) {
  static std::map<const Setup*, Generated> known;
  const auto found = known.find(row.setup);
  if (found != known.end()) return found->second;
  Generated made = generate(*row.setup, "");
  // On a CPU the workgroups may be put aside for longer than its driver lets a loop wait: then another is loaded.
  constexpr uint32_t kTries = 20;
  for (uint32_t i = 1; i < kTries && std::string_view(row.setup->lane) == "persistent" &&
                       (!made.error.empty() || made.applied(row.rule, row.plan) == 0);
       ++i) {
    made = generate(*row.setup, "");
  }
  return known[row.setup] = std::move(made);
}

class RuleOnAndOff : public testing::TestWithParam<Row> {};

TEST_P(RuleOnAndOff, GivesTheSame) {
  const Row& row = GetParam();
  const gpu::Caps& caps = device().caps();
  if (!caps.dp4a && std::string_view(row.setup->lane) != "exact") {
    GTEST_SKIP() << "weights lie in tiles only for devices with dp4a";
  }
  if (!caps.matrix_f16 && row.setup->on_matrix_units) GTEST_SKIP() << "the device has no matrix units";
  if (!caps.subgroups && *row.setup->attention) GTEST_SKIP() << "the device has no subgroups";
  const Generated& on = with_all_rules(row);
  ASSERT_EQ(on.error, "");
  EXPECT_GE(on.applied(row.rule, row.plan), 1u);
  const Generated off = generate(*row.setup, row.rule);
  ASSERT_EQ(off.error, "");
  for (const lowering::PlanReport& report : off.reports) EXPECT_EQ(off.applied(row.rule, report.plan), 0u);
  EXPECT_EQ(on.tokens.size(), row.setup->tokens);
  EXPECT_EQ(off.tokens, on.tokens);
  const double distance = relative_l2(off.cache, on.cache);
  RecordProperty("distance", std::to_string(distance));
  EXPECT_LE(distance, row.bound);
}

std::string row_name(const testing::TestParamInfo<Row>& info) {
  return std::string(info.param.rule) + info.param.of;
}
INSTANTIATE_TEST_SUITE_P(Rules, RuleOnAndOff, testing::ValuesIn(kRows), row_name);

// An encoder, whose feed-forward layer has no gates. Its chunks are as long as products on the matrix units need.
std::vector<float> embedding(const char* rule, uint32_t* applied) {
  constexpr uint32_t kTokens = 96;
  const formats::TemporaryFolder home;
  std::ofstream(home / "config.json") << R"({"model_type": "bert", "vocab_size": 128, "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "hidden_act": "gelu",
    "max_position_embeddings": 128, "type_vocab_size": 2, "layer_norm_eps": 1e-12})";
  const auto checkpoint = open_golden(formats::synthetic_file_set(
      must(formats::SyntheticModel::make(std::string(home / "config.json") + ":bf16"))));
  model::RunnerOptions options{
      .policy = must(kernels::make_policy("fast")), .ctx_len = kTokens, .chunk = kTokens};
  if (*rule) {
    EXPECT_TRUE(options.rules.set(std::string(rule) + "=off"));
  }
  const auto runner = must(gpu::run_to_completion(
      device(), model::DeviceModel::load(device(), *checkpoint, std::move(options), {})));
  for (const lowering::PlanReport& report : runner->reports()) {
    const auto use = report.rules.find("activation_epilogue");
    if (use != report.rules.end()) *applied += use->second.applied;
  }
  std::vector<uint32_t> tokens(kTokens);
  for (uint32_t i = 0; i < kTokens; ++i) tokens[i] = i * 37 % 128;
  return must(gpu::run_to_completion(device(), engine::embed_tokens(*runner, tokens, {}, 64)));
}

TEST(RuleOfEncoders, activation_epilogue) {
  uint32_t on_uses = 0, off_uses = 0;
  const std::vector<float> on = embedding("", &on_uses), off = embedding("activation_epilogue", &off_uses);
  EXPECT_EQ(on_uses != 0, device().caps().matrix_f16);
  EXPECT_EQ(off_uses, 0u);
  EXPECT_LE(relative_l2(on, off), kF32Bound);
}

constexpr std::string_view kOfEncoders = "activation_epilogue";  // the test above

TEST(RuleRows, EachRuleHasOne) {
  for (const lowering::Rule& rule : lowering::rules()) {
    if (rule.is_plain || rule.name == kOfEncoders) continue;
    EXPECT_GE(std::ranges::count(kRows, rule.name, [](const Row& row) { return std::string_view(row.rule); }),
              1)
        << rule.name << " needs a row of kRows";
  }
}

}  // namespace
}  // namespace doppler
