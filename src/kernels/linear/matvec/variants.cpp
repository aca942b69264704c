// The table of matvec, best first. What a row's shape costs on which GPU is in the comments of matvec.cpp,
// beside the numbers it sets. Read next: matvec.cpp.
#include "kernels/linear/product.h"

namespace doppler::kernels {
namespace {

constexpr ProductTemplate kTemplates[] = {
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
    // H200, Dawn, 28672 x 4096 in q4_k (kernel_bench --model 8b, GPU time alone): dp4a 33.0 us, dp4a.workgroup
    // 34.5, subgroup 55.9, workgroup 60.4, portable 90.3; in q6_k 128256 x 4096: 148, 178, 208, 227, 374 us.
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
  static const std::vector<std::vector<ProductRow>> tables = expand_templates("matvec", kTemplates);
  return tables[static_cast<size_t>(format)];
}

}  // namespace doppler::kernels
