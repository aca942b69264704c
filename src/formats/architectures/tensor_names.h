// The name of each tensor in a GGUF and in a Hugging Face checkpoint, by the rows of the architectures.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/architectures/architecture.h"

namespace doppler::formats {

// With its own suffix, mostly ".weight", or another one. `layer` is ignored for tensors outside the layers.
std::string tensor_name(const ModelConfig& config, TensorId id, uint32_t layer, const char* suffix = nullptr);

// A tensor as one kind of file has it.
struct StoredTensor {
  std::string name;             // without suffix: "blk.0.attn_q"
  std::vector<uint64_t> shape;  // outermost first, any number of dimensions
  bool must_have_bias = false;
  float offset = 0;  // what is added to each number, for the weight as the maths has it
  std::string suffix = ".weight";
  bool is_log = false;  // the weight is -exp of each number
  // Rows of the tensor that are this matrix: of each `parts` runs of `part_rows` rows the one of number `part`.
  uint32_t part = 0, parts = 1, part_rows = 0;

  std::string weight_name() const { return name + suffix; }
};
// The shape without dimensions of 1: files differ in these for vectors.
std::vector<uint64_t> without_ones(std::span<const uint64_t> shape);
bool is_same_shape(std::span<const uint64_t> a, std::span<const uint64_t> b);  // but for dimensions of 1
StoredTensor stored_tensor(const ModelConfig& config, TensorId id, uint32_t layer = 0);
std::vector<StoredTensor> stored_tensors(const ModelConfig& config, std::span<const TensorId> ids,
                                         uint32_t layer);

// Matrices that read the same vector, which a file may hold as one tensor (doppler convert --fuse-qkv,
// --fuse-gate-up): their rows follow each other. Names as in TensorRow.
struct FusedNames {
  std::array<std::string_view, 3> parts;  // the last may be empty
  std::string_view whole;
};
std::span<const FusedNames> fused_qkv_names();
std::span<const FusedNames> fused_gate_up_names();
// The fused matrices in which a file may have a matrix: "blk.3.attn_k" is in "blk.3.attn_qkv", after the rows of
// attn_q. Without suffixes. All that may hold `name` in some file.
std::vector<std::string> fused_tensor_names(const std::string& name);

// True for tensors of the next-token layer, which a folder counts from 0: "mtp.layers.0.mlp.up_proj.weight".
bool is_next_name(std::string_view huggingface_name);

// The layer that a tensor of either kind of file belongs to: 3 for "blk.3.attn_q.weight" or
// "model.layers.3.mlp.up_proj.weight". Empty if is_next_name().
std::optional<uint32_t> layer_of_tensor(const std::string& name);

// GGUF's name for the weight of a matrix of a Hugging Face checkpoint, whatever its family; empty: no row has the name.
// Norms' names depend on the family.
std::string gguf_name_of(std::string_view huggingface_name);

}  // namespace doppler::formats
