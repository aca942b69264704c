// The checks that every implementation of FileSet and ByteSource shares (source.h).
#include "formats/source.h"

#include <limits>

namespace doppler::formats {

bool is_plain_file_name(std::string_view name) {
  if (name.empty() || name == "." || name == "..") return false;
  return name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

bool is_name_in_folder(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return is_plain_file_name(name);
  return is_plain_file_name(name.substr(0, slash)) && is_plain_file_name(name.substr(slash + 1));
}

Result<> check_range(const ByteSource& source, uint64_t offset, uint64_t count) {
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<ptrdiff_t>::max());
  if (count > kMost) {
    return fail(ErrorKind::kOutOfMemory,
                "Cannot read %llu bytes of %s at once: at most %llu fit in memory here.",
                static_cast<unsigned long long>(count), source.name().c_str(),
                static_cast<unsigned long long>(kMost));
  }
  if (offset <= source.size() && count <= source.size() - offset) return {};
  return fail(ErrorKind::kInvalidInput, "Cannot read %llu bytes at offset %llu of %s: it has %llu bytes.",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(offset),
              source.name().c_str(), static_cast<unsigned long long>(source.size()));
}

}  // namespace doppler::formats
