// Matrices that a model uses twice, as Hugging Face folders hold them once: the table of embeddings and the output
// matrix.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "formats/checkpoint.h"
#include "formats/safetensors/safetensors_index.h"

namespace doppler::formats {

// "__metadata__" of safetensors: beside texts of other kinds, the name of a tensor that was left out and the one that
// has its numbers.
using TensorAliases = std::vector<std::pair<std::string, std::string>>;

// The table of embeddings gets its own name if a file has it only as "lm_head.weight": the aliases say so, or
// config.json does ("tie_word_embeddings").
void rename_tied(std::vector<TensorInfo>& tensors, const TensorAliases& aliases, const Json& config);

// Every tensor that the index promises must be in the file that it names. One of two tied tensors may be in none, if an
// alias or config.json ties it to the other. To be called with the names that the files have, before rename_tied().
Result<> check_index(const SafetensorsIndex& index, const std::vector<TensorInfo>& tensors,
                     const TensorAliases& aliases, const Json& config);

}  // namespace doppler::formats
