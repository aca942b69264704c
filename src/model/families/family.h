// What a model family is: which architectures it answers for, which weights it loads, and its forward pass, recorded
// line by line. Add a family = one file here and one row in family.cpp.
// Read next: llama.cpp, the plainest one.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/context.h"
#include "kernels/embed/embed_norm.h"
#include "kernels/rope/rope.h"
#include "model/config.h"
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

struct HuggingFaceType {
  std::string_view model_type;
  bool has_window;  // config.json's sliding_window means what it says
};

struct Family {
  using AddGguf = Result<void> (*)(ModelConfig& config, const formats::GgufFile& gguf);
  std::string_view name;
  std::span<const std::string_view> gguf_architectures;
  std::span<const HuggingFaceType> huggingface_types;
  std::unique_ptr<FamilyModel> (*make)(const ModelConfig& config, uint32_t ctx_len);
  AddGguf add_gguf = nullptr;  // numbers that only this family's GGUF files have; null: none
  bool gguf_turns_neighbours =
      true;  // GGUF files rotate pairs (2i, 2i+1): their q and k rows are permuted for it

  bool config_has_window(std::string_view model_type) const;
};

// Errors list the architectures this build knows.
Result<const Family*> find_family_gguf(std::string_view architecture);
Result<const Family*> find_family_huggingface(std::string_view model_type);
const Family& family_of(const ModelConfig& config);

std::unique_ptr<FamilyModel> make_llama(const ModelConfig& config, uint32_t ctx_len);
std::unique_ptr<FamilyModel> make_gemma3(const ModelConfig& config, uint32_t ctx_len);

}  // namespace doppler::model
