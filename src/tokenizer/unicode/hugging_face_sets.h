// Characters that normalisers of tokenizer.json take out, as Hugging Face tokenizers does: its tables are of an older
// Unicode than unicode.h's, so that marks and controls of later years stay.
#pragma once

#include "tokenizer/unicode/unicode.h"

namespace doppler::tokenizer {

bool is_accent(char32_t code);       // of StripAccents: marks of all kinds
bool is_bert_accent(char32_t code);  // of BertNormalizer: marks without a width
bool is_bert_control(
    char32_t code);  // of BertNormalizer: controls, formats, private use and U+FFFD; never what is unassigned

}  // namespace doppler::tokenizer
