#include "formats/tied_tensors.h"

#include <algorithm>
#include <unordered_map>

#include "base/json.h"
#include "formats/architectures/config_sources.h"

namespace doppler::formats {
namespace {

constexpr std::string_view kHead = "lm_head.weight", kTiedTable = "embed_tokens.weight";

const TensorInfo* find_end(const std::vector<TensorInfo>& tensors, std::string_view end) {
  const auto found =
      std::ranges::find_if(tensors, [&](const TensorInfo& tensor) { return tensor.name.ends_with(end); });
  return found == tensors.end() ? nullptr : &*found;
}

// By its own field, or by the default of its architecture.
bool is_tied(const Json& config) {
  const auto read = config_from_huggingface(config);
  return read && read->tied_embeddings;
}

// "model." of "model.layers.0.mlp.up_proj.weight".
std::string prefix_of_layers(const std::vector<TensorInfo>& tensors) {
  for (const TensorInfo& tensor : tensors) {
    const size_t at = tensor.name.find("layers.");
    if (at != std::string::npos && (at == 0 || tensor.name[at - 1] == '.')) return tensor.name.substr(0, at);
  }
  return {};
}

bool is_left_out(std::string_view name, const std::vector<TensorInfo>& tensors, const TensorAliases& aliases,
                 const Json& config) {
  const std::string_view other = name.ends_with(kHead) ? kTiedTable : name.ends_with(kTiedTable) ? kHead : "";
  if (other.empty() || !find_end(tensors, other)) return false;
  return is_tied(config) ||
         std::ranges::find(aliases, name, &TensorAliases::value_type::first) != aliases.end();
}

}  // namespace

void rename_tied(std::vector<TensorInfo>& tensors, const TensorAliases& aliases, const Json& config) {
  if (find_end(tensors, kTiedTable)) return;
  const auto head =
      std::ranges::find_if(tensors, [](const TensorInfo& tensor) { return tensor.name.ends_with(kHead); });
  if (head == tensors.end()) return;
  const auto alias = std::ranges::find_if(aliases, [&](const auto& pair) {
    return pair.second == head->name && pair.first.ends_with(kTiedTable);
  });
  if (alias != aliases.end()) {
    head->name = alias->first;
  } else if (is_tied(config)) {
    head->name = prefix_of_layers(tensors) + std::string(kTiedTable);
  }
}

Result<> check_index(const SafetensorsIndex& index, const std::vector<TensorInfo>& tensors,
                     const TensorAliases& aliases, const Json& config) {
  if (index.weight_map.empty()) return {};
  std::unordered_map<std::string_view, uint32_t> found;
  for (const TensorInfo& tensor : tensors) found.emplace(tensor.name, tensor.file);
  for (const auto& [name, file] : index.weight_map) {
    const auto it = found.find(name);
    if (it != found.end() && it->second == file) continue;
    if (it == found.end() && is_left_out(name, tensors, aliases, config)) continue;
    return fail(ErrorKind::kInvalidInput, "%s places tensor \"%s\" in %s, but that file does not hold it.",
                kSafetensorsIndexName, printable(name).c_str(), printable(index.files[file]).c_str());
  }
  return {};
}

}  // namespace doppler::formats
