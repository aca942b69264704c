// Unicode normalisation forms (Unicode Standard Annex 15), as normalisers of tokenizers ask for them.
// Bytes that are not UTF-8 pass through unchanged.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace doppler::tokenizer {

enum class NormalForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

// Text with only ASCII (for kNfc, with only Latin-1) is just copied.
std::string normalise(std::string_view text, NormalForm form);

}  // namespace doppler::tokenizer
