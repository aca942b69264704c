// The table of products with experts, best first. A few rows of x are multiplied each on their own, as a matvec's one
// row is.
#include "kernels/moe/variants.h"

namespace doppler::kernels {
namespace {

// A workgroup makes whole or half tiles of one expert.
std::string refuse_unless_expert_tiles(const ProductShape& shape, const gpu::Caps& caps) {
  if (shape.n % kTileRows != 0) {
    return format_text("the %u rows of an expert are not whole tiles of %u", shape.n, kTileRows);
  }
  return refuse_unless_tiles_fit(shape, caps);
}

// Few rows seldom share an expert.
std::string refuse_few_rows(const ProductShape& shape) {
  if (shape.max_rows > kMaxNarrowRows) return "";
  return format_text("%u rows at most are too few to be grouped by expert", shape.max_rows);
}

std::string refuse_unless_grouped(const ProductShape& shape, const gpu::Caps& caps) {
  const std::string reason = refuse_few_rows(shape);
  return reason.empty() ? refuse_unless_whole_units(shape, caps) : reason;
}

std::string refuse_unless_grouped_matrix(const ProductShape& shape, const gpu::Caps& caps) {
  const std::string reason = refuse_few_rows(shape);
  return reason.empty() ? refuse_unless_matrix(shape, caps) : reason;
}

constexpr ProductTemplate kMoeTemplates[] = {
    {.suffix = "cpu.dp4a",
     .lane = Lane::kDp4a,
     .needs = kNeedDp4a,
     .refuse = refuse_unless_cpu,
     .algorithm = Algorithm::kWholeRows,
     .q8 = true},
    {.suffix = "cpu", .refuse = refuse_unless_cpu, .algorithm = Algorithm::kWholeRows},
    {.suffix = "grouped.matrix",
     .lane = Lane::kMatrix,
     .needs = kNeedMatrix,
     .refuse = refuse_unless_grouped_matrix,
     .algorithm = Algorithm::kGroupedMatrix,
     .tiled = true},
    {.suffix = "grouped.dp4a",
     .lane = Lane::kDp4a,
     .needs = kNeedDp4a,
     .refuse = refuse_unless_grouped,
     .algorithm = Algorithm::kGrouped,
     .q8 = true},
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

std::string expert_operation(WeightFormat format) {
  return std::string("expert_matvec.") + weight_format_info(format).name;
}

std::span<const ProductRow> expert_matvec_variants(WeightFormat format) {
  static const std::vector<std::vector<ProductRow>> tables = expand_templates("expert_matvec", kMoeTemplates);
  return tables[static_cast<size_t>(format)];
}

}  // namespace doppler::kernels
