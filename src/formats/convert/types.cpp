// Rules in order of precedence (types.h).
#include "formats/convert/types.h"

#include <algorithm>
#include <map>
#include <set>

#include "formats/convert/name_rules_native.h"
#include "formats/convert/tensor_kind.h"
#include "formats/quant/codec.h"

namespace doppler::formats {
namespace {

constexpr uint32_t kLayers70B = 80;

// Empty: keep.
Result<std::optional<DType>> type_from_word(const std::string& word) {
  if (word == kKeepTypes) return std::optional<DType>();
  const auto type = dtype_from_name(word);
  if (type && can_quantise(*type)) return type;
  return fail(ErrorKind::kInvalidInput, "There is no type \"%s\" to write; there are %s and %s.",
              printable(word).c_str(), quantisable_type_names().c_str(), kKeepTypes);
}

Result<> refuse_rdrr_only(const ConvertOptions& options) {
  if (options.fuse_gate_up || options.fuse_qkv || options.layout) {
    return fail(ErrorKind::kInvalidInput,
                "Fused tensors and layouts are for RDRR folders only: GGUF has no names for them.");
  }
  if (!options.draft.empty()) {
    return fail(ErrorKind::kInvalidInput,
                "A draft model can be named in RDRR folders only: GGUF has no field for it.");
  }
  return {};
}

struct Wanted {
  std::optional<DType> type;  // empty: keep
  bool by_name = false;       // asked for by role or rule, so that a fallback would not be what was asked
};

class TypeChooser {
 public:
  TypeChooser(Conversion& conversion, const ConvertOptions& options, const QuantMix* mix, NameRules rules)
      : conversion_(conversion), options_(options), mix_(mix), rules_(std::move(rules)) {}

  Result<> run() {
    look_at_all();
    for (OutTensor& tensor : conversion_.tensors) DP_CHECK(choose(tensor));
    for (const std::string& text : rules_.unused()) {
      return fail(ErrorKind::kInvalidInput, "No tensor's name matches \"%s\".", printable(text).c_str());
    }
    add_notes();
    return {};
  }

 private:
  void look_at_all() {
    uint64_t q_rows = 0, kv_rows = 0;
    uint32_t n_next = 0;
    tied_ = true;
    for (const OutTensor& tensor : conversion_.tensors) {
      const TensorKind kind = tensor_kind(tensor.name, tensor.shape.size());
      if (kind.layer) n_layers_ = std::max(n_layers_, *kind.layer + 1);
      if (kind.is_next) n_next = 1;
      if (kind.role == RdrrRole::kLmHead) tied_ = false;
      if (tensor.name == "blk.0.attn_q.weight" ||
          (tensor.name.ends_with("layers.0.self_attn.q_proj.weight") && !kind.is_next)) {
        q_rows = tensor.rows();
      }
      if (kind.place == TensorRole::kAttnV && kind.layer == 0u) kv_rows = tensor.rows();
    }
    n_layers_ += n_next;  // as GGUF counts it
    wide_groups_ = n_layers_ == kLayers70B && kv_rows != 0 && q_rows == 8 * kv_rows;
  }

  Result<Wanted> wanted(const OutTensor& tensor, const TensorKind& kind) {
    if (const std::string* word = rules_.find(tensor.name)) {
      DP_TRY(const auto type, type_from_word(*word));
      return Wanted{type, true};
    }
    if (!kind.quantisable) return Wanted{};
    const std::string* word = nullptr;
    if (kind.role == RdrrRole::kEmbeddings) word = &options_.embeddings;
    // A tied embedding is the output matrix too.
    if (kind.role == RdrrRole::kEmbeddings && tied_ && options_.embeddings.empty()) word = &options_.lm_head;
    if (kind.role == RdrrRole::kLmHead) word = &options_.lm_head;
    if (kind.role == RdrrRole::kExperts) word = &options_.experts;
    if (word && !word->empty()) {
      DP_TRY(const auto type, type_from_word(*word));
      return Wanted{type, true};
    }
    if (!mix_) return Wanted{};
    const uint32_t layer = kind.is_next ? n_layers_ - 1 : kind.layer.value_or(0);
    return Wanted{type_for(*mix_, {kind.place, layer, n_layers_, tied_, wide_groups_}), false};
  }

  Result<> choose(OutTensor& tensor) {
    const TensorKind kind = tensor_kind(tensor.name, tensor.shape.size());
    tensor.matrix = kind.quantisable;
    DP_TRY(const Wanted want, wanted(tensor, kind));
    if (want.type) DP_CHECK(set_type(tensor, *want.type, want.by_name));
    const bool blocks = dtype_info(tensor.type).quantised;
    if (options_.layout && blocks && tensor.shape.size() == 2) tensor.layout = *options_.layout;
    return check_sources(tensor);
  }

  Result<> set_type(OutTensor& tensor, DType type, bool by_name) {
    const uint64_t block = dtype_info(type).block_size;
    if (!options_.layout && tensor.k() % block != 0) {
      if (by_name) {
        return fail(ErrorKind::kInvalidInput,
                    "Column count (%llu) of tensor \"%s\" is not a multiple of the %s block (%llu).",
                    static_cast<unsigned long long>(tensor.k()), printable(tensor.name).c_str(),
                    dtype_info(type).name, static_cast<unsigned long long>(block));
      }
      const DType instead = with_smaller_block(type, tensor.k());
      ++fallbacks_[{type, instead, tensor.k()}];
      type = instead;
    }
    if (options_.layout == RdrrLayout::kFlat && tensor.rows() * tensor.k() % block != 0) type = DType::kF16;
    tensor.type = type;
    return {};
  }

  // Every part must be of the output's type, or numbers that can be changed into it.
  Result<> check_sources(const OutTensor& tensor) {
    for (const TensorPart& part : tensor.parts) {
      const DType from = part.source->type;
      const bool as_it_is = from == tensor.type && part.plus == 0 && !part.is_log &&
                            part.column_heads.head_size == 0 && tensor.layout != RdrrLayout::kColumn;
      if (as_it_is) continue;
      if (!can_dequantise(from) || !can_quantise(tensor.type)) {
        return fail(ErrorKind::kUnsupported, "Tensor \"%s\" of type %s cannot be written as %s.",
                    printable(tensor.name).c_str(), dtype_info(from).name, dtype_info(tensor.type).name);
      }
      const bool is_again =
          from != tensor.type && dtype_info(from).quantised && dtype_info(tensor.type).quantised;
      if (is_again) lossy_sources_.insert(dtype_info(from).name);
    }
    return {};
  }

  void add_notes() {
    for (const auto& [key, count] : fallbacks_) {
      const auto& [wanted, got, k] = key;
      conversion_.notes.push_back(
          format_text("%u tensors with %llu columns, no multiple of the %s block, became %s.", count,
                      static_cast<unsigned long long>(k), dtype_info(wanted).name, dtype_info(got).name));
    }
    for (const std::string& name : lossy_sources_) {
      conversion_.notes.push_back("Tensors that were quantised already (" + name +
                                  ") are quantised again; from full precision the error would be smaller.");
    }
  }

  Conversion& conversion_;
  const ConvertOptions& options_;
  const QuantMix* mix_;
  NameRules rules_;
  uint32_t n_layers_ = 0;
  bool tied_ = false, wide_groups_ = false;
  std::map<std::tuple<DType, DType, uint64_t>, uint32_t> fallbacks_;
  std::set<std::string> lossy_sources_;
};

}  // namespace

Result<const QuantMix*> mix_of(const ConvertOptions& options) {
  if (options.quantize == kKeepTypes) return nullptr;
  if (const QuantMix* mix = find_quant_mix(options.quantize)) return mix;
  return fail(ErrorKind::kInvalidInput, "There is no quantisation \"%s\"; there are %s, %s.",
              printable(options.quantize).c_str(), kKeepTypes, quant_mix_names().c_str());
}

Result<> check_options(const ConvertOptions& options) {
  if (options.to == OutputKind::kGguf) DP_CHECK(refuse_rdrr_only(options));
  DP_CHECK(mix_of(options));
  for (const std::string* word : {&options.embeddings, &options.lm_head, &options.experts}) {
    if (!word->empty()) DP_CHECK(type_from_word(*word));
  }
  for (const auto& [text, word] : options.tensors) DP_CHECK(type_from_word(word));
  DP_CHECK(NameRules::compile(options.tensors));
  return {};
}

Result<> choose_types(Conversion& conversion, const ConvertOptions& options) {
  DP_TRY(const QuantMix* mix, mix_of(options));
  DP_TRY(NameRules rules, NameRules::compile(options.tensors));
  return TypeChooser(conversion, options, mix, std::move(rules)).run();
}

}  // namespace doppler::formats
