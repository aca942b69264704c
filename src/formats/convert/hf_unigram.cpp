// Unigram of a tokenizer.json as GGUF's "t5" (hf_vocabulary.h): pieces with scores, the map of characters, and what
// becomes of spaces.
#include "base/base64.h"
#include "formats/convert/hf_vocabulary.h"

namespace doppler::formats {
namespace {

constexpr float kUnusedScore = -10000.0f;  // of ids without a piece, as llama.cpp's converter has it

Unexpected no_place(const char* what, const std::string& type) {
  return fail(ErrorKind::kUnsupported,
              "The %s \"%s\" of tokenizer.json has no place in GGUF's \"t5\" tokenizer.", what,
              printable(type).c_str());
}

// Calls use(step, type) for the step itself, or for each of a sequence.
template <class Use>
Result<> each_step(const Json* step, const char* list, const Use& use) {
  if (!step || step->is_null()) return {};
  const std::string type = step_type(*step);
  const Json* inner = type == "Sequence" ? find(*step, list) : nullptr;
  if (!inner || !inner->is_array()) return use(*step, type);
  for (const Json& one : *inner) DP_CHECK(use(one, step_type(one)));
  return {};
}

struct Pipeline {
  std::string map;
  bool merges_spaces = false, add_space_prefix = false;
};

Result<Pipeline> read_pipeline(const Json& tokenizer, std::vector<std::string>& notes) {
  Pipeline out;
  bool marks = false, strips = false;
  DP_CHECK(each_step(find(tokenizer, "normalizer"), "normalizers",
                     [&](const Json& step, const std::string& type) -> Result<> {
                       const Json* pattern = find(step, "pattern");
                       if (type == "Precompiled" && out.map.empty()) {
                         DP_TRY(const auto text, get_string(step, "precompiled_charsmap"));
                         const auto map = from_base64(text.value_or(""));
                         if (!map) return no_place("normalizer", type);
                         out.map = *map;
                       } else if (type == "Strip") {
                         strips = true;
                       } else if (type == "Replace" && pattern) {
                         DP_TRY(const auto regex, get_string(*pattern, "Regex"));
                         if (regex.value_or("") != " {2,}") return no_place("normalizer", type);
                         out.merges_spaces = true;
                       } else {
                         return no_place("normalizer", type);
                       }
                       return {};
                     }));
  DP_CHECK(each_step(find(tokenizer, "pre_tokenizer"), "pretokenizers",
                     [&](const Json& step, const std::string& type) -> Result<> {
                       if (type == "WhitespaceSplit" && !marks) {
                         out.merges_spaces = strips = true;
                       } else if (type == "Metaspace" && !marks) {
                         DP_TRY(const auto scheme, get_string(step, "prepend_scheme"));
                         DP_TRY(const auto old_prefix, get_bool(step, "add_prefix_space"));
                         const bool prefix = old_prefix.value_or(true);
                         out.add_space_prefix = scheme ? *scheme != "never" : prefix;
                         marks = true;
                       } else {
                         return no_place("pre_tokenizer", type);
                       }
                       return {};
                     }));
  if (!marks) return no_place("pre_tokenizer without", "Metaspace");
  if (strips && !out.merges_spaces) return no_place("normalizer without one that merges spaces,", "Strip");
  if (out.merges_spaces && !strips) {
    notes.push_back("tokenizer.json keeps a space at the end of a text, which readers of GGUF drop.");
  }
  return out;
}

}  // namespace

Result<HfPieces> add_unigram(const Json& tokenizer, uint32_t vocab_size, GgufHeader& header,
                             std::vector<std::string>& notes) {
  DP_TRY(const Pipeline pipeline, read_pipeline(tokenizer, notes));
  const Json& model = *find(tokenizer, "model");
  const Json* vocab = find(model, "vocab");
  HfPieces out;
  out.vocabulary = HfVocabulary(vocab_size);
  std::vector<float> scores(vocab_size, kUnusedScore);
  for (uint64_t id = 0; vocab && vocab->is_array() && id < vocab->size(); ++id) {
    const Json& piece = (*vocab)[host_size(id)];
    const bool is_pair =
        piece.is_array() && piece.size() == 2 && piece[0].is_string() && piece[1].is_number();
    if (!is_pair) {
      return fail(ErrorKind::kInvalidInput,
                  "The Unigram model of tokenizer.json has %s where a token and its score are due.",
                  printable(to_text(piece)).c_str());
    }
    DP_CHECK(out.vocabulary.place(piece[0].get<std::string>(), Json(id), kNormalToken));
    scores[host_size(id)] = piece[1].get<float>();
  }
  DP_TRY(const std::vector<HfAddedToken> added, added_tokens(tokenizer));
  for (const HfAddedToken& token : added) {
    DP_CHECK(out.vocabulary.place(token.text, token.id, token.special ? kControlToken : kUserDefinedToken));
    scores[host_size(token.id.get<uint64_t>())] = 0;
  }
  DP_TRY(const auto unknown, get_integer(model, "unk_id"));
  if (unknown && *unknown >= 0 && *unknown < int64_t{vocab_size}) {
    out.unk = static_cast<uint32_t>(*unknown);
    out.vocabulary.types[*out.unk] = kUnknownToken;
  }
  out.vocabulary.name_unused();
  header.add_string("tokenizer.ggml.model", "t5");
  header.add_string("tokenizer.ggml.pre", "default");
  header.add_strings("tokenizer.ggml.tokens", out.vocabulary.tokens);
  header.add_f32s("tokenizer.ggml.scores", scores);
  header.add_i32s("tokenizer.ggml.token_type", out.vocabulary.types);
  header.add_bool("tokenizer.ggml.add_space_prefix", pipeline.add_space_prefix);
  header.add_bool("tokenizer.ggml.remove_extra_whitespaces", pipeline.merges_spaces);
  if (!pipeline.map.empty()) header.add_bytes("tokenizer.ggml.precompiled_charsmap", pipeline.map);
  return out;
}

}  // namespace doppler::formats
