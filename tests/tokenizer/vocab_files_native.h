// Vocabularies and texts from files, for the tests and the bench of this folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "tokenizer/tokenizer.h"

namespace doppler {

// The whole file; empty when it cannot be read.
std::string read_file(const std::string& path);
// The tokenizer of VOCAB_DIR/ggml-vocab-<name>.gguf. `load_ms`, if given: the time it took, without reading
// the file.
Result<std::shared_ptr<const tokenizer::Tokenizer>> load_vocab(const std::string& name,
                                                               double* load_ms = nullptr);

// <name>.gguf.inp holds texts between lines "__ggml_vocab_test__", <name>.gguf.out one line of ids a text.
struct VocabVector {
  std::string text;
  std::vector<int32_t> ids;
};
std::vector<VocabVector> read_vectors(const std::string& name);

}  // namespace doppler
