// The rows of attention's three tables, and the sizes a row takes for a shape: for record() and for the tests
// that force each row. Read next: attention_decode_*.wgsl and attention_prefill.wgsl, whose constants these
// are.
#pragma once

#include <span>

#include "gpu/bind_kind.h"
#include "kernels/attention/attention.h"
#include "kernels/variant.h"

namespace doppler::kernels {

enum class DecodeKernel : uint8_t {
  kWorkgroup,
  kSubgroup
};  // attention_decode_portable, attention_decode_subgroup

// Query heads times vectors an invocation holds in registers: 16 floats each for q and the result.
inline constexpr uint32_t kMostHeadVectors = 8;
// For rows that do not count their own turns (decode_sizes.cpp, keys_of_split): one round of loads of 128 invocations.
inline constexpr uint32_t kKeysPerSplit = 64;

// The constants of a row of attention_decode. A struct of its own, so that a row's constants are written by name.
struct DecodeConstants {
  DecodeKernel kernel = DecodeKernel::kWorkgroup;
  bool splits = false;        // over workgroups, with a combine after it
  uint32_t workgroup = 0;     // invocations, at most
  uint32_t keys_at_once = 1;  // of an invocation or worker: KEYS_EACH, KEYS
  bool rope = false;          // rotates and fills the cache too
  uint32_t heads = 0;         // query heads of a workgroup; 0: as many as registers hold
  uint32_t rows = 1;          // of q in a step: those that splits are counted for
  // A split's keys are a multiple of this; reader_reduces: AttentionChoice::leaves instead of a combine.
  uint32_t keys_per_split = kKeysPerSplit;
  bool reader_reduces = false;
};
struct AttentionDecodeRow : Variant<Attention>, DecodeConstants {};
std::span<const AttentionDecodeRow> attention_decode_variants();

// The constants of one decode dispatch (names as in the WGSL) and its grid.
struct DecodeSizes {
  uint32_t heads = 1;        // query heads of a workgroup
  uint32_t head_chunks = 1;  // workgroups a kv head needs for its group
  uint32_t workgroup = 1;
  uint32_t invocations_per_key = 1;  // per key
  uint32_t vectors = 1;              // of eight dimensions, per invocation
  uint32_t keys = 1;                 // at once: those of the row, fewer where invocations have many vectors
  uint32_t subgroup = 1;             // invocations whose workers are reduced in registers
  uint32_t splits = 1;
  uint32_t keys_per_split = 1;  // or a multiple of this
};
// Invocations of a subgroup that share a key: as many as have work, at most a third more.
uint32_t invocations_per_key(const Attention& op, const gpu::Caps& caps);
DecodeSizes decode_sizes(const AttentionDecodeRow& row, const Attention& op, const gpu::Caps& caps);

// attention_prefill_matrix, attention_prefill, and a kernel of decode for each row.
enum class PrefillKernel : uint8_t { kMatrix, kTiles, kEachRow };

// The constants of a row of attention_prefill and attention_skinny; kMatrix sets no others, see MatrixSizes.
struct PrefillConstants {
  PrefillKernel kernel = PrefillKernel::kTiles;
  uint32_t workgroup = 0;
  uint32_t rows = 0;             // query rows of a workgroup, a multiple of 4
  uint32_t keys = 0;             // of a tile; a multiple of 4 * workgroup / (rows / 4)
  uint32_t chunk = 0;            // dimensions staged at once, a multiple of 8
  uint32_t value_vec4s = 0;      // of workgroup memory for values
  std::string_view decode = {};  // of kEachRow: the row of decode, which has all other numbers
  bool rope = false;             // of kEachRow: rotates and fills the cache too
};
struct AttentionPrefillRow : Variant<Attention>, PrefillConstants {};
std::span<const AttentionPrefillRow> attention_prefill_variants();
// The dispatch before a variant that does not read a cache in q8_0 (recording.h, unpacked()).
std::span<const Variant<Attention>> attention_unpack_variants();
// For plans of few rows, and for rows of sequences of their own.
std::span<const AttentionPrefillRow> attention_skinny_variants();
// The row of decode that a row of kEachRow uses for each row of q, under its own name.
AttentionDecodeRow each_row(const AttentionPrefillRow& row);

// The workgroup of attention_prefill_matrix for a shape and a plan of max_rows (names as in the WGSL).
struct MatrixSizes {
  uint32_t subgroups = 4;  // in pairs
  uint32_t row_tiles = 1;  // fragments of query rows of a pair
  uint32_t rows() const { return subgroups / 2 * row_tiles * 16; }
};
MatrixSizes matrix_sizes(const Attention& op, uint32_t max_rows, const gpu::Caps& caps);

// Keys a row can see at most: the window or the context.
uint32_t visible_keys(const Attention& op);

}  // namespace doppler::kernels
