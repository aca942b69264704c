// BERT's changes to a text before WordPiece, as pipeline steps; for both file formats.
#pragma once

#include "tokenizer/vocab.h"

namespace doppler::tokenizer {

// Punctuation as most pre-tokenizers mean it: \p{P} and all ASCII signs.
inline constexpr const char* kPunctuationPattern = R"([\p{P}!-/:-@\[-`{-~])";

struct BertOptions {
  bool clean_text = true, space_cjk = true, strip_accents = true, lowercase = true;
};
inline void append_bert_normaliser(const BertOptions& options, std::vector<NormaliserStep>& steps) {
  using Kind = NormaliserStep::Kind;
  if (options.clean_text) steps.push_back({Kind::kCleanText, "", ""});
  if (options.space_cjk) steps.push_back({Kind::kSpaceCjk, "", ""});
  if (options.strip_accents) {
    steps.push_back({Kind::kNfd, "", ""});
    steps.push_back({Kind::kStripBertAccents, "", ""});
  }
  if (options.lowercase) steps.push_back({Kind::kLowercase, "", ""});
}
inline void append_bert_splits(std::vector<SplitStep>& splits) {
  splits.push_back({R"(\s+)", SplitBehaviour::kRemoved});
  splits.push_back({kPunctuationPattern, SplitBehaviour::kIsolated});
}

}  // namespace doppler::tokenizer
