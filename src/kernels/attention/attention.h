// Attention of the rows of this step over the cache. It is causal, or sees ahead in encoders' whole texts. Heads are
// grouped (query head h reads kv head h / (n_heads / n_kv_heads)).
// Prefill: tiles with online softmax (Milakov and Gimelshein 2018; Dao et al. 2022), on the matrix units if the device
// has them. A few rows (at most kMaxSkinnyRows, on a GPU without matrix units kMaxNarrowRows): each as in decode, if
// the device can. Decode: split over the cache, then a combine (flash-decoding), so that long contexts use the whole
// device.
// Error bound: relative L2 < 1e-5 against double precision on the cache as stored. It is 1e-3 for
// attention_prefill.matrix, which rounds q and the probabilities to f16, and for a cache in q8_0 that is copied to f16
// first (attention_unpack.wgsl).
#pragma once

#include <optional>
#include <variant>

#include "kernels/common/forms.h"
#include "kernels/context.h"
#include "kernels/rope/rope.h"

namespace doppler::kernels {

struct Attention {
  TensorView q;     // f32 [rows, n_heads * head_dim], rotated
  CacheView cache;  // holds keys and values of positions [0, pos + rows)
  uint32_t n_heads = 0;
  float scale = 0;      // of q.k, usually head_dim^-0.5
  uint32_t window = 0;  // 0: all; W: the last W keys, the row's own included
  uint32_t ahead = 0;   // keys of this step after the row's own that it sees too; 0: causal
  float softcap = 0;    // 0: none; c: logits = c * tanh(logits / c), before the mask
  TensorView sinks;     // optional f32 [n_heads]: one more logit in the denominator
  // Optional u32 [rows, 2]: the first and the last key that each row of a prompt sees, instead of `ahead` and of what
  // `window` says; a ring still holds the window. Neither is less than that of the row before in the same prompt. Not
  // with sinks.
  TensorView spans;
  // Optional: what is to be rotated and written into this cache first, in the same dispatch where the variant can. q is
  // then rope->q_out. Must live until record() returns.
  const RopeKv* rope = nullptr;
  // Variants that rotate: y is multiplied by the sigmoids of n_heads * head_dim values from this column of rope->qkv
  // on.
  std::optional<uint32_t> gate_column = std::nullopt;
  // Decode: the most keys this plan will be replayed with, 0: the context. Up to kShortKeys one dispatch does it all.
  uint32_t max_keys = 0;
  // Plans for many sequences: at most so many first rows belong to decoding slots, each row to its own, and are
  // attended each on its own. The rows after them belong to pieces of prompts. max_rows: there are no pieces. 0: one
  // sequence.
  uint32_t single_rows = 0;
  bool each_row = false;       // rows of pieces are attended each on its own too
  bool own_sequences = false;  // each row is of another sequence
  // Decode: what reads the result reduces splits of the keys itself (PrologueKind::kSplitPartials of linear/linear.h).
  bool reader_reduces = false;
};
inline constexpr uint64_t kSpanBytes = 8;  // of a row of Attention::spans
// Up to here one workgroup a head reads all keys in a few rounds of loads; more keys are worth the second dispatch that
// reduces splits.
inline constexpr uint32_t kShortKeys = 512;
// Likewise of rows of several sequences, where a workgroup for each of their heads fills half of a large GPU.
inline constexpr uint32_t kShortKeysOfRows = 1024;
// Tiles begin at whole multiples of their keys, and those of a copy to f16 at whole multiples of this. Up to one
// position less may be read before a window, and is masked.
inline constexpr uint32_t kMostTileKeys = 128;

// True if a plan of `rows` rows, each of a sequence, gains by knowing that no row has more than kShortKeysOfRows keys.
bool gains_by_short_keys(const Policy& policy, const gpu::Caps& caps, uint32_t n_heads, uint32_t n_kv_heads,
                         uint32_t rows);

// [rows, n_heads * head_dim] in the forms that are valid, or what AttentionChoice::leaves asks for.
using AttentionOutput = std::variant<Rows, SplitPartials>;

struct AttentionDecodeRow;   // attention/variants.h
struct AttentionPrefillRow;  // likewise

// The variant, chosen once. One of the two rows is there.
struct AttentionChoice {
  Choice choice;
  const AttentionDecodeRow* decode = nullptr;
  const AttentionPrefillRow* prefill = nullptr;
  // Splits that the variant leaves to the reader: their layout, without a buffer. Otherwise it writes Rows.
  std::optional<SplitPartials> leaves;
  bool rotates = false;  // it takes Attention::rope itself; otherwise record() rotates in a dispatch before
  // The kernel for the rows before the pieces of prompts, if a step has both; `prefill` is for the pieces then.
  const AttentionPrefillRow* singles = nullptr;
  std::optional<Choice> singles_choice;
};
// Errors: shapes that do not fit; no variant takes them.
Result<AttentionChoice> resolve_attention(const Context& ctx, const Attention& op);
Result<void> record(Context& ctx, const AttentionChoice& choice, const Attention& op,
                    const AttentionOutput& y);

}  // namespace doppler::kernels
