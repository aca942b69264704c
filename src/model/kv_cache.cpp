// kv_cache.h.
#include "model/kv_cache.h"

#include <algorithm>
#include <cstring>

namespace doppler::model {
Task<Result<gpu::Buffer*>> KvCache::buffer(gpu::Device& device, gpu::PlanBuilder& builder, const char* name,
                                           uint64_t bytes, kernels::TensorView* view) {
  gpu::BufferDesc desc{.name = name, .bytes = (bytes + 255) / 256 * 256, .use = gpu::BufferUse::kStorage};
  DP_CO_TRY(gpu::Buffer made, co_await device.create_buffer(std::move(desc)));
  buffers_.push_back(std::make_unique<gpu::Buffer>(std::move(made)));
  *view = builder.external(*buffers_.back());
  co_return buffers_.back().get();
}

Task<Result<void>> KvCache::make(gpu::Device& device, gpu::PlanBuilder& builder,
                                 const formats::ModelConfig& config, const CacheLayout& layout) {
  lengths_ = layout.lengths;
  for (uint32_t i = 0; i < config.n_layers + config.next_layers; ++i) {
    views_.push_back(cache_shape(config, i, lengths_, layout.format));
    kernels::CacheView& view = views_.back();
    view.in_windows = layout.window_blocks != 0 && formats::is_sliding_layer(config, i);
    view.blocks = view.in_windows ? layout.window_blocks : layout.blocks;
    view.block_len = layout.block_len;
    if (!formats::has_cache(config, i) || !config.part.has(i)) continue;
    layers_.push_back({.index = i, .has_window = formats::is_sliding_layer(config, i)});
    if (layers_.back().has_window) window_ = config.sliding_window;
  }
  if (window_ == 0) lengths_.ring_len = 0;  // layers with a window are elsewhere
  const gpu::Caps& caps = device.caps();
  const uint64_t step = caps.binding_alignment;
  const uint64_t each = (views_.front().bytes() + step - 1) / step * step;
  const uint64_t most = std::min(caps.max_binding_bytes, caps.max_buffer_bytes) / (2 * each);
  if (layout.is_joined && most > 0) {
    for (uint64_t first = 0; first < layers_.size(); first += most) {
      const uint64_t count = std::min<uint64_t>(most, layers_.size() - first);
      kernels::TensorView all;
      DP_CO_TRY(gpu::Buffer * made, co_await buffer(device, builder, "cache", 2 * count * each, &all));
      for (uint64_t i = 0; i < count; ++i) {
        Layer& layer = layers_[first + i];
        kernels::CacheView& view = views_[layer.index];
        layer.k = {made, 2 * i * each, 0};
        layer.v = {made, (2 * i + 1) * each, 0};
        view.k = all.sub(layer.k.offset, view.bytes());
        view.v = all.sub(layer.v.offset, view.bytes());
      }
    }
    co_return Result<void>();
  }
  for (Layer& layer : layers_) {
    kernels::CacheView& view = views_[layer.index];
    layer.k.block_bytes = layer.v.block_bytes = view.bytes() / view.blocks;
    layer.k.in_windows = layer.v.in_windows = view.in_windows;
    DP_CO_TRY(layer.k.buffer, co_await buffer(device, builder, "cache_k", view.bytes(), &view.k));
    DP_CO_TRY(layer.v.buffer, co_await buffer(device, builder, "cache_v", view.bytes(), &view.v));
  }
  co_return Result<void>();
}

std::vector<CachePlace> KvCache::places() const {
  std::vector<CachePlace> out;
  for (const Layer& layer : layers_) out.push_back(layer.k);
  for (const Layer& layer : layers_) out.push_back(layer.v);
  return out;
}

uint64_t KvCache::bytes() const {
  uint64_t bytes = 0;
  for (const Layer& layer : layers_) bytes += 2 * views_[layer.index].bytes();
  return bytes;
}

// The row at `count` sees window_ - 1 positions before it.
uint32_t KvCache::continues_from(uint32_t count) const {
  return held_from_ == 0 || count >= held_from_ + window_ - 1 ? count : 0;
}

Result<void> KvCache::begin(uint32_t pos) {
  if (continues_from(pos) != pos) {
    return fail(ErrorKind::kInternal,
                "Position %u is to be continued, but layers with a window of %u hold positions from %u on.",
                pos, window_, held_from_);
  }
  if (pos == 0) held_from_ = 0;
  return {};
}

void KvCache::note_end(uint32_t end) {
  if (lengths_.ring_len != 0 && end > lengths_.ring_len) {
    held_from_ = std::max(held_from_, end - lengths_.ring_len);
  }
}

// Where positions [from, to) of a head lie: two stretches where they go around the end of a ring.
std::vector<KvCache::Stretch> KvCache::stretches(const Layer& layer, uint32_t head, uint32_t from,
                                                 uint32_t to) const {
  const kernels::CacheView& view = views_[layer.index];
  const auto kept = static_cast<uint32_t>(view.positions());
  std::vector<Stretch> out;
  while (from < to) {
    const uint32_t place = from % kept, rows = std::min(to - from, kept - place);
    out.push_back(
        {.offset = (uint64_t{head} * kept + place) * view.row_bytes(), .bytes = rows * view.row_bytes()});
    from += rows;
  }
  return out;
}

Task<Result<std::vector<uint8_t>>> KvCache::save(gpu::Device& device, uint32_t count) const {
  std::vector<uint8_t> out;
  if (count == 0) co_return out;
  const SavedHeader header{.count = count, .first = held_from_};
  out.resize(sizeof(header));
  std::memcpy(out.data(), &header, sizeof(header));
  for (const CachePlace Layer::* side : {&Layer::k, &Layer::v}) {
    for (const Layer& layer : layers_) {
      const uint32_t first = layer.has_window ? header.first : 0;
      for (uint32_t head = 0; head < views_[layer.index].n_kv_heads; ++head) {
        for (const Stretch& part : stretches(layer, head, first, count)) {
          const CachePlace& place = layer.*side;
          const gpu::BufferSlice from{
              .buffer = place.buffer->id(), .offset = place.offset + part.offset, .bytes = part.bytes};
          DP_CO_TRY(const std::vector<uint8_t> bytes, co_await device.read_buffer(from));
          out.insert(out.end(), bytes.begin(), bytes.end());
        }
      }
    }
  }
  co_return out;
}

KvCache::SavedHeader KvCache::saved_header(std::span<const uint8_t> bytes) {
  SavedHeader header;
  if (bytes.size() >= sizeof(header)) std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

Result<uint64_t> KvCache::saved_bytes(SavedHeader header) const {
  if (header.count == 0) return uint64_t{0};
  const bool is_whole = header.first == 0;
  const uint64_t seen = uint64_t{header.first} + window_ - 1;  // the last row may see no earlier ones
  if (header.count > lengths_.ctx_len || (!is_whole && (window_ == 0 || header.count < seen))) {
    return fail(ErrorKind::kInvalidInput,
                "The saved cache has %u tokens, of layers with a window those from %u on; this model has a "
                "window of %u and a context of %u.",
                header.count, header.first, window_, lengths_.ctx_len);
  }
  uint64_t wanted = sizeof(header);
  for (const Layer& layer : layers_) {
    const kernels::CacheView& view = views_[layer.index];
    const uint32_t first = layer.has_window ? header.first : 0;
    wanted += 2 * uint64_t{view.n_kv_heads} * view.row_bytes() * (header.count - first);
  }
  return wanted;
}

Result<uint64_t> KvCache::saved_bytes(std::span<const uint8_t> bytes) const {
  const SavedHeader header = saved_header(bytes);
  DP_TRY(const uint64_t wanted, saved_bytes(header));
  if (bytes.size() < wanted) {
    return fail(ErrorKind::kInvalidInput,
                "The saved cache has %zu bytes for %u tokens; this model asks for %llu.", bytes.size(),
                header.count, static_cast<unsigned long long>(wanted));
  }
  return wanted;
}

Task<Result<void>> KvCache::restore(gpu::Device& device, std::span<const uint8_t> bytes) {
  const SavedHeader header = saved_header(bytes);
  size_t offset = header.count == 0 ? 0 : sizeof(header);
  for (const CachePlace Layer::* side : {&Layer::k, &Layer::v}) {
    for (const Layer& layer : layers_) {
      const kernels::CacheView& view = views_[layer.index];
      const uint32_t first = layer.has_window ? header.first : 0;
      const auto kept = static_cast<uint32_t>(view.positions());
      const uint32_t from = std::max(first, header.count - std::min(header.count, kept));
      for (uint32_t head = 0; head < view.n_kv_heads; ++head) {
        offset += (from - first) * view.row_bytes();
        for (const Stretch& part : stretches(layer, head, from, header.count)) {
          const CachePlace& place = layer.*side;
          DP_CO_CHECK(co_await device.upload(*place.buffer, place.offset + part.offset,
                                             bytes.subspan(offset, part.bytes)));
          offset += part.bytes;
        }
      }
    }
  }
  held_from_ = header.first;
  note_end(header.count);
  co_return Result<void>();
}

}  // namespace doppler::model
