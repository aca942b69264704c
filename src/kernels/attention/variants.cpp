// The tables of attention_decode, attention_skinny and attention_prefill, best first, and the sizes of matrix tiles.
// Read next: measured.h (what put them in this order), decode_sizes.cpp.
#include "kernels/attention/variants.h"

#include <algorithm>
#include <array>
#include <bit>

#include "kernels/attention/measured.h"
#include "kernels/linear/linear.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kFewHeads = 8;  // see attention_decode.rope.few_splits
constexpr uint32_t kMostDimsOfNarrowTile = 64;
constexpr uint32_t kMatrixElement = 8;            // dimensions
constexpr uint32_t kMostMatrixDims = 256;         // attention_prefill_matrix.wgsl names that many fragments
constexpr uint32_t kMostDimsOfTwoRowTiles = 128;  // q of more fills the registers
constexpr uint32_t kMatrixSubgroup = 32;

std::string only_cpu(const Attention&, const gpu::Caps& caps) {
  if (caps.type == gpu::AdapterType::kCpu) return "";
  return format_text("it is shaped for CPU devices, this is a %s", gpu::adapter_type_name(caps.type));
}

// For decode and a few rows, which would copy the cache to f16 in each step.
std::string only_cpu_each_row(const Attention& op, const gpu::Caps& caps) {
  std::string reason = only_cpu(op, caps);
  if (!reason.empty() || op.cache.format != CacheFormat::kQ8_0 || !caps.subgroups) return reason;
  return "subgroups read a cache in q8_0 directly";
}

std::string only_short(const Attention& op, const gpu::Caps&) {
  const uint32_t keys = visible_keys(op);
  if (keys <= kShortKeys) return "";
  return format_text("one workgroup a kv head is too few for %u keys (up to %u)", keys, kShortKeys);
}

std::string fits_registers(const Attention& op, const gpu::Caps& caps) {
  const uint32_t invocations = invocations_per_key(op, caps);
  if (op.cache.padded_head_dim() / 8 <= invocations * kMostHeadVectors) return "";
  return format_text("subgroups of %u invocations are too small for head_dim %u", caps.subgroup_min,
                     op.cache.head_dim);
}

std::string short_and_fits(const Attention& op, const gpu::Caps& caps) {
  std::string reason = fits_registers(op, caps);
  return reason.empty() ? only_short(op, caps) : reason;
}

std::string only_narrow(const Attention& op, const gpu::Caps&) {
  if (op.cache.head_dim <= kMostDimsOfNarrowTile) return "";
  return format_text("head_dim %u is more than its registers take (%u)", op.cache.head_dim,
                     kMostDimsOfNarrowTile);
}

// tile, logits, probabilities, factors and flags of attention_prefill_matrix.wgsl.
uint32_t matrix_workgroup_bytes(uint32_t head_dim, const MatrixSizes& sizes) {
  constexpr uint32_t kKeys = 32;
  const uint32_t padded = (head_dim + 63) / 64 * 64;
  const uint32_t row = (kKeys + 4) * 4 + (kKeys + 8) * 2 + 4;
  return 2 * kKeys * (padded + 8) * 2 + sizes.rows() * row + sizes.subgroups * 4;
}

MatrixSizes small_matrix_sizes(const Attention& op) {
  return {.subgroups = 4, .row_tiles = op.cache.head_dim > kMostDimsOfTwoRowTiles ? 1u : 2u};
}

std::string fits_fragments(const Attention& op, const gpu::Caps& caps) {
  if (caps.subgroup_min != kMatrixSubgroup || caps.subgroup_max != kMatrixSubgroup) {
    return format_text("it is written for subgroups of %u, this device has %u to %u", kMatrixSubgroup,
                       caps.subgroup_min, caps.subgroup_max);
  }
  if (op.cache.format == CacheFormat::kF32) return "the cache is in f32";
  if (op.cache.head_dim % kMatrixElement != 0 || op.cache.head_dim > kMostMatrixDims) {
    return format_text("head_dim %u is not a multiple of %u up to %u", op.cache.head_dim, kMatrixElement,
                       kMostMatrixDims);
  }
  const uint32_t bytes = matrix_workgroup_bytes(op.cache.head_dim, small_matrix_sizes(op));
  if (bytes <= caps.max_workgroup_bytes) return "";
  return format_text("it needs %u bytes of workgroup memory, this device has %u", bytes,
                     caps.max_workgroup_bytes);
}

// For attention_skinny: tiles are for rows at consecutive positions.
std::string only_one_sequence(const Attention& op, const gpu::Caps&) {
  return op.single_rows == 0 ? "" : "each row may belong to a sequence of its own";
}

std::string one_sequence_and_narrow(const Attention& op, const gpu::Caps& caps) {
  std::string reason = only_one_sequence(op, caps);
  return reason.empty() ? only_narrow(op, caps) : reason;
}

std::string one_sequence_and_fits_fragments(const Attention& op, const gpu::Caps& caps) {
  std::string reason = only_one_sequence(op, caps);
  return reason.empty() ? fits_fragments(op, caps) : reason;
}

constexpr Lane kSub = Lane::kSubgroups;

// rotated, newest, gathered, and the parts' maxima, sums and sums of squares, of attention_decode_rope.wgsl.
uint64_t rope_workgroup_bytes(const DecodeSizes& sizes, const Attention& op) {
  const uint64_t head = op.cache.padded_head_dim();
  const uint64_t parts = sizes.workgroup / sizes.subgroup;
  const uint64_t newest = 2 * op.cache.row_bytes();
  const uint64_t floats = (sizes.heads + 2) * head + parts * head + parts * (3 * sizes.heads + 1);
  return floats * sizeof(float) + newest;
}

// row: the workgroup and heads that it would have.
std::string rope_fits(const Attention& op, const gpu::Caps& caps, const AttentionDecodeRow& row) {
  if (op.cache.format == CacheFormat::kQ8_0) return "blocks of a cache in q8_0 are made by rope_kv";
  if (!op.rope) return "q and the cache are rotated already";
  if (op.rope->places == RopePlaces::kShiftedBySlot) return "each slot shifts its positions";
  if (op.rope->places == RopePlaces::kAxes) return "rows rotate on three axes";
  if (op.rope->norms.valid() && op.sinks.valid()) return "sinks and norms of q and k share a binding";
  std::string reason = fits_registers(op, caps);
  if (!reason.empty()) return reason;
  const uint64_t bytes = rope_workgroup_bytes(decode_sizes(row, op, caps), op);
  if (bytes <= caps.max_workgroup_bytes) return "";
  return format_text("it needs %llu bytes of workgroup memory, this device has %u",
                     static_cast<unsigned long long>(bytes), caps.max_workgroup_bytes);
}

AttentionDecodeRow rope_row(bool splits, uint32_t workgroup, uint32_t heads) {
  AttentionDecodeRow row;
  row.kernel = DecodeKernel::kSubgroup;
  row.splits = splits;
  row.workgroup = workgroup;
  row.heads = heads;
  return row;
}

std::string with_rope(const Attention& op, const gpu::Caps& caps) {
  return rope_fits(op, caps, rope_row(true, kDecodeWorkgroup, kSplitHeads));
}

// For attention_skinny: a row cannot wait for keys that another row of the step writes.
std::string own_sequences_with_rope(const Attention& op, const gpu::Caps& caps) {
  if (!op.own_sequences) return "rows of one sequence read each other's keys";
  return rope_fits(op, caps, rope_row(true, kRowsWorkgroup, 0));
}

uint32_t short_keys_of_rows(const Attention& op, const gpu::Caps& caps) {
  return op.n_heads * op.single_rows < kLeastUnsplit.of(caps) ? kShortKeys : kShortKeysOfRows;
}

// For attention_skinny, likewise.
std::string short_sequences_with_rope(const Attention& op, const gpu::Caps& caps) {
  if (!op.own_sequences) return "rows of one sequence read each other's keys";
  std::string reason = rope_fits(op, caps, rope_row(false, kDecodeWorkgroup, 0));
  if (!reason.empty()) return reason;
  const uint32_t keys = visible_keys(op), most = short_keys_of_rows(op, caps);
  if (keys > most) {
    return format_text("one workgroup a head of %u rows is too few for %u keys (up to %u)", op.single_rows,
                       keys, most);
  }
  AttentionDecodeRow split = rope_row(true, kRowsWorkgroup, 0);
  split.rows = op.single_rows;
  if (decode_sizes(split, op, caps).splits > 1) return "";
  return format_text("its %u rows fill the device without splits of the keys", op.single_rows);
}

std::string short_with_rope(const Attention& op, const gpu::Caps& caps) {
  std::string reason = rope_fits(op, caps, rope_row(false, kDecodeWorkgroup, 1));
  return reason.empty() ? only_short(op, caps) : reason;
}

std::string few_heads_and_reader_reduces(const Attention& op, const gpu::Caps& caps) {
  std::string reason = short_with_rope(op, caps);
  if (!reason.empty()) return reason;
  if (op.n_heads > kFewHeads) {
    return format_text("a workgroup for each of %u heads fills the device (few are up to %u)", op.n_heads,
                       kFewHeads);
  }
  if (!op.reader_reduces) return "what reads its result does not reduce splits";
  if (op.sinks.valid()) return "what reads its result reduces splits without sinks";
  if (op.cache.head_dim % kQ8Block == 0) return "";
  return format_text("head_dim %u is not a multiple of %u", op.cache.head_dim, kQ8Block);
}

const std::array<AttentionDecodeRow, 8> kDecode = {{
    // A CPU device runs the invocations of a workgroup as one vector, and has few cores: splits gain nothing.
    {{.name = "attention_decode.cpu", .refuse = only_cpu_each_row},
     {.kernel = DecodeKernel::kWorkgroup, .workgroup = 8, .keys_at_once = 4}},
    {{.name = "attention_decode.rope.few_splits",
      .lane = kSub,
      .needs = kNeedSubgroups,
      .refuse = few_heads_and_reader_reduces},
     {.kernel = DecodeKernel::kSubgroup,
      .splits = true,
      .workgroup = kDecodeWorkgroup,
      .keys_at_once = kDecodeKeys,
      .rope = true,
      .heads = 1,
      .reader_reduces = true}},
    {{.name = "attention_decode.rope.single",
      .lane = kSub,
      .needs = kNeedSubgroups,
      .refuse = short_with_rope},
     {.kernel = DecodeKernel::kSubgroup,
      .workgroup = kDecodeWorkgroup,
      .keys_at_once = kDecodeKeys,
      .rope = true,
      .heads = 1}},
    {{.name = "attention_decode.rope.split", .lane = kSub, .needs = kNeedSubgroups, .refuse = with_rope},
     {.kernel = DecodeKernel::kSubgroup,
      .splits = true,
      .workgroup = kDecodeWorkgroup,
      .keys_at_once = kSplitKeys,
      .rope = true,
      .heads = kSplitHeads}},
    {{.name = "attention_decode.subgroup.single",
      .lane = kSub,
      .needs = kNeedSubgroups,
      .refuse = short_and_fits},
     {.kernel = DecodeKernel::kSubgroup, .workgroup = kDecodeWorkgroup, .keys_at_once = 4}},
    {{.name = "attention_decode.subgroup.split",
      .lane = kSub,
      .needs = kNeedSubgroups,
      .refuse = fits_registers},
     {.kernel = DecodeKernel::kSubgroup, .splits = true, .workgroup = kRowsWorkgroup, .keys_at_once = 4}},
    {{.name = "attention_decode.portable.single", .refuse = only_short},
     {.kernel = DecodeKernel::kWorkgroup, .workgroup = 128}},
    {{.name = "attention_decode.portable"},
     {.kernel = DecodeKernel::kWorkgroup, .splits = true, .workgroup = 128}},
}};

constexpr uint32_t kNeedMatrixUnits = kNeedMatrixF16 | kNeedF16 | kNeedSubgroups | kNeedTint;

// The common constants of attention_prefill and attention_skinny.
constexpr PrefillConstants kMatrixTiles = {.kernel = PrefillKernel::kMatrix};
constexpr PrefillConstants kNarrowTiles = {.kernel = PrefillKernel::kTiles,
                                           .workgroup = 128,
                                           .rows = 32,
                                           .keys = 64,
                                           .chunk = 32,
                                           .value_vec4s = 256};
constexpr PrefillConstants kPortableTiles = {.kernel = PrefillKernel::kTiles,
                                             .workgroup = 128,
                                             .rows = 16,
                                             .keys = 128,
                                             .chunk = 16,
                                             .value_vec4s = 256};

const std::array<AttentionPrefillRow, 4> kPrefill = {{
    {{.name = "attention_prefill.matrix",
      .lane = Lane::kMatrix,
      .needs = kNeedMatrixUnits,
      .refuse = fits_fragments},
     kMatrixTiles},
    {{.name = "attention_prefill.cpu", .refuse = only_cpu},
     {.kernel = PrefillKernel::kTiles,
      .workgroup = 32,
      .rows = 32,
      .keys = 32,
      .chunk = 32,
      .value_vec4s = 256}},
    {{.name = "attention_prefill.rows32", .refuse = only_narrow}, kNarrowTiles},
    {{.name = "attention_prefill.portable"}, kPortableTiles},
}};

// Tiles have 16 to 64 rows of q and walk over all keys one after the other, as many workgroups as heads: few rows of a
// long cache leave nearly the whole device idle. As in decode, splits of the keys for each row fill it.
const std::array<AttentionPrefillRow, 8> kSkinny = {{
    {{.name = "attention_skinny.cpu", .refuse = only_cpu_each_row},
     {.kernel = PrefillKernel::kEachRow, .decode = "attention_decode.cpu"}},
    {{.name = "attention_skinny.rope.single",
      .lane = kSub,
      .needs = kNeedSubgroups,
      .refuse = short_sequences_with_rope},
     {.kernel = PrefillKernel::kEachRow, .decode = "attention_decode.rope.single", .rope = true}},
    {{.name = "attention_skinny.rope.split",
      .lane = kSub,
      .needs = kNeedSubgroups,
      .refuse = own_sequences_with_rope},
     {.kernel = PrefillKernel::kEachRow, .decode = "attention_decode.subgroup.split", .rope = true}},
    {{.name = "attention_skinny.split", .lane = kSub, .needs = kNeedSubgroups, .refuse = fits_registers},
     {.kernel = PrefillKernel::kEachRow, .decode = "attention_decode.subgroup.split"}},
    {{.name = "attention_skinny.portable.split"},
     {.kernel = PrefillKernel::kEachRow, .decode = "attention_decode.portable"}},
    {{.name = "attention_skinny.matrix",
      .lane = Lane::kMatrix,
      .needs = kNeedMatrixUnits,
      .refuse = one_sequence_and_fits_fragments},
     kMatrixTiles},
    {{.name = "attention_skinny.rows32", .refuse = one_sequence_and_narrow}, kNarrowTiles},
    {{.name = "attention_skinny.portable", .refuse = only_one_sequence}, kPortableTiles},
}};
// More rows than these make more workgroups than kTargetWorkgroups asks for.
constexpr uint32_t kLeastSkinnyRows = 2;

}  // namespace

std::span<const AttentionDecodeRow> attention_decode_variants() { return kDecode; }
std::span<const AttentionPrefillRow> attention_prefill_variants() { return kPrefill; }
std::span<const AttentionPrefillRow> attention_skinny_variants() { return kSkinny; }

AttentionDecodeRow each_row(const AttentionPrefillRow& row) {
  AttentionDecodeRow decode = *std::ranges::find(kDecode, row.decode, &AttentionDecodeRow::name);
  decode.name = row.name;
  decode.rows = kLeastSkinnyRows;
  decode.rope = row.rope;
  return decode;
}

bool gains_by_short_keys(const Policy& policy, const gpu::Caps& caps, uint32_t n_heads, uint32_t n_kv_heads,
                         uint32_t rows) {
  if (!policy.allows(kSub) || !caps.subgroups || caps.type == gpu::AdapterType::kCpu) return false;
  return n_heads * rows >= kLeastUnsplit.of(caps) && n_kv_heads * rows < kTargetWorkgroups.of(caps);
}

MatrixSizes matrix_sizes(const Attention& op, uint32_t max_rows, const gpu::Caps& caps) {
  const MatrixSizes small = small_matrix_sizes(op);
  const MatrixSizes large = {.subgroups = 8, .row_tiles = small.row_tiles};
  const uint32_t workgroups = (max_rows + small.rows() - 1) / small.rows() * op.n_heads;
  if (op.cache.head_dim <= kMostDimsOfNarrowTile || workgroups <= kMatrixWorkgroups.of(caps)) return small;
  return matrix_workgroup_bytes(op.cache.head_dim, large) <= caps.max_workgroup_bytes ? large : small;
}

}  // namespace doppler::kernels
