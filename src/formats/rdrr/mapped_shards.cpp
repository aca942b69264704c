// make_mapped_shards() of rdrr_sources.h.
#include <algorithm>

#include "formats/rdrr/rdrr_sources.h"
#include "formats/rdrr/shard_gate.h"

namespace doppler::formats {
namespace {

// Asked of the system ahead of the reader: 128 MiB at the usual shard size, more than a disk gives in the time
// that one shard takes to upload.
constexpr uint64_t kPrefetchShards = 2;

class MappedShards final : public ByteSource {
 public:
  MappedShards(JoinedFiles files, const RdrrManifest& manifest, const std::string& folder, bool verify,
               const std::string& stamp_folder)
      : files_(std::move(files)), manifest_(manifest) {
    if (!verify) return;
    gate_ = make_shard_gate({.mapped = files_.source->mapped(),
                             .identities = files_.identities,
                             .folder = folder,
                             .stamp_folder = stamp_folder},
                            manifest_);
  }

  const std::string& name() const override { return files_.source->name(); }
  uint64_t size() const override { return files_.source->size(); }
  std::span<const uint8_t> mapped() const override { return files_.source->mapped(); }
  Task<Result<std::vector<uint8_t>>> read(uint64_t offset, uint64_t count) override {
    DP_CO_CHECK(check_range(*this, offset, count));
    DP_CO_CHECK(wait(offset, count));
    auto reading = files_.source->read(offset, count);
    co_return co_await std::move(reading);
  }
  Task<Result<>> ready(uint64_t offset, uint64_t count) const override {
    DP_CO_CHECK(check_range(*this, offset, count));
    DP_CO_CHECK(wait(offset, count));
    co_return co_await files_.source->ready(offset, count);
  }
  void will_read(uint64_t offset, uint64_t count) const override { files_.source->will_read(offset, count); }
  void done_with(uint64_t offset, uint64_t count) const override { files_.source->done_with(offset, count); }

 private:
  Result<> wait(uint64_t offset, uint64_t count) const {
    if (count == 0) return {};
    const uint64_t each = manifest_.shard_bytes;
    const uint64_t last = (offset + count - 1) / each;
    for (uint64_t shard = offset / each; gate_ && shard <= last; ++shard) {
      DP_CHECK(gate_->wait(static_cast<size_t>(shard)));
    }
    if (last + 1 > prefetched_) {
      const uint64_t first = std::max(prefetched_, last + 1);
      prefetched_ = last + 1 + kPrefetchShards;
      files_.source->will_read(first * each, (prefetched_ - first) * each);
    }
    return {};
  }

  JoinedFiles files_;
  const RdrrManifest& manifest_;
  std::unique_ptr<ShardGate> gate_;  // null: no shard is verified
  mutable uint64_t prefetched_ = 0;  // shards before this one are already requested
};

}  // namespace

std::unique_ptr<ByteSource> make_mapped_shards(JoinedFiles files, const RdrrManifest& manifest,
                                               const std::string& folder, bool verify,
                                               const std::string& stamp_folder) {
  return std::make_unique<MappedShards>(std::move(files), manifest, folder, verify, stamp_folder);
}

}  // namespace doppler::formats
