// Fuzz target: any bytes as a tokenizer.model. The result must be what its header promises.
#include <cmath>

#include "base/fuzz_check.h"
#include "formats/convert/sentence_piece.h"

using namespace doppler::formats;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parsed = parse_sentence_pieces({data, size}, "fuzz");
  if (!parsed) {
    check_sentence(parsed.error());
    return 0;
  }
  for (const SentencePieces::Piece& piece : parsed->pieces) {
    if (!std::isfinite(piece.score) || piece.type < 1 || piece.type > 6) std::abort();
  }
  return 0;
}
