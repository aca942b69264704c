// Shared by the recordings of matvec_tile*.wgsl: the shape of their workgroups and the source of x. Read next:
// matvec_tile.cpp, tile_sum.wgsl.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/common/dispatch.h"
#include "kernels/linear/product.h"

namespace doppler::kernels {

// The shape of a workgroup: its outputs (with a gate: as many gates and ups), the invocations that share a row, and the
// units of 32 columns that an invocation has on the way. The names are tile_sum's.
struct TileShape {
  uint32_t units = 0;
  uint32_t rows = kTileRows;
  uint32_t slices = 1;
  uint32_t sums = 1;
  uint32_t depth = 4;
};
struct TileNeeds {
  uint32_t outputs = 0;  // of the whole dispatch
  bool gated = false;
  bool whole_tiles = false;        // a workgroup must make all rows of a tile
  bool half_tiles = false;         // a workgroup must make half of one
  uint32_t least_invocations = 1;  // what x needs
};
TileShape tile_shape(Context& ctx, const Product& op, const TileNeeds& needs);
std::vector<gpu::WgslConst> tile_consts(const TileShape& shape);

// The fragment for linear/matvec/tile_x. `sums`: the numbers that an invocation has in workgroup memory besides,
// partial sums and a norm's.
std::string_view tile_x_fragment(const TileShape& shape, bool q8, uint32_t sums, const gpu::Caps& caps);

// True if 8-bit blocks are made by subgroup operations: subgroups have room for one.
bool blocks_in_subgroups(const Context& ctx);
// Chooses the fragments that make 8-bit blocks of a workgroup's outputs: with subgroup operations where subgroups have
// room for a block (whole steps: docs/diary/decode.md).
void choose_block_fragments(const Context& ctx, Launch& launch);

// Products that make x themselves (AddRmsNorm), single and as a pair.
Result<void> record_matvec_tile_add_norm(Context& ctx, const Product& op);
Result<void> record_matvec_tile_pair_add_norm(Context& ctx, const Product& op);
// Products that reduce the splits of attention (SplitPartials).
Result<void> record_matvec_tile_splits(Context& ctx, const Product& op);

}  // namespace doppler::kernels
