#include "formats/rdrr/write_progress_native.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unordered_set>

#include "formats/rdrr/hash_files_native.h"

namespace doppler::formats {
namespace {

namespace fs = std::filesystem;

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

Result<std::string> read_all(int fd, const std::string& path) {
  std::string text;
  char piece[4096];
  for (;;) {
    const ssize_t count = ::pread(fd, piece, sizeof piece, static_cast<off_t>(text.size()));
    if (count < 0) return fail(ErrorKind::kIo, "Cannot read %s: %s.", path.c_str(), std::strerror(errno));
    if (count == 0) return text;
    text.append(piece, static_cast<size_t>(count));
  }
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
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return fail(ErrorKind::kIo, "Cannot write %s: %s.", path.c_str(), std::strerror(errno));
  std::unique_ptr<WriteProgress> progress(new WriteProgress(path, fd));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return fail(ErrorKind::kIo, "Another process is writing %s.", folder.c_str());
  }
  DP_TRY(const std::string text, read_all(fd, path));
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
  std::error_code error;
  for (const std::string& name : names) {
    bool keep = name == kWriteProgressName;
    for (size_t i = 0; i < recorded.size() && !keep; ++i) keep = name == outline.shards[i].file;
    if (!keep) fs::remove_all(folder + "/" + name, error);
  }
  const size_t kept_bytes = same_outline ? kLineBytes * (1 + recorded.size()) : 0;
  if (::ftruncate(fd, static_cast<off_t>(kept_bytes)) != 0) {
    return fail(ErrorKind::kIo, "Cannot write %s: %s.", path.c_str(), std::strerror(errno));
  }
  if (!same_outline) DP_CHECK(progress->append(digest));
  progress->done_ = std::move(recorded);
  return progress;
}

WriteProgress::~WriteProgress() { ::close(fd_); }

Result<> WriteProgress::append(const Sha256& digest) {
  const std::string text = sha256_hex(digest) + "\n";
  const bool written = ::lseek(fd_, 0, SEEK_END) >= 0 &&
                       ::write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::fsync(fd_) == 0;
  if (written) return {};
  return fail(ErrorKind::kIo, "Cannot write %s: %s.", path_.c_str(), std::strerror(errno));
}

Result<> WriteProgress::add(const Sha256& shard) {
  DP_CHECK(append(shard));
  done_.push_back(shard);
  return {};
}

Result<> WriteProgress::remove() {
  if (::unlink(path_.c_str()) == 0) return {};
  return fail(ErrorKind::kIo, "Cannot remove %s: %s.", path_.c_str(), std::strerror(errno));
}

Result<std::vector<std::string>> names_in_folder(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error) return fail(ErrorKind::kIo, "Cannot read %s: %s.", folder.c_str(), error.message().c_str());
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
