// The dense layers of a decode step in one dispatch, or a few, whose workgroups run together (persistent_layers.wgsl):
// norm, q k v, attention, output, gate and up, down. What linear/, attention/ and rope/ do in five dispatches a layer, with
// the arithmetic of the dp4a lane. Sound only while all workgroups run at the same time: probe.h counts how many do. Where
// one waits in vain all leave within a fraction of a second, and word kExchangeFault of the exchange is 1: the results are
// worthless then.
// Up to kShortKeys keys attention is one workgroup a head, beyond that splits of the keys that are joined.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/linear/linear.h"
#include "kernels/variant.h"

namespace doppler::kernels {

// Weights in tiles of 8-bit activations, at most two formats in all: q, k, output, gate and up in one, v (with k) and
// down in that or the other. A dispatch takes as many layers as share a buffer for their weights, one for their norms and
// one for their caches, within what may be bound (ranges.h).
struct PersistentLayer {
  std::vector<const Weight*> qkv;   // [Q + 2K, hidden], stacked in one part or two
  const Weight* out = nullptr;      // [hidden, Q]
  const Weight* gate_up = nullptr;  // [2 * ffn, hidden]; null: gate and up are not one weight
  const Weight* down = nullptr;     // [hidden, ffn]
  bool has_bias = false;            // of any product: refused
  TensorView ffn_norm, next_norm;   // f32 [hidden]; next_norm: of what reads this layer's output
  CacheView cache;
};

struct PersistentLayers {
  std::vector<PersistentLayer> layers;
  TensorView first_norm;  // f32 [hidden]: of the first layer
  TensorView row;         // f32 [hidden], the residual stream: read and written
  DeferredNorm next;      // written: of the reader behind the last layer, in 8 bits
  TensorView exchange;    // exchange_bytes(), zero at load, kept between dispatches
  uint32_t groups = 0;    // workgroups, which must run together; 0: none do
  std::string unfit;      // why the model cannot use this kernel, where its recording knows; else empty
  uint32_t n_heads = 0, hidden_dim = 0, ffn_dim = 0;
  float norm_eps = 0;
  ActivationFn activate = ActivationFn::kSilu;
  float scale = 0;  // of q.k
  uint32_t window = 0;
  uint32_t max_keys = 0;  // as in Attention
  // Rotation: as in RopeKv.
  TensorView table;
  uint32_t rotary_dim = 0;
  bool interleaved = false;
  float attention_factor = 1.0f;
};

// Best first; the last, the chain, is the caller's own recording: record() is not called for it.
std::span<const Variant<PersistentLayers>> decode_layers_variants();
// Chooses one of them and notes the choice. "": the persistent kernel is to be recorded; else why the chain is.
Result<std::string> refuse_persistent_layers(Context& ctx, const PersistentLayers& op);
Result<void> record(Context& ctx, const PersistentLayers& op);

// Invocations of a workgroup, and bytes of the exchange, which every plan of a model may share, whatever its max_keys.
uint32_t persistent_threads(const gpu::Caps& caps);
uint64_t exchange_bytes(const PersistentLayers& op, const gpu::Caps& caps);
// The exchange begins with words whose meaning persistent_arrive.wgsl names.
inline constexpr uint32_t kExchangeFault = 0, kExchangeMode = 1, kExchangeTogether = 4,
                          kExchangeCountingWords = 5, kExchangeCounters = 64;
inline constexpr uint32_t kExchangeModeProbe = 1;

}  // namespace doppler::kernels
