#include "formats/file_headers.h"

#include <algorithm>

namespace doppler::formats {
namespace {

constexpr uint64_t kFirstPrefix = 1 << 20;  // most headers without a vocabulary are shorter

// The first `count` bytes: a view of the mapping, or read into `storage` after the bytes that it already holds.
Task<Result<std::span<const uint8_t>>> prefix_of(ByteSource& source, uint64_t count,
                                                 std::vector<uint8_t>& storage) {
  if (!source.mapped().empty()) co_return source.mapped().first(host_size(count));
  if (count > storage.size()) {
    auto reading = source.read(storage.size(), count - storage.size());
    DP_CO_TRY(const std::vector<uint8_t> more, co_await std::move(reading));
    storage.insert(storage.end(), more.begin(), more.end());
  }
  co_return std::span<const uint8_t>(storage).first(host_size(count));
}

}  // namespace

Task<Result<FileLook>> look_at(ByteSource& source) {
  if (source.size() == 0) co_return fail(ErrorKind::kInvalidInput, "%s is empty.", source.name().c_str());
  std::vector<uint8_t> storage;
  auto reading = prefix_of(source, std::min(source.size(), kRecogniseBytes), storage);
  DP_CO_TRY(const auto prefix, co_await std::move(reading));
  const Recognised seen = recognise(prefix, source.size());
  if (seen.look == FileLook::kKnownOther) {
    co_return fail(ErrorKind::kInvalidInput, "%s is not a model file: it is %s.", source.name().c_str(),
                   seen.reason.c_str());
  }
  co_return seen.look;
}

Task<Result<GgufFile>> read_gguf(ByteSource& source) {
  std::vector<uint8_t> storage;
  uint64_t count = source.mapped().empty() ? std::min(source.size(), kFirstPrefix) : source.size();
  while (true) {
    auto reading = prefix_of(source, count, storage);
    DP_CO_TRY(const auto prefix, co_await std::move(reading));
    DP_CO_TRY(GgufParse parse, parse_gguf(prefix, source.size(), source.name()));
    DP_CO_CHECK(co_await source.ready(0, prefix.size()));
    if (parse.file) co_return std::move(*parse.file);
    count = parse.bytes_wanted;
  }
}

Task<Result<SafetensorsFile>> read_safetensors(ByteSource& source) {
  std::vector<uint8_t> storage;
  auto begin = prefix_of(source, std::min<uint64_t>(source.size(), 8), storage);
  DP_CO_TRY(const auto first8, co_await std::move(begin));
  DP_CO_TRY(const uint64_t count, safetensors_header_bytes(first8, source.size(), source.name()));
  auto reading = prefix_of(source, count, storage);
  DP_CO_TRY(const auto prefix, co_await std::move(reading));
  co_return parse_safetensors(prefix, source.size(), source.name());
}

std::string split_name(std::string_view any, int64_t number, int64_t count) {
  const std::string ending = format_text("-of-%05lld.gguf", static_cast<long long>(count));
  constexpr size_t kDigits = 5;
  if (!any.ends_with(ending) || any.size() < ending.size() + kDigits + 1) return {};
  const std::string_view stem = any.substr(0, any.size() - ending.size() - kDigits);
  return std::string(stem) + format_text("%05lld", static_cast<long long>(number)) + ending;
}

}  // namespace doppler::formats
