// The tokenizer of a Hugging Face folder as the "tokenizer.*" fields of GGUF: byte-level BPE or Unigram of a
// tokenizer.json, or SentencePiece's BPE of a tokenizer.model or a tokenizer.json. Read next: hf_vocabulary.h.
#pragma once

#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/gguf/gguf_writer.h"

namespace doppler::formats {

// Adds tokens, types, merges or scores, the split pattern's name, special ids, the tokens around a text, the chat
// template and the sampling defaults of generation_config.json. Unused ids below vocab_size get placeholder tokens.
// Errors: steps that GGUF has no place for, by name, a WordPiece model, ids outside the vocabulary.
Task<Result<>> add_hf_tokenizer(const Checkpoint& model, uint32_t vocab_size, GgufHeader& header,
                                std::vector<std::string>& notes);

}  // namespace doppler::formats
