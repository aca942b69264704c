#include "formats/rdrr/folder_check_native.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/folders.h"
#include "base/mapped_file.h"
#include "formats/file_sink_native.h"
#include "formats/rdrr/integrity.h"
#include "formats/rdrr/write_progress_native.h"

namespace doppler::formats {
namespace {

constexpr char kFetched[] = ".fetched";  // ending of a file that is not yet known to be good

// A task that never waits: natively hashing is done at once.
template <class T>
T run(Task<T> task) {
  task.start();
  return task.take();
}

// Reads and checks manifest.json by itself.
Result<RdrrParsed> read_manifest(const std::string& path) {
  const auto size = file_bytes(path);
  if (!size) return fail(ErrorKind::kInvalidInput, "%s is missing.", path.c_str());
  if (*size > kRdrrMaxManifestBytes) {
    return fail(ErrorKind::kInvalidInput, "%s has %s; at most %s are read.", path.c_str(),
                format_bytes(*size).c_str(), format_bytes(kRdrrMaxManifestBytes).c_str());
  }
  DP_TRY(const MappedFile file, MappedFile::open(path));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  const auto hashed = run(check_rdrr_manifest_hash(text, path));
  if (!hashed) return forward(hashed.error());
  DP_TRY(RdrrParsed parsed, parse_rdrr_manifest(text, path));
  const auto model = run(check_rdrr_model_hash(parsed.manifest, path));
  if (!model) return forward(model.error());
  return parsed;
}

struct Named {
  std::string file;
  uint64_t bytes;
  Sha256 sha256;
};

std::vector<Named> files_of(const RdrrManifest& manifest) {
  std::vector<Named> files;
  for (const RdrrAsset& asset : manifest.assets) files.push_back({asset.file, asset.bytes, asset.sha256});
  for (const RdrrShard& shard : manifest.shards) files.push_back({shard.file, shard.bytes, shard.sha256});
  return files;
}

// Fetches one file beside its place; moves it there if `is_good`.
Result<> replace(const std::string& folder, const std::string& file, const FetchFile& fetch,
                 const std::function<Result<>(const std::string& path)>& is_good) {
  const std::string place = folder + "/" + file, fetched = place + kFetched;
  auto done = fetch(file, fetched);
  if (done) done = is_good(fetched);
  if (done && !rename_path(fetched, place)) {
    done = fail(ErrorKind::kIo, "Cannot replace %s: %s.", place.c_str(), std::strerror(errno));
  }
  if (!done) remove_file(fetched);
  return done;
}

Result<> check_file(const std::string& path, const Named& expected) {
  const FileToHash file{path, expected.bytes};
  const std::vector<Result<Sha256>> hashes = hash_files(std::span(&file, 1), 1, {});
  if (!hashes[0]) return forward(hashes[0].error());
  return compare_rdrr_hash(*hashes[0], expected.sha256, path);
}

}  // namespace

Result<RdrrFolderCheck> check_rdrr_folder(const std::string& folder, unsigned threads,
                                          const HashProgress& progress) {
  if (!is_folder(folder)) {
    return fail(ErrorKind::kIo, "There is no folder %s.", printable(folder, 300).c_str());
  }
  RdrrFolderCheck check;
  auto parsed = read_manifest(folder + "/" + kRdrrManifestName);
  if (!parsed) {
    check.faults.push_back({kRdrrManifestName, parsed.error().sentence()});
    return check;
  }
  check.unknown = std::move(parsed->unknown);
  check.manifest = std::move(parsed->manifest);
  DP_TRY(check.others, files_beside_rdrr_model(folder, *check.manifest));

  const std::vector<Named> named = files_of(*check.manifest);
  std::vector<FileToHash> files;
  for (const Named& file : named) {
    files.push_back({folder + "/" + file.file, file.bytes});
    check.bytes += file.bytes;
  }
  const std::vector<Result<Sha256>> hashes = hash_files(files, threads, progress);
  for (size_t i = 0; i < named.size(); ++i) {
    const Result<> compared = hashes[i] ? compare_rdrr_hash(*hashes[i], named[i].sha256, files[i].path)
                                        : Result<>(forward(hashes[i].error()));
    if (!compared) check.faults.push_back({named[i].file, compared.error().sentence()});
  }
  return check;
}

FetchFile fetch_from_folder(const std::string& source) {
  return [source](const std::string& file, const std::string& to) -> Result<> {
    if (copy_file(source + "/" + file, to, /*replaces=*/true)) return {};
    return fail(ErrorKind::kIo, "Cannot copy %s/%s: %s.", source.c_str(), file.c_str(), std::strerror(errno));
  };
}

Result<RdrrRepair> repair_rdrr_folder(const std::string& folder, const RdrrFolderCheck& check,
                                      const FetchFile& fetch) {
  RdrrRepair repair;
  if (!check.manifest) {
    // Without a manifest the other damage is unknown: with the new one the caller checks everything again.
    const auto whole = [](const std::string& path) -> Result<> {
      const auto parsed = read_manifest(path);
      return parsed ? Result<>() : Result<>(forward(parsed.error()));
    };
    if (auto replaced = replace(folder, kRdrrManifestName, fetch, whole); !replaced) {
      repair.left.push_back({kRdrrManifestName, replaced.error().sentence()});
    } else {
      repair.replaced.emplace_back(kRdrrManifestName);
    }
    return repair;
  }
  const std::vector<Named> named = files_of(*check.manifest);
  for (const RdrrFault& fault : check.faults) {
    const auto it = std::ranges::find(named, fault.file, &Named::file);
    const auto good = [&](const std::string& path) { return check_file(path, *it); };
    if (auto replaced = replace(folder, fault.file, fetch, good); !replaced) {
      repair.left.push_back({fault.file, replaced.error().sentence()});
    } else {
      repair.replaced.push_back(fault.file);
    }
  }
  return repair;
}

}  // namespace doppler::formats
