#include "formats/rdrr/verified_stamp_native.h"

#include "base/folders.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "formats/file_sink_native.h"

namespace doppler::formats {

VerifiedStamp::VerifiedStamp(const std::string& folder, const RdrrManifest& manifest,
                             const std::vector<std::string>& identities)
    : manifest_(manifest), identities_(identities) {
  if (folder.empty() || identities.empty()) return;
  // Two copies of a model have stamps of their own, since their files have other inodes.
  const std::string key = sha256_hex(manifest.model_sha256) + " " + identities[0];
  path_ = folder + "/verified/" + sha256_hex(sha256(text_bytes(key))) + ".txt";
  if (!is_there(path_)) return;
  const auto file = MappedFile::open(path_);
  if (!file) return;
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  for (std::string& known : split(text, '\n')) lines_.insert(std::move(known));
}

std::string VerifiedStamp::line(size_t shard) const {
  return manifest_.shards[shard].file + " " + sha256_hex(manifest_.shards[shard].sha256) + " " +
         (shard < identities_.size() ? identities_[shard] : std::string());
}

void VerifiedStamp::note(size_t shard) {
  lines_.insert(line(shard));
  changed_ = true;
}

void VerifiedStamp::save() {
  if (path_.empty() || !changed_) return;
  std::string text;
  for (size_t i = 0; i < manifest_.shards.size(); ++i) {  // drops the lines of changed files
    if (knows(i)) text += line(i) + "\n";
  }
  make_folders(parent_path(path_));
  const auto write = [&]() -> Result<> {
    DP_TRY(const std::unique_ptr<FileSink> sink, FileSink::create(path_));
    DP_CHECK(sink->write(text_bytes(text)));
    return sink->commit();
  };
  if (auto written = write(); !written) {
    log(LogLevel::kInfo, "The next load will hash this model again: %s", written.error().sentence().c_str());
  }
  changed_ = false;
}

}  // namespace doppler::formats
