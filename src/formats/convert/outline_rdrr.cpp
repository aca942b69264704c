// The output is an RDRR folder (outline.h): tensors keep the source's names and are put in the order of a forward pass;
// the source's description goes along as assets.
#include <algorithm>
#include <array>

#include "base/json.h"
#include "formats/convert/fuse.h"
#include "formats/convert/outline.h"
#include "formats/convert/tensor_kind.h"
#include "formats/convert/types.h"
#include "formats/embedding_modules.h"

namespace doppler::formats {
namespace {

// The files of a Hugging Face folder that describe a model; each is optional. Weights and their index are not among
// them.
constexpr const char* kAssetFiles[] = {"config.json",
                                       "generation_config.json",
                                       "tokenizer.json",
                                       "tokenizer.model",
                                       "tokenizer_config.json",
                                       "special_tokens_map.json",
                                       "added_tokens.json",
                                       "vocab.json",
                                       "merges.txt",
                                       "chat_template.jinja",
                                       "preprocessor_config.json",
                                       "processor_config.json",
                                       "LICENSE",
                                       "README.md"};

struct LoadPlace {
  bool after_layers;
  uint32_t layer, rank;
  uint64_t source_index;
  auto operator<=>(const LoadPlace&) const = default;
};

LoadPlace load_place(const OutTensor& tensor) {
  const TensorKind kind = tensor_kind(tensor.name, tensor.shape.size());
  // Tensors outside the layers come before or after all layers.
  const uint32_t layer = kind.is_next ? UINT32_MAX : kind.layer ? *kind.layer + 1 : 0;
  return {kind.after_layers, layer, kind.load_rank, tensor.source_index};
}

void put_in_load_order(std::vector<OutTensor>& tensors) { std::ranges::sort(tensors, {}, load_place); }

// The word for the tensors of a role: the requested mix, else the type that most of their numbers have.
std::string word_for(const Conversion& conversion, RdrrRole role, const std::string& asked) {
  std::map<std::string, uint64_t> numbers;
  for (const OutTensor& tensor : conversion.tensors) {
    if (tensor.role == role && tensor.matrix)
      numbers[dtype_info(tensor.type).name] += tensor.rows() * tensor.k();
  }
  if (numbers.empty()) return {};
  if (!asked.empty()) return asked;
  return std::ranges::max_element(numbers, {}, [](const auto& row) { return row.second; })->first;
}

Task<Result<>> add_folder_assets(const Checkpoint& model, RdrrOutline& outline) {
  for (const char* file : kAssetFiles) {
    auto reading = model.read_text(file);
    DP_CO_TRY(const auto text, co_await std::move(reading));
    if (text && !text->empty()) outline.assets[file] = {text->begin(), text->end()};
  }
  if (find(model.config(), kEmbeddingModules)) {  // which lie in folders of their own
    const std::string config = to_text(model.config(), 2);
    outline.assets["config.json"] = {config.begin(), config.end()};
  }
  RdrrManifest& manifest = outline.manifest;
  if (outline.assets.contains("tokenizer.json"))
    manifest.tokenizer = {.asset = "tokenizer.json", .key = "", .unknown = {}};
  if (outline.assets.contains("chat_template.jinja")) {
    manifest.chat_template = {.asset = "chat_template.jinja", .key = "", .unknown = {}};
  } else if (outline.assets.contains("tokenizer_config.json")) {
    auto reading = model.read_text("tokenizer_config.json");
    DP_CO_TRY(const auto text, co_await std::move(reading));
    DP_CO_TRY(const Json config, parse_json(*text, "tokenizer_config.json"));
    const Json* const found = find(config, "chat_template");
    if (found && found->is_string()) {
      manifest.chat_template = {.asset = "tokenizer_config.json", .key = "chat_template", .unknown = {}};
    }
  }
  if (outline.assets.contains("generation_config.json")) {
    auto reading = model.read_text("generation_config.json");
    DP_CO_TRY(const auto text, co_await std::move(reading));
    DP_CO_TRY(manifest.generation, parse_json(*text, "generation_config.json"));
    if (!manifest.generation.is_object()) manifest.generation = nullptr;
  }
  co_return Result<>();
}

// The header of the tower's GGUF file, and the files of its folder that say more.
Task<Result<>> add_projector_assets(const Checkpoint& model, RdrrOutline& outline) {
  outline.assets[kRdrrProjectorMetadata] = model.projector()->without_tensors();
  for (const char* file : {"preprocessor_config.json", "processor_config.json"}) {
    auto reading = model.read_projector_text(file);
    DP_CO_TRY(const auto text, co_await std::move(reading));
    if (text && !text->empty()) outline.assets[file] = {text->begin(), text->end()};
  }
  co_return Result<>();
}

Result<> add_gguf_asset(const Checkpoint& model, const ConvertOptions& options, RdrrOutline& outline) {
  const GgufFile& gguf = *model.gguf();
  const bool changed = std::ranges::any_of(outline.conversion.tensors, [](const OutTensor& tensor) {
    return std::ranges::any_of(tensor.parts,
                               [&](const TensorPart& part) { return part.source->type != tensor.type; });
  });
  const bool was_split = gguf.find("split.count") != nullptr;
  outline.assets[kRdrrGgufMetadata] = changed || was_split || !options.name.empty()
                                          ? copied_header(gguf, outline.conversion, options).build()
                                          : gguf.without_tensors();
  RdrrManifest& manifest = outline.manifest;
  if (gguf.find("tokenizer.ggml.tokens"))
    manifest.tokenizer = {.asset = kRdrrGgufMetadata, .key = "", .unknown = {}};
  if (gguf.find("tokenizer.chat_template")) {
    manifest.chat_template = {.asset = kRdrrGgufMetadata, .key = "tokenizer.chat_template", .unknown = {}};
  }
  const std::pair<const char*, const char*> kDefaults[] = {{"general.sampling.temp", "temperature"},
                                                           {"general.sampling.top_p", "top_p"},
                                                           {"general.sampling.top_k", "top_k"}};
  for (const auto& [key, word] : kDefaults) {
    DP_TRY(const auto value, gguf.get_number(key));
    if (value) manifest.generation[word] = *value;
  }
  return {};
}

Result<std::string> source_family(const Checkpoint& model) {
  if (model.rdrr()) return model.rdrr()->type;
  auto word = model.gguf() ? model.gguf()->get_string("general.architecture")
                           : get_string(model.config(), "model_type");
  if (!word) return forward(std::move(word).error());
  return word->value_or("unknown");
}

Result<> describe(const Checkpoint& model, const ConvertOptions& options, RdrrOutline& outline) {
  RdrrManifest& manifest = outline.manifest;
  manifest.id = options.name;
  if (manifest.id.empty()) manifest.id = source_name(model);
  DP_TRY(manifest.type, source_family(model));
  if (!options.family.empty()) manifest.type = options.family;
  manifest.architecture = options.architecture.is_object() ? options.architecture : Json::object();
  manifest.shard_bytes = options.shard_bytes;
  manifest.source = model.kind() == Checkpoint::Kind::kGguf ? RdrrSource::kGguf : RdrrSource::kHuggingFace;
  const std::string asked = options.quantize == kKeepTypes ? "" : options.quantize;
  manifest.quantization.weights = word_for(outline.conversion, RdrrRole::kWeights, asked);
  manifest.quantization.embeddings = word_for(outline.conversion, RdrrRole::kEmbeddings, "");
  manifest.quantization.lm_head = word_for(outline.conversion, RdrrRole::kLmHead, "");
  manifest.quantization.experts = word_for(outline.conversion, RdrrRole::kExperts, "");
  if (!options.draft.empty()) {
    manifest.draft.emplace();
    manifest.draft->model = options.draft;
  } else if (model.rdrr()) {
    manifest.draft = model.rdrr()->draft;
  }
  if (model.rdrr()) manifest.kernel_hints = model.rdrr()->kernel_hints;
  return {};
}

}  // namespace

Task<Result<RdrrOutline>> outline_rdrr(const Checkpoint& model, const ConvertOptions& options) {
  RdrrOutline outline;
  std::vector<OutTensor>& tensors = outline.conversion.tensors;
  for (size_t i = 0; i < model.tensors().size(); ++i) {
    const TensorInfo& source = model.tensors()[i];
    OutTensor tensor;
    tensor.name = source.name;
    tensor.type = source.type;
    tensor.shape = source.shape;
    tensor.role = tensor_kind(source.name, source.shape.size()).role;
    tensor.source_index = model.rdrr() ? model.rdrr()->tensors[i].source_index : i;
    tensor.parts = {{.source = &source}};
    tensors.push_back(std::move(tensor));
  }
  std::ranges::sort(tensors, {}, &OutTensor::source_index);
  DP_CO_CHECK(fuse(outline.conversion, options));
  DP_CO_CHECK(choose_types(outline.conversion, options));
  put_in_load_order(tensors);
  DP_CO_CHECK(describe(model, options, outline));
  if (model.kind() == Checkpoint::Kind::kGguf) {
    DP_CO_CHECK(add_gguf_asset(model, options, outline));
    if (model.projector()) {
      auto adding = add_projector_assets(model, outline);
      DP_CO_CHECK(co_await std::move(adding));
    }
  } else {
    auto adding = add_folder_assets(model, outline);
    DP_CO_CHECK(co_await std::move(adding));
  }
  for (const OutTensor& tensor : tensors) {
    RdrrTensor row;
    row.name = tensor.name;
    row.shape = tensor.shape;
    row.type = tensor.type;
    row.role = tensor.role;
    row.layout = tensor.layout;
    row.source_index = tensor.source_index;
    outline.manifest.tensors.push_back(std::move(row));
  }
  co_return outline;
}

}  // namespace doppler::formats
