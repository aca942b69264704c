// The dense layers of a decode step in one dispatch, or a few, whose workgroups are co-resident
// (persistent_layers.wgsl): norm, q k v, attention, output, gate and up, down; optionally biases, norms of the heads of
// q and k, norms after the branches (Gemma 3), and layers with a window and a rope table of their own. It does the work
// of five dispatches a layer of linear/, attention/ and rope/, with the arithmetic of the dp4a lane. Sound only while
// all workgroups run at the same time: probe.h counts how many do. If one waits in vain, all leave within a fraction of
// a second, and word kExchangeFault of the exchange is 1: the results are worthless then.
// Up to kShortKeys keys attention is one workgroup a head, beyond that splits of the keys that are reduced.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/linear/linear.h"
#include "kernels/variant.h"

namespace doppler::kernels {

// Weights in tiles of 8-bit activations, at most two formats in all: q, k, output, gate and up in one, v (with k) and
// down in that or the other. A dispatch takes as many layers as share a buffer for their weights, one for their norms
// and biases and one for their caches, within what may be bound (ranges.h); both rope tables are in one buffer,
// likewise.
struct PersistentLayer {
  std::vector<const Weight*> qkv;   // [Q + 2K, hidden], stacked in one part or two
  const Weight* out = nullptr;      // [hidden, Q]
  const Weight* gate_up = nullptr;  // [2 * ffn, hidden]; null: gate and up are not one weight
  const Weight* down = nullptr;     // [hidden, ffn]
  TensorView ffn_norm, next_norm;   // f32 [hidden]; next_norm: of what reads this layer's output
  CacheView cache;
  bool is_sliding = false;  // PersistentLayers::sliding is for this layer
  // Optional, and then there in every layer.
  std::vector<TensorView> qkv_bias;  // f32, as many as `qkv` has parts: [Q + 2K] in all
  TensorView out_bias, down_bias;    // f32 [hidden]
  TensorView gate_up_bias;           // f32 [2 * ffn]
  TensorView qk_norms;               // f32 [2, head_dim], as RopeKv::norms; its epsilon is norm_eps
  // f32 [hidden], both or none: x += rms_norm(branch) * weight, of attention's branch and of the feed-forward's
  // (AddRmsNorm).
  TensorView post_attention_norm, post_ffn_norm;
};

// The attention of the layers that slide, if it differs from the others'.
struct SlidingAttention {
  uint32_t window = 0;
  TensorView table;  // of as many pairs as the others'
  float attention_factor = 1.0f;
};

struct PersistentLayers {
  std::vector<PersistentLayer> layers;
  TensorView first_norm;  // f32 [hidden]: of the first layer
  TensorView row;         // f32 [hidden], the residual stream: read and written
  DeferredNorm next;      // written: for the reader after the last layer, in 8 bits
  TensorView exchange;    // exchange_bytes(), zero at load, kept between dispatches
  uint32_t groups = 0;    // workgroups, which must be co-resident; 0: none do
  std::string unfit;      // why the model cannot use this kernel, if its recording knows; else empty
  uint32_t n_heads = 0, hidden_dim = 0, ffn_dim = 0;
  float norm_eps = 0;
  ActivationFn activate = ActivationFn::kSilu;
  float scale = 0;  // of q.k
  uint32_t window = 0;
  float softcap = 0;      // of the logits
  uint32_t max_keys = 0;  // these three as in Attention
  // Rotation: as in RopeKv.
  TensorView table;
  uint32_t rotary_dim = 0;
  bool interleaved = false;
  float attention_factor = 1.0f;
  SlidingAttention sliding;  // read where a layer is_sliding
};

// Best first; the last, the chain, is the caller's own recording: record() is not called for it.
std::span<const Variant<PersistentLayers>> decode_layers_variants();
// Chooses a variant and notes the choice. "": the persistent kernel is to be recorded; else why the chain is.
Result<std::string> refuse_persistent_layers(Context& ctx, const PersistentLayers& op);
Result<void> record(Context& ctx, const PersistentLayers& op);

// Invocations of a workgroup, and bytes of the exchange, which all plans of a model may share, whatever their max_keys
// and norms: only the number of layers and the first one's cache are read, besides n_heads, hidden_dim, ffn_dim and
// groups.
uint32_t persistent_threads(const gpu::Caps& caps);
uint64_t exchange_bytes(const PersistentLayers& op, const gpu::Caps& caps);
// The exchange begins with words whose meaning persistent_arrive.wgsl names.
inline constexpr uint32_t kExchangeFault = 0, kExchangeMode = 1, kExchangeCoResident = 4,
                          kExchangeCountingWords = 5, kExchangeCounters = 64;
inline constexpr uint32_t kExchangeModeProbe = 1;

}  // namespace doppler::kernels
