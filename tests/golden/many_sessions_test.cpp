// The public API with several sequences, on the shipped model: sessions in threads of their own, forks, streams of the
// scheduler, cancellation, and a soak. Each gets what it gets by itself (the lane exact promises it).
// DOPPLER_SOAK_TOKENS=100000 lets the soak run as long as a release wants it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "doppler/doppler.h"
#include "doppler/scheduler.h"

namespace doppler {
namespace {

constexpr uint32_t kNew = 8;
constexpr const char* kPrompts[] = {"The fox and the crow", "In the spring of the year",
                                    "There was once a king who had", "An old woman lived with her son"};

Result<Model> load(uint32_t sequences, const char* lane = "exact", uint32_t ctx_len = 128) {
  LoadOptions options;
  options.lane = lane;
  options.ctx_len = ctx_len;
  options.chunk = 32;
  options.sequences = sequences;
  options.tuned = false;
  return Model::load(DOPPLER_SOURCE_DIR "/models/storyteller.gguf", options);
}

GenerateOptions greedy(uint32_t tokens = kNew) {
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = tokens;
  options.ignore_eos = true;
  return options;
}

std::vector<std::string> alone() {
  auto model = load(1);
  EXPECT_TRUE(model) << model.error().message();
  std::vector<std::string> texts;
  for (const char* prompt : kPrompts) {
    Session session = model->new_session();
    auto answer = session.generate(prompt, greedy());
    EXPECT_TRUE(answer) << answer.error().message();
    texts.push_back(answer->text);
  }
  return texts;
}

struct ManySessions : testing::Test {
  static void SetUpTestSuite() {
    auto loaded = load(4);
    ASSERT_TRUE(loaded) << loaded.error().message();
    model = new Model(std::move(*loaded));
    wanted = new std::vector<std::string>(alone());
  }
  static void TearDownTestSuite() {
    delete model;
    delete wanted;
  }
  static Model* model;
  static std::vector<std::string>* wanted;
};
Model* ManySessions::model = nullptr;
std::vector<std::string>* ManySessions::wanted = nullptr;

TEST_F(ManySessions, GenerateAtOnceFromSeveralThreads) {
  std::vector<std::string> texts(std::size(kPrompts));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < std::size(kPrompts); ++i) {
    threads.emplace_back([&, i] {
      Session session = model->new_session();
      auto answer = session.generate(kPrompts[i], greedy(), [&](std::string_view text) {
        texts[i] += text;
        return true;
      });
      EXPECT_TRUE(answer) << answer.error().message();
      EXPECT_EQ(answer->tokens.size(), kNew);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(texts, *wanted);
}

// Beside one that asks for none.
TEST_F(ManySessions, StreamsHaveLogprobs) {
  auto scheduler = model->scheduler();
  ASSERT_TRUE(scheduler);
  GenerateOptions asks = greedy();
  asks.logprobs = true;
  asks.top_logprobs = 2;
  auto plain = scheduler->submit({.prompt = kPrompts[1], .options = greedy()});
  auto stream = scheduler->submit({.prompt = kPrompts[0], .options = asks});
  ASSERT_TRUE(plain && stream);
  auto answer = stream->finish();
  auto other = plain->finish();
  ASSERT_TRUE(answer && other);
  EXPECT_EQ(answer->text, (*wanted)[0]);
  EXPECT_EQ(other->text, (*wanted)[1]);
  EXPECT_TRUE(other->logprobs.empty());
  ASSERT_EQ(answer->logprobs.size(), kNew);
  for (size_t i = 0; i < kNew; ++i) {
    const TokenLogprobs& of = answer->logprobs[i];
    ASSERT_EQ(of.top.size(), 2u);
    EXPECT_EQ(of.top[0].first, answer->tokens[i]) << "greedy takes the best";
    EXPECT_EQ(of.top[0].second, of.logprob);
    EXPECT_GE(of.top[0].second, of.top[1].second);
    EXPECT_LE(of.logprob, 0);
  }
  asks.top_logprobs = 21;
  EXPECT_FALSE(scheduler->submit({.prompt = kPrompts[0], .options = asks}));
}

// Beside one that has none; drawn and greedy. Each fork begins the grammar anew.
TEST_F(ManySessions, AnswersKeepToTheirGrammars) {
  auto scheduler = model->scheduler();
  ASSERT_TRUE(scheduler);
  GenerateOptions drawn = greedy(40), best = greedy(40), wrong = greedy();
  drawn.sampling.temperature = 2;
  drawn.grammar = {GrammarKind::kRegex, "(yes|no), (fox|crow){2,5}\\.", {}};
  best.grammar = {
      GrammarKind::kJsonSchema,
      R"({"type": "object", "properties": {"n": {"type": "integer", "minimum": 10, "maximum": 99}},
                  "required": ["n"], "additionalProperties": false, "x-guidance": {"whitespace_flexible": false}})",
      {}};
  best.logprobs = true;
  auto plain = scheduler->submit({.prompt = kPrompts[1], .options = greedy()});
  auto first = scheduler->submit({.prompt = kPrompts[0], .options = drawn});
  auto other = scheduler->submit({.prompt = kPrompts[2], .options = best});
  ASSERT_TRUE(plain && first && other);
  auto fork = scheduler->fork(*first, drawn);
  ASSERT_TRUE(fork) << fork.error().message();
  for (auto* stream : {&first, &fork}) {
    const auto answer = (*stream)->finish();
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_TRUE(std::regex_match(answer->text, std::regex(drawn.grammar.text))) << answer->text;
    EXPECT_EQ(answer->stop, StopReason::kEndOfText);
  }
  const auto answer = other->finish();
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_TRUE(std::regex_match(answer->text, std::regex(R"(\{"n":[1-9][0-9]\})"))) << answer->text;
  EXPECT_EQ(answer->logprobs.size(), answer->tokens.size());
  EXPECT_EQ(plain->finish()->text, (*wanted)[1]);
  wrong.grammar = {GrammarKind::kRegex, "(", "Flag --regex"};
  const auto refused = scheduler->submit({.prompt = kPrompts[0], .options = wrong});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().sentence().starts_with("Flag --regex: The regular expression"))
      << refused.error().sentence();
}

// With log-probabilities every token has a step, so no token is appended.
TEST_F(ManySessions, ForcedTokensChangeNoText) {
  auto scheduler = model->scheduler();
  ASSERT_TRUE(scheduler);
  GenerateOptions asks = greedy(60);
  asks.ignore_eos = false;
  asks.grammar = {
      GrammarKind::kJsonSchema,
      R"({"type": "object", "properties": {"the animal in the story": {"enum": ["fox", "crow"]}, "number of legs": {"enum": [2, 4]}},
          "required": ["the animal in the story", "number of legs"], "additionalProperties": false,
          "x-guidance": {"whitespace_flexible": false}})",
      {}};
  auto plain = scheduler->submit({.prompt = kPrompts[1], .options = greedy()});
  auto appended = scheduler->submit({.prompt = kPrompts[0], .options = asks});
  asks.logprobs = true;
  auto stepped = scheduler->submit({.prompt = kPrompts[0], .options = asks});
  ASSERT_TRUE(plain && appended && stepped);
  const auto with = appended->finish(), without = stepped->finish();
  ASSERT_TRUE(with && without);
  EXPECT_EQ(with->tokens, without->tokens) << with->text << "\n" << without->text;
  EXPECT_EQ(with->stop, StopReason::kEndOfText);
  EXPECT_GT(with->timings.forced_tokens, with->tokens.size() / 2);
  EXPECT_EQ(without->timings.forced_tokens, 0u);
  EXPECT_EQ(plain->finish()->text, (*wanted)[1]);
  EXPECT_EQ(model->counters().objects_created, 0u);
}

TEST_F(ManySessions, ForksGoOnFromTheSameText) {
  Session session = model->new_session();
  auto first = session.generate(kPrompts[0], greedy(4));
  ASSERT_TRUE(first) << first.error().message();
  Session fork = session.fork();
  auto rest = session.generate(std::vector<int32_t>{}, greedy(4));
  auto same = fork.generate(std::vector<int32_t>{}, greedy(4));
  ASSERT_TRUE(rest) << rest.error().message();
  ASSERT_TRUE(same) << same.error().message();
  EXPECT_EQ(first->text + rest->text, (*wanted)[0]);
  EXPECT_EQ(rest->text, same->text);
  EXPECT_EQ(session.tokens().size(), fork.tokens().size());
}

TEST_F(ManySessions, StreamsOfTheSchedulerShareAPrefix) {
  auto scheduler = model->scheduler();
  ASSERT_TRUE(scheduler) << scheduler.error().message();
  const std::string story =
      "Once upon a time there was a fox who lived in a wood beside a river, and every morning he went to the "
      "village to "
      "see what the people had left for him, and every evening he went home again, until one day he met a "
      "crow who";
  auto first = scheduler->submit({.prompt = story, .options = greedy()});
  ASSERT_TRUE(first) << first.error().message();
  auto answer = first->finish();
  ASSERT_TRUE(answer) << answer.error().message();
  auto second = scheduler->submit({.prompt = story, .options = greedy(), .client = 2, .priority = 1});
  ASSERT_TRUE(second);
  auto again = second->finish();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->text, answer->text);
  EXPECT_EQ(answer->timings.cached_tokens, 0u);
  EXPECT_GE(again->timings.cached_tokens, 32u);
  EXPECT_EQ(again->timings.cached_tokens + again->timings.evaluated_tokens, again->timings.prompt_tokens);
}

TEST_F(ManySessions, AForkOfAStreamTakesItsLastBlockToo) {
  auto scheduler = model->scheduler();
  ASSERT_TRUE(scheduler);
  auto parent = scheduler->submit({.prompt = kPrompts[2], .options = greedy(100), .deadline_seconds = 60});
  ASSERT_TRUE(parent);
  std::string text;
  for (int i = 0; i < 2; ++i) {
    auto piece = parent->next();
    ASSERT_TRUE(piece && *piece);
    text += **piece;
  }
  auto fork = scheduler->fork(*parent, greedy(16));
  ASSERT_TRUE(fork) << fork.error().message();
  auto of_fork = fork->finish();
  auto of_parent = parent->finish();
  ASSERT_TRUE(of_fork && of_parent);
  text += of_fork->text;
  EXPECT_EQ(text, of_parent->text.substr(0, text.size()));
  EXPECT_EQ(of_fork->timings.evaluated_tokens, 1u);
}

// DRY sees text that is further back than the penalties look, in one stream and among others.
TEST(ManyStreams, DryLooksAsFarBackAsAlone) {
  GenerateOptions options = greedy();
  options.sampling = {.temperature = 0.001f, .top_k = 0, .top_p = 1, .seed = 1};
  options.sampling.dry_multiplier = 4;
  options.sampling.dry_allowed_length = 1;
  options.sampling.dry_breakers.clear();
  const std::string sentence = "The fox and the crow went to the river and sat down beside the water. ";
  const std::string filler =
      "In the spring of the year there was an old woman who lived with her son in a little house near a "
      "wood, and "
      "every morning she gave him bread and milk, and he took his stick and his bag, and said good-bye to "
      "her, and "
      "drove the sheep up the hill, where he stayed until it was evening, and then he came home again to "
      "eat. ";
  const std::string prompt = sentence + filler + "The fox and the crow went to the";
  std::vector<std::string> texts;
  for (const uint32_t sequences : {1u, 2u}) {
    auto model = load(sequences, "exact", 256);
    ASSERT_TRUE(model) << model.error().message();
    ASSERT_GT(model->tokenize(filler, false, false)->size(), 64u);
    Session session = model->new_session();
    auto answer = session.generate(prompt, options);
    ASSERT_TRUE(answer) << answer.error().message();
    texts.push_back(answer->text);
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(ManyStreams, CancelledStreamsGiveTheirPlaceBack) {
  auto model = load(4, "fast");
  ASSERT_TRUE(model) << model.error().message();
  auto scheduler = model->scheduler();
  ASSERT_TRUE(scheduler);
  std::vector<Stream> streams;
  for (int i = 0; i < 8; ++i) {
    auto stream = scheduler->submit({.prompt = kPrompts[0], .options = greedy(100)});
    ASSERT_TRUE(stream) << stream.error().message();
    streams.push_back(std::move(*stream));
  }
  auto piece = streams[0].next();
  ASSERT_TRUE(piece && *piece);
  for (Stream& stream : streams) stream.cancel();
  for (Stream& stream : streams) {
    auto answer = stream.finish();
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(answer->stop, StopReason::kCancelled);
  }
  auto after = scheduler->submit({.prompt = kPrompts[1], .options = greedy()});
  ASSERT_TRUE(after);
  EXPECT_EQ(after->finish()->tokens.size(), kNew);
  EXPECT_EQ(scheduler->load().waiting, 0u);
}

TEST_F(ManySessions, RefusesWhatCannotBe) {
  auto scheduler = model->scheduler();
  ASSERT_TRUE(scheduler);
  EXPECT_FALSE(scheduler->submit({.prompt = std::vector<int32_t>{}}));
  EXPECT_FALSE(scheduler->submit({.prompt = std::vector<int32_t>{-1}}));
  EXPECT_FALSE(scheduler->submit({.prompt = std::vector<int32_t>(4000, 5)}));
  EXPECT_FALSE(scheduler->submit({.prompt = kPrompts[0], .options = greedy(), .priority = 9}));
}

// A model for one sequence had no scheduler and no grammars.
TEST_F(ManySessions, AModelForOneSequenceHasASchedulerOfOnePlace) {
  auto one = load(1);
  ASSERT_TRUE(one) << one.error().message();
  GenerateOptions drawn = greedy(40);
  drawn.sampling.temperature = 2;
  drawn.grammar = {GrammarKind::kRegex, "(yes|no), (fox|crow){2,5}\\.", {}};
  drawn.logprobs = true;
  const auto alone = one->new_session().generate(kPrompts[0], drawn);
  ASSERT_TRUE(alone) << alone.error().message();
  EXPECT_TRUE(std::regex_match(alone->text, std::regex(drawn.grammar.text))) << alone->text;
  EXPECT_EQ(alone->logprobs.size(), alone->tokens.size());
  EXPECT_EQ(alone->stop, StopReason::kEndOfText);
  auto scheduler = one->scheduler();
  ASSERT_TRUE(scheduler) << scheduler.error().message();
  auto first = scheduler->submit({.prompt = kPrompts[0], .options = greedy()});
  auto second = scheduler->submit({.prompt = kPrompts[1], .options = greedy()});
  auto guided = scheduler->submit({.prompt = kPrompts[0], .options = drawn});
  ASSERT_TRUE(first && second && guided);
  EXPECT_EQ(second->finish()->text, (*wanted)[1]);
  EXPECT_EQ(first->finish()->text, (*wanted)[0]);
  EXPECT_EQ(guided->finish()->tokens, alone->tokens);
  EXPECT_EQ(one->counters().objects_created, 0u);
}

TEST(ManyStreams, AModelThatGivesEmbeddingsWritesNone) {
  LoadOptions options;
  options.sequences = 4;
  options.ctx_len = 64;
  options.pooling = "mean";
  auto encoder = Model::load(DOPPLER_SOURCE_DIR "/models/storyteller.gguf", options);
  ASSERT_TRUE(encoder) << encoder.error().message();
  const auto scheduler = encoder->scheduler();
  ASSERT_FALSE(scheduler);
  EXPECT_NE(scheduler.error().message().find("gives embeddings of texts and writes none"), std::string::npos)
      << scheduler.error().message();
}

// Requests of many lengths, some sampled, some cancelled, come and go: they create no object and lose no block.
TEST(ManyStreams, SoakCreatesNothing) {
  auto model = load(4, "fast");
  ASSERT_TRUE(model) << model.error().message();
  const char* asked = std::getenv("DOPPLER_SOAK_TOKENS");
  const uint64_t goal = asked && *asked ? std::strtoull(asked, nullptr, 10) : 200;
  auto scheduler = model->scheduler();
  ASSERT_TRUE(scheduler);
  const uint64_t created = model->counters().objects_created;
  std::vector<Stream> streams;
  uint64_t tokens = 0;
  for (uint32_t i = 0; tokens < goal; ++i) {
    GenerateOptions options = greedy(4 + i * 7 % 23);
    if (i % 3 == 1) {
      options.sampling.temperature = 0.8f;
      options.sampling.repeat_penalty = 1.1f;
      options.sampling.seed = i;
    }
    auto stream = scheduler->submit(
        {.prompt = std::string(kPrompts[i % 4]).substr(0, 5 + i % 16), .options = options, .client = i % 3});
    ASSERT_TRUE(stream) << stream.error().message();
    streams.push_back(std::move(*stream));
    if (streams.size() < 16) continue;
    if (i % 5 == 0) streams.front().cancel();
    auto answer = streams.front().finish();
    ASSERT_TRUE(answer) << answer.error().message();
    tokens += answer->tokens.size();
    streams.erase(streams.begin());
  }
  for (Stream& stream : streams) ASSERT_TRUE(stream.finish());
  streams.clear();
  EXPECT_EQ(model->counters().objects_created, created);
  SchedulerLoad load = scheduler->load();
  for (int i = 0; i < 1000 && load.running > 0; ++i) load = scheduler->load();  // the last step is collected
  EXPECT_EQ(load.running, 0u);
  EXPECT_EQ(load.free_blocks, load.blocks);
}

}  // namespace
}  // namespace doppler
