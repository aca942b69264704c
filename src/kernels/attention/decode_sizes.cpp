// The sizes of a dispatch of decode, which follow from row and shape.
#include <algorithm>
#include <bit>

#include "kernels/attention/variants.h"
#include "kernels/linear/linear.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kMostSplits = 32;
// A multiprocessor runs three workgroups of kRowsWorkgroup invocations that hold kLargeHeadVectors or more and four keys each, and
// four with two keys: where a large GPU cannot run all with four keys at once, two are faster. H100, behind 512 tokens, tok/s with
// four and two: 64 streams of the 8B 6,565 and 7,024, of the 1B 23,480 and 25,440; 32 streams, which all run, 5,040 and 4,895.
constexpr uint32_t kAtOnceOfFourKeys = 396;
constexpr uint32_t kLargeHeadVectors = 4;
// At once, of rows without splits: 16 streams of the 8B behind 512 tokens 3,427 tok/s with four and 3,395 with eight (H100).
constexpr uint32_t kKeysOfSeveralHeads = 4;
// Of keys, and as many of values, that an invocation has loaded: more than that many times eight registers hold nobody's kernel.
constexpr uint32_t kMostTileVectors = 16;
// Floats of q that the portable kernel keeps in workgroup memory, so that all of it stays under 16 KiB.
constexpr uint32_t kMostHeadFloats = 512;
// Of workgroup memory, for the subgroups' results of one head and the maxima and sums of all.
constexpr uint32_t kReducedPart = 5, kReducedParts = 8;

uint32_t eights(const Attention& op) { return op.cache.padded_head_dim() / 8; }

// Query heads of a workgroup: more than the row has only where rows without splits would be more workgroups than fill a device.
uint32_t wanted_heads(const AttentionDecodeRow& row, const Attention& op, uint32_t group) {
  if (row.heads == 0) return group;
  uint32_t heads = row.heads;
  while (!row.splits && row.rows > 1 && heads < group && op.n_heads / heads * row.rows > kTargetWorkgroups) {
    heads *= 2;
  }
  return heads;
}

// What a split of the keys is a multiple of: whole turns of its workgroup's loop, since a turn takes as long for a part of its keys.
// H100, decode behind 512 and 1,500 tokens, tok/s with shares of at least 64 keys in steps of 8, and so: 1B (256 keys) 1,356 to
// 1,410 and 1,332 to 1,420; qwen3-4b (128) 527 to 542 and 522 to 518; 8B (128) 392 to 397 and 388 to 388; gemma-3-4b (64) the
// same, and 3 % slower with 128.
uint32_t keys_of_split(const AttentionDecodeRow& row, const DecodeSizes& sizes) {
  if (row.kernel != DecodeKernel::kSubgroup || row.reader_reduces) return row.keys_per_split;
  constexpr uint32_t kLeastKeys = 32;
  const uint32_t turn = sizes.workgroup / sizes.invocations_per_key * sizes.keys;
  return (kLeastKeys + turn - 1) / turn * turn;
}

}  // namespace

uint32_t invocations_per_key(const Attention& op, const gpu::Caps& caps) {
  uint32_t invocations = std::bit_floor(std::min(std::max(caps.subgroup_min, 1u), std::bit_ceil(eights(op))));
  while ((eights(op) + invocations - 1) / invocations * invocations * 3 > eights(op) * 4) invocations /= 2;
  return invocations;
}

uint32_t visible_keys(const Attention& op) {
  uint32_t keys = op.cache.ctx_len;
  if (op.window != 0) keys = std::min(keys, op.window);
  if (op.max_keys != 0) keys = std::min(keys, op.max_keys);
  return keys;
}

DecodeSizes decode_sizes(const AttentionDecodeRow& row, const Attention& op, const gpu::Caps& caps) {
  const uint32_t group = op.n_heads / op.cache.n_kv_heads;
  DecodeSizes sizes;
  sizes.workgroup = std::min(row.workgroup, std::bit_floor(std::max(caps.max_invocations, 8u)));
  if (row.kernel == DecodeKernel::kSubgroup) {
    sizes.invocations_per_key = invocations_per_key(op, caps);
    const uint64_t reduced = uint64_t{caps.max_workgroup_bytes} * kReducedPart / kReducedParts;
    const uint32_t floats = op.cache.padded_head_dim() + 2 * kMostHeadVectors;
    const uint32_t subgroup = std::max(std::bit_floor(caps.subgroup_min), sizes.invocations_per_key);
    while (sizes.workgroup > subgroup && sizes.workgroup / subgroup * floats * sizeof(float) > reduced) {
      sizes.workgroup /= 2;
    }
    sizes.subgroup = std::min(subgroup, sizes.workgroup);
  } else {
    sizes.invocations_per_key = std::min(eights(op), sizes.workgroup);
  }
  sizes.vectors = (eights(op) + sizes.invocations_per_key - 1) / sizes.invocations_per_key;
  sizes.keys = row.keys_at_once;
  if (row.kernel == DecodeKernel::kSubgroup) {
    sizes.keys = std::min(sizes.keys, std::bit_floor(std::max(kMostTileVectors / sizes.vectors, 1u)));
  }
  const uint32_t by_registers = std::max(kMostHeadVectors / sizes.vectors, 1u);
  const uint32_t by_memory = std::max(kMostHeadFloats / op.cache.padded_head_dim(), 1u);
  sizes.heads = std::min({group, by_registers, by_memory, wanted_heads(row, op, group)});
  if (!row.splits && row.rows > 1 && sizes.heads > 1) sizes.keys = std::min(sizes.keys, kKeysOfSeveralHeads);
  sizes.head_chunks = (group + sizes.heads - 1) / sizes.heads;
  sizes.keys_per_split = op.cache.ctx_len;
  if (row.splits) {
    const uint32_t workgroups = op.cache.n_kv_heads * sizes.head_chunks * row.rows;
    const bool is_large =
        row.kernel == DecodeKernel::kSubgroup && sizes.heads * sizes.vectors >= kLargeHeadVectors;
    if (is_large && workgroups > kAtOnceOfFourKeys) sizes.keys = std::min(sizes.keys, 2u);
    sizes.keys_per_split = keys_of_split(row, sizes);
    const uint32_t wanted = (kTargetWorkgroups + workgroups - 1) / workgroups;
    const uint32_t useful = (visible_keys(op) + sizes.keys_per_split - 1) / sizes.keys_per_split;
    sizes.splits = std::min({wanted, useful, row.reader_reduces ? kMaxReducedSplits : kMostSplits});
  }
  return sizes;
}

}  // namespace doppler::kernels
