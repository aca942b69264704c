// Fuzz target: any bytes as text for one vocabulary of each kind (the first byte chooses). Byte-level
// decoding must give the bytes back. And any bytes as a map of characters, applied to themselves.
#include <string>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/character_map.h"
#include "tokenizer/pre_tokenizers.h"
#include "tokenizer/tokenizer.h"

namespace {

using namespace doppler;
using namespace doppler::tokenizer;

std::shared_ptr<const Tokenizer> make(int which) {
  VocabSpec spec;
  const auto add = [&spec](std::string_view text, TokenType type) {
    spec.tokens.add(text);
    spec.types.push_back(type);
    spec.scores.push_back(-static_cast<float>(spec.scores.size()));
  };
  add("<unk>", TokenType::kUnknown);
  add("<s>", TokenType::kControl);
  spec.unk = 0;
  spec.added = {{.id = 1, .text = "<s>", .special = true, .lstrip = true, .rstrip = true}};
  for (int byte = 0; byte < 256; ++byte) {
    if (which <= 1) {
      add(byte_character(static_cast<unsigned char>(byte)), TokenType::kNormal);
    } else {
      add(format_text("<0x%02X>", static_cast<unsigned>(byte)), TokenType::kByte);
    }
  }
  for (const char* text : {"a", "b", "\xE2\x96\x81", "aa", "\xE2\x96\x81\x61", "aaaa"})
    add(text, TokenType::kNormal);
  for (const char* part : {"a", "a", "aa", "aa", "\xE2\x96\x81", "a"}) spec.merges.add(part);
  const VocabKind kinds[] = {VocabKind::kByteLevelBpe, VocabKind::kByteLevelBpe, VocabKind::kSentencePiece,
                             VocabKind::kCharacterBpe, VocabKind::kWordPiece,    VocabKind::kUnigram};
  spec.kind = kinds[which];
  const char* names[] = {"deepseek-llm", "gpt-4o", "gemma4", "gemma4", "bloom", "gemma4"};
  const auto pre = pre_tokenizer(names[which]);
  for (const char* pattern : pre->patterns) spec.splits.push_back({pattern});
  if (which >= 2) {
    spec.normaliser = {{NormaliserStep::Kind::kNfkc, "", ""},
                       {NormaliserStep::Kind::kCleanText, "", ""},
                       {NormaliserStep::Kind::kLowercase, "", ""},
                       {NormaliserStep::Kind::kReplace, " ", "\xE2\x96\x81"}};
  }
  return *Tokenizer::create(std::move(spec));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::shared_ptr<const Tokenizer> kTokenizers[] = {make(0), make(1), make(2),
                                                                 make(3), make(4), make(5)};
  if (size == 0) return 0;
  const size_t which = data[0] % 7;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (which == 6) {
    const auto map = CharacterMap::create(text);
    if (map) (void)map->apply(text);
    return 0;
  }
  const auto ids = kTokenizers[which]->encode(text);
  if (!ids) __builtin_trap();
  const auto back = kTokenizers[which]->decode(*ids, {.replace_invalid = false});
  if (!back || (which <= 1 && *back != text)) __builtin_trap();
  const auto special = kTokenizers[which]->encode(text, {.add_special = true, .parse_special = true});
  if (!special || !kTokenizers[which]->decode(*special)) __builtin_trap();
  return 0;
}
