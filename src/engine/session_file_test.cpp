// A saved session: what is written is read, anything else is a sentence; and the digest tells weights apart.
#include "engine/session_file.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/session_identity.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/test_helpers.h"

namespace doppler::engine {
namespace {

using formats::must;

// A model of 40 tensors whose bytes are all `fill`, but for the middle of tensor `other`.
std::string digest_of(uint8_t fill, int other = -1) {
  formats::GgufHeader header;
  for (int i = 0; i < 40; ++i) header.add_tensor(format_text("t%d", i), DType::kF32, {8, 512});
  std::vector<uint8_t> file = header.build();
  const size_t data = file.size();
  file.resize(header.file_bytes(), fill);
  if (other >= 0) file[data + static_cast<size_t>(other) * 8 * 512 * 4 + 4 * 512 * 4] ^= 1;
  uint64_t bytes_read = 0;
  auto files = std::make_unique<formats::MemoryFileSet>(
      formats::MemoryFileSet::Files{{"m.gguf", std::move(file)}}, "m.gguf", &bytes_read);
  const auto checkpoint = must(formats::run_now(formats::open_checkpoint(std::move(files))));
  return must(formats::run_now(weights_digest(*checkpoint)));
}

// Another training of the same shape was taken for the same model, and its cache restored.
TEST(SessionFile, IsMatchedByTheWeightsToo) {
  EXPECT_EQ(digest_of(1).size(), 16u);
  EXPECT_EQ(digest_of(1), digest_of(1));
  EXPECT_NE(digest_of(1), digest_of(2));
  EXPECT_NE(digest_of(1), digest_of(1, 0));
}

// A cache that a model saved under one scaling of positions was once restored under another.
TEST(SessionFile, IsMatchedByTheScalingOfPositionsToo) {
  const auto checkpoint_of = [](uint8_t fill) {
    formats::GgufHeader header;
    header.add_tensor("rope_freqs.weight", DType::kF32, {4});
    std::vector<uint8_t> file = header.build();
    file.resize(header.file_bytes(), fill);
    static uint64_t bytes_read = 0;
    return must(formats::run_now(formats::open_checkpoint(std::make_unique<formats::MemoryFileSet>(
        formats::MemoryFileSet::Files{{"m.gguf", std::move(file)}}, "m.gguf", &bytes_read))));
  };
  const auto plain = checkpoint_of(1), other = checkpoint_of(2);
  const auto digest = [](const formats::Checkpoint& checkpoint, const formats::RopeConfig& rope,
                         uint32_t ctx_len = 64) {
    formats::ModelConfig config;
    config.rope = rope;
    return must(formats::run_now(scaling_digest(checkpoint, config, ctx_len)));
  };
  using enum formats::RopeScaling;
  EXPECT_EQ(digest(*plain, {.rotary_dim = 8}), "");
  const formats::RopeConfig linear = {.rotary_dim = 8, .scaling = kLinear, .factor = 2};
  EXPECT_EQ(digest(*plain, linear), digest(*plain, linear));
  std::vector<std::string> seen = {digest(*plain, linear)};
  const formats::RopeConfig divided = {.rotary_dim = 8, .frequency_divisors = "rope_freqs.weight"};
  const formats::RopeConfig lengthened = {.rotary_dim = 4,
                                          .scaling = kLongRope,
                                          .original_ctx_len = 32,
                                          .long_factor = {1, 2},
                                          .short_factor = {1, 1}};
  seen.push_back(digest(*plain, {.rotary_dim = 8, .scaling = kLinear, .factor = 4}));
  seen.push_back(digest(*plain, {.rotary_dim = 8, .scaling = kYarn, .factor = 2}));
  seen.push_back(digest(*plain, divided));
  seen.push_back(digest(*other, divided));
  seen.push_back(digest(*plain, lengthened));
  seen.push_back(digest(*plain, lengthened, 16));
  std::ranges::sort(seen);
  EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
}

TEST(SessionFile, WhatIsSavedIsRestoredWithItsModelAlone) {
  const SessionFile session{.tokens = {1, 2, 70000}, .messages = {{"user", "Hi"}}, .cache = {5, 6, 7}};
  std::vector<uint8_t> bytes = encode_session("m", session);
  const SessionFile again = must(decode_session(bytes, "m"));
  EXPECT_EQ(again.tokens, session.tokens);
  EXPECT_EQ(again.cache, session.cache);
  EXPECT_EQ(again.messages[0].content, "Hi");
  EXPECT_EQ(decode_session(bytes, "n").error().sentence(),
            "The session was saved with another model (m); this one is n.");
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_session(std::span(bytes).first(length), "m")) << length;
  }
}

}  // namespace
}  // namespace doppler::engine
