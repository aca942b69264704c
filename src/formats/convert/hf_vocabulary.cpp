// Reading the parts of tokenizer.json that both kinds have (hf_vocabulary.h).
#include "formats/convert/hf_vocabulary.h"

#include <algorithm>

namespace doppler::formats {

Result<> HfVocabulary::place(const std::string& text, const Json& id, int32_t type) {
  if (!id.is_number_unsigned() || id.get<uint64_t>() >= tokens.size()) {
    return fail(ErrorKind::kInvalidInput,
                "tokenizer.json gives token \"%s\" the id %s; 0 to %zu are allowed.", printable(text).c_str(),
                printable(to_text(id)).c_str(), tokens.size() - 1);
  }
  const size_t place = host_size(id.get<uint64_t>());
  tokens[place] = text;
  types[place] = type;
  return {};
}

void HfVocabulary::name_unused() {
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (types[id] == kUnusedToken && tokens[id].empty()) tokens[id] = "[PAD" + std::to_string(id) + "]";
  }
}

std::optional<uint32_t> HfVocabulary::find(std::string_view text) const {
  const auto found = std::ranges::find(tokens, text);
  if (found == tokens.end()) return std::nullopt;
  return static_cast<uint32_t>(found - tokens.begin());
}

Result<std::vector<HfAddedToken>> added_tokens(const Json& tokenizer) {
  std::vector<HfAddedToken> out;
  const Json* added = find(tokenizer, "added_tokens");
  for (const Json& token : added && added->is_array() ? *added : Json::array()) {
    DP_TRY(const auto content, get_string(token, "content"));
    DP_TRY(const auto special, get_bool(token, "special"));
    const Json* id = find(token, "id");
    if (!content || !id)
      return fail(ErrorKind::kInvalidInput, "An added token of tokenizer.json has no content or id.");
    out.push_back({*content, *id, special.value_or(false)});
  }
  return out;
}

Result<> place_vocab(const Json& model, HfVocabulary& vocabulary) {
  const Json* vocab = find(model, "vocab");
  if (!vocab || !vocab->is_object()) {
    return fail(ErrorKind::kInvalidInput, "tokenizer.json has no \"vocab\" that maps tokens to ids.");
  }
  for (const auto& [text, id] : vocab->items()) DP_CHECK(vocabulary.place(text, id, kNormalToken));
  return {};
}

Result<std::vector<HfMerge>> read_merges(const Json& model) {
  std::vector<HfMerge> merges;
  const Json* list = find(model, "merges");
  if (!list || !list->is_array())
    return fail(ErrorKind::kInvalidInput, "tokenizer.json has no list of \"merges\".");
  for (const Json& merge : *list) {
    if (merge.is_string()) {
      const std::string& text = merge.text();
      const size_t space = text.find(' ', 1);  // a token may begin with a space
      if (space != std::string::npos) {
        merges.push_back({text.substr(0, space), text.substr(space + 1)});
        continue;
      }
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      merges.push_back({merge[0].get<std::string>(), merge[1].get<std::string>()});
      continue;
    }
    return fail(ErrorKind::kInvalidInput, "Merge %zu of tokenizer.json is neither \"left right\" nor a pair.",
                merges.size());
  }
  return merges;
}

std::string step_type(const Json& step) {
  const Json* found = find(step, "type");
  return found && found->is_string() ? found->get<std::string>() : std::string();
}

const Json* find_step(const Json* step, const char* type, const char* list) {
  if (!step) return nullptr;
  if (step_type(*step) == type) return step;
  const Json* steps = step_type(*step) == "Sequence" ? find(*step, list) : nullptr;
  for (size_t i = 0; steps && steps->is_array() && i < steps->size(); ++i) {
    if (step_type((*steps)[i]) == type) return &(*steps)[i];
  }
  return nullptr;
}

bool is_byte_level(const Json& tokenizer) {
  return find_step(find(tokenizer, "pre_tokenizer"), "ByteLevel", "pretokenizers") != nullptr;
}

}  // namespace doppler::formats
