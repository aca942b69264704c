// Fuzz target: any bytes as tokenizer.json (and, after a zero byte, as tokenizer_config.json). A tokenizer that loads
// must encode and decode without a crash.
#include "tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace doppler::tokenizer;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t zero = text.find('\0');
  auto spec = vocab_from_tokenizer_json(
      text.substr(0, zero), zero == std::string_view::npos ? std::string_view() : text.substr(zero + 1));
  if (!spec) return 0;
  const auto tokenizer = Tokenizer::create(std::move(*spec));
  if (!tokenizer) return 0;
  const auto ids =
      (*tokenizer)->encode("ab <s> 12 caf\xC3\xA9 \xFF", {.add_special = true, .parse_special = true});
  if (!ids || !(*tokenizer)->decode(*ids)) __builtin_trap();
  return 0;
}
