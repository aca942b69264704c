// Tokens in the byte-level alphabet of GPT-2: printable bytes stand for themselves, the others for characters
// from U+0100 on (vocabulary.h).
#include "formats/synth/vocabulary.h"

#include <string>
#include <vector>

namespace doppler::formats {
namespace {

constexpr uint32_t kNormal = 1, kControl = 3;  // GGUF token types
constexpr uint32_t kByteValues = 256;
constexpr uint32_t kSpecials = 256;  // as Llama 3 has; a sixteenth of a small vocabulary
// Llama 3's places among the special tokens.
constexpr uint32_t kBos = 0, kEos = 1, kEndOfTurn = 9;

bool stands_for_itself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

std::string utf8(uint32_t code) {  // below U+0800
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

// Letters come first, so that the fitting pairs and triples are those that occur in text.
std::vector<std::string> alphabet() {
  std::string order = "etaoinshrdlucmfwygpbvkxqjz ETAOINSHRDLUCMFWYGPBVKXQJZ.,\n0123456789";
  std::vector<bool> used(kByteValues);
  std::vector<uint32_t> bytes;
  for (const char c : order) bytes.push_back(static_cast<unsigned char>(c));
  for (const uint32_t byte : bytes) used[byte] = true;
  for (uint32_t byte = 0; byte < kByteValues; ++byte) {
    if (!used[byte]) bytes.push_back(byte);
  }
  std::vector<uint32_t> codes(kByteValues);
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < kByteValues; ++byte) codes[byte] = stands_for_itself(byte) ? byte : next++;
  std::vector<std::string> letters;
  for (const uint32_t byte : bytes) letters.push_back(utf8(codes[byte]));
  return letters;
}

std::string special_name(uint32_t i) {
  if (i == kBos) return "<|begin_of_text|>";
  if (i == kEos) return "<|end_of_text|>";
  if (i == kEndOfTurn) return "<|eot_id|>";
  return "<|reserved_special_token_" + std::to_string(i) + "|>";
}

}  // namespace

void add_synthetic_vocabulary(GgufHeader& header, uint32_t vocab_size) {
  const uint32_t n_specials = vocab_size >= 16 * kSpecials ? kSpecials : vocab_size / 16;
  const uint32_t n_normal = vocab_size - n_specials;
  const std::vector<std::string> letters = alphabet();
  std::vector<std::string> tokens = letters, merges;
  const auto join = [&](const std::string& left, const std::string& right) {
    merges.push_back(left + " " + right);
    tokens.push_back(left + right);
  };
  for (uint32_t i = 0; i < kByteValues * kByteValues && tokens.size() < n_normal; ++i) {
    join(letters[i / kByteValues], letters[i % kByteValues]);
  }
  for (uint32_t i = 0; tokens.size() < n_normal; ++i)
    join(tokens[kByteValues + i / kByteValues], letters[i % kByteValues]);
  std::vector<int32_t> types(n_normal, kNormal);
  for (uint32_t i = 0; i < n_specials; ++i) {
    tokens.push_back(special_name(i));
    types.push_back(kControl);
  }
  header.add_string("tokenizer.ggml.model", "gpt2");
  header.add_string("tokenizer.ggml.pre", "llama-bpe");
  header.add_strings("tokenizer.ggml.tokens", tokens);
  header.add_i32s("tokenizer.ggml.token_type", types);
  header.add_strings("tokenizer.ggml.merges", merges);
  header.add_u32("tokenizer.ggml.bos_token_id", n_normal + kBos);
  header.add_u32("tokenizer.ggml.eos_token_id", n_normal + kEndOfTurn);
  header.add_bool("tokenizer.ggml.add_bos_token", true);
}

}  // namespace doppler::formats
