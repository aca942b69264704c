// Chooses the encoder of a vocabulary (piece_encoder.h).
#include "tokenizer/piece_encoder.h"

#include "base/text.h"
#include "tokenizer/bpe_encoder.h"
#include "tokenizer/sentence_piece_encoder.h"
#include "tokenizer/unigram_encoder.h"
#include "tokenizer/word_piece_encoder.h"

namespace doppler::tokenizer {

std::array<int32_t, 256> byte_tokens(const VocabSpec& spec, const TokenIndex& index) {
  std::array<int32_t, 256> ids{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    ids[byte] = index.find(spec.tokens, format_text("<0x%02X>", byte));
  }
  return ids;
}

Result<std::unique_ptr<PieceEncoder>> make_piece_encoder(const VocabSpec& spec, const TokenIndex& index) {
  std::unique_ptr<PieceEncoder> encoder;
  switch (spec.kind) {
    case VocabKind::kByteLevelBpe:
    case VocabKind::kCharacterBpe: {
      DP_TRY(encoder, BpeEncoder::create(spec, index));
      break;
    }
    case VocabKind::kSentencePiece:
      encoder = std::make_unique<SentencePieceEncoder>(spec, index);
      break;
    case VocabKind::kWordPiece:
      encoder = std::make_unique<WordPieceEncoder>(spec, index);
      break;
    case VocabKind::kUnigram:
      encoder = std::make_unique<UnigramEncoder>(spec, index);
      break;
  }
  return encoder;
}

}  // namespace doppler::tokenizer
