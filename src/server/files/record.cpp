#include "server/files/record.h"

#include <algorithm>

#include "base/folders.h"
#include "base/log.h"

namespace doppler::server {
namespace {

constexpr const char* kSuffix = ".json";

// Empty if it cannot be read, which is no record.
std::string text_of(const std::string& path) {
  const OpenFile file = OpenFile::open(path);
  std::string text(file ? file_bytes(path).value_or(0) : 0, '\0');
  const auto count = file.read_at({reinterpret_cast<uint8_t*>(text.data()), text.size()}, 0);
  text.resize(count.value_or(0));
  return text;
}

}  // namespace

Result<void> write_record(const PrivateFolder& folder, const std::string& id, const Json& record) {
  return folder.write(id + kSuffix, to_text(record));
}

void remove_record(const PrivateFolder& folder, const std::string& id) { folder.remove(id + kSuffix); }

std::vector<std::pair<std::string, Json>> read_records(const PrivateFolder& folder,
                                                       const std::string& prefix) {
  std::vector<std::pair<std::string, Json>> out;
  for (const std::string& name : folder.names()) {
    if (!name.starts_with(prefix) || !name.ends_with(kSuffix)) continue;
    auto record = parse_json(text_of(folder.path_of(name)), folder.path_of(name));
    if (!record || !record->is_object()) {
      log(LogLevel::kWarning, "%s is no record and is left out.", folder.path_of(name).c_str());
      continue;
    }
    out.emplace_back(name.substr(0, name.size() - std::char_traits<char>::length(kSuffix)),
                     std::move(*record));
  }
  std::ranges::sort(out, {}, [](const auto& item) { return item.first; });
  return out;
}

}  // namespace doppler::server
