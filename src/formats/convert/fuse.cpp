#include "formats/convert/fuse.h"

#include <algorithm>
#include <unordered_map>

#include "formats/architectures/tensor_names.h"

namespace doppler::formats {
namespace {

// Fuses wherever `first` is a tensor's end and its neighbours are there with the same columns.
size_t apply(std::vector<OutTensor>& tensors, const FusedNames& fusion, std::string_view suffix) {
  std::unordered_map<std::string_view, size_t> index;
  for (size_t i = 0; i < tensors.size(); ++i) index.emplace(tensors[i].name, i);
  std::vector<bool> gone(tensors.size(), false);
  std::vector<std::pair<size_t, OutTensor>> wholes;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string& name = tensors[i].name;
    const std::string first = std::string(fusion.parts[0]) + std::string(suffix);
    if (!name.ends_with(first)) continue;
    const std::string prefix = name.substr(0, name.size() - first.size());
    if (!prefix.empty() && !prefix.ends_with('.')) continue;
    OutTensor whole = tensors[i];
    whole.name = prefix + std::string(fusion.whole) + std::string(suffix);
    whole.shape[0] = 0;
    std::vector<size_t> found;
    for (const std::string_view part : fusion.parts) {
      if (part.empty()) continue;
      const auto it = index.find(prefix + std::string(part) + std::string(suffix));
      if (it == index.end()) break;
      const OutTensor& other = tensors[it->second];
      if (other.type != whole.type || other.shape.size() != whole.shape.size()) break;
      if (whole.shape.size() == 2 && other.k() != whole.k()) break;
      found.push_back(it->second);
    }
    if (found.size() != (fusion.parts[2].empty() ? 2u : 3u)) continue;
    whole.parts.clear();
    for (const size_t part : found) {
      whole.shape[0] += tensors[part].shape[0];
      whole.parts.insert(whole.parts.end(), tensors[part].parts.begin(), tensors[part].parts.end());
      gone[part] = true;
    }
    wholes.emplace_back(i, std::move(whole));
  }
  for (auto& [place, whole] : wholes) {
    tensors[place] = std::move(whole);
    gone[place] = false;
  }
  std::vector<OutTensor> kept;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!gone[i]) kept.push_back(std::move(tensors[i]));
  }
  tensors = std::move(kept);
  return wholes.size();
}

}  // namespace

Result<> fuse(Conversion& conversion, const ConvertOptions& options) {
  const auto apply_all = [&](bool wanted, std::span<const FusedNames> fusions, const char* what) -> Result<> {
    if (!wanted) return {};
    size_t count = 0;
    for (const FusedNames& fusion : fusions) {
      for (const char* suffix : {".weight", ".bias"}) count += apply(conversion.tensors, fusion, suffix);
    }
    if (count != 0) return {};
    return fail(ErrorKind::kInvalidInput, "There is nothing to fuse: no layer has separate %s of one type.",
                what);
  };
  DP_CHECK(apply_all(options.fuse_qkv, fused_qkv_names(), "query, key and value matrices"));
  DP_CHECK(apply_all(options.fuse_gate_up, fused_gate_up_names(), "gate and up matrices"));
  for (size_t i = 0; i < conversion.tensors.size(); ++i) conversion.tensors[i].source_index = i;
  return {};
}

}  // namespace doppler::formats
