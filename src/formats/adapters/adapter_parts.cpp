#include "formats/adapters/adapter_parts.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "formats/quant/codec.h"

namespace doppler::formats {
namespace {

Unexpected misfit(const std::string& module, const char* what) {
  return fail(ErrorKind::kInvalidInput, "The adapter's tensors of \"%s\" do not belong together: %s.",
              printable(module).c_str(), what);
}

}  // namespace

Result<std::vector<float>> adapter_numbers(const std::string& name, DType type,
                                           std::span<const uint8_t> bytes) {
  const DTypeInfo& info = dtype_info(type);
  if (info.block_size != 1 || !can_dequantise(type)) {
    return fail(ErrorKind::kUnsupported,
                "The adapter's tensor \"%s\" has the type %s; allowed are f32, f16 and bf16.",
                printable(name).c_str(), info.name);
  }
  std::vector<float> out(bytes.size() / info.block_bytes);
  DP_CHECK(dequantise(type, bytes.data(), out.data(), out.size()));
  if (!std::ranges::all_of(out, [](float v) { return std::isfinite(v); })) {
    return fail(ErrorKind::kInvalidInput, "The adapter's tensor \"%s\" holds a number that is not finite.",
                printable(name).c_str());
  }
  return out;
}

void AdapterParts::add(const std::string& module, Part part, bool is_embedding, Tensor tensor) {
  Module& to = modules_[module];
  const auto index = static_cast<size_t>(part);
  to.parts[index] = std::move(tensor);
  to.has[index] = true;
  to.is_embedding = to.is_embedding || is_embedding;
}

Result<AdaptedTensor> AdapterParts::join(const std::string& name, Module& module) {
  Tensor &a = module.parts[0], &b = module.parts[1], &bias = module.parts[2], &magnitude = module.parts[3];
  if (!module.has[0] || !module.has[1]) return misfit(name, "one of A and B is missing");
  if (a.shape.size() != 2 || b.shape.size() != 2) return misfit(name, "A and B are no matrices");
  if (a.shape[0] != b.shape[1]) return misfit(name, "their ranks differ");
  if (a.shape[0] == 0 || a.shape[0] > kMostAdapterRank || a.shape[1] == 0 || b.shape[0] == 0) {
    return misfit(name, "a side is 0, or the rank is above 1024");
  }
  AdaptedTensor out{.tensor = name,
                    .rank = static_cast<uint32_t>(a.shape[0]),
                    .n = b.shape[0],
                    .k = a.shape[1],
                    .a = std::move(a.values),
                    .b = std::move(b.values),
                    .bias = std::move(bias.values),
                    .magnitude = std::move(magnitude.values),
                    .is_embedding = module.is_embedding};
  if (module.has[2] && out.bias.size() != out.n)
    return misfit(name, "the bias has another length than B has rows");
  if (module.has[3] && out.magnitude.size() != out.n) {
    return misfit(name, "the magnitudes have another length than B has rows");
  }
  if (out.is_embedding && !out.magnitude.empty()) {
    return fail(ErrorKind::kUnsupported,
                "The adapter has DoRA magnitudes of the embedding \"%s\", which are not "
                "supported.",
                printable(name).c_str());
  }
  return out;
}

Result<std::vector<AdaptedTensor>> AdapterParts::take() {
  std::vector<AdaptedTensor> out;
  for (auto& [name, module] : modules_) {
    DP_TRY(AdaptedTensor joined, join(name, module));
    out.push_back(std::move(joined));
  }
  return out;
}

}  // namespace doppler::formats
