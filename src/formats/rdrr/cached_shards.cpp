// make_cached_shards() of rdrr_sources.h.
#include <algorithm>
#include <list>

#include "base/log.h"
#include "formats/rdrr/integrity.h"
#include "formats/rdrr/rdrr_sources.h"

namespace doppler::formats {
namespace {

class CachedShards final : public ByteSource {
 public:
  CachedShards(FileSet& files, const RdrrManifest& manifest, CachedShardsOptions options)
      : files_(files), manifest_(manifest), options_(options), open_(manifest.shards.size()) {}

  const std::string& name() const override { return files_.root(); }
  uint64_t size() const override {
    return (manifest_.shards.size() - 1) * manifest_.shard_bytes + manifest_.shards.back().bytes;
  }

  Task<Result<std::vector<uint8_t>>> read(uint64_t offset, uint64_t count) override {
    DP_CO_CHECK(check_range(*this, offset, count));
    std::vector<uint8_t> out;
    out.reserve(host_size(count));
    for (uint64_t end = offset + count; offset < end;) {
      const Part part = part_at(offset, end);
      auto reading = options_.verify ? from_cache(part) : from_file(part);
      DP_CO_TRY(const std::vector<uint8_t> bytes, co_await std::move(reading));
      out.insert(out.end(), bytes.begin(), bytes.end());
      offset += part.bytes;
    }
    co_return out;
  }

  Task<Result<std::vector<StreamPiece>>> stream_pieces(uint64_t offset, uint64_t count) const override {
    std::vector<StreamPiece> pieces;
    if (options_.verify) co_return pieces;  // the bytes that the host streams are not hashed
    DP_CO_CHECK(check_range(*this, offset, count));
    for (uint64_t end = offset + count; offset < end;) {
      const Part part = part_at(offset, end);
      auto opening = opened(part.shard);
      DP_CO_TRY(const ByteSource* const source, co_await std::move(opening));
      const auto stream = source->stream_id();
      if (!stream) co_return std::vector<StreamPiece>();
      pieces.push_back({*stream, part.offset, part.bytes});
      offset += part.bytes;
    }
    co_return pieces;
  }

 private:
  struct Part {
    size_t shard;
    uint64_t offset, bytes;
  };
  struct Kept {
    size_t shard;
    std::vector<uint8_t> bytes;
  };

  Part part_at(uint64_t offset, uint64_t end) const {
    const uint64_t within = offset % manifest_.shard_bytes;
    return {host_size(offset / manifest_.shard_bytes), within,
            std::min(end - offset, manifest_.shard_bytes - within)};
  }

  Task<Result<ByteSource*>> opened(size_t shard) const {
    if (!open_[shard]) {
      const RdrrShard& entry = manifest_.shards[shard];
      auto opening = files_.open(entry.file);
      DP_CO_TRY(std::unique_ptr<ByteSource> source, co_await std::move(opening));
      if (!source) {
        co_return fail(ErrorKind::kIo, "%s of %s is missing.", entry.file.c_str(), files_.root().c_str());
      }
      if (source->size() != entry.bytes) {
        co_return fail(ErrorKind::kInvalidInput,
                       "%s is damaged: it has %llu bytes, but the manifest names %llu.",
                       source->name().c_str(), static_cast<unsigned long long>(source->size()),
                       static_cast<unsigned long long>(entry.bytes));
      }
      open_[shard] = std::move(source);
    }
    co_return open_[shard].get();
  }

  Task<Result<std::vector<uint8_t>>> from_file(Part part) {
    auto opening = opened(part.shard);
    DP_CO_TRY(ByteSource* const source, co_await std::move(opening));
    auto reading = source->read(part.offset, part.bytes);
    co_return co_await std::move(reading);
  }

  Task<Result<std::vector<uint8_t>>> from_cache(Part part) {
    auto it = std::ranges::find(kept_, part.shard, &Kept::shard);
    if (it == kept_.end()) {
      auto fetching = fetch_twice(part.shard);
      DP_CO_TRY(std::vector<uint8_t> bytes, co_await std::move(fetching));
      make_room(bytes.size());
      kept_bytes_ += bytes.size();
      kept_.push_front({part.shard, std::move(bytes)});
    } else {
      kept_.splice(kept_.begin(), kept_, it);
    }
    const auto begin = kept_.front().bytes.begin() + static_cast<ptrdiff_t>(part.offset);
    co_return std::vector<uint8_t>(begin, begin + static_cast<ptrdiff_t>(part.bytes));
  }

  void make_room(uint64_t bytes) {
    while (!kept_.empty() && kept_bytes_ + bytes > options_.cache_bytes) {
      kept_bytes_ -= kept_.back().bytes.size();
      kept_.pop_back();
    }
  }

  // A shard from a network may have been damaged on the way: it is fetched again once.
  Task<Result<std::vector<uint8_t>>> fetch_twice(size_t shard) {
    auto first = fetch(shard);
    auto bytes = co_await std::move(first);
    if (bytes || bytes.error().kind() != ErrorKind::kInvalidInput) co_return bytes;
    log(LogLevel::kWarning, "%s It is fetched again.", bytes.error().sentence().c_str());
    open_[shard].reset();
    auto second = fetch(shard);
    co_return co_await std::move(second);
  }

  Task<Result<std::vector<uint8_t>>> fetch(size_t shard) {
    const RdrrShard& entry = manifest_.shards[shard];
    auto reading = from_file({shard, 0, entry.bytes});
    DP_CO_TRY(std::vector<uint8_t> bytes, co_await std::move(reading));
    const std::string shown = open_[shard]->name();
    auto checking = check_rdrr_bytes(bytes, entry.sha256, shown);
    if (auto checked = co_await std::move(checking); !checked) co_return forward(std::move(checked).error());
    co_return std::move(bytes);
  }

  FileSet& files_;
  const RdrrManifest& manifest_;
  const CachedShardsOptions options_;
  mutable std::vector<std::unique_ptr<ByteSource>> open_;  // empty until needed
  std::list<Kept> kept_;                                   // most recently used first
  uint64_t kept_bytes_ = 0;
};

}  // namespace

std::unique_ptr<ByteSource> make_cached_shards(FileSet& files, const RdrrManifest& manifest,
                                               CachedShardsOptions options) {
  return std::make_unique<CachedShards>(files, manifest, options);
}

}  // namespace doppler::formats
