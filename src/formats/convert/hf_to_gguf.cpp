#include "formats/convert/hf_to_gguf.h"

#include <algorithm>
#include <unordered_set>

#include "formats/architectures/gguf_metadata.h"
#include "formats/architectures/rope_frequencies.h"
#include "formats/architectures/tensor_names.h"
#include "formats/architectures/xielu.h"
#include "formats/convert/hf_tokenizer.h"
#include "formats/convert/types.h"
#include "formats/projector/projector.h"
#include "formats/quant/codec.h"

namespace doppler::formats {
namespace {

std::string shape_text(const std::vector<uint64_t>& shape) {
  std::string text = "[";
  for (const uint64_t extent : shape) text += " " + std::to_string(extent);
  return text + " ]";
}

// Tensors of parts that see or hear, of layers that guess further tokens, and buffers of old checkpoints.
bool is_left_out(std::string_view name) {
  return name.find("vision_tower") != std::string_view::npos ||
         name.find("vision_model") != std::string_view::npos ||
         name.find("multi_modal_projector") != std::string_view::npos ||
         name.find("mm_projector") != std::string_view::npos || name.starts_with("model.visual.") ||
         name.starts_with("visual.") || name.starts_with("model.connector.") ||
         name.find("audio_tower") != std::string_view::npos ||
         name.find("embed_audio") != std::string_view::npos ||
         name.find("embed_vision") != std::string_view::npos || name.starts_with("mtp.") ||
         name.ends_with("rotary_emb.inv_freq");
}

// For encoders: the head that predicts words, and buffers of older checkpoints.
bool is_left_out_of_encoder(std::string_view name) {
  return name.find("cls.") != std::string_view::npos || name.find("pooler.") != std::string_view::npos ||
         name.starts_with("head.") || name.starts_with("lm_head.") || name.starts_with("decoder.") ||
         name.ends_with("position_ids");
}

bool is_of_head(TensorId id) { return id == TensorId::kClassDense || id == TensorId::kClassOut; }

class TensorOutliner {
 public:
  TensorOutliner(const Checkpoint& model, const ModelConfig& config, Conversion& conversion)
      : model_(model),
        config_(config),
        gguf_(config),
        row_(architecture_of(config)),
        conversion_(conversion) {
    gguf_.gguf_names = true;
  }

  Result<> run() {
    if (interleaves() && config_.rope.rotary_dim != config_.head_dim) {
      return fail(ErrorKind::kUnsupported,
                  "Heads that rotate in part (%u of %u) are not converted to GGUF's architecture \"%s\".",
                  config_.rope.rotary_dim, config_.head_dim, gguf_architecture().c_str());
    }
    add_rope_divisors();
    for (const PlacedTensor& tensor : tensors_of(config_)) {
      if (add_fused(tensor)) continue;
      const TensorRow& row = *tensor.row;
      if (row.part != 0) continue;  // the tensor of part 0
      if (row.gguf_parts > 1) {
        DP_CHECK(add_stacked(tensor));
        continue;
      }
      std::vector<uint64_t> shape = row.shape.extents(config_, tensor.layer);
      shape[0] *= row.parts;
      DP_CHECK(add(tensor, nullptr, std::move(shape)));
      // Checkpoints with biases that config.json does not speak of are read with them.
      if (!(is_in_layer(row.id) || is_of_head(row.id)) || row.is_norm || row.is_vector) continue;
      std::vector<uint64_t> outputs = row.shape.extents(config_, tensor.layer);
      outputs.pop_back();
      DP_CHECK(add(tensor, ".bias", std::move(outputs)));
    }
    return check_nothing_is_left();
  }

 private:
  std::string gguf_architecture() const { return std::string(formats::gguf_architecture(config_)); }

  RopePairing pairing() const { return row_.gguf.pairing_of(config_.rope); }
  bool interleaves() const {
    return row_.huggingface.pairing.value == RopePairing::kNeox && pairing() == RopePairing::kGptJ;
  }
  bool halves() const {
    return row_.huggingface.pairing.value == RopePairing::kGptJ && pairing() == RopePairing::kNeox;
  }

  void add_rope_divisors() {
    add_numbers("rope_freqs.weight", rope_divisors(config_));
    const RopeConfig& rope = config_.rope;
    add_numbers(kLongFactors, {rope.long_factor.begin(), rope.long_factor.end()});
    add_numbers(kShortFactors, {rope.short_factor.begin(), rope.short_factor.end()});
  }

  void add_numbers(const char* name, std::vector<float> numbers) {
    if (numbers.empty()) return;
    OutTensor out;
    out.name = name;
    out.shape = {numbers.size()};
    out.numbers = std::move(numbers);
    conversion_.tensors.push_back(std::move(out));
  }

  Result<> add(const PlacedTensor& placed, const char* suffix, std::vector<uint64_t> shape) {
    const TensorRow& row = *placed.row;
    const std::string name = tensor_name(config_, row.id, placed.layer, suffix);
    const TensorInfo* tensor = model_.find(name);
    const bool is_bias = suffix && std::string_view(suffix) == ".bias";
    const bool may_have_bias = row_.biases != Biases::kNone || is_of_head(row.id);
    if (is_bias && (!may_have_bias || (!tensor && !must_have_bias(config_, row.id)))) return {};
    if (!tensor) {
      return fail(ErrorKind::kInvalidInput, "%s has no tensor \"%s\".", model_.name().c_str(), name.c_str());
    }
    used_.insert(tensor->name);
    OutTensor out;
    out.name = tensor_name(gguf_, row.id, placed.layer, suffix);
    out.shape = std::move(shape);
    if (out.shape.size() > 1 && out.shape[0] == 1) out.shape.erase(out.shape.begin());  // as llama.cpp has it
    if (!is_same_shape(tensor->shape, out.shape)) {
      return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" has the shape %s, but config.json makes it %s.",
                  printable(tensor->name).c_str(), shape_text(tensor->shape).c_str(),
                  shape_text(out.shape).c_str());
    }
    // llama.cpp computes with vectors, and biases of experts, in f32 only.
    // It wants Mamba's decays and skips as columns, and other vectors without dimensions of 1.
    if (row.is_vector) {
      const bool is_column = out.shape.size() > 1 && out.shape.back() == 1;
      out.shape = without_ones(out.shape);
      if (is_column) out.shape.push_back(1);
      const uint64_t groups = extent(row.gguf_groups, config_, placed.layer);
      if (groups > 1) out.shape = {groups, out.shape[0] / groups};
    }
    out.type = out.shape.size() == 1 || is_bias || row.is_vector ? DType::kF32 : tensor->type;
    TensorPart part{.source = tensor};
    if (interleaves()) part.interleaved_heads = rotated_heads(config_, row.id);
    if (halves()) {
      part.halved_heads = rotated_heads(config_, row.id);
      part.halved_rows = config_.rope.rotary_dim;
    }
    if (row.is_norm) part.plus = row_.huggingface.norm_offset;
    part.is_log = row.is_log;
    order_value_heads(row.id, part);
    out.parts = {part};
    conversion_.tensors.push_back(std::move(out));
    return {};
  }

  // Matrices that are one tensor in GGUF, one after another.
  Result<> add_stacked(const PlacedTensor& placed) {
    const TensorRow& row = *placed.row;
    if (row.gguf_part == 0) {
      DP_CHECK(add(placed, nullptr, row.shape.extents(config_, placed.layer)));
      OutTensor& whole = conversion_.tensors.back();
      whole.shape.insert(whole.shape.begin(), row.gguf_parts);
      return {};
    }
    const std::string name = tensor_name(config_, row.id, placed.layer);
    const TensorInfo* tensor = model_.find(name);
    OutTensor& whole = conversion_.tensors.back();
    if (!tensor || tensor->shape != whole.parts[0].source->shape ||
        tensor->type != whole.parts[0].source->type) {
      return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" is missing, or unlike the one before it.",
                  name.c_str());
    }
    used_.insert(tensor->name);
    whole.parts.push_back({.source = tensor});
    return {};
  }

  // GGUF has the value heads of gated delta nets by their place under a key head, Hugging Face by key head.
  void order_value_heads(TensorId id, TensorPart& part) const {
    const RecurrentConfig& c = config_.recurrent;
    if (c.is_tiled || c.n_value_heads == c.n_key_heads || !row_.gguf.tiles_value_heads) return;
    TensorPart::HeadOrder order{
        .head_size = c.value_dim, .groups = c.n_key_heads, .reps = c.n_value_heads / c.n_key_heads};
    switch (id) {
      case TensorId::kDeltaQkv:
      case TensorId::kConv:
        order.skipped = 2ull * c.n_key_heads * c.key_dim;
        part.row_heads = order;
        return;
      case TensorId::kDeltaGate:
        part.row_heads = order;
        return;
      case TensorId::kDeltaRate:
      case TensorId::kDeltaDecay:
      case TensorId::kStateDecay:
      case TensorId::kStateTimeBias:
        order.head_size = 1;
        part.row_heads = order;
        return;
      case TensorId::kStateOut:
        part.column_heads = order;
        return;
      default:
        return;
    }
  }

  // A tensor that holds several, by GGUF's name for the whole: added with the first one. True: there is one.
  bool add_fused(const PlacedTensor& placed) {
    const TensorId id = placed.row->id;
    const bool is_qkv = id == TensorId::kQ || id == TensorId::kK || id == TensorId::kV;
    const bool is_gate_up = id == TensorId::kGate || id == TensorId::kUp;
    const std::string_view whole = is_qkv ? row_.gguf.qkv : row_.gguf.gate_up;
    const std::string name = tensor_name(config_, id, placed.layer, "");
    if ((!is_qkv && !is_gate_up) || whole.empty() || model_.find(name + ".weight")) return false;
    for (const std::string& fused : fused_tensor_names(name)) {
      const TensorInfo* tensor = model_.find(fused + ".weight");
      if (!tensor) continue;
      if (!used_.insert(tensor->name).second) return true;
      OutTensor out;
      out.name = format_text("blk.%u.%s.weight", placed.layer, std::string(whole).c_str());
      out.shape = tensor->shape;
      out.type = tensor->type;
      out.parts = {TensorPart{.source = tensor}};
      conversion_.tensors.push_back(std::move(out));
      return true;
    }
    return false;
  }

  // The numbers of activations are metadata.
  bool is_metadata(const TensorInfo& tensor) const {
    return !config_.xielu.empty() &&
           tensor.name.find(tensor_row(row_, TensorId::kXielu).huggingface) != std::string::npos;
  }

  // A tensor that was not used is a feature that the output would lack.
  Result<> check_nothing_is_left() {
    size_t left_out = 0;
    const std::string tied_head = tensor_name(config_, TensorId::kOutput, 0);
    for (const TensorInfo& tensor : model_.tensors()) {
      const bool is_of_tower = model_.projector() && is_projector_tensor(tensor.name);
      if (used_.contains(tensor.name) || (config_.tied_embeddings && tensor.name == tied_head) ||
          is_of_tower || is_metadata(tensor)) {
        continue;
      }
      // Layers after the last one guess further tokens; some checkpoints have keys and values that no layer reads.
      const uint32_t layer = layer_of_tensor(tensor.name).value_or(0);
      const bool is_unread =
          cache_layer(config_, layer) != layer &&
          (tensor.name.find(".k_") != std::string::npos || tensor.name.find(".v_") != std::string::npos);
      if (is_left_out(tensor.name) || (row_.bidirectional && is_left_out_of_encoder(tensor.name)) ||
          is_unread || layer >= config_.n_layers) {
        ++left_out;
        continue;
      }
      return fail(ErrorKind::kUnsupported,
                  "Tensor \"%s\" has no place in a GGUF file of architecture \"%s\".",
                  printable(tensor.name).c_str(), gguf_architecture().c_str());
    }
    if (left_out != 0) {
      conversion_.notes.push_back(
          format_text("%zu tensors were left out: those for images and for guesses of further tokens, and "
                      "tables that are computed.",
                      left_out));
    }
    return {};
  }

  const Checkpoint& model_;
  const ModelConfig& config_;
  ModelConfig gguf_;  // the same model by GGUF's names
  const Architecture& row_;
  Conversion& conversion_;
  std::unordered_set<std::string_view> used_;
};

// Checks that the engine would read from the output what it reads from the source.
Result<> check_kept(const ModelConfig& config, const GgufOutline& outline) {
  GgufHeader header = outline.header;
  for (const OutTensor& tensor : outline.conversion.tensors) {
    header.add_tensor(tensor.name, DType::kF32, tensor.shape);  // the type has no part in it
  }
  return check_config_kept(config, std::move(header));
}

// The number of the tower's layers with mergers of their own, so that llama.cpp knows how wide the tower's rows are.
Result<> add_mergers(const GgufFile& projector, const ModelConfig& config, GgufHeader& header) {
  DP_TRY(const auto layers, projector.get_bools("clip.vision.is_deepstack_layers"));
  const auto count = layers ? std::ranges::count(*layers, true) : 0;
  if (count == 0) return {};
  header.add_u32(std::string(gguf_architecture(config)) + ".n_deepstack_layers",
                 static_cast<uint32_t>(count));
  return {};
}

}  // namespace

Task<Result<>> outline_hf_to_gguf(const Checkpoint& model, const ConvertOptions& options,
                                  GgufOutline& outline) {
  DP_CO_TRY(ModelConfig config, read_config(model));
  DP_CO_CHECK(co_await read_xielu(model, config));
  DP_CO_CHECK(TensorOutliner(model, config, outline.conversion).run());
  DP_CO_CHECK(choose_types(outline.conversion, options));
  DP_CO_CHECK(add_config_metadata(outline.header, config, gguf_file_type(outline.conversion, options)));
  DP_CO_CHECK(check_kept(config, outline));
  if (model.projector()) DP_CO_CHECK(add_mergers(*model.projector(), config, outline.header));
  outline.header.add_string("general.name", options.name.empty() ? source_name(model) : options.name);
  for (const auto& [key, value] : options.metadata) outline.header.add_string(key, value);
  auto adding = add_hf_tokenizer(model, config.vocab_size, outline.header, outline.conversion.notes);
  co_return co_await std::move(adding);
}

}  // namespace doppler::formats
