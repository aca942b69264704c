#include "store/model_store.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "base/folders.h"
#include "base/json.h"
#include "base/own_folders_native.h"
#include "base/text.h"
#include "store/files.h"
#include "store/store_writer.h"

namespace doppler::store {

namespace {

constexpr size_t kMostNameBytes = 128;

bool is_name_character(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x80 && (std::isalnum(byte) || c == '.' || c == '_' || c == '-');
}

// For a file that may lie in a folder of its own.
Result<void> make_folder_of(const std::string& path) { return make_folders(path.substr(0, path.rfind('/'))); }

Result<void> link_or_copy(const std::string& from, const std::string& to) {
  DP_CHECK(make_folder_of(to));
  if (link_file(from, to) || copy_file(from, to, /*replaces=*/false)) return {};
  return fail(ErrorKind::kIo, "Cannot copy %s to %s: %s.", from.c_str(), to.c_str(), std::strerror(errno));
}

}  // namespace

bool is_store_name(std::string_view name) {
  return !name.empty() && name.size() <= kMostNameBytes &&
         std::isalnum(static_cast<unsigned char>(name[0])) && std::ranges::all_of(name, is_name_character) &&
         !name.ends_with(kUnfinishedSuffix);
}

std::string store_name_of(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool starts = name.empty() && !std::isalnum(static_cast<unsigned char>(c));
    if (is_name_character(c) && !starts) {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  name.resize(std::min(name.size(), kMostNameBytes));
  while (!name.empty() && (name.back() == '-' || name.back() == '.')) name.pop_back();
  while (name.ends_with(kUnfinishedSuffix))
    name.resize(name.size() - std::string_view(kUnfinishedSuffix).size());
  return name;
}

Result<std::string> store_folder() {
  if (const std::string home = environment_variable("DOPPLER_HOME"); !home.empty()) return home + "/models";
  if (const std::string data = user_folder(UserFolder::kData); !data.empty()) return data + "/models";
  return fail(ErrorKind::kInvalidInput,
              "There is no place for models: none of DOPPLER_HOME, XDG_DATA_HOME and HOME is set.");
}

std::string StoredModel::load_path() const {
  return record.entry.empty() ? folder : folder + "/" + record.entry;
}

Result<ModelStore> ModelStore::open() {
  DP_TRY(std::string folder, store_folder());
  return ModelStore(std::move(folder));
}

bool ModelStore::has(const std::string& name) const {
  return is_store_name(name) && is_folder(path_of(name));
}

bool ModelStore::has_unfinished(const std::string& name) const {
  return is_store_name(name) && is_folder(path_of(name) + kUnfinishedSuffix);
}

Result<StoredModel> ModelStore::find(const std::string& name) const {
  if (!is_store_name(name)) {
    return fail(ErrorKind::kInvalidInput,
                "\"%s\" is no name of a stored model: letters, digits and . _ - are allowed, at most %zu.",
                printable(name).c_str(), kMostNameBytes);
  }
  StoredModel model{.name = name, .folder = path_of(name), .record = {}};
  if (!has(name)) {
    const StoreListing listing = list();
    std::vector<std::string> names;
    for (const auto& stored : listing.models) names.push_back(stored.name);
    if (has_unfinished(name)) {
      return fail(ErrorKind::kInvalidInput,
                  "The download of \"%s\" is not finished; \"doppler pull %s\" goes on.", name.c_str(),
                  name.c_str());
    }
    const auto suggestion = nearest(name, names);
    return fail(
        ErrorKind::kInvalidInput, "There is no model \"%s\" in %s%s.", name.c_str(), folder_.c_str(),
        suggestion ? ("; did you mean " + *suggestion).c_str() : " (doppler list shows what there is)");
  }
  const std::string path = model.folder + "/" + kRecordName;
  const auto text = read_small_file(path);
  if (!text) return fail(ErrorKind::kIo, "%s cannot be read.", path.c_str());
  DP_TRY(model.record, parse_record(*text, path));
  return model;
}

StoreListing ModelStore::list() const {
  StoreListing out;
  std::vector<std::string> names;
  list_folder(folder_, names);
  std::ranges::sort(names);
  for (const std::string& name : names) {
    if (name.ends_with(kUnfinishedSuffix)) {
      if (auto unfinished = read_unfinished(folder_, name.substr(0, name.size() - 5))) {
        out.unfinished.push_back(std::move(*unfinished));
      } else {
        out.problems.push_back(path_of(name) + " is no download of Doppler.");
      }
    } else if (has(name)) {
      auto model = find(name);
      if (model) {
        out.models.push_back(std::move(*model));
      } else {
        out.problems.push_back(model.error().sentence());
      }
    }
  }
  return out;
}

Result<uint64_t> ModelStore::remove(const std::string& name) const {
  const bool is_unfinished = has_unfinished(name);
  if (!has(name) && !is_unfinished) return forward(find(name).error());
  uint64_t freed = 0;
  const auto drop = [&](const std::string& folder) -> Result<void> {
    walk_folder(folder, [&](const FoundName& found) {
      freed += found.kind == FileKind::kRegular ? disk_bytes(folder + "/" + found.path) : 0;
      return true;
    });
    // Renamed first: half a folder is never a model, whenever this ends.
    const std::string doomed = folder_ + "/." + name + ".removed";
    DP_CHECK(remove_tree(doomed));
    DP_CHECK(rename_path(folder, doomed));
    return remove_tree(doomed);
  };
  if (is_unfinished) {
    const std::string folder = path_of(name) + kUnfinishedSuffix;
    DP_TRY(const File lock, lock_unfinished(folder, name));
    DP_CHECK(drop(folder));
  }
  if (has(name)) DP_CHECK(drop(path_of(name)));
  return freed;
}

Result<StoredModel> ModelStore::copy(const std::string& name, const std::string& to) const {
  DP_TRY(const StoredModel model, find(name));
  if (!is_store_name(to)) return forward(find(to).error());
  if (has(to)) {
    return fail(ErrorKind::kInvalidInput, "There is a model \"%s\" already; doppler rm %s removes it.",
                to.c_str(), to.c_str());
  }
  const std::string temporary = folder_ + "/." + to + ".copy";
  DP_CHECK(remove_tree(temporary));
  DP_CHECK(make_folders(temporary));
  for (const StoredFile& file : model.record.files) {
    DP_CHECK(link_or_copy(model.folder + "/" + file.file, temporary + "/" + file.file));
  }
  DP_CHECK(write_small_file(temporary + "/" + kRecordName, to_text(record_json(model.record), 2) + "\n"));
  DP_CHECK(rename_path(temporary, path_of(to)));
  return find(to);
}

Result<std::string> ModelStore::copy_out(const std::string& name, const std::string& path) const {
  DP_TRY(const StoredModel model, find(name));
  const bool is_single = model.record.files.size() == 1;
  std::string target = path;
  if (is_single && (file_name(target).empty() || is_folder(target))) {
    target = joined_path(target, model.record.files[0].file);
  } else if (file_name(target).empty()) {
    target = parent_path(target);  // without the last /
  }
  if (is_there(target))
    return fail(ErrorKind::kInvalidInput, "%s exists already; nothing was copied.", target.c_str());
  const std::string temporary = target + kUnfinishedSuffix;
  DP_CHECK(remove_tree(temporary));
  if (const std::string above = parent_path(target); !above.empty()) DP_CHECK(make_folders(above));
  if (!is_single) DP_CHECK(make_folders(temporary));
  for (const StoredFile& file : model.record.files) {
    const std::string to = is_single ? temporary : temporary + "/" + file.file;
    if (!is_single) DP_CHECK(make_folder_of(to));
    if (!copy_file(model.folder + "/" + file.file, to, /*replaces=*/false)) {
      return fail(ErrorKind::kIo, "Cannot copy %s to %s: %s.", file.file.c_str(), to.c_str(),
                  std::strerror(errno));
    }
  }
  DP_CHECK(rename_path(temporary, target));
  return target;
}

}  // namespace doppler::store
