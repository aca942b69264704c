// tokenizer_bench [TEXT-FILE]: loading time and encoding speed of the test vocabularies, one core, best of
// five. Without a file: 1 MiB of mixed text made from the vectors' texts and English, and three hostile runs.
#include <chrono>
#include <cstdio>
#include <string>

#include "vocab_files_native.h"

namespace doppler {
namespace {

double encode_mb_per_s(const tokenizer::Tokenizer& tokenizer, const std::string& text, size_t& count) {
  double best = 1e9;
  for (int run = 0; run < 5; ++run) {
    const auto start = std::chrono::steady_clock::now();
    const auto ids = tokenizer.encode(text);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (ids) count = ids->size();
    best = std::min(best, took.count());
    if (best > 1) break;
  }
  return static_cast<double>(text.size()) / best / 1e6;
}

std::string repeat(std::string_view unit, size_t bytes) {
  std::string out;
  while (out.size() < bytes) out += unit;
  return out;
}

int bench(const char* path) {
  constexpr size_t kBytes = 1 << 20;
  std::string mixed = path ? read_file(path) : "";
  if (mixed.empty()) {
    for (const VocabVector& vector : read_vectors("qwen35")) mixed += vector.text + "\n";
    mixed = repeat(mixed, kBytes);
  }
  const std::string letters(kBytes, 'a'), spaces(kBytes, ' '), llamas = repeat("🦙", kBytes);
  std::printf("%-15s %8s %10s %10s %10s %10s %10s\n", "vocabulary", "load ms", "text MB/s", "tokens",
              "aaa MB/s", "space MB/s", "emoji MB/s");
  for (const char* name :
       {"llama-bpe", "gpt-2", "qwen2", "qwen35", "llama-spm", "phi-3", "gemma-4", "command-r", "deepseek-llm",
        "deepseek-coder", "falcon", "mpt", "starcoder", "refact", "bert-bge"}) {
    double load_ms = 0;
    const auto tokenizer = load_vocab(name, &load_ms);
    if (!tokenizer) {
      std::printf("%-15s %s\n", name, tokenizer.error().message().c_str());
      return 1;
    }
    size_t count = 0, other = 0;
    const double text = encode_mb_per_s(**tokenizer, mixed, count);
    std::printf("%-15s %8.0f %10.1f %10zu %10.1f %10.1f %10.1f\n", name, load_ms, text, count,
                encode_mb_per_s(**tokenizer, letters, other), encode_mb_per_s(**tokenizer, spaces, other),
                encode_mb_per_s(**tokenizer, llamas, other));
  }
  return 0;
}

}  // namespace
}  // namespace doppler

int main(int argc, char** argv) { return doppler::bench(argc > 1 ? argv[1] : nullptr); }
