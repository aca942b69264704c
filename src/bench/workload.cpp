#include "bench/workload.h"

#include <algorithm>

#include "kernels/common/step_tables.h"

namespace doppler::bench {
namespace {

constexpr int64_t kMostTokens = 1 << 24;  // beyond any context; keeps sums far from overflow

// Numbers with commas between them. Empty: one is none, or is out of the range.
std::optional<std::vector<uint32_t>> numbers_of(std::string_view text, int64_t least, int64_t most) {
  std::vector<uint32_t> numbers;
  for (const std::string& part : split(text, ',')) {
    const auto number = parse_int(trim(part));
    if (!number || *number < least || *number > most) return std::nullopt;
    numbers.push_back(static_cast<uint32_t>(*number));
  }
  return numbers;
}

}  // namespace

std::string Test::name() const {
  std::string name;
  if (prompt != 0) name = format_text("pp%u", prompt);
  if (generate != 0) name += format_text("%stg%u", name.empty() ? "" : "+", generate);
  if (streams != 0) name += format_text(" x%u", streams);
  if (depth != 0) name += format_text(" @ d%u", depth);
  return name;
}

uint64_t Test::positions() const { return uint64_t{depth} + std::max(1u, prompt) + generate; }

Result<std::vector<Test>> make_tests(const TestLists& lists) {
  std::vector<Test> tests;
  for (const uint32_t depth : lists.depths) {
    for (const uint32_t generate : lists.generates) {
      for (const uint32_t streams : lists.streams) tests.push_back({0, generate, depth, streams});
    }
    if (!lists.streams.empty()) continue;
    for (const uint32_t prompt : lists.prompts) tests.push_back({prompt, 0, depth});
    for (const uint32_t generate : lists.generates) tests.push_back({0, generate, depth});
    for (const auto& [prompt, generate] : lists.pairs) tests.push_back({prompt, generate, depth});
  }
  std::erase_if(tests, [](const Test& test) { return test.prompt == 0 && test.generate == 0; });
  if (tests.empty()) {
    return fail(ErrorKind::kInvalidInput,
                "No test is left to run: -p, -n or -pg must name a length above 0.");
  }
  for (const Test& test : tests) {
    if (test.prompt != 0 || test.generate > 1) continue;
    return fail(ErrorKind::kInvalidInput,
                "Test %s measures nothing: a prompt or at least 2 generated tokens are needed.",
                test.name().c_str());
  }
  return tests;
}

uint64_t positions_needed(const std::vector<Test>& tests) {
  uint64_t most = 0;
  for (const Test& test : tests) most = std::max(most, test.positions());
  return most;
}

Result<void> check_context(const std::vector<Test>& tests, uint32_t ctx_len) {
  for (const Test& test : tests) {
    if (test.positions() <= ctx_len) continue;
    return fail(ErrorKind::kInvalidInput, "Test %s needs %llu positions; the context holds %u (--ctx).",
                test.name().c_str(), static_cast<unsigned long long>(test.positions()), ctx_len);
  }
  return {};
}

uint32_t sequences_needed(const std::vector<Test>& tests) {
  uint32_t most = 0;
  for (const Test& test : tests) most = std::max(most, test.streams);
  return most == 0 ? 1 : std::max(2u, most);
}

Result<std::vector<uint32_t>> parse_lengths(std::string_view flag, std::string_view text) {
  std::optional<std::vector<uint32_t>> lengths = numbers_of(text, 0, kMostTokens);
  if (lengths) return std::move(*lengths);
  return fail(ErrorKind::kInvalidInput,
              "Flag %s was given \"%s\"; allowed are numbers of tokens such as 128 or 128,512, up to %lld.",
              std::string(flag).c_str(), printable(text).c_str(), static_cast<long long>(kMostTokens));
}

Result<std::vector<uint32_t>> parse_streams(std::string_view text) {
  std::optional<std::vector<uint32_t>> streams = numbers_of(text, 1, kernels::kMaxSequences);
  if (streams) return std::move(*streams);
  return fail(ErrorKind::kInvalidInput,
              "Flag --streams was given \"%s\"; allowed are whole numbers from 1 to %u, such as 8 or 1,8,32.",
              printable(text).c_str(), kernels::kMaxSequences);
}

Result<std::pair<uint32_t, uint32_t>> parse_pair(std::string_view flag, std::string_view text) {
  DP_TRY(const std::vector<uint32_t> lengths, parse_lengths(flag, text));
  if (lengths.size() != 2) {
    return fail(ErrorKind::kInvalidInput,
                "Flag %s was given \"%s\"; it takes a prompt and a generated length: 512,128.",
                std::string(flag).c_str(), printable(text).c_str());
  }
  return std::pair{lengths[0], lengths[1]};
}

std::vector<uint32_t> make_prompt(uint32_t count, uint32_t vocab_size, uint32_t salt) {
  std::vector<uint32_t> tokens(count);
  uint64_t state = 0x9E3779B97F4A7C15ull * (salt + 1);
  for (uint32_t& token : tokens) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;  // Knuth, MMIX
    token = static_cast<uint32_t>((state >> 33) % vocab_size);
  }
  return tokens;
}

}  // namespace doppler::bench
