#include "formats/rdrr/rdrr_reader.h"

#include "base/log.h"
#include "formats/rdrr/integrity.h"
#include "formats/rdrr/rdrr_sources.h"

namespace doppler::formats {
namespace {

Task<Result<std::string>> read_manifest(FileSet& files) {
  auto opening = files.open(kRdrrManifestName);
  DP_CO_TRY(const std::unique_ptr<ByteSource> source, co_await std::move(opening));
  if (!source) {
    co_return fail(ErrorKind::kInvalidInput, "There is no %s in %s.", kRdrrManifestName,
                   files.root().c_str());
  }
  if (source->size() > kRdrrMaxManifestBytes) {
    co_return fail(ErrorKind::kInvalidInput, "%s has %s; at most %s are read.", source->name().c_str(),
                   format_bytes(source->size()).c_str(), format_bytes(kRdrrMaxManifestBytes).c_str());
  }
  auto reading = source->read(0, source->size());
  DP_CO_TRY(const std::vector<uint8_t> bytes, co_await std::move(reading));
  co_return std::string(bytes.begin(), bytes.end());
}

// A newer version may be hashed otherwise: that it is newer is then the sentence to give.
Unexpected hash_or_version(Error wrong_hash, std::string_view text, std::string_view name) {
  auto parsed = parse_rdrr_manifest(text, name);
  const bool unsupported = !parsed && parsed.error().kind() == ErrorKind::kUnsupported;
  return forward(unsupported ? std::move(parsed).error() : std::move(wrong_hash));
}

void log_unknown(const std::vector<std::string>& unknown, const std::string& name) {
  constexpr size_t kShown = 5;
  std::string list;
  for (size_t i = 0; i < unknown.size() && i < kShown; ++i) list += (i == 0 ? "" : ", ") + unknown[i];
  if (unknown.size() > kShown) list += format_text(" and %zu more", unknown.size() - kShown);
  if (!list.empty()) {
    log(LogLevel::kWarning, "%s has members that this build does not know: %s.", name.c_str(), list.c_str());
  }
}

}  // namespace

uint64_t rdrr_position(const RdrrManifest& manifest, const RdrrTensor& tensor) {
  return tensor.shard * manifest.shard_bytes + tensor.offset;
}

Task<Result<OpenRdrr>> open_rdrr(FileSet& files, RdrrOptions options) {
  const std::string name = files.root() + "/" + kRdrrManifestName;
  auto reading = read_manifest(files);
  DP_CO_TRY(const std::string text, co_await std::move(reading));
  OpenRdrr out;
  if (options.verify) {
    auto checking = check_rdrr_manifest_hash(text, name);
    auto checked = co_await std::move(checking);
    if (!checked) co_return hash_or_version(std::move(checked).error(), text, name);
    out.verified = *checked == HashCheck::kOk;
  }
  DP_CO_TRY(RdrrParsed parsed, parse_rdrr_manifest(text, name));
  log_unknown(parsed.unknown, name);
  out.unknown = std::move(parsed.unknown);
  out.manifest = std::make_unique<const RdrrManifest>(std::move(parsed.manifest));
  const RdrrManifest& manifest = *out.manifest;
  if (out.verified) {
    auto checking = check_rdrr_model_hash(manifest, name);
    if (auto checked = co_await std::move(checking); !checked) co_return forward(std::move(checked).error());
  } else {
    log(LogLevel::kWarning, "%s is NOT VERIFIED (manifest, %zu shards, %zu assets): %s.",
        files.root().c_str(), manifest.shards.size(), manifest.assets.size(),
        options.verify ? "this host cannot compute SHA-256" : "verification is switched off");
  }

  std::vector<JoinedPart> parts;
  for (const RdrrShard& shard : manifest.shards) parts.push_back({shard.file, shard.bytes});
  DP_CO_TRY(JoinedFiles joined, files.map_joined(parts));
  if (joined.source) {
    out.tensors =
        make_mapped_shards(std::move(joined), manifest, files.root(), out.verified, options.stamp_folder);
  } else {
    out.tensors =
        make_cached_shards(files, manifest, {.verify = out.verified, .cache_bytes = options.cache_bytes});
  }
  co_return out;
}

Task<Result<std::optional<std::vector<uint8_t>>>> read_rdrr_asset(FileSet& files,
                                                                  const RdrrManifest& manifest,
                                                                  std::string file, bool verify) {
  const RdrrAsset* const asset = manifest.asset(file);
  if (!asset) co_return std::optional<std::vector<uint8_t>>();
  auto opening = files.open(file);
  DP_CO_TRY(const std::unique_ptr<ByteSource> source, co_await std::move(opening));
  if (!source) {
    co_return fail(ErrorKind::kInvalidInput, "%s of %s is missing.", printable(file).c_str(),
                   files.root().c_str());
  }
  if (source->size() != asset->bytes) {
    co_return fail(ErrorKind::kInvalidInput, "%s is damaged: it has %llu bytes, but the manifest names %llu.",
                   source->name().c_str(), static_cast<unsigned long long>(source->size()),
                   static_cast<unsigned long long>(asset->bytes));
  }
  auto reading = source->read(0, source->size());
  DP_CO_TRY(std::vector<uint8_t> bytes, co_await std::move(reading));
  if (verify) {
    auto checking = check_rdrr_bytes(bytes, asset->sha256, source->name());
    if (auto checked = co_await std::move(checking); !checked) co_return forward(std::move(checked).error());
  }
  co_return std::optional(std::move(bytes));
}

}  // namespace doppler::formats
