// Low-rank adapters against transformers with peft: logits at every position in the lane exact, and the next tokens.
// The cases are the folders of tests/data/adapters.tar.xz. Each base model there has its adapters, and each adapter its
// references.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "formats/adapters/whole_tensors.h"
#include "golden_cases.h"
#include "golden_helpers.h"
#include "many_answers.h"
#include "model/device_model.h"
#include "one_answer.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;

constexpr double kTolerance = 2e-5;

struct Case {
  std::string base, adapter;  // folders
  bool is_gguf = false;
};

std::string adapters_dir() { return golden_dir() + "/adapters"; }

std::vector<std::string> bases() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(adapters_dir())) {
    if (entry.is_directory()) out.push_back(entry.path().filename().string());
  }
  std::ranges::sort(out);
  return out;
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const std::string& base : bases()) {
    for (const auto& entry : fs::directory_iterator(adapters_dir() + "/" + base + "/adapters")) {
      out.push_back({base, entry.path().filename().string()});
    }
    const fs::path gguf = adapters_dir() + "/" + base + "/gguf";
    if (!fs::exists(gguf)) continue;
    for (const auto& entry : fs::directory_iterator(gguf)) {
      if (entry.path().stem() != "base") out.push_back({base, entry.path().stem().string(), true});
    }
  }
  std::ranges::sort(out, {}, [](const Case& c) { return c.base + c.adapter + (c.is_gguf ? "1" : "0"); });
  return out;
}

template <class T>
T taken(Result<T> result) {
  EXPECT_TRUE(result) << result.error().message();
  if (!result) std::abort();
  return std::move(*result);
}

std::unique_ptr<formats::FileSet> files_of(const std::string& path) {
  return taken(formats::open_file_set(path));
}

std::string path_of(const std::string& base, const std::string& adapter, bool is_gguf) {
  return adapters_dir() + "/" + base + (is_gguf ? "/gguf/" + adapter + ".gguf" : "/adapters/" + adapter);
}

// A base model with adapters.
struct Loaded {
  std::unique_ptr<formats::Checkpoint> checkpoint;
  std::unique_ptr<model::DeviceModel> runner;
};

std::unique_ptr<formats::Checkpoint> open_base(const std::string& base, bool is_gguf) {
  return open_golden(files_of(adapters_dir() + "/" + base + (is_gguf ? "/gguf/base.gguf" : "")));
}

std::shared_ptr<const formats::FittedAdapter> open_fitted(formats::Checkpoint& checkpoint,
                                                          const std::string& path) {
  const formats::ModelConfig config = taken(formats::read_config(checkpoint));
  const formats::Adapter adapter =
      taken(gpu::run_to_completion(device(), formats::open_adapter(files_of(path))));
  auto fitted = std::make_shared<formats::FittedAdapter>(taken(formats::fit_adapter(adapter, config)));
  formats::put_whole_tensors(*fitted, checkpoint);
  return fitted;
}

Loaded load(std::unique_ptr<formats::Checkpoint> checkpoint, model::RunnerOptions options,
            const char* lane = "exact") {
  options.policy = taken(kernels::make_policy(lane));
  options.ctx_len = 64;
  options.cache_format = kernels::CacheFormat::kF32;
  Loaded out{.checkpoint = std::move(checkpoint), .runner = nullptr};
  out.runner = taken(gpu::run_to_completion(
      device(), model::DeviceModel::load(device(), *out.checkpoint, std::move(options), {})));
  return out;
}

std::vector<float> logits_of(model::DeviceModel& runner, const std::vector<uint32_t>& prompt) {
  return taken(gpu::run_to_completion(device(), runner.logits(0, prompt))).logits;
}

class AdapterGolden : public testing::TestWithParam<Case> {
 protected:
  References references() {
    return read_references(adapters_dir() + "/" + GetParam().base, "adapter_refs.safetensors");
  }
  Loaded load_case(model::RunnerOptions options, const char* lane = "exact") {
    const auto& [base, adapter, is_gguf] = GetParam();
    auto checkpoint = open_base(base, is_gguf);
    options.adapters = {.slots = 1, .first = {{open_fitted(*checkpoint, path_of(base, adapter, is_gguf))}}};
    return load(std::move(checkpoint), std::move(options), lane);
  }
};

TEST_P(AdapterGolden, LogitsAndTokensAreTheReferences) {
  const References refs = references();
  const auto prompt = refs.get<uint32_t>("prompt");
  const Loaded all = load_case({.chunk = 16, .all_logits = true});
  const auto wanted = refs.get<float>(GetParam().adapter + ".logits");
  std::vector<float> logits;
  for (size_t at = 0; at < prompt.size(); at += 16) {
    const auto part = std::span(prompt).subspan(at, std::min<size_t>(16, prompt.size() - at));
    const auto rows =
        taken(gpu::run_to_completion(device(), all.runner->logits(static_cast<uint32_t>(at), part)));
    logits.insert(logits.end(), rows.logits.begin(), rows.logits.end());
  }
  EXPECT_LT(relative_l2(logits, wanted), kTolerance);

  const Loaded one = load_case({.chunk = 8});
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = 16;
  options.batch = 4;
  EXPECT_EQ(one_answer(*one.runner, prompt, options).tokens,
            refs.get<int32_t>(GetParam().adapter + ".greedy_tokens"));
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return info.param.base + "_" + info.param.adapter + (info.param.is_gguf ? "_gguf" : "");
}
INSTANTIATE_TEST_SUITE_P(Cases, AdapterGolden, testing::ValuesIn(cases()), name_of);

class AdapterBase : public testing::TestWithParam<std::string> {
 protected:
  References references() {
    return read_references(adapters_dir() + "/" + GetParam(), "adapter_refs.safetensors");
  }
  std::string all_r8() const {
    return fs::exists(path_of(GetParam(), "all_r8", false)) ? "all_r8" : "attn_r8";
  }
};

// Several adapters at once have a scale each.
TEST_P(AdapterBase, SumsOfAdaptersAreTheReferences) {
  const References refs = references();
  const auto prompt = refs.get<uint32_t>("prompt");
  const auto weights = refs.get<float>("two.weights");
  struct Mix {
    const char* name;
    float qv, all;
  };
  for (const Mix& mix :
       {Mix{"two", weights[0], weights[1]}, Mix{"two_sum", 1, 1}, Mix{"scaled_half", 0, 0.5f}}) {
    auto checkpoint = open_base(GetParam(), false);
    model::RunnerOptions options{.chunk = 64, .all_logits = true};
    options.adapters.slots = 1;
    if (mix.qv != 0) {
      options.adapters.first.push_back(
          {open_fitted(*checkpoint, path_of(GetParam(), "qv_r4", false)), mix.qv});
    }
    options.adapters.first.push_back(
        {open_fitted(*checkpoint, path_of(GetParam(), all_r8(), false)), mix.all});
    const Loaded loaded = load(std::move(checkpoint), std::move(options));
    EXPECT_LT(
        relative_l2(logits_of(*loaded.runner, prompt), refs.get<float>(std::string(mix.name) + ".logits")),
        kTolerance)
        << mix.name;
  }
}

// One batch has rows of two adapters, of both at once, of DoRA and of no adapter. Each stream must give the text that
// it gives by itself. Only streams with the same adapters share blocks of the cache. With one slot, streams of other
// adapters wait for it.
TEST_P(AdapterBase, AMixedBatchIsEachStreamByItself) {
  const References refs = references();
  const auto prompt = refs.get<uint32_t>("prompt");
  const auto weights = refs.get<float>("two.weights");
  for (const uint32_t slots : {3u, 1u}) {
    auto checkpoint = open_base(GetParam(), false);
    const auto qv = open_fitted(*checkpoint, path_of(GetParam(), "qv_r4", false));
    const auto all = open_fitted(*checkpoint, path_of(GetParam(), all_r8(), false));
    const auto dora = open_fitted(*checkpoint, path_of(GetParam(), "dora", false));
    model::RunnerOptions options{.chunk = 8, .max_sequences = 4, .block_len = 8};
    options.adapters = {.slots = slots, .rank = 12, .everywhere = true};
    const Loaded loaded = load(std::move(checkpoint), std::move(options));
    const uint32_t vocab_size = loaded.runner->config().vocab_size;
    auto scheduler = taken(engine::Scheduler::create(*loaded.runner->runner(), {.vocab_size = vocab_size}));
    struct Asked {
      const char* name;
      std::vector<model::AdapterPart> parts;
    };
    const std::vector<Asked> asked = {
        {"base", {}}, {"two", {{qv, weights[0]}, {all, weights[1]}}}, {"qv_r4", {{qv}}}, {"dora", {{dora}}}};
    std::vector<std::shared_ptr<engine::Stream>> streams;
    for (int round = 0; round < 2; ++round) {
      for (const Asked& each : asked) {
        engine::Request request;
        request.tokens = prompt;
        request.settings.max_tokens = 16;
        request.client = streams.size();
        request.first_adapters = false;
        if (!each.parts.empty()) {
          request.settings.adapters = std::make_shared<model::AdapterMix>(model::AdapterMix{each.parts});
        }
        streams.push_back(taken(scheduler->submit(std::move(request))));
      }
    }
    while (taken(gpu::run_to_completion(device(), scheduler->turn()))) {
    }
    uint32_t cached = 0;
    for (size_t i = 0; i < streams.size(); ++i) {
      const std::string name = asked[i % asked.size()].name;
      ASSERT_FALSE(streams[i]->error()) << streams[i]->error()->message();
      const std::vector<uint32_t> tokens = streams[i]->take();
      EXPECT_EQ(std::vector<int32_t>(tokens.begin(), tokens.end()),
                refs.get<int32_t>(name + ".greedy_tokens"))
          << name << ", " << slots << " slots";
      cached += streams[i]->timings().cached_tokens;
    }
    EXPECT_EQ(cached, asked.size() * 16);  // two whole blocks of the second stream of each kind
    EXPECT_TRUE(scheduler->check());
  }
}

INSTANTIATE_TEST_SUITE_P(Bases, AdapterBase, testing::ValuesIn(bases()),
                         [](const testing::TestParamInfo<std::string>& base) { return base.param; });

}  // namespace
}  // namespace doppler
