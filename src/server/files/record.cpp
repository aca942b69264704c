#include "server/files/record.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/log.h"

namespace doppler::server {
namespace {

constexpr const char* kSuffix = ".json";

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
    std::stringstream text;
    text << std::ifstream(std::filesystem::path(folder.path_of(name)), std::ios::binary).rdbuf();
    auto record = parse_json(text.str(), folder.path_of(name));
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
