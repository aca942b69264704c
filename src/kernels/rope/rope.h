// Rotary position embedding (Su et al. 2021) of q and k, and the write of k and v into the cache.
// Scalings (linear, llama3, yarn, longrope, partial) are in the frequencies and the attention factor, which
// the host computes (RopeTable); the kernel multiplies them with the position in 64-bit fixed point, so that
// angles stay accurate to 1e-6 at any context length, and evaluates sine and cosine by polynomial (WGSL's own
// are only good to 2^-11).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/context.h"

namespace doppler::kernels {

enum class CacheFormat : uint8_t { kF16, kF32, kQ8_0 };
const char* cache_format_name(CacheFormat format);  // as flags and options name it: "f16", "f32", "q8_0"
std::optional<CacheFormat> cache_format_of(std::string_view name);
// Values of a kQ8_0 block: head_dim is a multiple.
inline constexpr uint32_t kCacheBlock = 32;

// One layer's K or V: [blocks, n_kv_heads, block_len, padded_head_dim], f16 (two per u32; no f16 feature needed), f32,
// or rows of q8_0: head_dim signed bytes, then an f16 scale for each 32 bytes, then zeros to a multiple of 8 bytes.
// padded_head_dim = head_dim rounded up to 8, the padding zero. Plans of one sequence have one block of ctx_len
// positions, or of ring_len, where position p lies at p % ring_len: no less than the window and the rows of a step,
// since all rows are written before the first is attended. In plans of many, tables say which blocks are whose
// (common/step_tables.h).
struct CacheView {
  TensorView k, v;
  CacheFormat format = CacheFormat::kF16;
  uint32_t n_kv_heads = 0;
  uint32_t ctx_len = 0;  // positions that a sequence has at most
  uint32_t head_dim = 0;
  uint32_t ring_len = 0;               // positions that the layer keeps; 0: all
  uint32_t blocks = 1, block_len = 0;  // of plans of many sequences
  bool in_windows = false;             // there: the blocks are those of the table of layers with windows
  uint32_t padded_head_dim() const { return (head_dim + 7) / 8 * 8; }
  // The bytes of k or of v.
  uint64_t bytes() const { return positions() * n_kv_heads * row_bytes(); }
  // The bytes of one position of one head.
  uint64_t row_bytes() const;
  // The positions of all sequences.
  uint64_t positions() const {
    if (block_len != 0) return uint64_t{blocks} * block_len;
    return ring_len != 0 ? ring_len : ctx_len;
  }
};

// The GPU table: per pair i, round(inv_freq[i] / (2 pi) * 2^64) as two u32 (low, high).
std::vector<uint32_t> make_rope_table(std::span<const double> inv_freq);

// The position by which heads rotate.
enum class RopePlaces : uint8_t {
  kRow,            // the row's
  kShifted,        // the row's plus a number that RopeKv::table has: text after pictures
  kShiftedBySlot,  // the same with a number for each slot of several sequences
  kAxes,           // the row's plus a number on each of three axes, which RopeKv::table has
};
// The axis of each pair (multi-axis rotary positions): the first `time` pairs have time, then come those of height,
// then those of width. Interleaved: pair i has height if i % 3 = 1 and i < 3 * height, width if i % 3 = 2 and i < 3 *
// width, and time otherwise.
struct RopeAxes {
  uint32_t time = 0, height = 0, width = 0;
  bool interleaved = false;
  bool operator==(const RopeAxes&) const = default;
};

struct RopeKv {
  TensorView qkv;    // f32 [rows, (n_heads + 2 * n_kv_heads) * head_dim]: q, k, v after one another; or wider
  TensorView q_out;  // f32 [rows, n_heads * head_dim]
  CacheView cache;
  // make_rope_table() of rotary_dim / 2 pairs, then numbers that are added to positions. They may stand for less than
  // 0. With RopePlaces::kShifted two u32, for each slot if there are several: its number and a 0. With kAxes four u32
  // for each row: the numbers of time, height and width, and a 0.
  TensorView table;
  // Optional f32 [2, head_dim], weights of q, then of k: each head of q and k is normalised (RMSNorm) before it is
  // rotated. One view, since kernels that do all this and attention have no binding left of WebGPU's eight.
  TensorView norms;
  // norms are f32 [(n_heads + n_kv_heads) * head_dim] instead, of all of q and of all of k at once; only if attention
  // does all this itself.
  bool norms_of_rows = false;
  float norm_eps = 1e-6f;
  uint32_t n_heads = 0;
  uint32_t stride = 0;            // values of a row of qkv; 0: no others
  uint32_t column = 0;            // the column at which q begins
  uint32_t rotary_dim = 0;        // even, <= head_dim; the rest is not rotated; 0: no rotation at all
  bool interleaved = false;       // pairs (2i, 2i+1) instead of (i, i + rotary_dim/2)
  float attention_factor = 1.0f;  // multiplies cosine and sine (yarn, longrope)
  RopePlaces places = RopePlaces::kRow;
  RopeAxes axes;  // with RopePlaces::kAxes

  uint32_t heads() const { return n_heads + 2 * cache.n_kv_heads; }
  uint64_t norms_bytes() const {
    return (norms_of_rows ? n_heads + cache.n_kv_heads : 2) * uint64_t{cache.head_dim} * sizeof(float);
  }
  uint32_t row_stride() const { return stride != 0 ? stride : heads() * cache.head_dim; }
};
inline constexpr uint64_t kAxesRowBytes = 16, kShiftBytes = 8;  // in the table, for each row or slot

struct Launch;  // common/dispatch.h
// Makes a kernel that imports rope/rope_kv_rotate rotate by those places, and one that imports rope/rope_pair by
// kShifted.
void add_places(Launch& launch, const RopeKv& op);
// Rows at positions >= ctx_len are not written to the cache.
Result<void> record(Context& ctx, const RopeKv& op);

}  // namespace doppler::kernels
