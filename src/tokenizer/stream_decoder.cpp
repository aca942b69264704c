// Cutting at character borders and replacing what is no UTF-8 (stream_decoder.h).
#include "tokenizer/stream_decoder.h"

#include "tokenizer/unicode/unicode.h"

namespace doppler::tokenizer {
namespace {

// The number of bytes of a well-formed character with this lead byte; 1 for bytes that lead none.
size_t promised_length(unsigned char lead) {
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 1;
}

// The number of bytes at `at` that could begin a well-formed character: one replacement character stands for the whole
// run (Unicode's "maximal subpart").
size_t plausible_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const size_t promised = promised_length(byte(0));
  size_t length = 1;
  while (length < promised && at + length < text.size()) {
    unsigned char low = 0x80, high = 0xBF;
    if (length == 1) {
      if (byte(0) == 0xE0) low = 0xA0;   // shorter forms exist
      if (byte(0) == 0xED) high = 0x9F;  // surrogates
      if (byte(0) == 0xF0) low = 0x90;
      if (byte(0) == 0xF4) high = 0x8F;  // above U+10FFFF
    }
    if (byte(length) < low || byte(length) > high) break;
    ++length;
  }
  return length;
}

}  // namespace

std::string StreamDecoder::feed(int32_t id) {
  const TokenType type = tokenizer_.token_type(id);
  if (options_.skip_special && type == TokenType::kControl) return {};
  std::string_view bytes = tokenizer_.token_bytes(id);
  if (strip_space_ && !bytes.empty()) {
    if (type != TokenType::kControl) {  // a BOS before the text changes nothing
      if (bytes.front() == ' ') bytes.remove_prefix(1);
      strip_space_ = false;
    }
  }
  pending_.append(bytes);
  if (!options_.replace_invalid) {
    std::string out;
    out.swap(pending_);
    return out;
  }
  return take_complete(false);
}

std::string StreamDecoder::flush() {
  std::string out = take_complete(true);
  strip_space_ = at_start_ && tokenizer_.strips_leading_space();
  return out;
}

std::string StreamDecoder::take_complete(bool all) {
  std::string out;
  size_t at = 0;
  while (at < pending_.size()) {
    const DecodedChar c = decode_utf8(pending_, at);
    if (c.code != kInvalidCodePoint) {
      out.append(pending_, at, c.length);
      at += c.length;
      continue;
    }
    const size_t length = plausible_length(pending_, at);
    const bool may_go_on =
        at + length == pending_.size() && length < promised_length(static_cast<unsigned char>(pending_[at]));
    if (may_go_on && !all) break;
    append_utf8(out, kReplacementCharacter);
    at += length;
  }
  pending_.erase(0, at);
  return out;
}

}  // namespace doppler::tokenizer
