#include "formats/adapters/read_peft.h"

#include <optional>
#include <string_view>

#include "base/text.h"
#include "formats/adapters/adapter_parts.h"
#include "formats/adapters/peft_config.h"
#include "formats/file_headers.h"

namespace doppler::formats {
namespace {

constexpr uint64_t kMaxPeftConfigBytes = 1 << 20;
constexpr std::string_view kPrefix = "base_model.model.";

struct Ending {
  std::string_view text;
  AdapterParts::Part part;
  bool is_embedding = false;
};
constexpr Ending kEndings[] = {
    {".lora_A.weight", AdapterParts::Part::kA},
    {".lora_B.weight", AdapterParts::Part::kB},
    {".lora_B.bias", AdapterParts::Part::kBias},
    {".lora_magnitude_vector", AdapterParts::Part::kMagnitude},
    {".lora_magnitude_vector.weight", AdapterParts::Part::kMagnitude},
    {".lora_embedding_A", AdapterParts::Part::kA, true},
    {".lora_embedding_B", AdapterParts::Part::kB, true},
};

// PEFT puts these between a module's name and the tensor that replaces the module's own.
constexpr std::string_view kWrappers[] = {".base_layer", ".modules_to_save"};

// The base model's tensor that this one replaces. No value: it belongs to no module.
std::optional<std::string> replaced_name(std::string_view name) {
  for (const std::string_view suffix : {".weight", ".bias"}) {
    if (!name.ends_with(suffix)) continue;
    std::string_view module = name.substr(0, name.size() - suffix.size());
    for (const std::string_view wrapper : kWrappers) {
      if (module.ends_with(wrapper)) module.remove_suffix(wrapper.size());
    }
    if (module.find("lora_") != std::string_view::npos) return std::nullopt;
    return std::string(module) + std::string(suffix);
  }
  return std::nullopt;
}

Result<void> add_tensor(const SafetensorsTensor& tensor, std::vector<float> values, AdapterParts& parts,
                        Adapter& out) {
  std::string_view name = tensor.name;
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  for (const Ending& ending : kEndings) {
    if (!name.ends_with(ending.text)) continue;
    parts.add(std::string(name.substr(0, name.size() - ending.text.size())), ending.part, ending.is_embedding,
              {.name = tensor.name, .shape = tensor.shape, .values = std::move(values)});
    return {};
  }
  std::optional<std::string> replaced = replaced_name(name);
  if (!replaced) {
    return fail(ErrorKind::kUnsupported, "The adapter's tensor \"%s\" is of a kind that is not supported.",
                printable(tensor.name).c_str());
  }
  out.replaced.push_back(
      {.tensor = std::move(*replaced), .shape = tensor.shape, .values = std::move(values)});
  return {};
}

Result<void> apply_config(const PeftConfig& config, Adapter& out) {
  for (AdaptedTensor& tensor : out.tensors) {
    const uint32_t rank = config.rank_of(tensor.tensor);
    if (rank != tensor.rank) {
      return fail(ErrorKind::kInvalidInput, "The adapter's matrix A of \"%s\" has %u rows; %s says rank %u.",
                  printable(tensor.tensor).c_str(), tensor.rank, kPeftConfigName, rank);
    }
    tensor.scale = config.scale_of(tensor.tensor, rank);
    if (config.uses_dora && tensor.magnitude.empty() && !tensor.is_embedding) {
      return fail(ErrorKind::kInvalidInput, "%s says use_dora, but \"%s\" has no lora_magnitude_vector.",
                  kPeftConfigName, printable(tensor.tensor).c_str());
    }
  }
  out.invocation_tokens = config.invocation_tokens;
  out.base = config.base;
  return {};
}

}  // namespace

Task<Result<Adapter>> read_peft(FileSet& files) {
  auto opening_config = files.open(kPeftConfigName);
  DP_CO_TRY(const std::unique_ptr<ByteSource> config_file, co_await std::move(opening_config));
  auto opening = files.open(kPeftModelName);
  DP_CO_TRY(const std::unique_ptr<ByteSource> source, co_await std::move(opening));
  if (!config_file || !source) {
    co_return fail(ErrorKind::kInvalidInput, "%s is no adapter: it has no %s.", files.root().c_str(),
                   config_file ? kPeftModelName : kPeftConfigName);
  }
  if (config_file->size() > kMaxPeftConfigBytes) {
    co_return fail(ErrorKind::kInvalidInput, "%s has more than a MiB.", config_file->name().c_str());
  }
  auto reading_config = config_file->read(0, config_file->size());
  DP_CO_TRY(const std::vector<uint8_t> text, co_await std::move(reading_config));
  DP_CO_TRY(const PeftConfig config,
            parse_peft_config({reinterpret_cast<const char*>(text.data()), text.size()}));
  auto reading = read_safetensors(*source);
  DP_CO_TRY(const SafetensorsFile file, co_await std::move(reading));
  Adapter out{.name = files.root()};
  AdapterParts parts;
  for (const SafetensorsTensor& tensor : file.tensors) {
    auto reading_tensor = source->read(tensor.offset, tensor.bytes);
    DP_CO_TRY(const std::vector<uint8_t> bytes, co_await std::move(reading_tensor));
    DP_CO_TRY(std::vector<float> values, adapter_numbers(tensor.name, tensor.type, bytes));
    DP_CO_CHECK(add_tensor(tensor, std::move(values), parts, out));
  }
  DP_CO_TRY(out.tensors, parts.take());
  DP_CO_CHECK(apply_config(config, out));
  if (out.tensors.empty() && out.replaced.empty()) {
    co_return fail(ErrorKind::kInvalidInput, "%s holds no tensors of an adapter.", source->name().c_str());
  }
  co_return out;
}

}  // namespace doppler::formats
