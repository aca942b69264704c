// Typed reads of packed GGUF metadata (gguf_value.h).
#include "formats/gguf/gguf_value.h"

#include "formats/byte_reader.h"

namespace doppler::formats {
namespace {

struct TypeRow {
  const char* name;
  uint32_t bytes;
};
constexpr TypeRow kTypes[kGgufTypeCount] = {{"u8", 1},  {"i8", 1},  {"u16", 2},  {"i16", 2},    {"u32", 4},
                                            {"i32", 4}, {"f32", 4}, {"bool", 1}, {"string", 0}, {"array", 0},
                                            {"u64", 8}, {"i64", 8}, {"f64", 8}};

}  // namespace

const char* gguf_type_name(GgufType type) { return kTypes[static_cast<uint32_t>(type)].name; }
uint32_t gguf_type_bytes(GgufType type) { return kTypes[static_cast<uint32_t>(type)].bytes; }

std::optional<int64_t> GgufValue::integer(uint64_t i) const {
  if (i >= count()) return std::nullopt;
  const uint8_t* at = data_ + i * gguf_type_bytes(element_);
  switch (element_) {
    case GgufType::kU8:
      return *at;
    case GgufType::kI8:
      return load_le<int8_t>(at);
    case GgufType::kU16:
      return load_le<uint16_t>(at);
    case GgufType::kI16:
      return load_le<int16_t>(at);
    case GgufType::kU32:
      return load_le<uint32_t>(at);
    case GgufType::kI32:
      return load_le<int32_t>(at);
    case GgufType::kI64:
      return load_le<int64_t>(at);
    case GgufType::kU64: {
      const auto value = load_le<uint64_t>(at);
      if (value > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
      return static_cast<int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> GgufValue::number(uint64_t i) const {
  if (i >= count()) return std::nullopt;
  const uint8_t* at = data_ + i * gguf_type_bytes(element_);
  if (element_ == GgufType::kF32) return load_le<float>(at);
  if (element_ == GgufType::kF64) return load_le<double>(at);
  if (element_ == GgufType::kU64) return static_cast<double>(load_le<uint64_t>(at));
  const auto value = integer(i);
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}

std::optional<bool> GgufValue::boolean(uint64_t i) const {
  if (i >= count() || element_ != GgufType::kBool) return std::nullopt;
  return data_[i] != 0;
}

std::optional<std::string_view> GgufValue::string(uint64_t i) const {
  if (i >= count() || element_ != GgufType::kString) return std::nullopt;
  if (!is_array()) return std::string_view(reinterpret_cast<const char*>(data_), static_cast<size_t>(count_));
  const uint8_t* at = data_ + offsets_[static_cast<size_t>(i)];
  return std::string_view(reinterpret_cast<const char*>(at + 8), static_cast<size_t>(load_le<uint64_t>(at)));
}

}  // namespace doppler::formats
