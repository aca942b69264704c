// The tokenizer of a GGUF file. tokenizer/ may not know file formats; this joins the two.
#pragma once

#include "base/result.h"
#include "formats/gguf/gguf.h"
#include "tokenizer/vocab.h"

namespace doppler::engine {

Result<tokenizer::VocabSpec> vocab_from_gguf(const formats::GgufFile& file);

}  // namespace doppler::engine
