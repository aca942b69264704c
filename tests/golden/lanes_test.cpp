// Every lane but the exact one, which golden_test has: logits of a prompt at once, and of one token at a time as
// decoding evaluates them, against the references. The cache is f16, as the default is. Cases are golden_test's
// folders: a sample, or with DOPPLER_GOLDEN_ALL=1 all (docs/design/testing.md). The bound is that of f16 storage.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "golden_cases.h"
#include "golden_helpers.h"
#include "model/device_model.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;

constexpr double kF16Tolerance = 5e-3;
// A position of gpt_oss has two experts that are nearly equal: rounding keys and values to f16 chooses the other one.
// In double precision too: 2.7e-2.
constexpr double kOtherExpert = 3e-2;
// Activations in 8 bits, which products of quantised weights read. A hidden size of 64 gives 1.6e-2.
constexpr double kQ8Tolerance = 3e-2;
constexpr const char* kLanes[] = {"portable", "subgroups", "dp4a", "matrix", "fast"};
// On a CPU a case takes half a minute.
constexpr std::string_view kSample[] = {"llama", "olmo2", "mixtral"};

struct Case {
  std::string folder, name;
  const char* lane = "";
  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << c.name << ", lane " << c.lane;
  }
};

std::vector<Case> cases() {
  const fs::path root = golden_dir();
  const bool all = takes_all_cases();
  std::vector<Case> out;
  for (const fs::path& folder : case_folders()) {
    const bool is_sample = std::ranges::find(kSample, folder.filename().string()) != std::end(kSample);
    std::string name = fs::relative(folder, root).string();
    std::ranges::replace_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
    for (const char* lane : kLanes) {
      // The lane that runs by itself shows on a CPU what the others are made of.
      if (all || (is_sample && std::string_view(lane) == "fast"))
        out.push_back({folder.string(), name, lane});
    }
  }
  std::ranges::sort(out, {}, [](const Case& c) { return c.name + c.lane; });
  return out;
}

double tolerance(const Case& c) {
  const std::string_view lane = c.lane;
  if (c.name == "families_moe_gpt_oss") return kOtherExpert;
  if (c.name == "families_moe_gpt_oss_mxfp4" && (lane == "dp4a" || lane == "fast")) return kQ8Tolerance;
  return kF16Tolerance;
}

class Lanes : public testing::TestWithParam<Case> {
 protected:
  // Distance of the logits of the last positions from the references; the prompt in pieces of `chunk`.
  double distance(const std::vector<uint32_t>& prompt, const std::vector<float>& wanted, uint32_t ctx_len,
                  uint32_t chunk) {
    auto policy = kernels::make_policy(GetParam().lane);
    EXPECT_TRUE(policy);
    auto runner = gpu::run_to_completion(
        device(), model::DeviceModel::load(
                      device(), *checkpoint_,
                      {.policy = *policy, .ctx_len = ctx_len, .chunk = chunk, .all_logits = true}, {}));
    EXPECT_TRUE(runner) << runner.error().message();
    if (!runner) return INFINITY;
    family_ = (*runner)->config().family;
    std::vector<float> all;
    for (size_t at = 0; at < prompt.size(); at += chunk) {
      const auto part = std::span(prompt).subspan(at, std::min<size_t>(chunk, prompt.size() - at));
      auto rows = gpu::run_to_completion(device(), (*runner)->logits(static_cast<uint32_t>(at), part));
      EXPECT_TRUE(rows) << rows.error().message();
      if (!rows) return INFINITY;
      all.insert(all.end(), rows->logits.begin(), rows->logits.end());
    }
    EXPECT_GE(all.size(), wanted.size());
    return relative_l2(std::span(all).last(std::min(all.size(), wanted.size())), wanted);
  }

  std::unique_ptr<formats::Checkpoint> checkpoint_;
  std::string family_;
};

TEST_P(Lanes, LogitsStayClose) {
  auto files = formats::open_file_set(GetParam().folder);
  ASSERT_TRUE(files) << files.error().message();
  checkpoint_ = open_golden(std::move(*files));
  ASSERT_TRUE(checkpoint_);
  const References refs = read_references(GetParam().folder);
  const auto a = refs.get<uint32_t>("prompt_a"), b = refs.get<uint32_t>("prompt_b");
  const double prompt = distance(b, refs.get<float>("logits_b_last4"), 64, /*chunk=*/64);
  const double steps = distance(a, refs.get<float>("logits_a"), short_ctx_len(*checkpoint_), /*chunk=*/1);
  EXPECT_LT(prompt, tolerance(GetParam()));
  EXPECT_LT(steps, tolerance(GetParam()));
  record_shown(family_, {.lane = GetParam().lane, .feature = "logits", .worst = prompt});
  record_shown(family_, {.lane = GetParam().lane, .feature = "decode", .worst = steps});
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return info.param.name + "_" + info.param.lane;
}
INSTANTIATE_TEST_SUITE_P(Models, Lanes, testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace doppler
