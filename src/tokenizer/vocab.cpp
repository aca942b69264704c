// Names and checks of VocabSpec (vocab.h).
#include "tokenizer/vocab.h"

namespace doppler::tokenizer {

const char* vocab_kind_name(VocabKind kind) {
  switch (kind) {
    case VocabKind::kByteLevelBpe:
      return "byte-level BPE";
    case VocabKind::kSentencePiece:
      return "SentencePiece";
    case VocabKind::kCharacterBpe:
      return "character BPE";
    case VocabKind::kWordPiece:
      return "WordPiece";
    case VocabKind::kUnigram:
      return "Unigram";
  }
  return "?";
}

Result<> check_vocab(const VocabSpec& spec) {
  const size_t count = spec.tokens.size();
  if (count == 0 || count > kMaxVocabSize) {
    return fail(ErrorKind::kInvalidInput, "The vocabulary has %zu tokens; 1 to %zu are allowed.", count,
                kMaxVocabSize);
  }
  if (spec.types.size() != count) {
    return fail(ErrorKind::kInvalidInput, "The vocabulary has %zu tokens but %zu token types.", count,
                spec.types.size());
  }
  const bool has_scores = spec.kind == VocabKind::kSentencePiece || spec.kind == VocabKind::kUnigram;
  if (has_scores && spec.scores.size() != count) {
    return fail(ErrorKind::kInvalidInput, "The vocabulary has %zu tokens but %zu scores.", count,
                spec.scores.size());
  }
  if (spec.merges.size() % 2 != 0) {
    return fail(ErrorKind::kInternal, "The vocabulary has half a merge (%zu texts).", spec.merges.size());
  }
  const auto inside = [count](int32_t id) { return id >= 0 && static_cast<size_t>(id) < count; };
  for (const int32_t id : {spec.bos, spec.eos, spec.eot, spec.eom, spec.unk, spec.sep, spec.pad}) {
    if (id != kNoToken && !inside(id)) {
      return fail(ErrorKind::kInvalidInput,
                  "The special token id %d is outside of the vocabulary (%zu tokens).", id, count);
    }
  }
  for (const auto* ids : {&spec.prefix_ids, &spec.suffix_ids, &spec.pair_ids}) {
    for (const int32_t id : *ids) {
      if (!inside(id)) {
        return fail(ErrorKind::kInvalidInput,
                    "The id %d, to be added to every text, is outside of the vocabulary "
                    "(%zu tokens).",
                    id, count);
      }
    }
  }
  for (const AddedToken& token : spec.added) {
    if (!inside(token.id)) {
      return fail(ErrorKind::kInvalidInput,
                  "The added token \"%s\" has the id %d; the vocabulary has %zu tokens.",
                  printable(token.text).c_str(), token.id, count);
    }
  }
  return {};
}

}  // namespace doppler::tokenizer
