// Finds the tokenizer's files and adds the fields that do not depend on its kind (hf_tokenizer.h).
#include "formats/convert/hf_tokenizer.h"

#include <string>
#include <vector>

#include "base/json.h"
#include "formats/convert/hf_vocabulary.h"

namespace doppler::formats {
namespace {

struct Surroundings {
  bool bos = false, eos = false;
  std::optional<std::string> sep;  // stands before the second of two texts, after the first one's end
};

// The texts of the special tokens that a template has between its two texts.
std::vector<std::string> between_texts(const Json* pair) {
  std::vector<std::string> between;
  size_t texts = 0;
  for (const Json& item : pair && pair->is_array() ? *pair : Json::array()) {
    if (find(item, "Sequence")) ++texts;
    const Json* special = find(item, "SpecialToken");
    const Json* id = special ? find(*special, "id") : nullptr;
    if (texts == 1 && id && id->is_string()) between.push_back(id->get<std::string>());
  }
  return between;
}

// The tokens before and after a text: the special tokens of tokenizer.json's template for one text, or, if it has none,
// those that tokenizer_config.json names. SentencePiece models without a tokenizer.json begin with BOS.
Result<Surroundings> read_surroundings(const Json* tokenizer, const Json& config) {
  Surroundings out{.bos = !tokenizer, .eos = false, .sep = {}};
  const Json* processor = tokenizer ? find(*tokenizer, "post_processor") : nullptr;
  if (const Json* roberta = find_step(processor, "RobertaProcessing", "processors")) {
    const Json* sep = find(*roberta, "sep");  // ["</s>", 2]
    if (sep && sep->is_array() && !sep->empty() && (*sep)[0].is_string())
      out.sep = (*sep)[0].get<std::string>();
    out.bos = out.eos = true;
    return out;
  }
  const Json* step = find_step(processor, "TemplateProcessing", "processors");
  const Json* single = step ? find(*step, "single") : nullptr;
  const std::vector<std::string> between = between_texts(step ? find(*step, "pair") : nullptr);
  if (between.size() == 2) out.sep = between[1];
  bool from_template = false;
  if (single && single->is_array() && !single->empty()) {
    out.bos = find((*single)[0], "SpecialToken") != nullptr;
    out.eos = single->size() > 1 && find((*single)[single->size() - 1], "SpecialToken");
    from_template = out.bos || out.eos;
  }
  if (from_template) return out;
  DP_TRY(const auto bos, get_bool(config, "add_bos_token"));
  DP_TRY(const auto eos, get_bool(config, "add_eos_token"));
  out.bos = bos.value_or(out.bos);
  out.eos = eos.value_or(out.eos);
  return out;
}

// A token id that config.json gives as a number or, for several end tokens, as a list.
std::optional<uint32_t> special_id(const Json& config, const char* key, size_t vocab_size) {
  const Json* id = find(config, key);
  if (id && id->is_array() && !id->empty()) id = &(*id)[0];
  if (!id || !id->is_number_unsigned() || id->get<uint64_t>() >= vocab_size) return std::nullopt;
  return static_cast<uint32_t>(id->get<uint64_t>());
}

// A token that tokenizer_config.json names by its text: a string, or an object that holds one.
std::optional<uint32_t> named_id(const Json& config, const char* key, const HfVocabulary& vocabulary) {
  const Json* token = find(config, key);
  if (token && token->is_object()) token = find(*token, "content");
  if (!token || !token->is_string()) return std::nullopt;
  return vocabulary.find(token->text());
}

// A JSON object in the folder; an empty one when the file is absent.
Task<Result<Json>> read_hf_tokenizer_object(const Checkpoint& model, std::string file) {
  auto reading = model.read_text(file);
  DP_CO_TRY(const auto text, co_await std::move(reading));
  if (!text) co_return Json(Json::object());
  co_return parse_json(*text, file);
}

// A model may have several templates with names.
Task<Result<>> add_chat_template(const Checkpoint& model, GgufHeader& header) {
  const std::string key = "tokenizer.chat_template";
  auto reading_file = model.read_text("chat_template.jinja");
  DP_CO_TRY(auto text, co_await std::move(reading_file));
  auto reading_config = read_hf_tokenizer_object(model, "tokenizer_config.json");
  DP_CO_TRY(const Json config, co_await std::move(reading_config));
  const Json* member = find(config, "chat_template");
  if (!text && member && member->is_string()) text = member->text();
  for (const Json& entry : member && member->is_array() ? *member : Json::array()) {
    DP_CO_TRY(const auto name, get_string(entry, "name"));
    DP_CO_TRY(const auto source, get_string(entry, "template"));
    if (!name || !source) continue;
    if (*name == "default") {
      if (!text) text = *source;
    } else {
      header.add_string(key + "." + *name, *source);
    }
  }
  if (text) header.add_string(key, *text);
  co_return Result<>();
}

Task<Result<>> add_sampling_defaults(const Checkpoint& model, GgufHeader& header) {
  auto reading = read_hf_tokenizer_object(model, "generation_config.json");
  DP_CO_TRY(const Json config, co_await std::move(reading));
  DP_CO_TRY(const auto temperature, get_number(config, "temperature"));
  DP_CO_TRY(const auto top_p, get_number(config, "top_p"));
  if (temperature) header.add_f32("general.sampling.temp", static_cast<float>(*temperature));
  if (top_p) header.add_f32("general.sampling.top_p", static_cast<float>(*top_p));
  co_return Result<>();
}

}  // namespace

Task<Result<>> add_hf_tokenizer(const Checkpoint& model, uint32_t vocab_size, GgufHeader& header,
                                std::vector<std::string>& notes) {
  auto reading = model.read_text("tokenizer.json");
  DP_CO_TRY(const auto text, co_await std::move(reading));
  auto reading_pieces = model.read_text("tokenizer.model");
  DP_CO_TRY(const auto piece_model, co_await std::move(reading_pieces));
  auto reading_config = read_hf_tokenizer_object(model, "tokenizer_config.json");
  DP_CO_TRY(const Json config, co_await std::move(reading_config));
  if (!text && !piece_model) {
    co_return fail(ErrorKind::kInvalidInput, "%s has neither tokenizer.json nor tokenizer.model.",
                   model.name().c_str());
  }
  Json tokenizer;
  if (text) {
    DP_CO_TRY(tokenizer, parse_json(*text, "tokenizer.json"));
  }
  const Json* const json = text ? &tokenizer : nullptr;
  HfPieces pieces;
  const Json* const model_of_json = json ? find(tokenizer, "model") : nullptr;
  const std::string type = model_of_json ? step_type(*model_of_json) : "";
  const bool is_read = json && (is_byte_level(tokenizer) || !piece_model);
  if (is_read && type != "BPE" && type != "Unigram") {
    co_return fail(ErrorKind::kUnsupported,
                   "tokenizer.json holds a %s model; only BPE and Unigram are converted.",
                   type.empty() ? "nameless" : printable(type).c_str());
  }
  if (type == "Unigram") {
    DP_CO_TRY(pieces, add_unigram(tokenizer, vocab_size, header, notes));
  } else if (json && is_byte_level(tokenizer)) {
    DP_CO_TRY(pieces.vocabulary, add_byte_level(tokenizer, vocab_size, header));
  } else {
    DP_CO_TRY(pieces, add_sentence_pieces({piece_model, json, &config}, vocab_size, header, notes));
  }
  const struct {
    const char *config_key, *token, *gguf;
    std::optional<uint32_t> otherwise;
  } kIds[] = {{"bos_token_id", "bos_token", "tokenizer.ggml.bos_token_id", pieces.bos},
              {"eos_token_id", "eos_token", "tokenizer.ggml.eos_token_id", pieces.eos},
              {"", "unk_token", "tokenizer.ggml.unknown_token_id", pieces.unk},
              {"pad_token_id", "pad_token", "tokenizer.ggml.padding_token_id", pieces.pad}};
  for (const auto& row : kIds) {
    auto id = named_id(config, row.token, pieces.vocabulary);
    if (!id) id = special_id(model.config(), row.config_key, vocab_size);
    if (!id && row.otherwise && *row.otherwise < vocab_size) id = row.otherwise;
    if (id) header.add_u32(row.gguf, *id);
  }
  DP_CO_TRY(const Surroundings around, read_surroundings(json, config));
  header.add_bool("tokenizer.ggml.add_bos_token", around.bos);
  header.add_bool("tokenizer.ggml.add_eos_token", around.eos);
  const auto sep = around.sep ? pieces.vocabulary.find(*around.sep) : std::nullopt;
  if (sep) {
    header.add_u32("tokenizer.ggml.seperator_token_id", *sep);  // spelled so in the format
    header.add_bool("tokenizer.ggml.add_sep_token", true);
  }
  auto adding_template = add_chat_template(model, header);
  DP_CO_CHECK(co_await std::move(adding_template));
  auto adding_defaults = add_sampling_defaults(model, header);
  co_return co_await std::move(adding_defaults);
}

}  // namespace doppler::formats
