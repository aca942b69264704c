// The table of matmul, best first. Read next: matmul.cpp.
#include "kernels/linear/product.h"

namespace doppler::kernels {
namespace {

constexpr ProductTemplate kTemplates[] = {
    // tile64 without the work of rows that are not there. lavapipe, 1280 x 512 in q4_k, CPU time: 8.9 G operations a
    // second at 64 rows, as dp4a, and 1.5 times dp4a at 5 and 20 rows.
    {.suffix = "cpu", .refuse = refuse_unless_cpu_and_eights, .algorithm = Algorithm::kTileOfCpu},
    // H200, Dawn, 512 rows in tile_q4 (kernel_bench --rows 512): 16384 x 2048 237 TFLOP/s, dp4a 57; with 8 rows
    // still 1.9 times as fast as dp4a.
    {.suffix = "matrix",
     .lane = Lane::kMatrix,
     .needs = kNeedMatrix,
     .refuse = refuse_unless_matrix,
     .algorithm = Algorithm::kMatrix,
     .tiled = true,
     .f16 = true},
    // H200, Dawn, 512 rows, 28672 x 4096 in q4_k (kernel_bench --model 8b --rows 512): dp4a 50.6 TFLOP/s, tile64
    // 20.0.
    {.suffix = "dp4a",
     .lane = Lane::kDp4a,
     .needs = kNeedDp4a,
     .refuse = refuse_unless_whole_units,
     .algorithm = Algorithm::kWorkgroup,
     .q8 = true},
    {.suffix = "tile64", .refuse = refuse_unless_eights, .algorithm = Algorithm::kTile},
    {.suffix = "portable", .algorithm = Algorithm::kPortable},
};

}  // namespace

std::span<const ProductRow> matmul_variants(WeightFormat format) {
  static const std::vector<std::vector<ProductRow>> tables = expand_templates("matmul", kTemplates);
  return tables[static_cast<size_t>(format)];
}

}  // namespace doppler::kernels
