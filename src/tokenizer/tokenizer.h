// Text <-> token ids, for every kind of vocabulary. Immutable after create(): share it between threads
// freely. Read next: vocab.h (where a tokenizer comes from), stream_decoder.h (ids to text while they are
// generated).
//
//   DP_TRY(auto spec, vocab_from_tokenizer_json(json, config));
//   DP_TRY(auto tokenizer, Tokenizer::create(std::move(spec)));
//   DP_TRY(auto ids, tokenizer->encode("Hello", {.add_special = true}));
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/vocab.h"

namespace doppler::tokenizer {

struct EncodeOptions {
  bool add_special = false;    // BOS, EOS, ... around the text, as the vocabulary says
  bool parse_special = false;  // control tokens written out in the text become those tokens
};

struct DecodeOptions {
  bool skip_special = false;    // control tokens give no text
  bool replace_invalid = true;  // bytes that are not UTF-8 become U+FFFD; otherwise they are kept
};

// Two texts that a model reads at once, with what its vocabulary puts around and between them.
struct EncodedPair {
  std::vector<int32_t> ids;
  std::vector<uint32_t> types;  // one a token: 0, or the second text's
};

class Tokenizer {
 public:
  static constexpr size_t kMaxTextBytes = size_t{1} << 30;

  // Errors: the vocabulary is inconsistent, or one of its patterns cannot be read.
  static Result<std::shared_ptr<const Tokenizer>> create(VocabSpec spec);
  ~Tokenizer();

  // Any bytes may be encoded. The only error is a text longer than kMaxTextBytes.
  Result<std::vector<int32_t>> encode(std::string_view text, EncodeOptions options = {}) const;
  // Errors: as of encode().
  Result<EncodedPair> encode_pair(std::string_view first, std::string_view second) const;
  // An id outside of the vocabulary is an error.
  Result<std::string> decode(std::span<const int32_t> ids, DecodeOptions options = {}) const;

  size_t vocab_size() const { return spec_.tokens.size(); }
  VocabKind kind() const { return spec_.kind; }
  // The text that the token stands for, e.g. " the"; may be half a character. Empty outside of the vocabulary.
  std::string_view token_bytes(int32_t id) const;
  // The token as the file spells it, e.g. "Ġthe" or "▁the" or "<0x0A>". Empty outside of the vocabulary.
  std::string_view token_text(int32_t id) const;
  TokenType token_type(int32_t id) const;
  // The token whose spelling in the file this is.
  std::optional<int32_t> find(std::string_view token_text) const;

  int32_t bos() const { return spec_.bos; }  // kNoToken if there is none; the same for those below
  int32_t eos() const { return spec_.eos; }
  int32_t eot() const { return spec_.eot; }
  int32_t unk() const { return spec_.unk; }
  int32_t sep() const { return spec_.sep; }
  int32_t pad() const { return spec_.pad; }
  // True when encode() with add_special begins with BOS: a template that writes BOS itself must not ask for
  // both.
  bool adds_bos() const;
  // A model has finished after one of these tokens: EOS, end of turn, and the well-known end tokens by name.
  bool is_end_of_generation(int32_t id) const;
  std::span<const int32_t> end_of_generation() const { return end_ids_; }
  // Decoding drops one space in front of the whole text, because encoding put it there.
  bool strips_leading_space() const { return spec_.strip_leading_space; }

 private:
  struct Pipeline;
  explicit Tokenizer(VocabSpec spec);
  void make_token_bytes();
  void find_end_tokens();

  VocabSpec spec_;
  TextTable bytes_;               // by id
  std::vector<int32_t> end_ids_;  // sorted
  std::unique_ptr<Pipeline> pipeline_;
};

}  // namespace doppler::tokenizer
