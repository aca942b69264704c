#include "store/store_writer.h"

#include <algorithm>
#include <ctime>
#include <set>

#include "base/folders.h"
#include "base/json.h"
#include "base/text.h"
#include "store/journal.h"
#include "store/url.h"

namespace doppler::store {

namespace {

constexpr char kPullName[] = "pull.json";
constexpr char kLockName[] = "lock";

// "1_Pooling" of "1_Pooling/config.json"; empty: the model's own folder.
std::string folder_of(const std::string& file) {
  return file.substr(0, file.find('/') == std::string::npos ? 0 : file.find('/'));
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm tm{};
  ::gmtime_r(&now, &tm);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
  return text;
}

Result<void> check_names(const DownloadList& list) {
  std::set<std::string> seen;
  for (const ListedFile& file : list.files) {
    const std::string& name = file.file;
    const bool is_reserved = name == kRecordName || name == kPullName || name == kLockName ||
                             name.ends_with(kUnfinishedSuffix) || name.ends_with(".journal") ||
                             name.ends_with(".new");
    const std::string folder = folder_of(name);
    const bool clashes = std::ranges::any_of(list.files, [&](const ListedFile& other) {
      return !folder.empty() && (other.file == folder || other.file + kUnfinishedSuffix == folder ||
                                 other.file + ".journal" == folder);
    });
    if (!is_safe_stored_name(name) || !are_names(name) || is_reserved || clashes) {
      return fail(ErrorKind::kInvalidInput,
                  "The source has a file \"%s\", a name that the store does not take.",
                  printable(name).c_str());
    }
    if (!seen.insert(name).second) {
      return fail(ErrorKind::kInvalidInput, "The source has two files of the name \"%s\".",
                  printable(name).c_str());
    }
  }
  if (list.files.empty()) return fail(ErrorKind::kInvalidInput, "%s has no files.", list.source.c_str());
  return {};
}

Json list_json(const DownloadList& list) {
  Json files = Json::array();
  for (const ListedFile& file : list.files) {
    files.push_back({{"file", file.file},
                     {"bytes", file.bytes ? Json(*file.bytes) : Json()},
                     {"sha256", file.sha256 ? Json(sha256_hex(*file.sha256)) : Json()}});
  }
  return {{"source", list.source}, {"revision", list.revision}, {"files", std::move(files)}};
}

std::optional<std::string> source_of(const std::string& folder) {
  const auto text = read_small_file(folder + "/" + kPullName);
  if (!text) return {};
  const auto json = parse_json(*text, kPullName, 8);
  if (!json) return {};
  const auto source = get_string(*json, "source");
  return source ? *source : std::nullopt;
}

// Files of an earlier list that this one does not have.
Result<void> sweep(const std::string& folder, const DownloadList& list) {
  std::set<std::string> keep = {kPullName, kLockName};
  for (const ListedFile& file : list.files) {
    keep.insert(file.file + kUnfinishedSuffix);
    keep.insert(file.file + ".journal");
    keep.insert(folder_of(file.file));
  }
  std::vector<std::string> extra;
  walk_folder(folder, [&](const FoundName& found) {
    const bool is_kept = keep.contains(found.path);
    if (!is_kept) extra.push_back(folder + "/" + found.path);
    return is_kept;
  });
  for (const std::string& path : extra) DP_CHECK(remove_tree(path));
  return {};
}

// From the record in <name>.part to <name>. May be begun again after any step.
Result<void> put_in_place(const ModelStore& store, const std::string& name, const Record& record) {
  const std::string folder = store.path_of(name) + kUnfinishedSuffix;
  for (const StoredFile& file : record.files) {
    const std::string path = folder + "/" + file.file;
    if (is_there(path + kUnfinishedSuffix)) DP_CHECK(rename_path(path + kUnfinishedSuffix, path));
    DP_CHECK(remove_tree(path + ".journal"));
  }
  for (const StoredFile& file : record.files) {
    if (const std::string inner = folder_of(file.file); !inner.empty())
      DP_CHECK(flush_folder(folder + "/" + inner));
  }
  DP_CHECK(remove_tree(folder + "/" + kPullName));
  DP_CHECK(remove_tree(folder + "/" + kLockName));
  DP_CHECK(flush_folder(folder));
  const std::string old = store.folder() + "/." + name + ".removed";
  if (store.has(name)) {
    DP_CHECK(remove_tree(old));
    DP_CHECK(rename_path(store.path_of(name), old));
  }
  DP_CHECK(rename_path(folder, store.path_of(name)));
  DP_CHECK(flush_folder(store.folder()));
  return remove_tree(old);
}

}  // namespace

uint64_t disk_bytes(const std::string& path) { return facts_of(path).value_or(FileFacts{}).disk_bytes; }

Result<File> lock_unfinished(const std::string& folder, const std::string& name) {
  return lock_file(folder + "/" + kLockName,
                   format_text("Another process is pulling \"%s\" at this moment.", name.c_str()));
}

Result<StoreWriter> StoreWriter::open(const ModelStore& store, const DownloadList& list) {
  DP_CHECK(check_names(list));
  std::string folder = store.path_of(list.name) + kUnfinishedSuffix;
  DP_CHECK(make_folders(folder));
  DP_TRY(File lock, lock_unfinished(folder, list.name));
  if (const auto source = source_of(folder); source && *source != list.source) {
    return fail(ErrorKind::kInvalidInput,
                "\"%s\" is the name of an unfinished download from %s; doppler rm %s removes it, --name "
                "gives this one "
                "another name.",
                list.name.c_str(), printable(*source, 300).c_str(), list.name.c_str());
  }
  DP_CHECK(write_small_file(folder + "/" + kPullName, to_text(list_json(list), 2) + "\n"));
  DP_CHECK(sweep(folder, list));
  for (const ListedFile& file : list.files) DP_CHECK(make_folders(folder + "/" + folder_of(file.file)));
  return StoreWriter(store, list, std::move(folder), std::move(lock));
}

Result<StoredModel> StoreWriter::finish(std::vector<StoredFile> files, bool replace) {
  if (store_.has(list_.name) && !replace) {
    return fail(ErrorKind::kInvalidInput, "Another process has stored a model \"%s\" meanwhile.",
                list_.name.c_str());
  }
  const Record record{.source = list_.source,
                      .revision = list_.revision,
                      .kind = list_.kind,
                      .entry = list_.entry,
                      .stored = now_text(),
                      .files = std::move(files)};
  DP_CHECK(write_small_file(path_of(kRecordName), to_text(record_json(record), 2) + "\n"));
  DP_CHECK(put_in_place(store_, list_.name, record));
  return store_.find(list_.name);
}

Result<void> StoreWriter::discard() { return remove_tree(folder_); }

Result<bool> finish_remains(const ModelStore& store, const std::string& name) {
  const std::string folder = store.path_of(name) + kUnfinishedSuffix;
  const auto text = read_small_file(folder + "/" + kRecordName);
  if (!text) return false;
  DP_TRY(const Record record, parse_record(*text, folder + "/" + kRecordName));
  DP_TRY(const File lock, lock_unfinished(folder, name));
  DP_CHECK(put_in_place(store, name, record));
  return true;
}

std::optional<UnfinishedModel> read_unfinished(const std::string& store_folder, const std::string& name) {
  const std::string folder = store_folder + "/" + name + kUnfinishedSuffix;
  const auto text = read_small_file(folder + "/" + kPullName);
  const auto source = source_of(folder);
  if (!text || !source) return {};
  UnfinishedModel out{.name = name, .source = *source, .bytes_total = 0};
  const auto json = parse_json(*text, kPullName, 8);
  const Json* files = json ? find(*json, "files") : nullptr;
  if (!files || !files->is_array()) return {};
  for (const Json& entry : *files) {
    const auto file = get_string(entry, "file");
    const auto bytes = get_integer(entry, "bytes");
    if (!file || !*file || !is_safe_stored_name(**file) || !bytes) return {};
    const std::string path = folder + "/" + **file;
    const auto journalled = journalled_bytes(path + ".journal");
    out.bytes_done += journalled ? *journalled : disk_bytes(path + kUnfinishedSuffix);
    if (*bytes && out.bytes_total) {
      *out.bytes_total += static_cast<uint64_t>(**bytes);
    } else {
      out.bytes_total.reset();
    }
  }
  return out;
}

}  // namespace doppler::store
