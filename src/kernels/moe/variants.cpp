// The table of products with experts, best first. Rows of x are multiplied each on their own, as a matvec's one row is.
#include "kernels/moe/variants.h"

namespace doppler::kernels {
namespace {

// A workgroup makes whole tiles, or halves of them, of one expert.
std::string refuse_unless_expert_tiles(const ProductShape& shape, const gpu::Caps& caps) {
  if (shape.n % kTileRows != 0) {
    return format_text("the %u rows of an expert are not whole tiles of %u", shape.n, kTileRows);
  }
  return refuse_unless_tiles_fit(shape, caps);
}

constexpr ProductTemplate kTemplates[] = {
    {.suffix = "cpu.dp4a",
     .lane = Lane::kDp4a,
     .needs = kNeedDp4a,
     .refuse = refuse_unless_cpu,
     .algorithm = Algorithm::kWholeRows,
     .q8 = true},
    {.suffix = "cpu", .refuse = refuse_unless_cpu, .algorithm = Algorithm::kWholeRows},
    {.suffix = "dp4a.tile",
     .lane = Lane::kDp4a,
     .needs = kNeedDp4a,
     .refuse = refuse_unless_expert_tiles,
     .algorithm = Algorithm::kTiled,
     .q8 = true,
     .tiled = true},
    {.suffix = "tile", .refuse = refuse_unless_expert_tiles, .algorithm = Algorithm::kTiled, .tiled = true},
    {.suffix = "portable", .algorithm = Algorithm::kPortable},
};

}  // namespace

std::span<const ProductRow> expert_matvec_variants(WeightFormat format) {
  static const std::vector<std::vector<ProductRow>> tables = expand_templates("expert_matvec", kTemplates);
  return tables[static_cast<size_t>(format)];
}

}  // namespace doppler::kernels
