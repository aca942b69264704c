// What a model family is: which weights it loads, and its forward pass, recorded line by line. What its files call them
// is a row of formats/architectures/. Add a family = a row there, one file here and one line in family.cpp.
// Read next: llama.cpp, the plainest one.
#pragma once

#include <memory>
#include <vector>

#include "formats/architectures/config.h"
#include "kernels/context.h"
#include "kernels/embed/embed_norm.h"
#include "kernels/rope/rope.h"
#include "model/weight_loader.h"

namespace doppler::model {

// Which rows get logits: none (a prompt's inner chunks), the last (before sampling), or all (perplexity, `logits`).
enum class Head : uint8_t { kNone, kLast, kAll };

// What a decode plan has whose layers may be one dispatch (kernels/persistent).
struct PersistentIo {
  kernels::TensorView exchange;  // invalid: the chain is recorded
  uint32_t groups = 0;           // workgroups that run together
};

// The buffers a forward pass reads and writes besides the weights.
struct StepIo {
  // What a decode plan begins with, and every plan that chooses a token ends with (kernels/step/next.h): the residual
  // stream of its one row, and the first norm of that.
  kernels::TensorView row, normed_row;
  bool begins_with_row = false;           // else with tokens
  kernels::TensorView tokens;             // u32 [max_rows]
  std::vector<kernels::CacheView> cache;  // one a layer
  Head head = Head::kLast;
  uint32_t max_keys = 0;       // of a decode plan: the longest sequence it is replayed with; 0: the context
  bool greedy = false;         // of the logits only the best is asked for
  kernels::TensorView logits;  // f32 [vocab_size], or [max_rows, vocab_size] with Head::kAll
  PersistentIo persistent;
  kernels::TensorView hidden;  // optional f32 [n_layers + 1, max_rows, hidden_dim]: the residual stream
};

// Copies the residual stream x, f32 [max_rows, hidden_dim], to place `index` of io.hidden, if that is asked for.
Result<void> keep_hidden(kernels::Context& ctx, const StepIo& io, kernels::TensorView x, uint32_t hidden_dim,
                         uint32_t index);

// Weights of one loaded model and the recording of its steps.
class FamilyModel {
 public:
  virtual ~FamilyModel() = default;
  // Asks for every weight; the bytes of matrices come later, with WeightLoader::stream().
  virtual Task<Result<void>> load(WeightLoader& loader) = 0;
  virtual Result<Logits> record(kernels::Context& ctx, const StepIo& io) = 0;
  // How a step of one row gets io.row and io.normed_row from a token, whose view the caller fills in. ctx: of one row.
  virtual kernels::EmbedNorm row_input(const kernels::Context& ctx, const StepIo& io) const = 0;
};

// Error: there is no forward pass of the config's family; the sentence lists those that are.
Result<void> check_has_forward_pass(const formats::ModelConfig& config);
Result<std::unique_ptr<FamilyModel>> make_family(const formats::ModelConfig& config, uint32_t ctx_len);

std::unique_ptr<FamilyModel> make_llama(const formats::ModelConfig& config, uint32_t ctx_len);
std::unique_ptr<FamilyModel> make_gemma3(const formats::ModelConfig& config, uint32_t ctx_len);

}  // namespace doppler::model
