// The table of matvec, best first; ../measured.h has what put the rows in this order. Read next: matvec.cpp.
#include "kernels/linear/product.h"

namespace doppler::kernels {
namespace {

constexpr ProductTemplate kMatvecTemplates[] = {
    // lavapipe (subgroups of 8, 2 cores), 2560 x 512: 0.5 ms as q8_0 with dp4a, 0.7 ms without.
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
     .refuse = refuse_unless_tiles_fit,
     .algorithm = Algorithm::kTiled,
     .q8 = true,
     .tiled = true},
    {.suffix = "tile", .refuse = refuse_unless_tiles, .algorithm = Algorithm::kTiled, .tiled = true},
    {.suffix = "dp4a",
     .lane = Lane::kDp4a,
     .needs = kNeedDp4a | kNeedSubgroups,
     .refuse = refuse_unless_whole_units,
     .algorithm = Algorithm::kSubgroup,
     .q8 = true},
    {.suffix = "dp4a.workgroup",
     .lane = Lane::kDp4a,
     .needs = kNeedDp4a,
     .refuse = refuse_unless_whole_units,
     .algorithm = Algorithm::kWorkgroup,
     .q8 = true},
    {.suffix = "subgroup",
     .lane = Lane::kSubgroups,
     .needs = kNeedSubgroups,
     .refuse = refuse_unless_whole_units,
     .algorithm = Algorithm::kSubgroup},
    {.suffix = "workgroup", .refuse = refuse_unless_whole_units, .algorithm = Algorithm::kWorkgroup},
    {.suffix = "portable", .algorithm = Algorithm::kPortable},
};

}  // namespace

std::span<const ProductRow> matvec_variants(WeightFormat format) {
  static const std::vector<std::vector<ProductRow>> tables = expand_templates("matvec", kMatvecTemplates);
  return tables[static_cast<size_t>(format)];
}

}  // namespace doppler::kernels
