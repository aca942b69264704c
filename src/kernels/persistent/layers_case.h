// Random dense layers for the tests of the persistent kernel, bound to a run in the way that it and the chain take.
// Read next: layers_test.cpp.
#pragma once

#include <cmath>
#include <cstring>
#include <memory>
#include <ostream>

#include "base/half.h"
#include "kernels/linear/test_weights.h"
#include "kernels/persistent/layers.h"

namespace doppler::kernels::testing {

struct Case {
  uint32_t n_layers = 2, hidden = 64, ffn = 96, n_heads = 4, n_kv_heads = 2, head_dim = 16;
  WeightFormat format = WeightFormat::kTileQ4, other = WeightFormat::kTileQ6;
  uint32_t window = 0;
  bool interleaved = false;
  CacheFormat cache = CacheFormat::kF16;
  bool alone = false;       // one workgroup does all
  uint32_t dispatches = 1;  // the layers' weights lie in so many buffers
  uint32_t context = 96;    // more than kShortKeys: splits of the keys
  bool biases = false, qk_norms = false, post_norms = false;
  uint32_t sliding_window = 0;  // not 0: of every other layer, which has a rope table of its own too
  float softcap = 0;

  uint32_t q() const { return n_heads * head_dim; }
  uint32_t kv() const { return n_kv_heads * head_dim; }
};

inline void PrintTo(const Case& c, std::ostream* out) {
  *out << c.n_layers << " layers of " << c.hidden << ", ffn " << c.ffn << ", " << c.n_heads << " heads on "
       << c.n_kv_heads << " of " << c.head_dim << ", " << weight_format_info(c.format).name << " and "
       << weight_format_info(c.other).name << ", window " << c.window << ", " << c.dispatches << " dispatches"
       << (c.biases ? ", biases" : "") << (c.qk_norms ? ", norms of q and k" : "")
       << (c.post_norms ? ", norms after the branches" : "") << ", sliding " << c.sliding_window
       << ", softcap " << c.softcap;
}

inline constexpr float kEps = 1e-5f;

// Bytes of several tensors in one buffer, each at a binding's alignment.
struct Arena {
  std::vector<uint8_t> bytes;
  uint64_t add(std::span<const uint8_t> more) {
    const uint64_t at = (bytes.size() + 255) / 256 * 256;
    bytes.resize(at + more.size());
    std::memcpy(bytes.data() + at, more.data(), more.size());
    return at;
  }
};

struct TestLayer {
  std::vector<TestWeight> qkv;
  TestWeight out, gate_up, down;
};

// One set of layers, bound to a run in the way that both kernels take.
struct Model {
  explicit Model(const Case& shape) : c(shape) {
    for (uint32_t i = 0; i < c.n_layers; ++i) {
      const bool mixed = i % 2 == 1 && c.other != c.format;
      const uint64_t seed = 10 * i;
      TestLayer layer;
      if (mixed) {
        layer.qkv = {random_weight(c.format, c.q() + c.kv(), c.hidden, seed + 1),
                     random_weight(c.other, c.kv(), c.hidden, seed + 2)};
      } else {
        layer.qkv = {random_weight(c.format, c.q() + 2 * c.kv(), c.hidden, seed + 1)};
      }
      layer.out = random_weight(c.format, c.hidden, c.q(), seed + 3);
      layer.gate_up = random_weight(c.format, 2 * c.ffn, c.hidden, seed + 4);
      layer.down = random_weight(mixed ? c.other : c.format, c.hidden, c.ffn, seed + 5);
      layers.push_back(std::move(layer));
    }
  }
  Case c;
  std::vector<TestLayer> layers;
};

class Bound {
 public:
  Bound(KernelRun& run, const Model& model) : c_(model.c) {
    std::vector<Arena> arenas(c_.dispatches);
    struct Placed {
      Weight* weight;
      uint32_t arena;
      uint64_t at;
    };
    std::vector<Placed> places;
    uint32_t arena = 0;
    const auto place = [&](const TestWeight& weight) {
      weights_.push_back(
          std::make_unique<Weight>(Weight{.format = weight.format, .n = weight.n, .k = weight.k}));
      const std::vector<uint8_t> bytes = weight.piece(0, weight.n);
      places.push_back({weights_.back().get(), arena, arenas[arena].add(bytes)});
      weights_.back()->pieces = {{.buffer = {.bytes = bytes.size()}, .rows = weight.n}};
      return weights_.back().get();
    };
    CacheView cache{
        .format = c_.cache, .n_kv_heads = c_.n_kv_heads, .ctx_len = c_.context, .head_dim = c_.head_dim};
    const uint64_t cache_bytes = (cache.bytes() + 255) / 256 * 256;
    history_ = random_floats(cache_bytes * 2 * c_.n_layers / 4, 5, 0.5f);
    if (c_.cache == CacheFormat::kF16) {
      for (float& word : history_) {
        const uint16_t half = f32_to_f16(word);
        word = std::bit_cast<float>(half | uint32_t{half} << 16);
      }
    }
    cache_ = run.inout(history_);
    for (uint32_t i = 0; i < c_.n_layers; ++i) {
      const TestLayer& from = model.layers[i];
      arena = i * c_.dispatches / c_.n_layers;
      PersistentLayer layer;
      for (const TestWeight& part : from.qkv) layer.qkv.push_back(place(part));
      layer.out = place(from.out);
      layer.gate_up = place(from.gate_up);
      layer.down = place(from.down);
      cache.k = cache_.sub(2 * i * cache_bytes, cache_bytes);
      cache.v = cache_.sub((2 * i + 1) * cache_bytes, cache_bytes);
      layer.cache = cache;
      layer.is_sliding = c_.sliding_window != 0 && i % 2 == 0;
      op.layers.push_back(layer);
    }
    std::vector<TensorView> all;
    for (const Arena& made : arenas) all.push_back(run.input(made.bytes));
    for (const Placed& placed : places) {
      TensorView& buffer = placed.weight->pieces[0].buffer;
      buffer = all[placed.arena].sub(placed.at, buffer.bytes);
    }
    bind_vectors(run);
    row_ = random_floats(c_.hidden, 77);
    op.row = run.inout(row_);
    op.next = {.buffer = run.output(DeferredNorm::bytes(c_.hidden, true)),
               .weight = op.layers.back().next_norm,
               .k = c_.hidden,
               .eps = kEps,
               .q8 = true};
    op.n_heads = c_.n_heads;
    op.hidden_dim = c_.hidden;
    op.ffn_dim = c_.ffn;
    op.norm_eps = kEps;
    op.scale = 0.25f / std::sqrt(static_cast<float>(c_.head_dim));  // or one key takes all
    op.window = c_.window;
    op.softcap = c_.softcap;
    Arena tables;
    const auto add_table = [&](double base) {
      std::vector<double> steps;
      for (uint32_t i = 0; i < c_.head_dim / 2; ++i) steps.push_back(std::pow(base, -2.0 * i / c_.head_dim));
      const std::vector<uint32_t> words = make_rope_table(steps);
      return tables.add({reinterpret_cast<const uint8_t*>(words.data()), words.size() * 4});
    };
    const uint64_t table = add_table(1e4), sliding_table = add_table(100);
    const TensorView both = run.input(tables.bytes);
    op.table = both.sub(table, c_.head_dim * 4);
    op.sliding = {.window = c_.sliding_window,
                  .table = both.sub(sliding_table, c_.head_dim * 4),
                  .attention_factor = 1.25f};
    op.rotary_dim = c_.head_dim;
    op.interleaved = c_.interleaved;
  }

  void reset(KernelRun& run) {
    run.overwrite(op.row, row_);
    run.overwrite(cache_, history_);
  }
  std::vector<float> row(KernelRun& run) { return run.read<float>(op.row, c_.hidden); }
  std::vector<uint32_t> cache_words(KernelRun& run) { return run.read<uint32_t>(cache_, history_.size()); }
  std::vector<float> cache_values(KernelRun& run) {
    if (c_.cache == CacheFormat::kF32) return run.read<float>(cache_, history_.size());
    std::vector<float> values;
    for (const uint16_t bits : run.read<uint16_t>(cache_, history_.size() * 2))
      values.push_back(f16_to_f32(bits));
    return values;
  }

  PersistentLayers op;

 private:
  // Norms and biases, in one buffer.
  void bind_vectors(KernelRun& run) {
    struct Vector {
      TensorView* view;
      uint64_t at, floats;
    };
    Arena arena;
    std::vector<Vector> made;
    const auto add = [&](TensorView& view, uint32_t floats, float plus, float spread) {
      std::vector<float> values = random_floats(floats, 900 + made.size(), spread);
      for (float& value : values) value += plus;
      made.push_back(
          {&view, arena.add({reinterpret_cast<const uint8_t*>(values.data()), floats * 4ull}), floats});
    };
    add(op.first_norm, c_.hidden, 1, 0.1f);
    for (PersistentLayer& layer : op.layers) {
      for (TensorView* norm : {&layer.ffn_norm, &layer.next_norm}) add(*norm, c_.hidden, 1, 0.1f);
      if (c_.qk_norms) add(layer.qk_norms, 2 * c_.head_dim, 1, 0.1f);
      if (c_.post_norms) {
        for (TensorView* norm : {&layer.post_attention_norm, &layer.post_ffn_norm})
          add(*norm, c_.hidden, 1, 0.1f);
      }
      if (!c_.biases) continue;
      layer.qkv_bias.resize(layer.qkv.size());
      for (size_t i = 0; i < layer.qkv.size(); ++i) add(layer.qkv_bias[i], layer.qkv[i]->n, 0, 0.5f);
      for (TensorView* bias : {&layer.out_bias, &layer.down_bias}) add(*bias, c_.hidden, 0, 0.5f);
      add(layer.gate_up_bias, 2 * c_.ffn, 0, 0.5f);
    }
    const TensorView vectors = run.input(arena.bytes);
    for (const Vector& vector : made) *vector.view = vectors.sub(vector.at, vector.floats * 4);
  }

  Case c_;
  std::vector<std::unique_ptr<Weight>> weights_;
  TensorView cache_;
  std::vector<float> history_, row_;
};

}  // namespace doppler::kernels::testing
