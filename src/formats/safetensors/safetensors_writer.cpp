// Header first, padded with spaces to 8 bytes as the format asks, then the data without gaps.
#include "formats/safetensors/safetensors_writer.h"

#include <cstring>

#include "base/json.h"

namespace doppler::formats {
namespace {

const char* type_name(DType type) {
  switch (type) {
    case DType::kF32:
      return "F32";
    case DType::kF16:
      return "F16";
    case DType::kBF16:
      return "BF16";
    case DType::kF64:
      return "F64";
    case DType::kI64:
      return "I64";
    case DType::kI32:
      return "I32";
    case DType::kI16:
      return "I16";
    case DType::kI8:
      return "I8";
    case DType::kU8:
      return "U8";
    case DType::kBool:
      return "BOOL";
    case DType::kF8E4M3:
      return "F8_E4M3";
    default:
      return nullptr;
  }
}

}  // namespace

Result<> write_safetensors(std::span<const SafetensorsItem> items,
                           std::span<const std::pair<std::string, std::string>> metadata, ByteSink& sink) {
  Json header = Json::object();
  for (const auto& [key, value] : metadata) header["__metadata__"][key] = value;
  uint64_t offset = 0;
  for (const SafetensorsItem& item : items) {
    const char* type = type_name(item.type);
    uint64_t bytes = dtype_info(item.type).block_bytes;
    for (const uint64_t dim : item.shape) bytes *= dim;
    if (!type || bytes != item.bytes.size() || header.contains(item.name)) {
      return fail(ErrorKind::kInternal,
                  "Tensor \"%s\" cannot be written: a block type, a wrong size or a second one.",
                  item.name.c_str());
    }
    header[item.name] = {{"dtype", type}, {"shape", item.shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = to_text(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  uint8_t prefix[8];
  std::memcpy(prefix, &length, sizeof prefix);
  DP_CHECK(sink.write(prefix));
  DP_CHECK(sink.write({reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
  for (const SafetensorsItem& item : items) DP_CHECK(sink.write(item.bytes));
  return {};
}

}  // namespace doppler::formats
