// The public headers in C++20, and what doppler::Result keeps of std::expected's manners.
#include <doppler/doppler.h>
#include <doppler/result.h>
#include <doppler/scheduler.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>

static_assert(__cplusplus < 202300L, "This test shows that C++20 suffices.");

namespace {

using doppler::Error;
using doppler::ErrorKind;
using doppler::Result;
using doppler::Unexpected;

Unexpected odd() { return Unexpected(Error(ErrorKind::kInvalidInput, "The number is odd.")); }

Result<int> half(int n) {
  if (n % 2 != 0) return odd();
  return n / 2;
}

Result<std::unique_ptr<int>> boxed(int n) {
  Result<int> value = half(n);
  if (!value) return Unexpected(std::move(value).error());
  return std::make_unique<int>(*value);
}

// Counts those that live.
struct Counted {
  Counted() { ++alive; }
  Counted(const Counted&) { ++alive; }
  Counted(Counted&&) noexcept { ++alive; }
  ~Counted() { --alive; }
  static inline int alive = 0;
};

static_assert(!std::is_copy_constructible_v<Result<std::unique_ptr<int>>>);
static_assert(std::is_nothrow_move_constructible_v<Result<std::unique_ptr<int>>>);
static_assert(std::is_convertible_v<const char*, Result<std::string>>);
static_assert(!std::is_constructible_v<Result<bool>, Result<std::string>>, "an error is no false");
static_assert(!std::is_constructible_v<Result<int>, std::string>);

TEST(Result, HoldsAValueOrAnError) {
  EXPECT_EQ(*half(4), 2);
  EXPECT_EQ(half(4).value(), 2);
  const Result<int> none = half(3);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().kind(), ErrorKind::kInvalidInput);
  EXPECT_EQ(none.error().message(), "The number is odd.");
  EXPECT_EQ(none.value_or(7), 7);
  EXPECT_EQ(half(4).value_or(7), 2);
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> box = boxed(8);
  Result<std::unique_ptr<const int>> moved = std::move(box);  // a pointer to int becomes one to const int
  ASSERT_TRUE(moved);
  EXPECT_EQ(**moved, 4);
  const std::unique_ptr<const int> taken = *std::move(moved);
  EXPECT_EQ(*taken, 4);
  EXPECT_EQ(boxed(3).error().sentence(), "The number is odd.");
}

TEST(Result, AssignmentEndsWhatWasThere) {
  {
    Result<Counted> a, b;
    EXPECT_EQ(Counted::alive, 2);
    a = odd();
    EXPECT_EQ(Counted::alive, 1);
    b = a;
    EXPECT_EQ(Counted::alive, 0);
    a = Result<Counted>();
    b = a;
    Result<Counted>& same = b;
    b = std::move(same);
    EXPECT_TRUE(b);
    EXPECT_EQ(Counted::alive, 2);
  }
  EXPECT_EQ(Counted::alive, 0);
}

TEST(Result, OfNothingIsSuccessOrAnError) {
  Result<void> done;
  EXPECT_TRUE(done);
  done = odd();
  EXPECT_EQ(done.error().sentence(), "The number is odd.");
}

TEST(Result, TheLibraryAgreesOnIt) {
  const Result<doppler::Model> model = doppler::Model::load("/there/is/no.gguf", {});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind(), ErrorKind::kIo) << model.error().message();
}

}  // namespace
