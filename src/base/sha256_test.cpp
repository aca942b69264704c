// SHA-256 against the examples of FIPS 180-4, and digests as text.
#include "base/sha256.h"

#include <gtest/gtest.h>

namespace doppler {
namespace {

struct Example {
  std::string text, digest;
};

TEST(Sha256, GivesTheStandardsDigests) {
  const Example examples[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1'000'000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (const Example& row : examples) {
    EXPECT_EQ(sha256_hex(sha256(text_bytes(row.text))), row.digest);
    Sha256Hasher hasher;  // in pieces, and twice with the same object
    for (int round = 0; round < 2; ++round) {
      const size_t half = row.text.size() / 2;
      hasher.update(text_bytes(std::string_view(row.text).substr(0, half)));
      hasher.update(text_bytes(std::string_view(row.text).substr(half)));
      EXPECT_EQ(sha256_hex(hasher.finish()), row.digest);
    }
  }
}

TEST(Sha256, TextIsReadOnlyAsItIsWritten) {
  const std::string text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  const auto digest = sha256_from_hex(text);
  ASSERT_TRUE(digest);
  EXPECT_EQ(sha256_hex(*digest), text);
  EXPECT_FALSE(sha256_from_hex("BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"));
  EXPECT_FALSE(sha256_from_hex(text.substr(1)));
  EXPECT_FALSE(sha256_from_hex("g" + text.substr(1)));
}

}  // namespace
}  // namespace doppler
