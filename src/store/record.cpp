// The record of a stored model as JSON: written here and, after years or by a browser, read again with every check.
#include <algorithm>
#include <numeric>

#include "base/json.h"
#include "store/model_store.h"
#include "store/url.h"

namespace doppler::store {
namespace {

constexpr int64_t kVersion = 1;

Result<std::string> text_of(const Json& object, const char* key, std::string_view name) {
  auto value = get_string(object, key);
  if (!value) return forward(std::move(value).error().add_while("reading " + std::string(name)));
  if (*value) return **value;
  return fail(ErrorKind::kInvalidInput, "%s lacks the text \"%s\".", std::string(name).c_str(), key);
}

Result<StoredFile> parse_file(const Json& object, std::string_view name) {
  StoredFile out;
  DP_TRY(out.file, text_of(object, "file", name));
  DP_TRY(const std::string digest, text_of(object, "sha256", name));
  const auto sha256 = sha256_from_hex(digest);
  const auto bytes = get_integer(object, "bytes");
  const auto verified = get_bool(object, "verified");
  if (!is_safe_stored_name(out.file) || !sha256 || !bytes || !*bytes || **bytes < 0 || !verified) {
    return fail(ErrorKind::kInvalidInput, "%s describes a file (\"%s\") with a wrong name, size or hash.",
                std::string(name).c_str(), printable(out.file).c_str());
  }
  out.bytes = static_cast<uint64_t>(**bytes);
  out.sha256 = *sha256;
  out.is_verified = verified->value_or(false);
  return out;
}

}  // namespace

uint64_t Record::bytes() const {
  return std::accumulate(files.begin(), files.end(), uint64_t{0},
                         [](uint64_t sum, const StoredFile& file) { return sum + file.bytes; });
}

Json record_json(const Record& record) {
  Json files = Json::array();
  for (const StoredFile& file : record.files) {
    files.push_back({{"file", file.file},
                     {"bytes", file.bytes},
                     {"sha256", sha256_hex(file.sha256)},
                     {"verified", file.is_verified}});
  }
  return {{"version", kVersion},
          {"source", record.source},
          {"revision", record.revision.empty() ? Json() : Json(record.revision)},
          {"kind", record.kind},
          {"entry", record.entry.empty() ? Json() : Json(record.entry)},
          {"stored", record.stored},
          {"files", std::move(files)}};
}

Result<Record> parse_record(std::string_view text, std::string_view name) {
  DP_TRY(const Json json, parse_json(text, name, 8));
  const auto version = get_integer(json, "version");
  if (!version || *version != kVersion) {
    return fail(ErrorKind::kInvalidInput, "%s has no version that is known here (%lld).",
                std::string(name).c_str(), static_cast<long long>(kVersion));
  }
  Record record;
  DP_TRY(record.source, text_of(json, "source", name));
  DP_TRY(record.kind, text_of(json, "kind", name));
  DP_TRY(record.stored, text_of(json, "stored", name));
  DP_TRY(const auto revision, get_string(json, "revision"));
  DP_TRY(const auto entry, get_string(json, "entry"));
  record.revision = revision.value_or("");
  record.entry = entry.value_or("");
  const Json* files = find(json, "files");
  if (!files || !files->is_array() || files->empty()) {
    return fail(ErrorKind::kInvalidInput, "%s lists no files.", std::string(name).c_str());
  }
  for (const Json& file : *files) {
    DP_TRY(StoredFile parsed, parse_file(file, name));
    record.files.push_back(std::move(parsed));
  }
  const bool has_entry =
      std::ranges::any_of(record.files, [&](const auto& file) { return file.file == record.entry; });
  if (!record.entry.empty() && !has_entry) {
    return fail(ErrorKind::kInvalidInput, "%s names an entry (\"%s\") that is none of its files.",
                std::string(name).c_str(), printable(record.entry).c_str());
  }
  return record;
}

}  // namespace doppler::store
