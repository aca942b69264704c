// The workload, as data: llama-bench's tests, made from the lists of its flags, and the tokens they run on. Read next:
// harness.h, which runs them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace doppler::bench {

struct Test {
  uint32_t prompt = 0;       // tokens evaluated
  uint32_t generate = 0;     // tokens generated
  uint32_t depth = 0;        // tokens in the cache before
  uint32_t streams = 0;      // that generate together, through the scheduler; 0: one, without it
  std::string name() const;  // "pp512", "tg128 @ d8192", "pp512+tg128", "tg128 x8 @ d512"
  // Positions that the cache must hold, of each stream; a test that only generates starts from one token.
  uint64_t positions() const;
  bool operator==(const Test&) const = default;
};

// -p, -n, -pg and -d. As in llama-bench: at each depth a test of each prompt length, of each generation
// length and of each pair; 0 is no test. With --streams: at each depth, of each generation length a test of each number
// of streams, and nothing else, since a model loaded for several sequences has other kernels.
struct TestLists {
  std::vector<uint32_t> prompts = {512};
  std::vector<uint32_t> generates = {128};
  std::vector<std::pair<uint32_t, uint32_t>> pairs;  // prompt, generate
  std::vector<uint32_t> depths = {0};
  std::vector<uint32_t> streams;
};
// Errors: no test is left; a test that measures nothing (one generated token has no interval).
Result<std::vector<Test>> make_tests(const TestLists& lists);
uint64_t positions_needed(const std::vector<Test>& tests);
// Error: a test needs more positions than the context of `ctx_len` holds.
Result<void> check_context(const std::vector<Test>& tests, uint32_t ctx_len);
// That the model must be loaded for: the most streams of a test, at least 2 if there are any; else 1.
uint32_t sequences_needed(const std::vector<Test>& tests);

// "128" or "128,512". `flag` is named in errors.
Result<std::vector<uint32_t>> parse_lengths(std::string_view flag, std::string_view text);
// Numbers of streams. Error: none, or more than a model takes.
Result<std::vector<uint32_t>> parse_streams(std::string_view text);
// "512,128".
Result<std::pair<uint32_t, uint32_t>> parse_pair(std::string_view flag, std::string_view text);

// Tokens that do not repeat soon, so that no part can be cached by content. Equal salts give equal tokens.
std::vector<uint32_t> make_prompt(uint32_t count, uint32_t vocab_size, uint32_t salt);

}  // namespace doppler::bench
