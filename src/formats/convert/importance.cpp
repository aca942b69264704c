#include "formats/convert/importance.h"

#include <algorithm>
#include <cmath>

#include "formats/architectures/tensor_names.h"
#include "formats/byte_reader.h"
#include "formats/gguf/gguf.h"

namespace doppler::formats {
namespace {

constexpr char kSums[] = ".in_sum2", kCounts[] = ".counts";
constexpr int32_t kMaxEntries = 1 << 20, kMaxNameBytes = 4096;

std::vector<float> floats_at(std::span<const uint8_t> bytes, const GgufTensor& tensor) {
  std::vector<float> out(host_size(tensor.bytes / 4));
  for (size_t i = 0; i < out.size(); ++i) out[i] = load_le<float>(bytes.data() + tensor.offset + 4 * i);
  return out;
}

// Sums over a text to means, each vector by its own count; a vector that was never used says nothing: all alike.
Result<> divide(std::vector<float>& sums, std::span<const float> counts, const std::string& tensor,
                const std::string& file) {
  const size_t k = counts.empty() ? 0 : sums.size() / counts.size();
  if (k == 0 || k * counts.size() != sums.size()) {
    return fail(ErrorKind::kInvalidInput, "%s gives tensor \"%s\" %zu sums and %zu counts.", file.c_str(),
                printable(tensor).c_str(), sums.size(), counts.size());
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    const float count = counts[i / k];
    const float mean = count > 0 ? sums[i] / count : 1.0f;
    if (!(sums[i] >= 0) || !(count >= 0) || !std::isfinite(sums[i]) || !std::isfinite(count) ||
        !std::isfinite(mean)) {
      return fail(ErrorKind::kInvalidInput, "%s gives tensor \"%s\" a column that is negative or not finite.",
                  file.c_str(), printable(tensor).c_str());
    }
    sums[i] = mean;
  }
  return {};
}

Result<Importance> parse_gguf_form(std::span<const uint8_t> bytes, const std::string& name) {
  DP_TRY(const GgufParse parse, parse_gguf(bytes, bytes.size(), name));
  if (!parse.file) return fail(ErrorKind::kInvalidInput, "%s is cut off.", name.c_str());
  DP_TRY(const auto type, parse.file->get_string("general.type"));
  if (type.value_or("") != "imatrix") {
    return fail(ErrorKind::kInvalidInput, "%s is a GGUF file, but no importance matrix.", name.c_str());
  }
  std::map<std::string, std::vector<float>> counts;
  Importance out{{}, name};
  for (const GgufTensor& tensor : parse.file->tensors()) {
    if (tensor.type != DType::kF32) continue;
    std::string base = tensor.name;
    if (base.ends_with(kSums)) {
      base.resize(base.size() - (sizeof kSums - 1));
      out.columns[base] = floats_at(bytes, tensor);
    } else if (base.ends_with(kCounts)) {
      base.resize(base.size() - (sizeof kCounts - 1));
      counts[base] = floats_at(bytes, tensor);
    }
  }
  for (auto& [tensor, sums] : out.columns) DP_CHECK(divide(sums, counts[tensor], tensor, name));
  return out;
}

// count, then for each: bytes of the name, name, calls, count of values, values as sums over the calls.
Result<Importance> parse_old_form(std::span<const uint8_t> bytes, const std::string& name) {
  size_t at = 0;
  const auto number = [&](int32_t most) -> Result<int32_t> {
    if (bytes.size() - at < 4) return fail(ErrorKind::kInvalidInput, "%s is cut off.", name.c_str());
    const auto value = load_le<int32_t>(bytes.data() + at);
    at += 4;
    if (value >= 0 && value <= most) return value;
    return fail(ErrorKind::kInvalidInput, "%s is no importance matrix: it holds the count %d at byte %zu.",
                name.c_str(), value, at - 4);
  };
  Importance out{{}, name};
  DP_TRY(const int32_t entries, number(kMaxEntries));
  for (int32_t i = 0; i < entries; ++i) {
    DP_TRY(const int32_t name_bytes, number(kMaxNameBytes));
    if (bytes.size() - at < static_cast<size_t>(name_bytes)) {
      return fail(ErrorKind::kInvalidInput, "%s is cut off.", name.c_str());
    }
    std::string tensor(reinterpret_cast<const char*>(bytes.data()) + at, static_cast<size_t>(name_bytes));
    at += static_cast<size_t>(name_bytes);
    DP_TRY(const int32_t calls, number(INT32_MAX));
    DP_TRY(const int32_t values, number(INT32_MAX));
    if ((bytes.size() - at) / 4 < static_cast<size_t>(values)) {
      return fail(ErrorKind::kInvalidInput, "%s is cut off.", name.c_str());
    }
    std::vector<float> sums(static_cast<size_t>(values));
    for (float& v : sums) {
      v = load_le<float>(bytes.data() + at);
      at += 4;
    }
    const float count = static_cast<float>(std::max(calls, 1));
    DP_CHECK(divide(sums, {&count, 1}, tensor, name));
    out.columns[tensor] = std::move(sums);
  }
  return out;
}

}  // namespace

Result<Importance> parse_importance(std::span<const uint8_t> bytes, const std::string& name) {
  const bool is_gguf = bytes.size() >= 4 && load_le<uint32_t>(bytes.data()) == kGgufMagic;
  DP_TRY(Importance out, is_gguf ? parse_gguf_form(bytes, name) : parse_old_form(bytes, name));
  if (out.columns.empty())
    return fail(ErrorKind::kInvalidInput, "%s holds no importance of any tensor.", name.c_str());
  return out;
}

namespace {

// By the tensor's own name, as GGUF calls it, or that of its first part: fused matrices read the same vector.
const std::vector<float>* find_columns(const Importance& importance, const OutTensor& tensor) {
  std::vector<std::string> names = {tensor.name, gguf_name_of(tensor.name)};
  if (!tensor.parts.empty()) {
    names.push_back(tensor.parts[0].source->name);
    names.push_back(gguf_name_of(tensor.parts[0].source->name));
  }
  for (const std::string& name : names) {
    const auto found = importance.columns.find(name);
    if (found != importance.columns.end()) return &found->second;
  }
  return nullptr;
}

}  // namespace

Result<> attach_importance(const Importance& importance, Conversion& conversion) {
  size_t with = 0, without = 0;
  for (OutTensor& tensor : conversion.tensors) {
    if (!tensor.matrix || !dtype_info(tensor.type).quantised) continue;
    const std::vector<float>* const found = find_columns(importance, tensor);
    if (!found) {
      ++without;
      continue;
    }
    const uint64_t experts = tensor.shape.size() == 3 ? tensor.shape[0] : 1;
    const uint64_t count = found->size();
    if (count != tensor.k() && count != experts * tensor.k()) {
      return fail(ErrorKind::kInvalidInput, "%s gives tensor \"%s\" %llu columns, but it has %llu.",
                  importance.name.c_str(), printable(tensor.name).c_str(),
                  static_cast<unsigned long long>(count), static_cast<unsigned long long>(tensor.k()));
    }
    tensor.importance = *found;
    ++with;
  }
  if (with == 0) {
    return fail(ErrorKind::kInvalidInput, "%s names none of the tensors that are quantised; it names \"%s\".",
                importance.name.c_str(), printable(importance.columns.begin()->first).c_str());
  }
  if (without != 0) {
    conversion.notes.push_back(
        format_text("%zu quantised tensors have no importance in %s.", without, importance.name.c_str()));
  }
  return {};
}

}  // namespace doppler::formats
