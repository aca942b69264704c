// base: number conversions against every f16 value, text helpers, JSON limits, Task.
#include <gtest/gtest.h>

#include <cmath>

#include "base/dtype.h"
#include "base/half.h"
#include "base/json.h"
#include "base/result.h"
#include "base/stable_order.h"
#include "base/task.h"

namespace doppler {
namespace {

TEST(Half, EveryValueRoundTrips) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = f16_to_f32(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    EXPECT_EQ(f32_to_f16(value), bits);
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(f32_to_f16(1.0f + 0x1p-11f), 0x3C00);      // halfway, even below
  EXPECT_EQ(f32_to_f16(1.0f + 3 * 0x1p-11f), 0x3C02);  // halfway, even above
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7C00);             // rounds to infinity
  EXPECT_EQ(f32_to_f16(65519.0f), 0x7BFF);
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0x0000);  // halfway to the smallest subnormal
  EXPECT_EQ(f32_to_f16(0x1.8p-25f), 0x0001);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F808000u)), 0x3F80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F818000u)), 0x3F82);
}

TEST(StableOrder, KeepsEqualOnesAsTheyAre) {
  constexpr int kValues[] = {3, 1, 3, 1, 2};
  EXPECT_EQ(stable_order(5, [&](uint32_t a, uint32_t b) { return kValues[a] > kValues[b]; }),
            (std::vector<uint32_t>{0, 2, 4, 1, 3}));
  EXPECT_TRUE(stable_order(0, {}).empty());
}

TEST(Text, NearestSuggestsTypingErrorsOnly) {
  const std::vector<std::string> verbs = {"run", "bench", "inspect"};
  EXPECT_EQ(nearest("becnh", verbs), "bench");
  EXPECT_EQ(nearest("zzzzzz", verbs), std::nullopt);
  EXPECT_EQ(nearest("", std::vector<std::string>{"rm"}), std::nullopt);
  EXPECT_EQ(nearest("xx", std::vector<std::string>{"rm"}), std::nullopt);
}

TEST(Text, PrintableEscapesHostileBytes) {
  EXPECT_EQ(printable("a\x1b[0m\xff\xc3\xa9"), "a\\x1b[0m\\xff\xc3\xa9");
}

TEST(Json, InfinitiesArePythonsAlone) {
  const std::string text = R"({"limit": [0.0, Infinity, -Infinity], "name": "Infinity \" Infinity"})";
  const auto json = parse_json(without_infinities(text), "x");
  ASSERT_TRUE(json) << json.error().message();
  EXPECT_EQ(to_text(*json), R"({"limit":[0.0,1e+308,-1e+308],"name":"Infinity \" Infinity"})");
  EXPECT_FALSE(parse_json(text, "x"));
}

TEST(Json, RefusesDeepAndBrokenText) {
  EXPECT_FALSE(parse_json(std::string(100000, '['), "x"));
  EXPECT_FALSE(parse_json("{\"a\":", "x"));
  EXPECT_TRUE(parse_json("{\"a\": [1, 2]}", "x"));
  EXPECT_FALSE(parse_json("{\"a\": [-1e400]}", "x"));
  EXPECT_EQ(parse_json("{\"a\": 1e", "The line").error().message(), "The line is not valid JSON.");
}

TEST(DType, LayoutsPadRowsAndAlignPlanes) {
  const WeightLayout odd = weight_layout(WeightFormat::kF16, 3, 18);
  EXPECT_EQ(odd.padded_k, 24u);
  EXPECT_EQ(odd.total_bytes, 144u);
  const WeightLayout q8 = weight_layout(WeightFormat::kQ8_0, 3, 64);
  EXPECT_EQ(q8.plane1_offset, 256u);
  EXPECT_EQ(q8.total_bytes, 256u + 16u);
}

Task<Result<int>> add_later(Completion<int> a, Completion<int> b) {
  const int first = co_await a;
  const int second = co_await b;
  co_return first + second;
}

Task<Result<int>> twice(Completion<int> a, Completion<int> b) {
  DP_CO_TRY(const int sum, co_await add_later(a, b));
  co_return sum * 2;
}

Task<Result<int>> beside(Completion<int> a, Completion<int> b, Completion<int> own) {
  Task<Result<int>> other = add_later(a, b);
  other.start();
  const int first = co_await own;
  DP_CO_TRY(const int sum, co_await std::move(other));
  co_return first* sum;
}

TEST(Task, RunsBesideItsOwnerWhoAwaitsItLater) {
  for (const bool other_first : {true, false}) {
    Completion<int> a, b, own;
    Task<Result<int>> task = beside(a, b, own);
    task.start();
    a.complete(3);
    if (!other_first) own.complete(10);
    b.complete(4);
    if (other_first) own.complete(10);
    ASSERT_TRUE(task.done());
    EXPECT_EQ(*task.take(), 70);
  }
}

TEST(Task, ResumesInOrderAndSurvivesDestruction) {
  Completion<int> a, b;
  Task<Result<int>> task = twice(a, b);
  task.start();
  EXPECT_FALSE(task.done());
  a.complete(3);
  EXPECT_FALSE(task.done());
  b.complete(4);
  ASSERT_TRUE(task.done());
  EXPECT_EQ(*task.take(), 14);

  Completion<int> late;
  {
    Task<Result<int>> dropped = add_later(late, b);
    dropped.start();
  }
  late.complete(1);  // must not resume a destroyed coroutine
}

}  // namespace
}  // namespace doppler
