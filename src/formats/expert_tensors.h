// Hugging Face folders have the matrices of experts one by one ("mlp.experts.7.up_proj.weight"). The layers above know
// them as one tensor [experts, n, k] ("mlp.experts.up_proj.weight"), as GGUF files have them. Its bytes are gathered
// only when they are read.
#pragma once

#include <memory>
#include <vector>

#include "formats/checkpoint.h"

namespace doppler::formats {

// Replaces the experts' tensors by stacked ones, whose sources are appended and refer to the others. If one is missing,
// or differs from the others in shape or type, they stay unchanged, and whoever wants them all misses the whole. Error:
// an expert's tensor is there twice.
Result<void> gather_experts(std::vector<std::unique_ptr<ByteSource>>& sources,
                            std::vector<TensorInfo>& tensors);

// Replaces tensors of all experts that hold gates and ups in one ("mlp.experts.gate_up_proj"), or MXFP4 codes beside
// their scales, by "mlp.experts.gate_proj.weight" and its like. transposed: as gpt-oss has them, [experts, k, n], gates
// and ups in turn; else [experts, n, k], an expert's gates before its ups. Granite's gates and ups are replaced in the
// same way, those of experts and of the layer beside them ("shared_mlp.input_linear.weight").
// Errors: shapes or types that no known folder has.
Result<void> split_experts(std::vector<std::unique_ptr<ByteSource>>& sources,
                           std::vector<TensorInfo>& tensors, bool transposed);

// The same of GGUF's "ffn_gate_up_exps", in any number format.
Result<void> split_gguf_experts(std::vector<std::unique_ptr<ByteSource>>& sources,
                                std::vector<TensorInfo>& tensors);

// Equal runs of bytes of other sources, end to end.
struct ByteRun {
  ByteSource* file;
  uint64_t offset;
};
std::unique_ptr<ByteSource> gathered(std::vector<ByteRun> runs, uint64_t run_bytes);
// [count, k, n] plain numbers from the file's first byte on as [count, n, k].
std::unique_ptr<ByteSource> transposed(ByteSource& file, uint64_t count, uint64_t n, uint64_t k,
                                       uint64_t number_bytes);

}  // namespace doppler::formats
