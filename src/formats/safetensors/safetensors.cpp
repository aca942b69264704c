// Parses a safetensors header as a stream of JSON events: no document tree is built, so 50,000 tensors take
// milliseconds and a hostile header cannot take more memory than a few times its size. Then checks the
// places.
#include "formats/safetensors/safetensors.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "base/json_events.h"
#include "base/text.h"
#include "base/unread_dtypes.h"
#include "formats/byte_reader.h"

namespace doppler::formats {
namespace {

using Ull = unsigned long long;

struct NamedType {
  const char* name;
  DType type;
};
constexpr NamedType kSafetensorsTypes[] = {{"F32", DType::kF32},
                                           {"F16", DType::kF16},
                                           {"BF16", DType::kBF16},
                                           {"F64", DType::kF64},
                                           {"I64", DType::kI64},
                                           {"I32", DType::kI32},
                                           {"I16", DType::kI16},
                                           {"I8", DType::kI8},
                                           {"U8", DType::kU8},
                                           {"BOOL", DType::kBool},
                                           {"F8_E4M3", DType::kF8E4M3},
                                           // A model may hold such tensors if no code asks for one.
                                           {"U16", unread::kU16},
                                           {"U32", unread::kU32},
                                           {"U64", unread::kU64},
                                           {"C64", unread::kC64},
                                           {"F8_E5M2", unread::kF8E5M2},
                                           {"F8_E8M0", unread::kF8E8M0},
                                           {"F6_E2M3", unread::kF6E2M3},
                                           {"F6_E3M2", unread::kF6E3M2},
                                           {"F4", unread::kF4}};

// Events of the JSON parser. Depth 1: tensor names; depth 2: fields of a tensor, or "__metadata__".
class HeaderEvents final : public JsonEvents {
 public:
  HeaderEvents(SafetensorsFile& file, uint64_t data_start, const std::string& name)
      : file_(file), data_start_(data_start), name_(name) {}

  std::string error;  // empty unless an event was refused

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("true or false"); }
  bool integer(int64_t) override { return unexpected("a negative number"); }
  bool real(double) override { return unexpected("a fraction"); }

  bool natural(uint64_t value) override {
    if (array_ == Array::kShape) {
      if (tensor_.shape.size() == kSafetensorsMaxDims) return refuse("more than 8 dimensions");
      tensor_.shape.push_back(value);
      return true;
    }
    if (array_ == Array::kOffsets) {
      if (n_offsets_ == 2) return refuse("more than two data_offsets");
      offsets_[n_offsets_++] = value;
      return true;
    }
    return unexpected("a number");
  }

  bool string(std::string& text) override {
    if (depth_ != 2 || array_ != Array::kNone) return unexpected("a string");
    if (in_metadata_) {
      file_.metadata.emplace_back(field_, text);
      return true;
    }
    if (field_ != "dtype") return unexpected("a string");
    const auto* found =
        std::ranges::find_if(kSafetensorsTypes, [&](const NamedType& row) { return text == row.name; });
    if (found == std::end(kSafetensorsTypes)) {
      error = format_text("%s: tensor \"%s\" has the type \"%s\", which this build cannot read.",
                          name_.c_str(), printable(tensor_.name).c_str(), printable(text).c_str());
      return false;
    }
    tensor_.type = found->type;
    has_type_ = true;
    return true;
  }

  bool start_object() override {
    if (depth_ >= 2 || array_ != Array::kNone) return unexpected("an object");
    ++depth_;
    return true;
  }

  bool key(std::string& text) override {
    if (depth_ == 2) {
      if (!in_metadata_ && text != "dtype" && text != "shape" && text != "data_offsets") {
        return refuse("an unknown field \"" + printable(text) + "\"");
      }
      if (!in_metadata_ && !fields_.insert(text).second)
        return refuse("the field \"" + printable(text) + "\" twice");
      field_ = text;
      return true;
    }
    if (!names_.insert(text).second) {
      error = format_text("%s: tensor \"%s\" occurs twice.", name_.c_str(), printable(text).c_str());
      return false;
    }
    in_metadata_ = text == "__metadata__";
    tensor_ = {};
    tensor_.name = text;
    has_type_ = false;
    n_offsets_ = 0;
    fields_.clear();
    return true;
  }

  bool end_object() override {
    --depth_;
    if (depth_ != 1) return true;
    if (in_metadata_) {
      in_metadata_ = false;
      return true;
    }
    return finish_tensor();
  }

  bool start_array() override {
    if (depth_ != 2 || in_metadata_ || array_ != Array::kNone || field_ == "dtype")
      return unexpected("an array");
    array_ = field_ == "shape" ? Array::kShape : Array::kOffsets;
    return true;
  }

  bool end_array() override {
    array_ = Array::kNone;
    return true;
  }

  bool parse_error(size_t position) override {
    error = format_text("The header of %s is not valid JSON near byte %llu.", name_.c_str(),
                        static_cast<Ull>(position + 8));
    return false;
  }

 private:
  enum class Array { kNone, kShape, kOffsets };

  bool refuse(const std::string& what) {
    error = format_text("%s: tensor \"%s\" has %s.", name_.c_str(), printable(tensor_.name).c_str(),
                        what.c_str());
    return false;
  }
  bool unexpected(const char* what) {
    if (names_.empty()) {
      error = format_text("The header of %s is %s instead of a JSON object.", name_.c_str(), what);
    } else {
      error = format_text("The header of %s has %s where it is not allowed, in \"%s\".", name_.c_str(), what,
                          printable(tensor_.name).c_str());
    }
    return false;
  }

  bool finish_tensor() {
    if (!has_type_ || n_offsets_ != 2 || !fields_.contains("shape")) {
      return refuse("not all of dtype, shape and two data_offsets");
    }
    if (offsets_[1] < offsets_[0]) return refuse("data_offsets that run backwards");
    const DTypeInfo& type = dtype_info(tensor_.type);
    uint64_t count = 1, bytes = 0;
    for (const uint64_t dim : tensor_.shape) {
      if (__builtin_mul_overflow(count, dim, &count)) return refuse("a size that overflows 64 bits");
    }
    if (count % type.block_size != 0) return refuse("a count of numbers that fills no whole bytes");
    if (__builtin_mul_overflow(count / type.block_size, uint64_t{type.block_bytes}, &bytes))
      return refuse("a size that overflows 64 bits");
    tensor_.bytes = offsets_[1] - offsets_[0];
    if (bytes != tensor_.bytes) {
      return refuse(format_text("%llu bytes of data, but its type and shape need %llu",
                                static_cast<Ull>(tensor_.bytes), static_cast<Ull>(bytes)));
    }
    if (__builtin_add_overflow(offsets_[0], data_start_, &tensor_.offset) ||
        tensor_.offset > std::numeric_limits<uint64_t>::max() - bytes) {
      return refuse("an offset that overflows 64 bits");
    }
    file_.tensors.push_back(std::move(tensor_));
    return true;
  }

  SafetensorsFile& file_;
  uint64_t data_start_;
  const std::string& name_;
  std::unordered_set<std::string> names_, fields_;
  int depth_ = 0;
  bool in_metadata_ = false;
  Array array_ = Array::kNone;
  std::string field_;
  SafetensorsTensor tensor_;
  bool has_type_ = false;
  uint64_t offsets_[2] = {};
  int n_offsets_ = 0;
};

Result<> check_places(const SafetensorsFile& file, uint64_t file_size, const std::string& name) {
  std::vector<const SafetensorsTensor*> order;
  for (const SafetensorsTensor& tensor : file.tensors) {
    if (tensor.offset + tensor.bytes > file_size) {
      return fail(ErrorKind::kInvalidInput,
                  "%s is cut: tensor \"%s\" takes bytes %llu to %llu, but the file has %llu bytes.",
                  name.c_str(), printable(tensor.name).c_str(), static_cast<Ull>(tensor.offset),
                  static_cast<Ull>(tensor.offset + tensor.bytes), static_cast<Ull>(file_size));
    }
    if (tensor.bytes != 0) order.push_back(&tensor);
  }
  std::ranges::sort(order, {}, &SafetensorsTensor::offset);
  for (size_t i = 1; i < order.size(); ++i) {
    if (order[i - 1]->offset + order[i - 1]->bytes > order[i]->offset) {
      return fail(ErrorKind::kInvalidInput, "%s: tensors \"%s\" and \"%s\" overlap.", name.c_str(),
                  printable(order[i - 1]->name).c_str(), printable(order[i]->name).c_str());
    }
  }
  return {};
}

}  // namespace

Result<uint64_t> safetensors_header_bytes(std::span<const uint8_t> first8, uint64_t file_size,
                                          std::string_view name) {
  const std::string shown = printable(name, 300);
  if (first8.size() < 8 || file_size < 8) {
    return fail(ErrorKind::kInvalidInput, "%s is too short for a safetensors file (%llu bytes).",
                shown.c_str(), static_cast<Ull>(file_size));
  }
  const auto length = load_le<uint64_t>(first8.data());
  if (length < 2 || length > kSafetensorsMaxHeaderBytes) {
    return fail(ErrorKind::kInvalidInput,
                "%s is not a safetensors file: its header would have %llu bytes (2 to %llu are allowed).",
                shown.c_str(), static_cast<Ull>(length), static_cast<Ull>(kSafetensorsMaxHeaderBytes));
  }
  if (length > file_size - 8) {
    return fail(ErrorKind::kInvalidInput, "%s is cut: its header needs %llu bytes, but the file has %llu.",
                shown.c_str(), static_cast<Ull>(length + 8), static_cast<Ull>(file_size));
  }
  return length + 8;
}

Result<SafetensorsFile> parse_safetensors(std::span<const uint8_t> prefix, uint64_t file_size,
                                          std::string_view name) {
  DP_TRY(const uint64_t header_bytes, safetensors_header_bytes(prefix, file_size, name));
  const std::string shown = printable(name, 300);
  if (prefix.size() < header_bytes) {
    return fail(ErrorKind::kInternal, "The header of %s needs %llu bytes, but %llu were read.", shown.c_str(),
                static_cast<Ull>(header_bytes), static_cast<Ull>(prefix.size()));
  }
  SafetensorsFile file;
  HeaderEvents events(file, header_bytes, shown);
  const std::string_view text(reinterpret_cast<const char*>(prefix.data()) + 8,
                              static_cast<size_t>(header_bytes - 8));
  if (!parse_json_events(text, events)) {
    return fail(ErrorKind::kInvalidInput, "%s", events.error.c_str());
  }
  DP_CHECK(check_places(file, file_size, shown));
  return file;
}

}  // namespace doppler::formats
