// The shipped model through the public API: greedy text equal to what numpy computes in double precision from
// the same file (tools/make_story_references.py), counters, sessions saved and restored.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "doppler/doppler.h"

namespace doppler {
namespace {

constexpr const char* kModel = DOPPLER_SOURCE_DIR "/models/storyteller.gguf";

Model load(const char* lane) {
  LoadOptions options;
  options.lane = lane;
  options.ctx_len = 512;
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
    auto generation = session.generate(ids(*find(entry, "prompt")), greedy(64));
    ASSERT_TRUE(generation) << generation.error().message();
    EXPECT_EQ(generation->tokens, wanted);
    const Counters after = model.counters();
    EXPECT_EQ(after.objects_created, 0u);
    EXPECT_LE(after.submits - before.submits, 64u / 8);
    EXPECT_EQ(after.readback_bytes - before.readback_bytes, 64u * 4);
  }
}

TEST(DefaultModel, SavedSessionContinuesTheSame) {
  const std::string path = testing::TempDir() + "doppler_session_test." + std::to_string(::getpid());
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

}  // namespace
}  // namespace doppler
