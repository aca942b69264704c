// Shared by the tests of decode and prefill: a case, its random cache with everything past the stored keys poisoned,
// and attention in double precision on the cache as stored.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <ostream>

#include "base/half.h"
#include "kernels/attention/variants.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {

inline constexpr double kBound = 1e-5;        // attention.h
inline constexpr double kMatrixBound = 1e-3;  // attention.h

// True if a variant rounds the values of a cache in q8_0 to f16 first.
inline bool is_unpacked(const KernelRun& run) {
  return std::ranges::any_of(run.choices(),
                             [](const Choice& c) { return c.operation == "attention_unpack"; });
}

struct AttentionCase {
  uint32_t n_heads = 8;
  uint32_t n_kv_heads = 2;
  uint32_t head_dim = 64;
  CacheFormat format = CacheFormat::kF16;
  uint32_t ctx_len = 512;
  uint32_t window = 0;
  float softcap = 0;
  bool sinks = false;
  bool q8 = false;
  float q_scale = 1;   // multiplies q: large logits
  uint32_t ahead = 0;  // keys after a row's own
  uint32_t span =
      0;  // rows see the keys of their own run of so many positions (Attention::spans); 0: no such table
};

inline void PrintTo(const AttentionCase& c, std::ostream* out) {
  *out << c.n_heads << " heads on " << c.n_kv_heads << ", head_dim " << c.head_dim << ", "
       << cache_format_name(c.format) << ", ctx_len " << c.ctx_len << ", window " << c.window << ", softcap "
       << c.softcap << (c.sinks ? ", sinks" : "") << (c.q8 ? ", q8" : "") << ", q x " << c.q_scale
       << ", ahead " << c.ahead << ", span " << c.span;
}

// An operation, and the forms of its result that a case asks for.
struct BoundAttention {
  Attention op;
  Rows y;
};

// Chooses a variant and records it, for a result in rows.
inline Result<void> record_attention(Context& ctx, const Attention& op, const Rows& y) {
  DP_TRY(const AttentionChoice choice, resolve_attention(ctx, op));
  return record(ctx, choice, op, y);
}

// One layer's data, and its views in one KernelRun.
class AttentionData {
 public:
  AttentionData(const AttentionCase& c, uint32_t max_rows)
      : case_(c), padded_((c.head_dim + 7) / 8 * 8), max_rows_(max_rows) {
    Random random(c.n_heads * 1000 + c.head_dim);
    q = normals(random, size_t{max_rows} * c.n_heads * c.head_dim, c.q_scale);
    const size_t rows = size_t{c.n_kv_heads} * c.ctx_len;
    k_ = normals(random, rows * c.head_dim, 1);
    v_ = normals(random, rows * c.head_dim, 1);
    sinks_ = normals(random, c.n_heads, 3);
    for (std::vector<float>* cache : {&k_, &v_}) {
      if (c.format == CacheFormat::kQ8_0) round_blocks(*cache);
      if (c.format != CacheFormat::kF16) continue;
      for (float& value : *cache) value = f16_to_f32(f32_to_f16(value));
    }
  }

  BoundAttention bind(KernelRun& run) {
    const uint64_t row = uint64_t{case_.n_heads} * case_.head_dim;
    Attention op{.q = run.input(q)};
    op.cache = {.format = case_.format,
                .n_kv_heads = case_.n_kv_heads,
                .ctx_len = case_.ctx_len,
                .head_dim = case_.head_dim};
    op.cache.k = run.input(stored(k_, case_.ctx_len));
    op.cache.v = run.input(stored(v_, case_.ctx_len));
    Rows y{.f32 = run.output(max_rows_ * row * sizeof(float))};
    if (case_.q8) y.q8 = run.output(q8_bytes(max_rows_, static_cast<uint32_t>(row)));
    if (case_.q8) y.f16 = run.output(f16_bytes(max_rows_, static_cast<uint32_t>(row)));
    op.n_heads = case_.n_heads;
    op.scale = 1 / std::sqrt(static_cast<float>(case_.head_dim));
    op.window = case_.window;
    op.softcap = case_.softcap;
    op.ahead = case_.ahead;
    if (case_.span != 0) op.spans = run.input(std::vector<uint32_t>(size_t{max_rows_} * 2));
    if (case_.sinks) op.sinks = run.input(sinks_);
    run.state.ctx_len = case_.ctx_len;
    return {.op = op, .y = y};
  }

  // From position `length` on, keys and values become NaN: a kernel that reads them shows it.
  void store(KernelRun& run, const Attention& op, uint32_t length) const {
    run.overwrite(op.cache.k, stored(k_, length));
    run.overwrite(op.cache.v, stored(v_, length));
  }

  // The spans of rows that begin at position pos.
  void store_spans(KernelRun& run, const Attention& op, uint32_t pos) const {
    if (case_.span == 0) return;
    std::vector<uint32_t> spans;
    for (uint32_t row = 0; row < max_rows_; ++row) {
      const uint32_t first = (pos + row) / case_.span * case_.span;
      spans.insert(spans.end(), {first, first + case_.span - 1});
    }
    run.overwrite(op.spans, spans);
  }

  // Rows [0, rows) of y when the first is at position pos.
  std::vector<double> want(uint32_t pos, uint32_t rows, float scale) const {
    std::vector<double> y;
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t head = 0; head < case_.n_heads; ++head)
        append(y, pos + row, row, pos + rows, head, double{scale});
    }
    return y;
  }

  // q as the matrix kernel sees it: multiplied by what its logits are multiplied by, and rounded to f16.
  void round_q(float scale) {
    const float factor = case_.softcap > 0 ? scale / case_.softcap : scale * 1.44269504f;
    for (float& value : q) value = f16_to_f32(f32_to_f16(value * factor)) / factor;
  }

  std::vector<float> q;

  // The first row of q, and key and value of a position, as a product leaves them for rope.
  std::vector<float> qkv(uint32_t position) const {
    std::vector<float> values(q.begin(), q.begin() + case_.n_heads * case_.head_dim);
    for (const std::vector<float>* cache : {&k_, &v_}) {
      for (uint32_t kv_head = 0; kv_head < case_.n_kv_heads; ++kv_head) {
        const float* row = at(*cache, kv_head, position);
        values.insert(values.end(), row, row + case_.head_dim);
      }
    }
    return values;
  }

  static std::vector<float> normals(Random& random, size_t count, float scale) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(random.normal()) * scale;
    return values;
  }
  std::vector<float>& keys() { return k_; }

 private:
  const float* at(const std::vector<float>& cache, uint32_t kv_head, uint32_t position) const {
    return &cache[(size_t{kv_head} * case_.ctx_len + position) * case_.head_dim];
  }

  void append(std::vector<double>& y, uint32_t position, uint32_t row, uint32_t length, uint32_t head,
              double scale) const {
    const uint32_t kv_head = head / (case_.n_heads / case_.n_kv_heads);
    const uint32_t own_end = std::min(position + 1, case_.ctx_len);
    uint32_t end = std::max(own_end, std::min({own_end + case_.ahead, length, case_.ctx_len}));
    uint32_t begin = case_.window != 0 && own_end > case_.window ? own_end - case_.window : 0;
    if (case_.span != 0) {
      begin = position / case_.span * case_.span;
      end = std::min(begin + case_.span, length);
    }
    const float* query = &q[(size_t{row} * case_.n_heads + head) * case_.head_dim];
    std::vector<double> logits;
    double top = case_.sinks ? double{sinks_[head]} : -std::numeric_limits<double>::infinity();
    for (uint32_t key = begin; key < end; ++key) {
      double dot = 0;
      for (uint32_t d = 0; d < case_.head_dim; ++d) dot += double{query[d]} * at(k_, kv_head, key)[d];
      dot *= scale;
      if (case_.softcap > 0) dot = case_.softcap * std::tanh(dot / case_.softcap);
      logits.push_back(dot);
      top = std::max(top, dot);
    }
    double sum = case_.sinks ? std::exp(sinks_[head] - top) : 0;
    for (double& logit : logits) sum += logit = std::exp(logit - top);
    const size_t first = y.size();
    y.resize(first + case_.head_dim);
    for (uint32_t key = begin; key < end; ++key) {
      for (uint32_t d = 0; d < case_.head_dim; ++d) {
        y[first + d] += logits[key - begin] / sum * at(v_, kv_head, key)[d];
      }
    }
  }

  // Rounds to values that blocks of q8_0 hold. A rounded block has a byte of 127, so that another rounding does not
  // change it.
  static void round_blocks(std::vector<float>& cache) {
    for (size_t begin = 0; begin < cache.size(); begin += kCacheBlock) {
      const float scale = scale_of(&cache[begin]);
      for (size_t i = begin; i < begin + kCacheBlock; ++i) cache[i] = std::round(cache[i] / scale) * scale;
    }
  }
  static float scale_of(const float* block) {
    float largest = 0;
    for (uint32_t i = 0; i < kCacheBlock; ++i) largest = std::max(largest, std::abs(block[i]));
    return f16_to_f32(f32_to_f16(largest / 127));
  }

  // rope.h, CacheView.
  std::vector<uint32_t> stored_q8_0(const std::vector<float>& cache, uint32_t length) const {
    const uint64_t row_bytes = CacheView{.format = case_.format, .head_dim = case_.head_dim}.row_bytes();
    const size_t rows = size_t{case_.n_kv_heads} * case_.ctx_len;
    std::vector<uint8_t> bytes(rows * row_bytes);
    for (size_t row = 0; row < rows; ++row) {
      const float* values = &cache[row * case_.head_dim];
      for (uint32_t d = 0; d < case_.head_dim; ++d) {
        const float scale = scale_of(&values[d / kCacheBlock * kCacheBlock]);
        bytes[row * row_bytes + d] =
            static_cast<uint8_t>(static_cast<int8_t>(std::lround(values[d] / scale)));
        const uint16_t bits = row % case_.ctx_len < length
                                  ? f32_to_f16(scale)
                                  : f32_to_f16(std::numeric_limits<float>::quiet_NaN());
        std::memcpy(&bytes[row * row_bytes + case_.head_dim + d / kCacheBlock * 2], &bits, 2);
      }
    }
    std::vector<uint32_t> words(bytes.size() / 4);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    return words;
  }

  // As the GPU holds it: padded with zeros, f16 in pairs or f32.
  std::vector<uint32_t> stored(const std::vector<float>& cache, uint32_t length) const {
    if (case_.format == CacheFormat::kQ8_0) return stored_q8_0(cache, length);
    const bool half = case_.format == CacheFormat::kF16;
    std::vector<uint32_t> words(size_t{case_.n_kv_heads} * case_.ctx_len * padded_ / (half ? 2 : 1));
    for (size_t row = 0; row < size_t{case_.n_kv_heads} * case_.ctx_len; ++row) {
      for (uint32_t d = 0; d < padded_; ++d) {
        float value = d < case_.head_dim ? cache[row * case_.head_dim + d] : 0.0f;
        if (row % case_.ctx_len >= length) value = std::numeric_limits<float>::quiet_NaN();
        const size_t index = row * padded_ + d;
        if (half) {
          words[index / 2] |= static_cast<uint32_t>(f32_to_f16(value)) << (16 * (index % 2));
        } else {
          words[index] = std::bit_cast<uint32_t>(value);
        }
      }
    }
    return words;
  }

  AttentionCase case_;
  uint32_t padded_;
  uint32_t max_rows_;
  std::vector<float> k_, v_, sinks_;
};

}  // namespace doppler::kernels::testing
