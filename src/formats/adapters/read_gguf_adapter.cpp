#include "formats/adapters/read_gguf_adapter.h"

#include <string_view>

#include "base/text.h"
#include "formats/adapters/adapter_parts.h"
#include "formats/file_headers.h"

namespace doppler::formats {
namespace {

constexpr std::string_view kA = ".weight.lora_a", kB = ".weight.lora_b";

Result<double> check_kind(const GgufFile& file, const std::string& name) {
  DP_TRY(const auto type, file.get_string("general.type"));
  DP_TRY(const auto kind, file.get_string("adapter.type"));
  if (type.value_or("model") != "adapter") {
    return fail(ErrorKind::kInvalidInput, "%s is no adapter: its general.type is \"%s\".", name.c_str(),
                printable(type.value_or("model")).c_str());
  }
  if (kind.value_or("") != "lora") {
    return fail(ErrorKind::kUnsupported, "%s is an adapter of the type \"%s\"; only lora is supported.",
                name.c_str(), printable(kind.value_or("")).c_str());
  }
  DP_TRY(const auto alpha, file.get_number("adapter.lora.alpha"));
  if (alpha) return *alpha;
  return fail(ErrorKind::kInvalidInput, "%s has no adapter.lora.alpha.", name.c_str());
}

Result<std::vector<uint32_t>> invocation_tokens(const GgufFile& file) {
  DP_TRY(const auto tokens, file.get_integers("adapter.alora.invocation_tokens"));
  std::vector<uint32_t> out;
  if (tokens) {
    for (const int64_t token : *tokens) out.push_back(static_cast<uint32_t>(token));
  }
  return out;
}

// GGUF has the A of an embedding transposed: a row of `rank` numbers for each token.
AdapterParts::Tensor transposed(AdapterParts::Tensor tensor) {
  if (tensor.shape.size() != 2) return tensor;
  const uint64_t rows = tensor.shape[0], columns = tensor.shape[1];
  std::vector<float> values(tensor.values.size());
  for (uint64_t r = 0; r < rows; ++r) {
    for (uint64_t c = 0; c < columns; ++c) values[c * rows + r] = tensor.values[r * columns + c];
  }
  return {.name = std::move(tensor.name), .shape = {columns, rows}, .values = std::move(values)};
}

}  // namespace

Task<Result<Adapter>> read_gguf_adapter(ByteSource& source) {
  auto reading = read_gguf(source);
  DP_CO_TRY(const GgufFile file, co_await std::move(reading));
  DP_CO_TRY(const double alpha, check_kind(file, source.name()));
  Adapter out{.name = source.name(), .gguf_names = true};
  DP_CO_TRY(out.invocation_tokens, invocation_tokens(file));
  DP_CO_TRY(const auto base, file.get_string("general.base_model.0.name"));
  out.base = base.value_or("");
  AdapterParts parts;
  for (const GgufTensor& tensor : file.tensors()) {
    const bool is_a = tensor.name.ends_with(kA);
    if (!is_a && !tensor.name.ends_with(kB)) {
      co_return fail(ErrorKind::kUnsupported,
                     "The adapter's tensor \"%s\" is of a kind that is not supported.",
                     printable(tensor.name).c_str());
    }
    auto reading_tensor = source.read(tensor.offset, tensor.bytes);
    DP_CO_TRY(const std::vector<uint8_t> bytes, co_await std::move(reading_tensor));
    AdapterParts::Tensor part{.name = tensor.name, .shape = tensor.shape, .values = {}};
    DP_CO_TRY(part.values, adapter_numbers(tensor.name, tensor.type, bytes));
    const std::string module = tensor.name.substr(0, tensor.name.size() - kA.size());
    const bool is_embedding = module == "token_embd";
    if (is_embedding && is_a) part = transposed(std::move(part));
    parts.add(module, is_a ? AdapterParts::Part::kA : AdapterParts::Part::kB, is_embedding, std::move(part));
  }
  DP_CO_TRY(out.tensors, parts.take());
  for (AdaptedTensor& tensor : out.tensors) tensor.scale = static_cast<float>(alpha / tensor.rank);
  if (out.tensors.empty()) {
    co_return fail(ErrorKind::kInvalidInput, "%s holds no tensors of an adapter.", source.name().c_str());
  }
  co_return out;
}

}  // namespace doppler::formats
