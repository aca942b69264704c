// The parts of an embedding model's folder beside config.json (sentence-transformers): modules.json lists the
// transformer and the modules after it, each with a folder of its own. Facts: sentence_transformers.models (Pooling,
// Dense, Normalize).
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"

namespace doppler::formats {

// The member of a Checkpoint's config() that holds what the modules say:
// {"pooling": "mean" | "cls" | "last", "normalize": true, "dense": 2}. An RDRR model has it in its config.json.
inline constexpr const char* kEmbeddingModules = "sentence_transformers";

inline constexpr size_t kMostDense = 2;

enum class ModuleKind : uint8_t { kTransformer, kPooling, kDense, kNormalize };
struct EmbeddingModule {
  ModuleKind kind;
  std::string folder;  // empty: the model's own
};

// The folders that modules.json names, of modules of any kind: a source of files finds the rest of the model there.
std::vector<std::string> module_folders(const Json& modules);
// Error: a module that is not known.
Result<std::vector<EmbeddingModule>> parse_modules(const Json& modules);
// The name of a pooling, of its config.json. Error: none, several, or another than those above.
Result<std::string> parse_pooling(const Json& config);
// Error: a Dense module with a bias, or an activation but the identity.
Result<> check_dense(const Json& config);
// The name that a tensor of the n-th Dense module has in a Checkpoint: "dense.0.linear.weight".
std::string dense_tensor_name(size_t number, const std::string& own_name);

}  // namespace doppler::formats
