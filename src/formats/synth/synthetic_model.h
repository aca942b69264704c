// A model file that exists only as a rule: a real model's shape with made-up weights, whose bytes are
// computed from their place in the file. `doppler synth` writes it (synth_native.h), `bench --synthetic`
// loads it with no file (synthetic_file_set). The same spec gives the same bytes on every machine.
//
// Matrices are gaussian with standard deviation 1/sqrt(k), so that activations keep their size; norms are 1 +
// 0.1 n. Weights come in cells of 256 drawn from a pool of 1024 by a hash of (tensor, cell): no two rows are
// alike.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/source.h"

namespace doppler::formats {

class SyntheticModel {
 public:
  // "SHAPE" (shapes.h) or "SHAPE:QUANT" (q4_k_m if absent). Unknown words list or suggest the known ones.
  // `agree`: a model whose text is known, for measuring drafts. For this share of all tokens, the next one of the
  // vocabulary follows; a made-up one follows the others. So the model with 1 is the target of drafters with less. The
  // layers add almost nothing to the embedding, and row t of the head is row t - 1 of the embedding, so that the text
  // does not depend on rounding. A step takes the time of one with random weights.
  // Errors: also a share outside 0 to 1; a hidden size that is no multiple of 256.
  static Result<std::unique_ptr<SyntheticModel>> make(std::string_view spec,
                                                      std::optional<double> agree = {});

  const std::string& name() const { return name_; }  // "synthetic-llama-3.2-1b-q4_k_m"
  uint64_t size() const { return size_; }            // bytes of the GGUF file
  // The file's bytes from `offset` on; offset + out.size() must not pass the size. Safe from several threads.
  void fill(uint64_t offset, std::span<uint8_t> out) const;

 private:
  using Pool = std::vector<uint8_t>;
  struct Tensor {
    uint64_t offset, bytes;
    uint64_t cell_bytes;
    uint64_t seed;
    std::shared_ptr<const Pool> pool;  // kPoolCells cells; for the rope factors, one cell that is the tensor
    uint64_t row_cells = 0;            // of a head whose rows are those of the embedding before them; else 0
  };
  SyntheticModel() = default;
  uint64_t cell_hash(const Tensor& tensor, uint64_t cell) const;
  void fill_tensor(const Tensor& tensor, uint64_t from, std::span<uint8_t> out) const;

  std::string name_;
  uint64_t size_ = 0;
  std::vector<uint8_t> header_;
  std::vector<Tensor> tensors_;  // in file order
  uint64_t embedding_seed_ = 0, vocab_size_ = 0;
  double agree_ = 1;
};

// A FileSet whose one file is the model.
std::unique_ptr<FileSet> synthetic_file_set(std::unique_ptr<SyntheticModel> model);

}  // namespace doppler::formats
