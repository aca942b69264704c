// The sizes of a dispatch of decode, which follow from row and shape.
#include <algorithm>
#include <bit>

#include "kernels/attention/measured.h"
#include "kernels/attention/variants.h"
#include "kernels/linear/linear.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kMostSplits = 32;
constexpr uint32_t kLargeHeadVectors = 4;  // of an invocation, from which on kAtOnceOfFourKeys counts
// The most vectors of keys, and as many of values, that an invocation loads at once: registers hold no more than eight
// times this for any kernel.
constexpr uint32_t kMostTileVectors = 16;
// Floats of q that the portable kernel keeps in workgroup memory, so that its total stays under 16 KiB.
constexpr uint32_t kMostHeadFloats = 512;
// Parts of workgroup memory for the subgroups' results of one head, and for the maxima and sums of all heads.
constexpr uint32_t kReducedPart = 5, kReducedParts = 8;

uint32_t eights(const Attention& op) { return op.cache.padded_head_dim() / 8; }

// Query heads of a workgroup: more than the row has only if rows without splits would be more workgroups than fill a
// device.
uint32_t wanted_heads(const AttentionDecodeRow& row, const Attention& op, uint32_t group,
                      const gpu::Caps& caps) {
  if (row.heads == 0) return group;
  const uint32_t target = kTargetWorkgroups.of(caps);
  uint32_t heads = row.heads;
  while (!row.splits && row.rows > 1 && heads < group && op.n_heads / heads * row.rows > target) {
    heads *= 2;
  }
  return heads;
}

// A split of the keys is a multiple of this: whole turns of its workgroup's loop, since a turn takes as long for a part
// of its keys.
uint32_t keys_of_split(const AttentionDecodeRow& row, const DecodeSizes& sizes) {
  if (row.kernel != DecodeKernel::kSubgroup || row.reader_reduces) return row.keys_per_split;
  const uint32_t turn = sizes.workgroup / sizes.invocations_per_key * sizes.keys;
  return (kLeastKeysOfSplit + turn - 1) / turn * turn;
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
  sizes.heads = std::min({group, by_registers, by_memory, wanted_heads(row, op, group, caps)});
  if (!row.splits && row.rows > 1 && sizes.heads > 1)
    sizes.keys = std::min(sizes.keys, kKeysOfSeveralHeads.value);
  sizes.head_chunks = (group + sizes.heads - 1) / sizes.heads;
  sizes.keys_per_split = op.cache.ctx_len;
  if (row.splits) {
    const uint32_t workgroups = op.cache.n_kv_heads * sizes.head_chunks * row.rows;
    const bool is_large =
        row.kernel == DecodeKernel::kSubgroup && sizes.heads * sizes.vectors >= kLargeHeadVectors;
    if (is_large && workgroups > kAtOnceOfFourKeys.of(caps)) sizes.keys = std::min(sizes.keys, 2u);
    sizes.keys_per_split = keys_of_split(row, sizes);
    const uint32_t wanted = (kTargetWorkgroups.of(caps) + workgroups - 1) / workgroups;
    const uint32_t useful = (visible_keys(op) + sizes.keys_per_split - 1) / sizes.keys_per_split;
    sizes.splits = std::min({wanted, useful, row.reader_reduces ? kMaxReducedSplits : kMostSplits});
  }
  return sizes;
}

}  // namespace doppler::kernels
