// RDRR copies of models give the same logits, bit for bit. The stored self test passes on a whole model and fails on
// one with other weights. Kernel hints are applied or reported.
#include <fstream>

#include "base/log.h"
#include "engine/kernel_hints.h"
#include "engine/loaded_model.h"
#include "engine/rdrr_fields.h"
#include "engine/self_test.h"
#include "formats/rdrr/rdrr_writer.h"
#include "formats/rdrr/test_models.h"
#include "formats/synth/synthetic_model.h"
#include "golden_helpers.h"
#include "kernels/catalogue.h"
#include "kernels/tuning.h"

namespace doppler {
namespace {

using formats::must;
using formats::run_now;

const std::vector<uint32_t> kTokens = {1, 5, 2, 9, 3, 3, 7};

model::RunnerOptions exact_options() {
  model::RunnerOptions options{.policy = must(kernels::make_policy("exact")),
                               .ctx_len = engine::kSelfTestCtxLen,
                               .chunk = 64,
                               .all_logits = true};
  options.cache_format = kernels::CacheFormat::kF32;
  return options;
}

std::unique_ptr<engine::LoadedModel> load(std::unique_ptr<formats::FileSet> files,
                                          model::RunnerOptions options = exact_options()) {
  return must(gpu::run_to_completion(
      device(), engine::load_model(device(), std::move(files), std::move(options), "", {})));
}

std::vector<float> logits_of(engine::LoadedModel& model) {
  return must(gpu::run_to_completion(device(), model.runner->logits(0, kTokens))).logits;
}

// Every tensor and description of `source`, unchanged. `shard_bytes` of 4096 makes most tensors cross shards.
void copy_to_rdrr(const formats::Checkpoint& source, const std::string& folder, uint64_t shard_bytes) {
  formats::RdrrManifest outline;
  outline.id = "copy";
  outline.type = "llama";
  outline.architecture = engine::rdrr_architecture(must(formats::read_config(source)));
  outline.source = source.gguf() ? formats::RdrrSource::kGguf : formats::RdrrSource::kHuggingFace;
  outline.shard_bytes = shard_bytes;
  for (const formats::TensorInfo& tensor : source.tensors()) {
    formats::RdrrTensor entry;
    entry.name = tensor.name;
    entry.shape = tensor.shape;
    entry.type = tensor.type;
    entry.source_index = outline.tensors.size();
    outline.tensors.push_back(std::move(entry));
  }
  const auto writer = must(formats::RdrrWriter::open(folder, std::move(outline), {}));
  for (size_t i = 0; i < source.tensors().size(); ++i) {
    ASSERT_TRUE(writer->begin_tensor(i));
    ASSERT_TRUE(writer->write(must(run_now(source.read_tensor(source.tensors()[i])))));
    ASSERT_TRUE(writer->end_tensor());
  }
  if (source.gguf()) {
    ASSERT_TRUE(writer->add_asset(formats::kRdrrGgufMetadata, source.gguf()->without_tensors()));
  }
  for (const char* file :
       {"config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"}) {
    const auto text = must(run_now(source.read_text(file)));
    if (!text) continue;
    ASSERT_TRUE(writer->add_asset(file, text_bytes(*text)));
  }
  must(writer->finish());
}

std::unique_ptr<formats::FileSet> synthetic(const char* spec) {
  return formats::synthetic_file_set(must(formats::SyntheticModel::make(spec)));
}

TEST(Rdrr, ACopyGivesTheLogitsOfItsSource) {
  const std::string hugging_face = std::string(GOLDEN_DIR) + "/families_llama/llama_sharded";
  for (const bool gguf : {false, true}) {
    const auto files = [&] {
      return gguf ? synthetic("llama-tiny:q4_k_m") : must(formats::open_file_set(hugging_face));
    };
    const auto source = load(files());
    const std::vector<float> wanted = logits_of(*source);
    for (const uint64_t shard_bytes : {uint64_t{4096}, uint64_t{256 * 1001}}) {
      const formats::TemporaryFolder home;  // 256 * 1001: no multiple of a page, so no file is mapped
      copy_to_rdrr(*source->checkpoint, home / "m", shard_bytes);
      const auto copy = load(must(formats::open_file_set(home / "m")));
      ASSERT_TRUE(copy->checkpoint->rdrr());
      EXPECT_EQ(logits_of(*copy), wanted)
          << (gguf ? "GGUF" : "Hugging Face") << " in shards of " << shard_bytes;
      EXPECT_EQ(copy->text.stop_tokens, source->text.stop_tokens);
      EXPECT_EQ(copy->text.tokenizer == nullptr, source->text.tokenizer == nullptr);
      EXPECT_TRUE(
          engine::check_rdrr_architecture(copy->checkpoint->rdrr()->architecture, copy->runner->config()));
    }
  }
}

TEST(Rdrr, ADamagedShardStopsTheLoad) {
  const formats::TemporaryFolder home;
  copy_to_rdrr(*load(synthetic("llama-tiny:q8_0"))->checkpoint, home / "m", 64 << 10);
  formats::flip_byte(home / "m/shard_00003.bin", 77);
  auto files = must(formats::open_file_set(home / "m"));
  const auto loaded = gpu::run_to_completion(
      device(), engine::load_model(device(), std::move(files), exact_options(), "", {}));
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message().find("shard_00003.bin is damaged"), std::string::npos)
      << loaded.error().message();
}

TEST(Rdrr, TheSelfTestKnowsTheWeightsItWasMadeWith) {
  const auto model = load(synthetic("llama-tiny:q8_0"));
  const auto test = must(gpu::run_to_completion(device(), engine::make_self_test(*model->runner)));
  const auto again = must(gpu::run_to_completion(device(), engine::run_self_test(*model->runner, test)));
  EXPECT_TRUE(again.passed());
  EXPECT_EQ(again.compared, 24u);
  // Other roundings of the same weights are another model.
  const auto other = load(synthetic("llama-tiny:q4_0"));
  const auto differs = must(gpu::run_to_completion(device(), engine::run_self_test(*other->runner, test)));
  EXPECT_FALSE(differs.passed()) << differs.worst << " of " << differs.allowed;
}

class Hints : public testing::Test {
 protected:
  void SetUp() override {
    set_log_sink([this](LogLevel level, std::string_view line) {
      if (level <= LogLevel::kWarning) warnings_ += std::string(line) + "\n";
    });
    policy_ = must(kernels::make_policy("fast"));
    // The first operation with two variants that this device can use.
    const auto rows = kernels::list_variants(device().caps(), policy_);
    for (size_t i = 1; i < rows.size() && last_.empty(); ++i) {
      if (rows[i].operation != rows[i - 1].operation) continue;
      if (!rows[i].refusal.empty() || !rows[i - 1].refusal.empty()) continue;
      operation_ = rows[i].operation;
      first_ = rows[i - 1].variant;
      last_ = rows[i].variant;
    }
    ASSERT_FALSE(last_.empty());
  }
  void TearDown() override { set_log_sink({}); }

  formats::RdrrKernelHint hint(const std::string& variant) {
    return must(run_now(engine::make_kernel_hint(operation_, variant, device().caps())));
  }
  std::string forced(const formats::RdrrKernelHint& hint) {
    kernels::Policy policy = policy_;
    EXPECT_TRUE(run_now(engine::apply_kernel_hints(std::span(&hint, 1), device().caps(), policy)));
    const auto it = policy.forced.find(operation_);
    return it == policy.forced.end() ? "" : it->second;
  }

  kernels::Policy policy_;
  std::string operation_, first_, last_, warnings_;
};

TEST_F(Hints, APinThatTheTablesRankLowerIsUsedAndSaidLoudly) {
  EXPECT_EQ(forced(hint(last_)), last_);
  EXPECT_NE(warnings_.find("although the tables rank"), std::string::npos) << warnings_;
}

TEST_F(Hints, AChangedShaderIsReportedAndNotPinned) {
  auto old = hint(first_);
  old.wgsl_sha256[0] ^= 1;
  EXPECT_EQ(forced(old), "");
  EXPECT_NE(warnings_.find("its WGSL has changed since"), std::string::npos) << warnings_;
}

TEST_F(Hints, AnUnknownVariantIsReportedAndNotPinned) {
  auto unknown = hint(first_);
  unknown.variant = operation_ + ".of_tomorrow";
  EXPECT_EQ(forced(unknown), "");
  EXPECT_NE(warnings_.find("has no such variant"), std::string::npos) << warnings_;
}

TEST_F(Hints, AnotherDevicesMeasurementIsNotUsed) {
  auto other = hint(first_);
  other.device = "Voodoo 2";
  EXPECT_EQ(forced(other), "");
  EXPECT_EQ(warnings_, "");
}

// "Slower" was judged by the order of the tables; a measured hint is judged by its times.
TEST_F(Hints, AMeasuredOneIsOfItsShapeAndJudgedByItsTimes) {
  auto measured = hint(last_);
  measured.measured = {.shape = "64x64",
                       .lane = policy_.name,
                       .constants = {{"slices", 8}},
                       .seconds = 0.001,
                       .table_seconds = 0.002,
                       .unknown = {}};
  const auto choice = [&]() -> std::string {
    kernels::Policy policy = policy_;
    EXPECT_TRUE(run_now(engine::apply_kernel_hints(std::span(&measured, 1), device().caps(), policy)));
    EXPECT_FALSE(policy.forced.contains(operation_));
    const auto* found = policy.tuning ? policy.tuning->find(operation_, "64x64") : nullptr;
    return found ? found->variant : "";
  };
  EXPECT_EQ(choice(), last_);
  EXPECT_EQ(warnings_, "");
  measured.measured->lane = "exact";
  EXPECT_EQ(choice(), "");
  EXPECT_EQ(warnings_, "");
  measured.measured->lane = policy_.name;
  kernels::TuningTable own;
  own.choices[{operation_, "64x64"}] = {.variant = first_, .constants = {}};
  policy_.tuning = std::make_shared<const kernels::TuningTable>(own);
  EXPECT_EQ(choice(), first_);
  policy_.tuning = nullptr;
  measured.measured->table_seconds = 0.001;
  EXPECT_EQ(choice(), "");
  EXPECT_NE(warnings_.find("it took 1000.0 us where the tables' choice took 1000.0 us"), std::string::npos)
      << warnings_;
}

TEST_F(Hints, WhatTheUserForcedStays) {
  policy_.forced[operation_] = first_;
  EXPECT_EQ(forced(hint(last_)), first_);
}

}  // namespace
}  // namespace doppler
