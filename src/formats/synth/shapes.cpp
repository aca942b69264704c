// One row a model (shapes.h). "llama-tiny" is no published model: it is for tests.
#include "formats/synth/shapes.h"

namespace doppler::formats {
namespace {

constexpr Llama3Rope kRope32{32, 1, 4, 8192};  // Llama 3.2
constexpr Llama3Rope kRope8{8, 1, 4, 8192};    // Llama 3.1

// layers, hidden, heads, kv heads, head dim, ffn, vocabulary, context, rope theta, rms eps, tied, rope
// scaling, gemma3, window
constexpr NamedShape kShapes[] = {
    {"llama-tiny", {2, 256, 4, 2, 64, 768, 1024, 4096, 500000, 1e-5f, true, kRope8}},
    {"llama-3.2-1b", {16, 2048, 32, 8, 64, 8192, 128256, 131072, 500000, 1e-5f, true, kRope32}},
    {"llama-3.2-3b", {28, 3072, 24, 8, 128, 8192, 128256, 131072, 500000, 1e-5f, true, kRope32}},
    {"llama-3.1-8b", {32, 4096, 32, 8, 128, 14336, 128256, 131072, 500000, 1e-5f, false, kRope8}},
    {"gemma-3-1b",
     {26, 1152, 4, 1, 256, 6912, 262144, 32768, 1000000, 1e-6f, true, {}, /*gemma3=*/true, 512}},
    {"llama-3.1-70b", {80, 8192, 64, 8, 128, 28672, 128256, 131072, 500000, 1e-5f, false, kRope8}},
};

}  // namespace

const NamedShape* find_shape(std::string_view name) {
  for (const NamedShape& row : kShapes) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

std::vector<std::string> shape_name_list() {
  std::vector<std::string> names;
  for (const NamedShape& row : kShapes) names.emplace_back(row.name);
  return names;
}

std::string shape_names() {
  std::string names;
  for (const NamedShape& row : kShapes) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

}  // namespace doppler::formats
