// SplitSequence: saved sessions. They have the same bytes as those of one device, so that each goes on from what the
// other saved: a header, the keys of all layers, their values, then the states (KvCache::save).
#include <algorithm>

#include "base/bytes.h"
#include "model/split_sequence_native.h"

namespace doppler::model {
namespace {

constexpr uint64_t kHeader = sizeof(KvCache::SavedHeader);

void append(std::vector<uint8_t>& to, std::span<const uint8_t> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

Task<Result<std::vector<uint8_t>>> SplitSequence::save(uint32_t count) {
  std::vector<std::vector<uint8_t>> saved(parts_.size());
  for (size_t i = 0; !is_last(i); ++i) {
    DeviceModel* const model = parts_[i].model;
    DP_CO_CHECK(wait_for_part(i, [model, count, out = &saved[i]](SequenceRunner& steps) -> Result<void> {
      DP_TRY(*out, gpu::run_to_completion(model->device(), steps.save(count)));
      return {};
    }));
  }
  auto saving = last().save(count);
  DP_CO_TRY(saved.back(), co_await std::move(saving));
  std::vector<uint8_t> out;
  if (count == 0) co_return out;
  KvCache::SavedHeader header;
  std::vector<uint8_t> values, states;
  out.resize(kHeader);
  for (size_t i = 0; i < parts_.size(); ++i) {
    const KvCache::SavedHeader own = KvCache::saved_header(saved[i]);
    header = {.count = own.count, .first = std::max(header.first, own.first)};
    DP_CO_TRY(const uint64_t cache, parts_[i].model->cache().saved_bytes(own));
    const std::span<const uint8_t> bytes = saved[i];
    const uint64_t half = (cache - kHeader) / 2;
    append(out, bytes.subspan(kHeader, half));
    append(values, bytes.subspan(kHeader + half, half));
    append(states, bytes.subspan(cache));
  }
  std::ranges::copy(bytes_of(header), out.begin());
  append(out, values);
  append(out, states);
  co_return out;
}

Task<Result<void>> SplitSequence::restore(uint32_t count, std::span<const uint8_t> bytes) {
  struct Share {
    KvCache::SavedHeader header;
    uint64_t keys = 0, states = 0;
  };
  std::vector<Share> shares(count == 0 ? 0 : parts_.size());
  uint64_t keys = 0, wanted = count == 0 ? 0 : kHeader;
  for (size_t i = 0; i < shares.size(); ++i) {
    const KvCache& cache = parts_[i].model->cache();
    shares[i].header = KvCache::saved_header(bytes);
    if (!cache.has_windows()) shares[i].header.first = 0;
    DP_CO_TRY(const uint64_t own, cache.saved_bytes(shares[i].header));
    shares[i].keys = (own - kHeader) / 2;
    shares[i].states = parts_[i].model->one()->saved_state_bytes();
    keys += shares[i].keys;
    wanted += 2 * shares[i].keys + shares[i].states;
  }
  if (count != KvCache::saved_positions(bytes) || bytes.size() != wanted) {
    co_return fail(ErrorKind::kInvalidInput,
                   "The saved cache has %zu bytes for %u tokens; this model asks for %llu.", bytes.size(),
                   count, static_cast<unsigned long long>(wanted));
  }
  uint64_t key_at = kHeader, state_at = kHeader + 2 * keys;
  for (size_t i = 0; i < parts_.size(); ++i) {
    std::vector<uint8_t> own;
    if (count != 0) {
      const Share& share = shares[i];
      append(own, bytes_of(share.header));
      append(own, bytes.subspan(key_at, share.keys));
      append(own, bytes.subspan(key_at + keys, share.keys));
      append(own, bytes.subspan(state_at, share.states));
      key_at += share.keys;
      state_at += share.states;
    }
    if (is_last(i)) {
      auto restoring = last().restore(count, own);
      co_return co_await std::move(restoring);
    }
    DeviceModel* const model = parts_[i].model;
    DP_CO_CHECK(wait_for_part(i, [model, count, &own](SequenceRunner& steps) {
      return gpu::run_to_completion(model->device(), steps.restore(count, own));
    }));
  }
  co_return Result<void>();
}

}  // namespace doppler::model
