// Causal attention of the rows of this step over the cache, grouped heads (query head h reads kv head
// h / (n_heads / n_kv_heads)). Prefill: tiles with online softmax (Milakov and Gimelshein 2018; Dao et al.
// 2022), on the matrix units where there are any. A few rows (at most kMostFewRows): each as in decode, where the device
// can. Decode: split over the cache, then a combine (flash-decoding), so that long contexts use the whole
// device. Error bound: relative L2 < 1e-5 against double precision on the cache as stored;
// attention_prefill.matrix, which rounds q and the probabilities to f16: 1e-3.
#pragma once

#include "kernels/common/activation.h"
#include "kernels/context.h"
#include "kernels/rope/rope.h"

namespace doppler::kernels {

struct Attention {
  TensorView q;     // f32 [rows, n_heads * head_dim], rotated
  CacheView cache;  // holds keys and values of positions [0, pos + rows)
  Activation y;     // f32 [rows, n_heads * head_dim], and q8 and f16 if valid
  uint32_t n_heads = 0;
  float scale = 0;      // of q.k, usually head_dim^-0.5
  uint32_t window = 0;  // 0: all; W: the last W keys, the row's own included
  float softcap = 0;    // 0: none; c: logits = c * tanh(logits / c), before the mask
  TensorView sinks;     // optional f32 [n_heads]: one more logit in the denominator
  // Optional: what is to be rotated and written into this cache first, in the same dispatch where the variant can. q is
  // then rope->q_out. Must live until record() returns.
  const RopeKv* rope = nullptr;
  // Decode: the most keys this plan will be replayed with, 0: the context. Up to kShortKeys one dispatch does it all.
  uint32_t max_keys = 0;
  // Optional, decode: what reads y joins splits itself (joins_splits() of linear.h). A variant that leaves them to it says
  // here where they are, and writes no y; the others leave this invalid.
  SplitRow* splits = nullptr;
};
// Up to here one workgroup a head reads all keys in a few rounds of loads; more keys are worth the second dispatch that
// joins splits.
inline constexpr uint32_t kShortKeys = 512;
Result<void> record(Context& ctx, const Attention& op);

}  // namespace doppler::kernels
