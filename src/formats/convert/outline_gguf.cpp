// The output is a GGUF file (outline.h): the metadata of a GGUF source stay byte for byte, in order, and the order of
// its tensors stays too.
#include <algorithm>
#include <array>

#include "formats/architectures/architecture.h"
#include "formats/architectures/gguf_metadata.h"
#include "formats/convert/hf_to_gguf.h"
#include "formats/convert/hf_to_projector.h"
#include "formats/convert/outline.h"
#include "formats/convert/types.h"
#include "formats/projector/projector.h"
#include "formats/rdrr/manifest.h"

namespace doppler::formats {
namespace {

constexpr std::string_view kFileType = "general.file_type";
constexpr std::string_view kQuantisationVersionKey = "general.quantization_version";

// Tensors of the text model or of its tower, in the order of the source's own table, which an RDRR folder has changed.
std::vector<OutTensor> tensors_as_they_are(const Checkpoint& model, bool of_tower) {
  std::vector<OutTensor> out;
  for (size_t i = 0; i < model.tensors().size(); ++i) {
    const TensorInfo& tensor = model.tensors()[i];
    if ((model.projector() && is_projector_tensor(tensor.name)) != of_tower) continue;
    OutTensor made;
    made.name = tensor.name;
    made.type = tensor.type;
    made.shape = tensor.shape;
    made.source_index = model.rdrr() ? model.rdrr()->tensors[i].source_index : i;
    made.parts = {{.source = &tensor}};
    out.push_back(std::move(made));
  }
  std::ranges::sort(out, {}, &OutTensor::source_index);
  return out;
}

// Refuses the tensors that --fuse-* made in an RDRR folder. Some architectures' files are published with attn_qkv.
Result<> refuse_fused(const Checkpoint& model, const Conversion& conversion) {
  DP_TRY(const auto architecture, model.gguf()->get_string("general.architecture"));
  // In some architectures the layers with a recurrent state have a tensor by this name.
  const auto row = find_architecture_gguf(architecture.value_or(""));
  const bool has_q = !architecture || (row && (*row)->gguf.qkv.empty() &&
                                       std::ranges::find((*row)->recurrent_layer, TensorId::kDeltaQkv) ==
                                           (*row)->recurrent_layer.end());
  for (const OutTensor& tensor : conversion.tensors) {
    const bool fused = tensor.name.find("ffn_gate_up.") != std::string::npos ||
                       (has_q && tensor.name.find("attn_qkv.") != std::string::npos);
    if (!fused) continue;
    return fail(
        ErrorKind::kUnsupported,
        "Tensor \"%s\" is fused, which GGUF has no name for; convert the model that the folder was made of.",
        printable(tensor.name).c_str());
  }
  return {};
}

Result<> declare_tensors(GgufOutline& outline) {
  for (const OutTensor& tensor : outline.conversion.tensors) {
    if (tensor.type >= static_cast<DType>(kFirstOwnDType) || tensor.shape.empty()) {
      return fail(ErrorKind::kUnsupported, "Tensor \"%s\" (%s, %zu dimensions) cannot be in a GGUF file.",
                  printable(tensor.name).c_str(), dtype_info(tensor.type).name, tensor.shape.size());
    }
    outline.header.add_tensor(tensor.name, tensor.type, tensor.shape);
  }
  return {};
}

}  // namespace

std::string source_name(const Checkpoint& model) {
  if (model.rdrr()) return model.rdrr()->id;
  std::string path = model.name();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  path = path.substr(path.find_last_of('/') + 1);
  if (path.ends_with(".gguf")) path.resize(path.size() - 5);
  return path;
}

uint32_t gguf_file_type(const Conversion& conversion, const ConvertOptions& options) {
  if (const QuantMix* mix = mix_of(options).value_or(nullptr)) return mix->file_type;
  std::array<uint64_t, 64> numbers{};
  for (const OutTensor& tensor : conversion.tensors) {
    const auto type = static_cast<uint32_t>(tensor.type);
    if (tensor.matrix && type < numbers.size()) numbers[type] += tensor.rows() * tensor.k();
  }
  const auto most = static_cast<DType>(std::ranges::max_element(numbers) - numbers.begin());
  const QuantMix* mix = find_quant_mix(dtype_info(most).name);
  return mix ? mix->file_type : 0;
}

GgufHeader copied_header(const GgufFile& source, const Conversion& conversion,
                         const ConvertOptions& options) {
  std::vector<std::string_view> without = {"split.no", "split.count", "split.tensors.count"};
  const bool changed = std::ranges::any_of(conversion.tensors, [](const OutTensor& tensor) {
    return std::ranges::any_of(tensor.parts,
                               [&](const TensorPart& part) { return part.source->type != tensor.type; });
  });
  if (changed) without.insert(without.end(), {kFileType, kQuantisationVersionKey});
  if (!options.name.empty()) without.emplace_back("general.name");
  GgufHeader header;
  header.copy_metadata(source, without);
  if (changed) {
    header.add_u32(kFileType, gguf_file_type(conversion, options));
    header.add_u32(kQuantisationVersionKey, kQuantisationVersion);
  }
  if (!options.name.empty()) header.add_string("general.name", options.name);
  return header;
}

Task<Result<GgufOutline>> outline_gguf(const Checkpoint& model, const ConvertOptions& options) {
  GgufOutline outline;
  if (model.kind() == Checkpoint::Kind::kHuggingFace) {
    auto outlining = outline_hf_to_gguf(model, options, outline);
    DP_CO_CHECK(co_await std::move(outlining));
  } else {
    outline.conversion.tensors = tensors_as_they_are(model, /*of_tower=*/false);
    DP_CO_CHECK(refuse_fused(model, outline.conversion));
    DP_CO_CHECK(choose_types(outline.conversion, options));
    outline.header = copied_header(*model.gguf(), outline.conversion, options);
  }
  DP_CO_CHECK(declare_tensors(outline));
  co_return outline;
}

Result<GgufOutline> outline_projector(const Checkpoint& model) {
  GgufOutline outline;
  outline.conversion.tensors = tensors_as_they_are(model, /*of_tower=*/true);
  if (model.gguf()) {
    outline.header = copied_header(*model.projector(), outline.conversion, {});
  } else {
    for (OutTensor& tensor : outline.conversion.tensors) {
      tensor.type = projector_type(*tensor.parts[0].source);
      tensor.matrix = tensor.shape.size() > 1;
    }
    outline.header.copy_metadata(*model.projector());
    outline.header.add_u32(kFileType, gguf_file_type(outline.conversion, {}));
    outline.header.add_u32(kQuantisationVersionKey, kQuantisationVersion);
  }
  DP_CHECK(declare_tensors(outline));
  return outline;
}

}  // namespace doppler::formats
