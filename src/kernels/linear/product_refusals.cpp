// linear.h: which prologues and epilogues a chosen variant has, and the reasons where it has not.
// Read next: product.h, linear.cpp.
#include <algorithm>

#include "kernels/linear/product.h"

namespace doppler::kernels {
namespace {

// All workgroups together read the input's parts so often from the cache: beyond that a dispatch costs less.
constexpr uint64_t kMaxPrologueBytes = 16 << 20;

std::string refuse_pieces(const Weight& weight) {
  if (weight.pieces.size() == 1) return "";
  return format_text("the weight lies in %zu buffers, and one is bound", weight.pieces.size());
}

std::string refuse_part_tiles(const Weight& weight) {
  if (weight.n % kTileRows == 0) return "";
  return format_text("%u rows are not whole tiles of %u", weight.n, kTileRows);
}

// For kernels whose workgroup may make half a tile, and begins with its first output.
std::string refuse_part_half_tiles(const Weight& weight) {
  constexpr uint32_t kHalf = kTileRows / 2;
  return weight.n % kHalf == 0 ? "" : format_text("%u rows are not whole half tiles of %u", weight.n, kHalf);
}

// For kernels whose workgroup makes two tiles at the least, if a second weight begins with one.
std::string refuse_part_two_tiles(const Weight& weight) {
  return weight.n % (2 * kTileRows) == 0
             ? ""
             : format_text("%u rows are not whole pairs of tiles of %u", weight.n, kTileRows);
}

// The first reason that is one.
std::string first_of(std::initializer_list<std::string> reasons) {
  for (const std::string& reason : reasons) {
    if (!reason.empty()) return reason;
  }
  return "";
}

std::string refuse_unless_tiled(const ProductChoice& choice) {
  return is_tiled(choice) ? "" : name_of(choice) + " is no product of one row in tiles";
}

std::string refuse_memory(uint64_t bytes, const gpu::Caps& caps) {
  if (bytes <= caps.max_workgroup_bytes) return "";
  return format_text("it needs %llu bytes of workgroup memory, this device has %u",
                     static_cast<unsigned long long>(bytes), caps.max_workgroup_bytes);
}

std::string refuse_reads(uint64_t bytes) {
  if (bytes <= kMaxPrologueBytes) return "";
  return format_text("its workgroups would read %s of parts of x, and a dispatch costs less beyond %s",
                     format_bytes(bytes).c_str(), format_bytes(kMaxPrologueBytes).c_str());
}

// Half a tile a workgroup, at the least.
std::string refuse_workgroups(uint64_t outputs, const gpu::Caps& caps) {
  return outputs / kQ8Block <= caps.max_workgroups ? "" : "it needs more workgroups than this device has";
}

std::string refuse_buffers(uint32_t count, const gpu::Caps& caps) {
  if (caps.max_storage_buffers >= count) return "";
  return format_text("it binds %u storage buffers, this device allows %u", count, caps.max_storage_buffers);
}

// The squares that the invocations bring lie beside x in 8 bits (in f32 it need not be there) and their partial sums.
std::string refuse_deferred_norm(const Context& ctx, const Weight& weight, const ProductChoice& choice,
                                 uint32_t partial_sums) {
  if (choice.reads() != InputForm::kQ8) return "";
  return refuse_memory(
      weight.k / 32 * kTileUnitBytes + tile_other_bytes(kMostTileInvocations * (partial_sums + 1)),
      ctx.plan.caps());
}

// x is made by every workgroup: `outputs` are those of the whole dispatch.
std::string refuse_add_norm(const Context& ctx, const Weight& weight, const ProductChoice& choice,
                            uint64_t outputs) {
  constexpr uint32_t kBuffers = 10;  // of matvec_tile_pair_add_norm
  constexpr uint32_t kUnitBytes =
      64;  // of 32 columns, in workgroup memory: codes, factors, parts of two norms
  const gpu::Caps& caps = ctx.plan.caps();
  const uint32_t sums = choice.gate == ActivationFn::kNone ? 1 : 2;
  const std::string reason = first_of(
      {refuse_unless_tiled(choice), refuse_pieces(weight), refuse_part_tiles(weight),
       refuse_memory(weight.k / 32 * kUnitBytes + tile_other_bytes(kMostTileInvocations * sums), caps),
       refuse_reads(outputs / kTileRows * weight.k * 4 * sizeof(float))});
  if (!reason.empty()) return reason;
  if (choice.reads() != InputForm::kQ8) return name_of(choice) + " does not read x in 8 bits";
  const std::string too_many = refuse_buffers(kBuffers, caps);
  if (!too_many.empty()) return too_many;
  const uint32_t invocations = std::min(kMostTileInvocations.value, caps.max_invocations);
  if (weight.k / kQ8Block > invocations) {
    return format_text("%u columns are more than the blocks of %u invocations", weight.k, invocations);
  }
  return refuse_workgroups(outputs, caps);
}

std::string refuse_partials(const Context& ctx, const Weight& weight, const ProductChoice& choice) {
  // For 32 columns in workgroup memory: reduced, codes, factors; in f32 less.
  constexpr uint32_t kUnitBytes = 128 + 32 + 16;
  // An invocation holds two vectors for each split of every four columns that it reduces: registers for eight columns.
  constexpr uint32_t kMostColumns = 2048;
  const gpu::Caps& caps = ctx.plan.caps();
  const std::string reason =
      first_of({refuse_unless_tiled(choice), refuse_pieces(weight), refuse_part_tiles(weight),
                refuse_memory(weight.k / 32 * kUnitBytes + tile_other_bytes(kMostTileInvocations), caps),
                refuse_reads(uint64_t{weight.n} / kQ8Block * kMaxReducedSplits * weight.k * sizeof(float))});
  if (!reason.empty()) return reason;
  if (choice.gate != ActivationFn::kNone) return "a gated product does not reduce splits";
  if (weight.k > kMostColumns) {
    return format_text("%u columns are more than its registers take (%u)", weight.k, kMostColumns);
  }
  return refuse_workgroups(weight.n, caps);
}

// A matvec gates, and whole tiles of gates do on matrix units or, in 8 bits, of a few rows.
std::string refuse_gate(const Weight& weight, const ProductChoice& choice) {
  if (!refuse_pieces(weight).empty() || choice.max_rows == 1) return refuse_pieces(weight);
  if (!writes_f16(*choice.row) && !writes_q8(*choice.row)) {
    return name_of(choice) + " has no gate";
  }
  if (weight.n % (2 * kTileRows) == 0) return "";
  return format_text("half of %u rows are not whole tiles of %u", weight.n, kTileRows);
}

// The matrix units' product of a chunk activates its sums, or the sum over its splits does.
std::string refuse_activation(const Weight& weight, const ProductChoice& choice) {
  constexpr uint32_t kFragment = 16;
  if (choice.row->algorithm != Algorithm::kMatrix) return name_of(choice) + " does not activate its sums";
  if (!refuse_pieces(weight).empty() || weight.n % kFragment == 0) return refuse_pieces(weight);
  return format_text("%u rows are not whole fragments of %u", weight.n, kFragment);
}

}  // namespace

std::string refuse_prologue(const Context& ctx, const Weight& weight, const ProductChoice& choice,
                            PrologueKind kind) {
  const bool gated = choice.gate != ActivationFn::kNone;
  switch (kind) {
    case PrologueKind::kRows:
      return "";
    case PrologueKind::kDeferredNorm:
      return first_of({refuse_unless_tiled(choice), gated ? refuse_pieces(weight) : "",
                       refuse_deferred_norm(ctx, weight, choice, gated ? 2 : 1)});
    case PrologueKind::kAddRmsNorm:
      return refuse_add_norm(ctx, weight, choice, weight.n / (gated ? 2 : 1));
    case PrologueKind::kSplitPartials:
      return refuse_partials(ctx, weight, choice);
  }
  return "";
}

std::string refuse_epilogue(const Context&, const Weight& weight, const ProductChoice& choice,
                            EpilogueKind kind) {
  switch (kind) {
    case EpilogueKind::kStore:
    case EpilogueKind::kAddResidual:
      return "";
    case EpilogueKind::kDeferredNorm:
    case EpilogueKind::kGateOf:
      return first_of({refuse_unless_tiled(choice), refuse_pieces(weight), refuse_part_tiles(weight)});
    case EpilogueKind::kGate:
      return refuse_gate(weight, choice);
    case EpilogueKind::kTileArgmax:
      return refuse_unless_tiled(choice);
    case EpilogueKind::kLeaveSums:
      return first_of({splits_columns(*choice.row) ? "" : name_of(choice) + " does not split the columns",
                       refuse_pieces(weight)});
    case EpilogueKind::kActivateSums:
      return refuse_activation(weight, choice);
  }
  return "";
}

std::string refuse_pair(const Context& ctx, const Weight& first, const ProductChoice& first_choice,
                        const Weight& second, const ProductChoice& second_choice, const PairNeeds& needs) {
  constexpr uint32_t kBuffers = 9;  // of matvec_tile_pair and matmul_few_pair
  const uint64_t outputs = uint64_t{first.n} + second.n;
  const Algorithm algorithm = first_choice.row->algorithm;
  const bool of_one_row = algorithm == Algorithm::kTiled;
  if (!of_one_row && algorithm != Algorithm::kFew) {
    return name_of(first_choice) + " makes the outputs of one weight";
  }
  if (second_choice.row->algorithm != algorithm) {
    return name_of(first_choice) + " and " + name_of(second_choice) + " are different kernels";
  }
  const std::string reason =
      first_of({refuse_pieces(first), refuse_pieces(second),
                of_one_row ? refuse_part_half_tiles(first) : refuse_part_two_tiles(first),
                of_one_row ? refuse_part_half_tiles(second) : ""});
  if (!reason.empty()) return reason;
  if (first.k != second.k || first_choice.reads() != second_choice.reads()) {
    return "the two products read different forms of x";
  }
  if (needs.prologue == PrologueKind::kSplitPartials) return "a pair of products does not reduce splits";
  if (!of_one_row && needs.prologue != PrologueKind::kRows) {
    return name_of(first_choice) + " is no product of one row in tiles";
  }
  if (needs.prologue != PrologueKind::kAddRmsNorm) {
    const bool deferred = needs.prologue == PrologueKind::kDeferredNorm;
    return first_of({deferred ? refuse_deferred_norm(ctx, first, first_choice, 2) : "",
                     refuse_buffers(kBuffers, ctx.plan.caps()), refuse_workgroups(outputs, ctx.plan.caps())});
  }
  if (needs.has_bias) return "a pair of products that makes its input has no bias";
  return first_of({refuse_add_norm(ctx, first, first_choice, outputs),
                   refuse_add_norm(ctx, second, second_choice, outputs)});
}

}  // namespace doppler::kernels
