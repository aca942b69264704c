// Translates a tokenizer.json (hf_tokenizer.h). The split pattern is recognised by its text: GGUF stores a
// name.
#include "formats/convert/hf_tokenizer.h"

#include <string>
#include <vector>

#include "base/json.h"

namespace doppler::formats {
namespace {

enum TokenType : int32_t { kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5 };  // GGUF's numbers

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

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
};

Result<> place_token(Vocabulary& vocabulary, const std::string& text, const Json& id, TokenType type) {
  if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocabulary.tokens.size()) {
    return fail(ErrorKind::kInvalidInput,
                "tokenizer.json gives token \"%s\" the id %s; 0 to %zu are allowed.", printable(text).c_str(),
                printable(to_text(id)).c_str(), vocabulary.tokens.size() - 1);
  }
  const size_t place = host_size(id.get<uint64_t>());
  vocabulary.tokens[place] = text;
  vocabulary.types[place] = type;
  return {};
}

Result<Vocabulary> read_vocabulary(const Json& tokenizer, const Json& model, uint32_t vocab_size) {
  Vocabulary vocabulary{std::vector<std::string>(vocab_size), std::vector<int32_t>(vocab_size, kUnused)};
  const Json* vocab = find(model, "vocab");
  if (!vocab || !vocab->is_object()) {
    return fail(ErrorKind::kInvalidInput, "tokenizer.json has no \"vocab\" that maps tokens to ids.");
  }
  for (const auto& [text, id] : vocab->items()) DP_CHECK(place_token(vocabulary, text, id, kNormal));
  const Json* added = find(tokenizer, "added_tokens");
  for (const Json& token : added && added->is_array() ? *added : Json::array()) {
    DP_TRY(const auto content, get_string(token, "content"));
    DP_TRY(const auto special, get_bool(token, "special"));
    const Json* id = find(token, "id");
    if (!content || !id)
      return fail(ErrorKind::kInvalidInput, "An added token of tokenizer.json has no content or id.");
    DP_CHECK(place_token(vocabulary, *content, *id, special.value_or(false) ? kControl : kUserDefined));
  }
  for (uint32_t id = 0; id < vocab_size; ++id) {
    if (vocabulary.types[id] == kUnused) vocabulary.tokens[id] = "[PAD" + std::to_string(id) + "]";
  }
  return vocabulary;
}

// Merges are written "left right", or as pairs in newer files.
Result<std::vector<std::string>> read_merges(const Json& model) {
  std::vector<std::string> merges;
  const Json* list = find(model, "merges");
  if (!list || !list->is_array())
    return fail(ErrorKind::kInvalidInput, "tokenizer.json has no list of \"merges\".");
  for (const Json& merge : *list) {
    if (merge.is_string()) {
      merges.push_back(merge.get_ref<const std::string&>());
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      merges.push_back(merge[0].get_ref<const std::string&>() + " " + merge[1].get_ref<const std::string&>());
    } else {
      return fail(ErrorKind::kInvalidInput, "Merge %zu of tokenizer.json is neither a text nor a pair.",
                  merges.size());
    }
  }
  return merges;
}

// The step of this type, alone or within a "Sequence" whose list is called `list`.
const Json* find_step(const Json* step, const char* type, const char* list) {
  if (!step) return nullptr;
  const auto is = [](const Json& object, const char* wanted) {
    const Json* found = find(object, "type");
    return found && found->is_string() && found->get_ref<const std::string&>() == wanted;
  };
  if (is(*step, type)) return step;
  const Json* steps = is(*step, "Sequence") ? find(*step, list) : nullptr;
  for (size_t i = 0; steps && steps->is_array() && i < steps->size(); ++i) {
    if (is((*steps)[i], type)) return &(*steps)[i];
  }
  return nullptr;
}

Result<std::string> split_pattern_name(const Json& tokenizer) {
  const Json* pre = find(tokenizer, "pre_tokenizer");
  const Json* split = find_step(pre, "Split", "pretokenizers");
  const Json* byte_level = find_step(pre, "ByteLevel", "pretokenizers");
  if (!byte_level) {
    return fail(ErrorKind::kUnsupported,
                "tokenizer.json is no byte-level BPE, the only kind that is converted.");
  }
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

// Whether text gets the begin token in front: the template for one text starts with a special token.
bool adds_bos(const Json& tokenizer) {
  const Json* step = find_step(find(tokenizer, "post_processor"), "TemplateProcessing", "processors");
  const Json* single = step ? find(*step, "single") : nullptr;
  return single && single->is_array() && !single->empty() && find((*single)[0], "SpecialToken");
}

// A token id that config.json gives as a number or, for several end tokens, as a list.
std::optional<uint32_t> special_id(const Json& config, const char* key, uint32_t vocab_size) {
  const Json* id = find(config, key);
  if (id && id->is_array() && !id->empty()) id = &(*id)[0];
  if (!id || !id->is_number_unsigned() || id->get<uint64_t>() >= vocab_size) return std::nullopt;
  return static_cast<uint32_t>(id->get<uint64_t>());
}

// A JSON object in the folder; an empty one when the file is absent.
Task<Result<Json>> read_object(const Checkpoint& model, std::string file) {
  auto reading = model.read_text(file);
  DP_CO_TRY(const auto text, co_await std::move(reading));
  if (!text) co_return Json(Json::object());
  co_return parse_json(*text, file);
}

Task<Result<>> add_chat_template(const Checkpoint& model, GgufHeader& header) {
  auto reading_file = model.read_text("chat_template.jinja");
  DP_CO_TRY(auto text, co_await std::move(reading_file));
  if (!text) {
    auto reading_config = read_object(model, "tokenizer_config.json");
    DP_CO_TRY(const Json config, co_await std::move(reading_config));
    const Json* member = find(config, "chat_template");
    if (member && member->is_string()) text = member->get_ref<const std::string&>();
  }
  if (text) header.add_string("tokenizer.chat_template", *text);
  co_return Result<>();
}

Task<Result<>> add_sampling_defaults(const Checkpoint& model, GgufHeader& header) {
  auto reading = read_object(model, "generation_config.json");
  DP_CO_TRY(const Json config, co_await std::move(reading));
  DP_CO_TRY(const auto temperature, get_number(config, "temperature"));
  DP_CO_TRY(const auto top_p, get_number(config, "top_p"));
  if (temperature) header.add_f32("general.sampling.temp", static_cast<float>(*temperature));
  if (top_p) header.add_f32("general.sampling.top_p", static_cast<float>(*top_p));
  co_return Result<>();
}

}  // namespace

Task<Result<>> add_hf_tokenizer(const Checkpoint& model, uint32_t vocab_size, GgufHeader& header) {
  auto reading = model.read_text("tokenizer.json");
  DP_CO_TRY(const auto text, co_await std::move(reading));
  if (!text) co_return fail(ErrorKind::kInvalidInput, "%s has no tokenizer.json.", model.name().c_str());
  DP_CO_TRY(const Json tokenizer, parse_json(*text, "tokenizer.json"));
  const Json* bpe = find(tokenizer, "model");
  DP_CO_TRY(const auto type, get_string(bpe ? *bpe : tokenizer, "type"));
  if (!bpe || type.value_or("") != "BPE") {
    co_return fail(ErrorKind::kUnsupported, "tokenizer.json holds a %s model; only BPE is converted.",
                   printable(type.value_or("nameless")).c_str());
  }
  DP_CO_TRY(const std::string pattern, split_pattern_name(tokenizer));
  DP_CO_TRY(const Vocabulary vocabulary, read_vocabulary(tokenizer, *bpe, vocab_size));
  DP_CO_TRY(const std::vector<std::string> merges, read_merges(*bpe));
  header.add_string("tokenizer.ggml.model", "gpt2");
  header.add_string("tokenizer.ggml.pre", pattern);
  header.add_strings("tokenizer.ggml.tokens", vocabulary.tokens);
  header.add_i32s("tokenizer.ggml.token_type", vocabulary.types);
  header.add_strings("tokenizer.ggml.merges", merges);
  const std::pair<const char*, const char*> kIds[] = {{"bos_token_id", "tokenizer.ggml.bos_token_id"},
                                                      {"eos_token_id", "tokenizer.ggml.eos_token_id"},
                                                      {"pad_token_id", "tokenizer.ggml.padding_token_id"}};
  for (const auto& [hf, gguf] : kIds) {
    if (const auto id = special_id(model.config(), hf, vocab_size)) header.add_u32(gguf, *id);
  }
  header.add_bool("tokenizer.ggml.add_bos_token", adds_bos(tokenizer));
  auto adding_template = add_chat_template(model, header);
  DP_CO_CHECK(co_await std::move(adding_template));
  auto adding_defaults = add_sampling_defaults(model, header);
  co_return co_await std::move(adding_defaults);
}

}  // namespace doppler::formats
