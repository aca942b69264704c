// Lays out GGUF v3 (gguf_writer.h).
#include "formats/gguf/gguf_writer.h"

#include <algorithm>
#include <cstring>

#include "formats/source.h"

namespace doppler::formats {
namespace {

template <class T>
void append(std::vector<uint8_t>& out, T value) {
  const size_t at = out.size();
  out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}

void append_text(std::vector<uint8_t>& out, std::string_view text) {
  append<uint64_t>(out, text.size());
  out.insert(out.end(), text.begin(), text.end());
}

}  // namespace

void GgufHeader::begin_field(std::string_view key, GgufType type) {
  append_text(metadata_, key);
  append(metadata_, static_cast<uint32_t>(type));
  ++n_metadata_;
}

void GgufHeader::begin_array(std::string_view key, GgufType element, uint64_t count) {
  begin_field(key, GgufType::kArray);
  append(metadata_, static_cast<uint32_t>(element));
  append(metadata_, count);
}

void GgufHeader::add_u32(std::string_view key, uint32_t value) {
  begin_field(key, GgufType::kU32);
  append(metadata_, value);
}
void GgufHeader::add_f32(std::string_view key, float value) {
  begin_field(key, GgufType::kF32);
  append(metadata_, value);
}
void GgufHeader::add_bool(std::string_view key, bool value) {
  begin_field(key, GgufType::kBool);
  append<uint8_t>(metadata_, value ? 1 : 0);
}
void GgufHeader::add_string(std::string_view key, std::string_view value) {
  begin_field(key, GgufType::kString);
  append_text(metadata_, value);
}
void GgufHeader::add_strings(std::string_view key, std::span<const std::string> values) {
  begin_array(key, GgufType::kString, values.size());
  for (const std::string& value : values) append_text(metadata_, value);
}
void GgufHeader::add_i32s(std::string_view key, std::span<const int32_t> values) {
  begin_array(key, GgufType::kI32, values.size());
  for (const int32_t value : values) append(metadata_, value);
}
void GgufHeader::add_f32s(std::string_view key, std::span<const float> values) {
  begin_array(key, GgufType::kF32, values.size());
  for (const float value : values) append(metadata_, value);
}

void GgufHeader::add_bytes(std::string_view key, std::string_view bytes) {
  begin_array(key, GgufType::kU8, bytes.size());
  metadata_.insert(metadata_.end(), bytes.begin(), bytes.end());
}

void GgufHeader::add_bools(std::string_view key, std::span<const uint8_t> values) {
  begin_array(key, GgufType::kBool, values.size());
  for (const uint8_t value : values) append(metadata_, value);
}

void GgufHeader::copy_metadata(const GgufFile& file, std::span<const std::string_view> without) {
  version_ = file.version();
  alignment_ = file.alignment();
  const std::span<const uint8_t> all = file.metadata_bytes();
  const auto entries = file.metadata();
  constexpr ptrdiff_t kLengthBytes = 8;  // before each key
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto* begin = reinterpret_cast<const uint8_t*>(entries[i].key.data()) - kLengthBytes;
    const auto* end = i + 1 < entries.size()
                          ? reinterpret_cast<const uint8_t*>(entries[i + 1].key.data()) - kLengthBytes
                          : all.data() + all.size();
    if (std::ranges::find(without, entries[i].key) != without.end()) continue;
    metadata_.insert(metadata_.end(), begin, end);
    ++n_metadata_;
  }
}

void GgufHeader::add_tensor(std::string name, DType type, std::vector<uint64_t> shape) {
  const DTypeInfo& info = dtype_info(type);
  uint64_t bytes = shape.back() / info.block_size * info.block_bytes;
  for (size_t d = 0; d + 1 < shape.size(); ++d) bytes *= shape[d];
  tensors_.push_back({std::move(name), type, std::move(shape), 0, bytes});
}

std::vector<uint8_t> GgufHeader::build() {
  std::vector<uint8_t> out;
  append(out, kGgufMagic);
  append(out, version_);
  append<uint64_t>(out, tensors_.size());
  append(out, n_metadata_);
  out.insert(out.end(), metadata_.begin(), metadata_.end());
  uint64_t offset = 0;
  for (GgufTensor& tensor : tensors_) {
    append_text(out, tensor.name);
    append(out, static_cast<uint32_t>(tensor.shape.size()));
    for (size_t d = tensor.shape.size(); d-- > 0;) append(out, tensor.shape[d]);
    append(out, static_cast<uint32_t>(tensor.type));
    append(out, offset);
    tensor.offset = offset;
    offset = aligned(offset + tensor.bytes);
  }
  out.resize(host_size(aligned(out.size())));
  for (GgufTensor& tensor : tensors_) tensor.offset += out.size();
  return out;
}

uint64_t GgufHeader::file_bytes() const {
  return tensors_.empty() ? 0 : aligned(tensors_.back().offset + tensors_.back().bytes);
}

Result<> GgufWriter::begin() { return sink_.write(header_.build()); }

Result<> GgufWriter::write(std::span<const uint8_t> bytes) {
  if (bytes.empty()) return {};
  if (current_ == header_.tensors().size()) {
    return fail(ErrorKind::kInternal, "%zu bytes were written after the last tensor.", bytes.size());
  }
  const GgufTensor& tensor = header_.tensors()[current_];
  if (bytes.size() > tensor.bytes - written_) {
    return fail(ErrorKind::kInternal, "Tensor \"%s\" has %llu bytes, but more were written.",
                tensor.name.c_str(), static_cast<unsigned long long>(tensor.bytes));
  }
  DP_CHECK(sink_.write(bytes));
  written_ += bytes.size();
  if (written_ < tensor.bytes) return {};
  const uint64_t past = written_ % header_.alignment();
  const std::vector<uint8_t> padding(host_size(past == 0 ? 0 : header_.alignment() - past));
  ++current_;
  written_ = 0;
  return padding.empty() ? Result<>() : sink_.write(padding);
}

Result<> GgufWriter::finish() {
  if (current_ == header_.tensors().size()) return {};
  return fail(ErrorKind::kInternal, "The data of tensor \"%s\" is missing.",
              header_.tensors()[current_].name.c_str());
}

}  // namespace doppler::formats
