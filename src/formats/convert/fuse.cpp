#include "formats/convert/fuse.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace doppler::formats {
namespace {

// Parts in the order of their rows; the names are those that GGUF and Hugging Face use where a model is published so.
struct Fusion {
  std::array<const char*, 3> parts;  // the last may be null
  const char* whole;
};
constexpr Fusion kQkv[] = {
    {{"attn_q.weight", "attn_k.weight", "attn_v.weight"}, "attn_qkv.weight"},
    {{"attn_q.bias", "attn_k.bias", "attn_v.bias"}, "attn_qkv.bias"},
    {{"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"},
     "self_attn.qkv_proj.weight"},
    {{"self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"}, "self_attn.qkv_proj.bias"},
};
constexpr Fusion kGateUp[] = {
    {{"ffn_gate.weight", "ffn_up.weight", nullptr}, "ffn_gate_up.weight"},
    {{"ffn_gate.bias", "ffn_up.bias", nullptr}, "ffn_gate_up.bias"},
    {{"mlp.gate_proj.weight", "mlp.up_proj.weight", nullptr}, "mlp.gate_up_proj.weight"},
    {{"mlp.gate_proj.bias", "mlp.up_proj.bias", nullptr}, "mlp.gate_up_proj.bias"},
};

// Fuses wherever `first` is a tensor's end and its neighbours are there with the same columns.
size_t apply(std::vector<OutTensor>& tensors, const Fusion& fusion) {
  std::unordered_map<std::string_view, size_t> index;
  for (size_t i = 0; i < tensors.size(); ++i) index.emplace(tensors[i].name, i);
  std::vector<bool> gone(tensors.size(), false);
  std::vector<std::pair<size_t, OutTensor>> wholes;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string& name = tensors[i].name;
    if (!name.ends_with(fusion.parts[0])) continue;
    const std::string prefix = name.substr(0, name.size() - std::string_view(fusion.parts[0]).size());
    if (!prefix.empty() && !prefix.ends_with('.')) continue;
    OutTensor whole = tensors[i];
    whole.name = prefix + fusion.whole;
    whole.shape[0] = 0;
    std::vector<size_t> found;
    for (const char* part : fusion.parts) {
      if (!part) continue;
      const auto it = index.find(prefix + part);
      if (it == index.end()) break;
      const OutTensor& other = tensors[it->second];
      if (other.type != whole.type || other.shape.size() != whole.shape.size()) break;
      if (whole.shape.size() == 2 && other.k() != whole.k()) break;
      found.push_back(it->second);
    }
    if (found.size() != (fusion.parts[2] ? 3u : 2u)) continue;
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
  const auto apply_all = [&](bool wanted, std::span<const Fusion> fusions, const char* what) -> Result<> {
    if (!wanted) return {};
    size_t count = 0;
    for (const Fusion& fusion : fusions) count += apply(conversion.tensors, fusion);
    if (count != 0) return {};
    return fail(ErrorKind::kInvalidInput, "There is nothing to fuse: no layer has separate %s of one type.",
                what);
  };
  DP_CHECK(apply_all(options.fuse_qkv, kQkv, "query, key and value matrices"));
  DP_CHECK(apply_all(options.fuse_gate_up, kGateUp, "gate and up matrices"));
  for (size_t i = 0; i < conversion.tensors.size(); ++i) conversion.tensors[i].source_index = i;
  return {};
}

}  // namespace doppler::formats
