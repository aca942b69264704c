// The shipped model through the public API: greedy text equal to what numpy computes in double precision from
// the same file (tools/make_story_references.py), counters, sessions saved and restored.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "base/process.h"
#include "doppler/doppler.h"
#include "engine/api_impl.h"
#include "formats/file_set_native.h"
#include "formats/test_helpers.h"
#include "gpu/device_native.h"

namespace doppler {
namespace {

constexpr const char* kModel = DOPPLER_SOURCE_DIR "/models/storyteller.gguf";

Model load(const char* lane, uint32_t chunk = 0) {
  LoadOptions options;
  options.lane = lane;
  options.ctx_len = 512;
  options.chunk = chunk;
  auto model = Model::load(kModel, options);
  if (!model) {
    std::fprintf(stderr, "%s\n", model.error().message().c_str());
    std::exit(1);
  }
  return std::move(*model);
}

GenerateOptions greedy(uint32_t count) {
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = count;
  options.ignore_eos = true;
  return options;
}

std::vector<int32_t> ids(const Json& list) {
  std::vector<int32_t> out;
  for (const Json& id : list) out.push_back(id.get<int32_t>());
  return out;
}

TEST(DefaultModel, GreedyTextEqualsTheOracle) {
  std::ifstream file(DOPPLER_SOURCE_DIR "/tests/data/storyteller_greedy.json");
  std::stringstream text;
  text << file.rdbuf();
  const auto cases = parse_json(text.str(), "storyteller_greedy.json");
  ASSERT_TRUE(cases) << cases.error().message();
  ASSERT_EQ(cases->size(), 5u);
  Model model = load("exact");
  for (const Json& entry : *cases) {
    Session session = model.new_session();
    const std::vector<int32_t> wanted = ids(*find(entry, "greedy"));
    const Counters before = model.counters();
    GenerateOptions options = greedy(64);
    options.batch = 16;  // a slow device would have single steps
    auto generation = session.generate(ids(*find(entry, "prompt")), options);
    ASSERT_TRUE(generation) << generation.error().message();
    EXPECT_EQ(generation->tokens, wanted);
    const Counters after = model.counters();
    EXPECT_EQ(after.objects_created, 0u);
    // A CPU is fed a prompt in pieces, of 32 tokens at least, so that a stop is seen soon: each but the last is waited
    // for.
    const uint64_t pieces = (find(entry, "prompt")->size() - 1) / 32;
    EXPECT_LE(after.submits - before.submits, 64u / 8 + 2 * pieces);
    EXPECT_GE(after.readback_bytes - before.readback_bytes, 64u * 4);
    EXPECT_LE(after.readback_bytes - before.readback_bytes, 64u * 4 + 4 * pieces);
  }
}

TEST(DefaultModel, SavedSessionContinuesTheSame) {
  const std::string path = testing::TempDir() + "doppler_session_test." + std::to_string(process_id());
  Model model = load("fast");
  Session whole = model.new_session();
  auto first = whole.generate("The Fox and the Crow", greedy(20));
  ASSERT_TRUE(first) << first.error().message();
  const auto saved = whole.save(path);
  ASSERT_TRUE(saved) << saved.error().message();
  auto wanted = whole.generate(" and", greedy(20));
  ASSERT_TRUE(wanted);

  Session restored = model.new_session();
  const auto loaded = restored.restore(path);
  ASSERT_TRUE(loaded) << loaded.error().message();
  auto got = restored.generate(" and", greedy(20));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->tokens, wanted->tokens);
  EXPECT_LT(got->timings.evaluated_tokens, 5u);  // the rest came out of the cache
  std::remove(path.c_str());
}

// It has as many rows as a decode step, which takes its token from the step before.
TEST(DefaultModel, AChunkMayBeOneToken) {
  std::vector<std::string> texts;
  for (const uint32_t chunk : {0u, 1u}) {
    Model model = load("fast", chunk);
    Session session = model.new_session();
    auto generation = session.generate("The Fox and the Crow", greedy(12));
    ASSERT_TRUE(generation) << generation.error().message();
    texts.push_back(generation->text);
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(DefaultModel, SameSeedSameTextHoweverBatched) {
  Model model = load("fast");
  std::vector<std::string> texts;
  for (const uint32_t batch : {1u, 16u, 40u}) {
    Session session = model.new_session();
    GenerateOptions options;
    options.max_tokens = 40;
    options.batch = batch;
    options.sampling.seed = 7;
    auto generation = session.generate("A wolf and a king", options);
    ASSERT_TRUE(generation) << generation.error().message();
    texts.push_back(generation->text);
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[0], texts[2]);
  EXPECT_FALSE(texts[0].empty());
}

// Greedy and sampled: scales that are NaN gave text, and exit status 0.
TEST(DefaultModel, BrokenWeightsAreASentence) {
  const std::string path = testing::TempDir() + "doppler_nan_test." + std::to_string(process_id()) + ".gguf";
  std::filesystem::copy_file(kModel, path);
  {
    const auto checkpoint =
        formats::run_now(formats::open_checkpoint(formats::must(formats::open_file_set(path))));
    const formats::TensorInfo* down = (*checkpoint)->find("blk.0.ffn_down.weight");
    ASSERT_TRUE(down);
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(down->offset));
    file << std::string(down->bytes, '\x7E');  // 0x7E7E is NaN as an f16
  }
  auto model = Model::load(path, {.lane = "exact", .ctx_len = 512});
  ASSERT_TRUE(model) << model.error().message();
  for (const float temperature : {0.0f, 0.8f}) {
    GenerateOptions options = greedy(8);
    options.sampling.temperature = temperature;
    const auto answer = model->new_session().generate("A fox", options);
    ASSERT_FALSE(answer) << answer->text;
    EXPECT_NE(answer.error().message().find("The logits after 0 tokens of the answer are no finite numbers"),
              std::string::npos)
        << answer.error().message();
  }
  std::filesystem::remove(path);
}

// In the lane exact, since what was decoded before is evaluated as a prompt, with other roundings elsewhere.
TEST(DefaultModel, ALostDeviceGoesOnInMidSentence) {
  Model model = load("exact");
  GenerateOptions options = greedy(40);
  options.batch = 4;
  const auto whole = model.new_session().generate("A wolf and a king", options);
  ASSERT_TRUE(whole) << whole.error().message();
  Session session = model.new_session();
  ASSERT_TRUE(session.start("A wolf and a king", options));
  std::string text;
  for (uint32_t pieces = 0;; ++pieces) {
    if (pieces == 4) static_cast<gpu::NativeDevice&>(*Model::Impl::of(model).device).lose_for_test();
    const auto piece = session.next();
    ASSERT_TRUE(piece) << piece.error().message();
    if (!*piece) break;
    text += **piece;
  }
  const auto answer = session.finish();
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(Model::Impl::of(model).reloads, 1u);
  EXPECT_EQ(answer->tokens, whole->tokens);
  EXPECT_EQ(text, whole->text);
  const auto next = model.new_session().generate("A wolf and a king", options);
  EXPECT_TRUE(next) << next.error().message();
}

// It would be asked in a text whose marks are not tokens of this model.
TEST(DefaultModel, ScoresNoTexts) {
  LoadOptions options;
  options.lane = "exact";
  auto files = formats::open_file_set(kModel);
  ASSERT_TRUE(files) << files.error().message();
  auto model = load_files(std::move(*files), options, {.all_logits = true});
  ASSERT_TRUE(model) << model.error().message();
  const auto score = model->rerank("Who lives in the tree?", "The fox sleeps.");
  ASSERT_FALSE(score);
  EXPECT_NE(score.error().message().find("<|im_start|>"), std::string::npos) << score.error().message();
}

}  // namespace
}  // namespace doppler
