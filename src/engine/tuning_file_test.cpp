// The tuning file: what is written is read, anything else is one sentence and no tuning; and what select() and
// tunable() make of a table.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "engine/tuning_file_native.h"
#include "kernels/variant.h"

namespace doppler::engine {
namespace {

using kernels::TuningKey;
using kernels::TuningTable;

const TuningKey kKey{.adapter = "Some GPU",
                     .driver = "1.2",
                     .provider = "dawn",
                     .backend = "vulkan",
                     .wgsl = "0123456789abcdef",
                     .lane = "fast",
                     .kv = "f16"};

TuningTable sample() {
  TuningTable table;
  table.choices[{"matvec.q4_k", "q4_k 64x32"}] = {.variant = "matvec.q4_k.subgroup",
                                                  .constants = {{"slices", 8}},
                                                  .seconds = 0.001,
                                                  .table_seconds = 0.002};
  table.batch["0011223344556677"] = 32;
  table.persistent = {"0011223344556677", "8899aabbccddeeff"};
  return table;
}

class TuningFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "doppler_tuning_" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& text) {
    ASSERT_TRUE(save_tuning(folder_, kKey, {}));
    std::FILE* file = std::fopen(tuning_path(folder_, kKey).c_str(), "wb");
    ASSERT_TRUE(file);
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
  }
  std::string folder_;
};

TEST_F(TuningFile, WhatIsSavedIsLoaded) {
  EXPECT_EQ(load_tuning(folder_, kKey), nullptr);
  ASSERT_TRUE(save_tuning(folder_, kKey, sample()));
  const auto loaded = load_tuning(folder_, kKey);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(*loaded, sample());
  EXPECT_EQ(forget_tuning(folder_, kKey).value(), true);
  EXPECT_EQ(forget_tuning(folder_, kKey).value(), false);
  EXPECT_EQ(load_tuning(folder_, kKey), nullptr);
}

TEST_F(TuningFile, AnotherDeviceDriverProviderKernelTextOrLaneHasAnotherFile) {
  ASSERT_TRUE(save_tuning(folder_, kKey, sample()));
  for (std::string TuningKey::* member :
       {&TuningKey::adapter, &TuningKey::driver, &TuningKey::provider, &TuningKey::backend, &TuningKey::wgsl,
        &TuningKey::lane, &TuningKey::kv}) {
    TuningKey other = kKey;
    other.*member = "another";
    EXPECT_NE(tuning_path(folder_, other), tuning_path(folder_, kKey));
    EXPECT_EQ(load_tuning(folder_, other), nullptr);
    // Even under the right name: a file that was copied from elsewhere.
    const auto parsed = kernels::parse_tuning(kernels::tuning_text(other, sample()), kKey, "x.json");
    ASSERT_FALSE(parsed);
    EXPECT_NE(parsed.error().sentence().find("another"), std::string::npos) << parsed.error().sentence();
  }
}

TEST_F(TuningFile, DamagedFilesAreIgnored) {
  const std::string good = kernels::tuning_text(kKey, sample());
  for (const std::string& text :
       {std::string(), std::string("{"), good.substr(0, good.size() / 2), std::string("[]"),
        std::string("{}"), std::string(100'000, '['), std::string("\0\x01\xff", 3)}) {
    write(text);
    EXPECT_EQ(load_tuning(folder_, kKey), nullptr) << text.substr(0, 40);
  }
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    write(text);
    EXPECT_EQ(load_tuning(folder_, kKey), nullptr) << to;
  };
  with("\"format\": 1", "\"format\": 2");
  with("\"slices\": 8", "\"slices\": -8");
  with("\"slices\": 8", "\"slices\": 99999999999");
  with("\"slices\": 8", "\"slices\": \"8\"");
  with("\"matvec.q4_k.subgroup\"", "17");
  with("\"batch\": 32", "\"batch\": 0");
  with("\"batch\": 32", "\"batch\": 257");
  with("\"choices\": [", "\"choices\": [3, ");
  write(good);
  EXPECT_TRUE(load_tuning(folder_, kKey));  // the text itself was not at fault
}

struct Odd : kernels::Variant<int> {};
std::string refuse_even(const int& shape, const gpu::Caps&) { return shape % 2 == 0 ? "it is even" : ""; }

struct Choosing {
  gpu::PlanBuilder plan{gpu::Caps{}};
  kernels::Policy policy;
  std::vector<kernels::Choice> choices;
  kernels::Context ctx{.plan = plan, .policy = policy, .choices = choices};
  std::vector<Odd> rows = {
      {{.name = "op.odd", .refuse = refuse_even}}, {{.name = "op.second"}}, {{.name = "op.portable"}}};

  std::string_view select(int shape, const TuningTable& table) {
    policy.tuning = std::make_shared<const TuningTable>(table);
    const auto row = kernels::select<Odd, int>("op", rows, shape, std::to_string(shape), ctx);
    EXPECT_TRUE(row);
    const auto asked =
        kernels::resolve<Odd, int>("op", rows, shape, std::to_string(shape), plan.caps(), policy);
    EXPECT_TRUE(asked);
    EXPECT_EQ(asked->row, *row);
    return (*row)->name;
  }
};

TEST(TunedChoice, GoesBeforeTheTableForItsShapeOnly) {
  TuningTable table;
  table.choices[{"op", "3"}].variant = "op.portable";
  Choosing choosing;
  EXPECT_EQ(choosing.select(5, table), "op.odd");
  EXPECT_EQ(choosing.select(3, table), "op.portable");
  const kernels::Choice& choice = choosing.choices.back();
  EXPECT_EQ(choice.table_variant, "op.odd");
  EXPECT_EQ(choice.others, (std::vector<std::string>{"op.second", "op.odd"}));
}

TEST(TunedChoice, ThatIsRefusedIsSaidAndNotUsed) {
  TuningTable table;
  table.choices[{"op", "4"}].variant = "op.odd";
  table.choices[{"op", "6"}].variant = "op.gone";
  Choosing choosing;
  EXPECT_EQ(choosing.select(4, table), "op.second");
  EXPECT_EQ(choosing.choices.back().tuning_refused, "op.odd: it is even");
  EXPECT_EQ(choosing.select(6, table), "op.second");
  EXPECT_EQ(choosing.choices.back().tuning_refused, "op.gone: there is no such variant");
}

TEST(TunedChoice, AForcedVariantGoesBeforeIt) {
  TuningTable table;
  table.choices[{"op", "3"}].variant = "op.portable";
  Choosing choosing;
  choosing.policy.forced["op"] = "op.second";
  EXPECT_EQ(choosing.select(3, table), "op.second");
  EXPECT_TRUE(choosing.choices.back().forced);
  EXPECT_EQ(choosing.choices.back().table_variant, "op.odd");
}

TEST(TunedConstant, IsUsedWithItsVariantAndWithinTheAlternatives) {
  TuningTable table;
  table.choices[{"op", "3"}] = {.variant = "op.odd", .constants = {{"slices", 8}, {"rows", 3}}};
  Choosing choosing;
  choosing.select(5, table);
  EXPECT_EQ(kernels::tunable(choosing.policy, choosing.choices.back(), "slices", 4, {2, 4, 8}), 4u);
  choosing.select(3, table);
  kernels::Choice& choice = choosing.choices.back();
  EXPECT_EQ(kernels::tunable(choosing.policy, choice, "slices", 4, {2, 4, 8}), 8u);
  EXPECT_EQ(kernels::tunable(choosing.policy, choice, "rows", 1, {1, 2}), 1u);  // 3 is no longer possible
  ASSERT_EQ(choosing.choices.back().constants.size(), 2u);
  EXPECT_EQ(choosing.choices.back().constants[0].value, 8u);
  EXPECT_EQ(choosing.choices.back().constants[0].standard, 4u);
}

}  // namespace
}  // namespace doppler::engine
