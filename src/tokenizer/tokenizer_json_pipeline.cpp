// One function a member, one branch a step type (tokenizer_json_pipeline.h). Types and fields: the
// documentation of Hugging Face tokenizers.
#include "tokenizer/tokenizer_json_pipeline.h"

#include <functional>

#include "base/base64.h"
#include "base/json.h"
#include "tokenizer/bert_pipeline.h"
#include "tokenizer/normaliser.h"
#include "tokenizer/pre_tokenizers.h"

namespace doppler::tokenizer {
namespace {

using StepKind = NormaliserStep::Kind;

constexpr const char* kPipelineWhiteSpace = R"(\s+)";

Result<bool> flag(const Json& node, std::string_view key, bool fallback) {
  DP_TRY(const auto value, get_bool(node, key));
  return value.value_or(fallback);
}

Result<std::string> text(const Json& node, std::string_view key) {
  DP_TRY(auto value, get_string(node, key));
  return std::move(value).value_or("");
}

// Calls read(step) for the node itself, or for each member of a Sequence.
Result<> for_each_step(const Json& node, std::string_view members, int depth,
                       const std::function<Result<>(const Json&, const std::string&)>& read) {
  constexpr int kMaxDepth = 8;
  if (node.is_null()) return {};
  DP_TRY(const std::string type, text(node, "type"));
  if (type != "Sequence") return read(node, type);
  const Json* list = find(node, members);
  if (!list || !list->is_array() || depth == kMaxDepth) {
    return fail(ErrorKind::kInvalidInput,
                "A Sequence of tokenizer.json has no list \"%s\", or nests deeper than %d.",
                std::string(members).c_str(), kMaxDepth);
  }
  for (const Json& step : *list) DP_CHECK(for_each_step(step, members, depth + 1, read));
  return {};
}

std::string escape_pattern(std::string_view literal) {
  std::string out;
  for (const char c : literal) {
    if (std::string_view("\\.^$|()[]{}*+?&-").find(c) != std::string_view::npos) out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

Result<int32_t> token_id(const Json& node) {
  if (!node.is_number_integer() || node.get<int64_t>() < 0 ||
      node.get<int64_t>() >= static_cast<int64_t>(kMaxVocabSize)) {
    return fail(ErrorKind::kInvalidInput,
                "The post_processor of tokenizer.json has an id that is not 0 to %zu.", kMaxVocabSize - 1);
  }
  return node.get<int32_t>();
}

// {"String": "a"} or {"Regex": "a+"}
Result<> read_pattern(const Json& node, std::string& pattern, bool& is_regex) {
  const Json* holder = find(node, "pattern");
  DP_TRY(const auto literal, holder ? get_string(*holder, "String") : std::optional<std::string>());
  DP_TRY(const auto regex, holder ? get_string(*holder, "Regex") : std::optional<std::string>());
  if (!literal && !regex) {
    return fail(ErrorKind::kInvalidInput, "A step of tokenizer.json has no pattern \"String\" or \"Regex\".");
  }
  is_regex = regex.has_value();
  pattern = is_regex ? *regex : *literal;
  return {};
}

Result<SplitBehaviour> read_behaviour(const Json& node) {
  struct Row {
    const char* name;
    SplitBehaviour behaviour;
  };
  constexpr Row kRows[] = {{"Isolated", SplitBehaviour::kIsolated},
                           {"Removed", SplitBehaviour::kRemoved},
                           {"MergedWithPrevious", SplitBehaviour::kMergedWithPrevious},
                           {"MergedWithNext", SplitBehaviour::kMergedWithNext},
                           {"Contiguous", SplitBehaviour::kContiguous}};
  DP_TRY(const std::string name, text(node, "behavior"));
  for (const Row& row : kRows) {
    if (name == row.name || name.empty()) return row.behaviour;
  }
  return fail(ErrorKind::kInvalidInput, "The split behaviour \"%s\" of tokenizer.json is not known.",
              printable(name).c_str());
}

// The tokens that a template of post_processor puts around texts.
struct Template {
  size_t texts = 0;
  std::vector<int32_t> before, between, behind;
  uint32_t second_type = 0;
};
Result<Template> read_template(const Json& processor, const char* key) {
  const Json* items = find(processor, key);
  const Json* tokens = find(processor, "special_tokens");
  Template out;
  for (const Json& item : items && items->is_array() ? *items : Json::array()) {
    if (const Json* sequence = find(item, "Sequence")) {
      DP_TRY(const auto type, get_integer(*sequence, "type_id"));
      if (++out.texts == 2) {
        out.between = std::move(out.behind);
        out.behind.clear();
        out.second_type = type.value_or(0) > 0 ? 1 : 0;
      }
    }
    const Json* special = find(item, "SpecialToken");
    if (!special) continue;
    DP_TRY(const std::string name, text(*special, "id"));
    const Json* entry = tokens ? find(*tokens, name) : nullptr;
    const Json* ids = entry ? find(*entry, "ids") : nullptr;
    if (!ids || !ids->is_array()) {
      return fail(ErrorKind::kInvalidInput,
                  "The post_processor of tokenizer.json does not say the ids of \"%s\".",
                  printable(name).c_str());
    }
    for (const Json& node_of_id : *ids) {
      DP_TRY(const int32_t id, token_id(node_of_id));
      (out.texts == 0 ? out.before : out.behind).push_back(id);
    }
  }
  return out;
}

// Spaces become `replacement`, and one may be put in front. Words that a step before it took apart get one each.
Result<> read_metaspace(const Json& node, VocabSpec& spec) {
  DP_TRY(const auto replacement, get_string(node, "replacement"));
  DP_TRY(const auto scheme, get_string(node, "prepend_scheme"));
  DP_TRY(const bool old_prefix, flag(node, "add_prefix_space", true));
  DP_TRY(const bool splits, flag(node, "split", true));
  const std::string mark = replacement.value_or(std::string(kSpaceMark));
  if (mark != kSpaceMark) {
    return fail(ErrorKind::kUnsupported,
                "The Metaspace step of tokenizer.json replaces spaces by \"%s\", not by U+2581.",
                printable(mark).c_str());
  }
  const std::string when = scheme.value_or(old_prefix ? "always" : "never");
  if (!spec.splits.empty() && spec.splits.back().pattern == kPipelineWhiteSpace) {
    if (when != "always" || spec.splits.size() != 1) {
      return fail(
          ErrorKind::kUnsupported,
          "The Metaspace step of tokenizer.json marks words after a WhitespaceSplit by the scheme \"%s\"; "
          "supported there is always, with no other step before it.",
          printable(when).c_str());
    }
    spec.splits.clear();
    spec.normaliser.push_back({StepKind::kReplacePattern, kPipelineWhiteSpace, " "});
    spec.normaliser.push_back({StepKind::kStripLeft, "", ""});
    spec.normaliser.push_back({StepKind::kStripRight, "", ""});
  }
  spec.normaliser.push_back({StepKind::kReplace, " ", mark});
  if (when == "always") spec.normaliser.push_back({StepKind::kPrependUnlessThere, "", mark});
  if (when == "first") spec.normaliser.push_back({StepKind::kPrependAtStart, "", mark});
  if (splits) spec.splits.push_back({mark, SplitBehaviour::kMergedWithNext});
  return {};
}

Result<> read_pre_tokenizer_steps(const Json& root, VocabSpec& spec, bool& byte_level) {
  return for_each_step(root, "pretokenizers", 0, [&](const Json& node, const std::string& type) -> Result<> {
    auto& splits = spec.splits;
    if (type == "ByteLevel") {
      if (spec.has_byte_alphabet || byte_level) {
        return fail(ErrorKind::kUnsupported, "tokenizer.json writes bytes as characters twice (ByteLevel).");
      }
      byte_level = true;
      DP_TRY(const bool prefix, flag(node, "add_prefix_space", true));
      DP_TRY(const bool splits_words, flag(node, "use_regex", true));
      // A text as a whole gets its space before it is cut.
      if (prefix && splits.empty()) spec.normaliser.push_back({StepKind::kPrependUnlessThere, "", " "});
      SplitStep step{.pattern = splits_words ? kGpt2Pattern : "", .adds_space = prefix && !splits.empty()};
      if (splits_words || step.adds_space) splits.push_back(std::move(step));
    } else if (type == "Split") {
      SplitStep step;
      bool is_regex = false;
      DP_CHECK(read_pattern(node, step.pattern, is_regex));
      if (!is_regex) step.pattern = escape_pattern(step.pattern);
      DP_TRY(step.behaviour, read_behaviour(node));
      DP_TRY(step.invert, flag(node, "invert", false));
      splits.push_back(std::move(step));
    } else if (type == "Digits") {
      DP_TRY(const bool alone, flag(node, "individual_digits", false));
      splits.push_back({alone ? R"(\p{N})" : R"(\p{N}+)"});
    } else if (type == "Punctuation") {
      DP_TRY(const SplitBehaviour behaviour, read_behaviour(node));
      splits.push_back({kPunctuationPattern, behaviour});
    } else if (type == "Metaspace") {
      return read_metaspace(node, spec);
    } else if (type == "BertPreTokenizer") {
      append_bert_splits(splits);
    } else if (type == "WhitespaceSplit") {
      splits.push_back({kPipelineWhiteSpace, SplitBehaviour::kRemoved});
    } else if (type == "Whitespace") {
      splits.push_back({R"(\w+|[^\w\s]+)", SplitBehaviour::kRemoved, true});
    } else {
      return fail(ErrorKind::kUnsupported, "The pre_tokenizer \"%s\" of tokenizer.json is not supported.",
                  printable(type).c_str());
    }
    return {};
  });
}

}  // namespace

Result<> read_normaliser(const Json& root, VocabSpec& spec) {
  return for_each_step(
      root, "normalizers", 0, [&spec](const Json& node, const std::string& type) -> Result<> {
        auto& steps = spec.normaliser;
        if (type == "NFC") {
          steps.push_back({StepKind::kNfc, "", ""});
        } else if (type == "NFD") {
          steps.push_back({StepKind::kNfd, "", ""});
        } else if (type == "NFKC") {
          steps.push_back({StepKind::kNfkc, "", ""});
        } else if (type == "NFKD") {
          steps.push_back({StepKind::kNfkd, "", ""});
        } else if (type == "Lowercase") {
          steps.push_back({StepKind::kLowercase, "", ""});
        } else if (type == "StripAccents") {
          steps.push_back({StepKind::kStripAccents, "", ""});
        } else if (type == "Nmt") {
          steps.push_back({StepKind::kNmt, "", ""});
        } else if (type == "ByteLevel") {
          steps.push_back({StepKind::kByteLevel, "", ""});
          spec.has_byte_alphabet = true;
        } else if (type == "Precompiled") {
          DP_TRY(const std::string encoded, text(node, "precompiled_charsmap"));
          std::optional<std::string> map = from_base64(encoded);
          if (!map) {
            return fail(ErrorKind::kInvalidInput,
                        "The \"precompiled_charsmap\" of tokenizer.json is no base64 text.");
          }
          if (!map->empty()) steps.push_back({StepKind::kCharacterMap, std::move(*map), ""});
        } else if (type == "Prepend") {
          DP_TRY(std::string prefix, text(node, "prepend"));
          steps.push_back({StepKind::kPrepend, "", std::move(prefix)});
        } else if (type == "Strip") {
          DP_TRY(const bool left, flag(node, "strip_left", true));
          DP_TRY(const bool right, flag(node, "strip_right", true));
          if (left) steps.push_back({StepKind::kStripLeft, "", ""});
          if (right) steps.push_back({StepKind::kStripRight, "", ""});
        } else if (type == "Replace") {
          NormaliserStep step{StepKind::kReplace, "", ""};
          bool is_regex = false;
          DP_CHECK(read_pattern(node, step.from, is_regex));
          DP_TRY(step.to, text(node, "content"));
          if (is_regex) step.kind = StepKind::kReplacePattern;
          steps.push_back(std::move(step));
        } else if (type == "BertNormalizer") {
          BertOptions options;
          DP_TRY(options.clean_text, flag(node, "clean_text", true));
          DP_TRY(options.space_cjk, flag(node, "handle_chinese_chars", true));
          DP_TRY(options.lowercase, flag(node, "lowercase", true));
          DP_TRY(options.strip_accents, flag(node, "strip_accents", options.lowercase));
          append_bert_normaliser(options, steps);
        } else {
          return fail(ErrorKind::kUnsupported, "The normalizer \"%s\" of tokenizer.json is not supported.",
                      printable(type).c_str());
        }
        return {};
      });
}

Result<> read_pre_tokenizer(const Json& root, VocabSpec& spec, bool& byte_level) {
  const size_t own_steps = spec.normaliser.size();
  DP_CHECK(read_pre_tokenizer_steps(root, spec, byte_level));
  spec.marking_steps = spec.normaliser.size() - own_steps;
  return {};
}

Result<> read_post_processor(const Json& root, VocabSpec& spec) {
  return for_each_step(root, "processors", 0, [&spec](const Json& node, const std::string& type) -> Result<> {
    if (type == "ByteLevel") return {};  // about offsets only
    if (type == "BertProcessing" || type == "RobertaProcessing") {
      for (const char* key : {"cls", "sep"}) {  // ["[CLS]", 101]
        const Json* pair = find(node, key);
        if (!pair || !pair->is_array() || pair->size() != 2) {
          return fail(ErrorKind::kInvalidInput, "The post_processor of tokenizer.json has no \"%s\".", key);
        }
        DP_TRY(const int32_t id, token_id((*pair)[1]));
        (key[0] == 'c' ? spec.prefix_ids : spec.suffix_ids).push_back(id);
      }
      spec.pair_ids = spec.suffix_ids;
      if (type == "BertProcessing") {
        spec.second_type = 1;
      } else {
        spec.pair_ids.push_back(spec.suffix_ids.back());
      }
      return {};
    }
    if (type != "TemplateProcessing") {
      return fail(ErrorKind::kUnsupported, "The post_processor \"%s\" of tokenizer.json is not supported.",
                  printable(type).c_str());
    }
    DP_TRY(const Template single, read_template(node, "single"));
    DP_TRY(const Template pair, read_template(node, "pair"));
    spec.prefix_ids.insert(spec.prefix_ids.end(), single.before.begin(), single.before.end());
    spec.suffix_ids.insert(spec.suffix_ids.end(), single.behind.begin(), single.behind.end());
    if (pair.texts != 2) return {};
    spec.pair_ids = pair.between;
    spec.second_type = pair.second_type;
    return {};
  });
}

Result<> read_decoder(const Json& root, VocabSpec& spec) {
  return for_each_step(root, "decoders", 0, [&spec](const Json& node, const std::string& type) -> Result<> {
    // The actions of the other decoders (bytes, fallback, fusing) follow from the kind of the vocabulary.
    if (type == "Strip") {
      DP_TRY(const auto start, get_integer(node, "start"));
      if (start.value_or(0) > 0) spec.strip_leading_space = true;
    } else if (type == "Metaspace") {
      DP_TRY(const auto scheme, get_string(node, "prepend_scheme"));
      DP_TRY(const bool old_prefix, flag(node, "add_prefix_space", true));
      spec.strip_leading_space = scheme ? *scheme != "never" : old_prefix;
    }
    return {};
  });
}

}  // namespace doppler::tokenizer
