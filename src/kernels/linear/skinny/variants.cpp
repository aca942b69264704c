// The table of matmul_skinny, best first: kernels of this folder, which unpack each weight once for all rows of x, that of
// narrow/, then those of matmul/ for larger chunks. Read next: matmul_skinny.cpp.
#include "kernels/linear/shared_rows.h"

namespace doppler::kernels {
namespace {

constexpr ProductTemplate kTemplates[] = {
    {.suffix = "cpu.once.dp4a",
     .lane = Lane::kDp4a,
     .needs = kNeedDp4a,
     .refuse = refuse_unless_cpu,
     .algorithm = Algorithm::kOnceOfCpu,
     .q8 = true,
     .tiled = true},
    kCpuRow,
    // H200, Dawn, 2026-11-22, all products of a step of an 8B model in Q4_K_M (linear_chain_bench), ms with 16 rows: narrow
    // 4.02, once.dp4a 6.38, dp4a 41.6.
    {.suffix = "narrow",
     .lane = Lane::kMatrix,
     .needs = kNeedMatrix,
     .refuse = refuse_unless_narrow,
     .algorithm = Algorithm::kNarrow,
     .tiled = true,
     .f16 = true},
    // Likewise with 2, 4 and 8 rows, in plans of so many: few.dp4a, and once.dp4a where that is refused, 1.98, 2.44 and 3.46;
    // once.dp4a alone 2.21, 2.64 and 3.68. 2 and 4 rows in a plan of 8: 2.84 and 2.86.
    // Since few.dp4a takes all products of 5 to 8 rows, 8 rows on an H100: 3.51 to 3.26.
    {.suffix = "few.dp4a",
     .lane = Lane::kDp4a,
     .needs = kNeedDp4a,
     .refuse = refuse_unless_few,
     .algorithm = Algorithm::kFew,
     .q8 = true,
     .tiled = true},
    kOnceDp4aRow,
    {.suffix = "once", .refuse = refuse_unless_whole_units, .algorithm = Algorithm::kOnce},
    // H200, Dawn, us with 2, 8 and 16 rows (kernel_bench --rows 2,8,16), 28672 x 4096 in tile_q4: once.dp4a 26, 57, 82;
    // once 73, 135, 268; matrix 182, 186, 192; dp4a 377, 378, 382. 16-bit weights were not measured.
    kMatrixRow,
    kDp4aRow,
    kTile64Row,
    kPortableRow,
};

}  // namespace

std::span<const ProductRow> matmul_skinny_variants(WeightFormat format) {
  static const std::vector<std::vector<ProductRow>> tables = expand_templates("matmul_skinny", kTemplates);
  return tables[static_cast<size_t>(format)];
}

}  // namespace doppler::kernels
