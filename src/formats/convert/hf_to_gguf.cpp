#include "formats/convert/hf_to_gguf.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "formats/convert/hf_config.h"
#include "formats/convert/hf_tokenizer.h"
#include "formats/convert/types.h"
#include "formats/quant/codec.h"

namespace doppler::formats {
namespace {

std::string shape_text(const std::vector<uint64_t>& shape) {
  std::string text = "[";
  for (const uint64_t extent : shape) text += " " + std::to_string(extent);
  return text + " ]";
}

uint64_t extent_of(HfDim dimension, const LlamaShape& s) {
  switch (dimension) {
    case HfDim::kNone:
      return 1;
    case HfDim::kHidden:
      return s.hidden_dim;
    case HfDim::kQRows:
      return uint64_t{s.n_heads} * s.head_dim;
    case HfDim::kKvRows:
      return uint64_t{s.n_kv_heads} * s.head_dim;
    case HfDim::kFfn:
      return s.ffn_dim;
    case HfDim::kVocab:
      return s.vocab_size;
    case HfDim::kHeadDim:
      return s.head_dim;
  }
  return 0;
}

// Tensors of models that also see, and buffers that old checkpoints carry along.
bool is_left_out(std::string_view name) {
  return name.find("vision_tower") != std::string_view::npos ||
         name.find("vision_model") != std::string_view::npos ||
         name.find("multi_modal_projector") != std::string_view::npos ||
         name.ends_with("rotary_emb.inv_freq");
}

class TensorPlanner {
 public:
  TensorPlanner(const Checkpoint& model, const HfShape& shape, Conversion& conversion)
      : model_(model), shape_(shape), conversion_(conversion) {}

  Result<> run() {
    if (shape_.base.rope.factor != 0) add_rope_factors();
    const auto rows = hf_tensors();
    const auto first_in_layer = std::ranges::find(rows, true, &HfTensor::in_layer);
    for (auto row = rows.begin(); row != first_in_layer; ++row) DP_CHECK(add(*row, "", ""));
    for (uint32_t layer = 0; layer < shape_.base.n_layers; ++layer) {
      const std::string hf = "layers." + std::to_string(layer) + ".",
                        gguf = "blk." + std::to_string(layer) + ".";
      for (const HfTensor& row : rows) {
        if (row.in_layer) DP_CHECK(add(row, hf, gguf));
      }
    }
    for (auto row = first_in_layer; row != rows.end(); ++row) {
      if (!row->in_layer) DP_CHECK(add(*row, "", ""));
    }
    return check_nothing_is_left();
  }

 private:
  void add_rope_factors() {
    OutTensor factors;
    factors.name = "rope_freqs.weight";
    factors.numbers = llama3_rope_factors(shape_.base);
    factors.shape = {factors.numbers.size()};
    conversion_.tensors.push_back(std::move(factors));
  }

  // The places that the hub's checkpoints of nested models have had for the text model.
  const TensorInfo* find(const std::string& name) {
    const char* const kPrefixes[] = {"model.", "language_model.model.", "model.language_model."};
    const char* const kHeadPrefixes[] = {"", "language_model.", "model."};
    for (const char* prefix : name.starts_with("lm_head") ? kHeadPrefixes : kPrefixes) {
      const TensorInfo* tensor = model_.find(prefix + name);
      if (tensor || !shape_.nested) return tensor;
    }
    return nullptr;
  }

  Result<> add(const HfTensor& row, const std::string& hf_prefix, const std::string& gguf_prefix) {
    const uint32_t has = shape_.has;
    const std::string name = hf_prefix + row.hf;
    const TensorInfo* tensor = find(name);
    // Checkpoints with biases that config.json does not speak of are read with them.
    const bool is_extra = tensor && (has & kMayHaveBiases) != 0 && name.ends_with(".bias");
    if ((has & row.needs) != row.needs && !is_extra) return {};
    if (name == "lm_head.weight" && shape_.base.tied) {
      if (tensor) used_.insert(tensor->name);
      return {};
    }
    if (!tensor) {
      return fail(ErrorKind::kInvalidInput, "%s has no tensor \"%s%s\".", model_.name().c_str(),
                  name == "lm_head.weight" ? "" : "model.", name.c_str());
    }
    used_.insert(tensor->name);
    OutTensor out;
    out.name = gguf_prefix + row.gguf;
    out.shape = {extent_of(row.columns, shape_.base)};
    if (row.rows != HfDim::kNone) out.shape.insert(out.shape.begin(), extent_of(row.rows, shape_.base));
    if (tensor->shape != out.shape) {
      return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" has the shape %s, but config.json makes it %s.",
                  printable(tensor->name).c_str(), shape_text(tensor->shape).c_str(),
                  shape_text(out.shape).c_str());
    }
    // llama.cpp computes with vectors in f32 only.
    out.type = out.shape.size() == 1 ? DType::kF32 : tensor->type;
    TensorPart part{.source = tensor};
    if (has & kHasInterleavedRope) {
      const std::string_view hf = row.hf;
      if (hf.starts_with("self_attn.q_proj.")) part.interleaved_heads = shape_.base.n_heads;
      if (hf.starts_with("self_attn.k_proj.")) part.interleaved_heads = shape_.base.n_kv_heads;
    }
    part.plus_one = row.is_norm && (has & kHasNormsMinusOne) != 0;
    out.parts = {part};
    conversion_.tensors.push_back(std::move(out));
    return {};
  }

  // A tensor nobody asked for is a feature that the output would lack.
  Result<> check_nothing_is_left() {
    size_t left_out = 0;
    for (const TensorInfo& tensor : model_.tensors()) {
      if (used_.contains(tensor.name)) continue;
      if (is_left_out(tensor.name)) {
        ++left_out;
        continue;
      }
      return fail(ErrorKind::kUnsupported,
                  "Tensor \"%s\" has no place in a GGUF file of architecture \"%s\".",
                  printable(tensor.name).c_str(), shape_.family->gguf_architecture);
    }
    if (left_out != 0) {
      conversion_.notes.push_back(format_text(
          "%zu tensors were left out: those for images, and tables that are computed.", left_out));
    }
    return {};
  }

  const Checkpoint& model_;
  const HfShape& shape_;
  Conversion& conversion_;
  std::unordered_set<std::string_view> used_;
};

void add_yarn(const YarnRope& yarn, const std::string& prefix, GgufHeader& header) {
  header.add_string(prefix + "rope.scaling.type", "yarn");
  header.add_f32(prefix + "rope.scaling.factor", yarn.factor);
  header.add_u32(prefix + "rope.scaling.original_context_length", yarn.original_ctx_len);
  if (yarn.beta_fast != 0) header.add_f32(prefix + "rope.scaling.yarn_beta_fast", yarn.beta_fast);
  if (yarn.beta_slow != 0) header.add_f32(prefix + "rope.scaling.yarn_beta_slow", yarn.beta_slow);
  if (yarn.attention_factor == 0) return;
  // GGUF's multiplies that of the formula.
  const double usual = yarn.factor <= 1 ? 1.0 : 0.1 * std::log(static_cast<double>(yarn.factor)) + 1.0;
  header.add_f32(prefix + "rope.scaling.yarn_attn_factor",
                 static_cast<float>(static_cast<double>(yarn.attention_factor) / usual));
}

void add_metadata(const HfShape& shape, uint32_t file_type, GgufHeader& header) {
  const std::string a = std::string(shape.family->gguf_architecture) + ".";
  add_shape_metadata(header, shape.family->gguf_architecture, shape.base, file_type);
  if (shape.local_rope != 0) header.add_f32(a + "rope.freq_base_swa", shape.local_rope);
  if (shape.linear_rope != 0) {
    header.add_string(a + "rope.scaling.type", "linear");
    header.add_f32(a + "rope.scaling.factor", shape.linear_rope);
  }
  if (shape.yarn.factor != 0) add_yarn(shape.yarn, a, header);
  if (shape.window != 0) header.add_u32(a + "attention.sliding_window", shape.window);
  if (shape.window_pattern != 0) header.add_u32(a + "attention.sliding_window_pattern", shape.window_pattern);
}

// The folder's own name.
std::string last_part(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace

Task<Result<>> plan_hf_to_gguf(const Checkpoint& model, const ConvertOptions& options, GgufPlan& plan) {
  DP_CO_TRY(const HfShape shape, read_hf_config(model.config()));
  DP_CO_CHECK(TensorPlanner(model, shape, plan.conversion).run());
  DP_CO_CHECK(choose_types(plan.conversion, options));
  add_metadata(shape, gguf_file_type(plan.conversion, options), plan.header);
  std::string name = options.name;
  if (name.empty()) name = model.rdrr() ? model.rdrr()->id : last_part(model.name());
  plan.header.add_string("general.name", name);
  for (const auto& [key, value] : options.metadata) plan.header.add_string(key, value);
  auto adding = add_hf_tokenizer(model, shape.base.vocab_size, plan.header, plan.conversion.notes);
  co_return co_await std::move(adding);
}

}  // namespace doppler::formats
