// Looking things up in a parsed GGUF header; parsing is in gguf_parser.cpp.
#include "formats/gguf/gguf.h"

#include "formats/byte_reader.h"

namespace doppler::formats {
namespace {

constexpr size_t kTensorCountOffset = 8;  // after magic and version
constexpr size_t kFixedBytes = 24;        // then the counts of tensors and of metadata fields

std::string described(const GgufValue& value) {
  if (!value.is_array()) return std::string("a value of type ") + gguf_type_name(value.type());
  return format_text("an array of %llu %s", static_cast<unsigned long long>(value.count()),
                     gguf_type_name(value.element_type()));
}

Unexpected wrong_type(std::string_view key, const char* wanted, const GgufValue& value) {
  return fail(ErrorKind::kInvalidInput, "GGUF field \"%s\" must be %s, but it is %s.", printable(key).c_str(),
              wanted, described(value).c_str());
}

// One value through `read`, a member of GgufValue.
template <class T, class Read>
Result<std::optional<T>> get_one(const GgufFile& file, std::string_view key, const char* wanted, Read read) {
  const GgufValue* value = file.find(key);
  if (!value) return std::optional<T>();
  const auto found = value->is_array() ? std::nullopt : (value->*read)(0);
  if (!found) return wrong_type(key, wanted, *value);
  return std::optional<T>(T(*found));
}

template <class T, class Read>
Result<std::optional<std::vector<T>>> get_many(const GgufFile& file, std::string_view key, const char* wanted,
                                               Read read) {
  const GgufValue* value = file.find(key);
  if (!value) return std::optional<std::vector<T>>();
  if (!value->is_array()) return wrong_type(key, wanted, *value);
  std::vector<T> all;
  all.reserve(static_cast<size_t>(value->count()));
  for (uint64_t i = 0; i < value->count(); ++i) {
    const auto found = (value->*read)(i);
    if (!found) return wrong_type(key, wanted, *value);
    all.push_back(*found);
  }
  return std::optional<std::vector<T>>(std::move(all));
}

}  // namespace

std::span<const uint8_t> GgufFile::metadata_bytes() const {
  return std::span(header_).subspan(kFixedBytes, static_cast<size_t>(metadata_end_) - kFixedBytes);
}

std::vector<uint8_t> GgufFile::without_tensors() const {
  std::vector<uint8_t> bytes(header_.begin(), header_.begin() + static_cast<ptrdiff_t>(metadata_end_));
  store_le<uint64_t>(bytes.data() + kTensorCountOffset, 0);
  return bytes;
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto it = index_.find(key);
  return it == index_.end() ? nullptr : &metadata_[it->second].value;
}

Result<std::optional<std::string>> GgufFile::get_string(std::string_view key) const {
  return get_one<std::string>(*this, key, "a string", &GgufValue::string);
}
Result<std::optional<int64_t>> GgufFile::get_integer(std::string_view key) const {
  return get_one<int64_t>(*this, key, "a whole number", &GgufValue::integer);
}
Result<std::optional<double>> GgufFile::get_number(std::string_view key) const {
  return get_one<double>(*this, key, "a number", &GgufValue::number);
}
Result<std::optional<bool>> GgufFile::get_bool(std::string_view key) const {
  return get_one<bool>(*this, key, "true or false", &GgufValue::boolean);
}
Result<std::optional<std::vector<std::string_view>>> GgufFile::get_strings(std::string_view key) const {
  return get_many<std::string_view>(*this, key, "an array of strings", &GgufValue::string);
}
Result<std::optional<std::vector<double>>> GgufFile::get_numbers(std::string_view key) const {
  return get_many<double>(*this, key, "an array of numbers", &GgufValue::number);
}
Result<std::optional<std::vector<int64_t>>> GgufFile::get_integers(std::string_view key) const {
  return get_many<int64_t>(*this, key, "an array of whole numbers", &GgufValue::integer);
}
Result<std::optional<std::vector<bool>>> GgufFile::get_bools(std::string_view key) const {
  return get_many<bool>(*this, key, "an array of truths", &GgufValue::boolean);
}

}  // namespace doppler::formats
