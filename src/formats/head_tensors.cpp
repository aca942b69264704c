#include "formats/head_tensors.h"

#include <algorithm>
#include <numeric>

#include "base/json.h"
#include "base/text.h"
#include "formats/expert_tensors.h"

namespace doppler::formats {
namespace {

using Sources = std::vector<std::unique_ptr<ByteSource>>;

// A number of rows; 0: absent, or more than any model has.
Result<uint64_t> get_rows(const Json& json, const char* key) {
  constexpr int64_t kMost = 1 << 16;
  DP_TRY(const auto value, get_integer(json, key));
  const int64_t rows = value.value_or(0);
  return rows > 0 && rows <= kMost ? static_cast<uint64_t>(rows) : 0;
}

// Adds what a source makes, in the type of what it was.
void put(Sources& sources, std::vector<TensorInfo>& out, const TensorInfo& was, std::string name,
         std::vector<uint64_t> shape, std::unique_ptr<ByteSource> source) {
  out.push_back({.name = std::move(name),
                 .type = was.type,
                 .shape = std::move(shape),
                 .file = static_cast<uint32_t>(sources.size()),
                 .offset = 0,
                 .bytes = source->size()});
  sources.push_back(std::move(source));
}

Result<void> check_rows(const TensorInfo& tensor, uint64_t rows) {
  if (rows != 0 && tensor.shape.size() == 2 && std::ranges::count(tensor.shape, 0) == 0 &&
      tensor.shape[0] % rows == 0 && dtype_info(tensor.type).block_size == 1) {
    return {};
  }
  return fail(ErrorKind::kUnsupported,
              "Tensor \"%s\" is not a matrix of plain numbers whose rows are heads of %llu.",
              printable(tensor.name).c_str(), static_cast<unsigned long long>(rows));
}

Result<void> split_latent(Sources& sources, std::vector<TensorInfo>& out, const TensorInfo& tensor,
                          const std::string& prefix, const Json& json) {
  DP_TRY(const uint64_t key_dim, get_rows(json, "qk_nope_head_dim"));
  DP_TRY(const uint64_t value_dim, get_rows(json, "v_head_dim"));
  const uint64_t rows = key_dim == 0 || value_dim == 0 ? 0 : key_dim + value_dim;
  DP_CHECK(check_rows(tensor, rows));
  const uint64_t heads = tensor.shape[0] / rows, rank = tensor.shape[1];
  const uint64_t number_bytes = dtype_info(tensor.type).block_bytes, row_bytes = rank * number_bytes;
  std::vector<ByteRun> keys, values;
  for (uint64_t head = 0; head < heads; ++head) {
    const uint64_t at = tensor.offset + head * rows * row_bytes;
    keys.push_back({sources[tensor.file].get(), at});
    values.push_back({sources[tensor.file].get(), at + key_dim * row_bytes});
  }
  sources.push_back(gathered(std::move(keys), key_dim * row_bytes));
  put(sources, out, tensor, prefix + "k_b_proj.weight", {heads, rank, key_dim},
      transposed(*sources.back(), heads, rank, key_dim, number_bytes));
  put(sources, out, tensor, prefix + "v_b_proj.weight", {heads, value_dim, rank},
      gathered(std::move(values), value_dim * row_bytes));
  return {};
}

Result<void> split_delta(Sources& sources, std::vector<TensorInfo>& out, const TensorInfo& tensor,
                         const std::string& prefix, const Json& json) {
  DP_TRY(const uint64_t key_heads, get_rows(json, "linear_num_key_heads"));
  DP_TRY(const uint64_t value_heads, get_rows(json, "linear_num_value_heads"));
  DP_TRY(const uint64_t key_dim, get_rows(json, "linear_key_head_dim"));
  DP_TRY(const uint64_t value_dim, get_rows(json, "linear_value_head_dim"));
  const uint64_t values = key_heads == 0 ? 0 : value_heads / key_heads * value_dim;  // of a key head
  const uint64_t rows = key_dim == 0 || values == 0 ? 0 : 2 * (key_dim + values);
  DP_CHECK(check_rows(tensor, rows));
  const uint64_t heads = tensor.shape[0] / rows, k = tensor.shape[1],
                 row_bytes = tensor.bytes / tensor.shape[0];
  const uint64_t run = std::gcd(key_dim, values);  // rows
  std::vector<ByteRun> qkv, z;
  const auto add = [&](std::vector<ByteRun>& runs, uint64_t first, uint64_t count) {
    for (uint64_t head = 0; head < heads; ++head) {
      for (uint64_t row = 0; row < count; row += run) {
        const uint64_t at = head * rows + first + row;
        runs.push_back({sources[tensor.file].get(), tensor.offset + at * row_bytes});
      }
    }
  };
  add(qkv, 0, key_dim);
  add(qkv, key_dim, key_dim);
  add(qkv, 2 * key_dim, values);
  add(z, 2 * key_dim + values, values);
  put(sources, out, tensor, prefix + "in_proj_qkv.weight", {heads * (2 * key_dim + values), k},
      gathered(std::move(qkv), run * row_bytes));
  put(sources, out, tensor, prefix + "in_proj_z.weight", {heads * values, k},
      gathered(std::move(z), run * row_bytes));
  return {};
}

}  // namespace

Result<void> split_heads(Sources& sources, std::vector<TensorInfo>& tensors, const Json& config) {
  const Json* text = find(config, "text_config");
  const Json& json = text && text->is_object() ? *text : config;
  constexpr std::string_view kLatent = "kv_b_proj.weight", kDelta = "in_proj_qkvz.weight";
  std::vector<TensorInfo> out;
  for (TensorInfo& tensor : tensors) {
    if (tensor.name.ends_with(kLatent)) {
      const std::string prefix = tensor.name.substr(0, tensor.name.size() - kLatent.size());
      DP_CHECK(split_latent(sources, out, tensor, prefix, json));
    } else if (tensor.name.ends_with(kDelta)) {
      const std::string prefix = tensor.name.substr(0, tensor.name.size() - kDelta.size());
      DP_CHECK(split_delta(sources, out, tensor, prefix, json));
    } else {
      out.push_back(std::move(tensor));
    }
  }
  tensors = std::move(out);
  return {};
}

}  // namespace doppler::formats
