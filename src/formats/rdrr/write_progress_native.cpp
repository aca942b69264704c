#include "formats/rdrr/write_progress_native.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unordered_set>

#include "base/folders.h"
#include "formats/rdrr/hash_files_native.h"

namespace doppler::formats {
namespace {

// Differs whenever a byte of a shard could: bytes are made from the source and the options (fingerprint), and
// lie where the tensors' order, sizes and the shard size put them.
Sha256 outline_digest(const RdrrManifest& outline, std::string_view fingerprint) {
  Sha256Hasher hasher;
  const auto add = [&](std::string_view text) {
    const std::string length = std::to_string(text.size()) + ":";
    hasher.update(text_bytes(length));
    hasher.update(text_bytes(text));
  };
  add(fingerprint);
  add(std::to_string(outline.shard_bytes));
  for (const RdrrTensor& tensor : outline.tensors) {
    add(tensor.name);
    add(dtype_info(tensor.type).name);
    add(rdrr_layout_name(tensor.layout));
    for (const uint64_t extent : tensor.shape) add(std::to_string(extent));
    add("");
  }
  return hasher.finish();
}

Result<std::string> read_all(const OpenFile& file, const std::string& path) {
  const auto facts = file.facts();
  std::string text(facts ? static_cast<size_t>(facts->bytes) : 0, '\0');
  const auto count = file.read_at({reinterpret_cast<uint8_t*>(text.data()), text.size()}, 0);
  if (!facts || !count)
    return fail(ErrorKind::kIo, "Cannot read %s: %s.", path.c_str(), std::strerror(errno));
  text.resize(*count);
  return text;
}

constexpr size_t kLineBytes = 65;  // 64 digits and a newline

// The digests of all whole lines, the outline's first.
std::vector<Sha256> recorded_digests(std::string_view text, size_t most) {
  std::vector<Sha256> digests;
  for (size_t at = 0; at + kLineBytes <= text.size() && digests.size() < most; at += kLineBytes) {
    const auto digest = sha256_from_hex(text.substr(at, kLineBytes - 1));
    if (!digest || text[at + kLineBytes - 1] != '\n') break;
    digests.push_back(*digest);
  }
  return digests;
}

// The number of first shards that are on the disk as recorded.
size_t intact_shards(const std::string& folder, const RdrrManifest& outline,
                     const std::vector<Sha256>& recorded) {
  std::vector<FileToHash> files;
  for (size_t i = 0; i < recorded.size(); ++i) {
    files.push_back({folder + "/" + outline.shards[i].file, outline.shards[i].bytes});
  }
  const auto found = hash_files(files, 0, {});
  size_t count = 0;
  while (count < found.size() && found[count] && *found[count] == recorded[count]) ++count;
  return count;
}

}  // namespace

Result<std::unique_ptr<WriteProgress>> WriteProgress::open(const std::string& folder,
                                                           const RdrrManifest& outline,
                                                           std::string_view fingerprint) {
  const std::string path = folder + "/" + kWriteProgressName;
  OpenFile opened = OpenFile::open(path, {.writes = true, .makes = true, .appends = true});
  if (!opened) return fail(ErrorKind::kIo, "Cannot write %s: %s.", path.c_str(), std::strerror(errno));
  std::unique_ptr<WriteProgress> progress(new WriteProgress(path, std::move(opened)));
  OpenFile& file = progress->file_;
  if (!file.lock()) {
    return fail(ErrorKind::kIo, "Another process is writing %s.", folder.c_str());
  }
  DP_TRY(const std::string text, read_all(file, path));
  const Sha256 digest = outline_digest(outline, fingerprint);
  std::vector<Sha256> recorded = recorded_digests(text, 1 + outline.shards.size());
  const bool same_outline = !recorded.empty() && recorded[0] == digest;
  if (same_outline) {
    recorded.erase(recorded.begin());
    recorded.resize(intact_shards(folder, outline, recorded));
  } else {
    recorded.clear();
  }
  DP_TRY(const std::vector<std::string> names, names_in_folder(folder));
  for (const std::string& name : names) {
    bool keep = name == kWriteProgressName;
    for (size_t i = 0; i < recorded.size() && !keep; ++i) keep = name == outline.shards[i].file;
    if (!keep) remove_tree(folder + "/" + name);
  }
  const size_t kept_bytes = same_outline ? kLineBytes * (1 + recorded.size()) : 0;
  if (!file.resize(kept_bytes)) {
    return fail(ErrorKind::kIo, "Cannot write %s: %s.", path.c_str(), std::strerror(errno));
  }
  if (!same_outline) DP_CHECK(progress->append(digest));
  progress->done_ = std::move(recorded);
  return progress;
}

Result<> WriteProgress::append(const Sha256& digest) {
  if (file_.write(sha256_hex(digest) + "\n") && file_.flush()) return {};
  return fail(ErrorKind::kIo, "Cannot write %s: %s.", path_.c_str(), std::strerror(errno));
}

Result<> WriteProgress::add(const Sha256& shard) {
  DP_CHECK(append(shard));
  done_.push_back(shard);
  return {};
}

Result<> WriteProgress::remove() {
  file_.close();  // on Windows the name of an open file stays in the folder
  if (remove_file(path_)) return {};
  return fail(ErrorKind::kIo, "Cannot remove %s: %s.", path_.c_str(), std::strerror(errno));
}

Result<std::vector<std::string>> names_in_folder(const std::string& folder) {
  std::vector<std::string> names;
  if (!list_folder(folder, names))
    return fail(ErrorKind::kIo, "Cannot read %s: %s.", folder.c_str(), std::strerror(errno));
  std::ranges::sort(names);
  return names;
}

Result<std::vector<std::string>> files_beside_rdrr_model(const std::string& folder,
                                                         const RdrrManifest& manifest) {
  DP_TRY(std::vector<std::string> names, names_in_folder(folder));
  std::unordered_set<std::string_view> known = {kRdrrManifestName};
  for (const RdrrShard& shard : manifest.shards) known.insert(shard.file);
  for (const RdrrAsset& asset : manifest.assets) known.insert(asset.file);
  std::erase_if(names, [&](const std::string& name) { return known.contains(name); });
  return names;
}

}  // namespace doppler::formats
