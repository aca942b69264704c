// A made-up byte-level BPE vocabulary of any size that loaders accept: the 256 bytes, then pairs and triples of bytes,
// each with the merge that makes it, then special tokens. It can tokenise any text, if not well.
#pragma once

#include <cstdint>

#include "formats/gguf/gguf_writer.h"

namespace doppler::formats {

inline constexpr uint32_t kMinSyntheticVocabulary = 512;

// vocab_size >= kMinSyntheticVocabulary.
void add_synthetic_vocabulary(GgufHeader& header, uint32_t vocab_size);

}  // namespace doppler::formats
