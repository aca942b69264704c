// Byte-level BPE of a tokenizer.json as GGUF's "gpt2" (hf_vocabulary.h). The split pattern is recognised by its text:
// GGUF stores a name.
#include "formats/convert/hf_vocabulary.h"

namespace doppler::formats {
namespace {

struct SplitPattern {
  const char* regex;
  const char* gguf_name;
};
constexpr SplitPattern kPatterns[] = {
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "llama-bpe"},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "qwen2"},
};

Result<std::string> split_pattern_name(const Json& tokenizer) {
  const Json* pre = find(tokenizer, "pre_tokenizer");
  const Json* split = find_step(pre, "Split", "pretokenizers");
  if (!split) return std::string("gpt-2");
  const Json* pattern = find(*split, "pattern");
  if (!pattern) return fail(ErrorKind::kInvalidInput, "The \"Split\" step of tokenizer.json has no pattern.");
  DP_TRY(const auto regex, get_string(*pattern, "Regex"));
  for (const SplitPattern& row : kPatterns) {
    if (regex && *regex == row.regex) return std::string(row.gguf_name);
  }
  return fail(ErrorKind::kUnsupported, "The split pattern of tokenizer.json has no name in GGUF: %s.",
              printable(regex.value_or("(none)"), 200).c_str());
}

}  // namespace

Result<HfVocabulary> add_byte_level(const Json& tokenizer, uint32_t vocab_size, GgufHeader& header) {
  const Json& model = *find(tokenizer, "model");
  DP_TRY(const std::string pattern, split_pattern_name(tokenizer));
  HfVocabulary vocabulary(vocab_size);
  DP_CHECK(place_vocab(model, vocabulary));
  DP_TRY(const std::vector<HfAddedToken> added, added_tokens(tokenizer));
  for (const HfAddedToken& token : added) {
    DP_CHECK(vocabulary.place(token.text, token.id, token.special ? kControlToken : kUserDefinedToken));
  }
  vocabulary.name_unused();
  DP_TRY(const std::vector<HfMerge> merges, read_merges(model));
  std::vector<std::string> lines;
  for (const HfMerge& merge : merges) lines.push_back(merge.left + " " + merge.right);
  header.add_string("tokenizer.ggml.model", "gpt2");
  header.add_string("tokenizer.ggml.pre", pattern);
  header.add_strings("tokenizer.ggml.tokens", vocabulary.tokens);
  header.add_i32s("tokenizer.ggml.token_type", vocabulary.types);
  header.add_strings("tokenizer.ggml.merges", lines);
  return vocabulary;
}

}  // namespace doppler::formats
